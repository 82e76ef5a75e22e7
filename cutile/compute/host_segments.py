"""Segments of arrays in host memory whose items one call of NumPy combines, `reduceat`.

It takes operators that are one op of the language, on numbers for which NumPy's ufunc gives what the op gives. Where
launches are checked (CUTILE_SANITIZE), and beside a debugger, kernels combine the items, as on GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutile import settings
from cutile.compute.algorithm import Algorithm
from cutile.compute.initial import Initial
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.operators import Operator, OpKind, operator
from cutile.compute.places import check_indices, follow
from cutile.compute.plans import Plan
from cutile.compute.transform import UnaryTransform
from cutile.compute.ufuncs import ufunc_of_numpy
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import DType, info, int64
from cutile.errors import TileValueError

UFUNCS = {"add": np.add, "mul": np.multiply, "minimum": np.minimum, "maximum": np.maximum,
           "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


class InSegments(Algorithm):
    """The base of algorithms whose plans depend on whether launches are checked."""

    @classmethod
    def _finished(cls, key: tuple, roots: list) -> tuple:
        return (*key, "checked") if np.ndarray in map(type, roots) and settings.get("SANITIZE") else key


def ufunc_of_segments(op: Operator, t: ValueType) -> np.ufunc | None:
    """What combines the items of segments in one call, if something does."""
    found = None if settings.get("SANITIZE") else ufunc_of_numpy(op, t)
    return None if found is None else UFUNCS[found.op]


def in_one_array(plan: Plan, items: IteratorBase, t: ValueType, n: int) -> Any:
    """The state of an array of n items of a type: the user's, or one in temporary storage, which a launch fills."""
    return stored_once(plan, items, t, n).state(n)


def stored_once(plan: Plan, items: IteratorBase, t: ValueType, n: int) -> IteratorBase:
    """Such an array, as an operand."""
    if isinstance(items, ArrayIterator) and items.value_type == t:
        return items
    stored = plan.values(n, t)
    UnaryTransform().launches(plan, items, stored, operator(OpKind.IDENTITY), n)
    return stored


def reduce(plan: Plan, items: IteratorBase, out: IteratorBase, n: int, starts: IteratorBase, ends: IteratorBase,
           op: Operator, initial: Initial) -> bool:
    """Whether it put into the plan what reduces n segments. If not, it put there a check that segments lie within the
    items; the sanitizer checks it by itself.
    """
    size, t = items.size(), initial.type
    if size is None or settings.get("SANITIZE"):
        return False
    bounds = [in_one_array(plan, it, Number(int64), n) for it in (starts, ends)]
    plan.call(_check(size), *bounds)
    for one in follow(plan, "d_in", items, size):
        plan.call(_check_indices(one.argument, one.size), *bounds, one.indices.state(size))
    ufunc = None if any(items.captured()) else ufunc_of_segments(op, t)
    if ufunc is None or size == 0:
        return False
    direct = isinstance(out, ArrayIterator) and out.value_type == t
    totals = out if direct else plan.values(n, t)
    plan.call(_fold(ufunc, t.dtype), in_one_array(plan, items, t, size), *bounds, initial.state, totals.state(n))
    if not direct:
        UnaryTransform().launches(plan, totals, out, operator(OpKind.IDENTITY), n)
    return True


def _check(size: int) -> Callable:
    def check(start: np.ndarray, end: np.ndarray) -> None:
        wrong = np.flatnonzero((end > start) & ((start < 0) | (end > size)))
        if wrong.size:
            k = int(wrong[0])
            raise TileValueError(f"segment {k} has items {start[k]} to {end[k] - 1}, but argument `d_in` has {size} "
                                 f"items")

    return check


def _check_indices(argument: str, size: int | None) -> Callable:
    def check(start: np.ndarray, end: np.ndarray, indices: np.ndarray) -> None:
        try:
            check_indices(argument, size, indices)
        except IndexError:  # perhaps of items in no segment
            for first, last in zip(start, end, strict=True):
                check_indices(argument, size, indices[:last], first)

    return check


def _fold(ufunc: np.ufunc, dtype: DType) -> Callable:
    """A function that combines the items of each segment with an initial value, which comes as in `Held`."""
    def fold(values: np.ndarray, start: np.ndarray, end: np.ndarray, initial: tuple[int], out: np.ndarray) -> None:
        before = number_of(initial, dtype)
        some = np.flatnonzero(end > start)
        found = quietly(ufunc, before, _combined(ufunc, values, start[some], end[some])) if some.size else before
        out[:] = before
        out[some] = found

    return fold


def number_of(held: tuple[int], dtype: DType) -> np.ndarray:
    """A number that comes as in `Held`, as an array of one."""
    bits = np.array(held, np.int64)
    return (bits.view(np.float64) if info(dtype).floating else bits).astype(info(dtype).storage)


def _combined(ufunc: np.ufunc, values: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The combination of each segment; none is empty."""
    if (start[1:] == end[:-1]).all():
        return quietly(ufunc.reduceat, values[:end[-1]], start, 0, values.dtype)
    if (end[:-1] == len(values)).any():  # `reduceat` takes each bound for an item, but the last one may be missing
        values = np.append(values, values[-1:])
    bounds = np.stack((start, end), 1).reshape(-1)[:-1 if end[-1] == len(values) else None]
    return quietly(ufunc.reduceat, values[:max(bounds.max() + 1, end[-1])], bounds, 0, values.dtype)[::2]


def quietly(function: Callable, *args: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return function(*args)

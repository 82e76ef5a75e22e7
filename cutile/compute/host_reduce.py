"""Reductions of an array in host memory by one call of NumPy, where the operator is one op of the language on numbers.

A launch takes longer than NumPy adds up a million small integers. Extremes of floats are those of the language's own
ops, which pass over NaN and tell zeros apart.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import gt, lt
from types import SimpleNamespace
from typing import Any

import numpy as np

import cutile as ct
from cutile import settings
from cutile.compute.function_key import debugged
from cutile.compute.host_segments import UFUNCS, number_of, quietly
from cutile.compute.initial import Initial
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.iterators.values import float_of_bits
from cutile.compute.operators import Operator
from cutile.compute.plans import Plan
from cutile.compute.results import result_of
from cutile.compute.ufuncs import Ufunc
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import DType, bool_, float32, float64, info

_FLOATS = (Number(float32), Number(float64))
_EXTREMES = {"maximum": (ct.max, ct.maximum, gt), "minimum": (ct.min, ct.minimum, lt)}  # of a tile, and of two numbers


def reduce(plan: Plan, items: IteratorBase, out: IteratorBase, ufunc: Ufunc, initial: Initial | None, n: int) -> bool:
    """Whether it put into the plan what reduces n items, one at least."""
    t = ufunc.combine.type
    dtype = t.dtype
    if settings.get("SANITIZE") or info(dtype).carrier != info(dtype).storage or not (
            _converts(items, t) and _converts(out, t)):
        return False
    plan.call(_extreme(ufunc.op, dtype) if ufunc.floating and ufunc.op in _EXTREMES else _fold(UFUNCS[ufunc.op], dtype),
              items.state(n), () if initial is None else initial.state, out.state(1))
    return True


def pick(items: IteratorBase, out: IteratorBase, op: Operator, t: ValueType) -> Callable | None:
    """A function that reduces an array of floats by an operator that gives the larger or smaller of two. It does
    nothing, and is false, where there is a NaN, or the result is a zero: there the order of combinations decides.
    """
    picks = result_of(op, t, t).picks
    if not picks or t not in _FLOATS or settings.get("SANITIZE") or debugged() or not (
            isinstance(items, ArrayIterator) and isinstance(out, ArrayIterator) and items.value_type == t
            and out.value_type == t):
        return None
    ufunc = UFUNCS[picks]

    def choose(items: np.ndarray, initial: tuple[int, ...], out: np.ndarray) -> bool:
        start = float_of_bits(initial[0]) if initial else None
        found = quietly(ufunc.reduce, items, 0, None, None, False, *() if start is None else (start,))
        if found != found or found == 0:
            return False
        out[0] = found
        return True

    return choose


def _converts(it: IteratorBase, t: Number) -> bool:
    """Whether NumPy converts between items of an array and numbers of a type as the language does."""
    found: ValueType = it.value_type
    if not isinstance(it, ArrayIterator) or not isinstance(found, Number) or bool_ in (found.dtype, t.dtype):
        return False
    return found == t or info(found.dtype).integral and info(t.dtype).integral


def _fold(ufunc: np.ufunc, dtype: DType) -> Callable:
    storage, floating = info(dtype).storage, info(dtype).floating
    modulus = 1 << dtype.bitwidth if storage.kind == "u" else 0
    start = -0.0 if ufunc is np.add else 1.0  # NumPy begins a sum with 0, and the sum of -0.0 is -0.0 [D-14]

    def of_integers(items: np.ndarray, initial: tuple[int, ...], out: np.ndarray) -> None:
        if initial:
            before, = initial
            found = ufunc.reduce(items, 0, storage, None, False, before % modulus if modulus else before)
        else:
            found = ufunc.reduce(items, 0, storage)
        if out.dtype == storage:
            out[0] = found
        else:
            out[:] = np.asarray(found)  # an item, in place of a line, would refuse what does not fit

    def of_floats(items: np.ndarray, initial: tuple[int, ...], out: np.ndarray) -> None:
        found = quietly(ufunc.reduce, items, 0, storage, None, False, start)
        out[:] = quietly(ufunc, number_of(initial, dtype), found) if initial else found

    return of_floats if floating else of_integers


def _extreme(op: str, dtype: DType) -> Callable:
    (of_tile, of_two, better), sig = _EXTREMES[op], SimpleNamespace(x=SimpleNamespace(dtype=dtype))

    def choose(items: np.ndarray, initial: tuple[int, ...], out: np.ndarray) -> None:
        found = quietly(_meaning, of_tile, items, sig)
        if initial and not better(found, float_of_bits(initial[0])):
            out[:] = quietly(of_two.meaning, number_of(initial, dtype), found)
        else:
            out[0] = found

    return choose


def _meaning(op: Any, items: np.ndarray, sig: Any) -> np.ndarray:
    return op.meaning(items, axis=-1, flush_to_zero=False, propagate_nan=False, sig=sig)

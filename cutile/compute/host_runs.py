"""Runs of equal keys in arrays of host memory. A launch compares neighbours; then NumPy moves the first items of runs,
and combines the values of all runs in one call (`host_segments`), or measures the runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cutile as ct
from cutile.compute.host_scan import advances
from cutile.compute.host_segments import in_one_array, quietly, ufunc_of_segments
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.discard import DiscardIterator
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.operators import Operator
from cutile.compute.overlaps import check_apart
from cutile.compute.places import Room, check_size
from cutile.compute.plans import Plan
from cutile.compute.transform import BinaryTransform
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import bool_, info


def keep_first(plan: Plan, keys: IteratorBase, items: IteratorBase, outs: dict[str, IteratorBase], equal: Operator,
               n: int) -> bool:
    """Whether it put into the plan what keeps the first key of each run, and its item. `outs`: for keys, items, and the
    number of runs.
    """
    out = _second(outs)
    if not (_can_find(plan, keys, outs, n) and can_move(items, out)):
        return False
    check_apart(plan, outs, {"d_in_keys": keys, "d_in_items": items}, n)
    _launch(plan, keys, outs, equal, n, move, _source(plan, items, out, n), _target(out))
    return True


def reduce_runs(plan: Plan, keys: IteratorBase, values: IteratorBase, outs: dict[str, IteratorBase], op: Operator,
                equal: Operator, n: int) -> bool:
    """Whether it put into the plan what reduces runs. `outs`: for keys, values, and the number of runs."""
    out, t = _second(outs), values.value_type
    ufunc = ufunc_of_segments(op, t) if takes(out, t) and _can_find(plan, keys, outs, n) else None
    if ufunc is None:
        return False

    def fold(items: np.ndarray, heads: np.ndarray, to: np.ndarray) -> None:
        to[:len(heads)] = quietly(ufunc.reduceat, items, heads, 0, items.dtype)

    _launch(plan, keys, outs, equal, n, fold, in_one_array(plan, values, t, n), out.state(None))
    return True


def measure_runs(plan: Plan, keys: IteratorBase, outs: dict[str, IteratorBase], equal: Operator, n: int) -> bool:
    """Whether it put into the plan what measures runs. `outs`: for keys, lengths, and the number of runs."""
    out = _second(outs)
    if not (takes(out, Number(ct.int64)) and _can_find(plan, keys, outs, n)):
        return False

    def measure(items: tuple, heads: np.ndarray, to: np.ndarray) -> None:
        to[:len(heads)] = np.diff(heads, append=n)

    _launch(plan, keys, outs, equal, n, measure, (), out.state(None))
    return True


def check_room(plan: Plan, outs: dict[str, IteratorBase], n: int) -> None:
    """In host memory, a check after launches that the outputs for keys and values had room for all runs. `outs`: these,
    and one for the number of runs, which it reads if it is an array.
    """
    *some, (_, counter) = outs.items()
    if plan.on_host and takes(counter, Number(ct.int64)):
        room = Room(plan, dict(some), n)
        plan.call(lambda count, *indices: room.check([int(count[0])] * len(room.sizes), indices), counter.state(1),
                  *room.states)


def _second(outs: dict[str, IteratorBase]) -> IteratorBase:
    return list(outs.values())[1]


def _can_find(plan: Plan, keys: IteratorBase, outs: dict[str, IteratorBase], n: int) -> bool:
    """Whether NumPy can store keys and the number of runs."""
    out, _, counter = outs.values()
    return plan.on_host and n > 0 and advances(keys) and can_move(keys, out) and takes(counter, Number(ct.int64))


def can_move(items: IteratorBase, out: IteratorBase) -> bool:
    """Whether NumPy can move items there."""
    return isinstance(out, DiscardIterator) or isinstance(out, ArrayIterator) and out.value_type == items.value_type


def takes(out: IteratorBase, t: ValueType) -> bool:
    """Whether NumPy stores numbers of a type in an output as the language does."""
    return isinstance(out, ArrayIterator) and isinstance(t, Number) and isinstance(out.value_type, Number) and (
        out.value_type == t or bool_ not in (t.dtype, out.value_type.dtype)
        and info(t.dtype).integral and info(out.value_type.dtype).integral)


def _source(plan: Plan, items: IteratorBase, out: IteratorBase, n: int) -> Any:
    return None if isinstance(out, DiscardIterator) else in_one_array(plan, items, items.value_type, n)


def _target(out: IteratorBase) -> Any:
    return None if isinstance(out, DiscardIterator) else out.state(None)


def _launch(plan: Plan, keys: IteratorBase, outs: dict[str, IteratorBase], equal: Operator, n: int, then: Callable,
            *args: Any) -> None:
    """The launches that find where runs begin, and store keys and the number of runs. `then(source, heads, target)`
    does the rest, with the places where they begin; `args`: source and target.
    """
    out, _, counter = outs.values()
    alike = plan.values(n, Number(bool_))
    if n > 1:
        BinaryTransform().launches(plan, keys, keys + 1, alike + 1, equal, n - 1)
    sizes = {name: it.size() for name, it in list(outs.items())[:2]}

    def finish(alike: np.ndarray, keys: Any, keys_out: Any, counter: np.ndarray, source: Any, target: Any) -> None:
        alike[0] = False
        heads = np.flatnonzero(~alike)
        for name, size in sizes.items():
            check_size(name, size, len(heads))
        move(keys, heads, keys_out)
        then(source, heads, target)
        counter[:1] = np.array([len(heads)])  # which wraps where it does not fit

    plan.call(finish, alike.state(None), _source(plan, keys, out, n), _target(out), counter.state(1), *args)


def move(items: Any, heads: np.ndarray, to: Any) -> None:
    """Store the items at `heads`. Structs are tuples of arrays; `to` is None for what is discarded."""
    if to is None:
        return
    if isinstance(to, tuple):
        for x, y in zip(items, to, strict=True):
            move(x, heads, y)
    else:
        to[:len(heads)] = items[heads]

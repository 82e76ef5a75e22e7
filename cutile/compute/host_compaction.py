"""Items that operators choose, moved in host memory: a launch says of each item where it goes, NumPy moves them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import cutile as ct
from cutile._support.lru import LruDict
from cutile.compute.host_runs import can_move, move, takes
from cutile.compute.host_segments import stored_once
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.discard import DiscardIterator
from cutile.compute.operators import Operator
from cutile.compute.overlaps import check_apart
from cutile.compute.places import check_size
from cutile.compute.plans import Plan
from cutile.compute.transform import UnaryTransform
from cutile.compute.value_types import Number
from cutile.dtypes import bool_, uint8


def select(plan: Plan, items: IteratorBase, outs: dict[str, IteratorBase], cond: Operator, n: int) -> bool:
    """Whether it put into the plan what moves the items of which the operator is true. `outs`: for items and counts."""
    return _moves(plan, items, outs, cond, bool_, (True,), n)


def part(plan: Plan, items: IteratorBase, outs: dict[str, IteratorBase], one: Operator, two: Operator, n: int) -> bool:
    """Whether it put into the plan what moves items into three outputs. `outs`: these, and one for counts."""
    return _moves(plan, items, outs, _one_of(one, two), uint8, (1, 2, 0), n)


_BOTH: LruDict[tuple[Operator, Operator], Any] = LruDict(100)  # a kernel is found by its operator


def _one_of(one: Operator, two: Operator) -> Operator:
    """1 where the first operator is true, 2 where only the second one is, 0 elsewhere."""
    found = _BOTH.get((one, two))
    if found is None:
        first, second = one.function, two.function

        def number(v):
            return 1 if ct.astype(first(v), ct.bool_) else 2 if ct.astype(second(v), ct.bool_) else 0

        found = Operator(number, one.watched or two.watched, tuple(dict.fromkeys((*one.hidden, *two.hidden))))
        _BOTH.keep((one, two), found)
    return found


def _moves(plan: Plan, items: IteratorBase, outs: dict[str, IteratorBase], op: Operator, dtype: ct.DType,
           kinds: Sequence[Any], n: int) -> bool:
    """`op` gives the kind of an item; those of kind `kinds[k]` go to output number k."""
    *targets, counter = outs.values()
    if not (plan.on_host and n and takes(counter, Number(ct.int64))
            and all(can_move(items, out) for out in targets)):
        return False
    check_apart(plan, outs, {"d_in": items}, n)
    items = stored_once(plan, items, items.value_type, n)
    found = plan.values(n, Number(dtype))
    UnaryTransform().launches(plan, items, found, op, n)
    states = tuple(None if isinstance(out, DiscardIterator) else out.state(None) for out in targets)
    plan.call(_mover(list(outs)[:-1], [out.size() for out in targets], kinds), found.state(n), items.state(n), states,
              counter.state(max(1, len(kinds) - 1)))
    return True


def _mover(names: list[str], sizes: list[int | None], kinds: Sequence[Any]) -> Callable:
    def finish(found: np.ndarray, items: Any, targets: tuple, counts: np.ndarray) -> None:
        places = [np.flatnonzero(found if kind is True else found == kind) for kind in kinds]
        for name, size, some in zip(names, sizes, places, strict=True):
            check_size(name, size, len(some))
        for k, (target, some) in enumerate(zip(targets, places, strict=True)):
            move(items, some, target)
            if k < len(counts):
                counts[k:k + 1] = np.array([len(some)])  # which wraps where it does not fit

    return finish

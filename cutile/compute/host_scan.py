"""Scans in host memory by an operator that is a ufunc: one block scans one large tile after another, and carries what
stands before a tile.
"""

from typing import Any

import cutile as ct
from cutile.compute.algorithm import is_wide, kernels_for, position, power_below
from cutile.compute.arrays import Held
from cutile.compute.blocks import put_one
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operators import Operator
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.ufuncs import Ufunc
from cutile.compute.value_types import ValueType

TILE = 1 << 18  # most items of a tile


def _kernel(items: IteratorBase, out: IteratorBase, ufunc: Ufunc, begin: Any, given: Any, ahead: bool, wide: bool
            ) -> Any:
    """A kernel of one block. `begin`, `given`: reader and annotation of an initial value, which the first item is
    combined with. `ahead`: that value goes to `head`, and an item behind the place where it was read, so that a tile is
    read before the one before it is written.
    """
    reader, writer, combine, t = items.reader(), out.writer(), ufunc.combine, ufunc.combine.type
    begins = begin is not None

    @ct.kernel
    def scan_items(source: items.annotation(wide), target: out.annotation(wide),
                   head: out.annotation(wide) if ahead else tuple[()], initial: given if begins else tuple[()],
                   n: position(wide), size: ct.Constant[int], more: ct.Constant[bool]):
        full = ct.astype(n // size, ct.int32)
        coming = t.cast(reader.tile(source, Place(0, size, n, True)))
        if more:
            rest = t.cast(reader.tile(source, Place(full, size, n, False)))
        if begins:
            total, start = t.cast(begin.value(initial)), 0
            if ahead:
                put_one(writer, head, 0, t, total)
        else:
            scanned = ufunc.scanned(coming)
            writer.put(target, Place(0, size, n, True), scanned)
            total, start = _last(scanned), 1
        for i in range(start, full):
            if ahead:
                here = coming
                coming = t.cast(reader.tile(source, Place(ct.minimum(i + 1, full - 1), size, n, True)))
            else:
                here = t.cast(reader.tile(source, Place(i, size, n, True)))
            scanned = combine(total, ufunc.scanned(here))
            writer.put(target, Place(i, size, n, True), scanned)
            total = _last(scanned)
        if more:
            writer.put(target, Place(full, size, n, False), combine(total, ufunc.scanned(rest)))

    return scan_items


def _last(tile):
    """The last item of a tile, as a scalar."""
    return ct.extract(tile, (tile.shape[0] - 1,), (1,)).item()


def _initial_kernel(out: IteratorBase, begin: Any, given: Any, t: ValueType) -> Any:
    """A kernel that stores the initial value."""
    writer = out.writer()

    @ct.kernel
    def store_initial(target: out.annotation(False), initial: given):
        put_one(writer, target, 0, t, t.cast(begin.value(initial)))

    return store_initial


def advances(out: IteratorBase) -> bool:
    """Whether an output can be advanced in a plan: numbers of iterators cannot, as of positions that are counted."""
    return not any(isinstance(slot, Held) for slot in out.slots())


def scan(plan: Plan, items: IteratorBase, out: IteratorBase, op: Operator, ufunc: Ufunc, begin: Any, inclusive: bool,
         n: int) -> None:
    """The launches that scan n items, one at least. An output that `advances` is needed if not `inclusive`."""
    t, head, state = ufunc.combine.type, (), () if begin is None else begin.state
    if not inclusive:  # the initial value, and behind it the inclusive scan
        if n == 1:
            kernel = kernels_for(("scan begins", out.kind, begin.kind, t), _initial_kernel, out, begin.reader(),
                                 begin.annotation(False), t)
            return plan.launch(1, kernel, out.state(1), state)
        head, out, n = out.state(1), out + 1, n - 1
    wide, size = is_wide(n, items, out), power_below(n, TILE)
    key = "scan on host", items.kind, out.kind, op.key, t, begin and begin.kind, inclusive, wide
    kernel = kernels_for(key, _kernel, items, out, ufunc, begin and begin.reader(), begin and begin.annotation(wide),
                         not inclusive, wide)
    plan.launch(1, kernel, items.state(n), out.state(n), head, state, n, size, n % size != 0)

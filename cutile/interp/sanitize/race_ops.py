"""What the check `race` does while a program runs: it remembers who accessed each element, and compares."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cutile.analysis.access import Access
from cutile.interp.exec.block_set import BlockSet, Dim3
from cutile.interp.sanitize.cells import Cells
from cutile.interp.sanitize.findings import Report, index_words
from cutile.interp.sanitize.reach import Place
from cutile.interp.sanitize.sites import Site, check_op
from cutile.interp.sanitize.vector_clocks import VectorClocks
from cutile.ops._op import ELEMENTS, OFFSETS, ROWS, WRITE, Sig

NAME = "race"
READ_PLAIN, WRITE_PLAIN, READ_ATOMIC, WRITE_ATOMIC, UPDATE = "read", "write", "atomic read", "atomic write", "update"

# Fields of a cell: the last writer, two readers, two atomic readers, two atomic writers. Two, so that the accesses of
# one block cannot hide another's.
WRITERS, READERS = ("writer",), ("reader 1", "reader 2")
ATOMIC_READERS, ATOMIC_WRITERS = ("atomic reader 1", "atomic reader 2"), ("atomic writer 1", "atomic writer 2")
# The fields whose accesses an access races with, and the fields that it is kept in.
AGAINST = {READ_PLAIN: (*WRITERS, *ATOMIC_WRITERS), WRITE_PLAIN: (*WRITERS, *READERS, *ATOMIC_WRITERS, *ATOMIC_READERS),
           READ_ATOMIC: WRITERS, WRITE_ATOMIC: (*WRITERS, *READERS), UPDATE: (*WRITERS, *READERS)}
KEPT_IN = {READ_PLAIN: READERS, WRITE_PLAIN: WRITERS, READ_ATOMIC: ATOMIC_READERS, WRITE_ATOMIC: ATOMIC_WRITERS,
           UPDATE: ATOMIC_WRITERS}

# An access in an int64: the number of the block plus 1, its clock, the number of the site.
BLOCK, CLOCK = 36, 12
SITES = 1 << CLOCK


class AccessHistory:
    """The memory of a launch: for each element who accessed it, and the order of blocks so far."""

    def __init__(self, grid: Dim3, args: Sequence[Any]):
        self.grid, self.cells = grid, Cells(args)
        self.clocks = VectorClocks(prod(grid))
        self.sites: list[Site] = []
        self._numbers: dict[Site, int] = {}
        self._apart: dict[Any, bool] = {}

    def number(self, site: Site) -> int:
        """The number of a site; sites beyond the most that are told apart share the last one."""
        found = self._numbers.get(site)
        if found is None:
            found = self._numbers[site] = min(len(self.sites), SITES - 1)
            self.sites[found:] = [site]
        return found

    def apart(self, memory: Any, array: Any) -> bool:
        """Whether tile indices alone prove that no two blocks of this grid share an element."""
        found = self._apart.get(memory)
        if found is None:
            found = self._apart[memory] = memory.own_tiles is not None and self._moves(memory.own_tiles) \
                and self.cells.elements_apart(array)
        return found

    def _moves(self, dims: Sequence[frozenset]) -> bool:
        """Whether every grid axis longer than 1 alone decides some dimension of the tile's position."""
        alone = {v.axis for d in dims if len(d) == 1 for v in d}
        return all(n == 1 or k in alone for k, n in enumerate(self.grid))

    def blocks(self, ctx: BlockSet) -> np.ndarray:
        """The number of each running block, plus 1."""
        x, y, z = (ctx.bid(k).astype(np.int64) for k in range(3))
        return np.broadcast_to((x * self.grid[1] + y) * self.grid[2] + z + 1, ctx.batch_shape).reshape(-1)

    def block(self, number: int) -> Dim3:
        return tuple(map(int, np.unravel_index(number - 1, self.grid)))


def _access(operands: Sequence, results: Sequence, /, *, site: Site, kind: str, memory: Any, order: Any,
            bids: frozenset[int], sig: Sig, ctx: BlockSet) -> None:
    race: AccessHistory = ctx.launch.state[NAME]
    access = site.access
    scatter = access.effect == WRITE and access.unit in (ROWS, ELEMENTS, OFFSETS)
    compare = memory.may_race() and not race.apart(memory, operands[0])
    if not compare and order is None and not scatter:
        return
    seen = _Seen(race, site, kind, Place.of(access, operands), bids, ctx)
    if not seen.at.size:
        return
    if scatter:
        seen.several(_values(operands, access, ctx))
    if compare:
        seen.compare()
    if order is not None:
        race.clocks.pass_on(seen.at, seen.own >> BLOCK, order, seen.changed(results))


def _flat(x: np.ndarray, shape: tuple[int, ...], ctx: BlockSet) -> np.ndarray:
    """A value of a tile of this shape, or of a scalar, in the order of blocks and lanes."""
    rank = len(shape)
    if x.ndim < rank or x.shape[x.ndim - rank:] != shape:  # a scalar
        x = np.broadcast_to(x.reshape(x.shape + (1,) * rank), x.shape + shape)
    return ctx.flat(x, rank).reshape(-1)


def _values(operands: Sequence, access: Access, ctx: BlockSet) -> np.ndarray:
    """The elements that a scatter writes."""
    how = access.op.op
    return _flat(np.asarray(how.named(operands, access.op.layout)[how.accesses.values[-1]]), access.shape, ctx)


class _Seen:
    """The elements that one op accesses in all running blocks.

    at     their cells
    own    for each, the access itself, as an int64
    which  for each, its position among blocks and lanes
    bids   the axes of the grid along which the kernel asks for its block's index
    """

    def __init__(self, race: AccessHistory, site: Site, kind: str, place: Place, bids: frozenset[int], ctx: BlockSet):
        self.race, self.site, self.kind, self.place, self.bids, self.ctx = race, site, kind, place, bids, ctx
        cells = ctx.flat(place.read(race.cells.numbers, np.asarray(-1, np.int64)), len(place.access.shape))
        self.lanes, blocks = cells.size // ctx.count, race.blocks(ctx)
        own = np.repeat(blocks << BLOCK | race.clocks.clocks_of(blocks) << CLOCK | race.number(site), self.lanes)
        at = cells.reshape(-1)
        if at.size and at.min() < 0:
            self.which = np.flatnonzero(at >= 0)
            self.at, self.own = at[self.which], own[self.which]
        else:
            self.which, self.at, self.own = np.arange(at.size), at, own

    def changed(self, results: Sequence[np.ndarray]) -> np.ndarray | None:
        """Where a compare-and-swap found what it expected; None for accesses without `expected`, which change all
        elements.
        """
        expected = self.place.named.get("expected")
        if expected is None:
            return None
        shape = self.place.access.shape
        found, wanted = (_flat(np.asarray(x), shape, self.ctx)[self.which] for x in (results[0], expected))
        return _bits(found) == _bits(wanted)

    def compare(self) -> None:
        """Compare with what other blocks did to these elements, and remember this access."""
        race, at, own = self.race, self.at, self.own
        for name in AGAINST[self.kind]:
            if (field := race.cells.fields.get(name)) is not None:
                self.report(field.take(at, mode="clip"))
        first, *second = KEPT_IN[self.kind]
        field = race.cells.field(first)
        if not second:
            field[at] = own
            self.report(field.take(at, mode="clip"))  # another block in the same op
            return
        before = field.take(at, mode="clip")
        replaced = before ^ own < 1 << BLOCK
        replaced |= before == 0
        if not replaced.all():
            replaced |= race.clocks.ordered(before, own >> BLOCK, BLOCK, CLOCK)
        field[at[replaced]] = own[replaced]
        others = field.take(at, mode="clip") ^ own >= 1 << BLOCK
        if others.any():
            race.cells.field(second[0])[at[others]] = own[others]

    def report(self, before: np.ndarray) -> None:
        """Report those of earlier accesses that are of other blocks and not ordered before this one."""
        if not before.any():
            return
        wrong = before ^ self.own >= 1 << BLOCK
        wrong &= before != 0
        if wrong.any():
            wrong &= ~self.race.clocks.ordered(before, self.own >> BLOCK, BLOCK, CLOCK)
        if wrong.any():
            i = int(wrong.argmax())
            self._report(i, wrong, self.race.sites[int(before[i]) % SITES], self.race.block(int(before[i] >> BLOCK)))

    def _report(self, i: int, wrong: np.ndarray, other: Site, block: Dim3) -> None:
        lane = np.unravel_index(int(self.which[i]) % self.lanes, self.place.access.shape)
        running = int(self.which[i]) // self.lanes
        blocks = np.zeros(self.ctx.count, bool)
        blocks[self.which[wrong] // self.lanes] = True

        def describe(k: int) -> Report:
            element = self.place.element(self.ctx, running, lane)
            name, words = self.site.array(self.place.array, self.ctx, running)
            own = self.ctx.blocks()[running]
            return Report(f"{self.site.call}() in block {own} {_VERBS[self.kind]} element {index_words(element)} of "
                          f"{words}, which {other.call}() in block {block} {_EFFECTS[other.access.effect]} too, and "
                          f"nothing orders the two", name, element, _help(own, block, self.bids),
                          ((f"the other access, in block {block}", other.span),), True)

        self.ctx.launch.report(NAME, self.site, self.ctx, blocks.reshape(self.ctx.batch_shape), describe,
                               frozenset((self.site, other)))

    def several(self, values: np.ndarray) -> None:
        """Report a scatter that writes different values to one element in one block."""
        lane = self.race.cells.field("lane")
        lane[self.at] = self.which
        last = lane.take(self.at, mode="clip")
        wrong = last != self.which
        if not wrong.any():
            return
        v = _bits(values)
        wrong &= last // self.lanes == self.which // self.lanes
        wrong &= v[last] != v[self.which]
        if wrong.any():
            i = int(wrong.argmax())
            a, b = (np.unravel_index(int(x) % self.lanes, self.place.access.shape) for x in (self.which[i], last[i]))
            running = int(self.which[i]) // self.lanes
            blocks = np.zeros(self.ctx.count, bool)
            blocks[self.which[wrong] // self.lanes] = True

            def describe(k: int) -> Report:
                element = self.place.element(self.ctx, running, a)
                name, words = self.site.array(self.place.array, self.ctx, running)
                lanes = " and ".join(index_words(tuple(map(int, x))) for x in (a, b))
                return Report(f"{self.site.call}() writes different values to element {index_words(element)} of "
                              f"{words}, those at {lanes} of its tile, and any of them may stay", name, element,
                              "make the indices differ, or combine the values first, for example with ct.atomic_add")

            self.ctx.launch.report(NAME, self.site, self.ctx, blocks.reshape(self.ctx.batch_shape), describe,
                                   (self.site, "several"))


def _help(a: Dim3, b: Dim3, bids: frozenset[int]) -> str:
    """What to do about a race of two blocks. `bids`: the axes whose block index the kernel asks for."""
    axes = [k for k in range(3) if a[k] != b[k]]
    if bids & set(axes):
        return _HELP
    asked = " or ".join(f"ct.bid({k})" for k in axes)
    return (f"the kernel never calls {asked}, so blocks that differ there alone do the same. Let the grid have length "
            f"1 along axis {' and '.join(map(str, axes))}, or use {asked}")


def _bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(f"u{x.itemsize}") if x.dtype.kind == "f" else x


_VERBS = {READ_PLAIN: "reads", WRITE_PLAIN: "writes", READ_ATOMIC: "reads", WRITE_ATOMIC: "writes", UPDATE: "updates"}
_EFFECTS = {"read": "reads", "write": "writes", "atomic": "updates"}
_HELP = ("to change elements that blocks share, use one atomic such as ct.atomic_add(array, indices, update) in place "
         "of a load and a store. Otherwise give each block elements of its own, or order the two: a release after the "
         "first, an acquire that sees it before the second, both with scope DEVICE")

ACCESS = check_op(_access, "*operands *results")

"""What a launch does, as a watcher records it: counts for all blocks, and every step of some of them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from cutile._support.structs import field, structure
from cutile.analysis.access import Access
from cutile.interp import tile_text
from cutile.interp.exec.block_set import BlockSet, Dim3
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.profile.lines import KernelProfile
from cutile.interp.sanitize.findings import at_block
from cutile.interp.sanitize.reach import Place
from cutile.interp.sanitize.sites import parameter_names
from cutile.interp.traces.elements import Numbering, begins
from cutile.interp.traces.watchers import Stretch, Watcher
from cutile.ir.nodes import Kernel, Op
from cutile.ops._op import ELEMENTS, READ, TILES, WRITE
from cutile.pictures.cells import Cells
from cutile.spans import Span
from cutile.types import TileType

MOST_ELEMENTS = 1 << 26  # of all arrays of a launch together, since each has counts
GRID_CELLS = 4096
STEPS = 2000  # most steps that are kept of a block
FAR = 1 << 60  # greater than any index
RUNS = 400  # most runs of elements of one access of a block; of more, the gaps that are shortest are closed


class Hull(NamedTuple):
    """The least and the greatest index along each axis of what was touched of an array, a row for each block or cell;
    greatest -1: nothing was. An array without axes has one here, of length 1.
    """

    rank: int
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def empty(cls, rows: int, rank: int) -> Hull:
        shape = rows, max(rank, 1)
        return cls(rank, np.full(shape, FAR), np.full(shape, -1))

    def boxes(self) -> list[list[list[int]] | None]:
        """Each row as begin and length along each axis, None for nothing."""
        return [None if (b < 0).any() else np.stack([a, b - a + 1], axis=1).tolist()[:self.rank]
                for a, b in zip(self.low, self.high, strict=True)]

    def with_(self, other: Hull) -> Hull:
        """What either has."""
        return Hull(self.rank, np.minimum(self.low, other.low), np.maximum(self.high, other.high))


@structure(slots=True)
class AccessTotals:
    """What an access has done in all blocks: how often blocks ran it, how many elements it reached, how many its mask
    left out, and how many lay outside; and the arrays that it reached. `number` is its place in the data.
    """

    number: int
    access: Access
    runs: int = 0
    elements: int = 0
    masked: int = 0
    outside: int = 0
    arrays: set[int] = field(default_factory=set)


class Recorder(Watcher):
    """Records one launch.

    lines          the cost of each line (interp/profile); its times mean nothing here
    arrays         the arrays of the launch
    reads, writes  how often each element was read and written; an atomic is both
    places         a place in the source for each line and each way of calls that leads to it
    accesses       the totals of each op that accesses memory, in the order in which they first ran
    steps          the steps of each block that was asked for, in order, as plain data (see form.py)
    blocks_read, blocks_written  bytes, of the cells of the grid
    reached        for READ and WRITE, by array: what the cells of the grid touch
    hulls          for each block that was asked for, by effect and array: what it touches
    """

    arguments = assignments = True

    def __init__(self, kernel: Kernel, grid: Dim3, detailed: Iterable[Dim3]):
        self.kernel, self.grid = kernel, Cells(grid, GRID_CELLS)
        self.lines = KernelProfile(kernel.name, kernel.span)
        self.steps: dict[Dim3, list[dict[str, Any]]] = {block: [] for block in detailed}
        self.hulls: dict[Dim3, dict[tuple[str, int], Hull]] = {block: {} for block in self.steps}
        self.shortened: set[Dim3] = set()  # the blocks of which some steps are not kept
        self.accesses: dict[Op, AccessTotals] = {}
        self.places: dict[tuple[str, int, int | None], Span] = {}
        self._place_of: dict[Span, int] = {}
        self.arrays: Numbering | None = None
        self._given: dict[int, Any] = {}

    # -------------------------------------------------------------- what is told

    def given(self, parameter: int, array: Any) -> None:
        self._given[parameter] = array

    def begins(self, ctx: BlockSet) -> None:
        if self.arrays is None:
            self._prepare()
        self.lines.begins(ctx)

    def ran(self, stretch: Stretch, ctx: BlockSet) -> None:
        self.lines.ran(stretch, ctx)
        at = self.place(stretch.span)
        for _, block in self._detailed(ctx):
            steps = self.steps[block]
            if not steps or steps[-1]["at"] != at:
                self._step(block, {"at": at})

    def accessed(self, access: Access, place: Place, ctx: BlockSet) -> None:
        self.lines.accessed(access, place, ctx)
        numbers = self.arrays.of(place, ctx)
        inside = numbers >= 0
        reached = numbers[inside]
        total = self._total(access, place, ctx, numbers, reached)
        for effect, counts in ((READ, self.reads), (WRITE, self.writes)):
            if effect in effects_of(access):
                np.add.at(counts, reached, 1)
        self._by_cell(total, ctx, numbers, inside)
        for i, block in self._asked(ctx):
            self._widen(self.hulls[block], access, numbers[i][inside[i]])
        for i, block in self._detailed(ctx):
            self._step(block, {"at": self.place(access.op.span), "access": total.number,
                               "regions": self._regions(access, place, ctx, i, numbers[i])})

    def assigned(self, span: Span, name: str, t: TileType, x: np.ndarray, ctx: BlockSet) -> None:
        for i, block in self._detailed(ctx):
            self._step(block, {"at": self.place(span), "name": name, "dtype": t.dtype.name, "shape": list(t.shape),
                               "value": tile_text.values(t, at_block(x, t.ndim, ctx, i))})

    # -------------------------------------------------------------- how it is kept

    def place(self, span: Span) -> int:
        """The number of a place: a line, with the calls that lead to it."""
        found = self._place_of.get(span)
        if found is None:
            caller = None if span.call_site is None else self.place(span.call_site)
            self.places.setdefault((str(span.filename), span.line, caller), span)
            found = self._place_of[span] = list(self.places).index((str(span.filename), span.line, caller))
        return found

    def _prepare(self) -> None:
        names = list(parameter_names(self.kernel).values())
        self.arrays = Numbering([names[i] for i in self._given], list(self._given.values()))
        self.reads, self.writes = (np.zeros(self.arrays.count, np.int64) for _ in range(2))
        self.grid = Cells(self.grid.shape, max(64, GRID_CELLS // max(1, len(self.arrays.names) // 8)))
        cells = prod(self.grid.counts)
        self.blocks_read, self.blocks_written = (np.zeros(cells, np.int64) for _ in range(2))
        shapes = [b.array.shape for b in self.arrays.buffers]
        self.reached = {effect: [Hull.empty(cells, len(s)) for s in shapes] for effect in (READ, WRITE)}

    def _asked(self, ctx: BlockSet) -> list[tuple[int, Dim3]]:
        """The running blocks that were asked for, each with its position among the running ones."""
        return [(i, block) for i, block in enumerate(ctx.blocks()) if block in self.steps]

    def _detailed(self, ctx: BlockSet) -> list[tuple[int, Dim3]]:
        """Those of which further steps are kept."""
        found = self._asked(ctx)
        self.shortened.update(block for _, block in found if len(self.steps[block]) >= STEPS)
        return [(i, block) for i, block in found if block not in self.shortened]

    def _step(self, block: Dim3, step: dict[str, Any]) -> None:
        steps = self.steps[block]
        if steps and steps[-1] == {"at": step["at"]}:  # it said no more than that the line has run
            steps.pop()
        steps.append(step)

    def _total(self, access: Access, place: Place, ctx: BlockSet, numbers: np.ndarray,
               reached: np.ndarray) -> AccessTotals:
        total = self.accesses.setdefault(access.op, AccessTotals(len(self.accesses), access))
        masked = 0 if place.mask is None else int(np.count_nonzero(~ctx.flat(place.mask, len(access.shape))))
        total.runs += ctx.count
        total.elements += reached.size
        total.masked += masked
        total.outside += numbers.size - reached.size - masked
        total.arrays.update(np.unique(self.arrays.arrays(reached)).tolist())
        return total

    def _by_cell(self, total: AccessTotals, ctx: BlockSet, numbers: np.ndarray, inside: np.ndarray) -> None:
        """Add to what the cells of the grid touch."""
        cells = np.broadcast_to(self.grid.of([ctx.bid(k) for k in range(3)]), ctx.batch_shape).reshape(-1)
        lanes = tuple(range(1, numbers.ndim))
        size = np.count_nonzero(inside, axis=lanes) * item_bytes(total.access)
        effects = effects_of(total.access)
        for effect, counts in ((READ, self.blocks_read), (WRITE, self.blocks_written)):
            if effect in effects:
                np.add.at(counts, cells, size.astype(np.int64))
        for a in total.arrays:
            here = inside & (numbers >= self.arrays.first[a]) & (numbers < self.arrays.first[a + 1])
            indices = self._axes(a, np.where(here, numbers, self.arrays.first[a]))
            for k, index in enumerate(indices):
                low, high = np.where(here, index, FAR).min(axis=lanes), np.where(here, index, -1).max(axis=lanes)
                for hull in (self.reached[effect][a] for effect in effects):
                    np.minimum.at(hull.low[:, k], cells, low)
                    np.maximum.at(hull.high[:, k], cells, high)

    def _axes(self, a: int, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
        """The indices of elements along the axes of a hull."""
        return self.arrays.indices(a, numbers) or (np.zeros_like(numbers),)

    def _widen(self, hulls: dict[tuple[str, int], Hull], access: Access, reached: np.ndarray) -> None:
        """Add the elements that an access of a block reaches to what the block touches."""
        of = self.arrays.arrays(reached)
        for a in np.unique(of).tolist():
            indices, rank = self._axes(a, reached[of == a]), self.arrays.buffers[a].array.ndim
            for effect in effects_of(access):
                hull = hulls.setdefault((effect, a), Hull.empty(1, rank))
                for k, index in enumerate(indices):
                    hull.low[0, k] = min(hull.low[0, k], index.min())
                    hull.high[0, k] = max(hull.high[0, k], index.max())

    # -------------------------------------------------------------- what one block touches

    def _regions(self, access: Access, place: Place, ctx: BlockSet, i: int, numbers: np.ndarray) -> list[dict]:
        """What the access of a block touches, for each array: a tile as a box, other elements as runs."""
        reached = numbers[numbers >= 0]
        of = self.arrays.arrays(reached)
        if access.unit == TILES:
            box = self._box(access, place, ctx, i, numbers)
            if box is not None:
                return [box]
        outside = self._outside(access, place, ctx, i, numbers) if access.unit == ELEMENTS else None
        if outside is not None and "box" in outside:
            return [outside]
        found = [self._elements(int(a), np.unique(reached[of == a])) for a in np.unique(of)]
        return found if outside is None else [*found, outside]

    def _elements(self, a: int, numbers: np.ndarray) -> dict[str, Any]:
        """Elements of an array: as a box if they are one, as runs if not."""
        indices = self.arrays.indices(a, numbers)
        box = _hull(indices)
        if prod(n for _, n in box) == numbers.size:
            return {"array": a, "box": box}
        return {"array": a, **runs(numbers - self.arrays.first[a])}

    def _box(self, access: Access, place: Place, ctx: BlockSet, i: int, numbers: np.ndarray) -> dict | None:
        """A tile as a box, which may reach beyond its array: along each axis begin and length. None if its elements do
        not lie so.
        """
        if not (numbers >= 0).any():
            return self._box_outside(access, place, ctx, i)
        lane = np.unravel_index(int((numbers >= 0).argmax()), numbers.shape)
        a = int(self.arrays.arrays(numbers[lane]))
        at = self.arrays.indices(a, numbers[lane])
        if len(at) != len(access.order):
            return None
        box = [[0, 1] for _ in at]
        for d, k in enumerate(access.order):
            box[k] = [int(at[k]) - int(lane[d]), access.shape[d]]
        shape = self.arrays.buffers[a].array.shape
        expected, fits = self.arrays.first[a], True
        for d, k in enumerate(access.order):
            along = (box[k][0] + np.arange(box[k][1])).reshape([-1 if e == d else 1 for e in range(numbers.ndim)])
            expected = expected + along * prod(shape[k + 1:])
            fits = fits & (along >= 0) & (along < shape[k])
        beyond = numbers < 0  # beyond the array, or only beyond a slice of it
        return {"array": a, "box": box} if (beyond | fits & (numbers == expected)).all() else None

    def _outside(self, access: Access, place: Place, ctx: BlockSet, i: int, numbers: np.ndarray) -> dict | None:
        """Elements of a gather or scatter that lie outside its array; None if none do. If all its elements make a box,
        the box, else the smallest box that has those outside.
        """
        array, rank = place.array, len(access.shape)
        home = self.arrays.home(array.buffer) if isinstance(array, ArrayView) else None
        chosen = np.broadcast_to(True if place.mask is None else at_block(place.mask, rank, ctx, i), access.shape)
        missing = chosen & (numbers < 0)
        if home is None or not missing.any():
            return None
        named = [np.broadcast_to(at_block(x, rank, ctx, i), access.shape).astype(np.int64)
                 for x in place.named["indices"]]
        at = [np.clip(x, -FAR, FAR) + int(at_block(np.asarray(begin), 0, ctx, i))
              for x, begin in zip(named, array.start, strict=True)]
        box = _hull([x[chosen] for x in at])
        size = prod(n for _, n in box)
        if size <= numbers.size:
            order = sum((x[chosen] - begin) * prod(n for _, n in box[k + 1:])
                        for k, (x, (begin, _)) in enumerate(zip(at, box, strict=True)))
            if np.unique(order).size == size:
                return {"array": home[0], "box": box}
        return {"array": home[0], "outside": _hull([x[missing] for x in at])}

    def _box_outside(self, access: Access, place: Place, ctx: BlockSet, i: int) -> dict | None:
        """The box of a tile that reaches no element."""
        array = place.array
        if not isinstance(array, ArrayView):
            return None
        box = [[0, 1] for _ in access.order]
        for begin, n, k in zip(begins(place), access.shape, access.order, strict=True):
            box[k] = [int(at_block(begin, 0, ctx, i)) + int(at_block(np.asarray(array.start[k]), 0, ctx, i)), n]
        home = self.arrays.home(array.buffer)
        return home and {"array": home[0], "box": box}


def effects_of(access: Access) -> tuple[str, ...]:
    """READ, WRITE, or both for an atomic."""
    return (access.effect,) if access.effect in (READ, WRITE) else (READ, WRITE)


def _hull(indices: list[np.ndarray]) -> list[list[int]]:
    """The smallest box that has all elements with these indices along each axis: begin and length of each."""
    return [[int(x.min()), int(x.max() - x.min()) + 1] for x in indices]


def item_bytes(access: Access) -> float:
    """Bytes of an element of the array of an access."""
    return access.op.operands[0].type.dtype.bitwidth / 8


def runs(numbers: np.ndarray) -> dict[str, Any]:
    """Ascending numbers as runs: first, length, first, length, …; at most RUNS runs. If there are more, the shortest
    gaps are closed, so that the runs have elements more.
    """
    gaps = np.diff(numbers) - 1
    cut = np.flatnonzero(gaps > 0)
    exact = cut.size < RUNS
    if not exact:
        cut = np.sort(cut[np.argsort(-gaps[cut], kind="stable")[:RUNS - 1]])
    first = numbers[np.concatenate([[0], cut + 1])]
    last = numbers[np.concatenate([cut, [numbers.size - 1]])]
    return {"runs": np.stack([first, last - first + 1], axis=1).reshape(-1).tolist(), "exact": exact}

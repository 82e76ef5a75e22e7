"""The blocks that run: the `ctx` of emitted code and of meanings, and how a set of blocks splits.

The batch axes of a carrier, in front of the axes of its tile, stand for the running blocks. A value without batch axes
is the same for all blocks. While all blocks of a chunk take the same branches they form a `BlockGrid`, which has three
batch axes, as long as the chunk along each grid axis; a value that does not depend on an axis has length 1 there. If a
condition varies along one axis only, the grid splits into two smaller ones along that axis. If it varies along several,
the blocks become a `BlockList`, with one batch axis for the listed blocks. Blocks are numbered within their chunk in
row-major order of the grid axes, and every set keeps that order.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from cutile.errors import TileAssertionError
from cutile.interp.memory.strided_index import INDEX, StridedIndex
from cutile.ops._op import Sig
from cutile.spans import Span
from cutile.types import TileType

Dim3 = tuple[int, int, int]  # along the grid axes: the coordinates of a block, or an extent
BlockFunction = tuple[int, int, int, int]  # a constant, and the coefficient of the block index along each grid axis
LOWEST, HIGHEST = int(np.iinfo(INDEX).min), int(np.iinfo(INDEX).max)


class Launch:
    """The state that all blocks of one launch share. `clock`, if it is profiled: when the last line ended."""

    __slots__ = ("grid", "step_limit", "steps", "printed", "failed", "clock")

    def __init__(self, grid: Dim3, step_limit: int | None = None):
        self.grid, self.step_limit, self.steps = grid, step_limit, 0
        self.printed: dict[Dim3, list[str]] = {}
        self.failed: dict[Dim3, TileAssertionError] = {}

    def print(self, block: Dim3, text: str) -> None:
        self.printed.setdefault(block, []).append(text)

    def fail(self, block: Dim3, message: str | None, span: Span | None) -> None:
        """Record a failed assertion of a block; only its first one is kept."""
        text = "assertion failed" + (f": {message}" if message else "") + f" in block {block}"
        self.failed.setdefault(block, TileAssertionError(text, span))


class BlockSet:
    """A set of running blocks. Ops see `batch_shape`, `bid`, `num_blocks`, `each`, `write` and `fail`."""

    __slots__ = ("launch", "origin", "extent", "batch_shape", "span", "_coords")

    launch: Launch
    origin: Dim3  # of the chunk in the grid
    extent: Dim3  # of the chunk
    batch_shape: tuple[int, ...]  # batch axes of a value that differs between all blocks

    def __init__(self, launch: Launch, origin: Dim3, extent: Dim3, batch_shape: tuple[int, ...]):
        self.launch, self.origin, self.extent, self.batch_shape = launch, origin, extent, batch_shape
        self.span: Span | None = None
        self._coords: tuple[np.ndarray, ...] | None = None

    def at(self, span: Span) -> BlockSet:
        """This set. The position of the op that runs is noted in it, for messages."""
        self.span = span
        return self

    @property
    def count(self) -> int:
        return prod(self.batch_shape)

    def bid(self, axis: int) -> np.ndarray:
        if self._coords is None:
            self._coords = self.coordinates()
        return self._coords[axis]

    def index(self, function: BlockFunction) -> StridedIndex | np.ndarray:
        """The value of the function for each block, as a tile index of dtype int32."""
        constant, *coefficients = function
        total = sum(c * self.bid(k).astype(np.int64) for k, c in enumerate(coefficients) if c)
        return (total + constant).astype(INDEX)

    def num_blocks(self, axis: int) -> np.ndarray:
        return np.asarray(self.launch.grid[axis], np.int32)

    def numbers(self) -> np.ndarray:
        """The number of each block in the chunk, ascending."""
        raise NotImplementedError

    def coordinates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The coordinate of each block along each of the three grid axes, as carriers."""
        raise NotImplementedError

    def blocks(self) -> list[Dim3]:
        """The coordinates of each block, in order."""
        at = np.unravel_index(self.numbers(), self.extent)
        return list(zip(*((c + o).tolist() for c, o in zip(at, self.origin, strict=True)), strict=True))

    def each(self, sig: Sig, operands: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, ...]]:
        """For each block, in order, its parts of the operands."""
        flat = [self.flat(x, t.ndim) for x, t in zip(operands, sig.operands, strict=True)]
        for i in range(self.count):
            yield tuple(x[i] for x in flat)

    def write(self, texts: Sequence[str]) -> None:
        """Print one text per block."""
        for block, text in zip(self.blocks(), texts, strict=True):
            self.launch.print(block, text)

    def fail(self, sig: Sig, cond: np.ndarray, message: str | None) -> None:
        """Record a failure for each block in which an element of `cond` is False."""
        if not cond.all():
            ok = self.flat(cond, sig.x.ndim).reshape(self.count, -1).all(axis=1)
            for block, fine in zip(self.blocks(), ok.tolist(), strict=True):
                if not fine:
                    self.launch.fail(block, message, self.span)

    def flat(self, x: np.ndarray, rank: int) -> np.ndarray:
        """A carrier with one batch axis that counts all blocks."""
        tile_shape = x.shape[x.ndim - rank:]
        return np.broadcast_to(x, self.batch_shape + tile_shape).reshape(self.count, *tile_shape)

    def narrowing(self, sub: BlockSet) -> Narrowing:
        """How values of these blocks become values of the blocks of a subset."""
        raise NotImplementedError

    def split(self, mask: np.ndarray) -> tuple[BlockSet, BlockSet]:
        """The blocks for which the mask, a carrier of a scalar, is True, and the others. Neither set may be empty."""
        raise NotImplementedError


class Narrowing:
    """From a set of blocks to a subset."""

    __slots__ = ()

    def take(self, x: np.ndarray, rank: int) -> np.ndarray:
        """The part of a value for the blocks of the subset."""
        return x


class BlockGrid(BlockSet):
    """The blocks of a chunk at all combinations of some positions along each grid axis, `axes[k]` along axis k. Without
    `axes`, all blocks of the chunk.
    """

    __slots__ = ("_axes",)

    def __init__(self, launch: Launch, origin: Dim3, extent: Dim3, axes: tuple[np.ndarray, ...] | None = None):
        self.launch, self.origin, self.extent = launch, origin, extent
        self.batch_shape = extent if axes is None else tuple(map(len, axes))
        self.span = self._coords = None
        self._axes = axes

    @property
    def axes(self) -> tuple[np.ndarray, ...]:
        if self._axes is None:
            self._axes = tuple(map(np.arange, self.extent))
        return self._axes

    def index(self, function):
        if self._axes is None or all(
                n == whole for n, whole, c in zip(self.batch_shape, self.extent, function[1:], strict=True) if c):
            found = _strided_index(function, self.origin, self.extent)
            if found is not None:
                return found
        return super().index(function)

    def coordinates(self):
        shapes = ((-1, 1, 1), (1, -1, 1), (1, 1, -1))
        return tuple((a + o).astype(np.int32).reshape(s)
                     for a, o, s in zip(self.axes, self.origin, shapes, strict=True))

    def numbers(self):
        (x, y, z), (_, ny, nz) = self.axes, self.extent
        return ((x[:, None, None] * ny + y[:, None]) * nz + z).reshape(-1)

    def along(self, axis: int, positions: np.ndarray) -> BlockGrid:
        axes = (*self.axes[:axis], positions, *self.axes[axis + 1:])
        return BlockGrid(self.launch, self.origin, self.extent, axes)

    def split(self, mask):
        varying = [k for k, n in enumerate(mask.shape) if n > 1]
        if len(varying) == 1:
            k, m = varying[0], mask.reshape(-1)
            return self.along(k, self.axes[k][m]), self.along(k, self.axes[k][~m])
        m, numbers = self.flat(mask, 0), self.numbers()
        return block_list(self, numbers[m]), block_list(self, numbers[~m])

    def narrowing(self, sub):
        if isinstance(sub, BlockGrid):
            return GridNarrowing([None if len(a) == len(b) else selector(a, b)
                            for a, b in zip(self.axes, sub.axes, strict=True)])
        at = np.unravel_index(sub.numbers(), self.extent)
        return GridToListNarrowing([a if len(b) == self.extent[k] else np.searchsorted(b, a)
                           for k, (a, b) in enumerate(zip(at, self.axes, strict=True))])


@functools.lru_cache(maxsize=1024)
def _strided_index(function: BlockFunction, origin: Dim3, extent: Dim3) -> StridedIndex | None:
    """`BlockSet.index` of all blocks of a chunk; None if a value does not fit the dtype of an index, and so wraps.
    """
    constant, *coefficients = function
    shape = tuple(n if c else 1 for n, c in zip(extent, coefficients, strict=True))
    steps = tuple(c if n > 1 else 0 for n, c in zip(shape, coefficients, strict=True))
    found = StridedIndex(constant + sum(c * o for c, o in zip(coefficients, origin, strict=True)), steps, shape)
    return found if LOWEST <= found.min and found.max <= HIGHEST else None


class BlockList(BlockSet):
    """Any blocks, as a list of their numbers in the chunk."""

    __slots__ = ("list",)

    def __init__(self, launch: Launch, origin: Dim3, extent: Dim3, numbers: np.ndarray):
        self.list = numbers
        super().__init__(launch, origin, extent, (len(numbers),))

    def numbers(self):
        return self.list

    def coordinates(self):
        at = np.unravel_index(self.list, self.extent)
        return tuple((a + o).astype(np.int32) for a, o in zip(at, self.origin, strict=True))

    def split(self, mask):
        return block_list(self, self.list[mask]), block_list(self, self.list[~mask])

    def narrowing(self, sub):
        return ListNarrowing(selector(self.list, sub.numbers()))


def block_list(like: BlockSet, numbers: np.ndarray) -> BlockList:
    return BlockList(like.launch, like.origin, like.extent, numbers)


def selector(outer: np.ndarray, inner: np.ndarray) -> slice | np.ndarray:
    """The positions of `inner` in `outer`, both ascending; a slice if they are consecutive."""
    i = np.searchsorted(outer, inner)
    first, last = int(i[0]), int(i[-1])
    return slice(first, last + 1) if last - first + 1 == len(i) else i


class GridNarrowing(Narrowing):
    __slots__ = ("selectors",)

    def __init__(self, selectors: list[slice | np.ndarray | None]):
        self.selectors = selectors

    def take(self, x, rank):
        if x.ndim == rank:
            return x
        for k, s in enumerate(self.selectors):
            if s is not None and x.shape[k] > 1:
                x = x[(slice(None),) * k + (s,)]
        return x


class GridToListNarrowing(Narrowing):
    __slots__ = ("at",)

    def __init__(self, at: list[np.ndarray]):
        self.at = at

    def take(self, x, rank):
        if x.ndim == rank:
            return x
        return x[tuple(a if n > 1 else 0 for a, n in zip(self.at, x.shape, strict=False)) + (...,)]


class ListNarrowing(Narrowing):
    __slots__ = ("selector",)

    def __init__(self, selector: slice | np.ndarray):
        self.selector = selector

    def take(self, x, rank):
        return x[self.selector] if x.ndim > rank and x.shape[0] > 1 else x


# ------------------------------------------------------------------ other kinds of sets


class Single(BlockSet):
    """One block, for the block schedule. Values have no batch axes."""

    __slots__ = ("block",)

    def __init__(self, launch: Launch, block: Dim3):
        super().__init__(launch, block, (1, 1, 1), ())
        self.block = block

    def coordinates(self):
        return tuple(np.asarray(i, np.int32) for i in self.block)

    def numbers(self):
        return np.zeros(1, np.int64)

    def write(self, texts):
        """Show the text at once: blocks run in order."""
        show("".join(texts))

    def fail(self, sig, cond, message):
        """Raise the error: nothing after a failed assertion runs."""
        super().fail(sig, cond, message)
        if self.block in self.launch.failed:
            raise self.launch.failed[self.block]


class Turn(Single):
    """One block of the interleave schedule. Other blocks run between its accesses, so its text is shown at the end."""

    __slots__ = ()

    def write(self, texts):
        BlockSet.write(self, texts)


class Widened(BlockSet):
    """The same blocks inside a combine function, which takes all elements at once: its scalars have `extra` more batch
    axes.
    """

    __slots__ = ("outer", "extra")

    def __init__(self, outer: BlockSet, extra: int):
        super().__init__(outer.launch, outer.origin, outer.extent, outer.batch_shape)
        self.outer, self.extra = outer, extra

    def numbers(self):
        return self.outer.numbers()

    def coordinates(self):
        return tuple(widen(self.outer.bid(k), 0, self.extra) for k in range(3))


def widen(x: np.ndarray, rank: int, extra: int) -> np.ndarray:
    """Put axes of length 1 between the batch axes and the tile of a value, if it has batch axes."""
    if x.ndim == rank or not extra:
        return x
    n = x.ndim - rank
    return x.reshape(x.shape[:n] + (1,) * extra + x.shape[n:])


def with_batch_axes(x: np.ndarray, t: TileType, ctx: BlockSet) -> np.ndarray:
    """The value with batch axes, of length 1 if it is the same for all blocks."""
    return x.reshape((1,) * len(ctx.batch_shape) + x.shape) if x.ndim == t.ndim else x


def show(text: str) -> None:
    """Write to standard output, if there is one, as print() does."""
    if sys.stdout is not None:
        sys.stdout.write(text)

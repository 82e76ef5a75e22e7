"""Repeated launches: what depends on nothing but the grid and the layouts of the arrays is prepared once.

A prepared launch keeps the code, its chunks of blocks, and where in an array a tile lies: numbers, never an array or a
view of one. To run it means to check the arrays that are given, make views of them and call the code. Arrays that are
out of the ordinary are left to the long way (launch.py), before anything is done.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cutile import settings
from cutile.analysis.access import tile_indices
from cutile.interp import run_blocks
from cutile.interp.exec.block_set import BlockGrid, Dim3, Launch
from cutile.interp.exec.capacity import not_enough
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.buffer import Buffer
from cutile.interp.schedule import CompiledKernel
from cutile.ir.nodes import Kernel, Op, Value, regions_of, uses_of
from cutile.ir.walk import walk
from cutile.ops._op import HOST, READ

GRIDS = 32  # for which launches on arrays of one layout are prepared
CHUNKS = 32  # of blocks, that a prepared launch has at most


class TileView(NamedTuple):
    """Where the tiles of a chunk of blocks lie in an array: one NumPy view."""

    parameter: int
    written: bool
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int  # bytes
    strides: tuple[int, ...] | None  # None: the whole array, in order


class GridLaunch(NamedTuple):
    """A launch that is prepared for one grid and arrays of one layout."""

    function: Callable  # (ctx, *arguments, *views), as codegen/batch.py makes it
    context: contextvars.Context  # it runs in a copy of this
    grid: Dim3
    arrays: list[int]  # which parameters are arrays
    stored: list[int]  # and which of these are stored to
    bare: bool  # the code does not ask which blocks run
    makers: list[tuple[int, Callable]]  # parameters that the code needs besides views, and what makes the argument
    parts: list[tuple[Dim3, Dim3, list[TileView | None]]]  # origin and extent of a chunk, and its tiles

    def run(self, values: Sequence[Any]) -> bool:
        """Run it; False, with nothing done, if the arrays are out of the ordinary."""
        return self.context.copy().run(_run, self, values)


def _run(launched: GridLaunch, values: Sequence[Any]) -> bool:  # one function: a call costs what a small tile does
    function, _, grid, arrays, stored, bare, makers, parts = launched
    for i in stored:
        target = values[i]
        flags = target.flags
        if not flags.behaved:  # aligned and writeable
            return False
        own = flags.owndata
        for k in arrays:
            a = values[k]
            if k != i and (a is target or not (own and a.flags.owndata) and np.may_share_memory(a, target)):
                return False
    launch, given, ctx = None if bare else Launch(grid), [None] * len(values), None
    try:
        for i, make in makers:
            given[i] = make(values[i])
        for origin, extent, tiles in parts:
            views = []
            for tile in tiles:
                view = None
                if tile is not None:
                    i, written, shape, dtype, offset, strides = tile
                    a = values[i]
                    view = a.reshape(shape) if strides is None else np.ndarray(shape, dtype, a, offset, strides)
                    if not written:
                        view.setflags(write=False)
                views.append(view)
            if not bare:
                ctx = BlockGrid(launch, origin, extent)
            function(ctx, *given, *views)
    except MemoryError as e:
        raise not_enough(e) from e
    return True


@functools.cache
def _context(check: bool) -> contextvars.Context:
    """A context in which all settings but CHECK have their defaults, and NumPy is silent, which from 2.0 on keeps this
    in contexts. To enter it takes a tenth of the time that it takes to set the same things for each launch.
    """
    context = settings.fixed(CHECK=check)
    context.run(np.errstate(all="ignore").__enter__)
    return context


def checking() -> bool | None:
    """CUTILE_CHECK, where no other setting that counts here is touched; else None, and launches are not prepared."""
    return settings.get("CHECK") if settings.untouched(*_OTHERS) else None


_OTHERS = tuple(name for name in settings.INTERPRETED if name != "CHECK")


def ordinary(args: Sequence[Any]) -> bool:
    """Whether prepared launches take these arguments of `run_blocks.run`: no lists, and the arrays that are stored to
    are aligned and overlap no other.
    """
    buffers = [x.buffer for x in args if isinstance(x, ArrayView)]
    return not any(isinstance(x, list) for x in args) and all(
        m.array.flags.aligned if m.writable else not m.may_change for m in buffers)


def prepare(compiled: CompiledKernel, grid: Dim3, args: Sequence[Any], check: bool) -> GridLaunch | None:
    """What launches of this grid on arrays of these layouts have in common, found with the ordinary arguments of one of
    them; None if they have to go the long way.
    """
    kernel = compiled.kernel
    plan, nodes = compiled.plan(None, not check), list(walk(kernel.body))
    chunks = list(run_blocks.chunks(grid, run_blocks.chunk_of(grid, plan.blocks)))
    if plan.schedule != "batch" or 0 in grid or len(chunks) > CHUNKS \
            or any(isinstance(n, Op) and n.op.effect == HOST for n in nodes):  # prints, and what else the host sees
        return None
    tiles = {n: _tile_views(n, find, kernel, grid, chunks, args) for n, find in plan.code.placed.items()}
    seen = {n for n, found in tiles.items() if None not in found}  # these need nothing but their views
    others = [n for n in nodes if n not in seen and n not in plan.code.skipped]
    bare = not any(regions_of(n) or isinstance(n, Op) and (tile_indices(n) or "ctx" in n.op.given)
                   for n in others)
    needed = {v for n in others for v in uses_of(n)}
    makers = [(i, _maker(p, x)) for i, (p, x) in enumerate(zip(kernel.params, args, strict=True)) if p in needed]
    parts = [(origin, extent, at) for (origin, extent), *at in zip(chunks, *tiles.values(), strict=True)]
    arrays = [i for i, x in enumerate(args) if isinstance(x, ArrayView)]
    stored = [i for i in arrays if args[i].writable]
    return GridLaunch(plan.function, _context(check), grid, arrays, stored, bare, makers, parts)


def _tile_views(n: Op, find: Callable, kernel: Kernel, grid: Dim3, chunks: list,
                args: Sequence[Any]) -> list[TileView | None]:
    """Where the tile of an op lies, for each chunk; None where it is no part of an array of packed elements."""
    i = kernel.params.index(n.operands[0])
    m, written = args[i].buffer, n.op.effect != READ
    if not m.plain or m.flat is None or m.may_change and not written:
        return [None] * len(chunks)
    found = (find(args[i], BlockGrid(Launch(grid), origin, extent)) for origin, extent in chunks)
    return [v if v is None else _tile_view(i, written, v, m.array) for v in found]


def _tile_view(i: int, written: bool, v: np.ndarray, a: np.ndarray) -> TileView:
    whole = v.size == a.size and v.flags.c_contiguous
    return TileView(i, written, v.shape, v.dtype, v.ctypes.data - a.ctypes.data, None if whole else v.strides)


def _maker(p: Value, x: Any) -> Callable:
    if not isinstance(x, ArrayView):
        return functools.partial(run_blocks.argument, p)
    m = x.buffer
    return functools.partial(_array, (m.dtype, m.writable, m.name), (x.start, x.size, x.steps, x.index_dtype, True))


def _array(of_memory: tuple, of_view: tuple, a: np.ndarray) -> ArrayView:
    """What `array_view.view_of` gives, where everything about the layout is known."""
    m = Buffer(a, *of_memory)
    m.may_change = m.writable  # the arrays are apart
    return ArrayView(m, *of_view)

"""Grid launches: launches of one grid on arrays of one layout, with all that does not depend on the arrays' contents.

`prepare` computes once what depends only on the grid and on the arrays' dtypes, sizes and strides: the code, the chunks
of blocks, and where the tiles lie in the arrays. These are numbers, never an array or a view of one. `GridLaunch.run`
checks the arrays, makes views of them and calls the code. If an array that is stored to is misaligned or overlaps
another, it does nothing and returns False; then `run_blocks.run` runs the launch.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from cutile import settings
from cutile.analysis.access import tile_indices
from cutile.interp import debugger, run_blocks
from cutile.interp.exec.block_set import BlockGrid, Dim3, Launch
from cutile.interp.exec.capacity import not_enough
from cutile.interp.memory import stored_view
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.buffer import Buffer
from cutile.interp.progress_bar import Progress
from cutile.interp.schedule import CompiledKernel
from cutile.ir.nodes import Bind, Kernel, Op, Value, regions_of, uses_of
from cutile.ir.walk import nodes_of
from cutile.ops._op import HOST, READ

GRIDS = 32  # most grid launches of one HostLaunch
CHUNKS = 32  # most chunks of a grid launch


class TileView(NamedTuple):
    """Where the tiles of a chunk of blocks lie in an array: one NumPy view."""

    parameter: int
    written: bool
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int  # bytes
    strides: tuple[int, ...] | None  # None: the whole array, in order
    convert: Callable | None  # makes of the view what a load gives, where the array does not hold that


class GridLaunch(NamedTuple):
    """What launches of one grid on arrays of one layout have in common."""

    function: Callable  # (ctx, *arguments, *views), as codegen/batch.py makes it
    context: contextvars.Context  # the code runs in a copy of this
    grid: Dim3
    arrays: list[int]  # indices of the parameters that are arrays
    stored: list[int]  # indices of those that the kernel stores to
    needs_ctx: bool  # the code asks which blocks run
    makers: list[tuple[int, Callable]]  # (parameter, function that makes its argument) for those not used as views only
    parts: list[tuple[Dim3, Dim3, list[TileView | None]]]  # origin and extent of a chunk, and its tiles

    def run(self, values: Sequence[Any]) -> bool:
        """Run the launch. False, with nothing done, if an array that is stored to is misaligned or overlaps another."""
        return self.context.copy().run(_run, self, values)

    def record(self, args: Sequence[Any]) -> tuple | None:
        """What runtime/_host_launch.c needs to run such launches. `args`: as given to `prepare`. None for those that it
        does not run, with several chunks or empty arrays.

        A tuple: `debugger.follows`; the context; the function; what makes its ctx, or None; then
        * for each launch value None, or of an array the offset of its lowest byte from its first element, the number of
          its bytes, the alignment that stores to it need (0 without stores), and its shape, dtype, offset from the
          lowest byte, and strides;
        * for each argument of the function None, or (launch value, what makes the argument of it), or of a view the
          launch value, shape, dtype, offset, strides and conversion.
        """
        if len(self.parts) > 1 or any(args[i].buffer.array.size == 0 for i in self.arrays):
            return None
        (origin, extent, tiles), = self.parts
        blocks = functools.partial(_blocks, self.grid, origin, extent) if self.needs_ctx else None
        arrays = [_extent(args[i].buffer, i in self.stored) if i in self.arrays else None for i in range(len(args))]
        given: list[tuple | None] = [None] * len(args)
        for i, make in self.makers:
            given[i] = i, make
        views = [t and (t.parameter, t.shape, t.dtype, t.offset - args[t.parameter].buffer.low, t.strides, t.convert)
                 for t in tiles]
        return debugger.follows, self.context, self.function, blocks, tuple(arrays), (*given, *views)


# One function, not split up: a Python call takes as long as an op on a small tile.
def _run(launched: GridLaunch, values: Sequence[Any]) -> bool:
    function, _, grid, arrays, stored, needs_ctx, makers, parts = launched
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
    launch, given, ctx = Launch(grid) if needs_ctx else None, [None] * len(values), None
    progress = Progress(function.__name__, grid) if len(parts) > 1 else None
    try:
        for i, make in makers:
            given[i] = make(values[i])
        for origin, extent, tiles in parts:
            views = []
            for tile in tiles:
                view = None
                if tile is not None:
                    i, written, shape, dtype, offset, strides, convert = tile
                    a = values[i]
                    view = a.reshape(shape) if strides is None else np.ndarray(shape, dtype, a, offset, strides)
                    if not written:
                        view.setflags(write=False)
                        if convert is not None:
                            view = convert(view)
                views.append(view)
            if needs_ctx:
                ctx = BlockGrid(launch, origin, extent)
            function(ctx, *given, *views)
            if progress is not None:
                progress.add(prod(extent))
    except MemoryError as e:
        raise not_enough(e) from e
    finally:
        if progress is not None:
            progress.close()
    return True


def _blocks(grid: Dim3, origin: Dim3, extent: Dim3) -> BlockGrid:
    return BlockGrid(Launch(grid), origin, extent)


def _extent(buffer: Buffer, stored: bool) -> tuple:
    a, low = buffer.array, buffer.low
    return low, buffer.stored_memory.buffer.nbytes, a.dtype.alignment * stored, a.shape, a.dtype, -low, a.strides


@functools.cache
def _context(check: bool) -> contextvars.Context:
    """A context in which all settings but CHECK have their defaults and NumPy warns of nothing (since 2.0 a context
    holds that too). Entering it takes a tenth of the time that setting both takes.
    """
    context = settings.fixed(CHECK=check)
    context.run(np.errstate(all="ignore").__enter__)
    return context


def checking() -> bool | None:
    """The value of CUTILE_CHECK; None if no grid launch may be used, because another setting that the interpreter reads
    is set.
    """
    return settings.get("CHECK") if settings.untouched(*_OTHERS) else None


_OTHERS = tuple(name for name in settings.INTERPRETED if name != "CHECK")


def preparable(args: Sequence[Any]) -> bool:
    """Whether a grid launch can be made with these arguments of `run_blocks.run`: no argument is a list, every array
    that is stored to is aligned, and no other array overlaps one of these.
    """
    buffers = [x.buffer for x in args if isinstance(x, ArrayView)]
    return not any(isinstance(x, list) for x in args) and all(
        buffer.array.flags.aligned if buffer.writable else not buffer.may_change for buffer in buffers)


def prepare(compiled: CompiledKernel, grid: Dim3, args: Sequence[Any], check: bool) -> GridLaunch | None:
    """The grid launch for arrays of the layouts of `args`, which are `preparable`. None if such launches must be run by
    `run_blocks.run`: under another schedule, with prints, or with too many chunks.
    """
    plan = compiled.plan(None, not check)
    kernel = plan.code.kernel
    nodes = nodes_of(kernel)
    chunks = list(run_blocks.chunks(grid, run_blocks.chunk_of(grid, plan.blocks)))
    if plan.schedule != "batch" or 0 in grid or len(chunks) > CHUNKS \
            or any(o.effect == HOST for o in {n.op for n in nodes if type(n) is Op}):  # prints, and what else it sees
        return None
    tiles = {n: _tile_views(n, find, n in plan.code.as_stored, kernel, grid, chunks, args)
             for n, find in plan.code.view_finders.items()}
    seen = {n for n, found in tiles.items() if None not in found}  # ops that need no argument besides their views
    others = [n for n in nodes if type(n) is not Bind and n not in seen and n not in plan.code.skipped]
    needs_ctx = any(n.region is not None or tile_indices(n) or "ctx" in n.op.given if type(n) is Op else regions_of(n)
                    for n in others)
    needed = {v for n in others for v in uses_of(n)}
    makers = [(i, _maker(p, x)) for i, (p, x) in enumerate(zip(kernel.params, args, strict=True)) if p in needed]
    parts = [(origin, extent, at) for (origin, extent), *at in zip(chunks, *tiles.values(), strict=True)]
    arrays = [i for i, x in enumerate(args) if isinstance(x, ArrayView)]
    stored = [i for i in arrays if args[i].writable]
    return GridLaunch(plan.function, _context(check), grid, arrays, stored, needs_ctx, makers, parts)


def _tile_views(n: Op, find: Callable, as_stored: bool, kernel: Kernel, grid: Dim3, chunks: list,
                args: Sequence[Any]) -> list[TileView | None]:
    """Where the tiles of an op lie, for each chunk; None where they cannot be one view."""
    i = kernel.params.index(n.operands[0])
    array, written, convert = args[i], n.op.effect != READ, None
    buffer = array.buffer
    if buffer.flat is None or buffer.may_change and not written:
        return [None] * len(chunks)
    if not buffer.plain:
        if buffer.array.itemsize not in stored_view.WORDS:
            return [None] * len(chunks)
        array = stored_view.words(array)
        convert = None if written else stored_view.reading(buffer.dtype, as_stored)
    found = [find(array, BlockGrid(Launch(grid), origin, extent)) for origin, extent in chunks]
    if convert is not None and sum(map(_elements, found)) > 2 * buffer.array.size:
        return [None] * len(chunks)  # the buffer itself converts each element once
    return [v if v is None else _tile_view(i, written, v, buffer.array, convert) for v in found]


def _elements(v: np.ndarray | None) -> int:
    """How many elements a view has, without repetitions."""
    return 0 if v is None else prod(n for n, s in zip(v.shape, v.strides, strict=True) if s)


def _tile_view(i: int, written: bool, v: np.ndarray, a: np.ndarray, convert: Callable | None) -> TileView:
    whole = v.size == a.size and v.flags.c_contiguous and v.dtype == a.dtype
    offset = v.__array_interface__["data"][0] - a.__array_interface__["data"][0]
    return TileView(i, written, v.shape, v.dtype, offset, None if whole else v.strides, convert)


def _maker(p: Value, x: Any) -> Callable:
    if not isinstance(x, ArrayView):
        return functools.partial(run_blocks.argument, p)
    of_buffer = x.buffer.dtype, x.buffer.writable, x.buffer.name
    return functools.partial(_array, of_buffer, (x.start, x.size, x.steps, x.index_dtype, True))


def _array(of_buffer: tuple, of_view: tuple, a: np.ndarray) -> ArrayView:
    """`array_view.view_of`, for a layout that is known."""
    buffer = Buffer(a, *of_buffer)
    buffer.may_change = buffer.writable  # no stored array overlaps another
    return ArrayView(buffer, *of_view)

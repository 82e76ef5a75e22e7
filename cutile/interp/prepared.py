"""Launches like one before: what depends on nothing but the grid and the layouts of the arrays is kept for the next.

Kept are the code, its chunks of blocks, and where in an array a tile lies: numbers, never an array or a view of one. A
launch looks at the arrays that it is given, makes views of them and runs. Whatever is out of the ordinary it leaves to
the long way, before anything is done.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cutile import settings
from cutile.interp import schedule
from cutile.interp.codegen.batch_analysis import INDEX
from cutile.interp.exec.block_set import Block, BlockGrid, Launch
from cutile.interp.exec.capacity import not_enough
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.buffer import Buffer
from cutile.ir.nodes import Kernel, Op, Value, regions_of, uses_of
from cutile.ir.walk import walk
from cutile.ops._op import HOST, READ

KEPT = 32  # launches of a kernel on arrays of one layout
MOST = 32  # chunks of each


class Place(NamedTuple):
    """Where the tiles of some blocks lie in an array."""

    parameter: int
    written: bool
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int  # bytes
    strides: tuple[int, ...] | None  # None: all of it, in order


class Ready(NamedTuple):
    """A launch that is prepared, for one grid and arrays of one layout."""

    function: Callable  # (ctx, *arguments, *views), as emit_batch makes it
    context: contextvars.Context  # that it runs in a copy of
    grid: Block
    arrays: list[int]  # which parameters are arrays
    stored: list[int]  # and which of these are stored to
    bare: bool  # the code does not ask which blocks run
    makers: list[tuple[int, Callable]]  # parameters that it needs besides them, and what makes the argument
    parts: list[tuple[Block, Block, list[Place | None]]]  # origin and extent of a chunk, and where its tiles lie

    def run(self, leaves: Sequence[Any]) -> bool:
        """Run it; False, with nothing done, if the arrays are out of the ordinary."""
        return self.context.copy().run(_run, self, leaves)


def _run(launched: Ready, leaves: Sequence[Any]) -> bool:  # one function: each more costs what a small tile does
    function, _, grid, arrays, stored, bare, makers, parts = launched
    for i in stored:
        target = leaves[i]
        flags = target.flags
        if not flags.behaved:  # aligned and writeable
            return False
        own = flags.owndata
        for k in arrays:
            a = leaves[k]
            if k != i and (a is target or not (own and a.flags.owndata) and np.may_share_memory(a, target)):
                return False
    launch, values, ctx = None if bare else Launch(grid), [None] * len(leaves), None
    try:
        for i, make in makers:
            values[i] = make(leaves[i])
        for origin, extent, places in parts:
            views = []
            for place in places:
                view = None
                if place is not None:
                    i, written, shape, dtype, offset, strides = place
                    a = leaves[i]
                    view = a.reshape(shape) if strides is None else np.ndarray(shape, dtype, a, offset, strides)
                    if not written:
                        view.setflags(write=False)
                views.append(view)
            if not bare:
                ctx = BlockGrid(launch, origin, extent)
            function(ctx, *values, *views)
    except MemoryError as e:
        raise not_enough(e) from e
    return True


@functools.cache
def _context(check: bool) -> contextvars.Context:
    """All settings but CHECK have their defaults, and NumPy, which from 2.0 on keeps this in contexts, is silent.
    To enter a context that is as it has to be takes a tenth of the time of making it so.
    """
    context = settings.fixed(CHECK=check)
    context.run(np.errstate(all="ignore").__enter__)
    return context


def checking() -> bool | None:
    """CUTILE_CHECK, where no other setting that counts here is touched; else None, and launches are not prepared."""
    return settings.get("CHECK") if settings.untouched(*_OTHERS) else None


_OTHERS = tuple(name for name in settings.INTERPRETED if name != "CHECK")


def ordinary(args: Sequence[Any]) -> bool:
    """Whether arguments of `schedule.run` are what prepared launches take: no lists, and arrays of which those that are
    stored to can be written as they lie, and reach no other.
    """
    buffers = [x.buffer for x in args if isinstance(x, ArrayView)]
    return not any(isinstance(x, list) for x in args) and all(
        m.array.flags.aligned if m.writable else not m.may_change for m in buffers)


def prepare(kernel: Kernel, grid: Block, args: Sequence[Any], check: bool) -> Ready | None:
    """What launches of this grid on arrays of these layouts have in common, by ordinary arguments of one; None if they
    have to go the long way.
    """
    way, nodes = schedule.way_of(kernel, None, not check), list(walk(kernel.body))
    chunks = list(schedule.chunks(grid, schedule.chunk_of(grid, way.blocks)))
    if way.schedule != "batch" or 0 in grid or len(chunks) > MOST \
            or any(isinstance(n, Op) and n.op.effect == HOST for n in nodes):  # prints, and what else the host sees
        return None
    places = {n: _places(n, find, kernel, grid, chunks, args) for n, find in way.code.placed.items()}
    seen = {n for n, found in places.items() if None not in found}  # which need nothing but their views
    others = [n for n in nodes if n not in seen and n not in way.code.skipped]
    bare = not any(regions_of(n) or isinstance(n, Op) and (INDEX in n.op.operands or "ctx" in n.op.given)
                   for n in others)
    needed = {v for n in others for v in uses_of(n)}
    makers = [(i, _maker(p, x)) for i, (p, x) in enumerate(zip(kernel.params, args, strict=True)) if p in needed]
    parts = [(origin, extent, at) for (origin, extent), *at in zip(chunks, *places.values(), strict=True)]
    arrays = [i for i, x in enumerate(args) if isinstance(x, ArrayView)]
    stored = [i for i in arrays if args[i].writable]
    return Ready(way.function, _context(check), grid, arrays, stored, bare, makers, parts)


def _places(n: Op, find: Callable, kernel: Kernel, grid: Block, chunks: list,
            args: Sequence[Any]) -> list[Place | None]:
    """Where the tile of an op lies, by chunk; None where it is no part of an array of packed elements."""
    i = kernel.params.index(n.operands[0])
    m, written = args[i].buffer, n.op.effect != READ
    if not m.plain or m.line is None or m.may_change and not written:
        return [None] * len(chunks)
    found = (find(args[i], BlockGrid(Launch(grid), origin, extent)) for origin, extent in chunks)
    return [v if v is None else _place(i, written, v, m.array) for v in found]


def _place(i: int, written: bool, v: np.ndarray, a: np.ndarray) -> Place:
    whole = v.size == a.size and v.flags.c_contiguous
    return Place(i, written, v.shape, v.dtype, v.ctypes.data - a.ctypes.data, None if whole else v.strides)


def _maker(p: Value, x: Any) -> Callable:
    if not isinstance(x, ArrayView):
        return functools.partial(schedule.argument, p)
    m = x.buffer
    return functools.partial(_array, (m.dtype, m.writable, m.name), (x.start, x.size, x.steps, x.index_dtype, True))


def _array(of_memory: tuple, of_view: tuple, a: np.ndarray) -> ArrayView:
    """What `array_view.view_of` gives, where all that the layout says is known."""
    m = Buffer(a, *of_memory)
    m.may_change = m.writable  # the arrays are apart
    return ArrayView(m, *of_view)

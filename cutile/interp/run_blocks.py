"""Running the blocks of a grid: in chunks, one after another, or in turns, as an execution plan says.

The order of blocks is the row-major order of their coordinates: the last grid axis runs fastest. What they print is
shown in that order.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import prod

import numpy as np

from cutile import settings
from cutile.dtypes import info
from cutile.errors import TileAssertionError
from cutile.interp.exec.block_set import BlockGrid, Dim3, Launch, Single, show
from cutile.interp.exec.capacity import not_enough, too_many_axes
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.per_block_array import ArrayList
from cutile.interp.progress_bar import Progress
from cutile.interp.schedule import CompiledKernel, ExecutionPlan
from cutile.ir.nodes import Value
from cutile.ops import _numeric
from cutile.types import ListType, TileType

# Every op allocates and frees temporaries. glibc gives large ones back to the system when they are freed, until one of
# that size has been freed once; then it reuses memory that is in the cache [measured: 2 to 5 times faster]. So one is
# allocated and freed here. Elsewhere this has no effect.
np.empty(30 << 20, np.uint8)


def run(compiled: CompiledKernel, grid: Sequence[int], args: Sequence, schedule: str | None = None) -> None:
    """Run a kernel over a grid. `args`: for each parameter an ArrayView, a list of them, or a number."""
    kernel = compiled.kernel
    grid = (*grid, *(1,) * (3 - len(grid)))
    usual = settings.untouched()
    plan = compiled.plan(schedule, usual)
    extent = chunk_of(grid, plan.blocks)
    limit = None if usual else settings.get("STEP_LIMIT")
    values = [a if type(a) is ArrayView else argument(v, a) for v, a in zip(kernel.params, args, strict=True)]
    if not usual and settings.get("DEBUG"):
        how = f"batch in chunks of {extent}" if plan.schedule == "batch" else plan.schedule
        print(f"cutile: {kernel.name} grid {grid} runs as {how} ({plan.why})", file=sys.stderr)
    if 0 in grid:
        return
    if plan.checks:
        from cutile.interp.sanitize import run_checked  # loaded when it is needed

        run_checked.run(kernel, plan, grid, limit, values, functools.partial(_run, compiled, plan, values, extent))
    else:
        _run(compiled, plan, values, extent, Launch(grid, limit))


def _run(compiled: CompiledKernel, plan: ExecutionPlan, values: list, extent: Dim3, launch: Launch) -> None:
    with np.errstate(all="ignore"), Progress(compiled.kernel.name, launch.grid) as progress:
        try:
            if plan.schedule == "batch":
                for origin, size in chunks(launch.grid, extent):
                    plan.function(BlockGrid(launch, origin, size), *values)
                    if launch.failed:
                        raise _first_failure(compiled, launch, values)
                    progress.add(prod(size))
            elif plan.schedule == "block":
                for block, shown in _one_by_one(compiled, launch, values):
                    plan.function(Single(launch, block), block, *shown)
                    progress.add(1)
            else:
                from cutile.interp.exec import turn_order, turns  # loaded when they are needed

                waiting = (turns.Block(plan.function, launch, block, shown)
                           for block, shown in _one_by_one(compiled, launch, values))
                order = turn_order.chosen.get() or turn_order.Drawn(settings.get("SEED"))
                turns.run(waiting, launch, order, progress)
        except MemoryError as e:
            raise not_enough(e) from e
        except (ValueError, IndexError, RuntimeError) as e:
            if (error := too_many_axes(e)) is None:
                raise
            raise error from e
        finally:
            if launch.printed:
                _print(launch)


def argument(v: Value, given):
    """An argument as emitted code takes it: a number as an array of its carrier, a list as an ArrayList."""
    if isinstance(v.type, TileType):
        carrier = info(v.type.dtype).carrier
        if isinstance(given, np.ndarray) and given.dtype == carrier and given.shape == v.type.shape:
            return given
        number = given.item() if isinstance(given, np.generic) else given
        return np.asarray(_numeric.encode(number, v.type.dtype), carrier)
    return ArrayList(given) if isinstance(v.type, ListType) else given


def _print(launch: Launch) -> None:
    """Show what the blocks printed, in the order of the blocks."""
    for block in sorted(launch.printed):
        show("".join(launch.printed[block]))


def _one_by_one(compiled: CompiledKernel, launch: Launch, values: list) -> Iterator[tuple[Dim3, list]]:
    """Each block with the arguments as a debugger shows them."""
    shown = compiled.shown(values)
    return ((block, shown) for block in _blocks(launch.grid, compiled.kernel.name))


def _first_failure(compiled: CompiledKernel, launch: Launch, values: list) -> TileAssertionError:
    """The error of the first block in which an assertion failed."""
    from cutile.interp import post_mortem  # loaded when it is needed

    return post_mortem.with_frames(compiled, launch, values, launch.failed[min(launch.failed)])


def _blocks(grid: Dim3, kernel: str) -> Iterable[Dim3]:
    """The blocks of a grid in order, or the one that CUTILE_BLOCK asks for."""
    only = settings.get("BLOCK")
    if only is None:
        return itertools.product(*map(range, grid))
    if all(i < n for i, n in zip(only, grid, strict=True)):
        return [only]
    asked = ",".join(map(str, only))
    print(f"cutile: CUTILE_BLOCK={asked} is outside the grid {grid} of {kernel}: no block runs", file=sys.stderr)
    return []


@functools.lru_cache(maxsize=1024)  # the search takes at least a tenth of a launch that is not prepared
def chunk_of(grid: Dim3, blocks: int) -> Dim3:
    """The extent of the chunks that a grid is cut into, with at most `blocks` blocks each: a chunk is about as long
    along each axis as the grid allows, and chunks have about the same size.
    """
    extent = [1, 1, 1]
    while True:
        wider = [prod(extent) // e * min(2 * e, g) for e, g in zip(extent, grid, strict=True)]
        can = [k for k in range(3) if extent[k] < grid[k] and wider[k] <= blocks]
        if not can:
            break
        k = min(can, key=lambda k: (extent[k], k))
        extent[k] = min(2 * extent[k], grid[k])
    return tuple(_even(g, e) for g, e in zip(grid, extent, strict=True))


def _even(total: int, part: int) -> int:
    """The smallest size of parts with which as many cover `total` as do with size `part`."""
    return -(-total // -(-total // part)) if total else 1


def chunks(grid: Dim3, extent: Dim3) -> Iterable[tuple[Dim3, Dim3]]:
    """(origin, extent) of each chunk, in row-major order."""
    if extent == grid:
        return [((0, 0, 0), grid)]
    origins = itertools.product(*(range(0, g, e) for g, e in zip(grid, extent, strict=True)))
    return ((o, tuple(min(e, g - k) for k, e, g in zip(o, extent, grid, strict=True))) for o in origins)

"""How the blocks of a grid run: the choice of a schedule, chunks of blocks, the run itself.

The default, `batch`, takes a cache-sized box of blocks at a time. `block` runs one block after another, for debuggers
and as the oracle of batching. `interleave` lets blocks take turns, for kernels whose blocks wait for each other. Blocks
are counted in row-major order of their coordinates: the last grid axis runs fastest. What they print comes in that
order.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from cutile import settings
from cutile.analysis.spin_wait import waiting_loops
from cutile.dtypes import info
from cutile.errors import TileRecursionError
from cutile.interp import debugger
from cutile.interp.codegen import batch, block, interleave
from cutile.interp.codegen.emit import Program, is_breakpoint
from cutile.interp.exec import turns
from cutile.interp.exec.block_set import Block, BlockGrid, Launch, Single, show
from cutile.interp.exec.capacity import FEW_AXES, check_sizes, not_enough, too_many_axes
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.per_block_array import ArrayList
from cutile.interp.show import Tile
from cutile.ir.nodes import For, If, Kernel, Op, Value, While, results_of
from cutile.ir.walk import walk
from cutile.ops import _numeric
from cutile.types import ArrayType, ListType, RoundingMode, TileType

# Temporaries come and go at every op. glibc maps large ones anew each time, page by page, until it has once seen one of
# that size freed; then it hands out the same, warm memory again [measured: 2 to 5 times faster]. Elsewhere: no effect.
np.empty(30 << 20, np.uint8)

# Bytes of one tile value for all blocks of a chunk: more where the work on each byte is more [measured].
BUDGET = 512 << 10
ROW_BUDGET = 1 << 20  # kernels that reduce or scan
MATMUL_BUDGET = 512 << 10
SCAN_BUDGET = 16 << 20  # kernels with a scan that Python steps through, an element of all blocks at a time
STREAM_BUDGET = 4 << 20  # programs whose tiles take no memory of their own
MAX_BLOCKS = 1 << 14  # of a chunk

EMITTERS = {"batch": batch, "block": block, "interleave": interleave}  # by schedule


@dataclass(frozen=True)
class Facts:
    """What the choice of schedule and chunk needs to know about a kernel."""

    value_bytes: int  # of its largest tile
    budget: int
    breakpoint: bool
    unbatchable: str | None  # why the batch schedule cannot run it
    waiting: str | None = None  # where its blocks wait for each other


def derived(kernel: Kernel, key: tuple, make: Callable, *given: Any) -> Any:
    """make(kernel, *given), made once. It is kept with the kernel and goes with it, also where it refers to it."""
    made = kernel.__dict__.get("_derived")
    if made is None:
        made = kernel.__dict__.setdefault("_derived", {})
    found = made.get(key)
    return made.setdefault(key, make(kernel, *given)) if found is None else found


def facts(kernel: Kernel) -> Facts:
    return derived(kernel, ("facts",), _facts)


def _facts(kernel: Kernel) -> Facts:
    check_sizes(kernel)
    largest, families, stops, unbatchable, stepwise = 1, set(), False, None, False
    axes = max(map(_axes_of, kernel.params), default=0)
    for n in walk(kernel.body):
        for v in results_of(n):
            axes = max(axes, _axes_of(v))
            if isinstance(v.type, TileType):
                largest = max(largest, v.type.size * info(v.type.dtype).carrier.itemsize)
            if isinstance(v.type, ListType) and isinstance(n, If | For | While):
                unbatchable = f"line {n.span.line} chooses between lists of arrays"
        if isinstance(n, Op):
            families.add(n.op.family)
            stops = stops or is_breakpoint(n)
            stepwise = stepwise or n.op.family == "scan" and not _is_one_call(n)
    if axes > FEW_AXES:
        unbatchable = f"{axes} axes leave NumPy too few for blocks"
    budget = SCAN_BUDGET if stepwise else MATMUL_BUDGET if "mma" in families else \
        ROW_BUDGET if families & {"reduce", "scan"} else BUDGET
    waiting = min((n.span.line for n in waiting_loops(kernel)), default=None)
    why = None if waiting is None else f"the loop in line {waiting} waits for other blocks"
    return Facts(largest, budget, stops, unbatchable, why)


def _axes_of(v: Value) -> int:
    t = v.type.element if isinstance(v.type, ListType) else v.type
    return t.ndim if isinstance(t, TileType | ArrayType) else 0


def _is_one_call(scan: Op) -> bool:
    """Whether NumPy has a scan: of exact sums and products, and those that are rounded as they are carried."""
    i = info(scan.results[0].type.dtype)
    return scan.region is None and (not i.floating or i.carried_exactly) \
        and not scan.attrs["flush_to_zero"] and scan.attrs["rounding_mode"] in (None, RoundingMode.RN)


def choose(kernel: Kernel, asked: str | None) -> tuple[str, str]:
    """The schedule for a launch, and why."""
    f = facts(kernel)
    asked, why = (asked, "asked for") if asked else (settings.get("SCHEDULE"), "CUTILE_SCHEDULE")
    if asked not in (None, *EMITTERS):
        raise ValueError(f"there is no schedule {asked!r}; the schedules are 'batch', 'block' and 'interleave'")
    if f.waiting and asked != "interleave":  # under another one, blocks would wait for ever
        return "interleave", f.waiting
    if asked in ("block", "interleave"):
        return asked, why
    if settings.get("BLOCK") is not None:
        return "block", "CUTILE_BLOCK"
    if f.unbatchable:
        return "block", f.unbatchable
    if asked:
        return asked, why
    if f.breakpoint:
        return "block", "the kernel has a breakpoint"
    if debugger.attached():
        return "block", "a debugger is attached"
    return "batch", "default"


def program(kernel: Kernel, schedule: str) -> Program:
    """The kernel compiled for a schedule, under the settings of now."""
    check, limited = settings.get("CHECK"), settings.get("STEP_LIMIT") is not None
    return derived(kernel, (schedule, check, limited),
                   lambda kernel: EMITTERS[schedule].compile_kernel(kernel, check=check, step_limit=limited))


# ------------------------------------------------------------------ running


def run(kernel: Kernel, grid: Sequence[int], args: Sequence, *, schedule: str | None = None) -> None:
    """Run a kernel over a grid. `args` go with kernel.params: array descriptors, lists of them, numbers."""
    grid = (*grid, *(1,) * (3 - len(grid)))
    usual = settings.untouched()
    way = way_of(kernel, schedule, usual)
    extent = chunk_of(grid, way.blocks)
    launch = Launch(grid, None if usual else settings.get("STEP_LIMIT"))
    values = [a if type(a) is ArrayView else argument(v, a) for v, a in zip(kernel.params, args, strict=True)]
    if not usual and settings.get("DEBUG"):
        how = f"batch in chunks of {extent}" if way.schedule == "batch" else way.schedule
        print(f"cutile: {kernel.name} grid {grid} runs as {how} ({way.why})", file=sys.stderr)
    if 0 in grid:
        return
    _run(kernel, way, launch, values, extent)


def _run(kernel: Kernel, way: Way, launch: Launch, values: list, extent: Block) -> None:
    with np.errstate(all="ignore"):
        try:
            if way.schedule == "batch":
                for origin, size in chunks(launch.grid, extent):
                    way.function(BlockGrid(launch, origin, size), *values)
                    if launch.failed:
                        raise launch.failed[min(launch.failed)]
            elif way.schedule == "block":
                for b, shown in _one_by_one(kernel, launch, values):
                    way.function(Single(launch, b), b, *shown)
            else:
                waiting = (turns.Block(way.function, launch, b, shown)
                           for b, shown in _one_by_one(kernel, launch, values))
                turns.run(waiting, launch, settings.get("SEED"))
        except MemoryError as e:
            raise not_enough(e) from e
        except (ValueError, IndexError, RuntimeError) as e:
            if (error := too_many_axes(e)) is None:
                raise
            raise error from e
        finally:
            if launch.printed:
                _print(launch)


class Way(NamedTuple):
    """How a launch runs."""

    schedule: str
    why: str
    function: Callable
    blocks: int  # that a chunk may have
    code: Program


def way_of(kernel: Kernel, asked: str | None, usual: bool) -> Way:
    """Kernels remember the way by all that it depends on: the settings are those that `choose` and `program` read,
    `usual` if all have their defaults.
    """
    get = settings.get
    key = ("usual", asked, debugger.attached()) if usual else (
        asked, get("SCHEDULE"), get("BLOCK") is None, get("CHECK"), get("STEP_LIMIT") is None, debugger.attached())
    return derived(kernel, key, _find_way, asked)


def _find_way(kernel: Kernel, asked: str | None) -> Way:
    name, why = choose(kernel, asked)
    try:
        code = program(kernel, name)
    except RecursionError:
        raise TileRecursionError(f"{kernel.name} nests deeper than Python can compile for the schedule {name}",
                                 kernel.span, help="split the kernel's innermost code off into functions") from None
    return Way(name, why, code.objects[".kernel"], most_blocks(facts(kernel), code.streams), code)


def argument(v: Value, given):
    if isinstance(v.type, TileType):
        carrier = info(v.type.dtype).carrier
        if isinstance(given, np.ndarray) and given.dtype == carrier and given.shape == v.type.shape:
            return given
        number = given.item() if isinstance(given, np.generic) else given
        return np.asarray(_numeric.encode(number, v.type.dtype), carrier)
    return ArrayList(given) if isinstance(v.type, ListType) else given


def _print(launch: Launch) -> None:
    """In the end, what the blocks printed comes out in their order."""
    for b in sorted(launch.printed):
        show("".join(launch.printed[b]))


def _one_by_one(kernel: Kernel, launch: Launch, values: list) -> Iterator[tuple[Block, list]]:
    """Each block with the arguments as a debugger shows them."""
    shown = [Tile(carrier=a, type=v.type) if isinstance(v.type, TileType) else a
             for v, a in zip(kernel.params, values, strict=True)]
    return ((b, shown) for b in _blocks(launch.grid, kernel.name))


def _blocks(grid: Block, kernel: str) -> Iterable[Block]:
    """The blocks of a grid in order, or the one that CUTILE_BLOCK asks for."""
    only = settings.get("BLOCK")
    if only is None:
        return itertools.product(*map(range, grid))
    if all(i < n for i, n in zip(only, grid, strict=True)):
        return [only]
    asked = ",".join(map(str, only))
    print(f"cutile: CUTILE_BLOCK={asked} is outside the grid {grid} of {kernel}: no block runs", file=sys.stderr)
    return []


def most_blocks(f: Facts, streams: bool) -> int:
    """How many blocks of a chunk the budget allows."""
    budget = STREAM_BUDGET if streams else f.budget
    return max(1, min(budget // f.value_bytes, MAX_BLOCKS))


@functools.lru_cache(maxsize=1024)
def chunk_of(grid: Block, blocks: int) -> Block:
    """The extent of a chunk of at most so many blocks: about as long as wide, chunks about equal."""
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
    """The part size with which as many parts cover the total most evenly."""
    return -(-total // -(-total // part)) if total else 1


def chunks(grid: Block, extent: Block) -> Iterable[tuple[Block, Block]]:
    """(origin, extent) of each chunk, in row-major order."""
    if extent == grid:
        return [((0, 0, 0), grid)]
    origins = itertools.product(*(range(0, g, e) for g, e in zip(grid, extent, strict=True)))
    return ((o, tuple(min(e, g - k) for k, e, g in zip(o, extent, grid, strict=True))) for o in origins)

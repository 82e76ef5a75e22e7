"""Hints that the author left open, chosen by what the kernel does. docs/hints.md has the measurements.

They are chosen for two kinds of kernels. *Kernels of rows* reduce a long axis of a tile: fewer warps exchange less,
and a thread works on PER_THREAD elements. *Plain kernels* load, compute and store. Both are served best by many warps
on a multiprocessor, which run while others wait for memory; kernels that multiply matrices keep all of the assembler's
own choices. How many registers are left for that many warps is not known before the code is there: selection.py.

If a kernel moves tiles by TMA, the assembler gives it two groups of warps, and one block fills a multiprocessor. That
is right for a long loop that only adds up or copies what it loads while the next tiles arrive, and wrong elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cutile import settings
from cutile._support.structs import replace, structure
from cutile.gpu.target import Target
from cutile.ir.nodes import For, Kernel, Node, Op, Value, While, regions_of
from cutile.ir.walk import definitions, rewrite, walk
from cutile.ops import arithmetic, create, memory, mma, reduce, views
from cutile.ops._op import TILES
from cutile.types import TileType

LOADS = (memory.load, views.view_load)
STORES = (memory.store, views.view_store)
PRODUCTS = (mma.mma, mma.mma_scaled)
REDUCTIONS = (reduce.sum, reduce.prod, reduce.max, reduce.min, reduce.argmax, reduce.argmin, reduce.reduce)
TMA_SINCE = 90
MANY_TURNS = 128  # of a loop, from which on it may stream

LONG = 128  # elements of an axis whose reduction takes more than one warp by itself
PER_THREAD = 32  # elements of a row; of a tile of several rows, twice as many
USUAL_WARPS, MOST_WARPS = 4, 16
HELD = 32  # warps that a multiprocessor should hold: 64 registers a thread


@structure(frozen=True, slots=True)
class EntryHints:
    """Hints of a whole kernel; None is the assembler's own choice."""

    num_worker_warps: int | None = None
    occupancy: int | None = None

    def __str__(self) -> str:
        named = [f"{k}={v}" for k in self.__struct_fields__ if (v := getattr(self, k)) is not None]
        return ", ".join(named) or "the assembler's own choice"

    def given(self) -> dict[str, int]:
        return {k: v for k in self.__struct_fields__ if (v := getattr(self, k)) is not None}


OWN = EntryHints()


def choose_entry_hints(kernel: Kernel, options: Any, target: Target) -> tuple[EntryHints, str]:
    """The hints to begin with, and why these."""
    ops, why_not = _chosen_for(kernel, options, target)
    if why_not:
        return OWN, why_not
    lengths = [_reduced(n) for n in ops if n.op in REDUCTIONS]
    if max(lengths, default=0) >= LONG and any(1 < length < LONG for length in lengths):
        return OWN, "it reduces short axes of a tile besides long ones"
    rows = _warps_of_rows(kernel, ops, max(lengths, default=0))
    if rows is not None:
        warps, what = rows
        return EntryHints(None if warps == USUAL_WARPS else warps, HELD // warps), (
            f"it reduces a long axis {what}: {warps} warps a block, {HELD} on a multiprocessor")
    if _loops(kernel):
        return OWN, "it loops, and reduces no long axis of a tile"
    if any(map(_is_checked, ops)):
        return EntryHints(None, HELD // USUAL_WARPS), (
            f"its tiles are checked, which keeps the loads of a thread apart: {HELD} warps on a multiprocessor")
    return OWN, "its tiles are not checked, and it reduces no long axis of one"


def may_have_more_warps(kernel: Kernel, options: Any, target: Target) -> bool:
    """Whether hints may be chosen for a kernel, and the number of warps changes no bit of its results: there is no sum
    whose order it decides.
    """
    ops, why_not = _chosen_for(kernel, options, target)
    return not why_not and not _loops(kernel) and not any(n.op in REDUCTIONS for n in ops)


def _chosen_for(kernel: Kernel, options: Any, target: Target) -> tuple[list[Op], str]:
    """The ops of a kernel, and why no hints may be chosen for it as a whole; "" if they may."""
    given, ops = options.on(target.tool_name), [n for n in walk(kernel.body) if isinstance(n, Op)]
    if not settings.get("HINTS"):
        return ops, "CUTILE_HINTS is 0"
    if (given.num_ctas, given.occupancy, given.num_worker_warps) != (None,) * 3:
        return ops, "its author names some"
    if any(n.op in PRODUCTS for n in ops):
        return ops, "it multiplies matrices"
    if any(n.op.family == "scan" or _is_irregular(n) for n in ops):
        return ops, "it scans tiles, or accesses many elements at places of their own"
    return ops, ""


def _loops(kernel: Kernel) -> bool:
    return any(isinstance(n, For | While) for n in walk(kernel.body))


def _reduced(n: Op) -> int:
    """The length of the axis of a tile that a reduction reduces."""
    t = n.operands[0].type
    return t.shape[n.attrs["axis"]] if isinstance(t, TileType) else 0


def _warps_of_rows(kernel: Kernel, ops: list[Op], longest: int) -> tuple[int, str] | None:
    """How many warps suit what a kernel has in registers at the least, the largest tile or all that a loop carries, and
    which that is. None if the longest axis that it reduces is not long.
    """
    if longest < LONG:
        return None
    tile = max(v.type.size for n in ops for v in n.operands if isinstance(v.type, TileType))
    carried = max((_tiles(n.params) for n in walk(kernel.body) if isinstance(n, For | While)), default=0)
    each = PER_THREAD if tile == longest else 2 * PER_THREAD
    what = f"of a tile of {tile} elements" if tile >= carried else f"in a loop that carries {carried} elements of tiles"
    return min(max(max(tile, carried) // (32 * each), 1), MOST_WARPS), what


def _tiles(values: Sequence[Value]) -> int:
    """The elements of all tiles among some values."""
    return sum(v.type.size for v in values if isinstance(v.type, TileType))


def _is_irregular(n: Op) -> bool:
    """Whether it accesses many elements at places of their own, as gathers, scatters and atomics do."""
    return bool(n.op.accesses) and n.op.accesses.unit != TILES and any(
        isinstance(v.type, TileType) and v.type.size > 1 for v in (*n.operands, *n.results))


def _is_checked(n: Op) -> bool:
    """Whether it loads or stores a tile, with a check of bounds that keeps the elements of a thread apart."""
    return n.op in (*LOADS, *STORES) and n.attrs["check_bounds"] is not False and any(
        isinstance(v.type, TileType) and v.type.size > 1 for v in (*n.operands, *n.results))


# ------------------------------------------------------------------ hints of single accesses


def choose_hints(kernel: Kernel, target: Target | None) -> Kernel:
    """Set `allow_tma=False` on stores of tiles, and on loads except those in long loops that compute little, in a
    kernel without frames.

    A kernel that multiplies matrices, or that sets `allow_tma` anywhere, is returned as it is. CUTILE_HINTS=0 turns
    this off.
    """
    if not settings.get("HINTS") or target is not None and target.number < TMA_SINCE:
        return kernel
    ops = [n for n in walk(kernel.body) if isinstance(n, Op)]
    if any(n.op in PRODUCTS or n.op in (*LOADS, *STORES) and n.attrs["allow_tma"] for n in ops):
        return kernel
    source = definitions(kernel.body)
    loops = [list(_inside(n)) for n in walk(kernel.body) if isinstance(n, For | While) and not _is_short(n, source)]
    streams = {id(n) for body in loops if not any(map(_takes_long, body)) for n in body}
    return rewrite(kernel, lambda old, n: [_without_tma(n)] if isinstance(n, Op) and (
        n.op in STORES or n.op in LOADS and id(old) not in streams) else None)


def _inside(loop: Node) -> Iterator[Node]:
    for region in regions_of(loop):
        yield from walk(region)


def _is_short(loop: For | While, source: Mapping[Value, Node]) -> bool:
    """Whether a loop is known to have fewer than MANY_TURNS: it ends while its first tiles are still on their way."""
    if isinstance(loop, While):
        return False
    bounds = [source.get(v) for v in (loop.start, loop.stop, loop.step)]
    if not all(isinstance(n, Op) and n.op is create.constant for n in bounds):
        return False
    return len(range(*(n.attrs["value"] for n in bounds))) < MANY_TURNS


def _takes_long(n: Node) -> bool:
    """Whether a node of a loop keeps the warps from the next tile: a reduction, a function, a division of tiles."""
    if not isinstance(n, Op) or not any(isinstance(v.type, TileType) and v.type.size > 1 for v in n.operands):
        return False
    return n.op.family == "math" or n.op is arithmetic.truediv or n.op in REDUCTIONS and n.region is None


def _without_tma(n: Op) -> Op:
    return replace(n, attrs={**n.attrs, "allow_tma": False})

"""Removes checks of bounds from accesses whose tiles all lie inside: for every launch if that can be proved, else in a
variant that some launches run.

A check delays the work: the code of a checked load waits for its elements before the next load
begins. Whether all tiles lie inside follows from the grid and the sizes of the arrays (analysis/inside.py). Accesses
whose place depends on anything else keep their checks, and so do masked accesses, gathers and scatters, where the
author asked for the check.

TMA checks bounds for nothing, but the assembler has fewer reasons not to use it for a load that is not checked, and a
kernel that moves tiles by TMA may be much slower (hints.py). So a kernel whose usual code does not use it is told not
to when the checks go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod
from typing import Any

from cutile import settings
from cutile._support.structs import replace
from cutile.analysis.inside import TilesInside
from cutile.analysis.ranges import ANY_GRID
from cutile.gpu.cubin_resources import read
from cutile.gpu.hints import PRODUCTS
from cutile.ir.nodes import Kernel, Op
from cutile.ir.walk import rewrite, walk
from cutile.passes.flatten_frames import flatten_frames
from cutile.types import ArrayType, ListType

Grid = tuple[int, int, int]
WARPS = 4  # of a block, by default


class Unchecked:
    """A kernel without checks where tiles may lie inside, and which launches it may serve. `kernel` is the IR without
    these checks.
    """

    def __init__(self, kernel: Kernel, tiles: TilesInside):
        self.kernel, self._tiles = kernel, tiles

    def for_arrays(self, dims: Sequence[Any]) -> Callable[[Grid], bool]:
        """A function that says whether this kernel may run for a grid. `dims`: sizes and strides of the arrays of a
        launch, as parameters.packing takes them.
        """
        shapes = {p: d[0] if isinstance(p.type, ArrayType) else [sizes for sizes, _ in d]
                  for p, d in zip(self.kernel.params, dims, strict=True) if isinstance(p.type, ArrayType | ListType)}
        return lambda grid: 0 not in grid and self._tiles.all_inside([(n, n) for n in grid], shapes)


def unchecked(kernel: Kernel, uses_tma: bool) -> Unchecked | None:
    """The variant of a kernel that was typed and went through the fma pass. None if it would gain nothing: there is no
    load of a tile to leave unchecked, since stores wait for nothing, or the kernel multiplies matrices, whose tiles
    arrive by TMA. CUTILE_HINTS=0 turns it off.

    uses_tma  whether the usual code moves tiles by TMA
    """
    if not settings.get("HINTS") or _multiplies(kernel):
        return None
    kernel = flatten_frames(kernel)
    tiles = TilesInside(kernel)
    possible = tiles.known_per_launch
    if not any(r.type.size > 1 for n in possible for r in n.results):
        return None
    return Unchecked(_without_checks(kernel, possible, uses_tma), tiles) if possible else None


def uses_tma(code: bytes, symbol: str, warps: int | None) -> bool:
    """Whether machine code moves tiles by TMA. TMA has warps of its own, so more warps than asked for mean TMA.

    warps  that were asked for to work on a block
    """
    try:
        return read(code, symbol).warps > (warps or WARPS)
    except ValueError:  # the assembler recorded no thread count: assume TMA
        return True


def without_needless_checks(kernel: Kernel, facts: Sequence[Any]) -> Kernel:
    """A kernel without frames, and without checks where the sizes that are known prove that all tiles lie inside,
    whatever the launch is. Two things prove it: constant sizes, and a loop or branch with an index below num_tiles, if
    tiles fill the axis exactly. Two kinds of accesses keep their checks: those that may use TMA, and those to single
    elements, where a check costs nothing.

    facts   what is known of each parameter, as `tileir.lower` takes it
    """
    if not settings.get("HINTS") or _multiplies(kernel):
        return kernel
    known = {p: f for p, f in zip(kernel.params, facts, strict=True) if isinstance(p.type, ArrayType) and f is not None}
    proven = TilesInside(kernel).each(ANY_GRID, {p: f.shape_constant for p, f in known.items()},
                                      {p: f.shape_divisible_by for p, f in known.items()})
    return _without_checks(kernel, [n for n, shape in proven.items() if n.attrs["allow_tma"] is False
                                    and prod(shape) > 1], True)


def _multiplies(kernel: Kernel) -> bool:
    return any(isinstance(n, Op) and n.op in PRODUCTS for n in walk(kernel.body))


def _without_checks(kernel: Kernel, chosen: Collection[Op], may_use_tma: bool) -> Kernel:
    """The kernel with the promise check_bounds=False on some of its accesses."""
    ops = set(chosen)

    def attrs(n: Op) -> dict:
        by_hint = {} if may_use_tma or n.attrs["allow_tma"] is not None else {"allow_tma": False}
        return {**n.attrs, "check_bounds": False, **by_hint}

    return rewrite(kernel, lambda old, n: [replace(n, attrs=attrs(n))] if old in ops else None)

"""The variant of a kernel for launches whose tiles all lie inside their arrays: it checks no bounds of tiles.

A check stands between the memory and the work: the code of a checked load waits for its elements before the next load
begins. Whether all tiles lie inside follows from the grid and the sizes of the arrays (analysis/inside.py). Accesses
whose place depends on anything else keep their checks. So do masks, gathers and scatters, where the author asks for the
check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cutile import settings
from cutile.analysis.inside import TilesInside, without_checks
from cutile.gpu import cubin
from cutile.gpu.driver import Device
from cutile.gpu.hints import PRODUCTS
from cutile.gpu.variants import Variant
from cutile.ir.nodes import Kernel, Op
from cutile.ir.walk import walk
from cutile.passes.flatten_frames import flatten_frames
from cutile.types import ArrayType, ListType

Grid = tuple[int, int, int]


class Unchecked:
    """A kernel without checks where tiles may lie inside, and which launches it may serve. `kernel` is its program."""

    def __init__(self, kernel: Kernel, tiles: TilesInside):
        self.kernel, self._tiles = without_checks(kernel, tiles.regular), tiles

    def for_arrays(self, dims: Sequence[Any]) -> Callable[[Grid], bool]:
        """A function that says whether it may run for a grid. `dims`: sizes and strides of the arrays of a launch, as
        parameters.packing takes them.
        """
        shapes = {p: d[0] if isinstance(p.type, ArrayType) else [sizes for sizes, _ in d]
                  for p, d in zip(self.kernel.params, dims, strict=True) if isinstance(p.type, ArrayType | ListType)}
        return lambda grid: 0 not in grid and self._tiles.all_regular([(n, n) for n in grid], shapes)


def unchecked(kernel: Kernel) -> Unchecked | None:
    """The variant of a kernel that was typed and went through the fma pass. None if it would gain nothing: there is no
    access to leave unchecked, or the kernel multiplies matrices, whose tiles arrive by TMA, which checks for nothing.
    CUTILE_HINTS=0 turns it off.
    """
    if not settings.get("HINTS") or any(isinstance(n, Op) and n.op in PRODUCTS for n in walk(kernel.body)):
        return None
    kernel = flatten_frames(kernel)
    tiles = TilesInside(kernel)
    return Unchecked(kernel, tiles) if tiles.regular else None


def variant(found: Unchecked, constraints: Sequence[Any], device: Device, options: Any, symbol: str) -> Variant:
    """Its code for a GPU."""
    what = found.kernel, constraints, device.target, options, symbol
    return Variant(f"{found.kernel.name} without checks of bounds, for {device}", lambda: cubin.cached(*what),
                   lambda: cubin.build(*what), lambda code: device.function(code, symbol))

"""Whether the tiles that a kernel accesses lie inside their arrays: in one launch, or in every launch.

An access whose tiles all do needs no check. What is said here is never more than what holds: an access is taken to run
wherever the branches around it let it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cutile._support.structs import replace
from cutile.analysis.access import INSIDE, Access, accesses, tile_indices, where_tiles_with
from cutile.analysis.guards import guards
from cutile.analysis.ranges import LaunchRanges, Range, ScalarRanges, Shapes
from cutile.ir.nodes import Kernel, Op
from cutile.ir.walk import rewrite
from cutile.ops._op import TILES


class TilesInside:
    """The accesses to tiles of a kernel without frames that are checked, and where they lie.

    regular  those whose tile indices and arrays depend on nothing but the grid and the sizes of arrays
    """

    def __init__(self, kernel: Kernel):
        self._accesses: dict[Op, Access] = {
            n: a for n, a in accesses(kernel).items()
            if a.unit == TILES and a.shape and a.check_bounds and "check_bounds" in n.attrs}
        self._guards = guards(kernel) if self._accesses else {}
        self._scalars = ScalarRanges(kernel)
        self.regular = [n for n in self._accesses
                        if all(map(self._scalars.is_regular, (n.operands[0], *_index(n))))]

    def all_regular(self, blocks: Sequence[Range], shapes: Shapes) -> bool:
        """Whether all tiles of the regular accesses lie inside, in launches whose grid has so many blocks along each
        axis and whose arrays have these shapes.
        """
        found = self._scalars.of_launch(blocks, shapes)
        return all(self._is_inside(n, found) for n in self.regular)

    def each(self, blocks: Sequence[Range], shapes: Shapes) -> list[Op]:
        """The accesses whose tiles all lie inside, in such launches."""
        found = self._scalars.of_launch(blocks, shapes)
        return [n for n in self._accesses if self._is_inside(n, found)]

    def _is_inside(self, n: Op, found: LaunchRanges) -> bool:
        known = self._guards.get(n, ())
        sizes = [size and size[0] for size in found.sizes(n.operands[0])]
        return where_tiles_with(self._accesses[n], sizes, [found.under(known, v) for v in _index(n)]) == INSIDE


def _index(n: Op):
    return [n.operands[k] for k in tile_indices(n)]


def without_checks(kernel: Kernel, unchecked: Collection[Op]) -> Kernel:
    """The kernel with the promise check_bounds=False on these of its accesses."""
    chosen = set(unchecked)
    return rewrite(kernel, lambda old, n: [replace(n, attrs={**n.attrs, "check_bounds": False})]
                   if old in chosen else None)

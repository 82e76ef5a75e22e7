"""Whether the tiles that a kernel accesses lie inside their arrays: in one launch, or in every launch.

An access whose tiles all lie inside needs no check. The answer is safe: an access counts as inside only if that is
proved, wherever the branches around it let it run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from cutile.analysis.access import INSIDE, Access, accesses, tile_indices, where_tiles_lie
from cutile.analysis.guards import guards
from cutile.analysis.ranges import LaunchRanges, Range, ScalarRanges, Shapes, tiled
from cutile.ir.nodes import Kernel, Op, Value
from cutile.ops._op import TILES

Multiples = Mapping[Value, Sequence[int]]
NOTHING: Multiples = MappingProxyType({})


class TilesInside:
    """The accesses to tiles, in a kernel without frames, that are checked, and where they lie.

    known_per_launch  those whose tile indices and arrays depend on nothing but the grid and the sizes of arrays
    """

    def __init__(self, kernel: Kernel):
        self._accesses: dict[Op, Access] = {
            n: a for n, a in accesses(kernel).items()
            if a.unit == TILES and a.shape and a.check_bounds and "check_bounds" in n.attrs}
        self._guards = guards(kernel) if self._accesses else {}
        self._scalars = ScalarRanges(kernel)
        self.known_per_launch = [n for n in self._accesses
                        if all(map(self._scalars.is_regular, (n.operands[0], *_index(n))))]

    def all_inside(self, blocks: Sequence[Range], shapes: Shapes) -> bool:
        """Whether all tiles of these accesses lie inside, in launches whose numbers of blocks
        along each axis are in these ranges, and whose arrays have these shapes.
        """
        found = self._scalars.of_launch(blocks, shapes)
        return all(self._is_inside(n, found, NOTHING) for n in self.known_per_launch)

    def each(self, blocks: Sequence[Range], shapes: Shapes, multiples: Multiples = NOTHING) -> dict[Op, tuple]:
        """The accesses whose tiles all lie inside, in such launches, with the shapes of the tiles.

        multiples  numbers that divide the sizes of array parameters
        """
        found = self._scalars.of_launch(blocks, shapes)
        return {n: a.shape for n, a in self._accesses.items() if self._is_inside(n, found, multiples)}

    def _is_inside(self, n: Op, found: LaunchRanges, multiples: Multiples) -> bool:
        access, known = self._accesses[n], self._guards.get(n, ())
        sizes = [size and size[0] for size in found.sizes(n.operands[0])]
        indices: list[Range | None] = [found.under(known, v) for v in _index(n)]
        for dim, k in enumerate(access.order):
            if sizes[k] is None and self._is_a_whole_tile(n, dim, found, multiples):
                sizes[k], indices[dim] = access.shape[dim], (0, 0)  # treat it as tile 0 of an axis one tile long
        return where_tiles_lie(access, sizes, indices) == INSIDE

    def _is_a_whole_tile(self, n: Op, dim: int, found: LaunchRanges, multiples: Multiples) -> bool:
        """Whether the index along an axis of unknown size is at least 0 and, by a guard, less than the number of tiles
        there, which fill the axis.
        """
        access, array, known = self._accesses[n], n.operands[0], self._guards.get(n, ())
        k, step, index = access.order[dim], access.steps[dim], _index(n)[dim]
        fill = access.shape[dim] <= step and array in multiples and multiples[array][k] % step == 0
        if not fill or found.under(known, index)[0] < 0:
            return False
        for g in known:
            counted = self._scalars.tiles.get(g.upper)
            if counted is not None and counted.operands[0] is array and tiled(counted) == (k, step):
                rest = found.rest(index, 1, g.lower)
                if rest is not None and rest[1] < g.gap:
                    return True
        return False


def _index(n: Op):
    return [n.operands[k] for k in tile_indices(n)]

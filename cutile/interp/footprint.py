"""How much memory one block takes in the schedule batch, for CUTILE_MEMORY."""

from __future__ import annotations

from collections.abc import Iterable

from cutile.dtypes import info
from cutile.interp.codegen.emit import Liveness
from cutile.ir.nodes import Kernel, Node, Op, Region, Value, regions_of, results_of, uses_of
from cutile.ops._op import PRODUCT
from cutile.types import TileType

OF_A_BLOCK = 256  # bytes of its index, and of what is computed with it
TEMPORARIES = 20 * 8  # bytes for each element that an op works on: tanh of float64, the most, has 20 arrays at once


def bytes_of_a_block(kernel: Kernel) -> int:
    """The most memory that the tiles of one block take at one time, with the temporaries of the op that runs. It may be
    less than that, as where tiles are views of arrays.
    """
    liveness = Liveness(kernel.body, False)

    def most(region: Region, held: int) -> int:
        held += _bytes(region.params)
        found = held
        last = liveness.last_uses(region)
        for n in region.nodes:
            held += _bytes(results_of(n))
            found = max(found, held + TEMPORARIES * _elements(n), *(most(r, held) for r in regions_of(n)))
            held -= _bytes(liveness.ending(n, last))
        return found

    return OF_A_BLOCK + most(kernel.body, 0)


def _bytes(values: Iterable[Value]) -> int:
    return sum(v.type.size * info(v.type.dtype).carrier.itemsize for v in values if isinstance(v.type, TileType))


def _elements(n: Node) -> int:
    """How many elements an op works on at most; the terms of the sums of a matrix product count."""
    sizes = [v.type.size for v in (*uses_of(n), *results_of(n)) if isinstance(v.type, TileType)]
    if isinstance(n, Op) and n.op.accumulates == PRODUCT:
        return n.results[0].type.size * n.operands[0].type.shape[-1]
    return max(sizes, default=1)

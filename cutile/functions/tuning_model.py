"""How long a configuration may take on a GPU, estimated without running it: which are worth a trial [TUN-11].

The estimate is one number, in cycles of a multiprocessor. A block's arithmetic, its products of matrices and its memory
traffic (analysis/block_work.py) each take their number divided by what a multiprocessor does in a cycle. A block alone
takes the sum of its arithmetic and products, or the time of its traffic if that is longer, and a latency for each turn
of its loops. A multiprocessor holds several blocks (by the resources of the machine code, or by the hint `occupancy`
before there is any): together they take the time of one block alone, or of what they all demand of the busiest unit if
that is longer. The launch takes as many such waves as it needs.

Only the order of configurations counts, and how far they lie apart. What the model leaves out: caches, the layout of
shared memory, the order of instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

from cutile._support.structs import structure
from cutile.analysis.block_work import BlockWork, block_work
from cutile.dtypes import DType
from cutile.gpu.cubin_resources import Resources, blocks_held
from cutile.gpu.target import Target
from cutile.ir.nodes import Kernel
from cutile.passes.flatten_frames import flatten_frames
from cutile.types import ArrayType, ListType, TileType

ARITHMETIC = 128  # operations of up to 32 bits that a multiprocessor does in a cycle
DOUBLE = 64  # of 64 bits
BYTES = 24  # that it moves in a cycle, while all move
LATENCY = 800  # cycles of a turn of a loop that nothing hides: an access, a product and a reduction, one after another
HELD = 256 << 10  # bytes of tiles that the registers of a multiprocessor can hold
HELD_BY_WARP = 32 * 255 * 4  # and those of a warp
SPILLED = 8.0  # times as long as such code takes whose tiles do not fit the registers
PROCESSORS = 16  # the driver's attribute of a GPU
ROWS = 16  # rows of the left factor that keep a warp busy from sm_90 on
WARPS, BLOCKS = 4, 2  # of a block, and blocks of a multiprocessor, where the hints name no number
# Operations on float16 that the units for matrices of a multiprocessor do in a cycle, without sparsity
_PRODUCTS = {80: 2048, 86: 1024, 87: 1024, 88: 1024, 89: 1024, 90: 4096, 100: 8192, 103: 8192, 107: 8192, 110: 8192,
             120: 1024, 121: 1024}
_PROCESSORS = {80: 108, 86: 84, 87: 16, 88: 16, 89: 142, 90: 132, 100: 148, 103: 148, 107: 148, 110: 20, 120: 188,
               121: 48}  # multiprocessors of a usual GPU


@structure(frozen=True)
class Model:
    """What estimates for one GPU need: its target, and how many multiprocessors it has."""

    target: Target
    processors: int

    def cycles(self, work: BlockWork, grid: Sequence[int], hints: Mapping[str, Any],
               taken: Resources | None = None) -> float:
        """What a launch may take.

        hints  of the kernel;  taken: by the machine code, where there is some
        """
        warps = hints.get("num_worker_warps") or WARPS
        together = max(hints.get("occupancy") or BLOCKS if taken is None else blocks_held(taken, self.target), 1)
        arithmetic = sum(n / (DOUBLE if w.dtype.bitwidth == 64 else ARITHMETIC) for w, n in work.operations.items())
        products = sum(n / self._products(w.dtype, rows, warps) for (w, rows), n in work.products.items())
        traffic = (work.read + work.written) / BYTES
        alone = max(arithmetic + products, traffic) + (work.turns + 1) * LATENCY
        waves = ceil(prod(grid) / (self.processors * together))
        fits = work.held * together <= HELD and work.held <= HELD_BY_WARP * warps
        spilled = taken.stack > 0 if taken is not None else not fits
        return waves * max(alone, together * max(arithmetic, products, traffic)) * (SPILLED if spilled else 1)

    def _products(self, dtype: DType, rows: int, warps: int) -> float:
        rate = _PRODUCTS[self.target.number] * 16 / max(dtype.bitwidth, 8)
        return rate / 2 if self.target.number >= 90 and rows < ROWS * warps else rate


def usual(target: Target) -> Model:
    """For a GPU of this target that is not there."""
    return Model(target, _PROCESSORS[target.number])


def of_gpu(ordinal: int) -> Model:
    from cutile.gpu.driver import driver

    d = driver()
    asked = d.api.cuDeviceGetAttribute(d.api.CUdevice_attribute(PROCESSORS), d.handle(ordinal))
    return Model(d.device(ordinal).target, int(d.ask("the GPU does not say how many multiprocessors it has", asked)))


def work_of(program: Kernel, grid: Sequence[int], dims: Sequence[Any], values: Sequence[Any]) -> BlockWork:
    """The work of a block. `dims`, `values`: sizes and strides of arrays, and launch values, one for each parameter."""
    kernel = flatten_frames(program)
    shapes: dict[Any, Any] = {}
    numbers: dict[Any, int] = {}
    for p, d, v in zip(kernel.params, dims, values, strict=True):
        if isinstance(p.type, ArrayType):
            shapes[p] = d[0]
        elif isinstance(p.type, ListType):
            shapes[p] = [sizes for sizes, _ in d]
        elif isinstance(p.type, TileType) and type(v) is int:
            numbers[p] = v
    return block_work(kernel, grid, shapes, numbers)

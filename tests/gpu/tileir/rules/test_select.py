"""The choice between two tiles, of every dtype that a tile can have."""

from __future__ import annotations

import cutile as ct
from cutile.dtypes import NUMERIC
from tests.gpu.tileir.rules.small_kernels import assemble, names, sampled, scalar, tile
from tests.gpu.tileir.tool import needs_tool

B1 = tile(ct.bool_)


def chosen(c, x, y):
    return ct.where(c, x, y)


CASES = [*((chosen, (B1, tile(d), tile(d))) for d in NUMERIC), (chosen, (B1, tile(ct.float32), scalar(ct.float32))),
         (chosen, (scalar(ct.int32), tile(ct.int32), scalar(ct.int32)))]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


def test_operations():
    f = tile(ct.float32)
    assert "select" in names(chosen, B1, f, f)
    assert names(chosen, B1, f, scalar(ct.float32))[-3:] == ["reshape", "broadcast", "select"]


@needs_tool
def test_pointers():
    from cutile.types import ArrayType, TileType
    from tests.gpu.tileir.lowering import assemble as assemble_kernel

    def kernel(a, b, c):
        p = ct.where(c > 0, a.foreign_pointer, b.foreign_pointer)
        f = ct.Array.from_foreign(p, (16,), (1,))
        ct.store(a, 0, ct.load(f, 0, 16))

    a = ArrayType(ct.float32, 1)
    assemble_kernel(kernel, a, a, TileType(ct.int32))

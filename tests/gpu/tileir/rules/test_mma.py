"""Matrix products: every row of the tables of dtypes, for the targets that have it."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.ops.mma import ACCUMULATORS, SCALE_BLOCKS
from tests.gpu.tileir.rules.small_kernels import assemble, attributes, names, operations, refused, sampled, tile
from tests.gpu.tileir.tool import needs_tool


def product(x, y, acc):
    return ct.mma(x, y, acc)


def fast(x, y, acc):
    return ct.mma(x, y, acc, use_fast_acc=True)


def matrices(dx, dy, acc, m=16, n=16, k=32):
    return tile(dx, m, k), tile(dy, k, n), tile(acc, m, n)


ROWS = [(d, d, a) for d, row in ACCUMULATORS.items() for a in row]
ROWS += [(ct.int8, ct.uint8, ct.int32), (ct.uint8, ct.int8, ct.int32)]
CASES = [*((product, matrices(*row)) for row in ROWS), (product, matrices(ct.float32, ct.float32, ct.float32, 1, 1, 1)),
         (fast, matrices(ct.float8_e4m3fn, ct.float8_e4m3fn, ct.float32)),
         (lambda x, y: x @ y, matrices(ct.bfloat16, ct.bfloat16, ct.float32)[:2])]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


def scaled(x, sx, y, sy, acc):
    return ct.mma_scaled(x, sx, y, sy, acc)


def scaled_kinds(d, s, block):
    return (tile(d, 16, 64), tile(s, 16, 64 // block), tile(d, 64, 16), tile(s, 64 // block, 16),
            tile(ct.float32, 16, 16))


SCALED = [(scaled, scaled_kinds(d, s, b)) for (d, s), blocks in SCALE_BLOCKS.items() for b in blocks]


@needs_tool
@pytest.mark.parametrize("target", ["sm_100", *(pytest.param(t, marks=pytest.mark.deep) for t in ("sm_107", "sm_120"))])
def test_scaled(target):
    assemble(SCALED, target)


def test_operations():
    assert names(product, *matrices(ct.float16, ct.float16, ct.float32)) == ["mmaf"]
    (found,) = attributes("mmai", product, *matrices(ct.int8, ct.uint8, ct.int32))
    assert found == {"signedness_lhs": "signed", "signedness_rhs": "unsigned"}
    kinds = matrices(ct.float8_e5m2, ct.float8_e5m2, ct.float32)
    assert attributes("mmaf", fast, *kinds)[0]["fast_acc"] and not attributes("mmaf", product, *kinds)[0]["fast_acc"]


def test_batches_are_repeated():
    x, y, acc = tile(ct.float16, 4, 16, 32), tile(ct.float16, 32, 16), tile(ct.float32, 4, 16, 16)
    (made,) = [o for o in operations(product, x, y, acc) if o.spec.name == "mmaf"]
    assert [v.type.shape for v in made.operands] == [(4, 16, 32), (4, 32, 16), (4, 16, 16)]


@needs_tool
def test_batches_assemble():
    x, one, y = tile(ct.float16, 4, 16, 32), tile(ct.float16, 1, 16, 32), tile(ct.float16, 4, 32, 16)
    flat, acc = tile(ct.float16, 32, 16), tile(ct.float32, 4, 16, 16)
    for target in ("sm_80", "sm_90"):
        assemble([(product, (a, b, acc)) for a, b in ((x, y), (x, flat), (one, y))], target)


def test_scales_stand_behind_the_accumulator():
    kinds = scaled_kinds(ct.float4_e2m1fn, ct.float8_e4m3fn, 16)
    (made,) = [o for o in operations(scaled, *kinds, target="sm_100") if o.spec.name == "mmaf_scaled"]
    assert [str(v.type.element) for v in made.operands] == ["f4E2M1FN", "f4E2M1FN", "f32", "f8E4M3FN", "f8E4M3FN"]


def test_what_is_missing_is_refused():
    refused("use_fast_acc", "13.2", fast, *matrices(ct.float8_e4m3fn, ct.float8_e4m3fn, ct.float32))
    refused("mma_scaled", "13.2", scaled, *scaled_kinds(ct.float8_e5m2, ct.float8_e8m0fnu, 32), target="sm_100")

"""Bitwise operations and shifts."""

from __future__ import annotations

import cutile as ct
from tests.gpu.tileir.rules.small_kernels import INTEGERS, assemble, attributes, names, sampled, tile
from tests.gpu.tileir.tool import needs_tool

I32, U32, B1 = tile(ct.int32), tile(ct.uint32), tile(ct.bool_)


def logic(x, y):
    return x & y, x | y, x ^ y, ~x


def shifts(x, y):
    return x << y, x >> y, x << 3, x >> 1


CASES = [*((f, (tile(d), tile(d))) for d in INTEGERS for f in (logic, shifts)), (logic, (B1, B1))]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


def test_operations():
    assert names(logic, I32, I32) == ["andi", "ori", "xori", "xori"]
    assert names(lambda x, y: x << y, I32, I32) == ["shli"]
    assert attributes("shri", lambda x, y: x >> y, I32, I32) == [{"signedness": "signed"}]
    assert attributes("shri", lambda x, y: x >> y, U32, U32) == [{"signedness": "unsigned"}]


def test_the_complement_flips_every_bit():
    for t, ones in ((I32, b"\xff" * 4), (B1, b"\xff")):
        assert ones in [a["value"].data for a in attributes("constant", lambda x: ~x, t)]

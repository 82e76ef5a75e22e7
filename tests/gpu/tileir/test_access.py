"""Padding of every format with every value that it has [PAD-1]. Halves of bytes."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.errors import TileUnsupportedFeatureError
from cutile.types import ArrayType, PaddingMode
from tests.gpu.tileir.lowering import assemble, module
from tests.gpu.tileir.tool import needs_tool

MODES = {ct.float4_e2m1fn: "ZERO NEG_ZERO", ct.float8_e4m3fn: "ZERO NEG_ZERO NAN", ct.float8_e8m0fnu: "ZERO NAN",
         ct.float8_e5m2: "ZERO NEG_ZERO NAN POS_INF NEG_INF", ct.float16: "ZERO NEG_ZERO NAN POS_INF NEG_INF"}
EVERY = [(dtype, PaddingMode[name]) for dtype, names in MODES.items() for name in names.split()]


def copy(mode):
    def kernel(x, y):
        ct.store(y, 0, ct.load(x, 0, 32, padding_mode=mode))

    return kernel


@pytest.mark.parametrize("dtype, mode", EVERY, ids=str)
def test_padding_of_a_view(dtype, mode):
    array = ArrayType(dtype, 1)
    made = [o for o in module(copy(mode), array, array, target="sm_100").contents.entries[0].block.ops
            if o.spec.name == "make_partition_view"]
    assert {o.results[0].type.padding for o in made} - {None} == {mode.value}


@needs_tool
def test_padding_is_assembled():
    for dtype, mode in EVERY:
        assemble(copy(mode), ArrayType(dtype, 1), ArrayType(dtype, 1), target="sm_100")


def columns(x, p, y):
    ct.store(y, (0, 0), ct.load_advanced_indexing(x, (ct.Slice(0, 4), ct.load(p, 0, 4))))


def rows(x, p, y):
    ct.store(y, (0, 0), ct.load_advanced_indexing(x, (ct.load(p, 0, 4), ct.Slice(0, 4))))


F4, POSITIONS = ArrayType(ct.float4_e2m1fn, 2), ArrayType(ct.int32, 1)


@needs_tool
def test_positions_leave_bytes_whole():
    assemble(rows, F4, POSITIONS, F4, target="sm_100")
    with pytest.raises(TileUnsupportedFeatureError, match="by positions along the axis of stride 1"):
        module(columns, F4, POSITIONS, F4, target="sm_100")


def test_four_bits_need_an_axis_of_stride_1():
    with pytest.raises(TileUnsupportedFeatureError, match="exactly one axis is known to have stride 1"):
        module(copy(PaddingMode.ZERO), *[ArrayType(ct.float4_e2m1fn, 1)] * 2, target="sm_100", facts=[None, None])


def by_position(x, y):
    ct.scatter(y, ct.arange(4, dtype=ct.int32), ct.load(x, 0, 4))


def by_offset(x, y):
    y.get_raw_memory().store_offset(ct.arange(4, dtype=ct.int32), ct.load(x, 0, 4))


@pytest.mark.parametrize("kernel", [by_position, by_offset])
def test_four_bits_are_not_stored_one_by_one(kernel):
    with pytest.raises(TileUnsupportedFeatureError, match="stores no elements of float4_e2m1fn by positions"):
        module(kernel, *[ArrayType(ct.float4_e2m1fn, 1)] * 2, target="sm_100")

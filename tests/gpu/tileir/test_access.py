"""Padding of formats that lack the value: another that reads the same, or an error [PAD-2]. Halves of bytes."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.errors import TileUnsupportedFeatureError
from cutile.ops._access import fill_of
from cutile.types import ArrayType, PaddingMode
from tests.gpu.tileir.lowering import assemble, module
from tests.gpu.tileir.tool import needs_tool

DTYPES = (ct.float4_e2m1fn, ct.float8_e4m3fn, ct.float8_e5m2, ct.float8_e8m0fnu, ct.float16)
MODES = tuple(m for m in PaddingMode if m is not PaddingMode.UNDETERMINED)
NONE_LIKE_IT = [(ct.float4_e2m1fn, PaddingMode.POS_INF), (ct.float4_e2m1fn, PaddingMode.NEG_INF)]


def copy(mode):
    def kernel(x, y):
        ct.store(y, 0, ct.load(x, 0, 32, padding_mode=mode))

    return kernel


def padding(dtype, mode) -> PaddingMode:
    array = ArrayType(dtype, 1)
    made = [o for o in module(copy(mode), array, array, target="sm_100").program.entries[0].block.ops
            if o.spec.name == "make_partition_view"]
    (name,) = {o.results[0].type.padding for o in made} - {None}
    return PaddingMode(name)


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reads_what_the_interpreter_reads(dtype, mode):
    if (dtype, mode) in NONE_LIKE_IT:
        with pytest.raises(TileUnsupportedFeatureError, match=f"no PaddingMode.{mode.name} for float4_e2m1fn"):
            padding(dtype, mode)
        return
    got, want = (float(fill_of(m, dtype)) for m in (padding(dtype, mode), mode))
    assert str(got) == str(want)


def test_formats_that_have_it_keep_it():
    for dtype in (ct.float8_e5m2, ct.float16):
        assert [padding(dtype, m) for m in MODES] == list(MODES)


@needs_tool
def test_assembled():
    for dtype in DTYPES:
        for mode in MODES:
            if (dtype, mode) not in NONE_LIKE_IT:
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

"""Conversions: which there are, what they give, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile.dtypes import (
    ARITHMETIC,
    NUMERIC,
    bfloat16,
    bool_,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e5m2,
    float8_e5m3fnu,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    foreign_pointer_dtype,
    info,
    int8,
    int16,
    int32,
    int64,
    tfloat32,
    uint8,
    uint16,
    uint32,
    uint64,
)
from cutile.errors import TileTypeError, TileValueError
from cutile.ir.terms import Const, Leaf, Static, Tuple
from cutile.ops import convert
from cutile.ops._constants import loose, strict
from cutile.types import RoundingMode, TileType
from tests.ops.ruling import Bench

RN, RZ, RM, RP, RA = (RoundingMode[n] for n in ("RN", "RZ", "RM", "RP", "RA"))
FLOATS = [d for d in NUMERIC if info(d).floating]


def dt(d) -> Static:
    return Static(d)


@pytest.fixture
def bench() -> Bench:
    return Bench()


# ------------------------------------------------------------------ astype


def test_astype_same_dtype_is_x(bench):
    x = bench.tile([1.5], float16)
    assert bench.call(convert.astype, x, dt(float16)) is x
    assert bench.call(convert.astype, x, dt(float16), rounding_mode=Static(RoundingMode.FULL)) is x


def test_astype_of_a_literal_is_strict(bench):
    c = bench.call(convert.astype, 0.1, dt(float32))
    assert isinstance(c, Const) and not c.loose and c.value == float(np.float32(0.1))
    assert bench.call(convert.astype, 0.1, dt(float64)).value == 0.1  # exact until a dtype is needed
    assert bench.call(convert.astype, 300, dt(int8)).value == 44
    assert bench.call(convert.astype, -1.9, dt(int32)).value == -1


@pytest.mark.parametrize("src", NUMERIC, ids=str)
@pytest.mark.parametrize("dst", NUMERIC, ids=str)
def test_every_pair_of_dtypes(src, dst, bench):
    one = bench.tile([1, 1], src)
    if dst is float8_e8m0fnu and src is not dst:
        with pytest.raises(TileTypeError):
            bench.call(convert.astype, one, dt(dst))
        return
    y = bench(convert.astype, one, dt(dst))
    assert y.dtype == info(dst).carrier and y.tolist() == [1, 1]


ALLOWED = {  # CAST-9, written out by columns: the modes besides RN, per target and source
    float64: dict.fromkeys(FLOATS, "RZ RM RP RA"),
    float32: {**dict.fromkeys(FLOATS, "RZ RM RP RA"), float64: "RZ RM RP", float8_e8m0fnu: "RZ"},
    tfloat32: {**dict.fromkeys(FLOATS, "RZ RA"), float64: "RZ", float8_e8m0fnu: "RZ"},
    float16: {**dict.fromkeys(FLOATS, "RZ"),
              **dict.fromkeys((bfloat16, float8_e5m2, float8_e4m3fn, float4_e2m1fn), "RZ RM RP RA")},
    bfloat16: dict.fromkeys(FLOATS, "RZ"),
    float8_e8m0fnu: dict.fromkeys(FLOATS, "RZ RP"),
}


@pytest.mark.parametrize("dst", FLOATS, ids=str)
@pytest.mark.parametrize("src", FLOATS, ids=str)
def test_rounding_modes_by_pair(src, dst):
    if src is dst:
        return
    expected = set(ALLOWED.get(dst, {}).get(src, "").split()) | ({"RN"} if dst is not float8_e8m0fnu else set())
    accepted = set()
    for mode in RoundingMode:
        bench = Bench()
        try:
            bench(convert.astype, bench.tile([1.0], src), dt(dst), rounding_mode=Static(mode))
            accepted.add(mode.name)
        except TileTypeError as e:
            assert src.name in e.message and dst.name in e.message and e.help
    assert accepted == expected


def test_rounding_mode_by_name_and_effect(bench):
    x = bench.tile([1 + 2.0**-9, -1 - 2.0**-9], float32)
    assert bench(convert.astype, x, dt(bfloat16), rounding_mode="RZ").tolist() == [1, -1]
    y = bench.tile([65520.0, -65520.0], bfloat16)
    big = bench.tile([2.0**16, -(2.0**16)], bfloat16)
    assert bench(convert.astype, big, dt(float16), rounding_mode="RM").tolist() == [65504, -math.inf]
    assert bench(convert.astype, big, dt(float16), rounding_mode="RP").tolist() == [math.inf, -65504]
    assert bench(convert.astype, big, dt(float16), rounding_mode="RZ").tolist() == [65504, -65504]
    assert bench(convert.astype, y, dt(float16)).tolist() == [math.inf, -math.inf]
    with pytest.raises(TileTypeError, match="nearest_even"):
        bench.call(convert.astype, x, dt(bfloat16), rounding_mode="nearest_even")


@pytest.mark.parametrize("src, dst", [(int32, float32), (float32, int32), (bool_, float32), (int8, int8)])
def test_rounding_mode_needs_floats(src, dst, bench):
    with pytest.raises(TileTypeError, match="float source and target"):
        bench.call(convert.astype, bench.tile([1], src), dt(dst), rounding_mode=Static(RN))


def test_constants_with_a_mode_become_values(bench):
    y = bench.call(convert.astype, 1.0009765625, dt(bfloat16), rounding_mode=Static(RZ))
    assert isinstance(y, Leaf) and bench.value(y) == 1.0
    assert isinstance(bench.call(convert.astype, 1.5, dt(bfloat16), rounding_mode=Static(RN)), Const)


def test_saturation_at_run_time_differs_from_constants(bench):
    x = bench.tile([465.0, math.inf, -1e9, math.nan], float32)
    assert np.array_equal(bench(convert.astype, x, dt(float8_e4m3fn)), [448, 448, -448, math.nan], equal_nan=True)
    assert math.isnan(bench.call(convert.astype, 465.0, dt(float8_e4m3fn)).value)


@pytest.mark.parametrize("wrong", [1, "float32", float, None])
def test_astype_needs_a_dtype(wrong, bench):
    with pytest.raises(TileTypeError, match="dtype"):
        bench.call(convert.astype, bench.tile([1], int32), Static(wrong) if wrong != 1 else 1)


def test_astype_of_other_things(bench):
    for thing in ((1, 2), None, "x"):
        with pytest.raises(TileTypeError, match="tile or scalar"):
            bench.call(convert.astype, thing, dt(int32))
    pointer = bench.given(np.uint64(0), TileType(foreign_pointer_dtype(float32)))
    with pytest.raises(TileTypeError):
        bench.call(convert.astype, pointer, dt(int64))


def test_leading_axes_pass(bench):
    x = bench.tile(np.ones((2, 1, 3, 4)), float32, shape=(4,))
    assert bench(convert.astype, x, dt(float16)).shape == (2, 1, 3, 4)


# ------------------------------------------------------------------ bits


def test_bitcast(bench):
    assert bench(convert.bitcast, bench.tile([1.0, -2.0], float32), dt(int32)).tolist() == [0x3F800000, -(2**30)]
    assert bench(convert.bitcast, bench.tile([1.0], float16), dt(uint16)).tolist() == [0x3C00]
    assert bench(convert.bitcast, bench.tile([0x3F80], int16), dt(bfloat16)).tolist() == [1.0]
    assert bench(convert.bitcast, bench.tile([0x7E], uint8), dt(float8_e4m3fn)).tolist() == [448.0]
    assert bench(convert.bitcast, bench.tile([1.0], float64), dt(uint64)).tolist() == [0x3FF << 52]
    assert bench(convert.bitcast, bench.tile([-1], int8), dt(uint8)).tolist() == [255]
    assert bench(convert.bitcast, bench.tile([1.0], float32), dt(tfloat32)).tolist() == [1.0]
    one = bench.call(convert.bitcast, 1, dt(float32))
    assert isinstance(one, Leaf) and bench.value(one) == 2.0**-149
    assert isinstance(bench.call(convert.bitcast, 1.0, dt(float32)), Leaf)


@pytest.mark.parametrize("pair", [
    (float16, bfloat16, int16, uint16), (float8_e5m2, float8_e4m3fn, float8_e5m3fnu, int8), (float32, int32, uint32),
    (float64, int64),
], ids=str)
def test_bitcast_there_and_back(pair):
    width = pair[0].bitwidth
    bits = np.random.default_rng(1).integers(0, 1 << width, 512, dtype=f"u{width // 8}")
    for a in pair:
        bench = Bench()
        x = bench.call(convert.bitcast, bench.tile(bits, {8: uint8, 16: uint16, 32: uint32, 64: uint64}[width]), dt(a))
        back = bench(convert.bitcast, x, dt({8: uint8, 16: uint16, 32: uint32, 64: uint64}[width]))
        nan = np.isnan(bench.value(x)) if info(a).floating and not info(a).format.has_inf else np.zeros(512, bool)
        assert (back == bits)[~nan].all()


@pytest.mark.parametrize("src, dst, text", [(float32, int16, "32 bits"), (int8, bool_, "bool_"), (bool_, int8, "bool_"),
                                            (int64, foreign_pointer_dtype(int8), "numeric")])
def test_bitcast_refuses(src, dst, text, bench):
    with pytest.raises(TileTypeError, match=text):
        bench.call(convert.bitcast, bench.tile([1], src), dt(dst))


def test_pack(bench):
    x = bench.tile([[0x01020304, -1], [0, 5]], int32)
    assert bench(convert.pack_to_bytes, x).tolist() == [4, 3, 2, 1, 255, 255, 255, 255, 0, 0, 0, 0, 5, 0, 0, 0]
    assert bench(convert.pack_to_bytes, bench.tile([0.5, -6.0, 1.0, 0.0], float4_e2m1fn)).tolist() == [0xF1, 0x02]
    assert bench(convert.pack_to_bytes, bench.tile(1.0, float16)).tolist() == [0, 0x3C]
    leading = bench.tile(np.arange(6, dtype=np.int16).reshape(3, 1, 1, 2), int16, shape=(2,))
    assert bench(convert.pack_to_bytes, leading).tolist() == [[[[0, 0, 1, 0]]], [[[2, 0, 3, 0]]], [[[4, 0, 5, 0]]]]


@pytest.mark.parametrize("dtype", [d for d in NUMERIC if d is not bool_], ids=str)
def test_unpack_is_the_inverse(dtype, bench):
    data = np.arange(32, dtype=np.uint8) * 3 + 1
    x = bench.tile(data, uint8)
    y = bench.call(convert.unpack_from_bytes, x, dt(dtype))
    assert y.type == TileType(dtype, (32 * 8 // dtype.bitwidth,))
    back = bench(convert.pack_to_bytes, y)
    if dtype is tfloat32:  # the low 13 bits of each word do not count
        back, data = back.reshape(8, 4) & [0, 0xE0, 255, 255], data.reshape(8, 4) & [0, 0xE0, 255, 255]
    assert (back == data).all()


def test_pack_refuses(bench):
    with pytest.raises(TileTypeError, match="bool_"):
        bench.call(convert.pack_to_bytes, bench.tile([True], bool_))
    with pytest.raises(TileTypeError, match="4 bits"):
        bench.call(convert.pack_to_bytes, bench.tile([1.0], float4_e2m1fn))
    for x in (bench.tile([1], int8), bench.tile([[1]], uint8), bench.tile(1, uint8)):
        with pytest.raises(TileTypeError, match="uint8 tile of rank 1"):
            bench.call(convert.unpack_from_bytes, x, dt(int8))
    with pytest.raises(TileTypeError, match="2 bytes"):
        bench.call(convert.unpack_from_bytes, bench.tile([1, 2], uint8), dt(int32))
    with pytest.raises(TileTypeError, match="bool_"):
        bench.call(convert.unpack_from_bytes, bench.tile([1, 2], uint8), dt(bool_))


# ------------------------------------------------------------------ constructors and built-ins


def make(bench, dtype, *args):
    return convert.construct(bench.b, dtype, tuple(args))


@pytest.mark.parametrize("dtype, arg, want", [
    (int16, loose(5), 5), (uint8, loose(-3), 253), (float16, loose(1e10), math.inf), (int32, loose(2.9), 2),
    (bool_, loose(0.5), True), (int32, Static("5"), 5), (float32, Static("inf"), math.inf), (bool_, Static(""), False),
    (float32, loose(0.1), float(np.float32(0.1))), (float64, loose(0.1), 0.1), (int8, strict(200, uint8), -56),
    (float8_e8m0fnu, loose(3), 4.0),
])
def test_constructors(dtype, arg, want, bench):
    c = make(bench, dtype, arg)
    assert isinstance(c, Const) and not c.loose and c.dtype is dtype
    assert c.value == want and type(c.value) is type(want)


def test_constructors_without_argument(bench):
    for dtype in ARITHMETIC:
        assert make(bench, dtype).value == 0
    assert make(bench, bool_).value is False


def test_constructors_cast_scalars(bench):
    x = bench.tile(300, int32)
    y = make(bench, uint8, x)
    assert isinstance(y, Leaf) and bench.value(y) == 44
    assert make(bench, int32, x) is x
    with pytest.raises(TileTypeError, match="rounding"):
        make(bench, float8_e8m0fnu, bench.tile(1.0, float32))


@pytest.mark.parametrize("args", [(Static(None),), (Tuple((loose(1),)),), (loose(1), loose(2)), (Static("a"),)])
def test_constructors_refuse(args, bench):
    with pytest.raises(TileTypeError):
        make(bench, int32, *args)


def test_constructors_refuse_tiles_and_some_dtypes(bench):
    with pytest.raises(TileTypeError) as e:
        make(bench, float16, bench.tile([1.0], float32))
    assert "astype(ct.float16)" in e.value.help
    for dtype in (float4_e2m1fn, foreign_pointer_dtype(int8)):
        with pytest.raises(TileTypeError, match="cannot be called"):
            make(bench, dtype, loose(1))
    with pytest.raises(TileValueError, match="no integer value"):
        make(bench, int32, loose(math.nan))
    with pytest.raises(TileValueError, match=r"no -0\.0"):
        make(bench, float8_e8m0fnu, loose(-0.0))


def test_int_and_float_of_constants(bench):
    for term, want in ((loose(2.9), 2), (Static("5"), 5), (loose(True), 1), (strict(7, int8), 7)):
        c = convert.builtin_int(bench.b, term)
        assert c.loose and c.value == want and type(c.value) is int
    for term, want in ((loose(2), 2.0), (Static("1e3"), 1000.0), (strict(7, int8), 7.0)):
        c = convert.builtin_float(bench.b, term)
        assert c.loose and c.value == want and type(c.value) is float


def test_int_and_float_refuse(bench):
    x = bench.tile(1.0, float32)
    with pytest.raises(TileTypeError) as e:
        convert.builtin_int(bench.b, x)
    assert "astype(ct.int32)" in e.value.help
    with pytest.raises(TileTypeError):
        convert.builtin_float(bench.b, Static(None))
    with pytest.raises(TileTypeError):
        convert.builtin_int(bench.b, Static("a"))
    with pytest.raises(TileValueError):
        convert.builtin_int(bench.b, loose(math.inf))
    with pytest.raises(TileValueError):
        convert.builtin_int(bench.b, loose(1e30))


@given(st.integers(-(2**63), 2**64 - 1), st.sampled_from(ARITHMETIC))
@settings(max_examples=200, deadline=None)
def test_constant_and_run_time_casts_of_integers_agree(n, dst):
    """ENC and CAST differ only where a format is left, and integers wrap alike in both."""
    bench = Bench()
    src = int64 if n < 2**63 else uint64
    folded = bench.call(convert.astype, strict(n, src), dt(dst))
    ran = bench(convert.astype, bench.tile(n, src), dt(dst))
    assert ran == folded.value

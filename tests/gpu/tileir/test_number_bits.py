import re

import ml_dtypes
import numpy as np
import pytest

from cutile.gpu.tileir import number_bits, tileiras
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import Module
from cutile.gpu.tileir.types import tile
from tests.gpu.tileir.tool import needs_tool

NARROW = (ty.f16, ty.bf16, ty.f32, ty.tf32, ty.f64, ty.e4m3, ty.e5m2, ty.e8m0)


def printed(t: ty.Tile, data) -> str:
    """What the disassembler reads in a constant."""
    m = Module("13.4")
    b = m.entry("k", []).body
    b.constant(t, data)
    b.op("return")
    return re.search(r"constant <\w+: (.*)> :", tileiras.disassemble(m.to_bytes()))[1]


@needs_tool
@pytest.mark.parametrize("element", NARROW, ids=str)
def test_floats(element):
    assert printed(tile(element, (4,)), [1, 2, 4, 0.5]) == (
        "[1.000000e+00, 2.000000e+00, 4.000000e+00, 5.000000e-01]")
    assert printed(tile(element, (2, 2)), 2) == "2.000000e+00"


@needs_tool
def test_float4():
    assert printed(tile(ty.e2m1, (4,)), [1, -6, 0.5, 3]) == (
        "[1.000000e+00, -6.000000e+00, 5.000000e-01, 3.000000e+00]")


@needs_tool
@pytest.mark.parametrize("element", (ty.i8, ty.i16, ty.i32, ty.i64), ids=str)
def test_integers(element):
    low, high = -(1 << element.bits - 1), (1 << element.bits - 1) - 1
    assert printed(tile(element, (4,)), [low, high, -1, 0]) == f"[{low}, {high}, -1, 0]"
    assert printed(tile(element), high) == str(high)
    assert printed(tile(element), 2 * high + 1) == "-1"  # the unsigned form of the same bits


@needs_tool
@pytest.mark.parametrize("n", [1, 2, 8, 16])
def test_booleans(n):
    bits = [i % 3 == 0 for i in range(n)]
    text = "[" + ", ".join(str(x).lower() for x in bits) + "]" if n > 1 else "true"
    assert printed(tile(ty.i1, (n,)), bits) == text
    assert printed(tile(ty.i1, (n,)), True) == "true"
    assert printed(tile(ty.i1, (n,)), [False] * n) == "false"


@needs_tool
def test_rank_two_is_in_order():
    assert printed(tile(ty.i32, (2, 2)), np.array([[1, 2], [3, 4]]).T.copy(order="F").T) == "[[1, 2], [3, 4]]"


def test_bits():
    assert number_bits.bits_of(ty.f32, -0.0) == 0x8000_0000
    assert number_bits.bits_of(ty.f64, -0.0) == 1 << 63
    assert number_bits.bits_of(ty.bf16, 1.0) == 0x3F80
    assert number_bits.bits_of(ty.tf32, 1.5) == 0x3FC00000 >> 13
    assert number_bits.bits_of(ty.e5m2, float("inf")) == 0x7C
    assert number_bits.bits_of(ty.i8, -1) == 0xFF
    assert number_bits.bits_of(ty.i64, 2**64 - 1) == 2**64 - 1


def test_data_of_the_dtypes_own_numpy_types():
    data = np.array([1.5, -2], ml_dtypes.bfloat16)
    assert number_bits.constant(tile(ty.bf16, (2,)), data).data == data.tobytes()
    assert number_bits.constant(tile(ty.e5m3, (2,)), [1.0, 2.0]).data == b"\x78\x80"


def test_identities():
    assert number_bits.identity(ty.i32, -5).bits == 0xFFFF_FFFB
    assert number_bits.identity(ty.i32, 4.0).bits == 4
    for wrong in (0.5, float("inf")):
        with pytest.raises(ValueError, match="is no i32"):
            number_bits.identity(ty.i32, wrong)


def test_no_warning_escapes():
    number_bits.constant(tile(ty.f16, (2,)), [1e9, float("nan")])

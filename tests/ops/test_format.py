"""Formatting against the C library's own snprintf."""

import ctypes
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutile.dtypes import bool_, float16, float32, float64, int8, int16, int32, int64, uint8, uint32, uint64
from cutile.ops import _format
from cutile.ops._format import FormatError

LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
C_TYPES = {int32: ctypes.c_int32, uint32: ctypes.c_uint32, int64: ctypes.c_int64, uint64: ctypes.c_uint64,
           float64: ctypes.c_double}


def c_format(conversion: str, value, dtype) -> str:
    buffer = ctypes.create_string_buffer(2000)
    LIBC.snprintf(buffer, 2000, conversion.encode(), C_TYPES[dtype](value))
    return buffer.value.decode()


def ours(conversion: str, value, dtype) -> str:
    _, c, _ = _format.parse_printf(conversion)
    return c.formatter(dtype)(value)


flag = st.sampled_from(["", "0", "#", "+", "-", " "])
width = st.sampled_from(["", "1", "3", "12", "30"])
precision = st.sampled_from(["", ".", ".0", ".1", ".3", ".12", ".20"])
needs_libc = pytest.mark.skipif(LIBC is None, reason="the C library's name is not known here")


@needs_libc
@given(flag, width, precision, st.sampled_from("diouxX"), st.sampled_from([int32, uint32, int64, uint64]),
       st.integers(-2**63, 2**64 - 1) | st.integers(-20, 20))
def test_integers_as_c(flag, width, precision, letter, dtype, value):
    value = C_TYPES[dtype](value).value
    length = "ll" if dtype.bitwidth == 64 else ""
    if letter in "ouxX" and flag in ("+", " "):
        return  # undefined in C
    conversion = f"%{flag}{width}{precision}{length}{letter}"
    assert ours(conversion, value, dtype) == c_format(conversion, value, dtype)


@needs_libc
@given(flag, width, precision, st.sampled_from("eEfFgGaA"),
       st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 0.5, 255.96875, 5e-324, 1e22, 0.1, 2.5, 3.5]))
def test_floats_as_c(flag, width, precision, letter, value):
    conversion = f"%{flag}{width}{precision}{letter}"
    assert ours(conversion, value, float64) == c_format(conversion, value, float64)


@needs_libc
def test_hexadecimal_floats_as_c():
    rng = np.random.default_rng(3)
    values = [*rng.standard_normal(300), *(rng.standard_normal(100) * 1e-310), 2.0**-1022, 2.0**-1023, 2.0**-1074,
              1.96875, 1.99999]
    for conversion in ("%a", "%.0a", "%.1a", "%.2A", "%.13a", "%.15a", "%#.0a", "%20a", "%020a", "%-20a"):
        for v in values:
            assert ours(conversion, v, float64) == c_format(conversion, v, float64), (conversion, v)


def test_nan_has_no_sign():
    assert ours("%f", math.nan, float32) == ours("%f", -math.nan, float32) == "nan"
    assert ours("%F", math.nan, float32) == "NAN"
    assert ours("%06f", math.nan, float32) == "   nan"
    assert ours("%+f", math.nan, float32) == "+nan"


def test_narrow_integers_are_passed_as_int():
    assert ours("%x", -1, int8) == "ffffffff"
    assert ours("%hhx", -1, int32) == "ff"
    assert ours("%hd", 70000, int32) == "4464"
    assert ours("%u", -1, int16) == "4294967295"
    assert ours("%d", 200, uint8) == "200"
    assert ours("%hhd", 200, uint8) == "-56"
    assert ours("%d", True, bool_) == "1"


def test_a_wide_integer_shows_all_its_bits_without_a_length():
    assert ours("%d", -2**40, int64) == "-1099511627776"
    assert ours("%x", 2**40, uint64) == "10000000000"


def test_parse_printf():
    parts = _format.parse_printf("a%% %-5.2lld|%f%%")
    assert [str(p) for p in parts] == ["a", "%", " ", "%-5.2lld", "|", "%f", "", "%", ""]


@pytest.mark.parametrize("text", ["%", "%s", "%c", "%n", "%p", "%*d", "%Lf", "%+-d", "%5", "%5%", "%lhd", "100%!"])
def test_malformed_printf(text):
    with pytest.raises(FormatError):
        _format.parse_printf(text)


@pytest.mark.parametrize("spec, dtype, conversion", [
    ("", int32, "%d"), ("", uint8, "%u"), ("", bool_, "%d"), ("", int64, "%d"), ("", uint64, "%u"),
    ("", float16, "%f"), ("", float64, "%f"), ("<8", int32, "%-8d"), (">8", int32, "%8d"), ("^8.3f", float32, "%8.3f"),
    ("+.3", float32, "%+.3f"),
    ("08x", int64, "%08x"), ("#X", uint32, "%#X"), (" d", int32, "% d"), ("-d", int32, "%d"), ("e", float16, "%e"),
    ("<+#010.4g", float32, "%-+#010.4g"), ("5", int64, "%5d"),
])
def test_specs(spec, dtype, conversion):
    assert str(_format.parse_spec(spec, dtype)) == conversion


@pytest.mark.parametrize("spec, dtype", [
    ("s", int32), ("b", int32), ("n", int32), (",", int32), ("=5", int32), ("x<5", int32), ("f", int32), ("d", float32),
    ("x", float16), ("5.", float32), ("%", float32),
])
def test_bad_specs(spec, dtype):
    with pytest.raises(FormatError):
        _format.parse_spec(spec, dtype)


def test_every_conversion_parses_back():
    for spec in ("", "<+#010.4g", "^3", ".0e"):
        c = _format.parse_spec(spec, float32)
        assert _format.from_text(str(c)) == c


def test_tiles_are_nested_lists():
    each = _format.default(int32).formatter(int32)
    assert _format.show(np.array([[1, 2], [3, -4]]), each) == "[[1, 2], [3, -4]]"
    assert _format.show(np.array(5), each) == "5"

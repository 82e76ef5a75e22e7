"""Dtype objects, formats, restricted floats, foreign dtypes [DT]."""

import copy
import math
import pickle
import sys

import ml_dtypes
import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, needs, run
from conformance.harness.dtype_names import ARITHMETIC, DTYPES, INTEGERS, NAMES, NUMPY
from conformance.harness.number_formats import codes, value
from conformance.harness.type_probes import look, on_target, refused, static, unary

# ------------------------------------------------------------------ the objects


@clause("DT-1.class", "DT-1.identity", "DT-1.hash", "DT-1.copy", "DT-1.deepcopy", "DT-1.pickle", "DT-1.name",
        "DT-1.bitwidth", "DT-1.repr", "DT-1.str", "DT-1.assign")
def test_objects():
    assert len(set(DTYPES.values())) == len(NAMES)
    for short, name in NAMES.items():
        d = DTYPES[short]
        assert isinstance(d, ct.DType) and d == d and d is getattr(ct, name)
        assert all((d == other) == (s == short) and (d != other) == (s != short) for s, other in DTYPES.items())
        assert hash(d) == hash(copy.copy(d))
        assert copy.copy(d) is d and copy.deepcopy(d) is d and pickle.loads(pickle.dumps(d)) is d
        assert type(d.name) is str and d.name == str(d) == name and type(d.bitwidth) is int
        assert repr(d) == f"<DType {name!r}>"
        for attribute in ("name", "bitwidth", "other"):
            with pytest.raises(AttributeError):
                setattr(d, attribute, 1)
        assert d != name and d != d.bitwidth


@clause("DT-1.pickle")
def test_pickling_pointer_dtypes():
    d = ct.foreign_pointer_dtype(ct.int8)
    assert pickle.loads(pickle.dumps(d)) is d


@clause("DT-1.order", "DT-1.new", "DT-2.host")
def test_what_fails_on_the_host():
    for f in (lambda: ct.int32 < ct.int64, lambda: ct.int32 > ct.int8, lambda: ct.DType(), lambda: ct.int32(5),
              lambda: ct.float32(), lambda: ct.bool_(True)):
        with pytest.raises(TypeError):
            f()


@clause("DT-1.tile.name", "DT-1.tile.bitwidth", "DT-1.tile.static")
def test_attributes_in_tile_code():
    refused("TileTypeError", lambda: ct.int32.name)
    refused("TileTypeError", lambda: ct.zeros((2,), ct.int32).dtype.bitwidth)
    assert static(lambda: ct.static_eval(ct.int32.name)) == "int32"
    assert static(lambda: ct.static_eval(ct.int64.bitwidth)) == 64


@clause("DT-1.tile.eq", "DT-1.tile.in", "DT-1.tile.number", "DT-1.tile.order")
def test_comparison_in_tile_code():
    t = (ct.int8, ct.float32)
    for f, want in ((lambda: ct.int8 == ct.int8, True), (lambda: ct.int8 == ct.uint8, False),
                    (lambda: ct.int8 != ct.uint8, True),
                    (lambda: ct.int8 != ct.int8, False), (lambda: ct.zeros((1,), ct.int8).dtype in t, True),
                    (lambda: ct.int16 in t, False), (lambda: ct.int16 not in t, True)):
        assert static(f) is want
    for f in (lambda: ct.int8 == 1, lambda: ct.int8 != 2.5, lambda: ct.int8 < ct.int16, lambda: ct.int8 >= ct.int16,
              lambda: ct.int8 + ct.int8):
        refused("TileTypeError", f)


@clause("DT-2.tile")
def test_calls_in_tile_code():
    for short in NAMES:
        if short == "e2m1":
            continue
        d = DTYPES[short]
        with on_target(short):
            [(v, got)] = look(lambda d=d: d(1))
        assert v == 1 and got is d


# ------------------------------------------------------------------ formats


def decoded(short):
    """The numbers behind codes (all of 16 bits and less, chosen wider ones), as doubles, read in tile code."""
    name, dtype = NAMES[short], DTYPES[short]
    c = codes(name)
    n = len(c)

    @ct.kernel
    def k(x, out):
        ct.store(out, ct.bid(0), ct.bitcast(ct.load(x, ct.bid(0), 256), dtype).astype(ct.float64))

    @ct.kernel
    def packed(x, out):
        ct.store(out, 0, ct.unpack_from_bytes(ct.load(x, 0, 8), dtype).astype(ct.float64))

    with on_target(short):
        if short == "e2m1":
            pairs = (c[0::2] | c[1::2] << 4).astype(np.uint8)
            return run(packed, pairs, np.zeros(n))
        return run(k, c, np.zeros(n), grid=(n // 256,))


EXAMPLES = {
    "f16": {0x0001: 2.0**-24, 0x03FF: 1023 * 2.0**-24, 0x0400: 2.0**-14, 0x3C00: 1.0, 0xC500: -5.0, 0x7BFF: 65504.0,
            0x7C00: math.inf, 0xFC00: -math.inf, 0x7E00: math.nan},
    "bf16": {0x0001: 2.0**-133, 0x0080: 2.0**-126, 0x3F80: 1.0, 0xC0A0: -5.0, 0x7F7F: 255 * 2.0**120, 0x7F80: math.inf,
             0x7FC0: math.nan},
    "e4m3": {0x01: 2.0**-9, 0x08: 2.0**-6, 0x38: 1.0, 0xB8: -1.0, 0x7E: 448.0, 0x7F: math.nan, 0xFF: math.nan,
             0x80: -0.0},
    "e5m2": {0x01: 2.0**-16, 0x04: 2.0**-14, 0x3C: 1.0, 0x7B: 57344.0, 0x7C: math.inf, 0xFC: -math.inf, 0x7D: math.nan},
    "e8m0": {0x00: 2.0**-127, 0x7F: 1.0, 0x80: 2.0, 0xFE: 2.0**127, 0xFF: math.nan},
    "e5m3": {0x00: 0.0, 0x01: 2.0**-17, 0x08: 2.0**-14, 0x78: 1.0, 0x80: 2.0, 0xFE: 114688.0, 0xFF: math.nan},
    "e2m1": dict(enumerate([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])),
}


@pytest.mark.parametrize("short", [pytest.param(s, marks=clause(f"DT-3.{s}")) for s in EXAMPLES])
def test_encodings(short):
    got = decoded(short)
    for code, want in EXAMPLES[short].items():
        assert repr(float(got[code])).lstrip("-") == repr(want).lstrip("-") and (
            math.isnan(want) or math.copysign(1, got[code]) == math.copysign(1, want))
    name = NAMES[short]
    want = [value(name, int(c)) for c in codes(name)]
    bad = [c for c, (a, b) in enumerate(zip(got.tolist(), want, strict=True)) if a != b and not (a != a and b != b)]
    assert not bad


@clause("DT-3.tf32", "DT-3.f32", "DT-3.f64")
def test_wide_encodings():
    @ct.kernel
    def k(x, y, out, out64, tf):
        ct.store(out, 0, ct.bitcast(ct.load(x, 0, 8), ct.float32).astype(ct.float64))
        ct.store(out64, 0, ct.bitcast(ct.load(y, 0, 4), ct.float64))
        ct.store(tf, 0, ct.bitcast(ct.load(x, 0, 8), ct.tfloat32).astype(ct.float64))

    x = np.array([0x3F800000, 0xC0A00000, 1, 0x00800000, 0x7F7FE000, 0x7F800000, 0x7FC00000, 0x3F802000], np.uint32)
    y = np.array([0x3FF0000000000000, 1, 0x7FEFFFFFFFFFFFFF, 0xFFF0000000000000], np.uint64)
    out, out64, tf = np.zeros(8), np.zeros(4), np.zeros(8)
    launch(k, x, y, out, out64, tf)
    assert repr(out.tolist()) == repr([1.0, -5.0, 2.0**-149, 2.0**-126, 2047 * 2.0**117, math.inf, math.nan,
                                       1 + 2.0**-10])
    assert repr(out64.tolist()) == repr([1.0, 5e-324, sys.float_info.max, -math.inf])
    assert repr(tf.tolist()[3:]) == repr([2.0**-126, 2047 * 2.0**117, math.inf, math.nan, 1 + 2.0**-10])


@pytest.mark.parametrize("short", [pytest.param(s, marks=clause(f"DT-3.{s}")) for s in INTEGERS])
def test_integers(short):
    bits, signed, dtype = int(short[1:]), short[0] == "i", DTYPES[short]
    assert dtype.bitwidth == bits
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    unsigned = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]

    @ct.kernel
    def k(x, out, text):
        t = ct.bitcast(ct.load(x, 0, 4), dtype)
        ct.store(out, 0, t)
        ct.store(text, 0, t < 0)

    x = np.array([0, 1, 1 << bits - 1, (1 << bits) - 1], unsigned)
    out, negative = np.zeros(4, NUMPY[short]), np.zeros(4, np.bool_)
    launch(k, x, out, negative)
    assert [int(v) for v in out] == ([0, 1, low, -1] if signed else [0, 1, 1 << bits - 1, high])
    assert negative.tolist() == [False, False, signed, signed]


@clause("DT-3.b1")
def test_bools():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 0, 2).astype(ct.int32))

    assert ct.bool_.bitwidth == 8
    assert run(k, np.array([False, True]), np.zeros(2, np.int32)).tolist() == [0, 1]


@pytest.mark.parametrize("short", [pytest.param(s, marks=clause(f"DT-3.{s}")) for s in NAMES])
def test_widths_and_categories(short):
    dtype = DTYPES[short]
    bits = {"b1": 8, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "e8m0": 8, "e5m3": 8, "e2m1": 4}
    assert dtype.bitwidth == (bits[short] if short in bits else int(short[1:]))
    arithmetic = short in ARITHMETIC
    if short != "b1":
        unary(lambda x: x + x, short, short if arithmetic else None)
    # The category shows beside a loose float, which makes an integer float32.
    kind = "f32" if short in ("b1", *INTEGERS) else short
    unary(lambda x: ct.where(ct.arange(2, dtype=ct.int32) == 0, x, 0.5), short, kind)


# ------------------------------------------------------------------ arrays of float4 and e5m3


@clause("DT-7.e2m1")
@needs("float4 arrays")
def test_arrays_of_float4():
    @ct.kernel
    def k(x, out):
        d = x.dtype
        ct.static_assert(d == ct.float4_e2m1fn)
        ct.store(out, 0, ct.load(x, 0, 16).astype(ct.float32))

    x = np.array(list(EXAMPLES["e2m1"].values()), ml_dtypes.float4_e2m1fn)
    assert repr(run(k, x, np.zeros(16, np.float32)).tolist()) == repr(list(EXAMPLES["e2m1"].values()))


@clause("DT-7.packed", "DT-7.e5m3")
def test_packed_bytes():
    @ct.kernel
    def k(x, out, wide):
        t = ct.load(x, 0, 4)
        ct.store(out, 0, ct.unpack_from_bytes(t, ct.float4_e2m1fn).astype(ct.float32))
        ct.store(wide, 0, ct.unpack_from_bytes(t, ct.float8_e5m3fnu).astype(ct.float32))

    out, wide = np.zeros(8, np.float32), np.zeros(4, np.float32)
    with on_target("e2m1", "e5m3"):
        launch(k, np.array([0x21, 0xF7, 0x80, 0x78], np.uint8), out, wide)
    assert repr(out.tolist()) == repr([0.5, 1.0, 6.0, -6.0, 0.0, -0.0, -0.0, 6.0])
    assert wide.tolist() == [value("float8_e5m3fnu", c) for c in (0x21, 0xF7, 0x80, 0x78)]


# ------------------------------------------------------------------ foreign dtypes


@clause("DT-8.numpy.type", "DT-8.numpy.dtype", "DT-8.equal")
@pytest.mark.parametrize("short", [s for s in ARITHMETIC if s != "bf16"])
def test_numpy_dtypes(short):
    want = DTYPES[short]
    kind, instance = NUMPY[short], np.dtype(NUMPY[short])

    @ct.kernel
    def k(x):
        a, b, c = ct.zeros((2,), kind).dtype, ct.ones((2,), ct.int8).astype(instance).dtype, kind(1).dtype
        ct.static_assert(a == want and b == want and c == want)
        same = x.dtype == kind
        ct.static_assert(same)
        also = instance == x.dtype
        ct.static_assert(also)

    accepts(k, np.zeros(4, NUMPY[short]))


@pytest.mark.parametrize("short, kind", [
    pytest.param(s, k, marks=clause(f"DT-8.ml_dtypes.{n}"), id=n) for n, s, k in [
        ("bfloat16", "bf16", ml_dtypes.bfloat16), ("e4m3", "e4m3", ml_dtypes.float8_e4m3fn),
        ("e5m2", "e5m2", ml_dtypes.float8_e5m2), ("e8m0", "e8m0", ml_dtypes.float8_e8m0fnu)]])
def test_ml_dtypes(short, kind):
    want, instance = DTYPES[short], np.dtype(kind)

    @ct.kernel
    def k():
        a, b = ct.ones((2,), kind).dtype, ct.ones((2,), instance).dtype
        ct.static_assert(a == want and b == want)

    with on_target(short):
        accepts(k)


@clause("DT-8.torch")
def test_torch_dtypes():
    torch = pytest.importorskip("torch", reason="not applicable: torch is not installed")
    for name, want in (("float16", ct.float16), ("bfloat16", ct.bfloat16), ("int8", ct.int8), ("bool", ct.bool_),
                       ("float", ct.float32), ("float8_e4m3fn", ct.float8_e4m3fn)):
        kind = getattr(torch, name)
        assert static(lambda kind=kind: ct.ones((2,), kind).dtype) is want


@pytest.mark.parametrize("kind", [pytest.param(k, marks=clause(f"DT-8.{n}"), id=n) for n, k in [
    ("int", int), ("float", float), ("bool", bool), ("string", "float32"), ("complex", np.complex64)]])
def test_objects_that_are_no_dtypes(kind):
    refused("TileTypeError", lambda: ct.zeros((2,), kind))
    refused("TileTypeError", lambda: ct.ones((2,), ct.int8).astype(kind))


@clause("DT-8.complex")
def test_arrays_of_dtypes_that_tile_code_lacks():
    @ct.kernel
    def k(x):
        pass

    for dtype in (np.complex64, "datetime64[s]", "U4"):
        with pytest.raises((TypeError, ct.TileTypeError)):
            launch(k, np.zeros(4, dtype))

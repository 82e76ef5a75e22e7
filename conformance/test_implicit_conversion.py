"""Which values convert implicitly, and to what [IMPL]."""

from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, refuses, run
from conformance.harness.dtype_names import ARITHMETIC, DTYPES, FLOATS, INTEGERS, NAMES, NUMPY, PROMOTE, limits
from conformance.harness.type_probes import on_target


def zeros(short, n=1):
    return np.zeros(n, NUMPY[short])


@pytest.mark.parametrize("target", [pytest.param(t, marks=clause(f"IMPL-1.{t}")) for t in NAMES if t in NUMPY])
def test_implicit_conversion(target):
    out = zeros(target, 2)
    for source in NAMES:
        dtype = DTYPES[source]

        @ct.kernel
        def k(out):
            ct.store(out, 0, ct.ones((2,), dtype))

        if PROMOTE[source, target] == target:
            with on_target(source, target):
                accepts(k, out)
        else:
            refuses("TileTypeError", k, out)


@pytest.mark.parametrize("target", [pytest.param(t, marks=clause(f"IMPL-1.{t}")) for t in ("tf32", "e5m3")])
def test_implicit_conversion_to_dtypes_without_arrays(target):
    to = DTYPES[target]
    for source in NAMES:
        dtype = DTYPES[source]

        @ct.kernel
        def k():
            x = ct.ones((2,), to)
            ct.reduce(x, 0, lambda a, b: ct.astype(a, dtype), 1)

        @ct.kernel
        def same():
            x = ct.ones((2,), to)
            ct.reduce(x, 0, lambda a, b: a, 1)

        if source == target:
            with on_target(target):
                accepts(same)
        elif source in ("f32", "f64", "f16", "bf16"):
            refuses("TileTypeError", k)
        else:
            @ct.kernel
            def constant_result():
                x = ct.ones((2,), to)
                y = ct.full((), 1, dtype)
                ct.reduce(x, 0, lambda a, b: y, 1)

            refuses("TileTypeError", constant_result)


@clause("IMPL-1.strict")
def test_strict_constants_convert_as_tiles_do():
    for target in ("b1", "i8", "u32", "f16", "f64", "e4m3"):
        for source in ARITHMETIC:
            dtype = DTYPES[source]

            @ct.kernel
            def k(out):
                ct.store(out, 0, dtype(1))

            if PROMOTE[source, target] == target:
                accepts(k, zeros(target))
            else:
                refuses("TileTypeError", k, zeros(target))


PLACES = {}


def place(name):
    def add(f):
        PLACES[name] = f
        return f
    return add


@place("scatter")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.scatter(out, ct.arange(2, dtype=ct.int32), ct.ones((2,), dtype))
    return k


@place("atomic")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.atomic_add(out, ct.arange(2, dtype=ct.int32), ct.ones((2,), dtype))
    return k


@place("padding")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.gather(out, ct.arange(2, dtype=ct.int32), padding_value=ct.ones((2,), dtype))
    return k


@place("reduce")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.reduce(ct.load(out, 0, 2), 0, lambda a, b: ct.ones((), dtype), 0)
    return k


@place("scan")
def _(dtype):
    @ct.kernel
    def k(out):
        ct.scan(ct.load(out, 0, 2), 0, lambda a, b: ct.ones((), dtype), 0)
    return k


@place("view")
def _(dtype):
    @ct.kernel
    def k(out):
        out.tiled_view(2).store(0, ct.ones((2,), dtype))
    return k


@place("raw")
def _(dtype):
    @ct.kernel
    def k(out):
        out.get_raw_memory().store_offset(ct.arange(2, dtype=ct.int32), ct.ones((2,), dtype))
    return k


@pytest.mark.parametrize("make", [pytest.param(f, id=n, marks=clause(f"IMPL-1.{n}")) for n, f in PLACES.items()])
def test_implicit_conversion_everywhere(make):
    for target in ("i32", "u32", "f32", "f64"):
        for source in ARITHMETIC:
            k = make(DTYPES[source])
            if PROMOTE[source, target] == target:
                accepts(k, zeros(target, 2))
            else:
                refuses("TileTypeError", k, zeros(target, 2))


def stores(value, target, error=None):
    @ct.kernel
    def k(out):
        ct.store(out, 0, value)

    if error:
        refuses(error, k, zeros(target))
        return None
    return run(k, zeros(target))[0]


@clause("IMPL-2.bool", "IMPL-2.bool.int", "IMPL-2.bool.float")
def test_loose_constants_to_bool():
    assert [bool(stores(v, "b1")) for v in (0, 1, False, True)] == [False, True, False, True]
    for v in (2, -1, 255, 0.0, 1.0, float("nan")):
        stores(v, "b1", "TileTypeError")


@clause("IMPL-2.int", "IMPL-2.int.range", "IMPL-2.int.bool", "IMPL-2.int.float")
@pytest.mark.parametrize("target", INTEGERS)
def test_loose_constants_to_integers(target):
    low, high = limits(target)
    assert [int(stores(v, target)) for v in (low, high, 0, True)] == [low, high, 0, 1]
    for v in (low - 1, high + 1):
        if -(1 << 63) <= v < 1 << 64:
            stores(v, target, "TileValueError")
    for v in (1.0, 0.5, float("inf")):
        stores(v, target, "TileTypeError")


@clause("IMPL-2.float")
@pytest.mark.parametrize("target, big", [
    ("f16", np.inf), ("bf16", 2.0**40), ("f32", 2.0**40), ("f64", 2.0**40), ("e4m3", np.nan), ("e5m2", np.inf),
    ("e8m0", 2.0**40), ("e2m1", 6.0)])
def test_loose_constants_to_floats(target, big):
    with on_target(target):
        got = [float(stores(v, target)) for v in (True, 2, 0.5, 1 << 40)]
    assert np.array_equal(got, [1, 2, 0.5, big], equal_nan=True)


@clause("IMPL-3.int")
def test_integers_are_rounded_to_nearest():
    numbers = [0, 1, -1, 2049, 2051, -2049, -2051, 4097, 4098, 4102, 65519, 65520, 16777217, 16777219]

    @ct.kernel
    def k(x, half, single):
        t = ct.load(x, 0, 16)
        ct.store(half, 0, t)
        ct.store(single, 0, t)

    x = np.array([*numbers, 0, 0], np.int32)
    half, single = np.zeros(16, np.float16), np.zeros(16, np.float32)
    run(k, x, half, single)
    assert half.tolist() == [nearest(n, 11, 65504) for n in x.tolist()]
    assert single.tolist() == [nearest(n, 24, 2**127) for n in x.tolist()]


def nearest(n, bits, largest):
    """An integer rounded to `bits` significant bits, ties to even."""
    drop = max(abs(n).bit_length() - bits, 0)
    k = round(Fraction(n, 1 << drop))  # Python rounds ties to even
    return float(k << drop) if abs(k << drop) <= largest else float("inf") * (1 if n > 0 else -1)


@clause("IMPL-3.float")
def test_floats_keep_their_value():
    @ct.kernel
    def k(x, single, double):
        t = ct.load(x, 0, 8)
        ct.store(single, 0, t)
        ct.store(double, 0, t)

    values = [0.0, -0.0, 1.5, -65504.0, 6e-8, 0.333251953125, float("inf"), float("-inf")]
    x, single, double = np.array(values, np.float16), np.zeros(8, np.float32), np.zeros(8)
    run(k, x, single, double)
    assert [repr(float(v)) for v in single] == [repr(float(v)) for v in double] == [repr(float(v)) for v in x]


@clause("IMPL-3.bool")
@pytest.mark.parametrize("target", [*INTEGERS, *FLOATS])
def test_bools_become_numbers(target):
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 0, 2))

    assert run(k, np.array([False, True]), zeros(target, 2)).tolist() == [0, 1]

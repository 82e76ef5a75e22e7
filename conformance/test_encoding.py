"""Numbers as constants of a dtype [ENC]. The oracle (number_formats.py) is exact; formats are tried at their values."""

import math
from fractions import Fraction

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.dtype_names import DTYPES, FLOATS, INTEGERS, NAMES, RESTRICTED
from conformance.harness.exact_arithmetic import nearest
from conformance.harness.number_formats import FORMATS, rounded, value
from conformance.harness.type_probes import constant, on_target, refused, same_number

NAN, INF = math.nan, math.inf


def encoded(numbers, short):
    """Numbers made constants of a dtype, as doubles; all in one kernel."""
    n = 1 << max(len(numbers) - 1, 1).bit_length()
    given, dtype = tuple(numbers) + (1,) * (n - len(numbers)), DTYPES[short]

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.astile(given, dtype=dtype).astype(ct.float64))

    with on_target(short):
        return run(k, np.zeros(n))[:len(numbers)]


def same(got, want):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    ok = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    bad = np.flatnonzero(~ok)
    assert not len(bad), f"{len(bad)} differ, first at {bad[0]}: got {got[bad[0]]!r}, wanted {want[bad[0]]!r}"


def candidates(short):
    """Values of a format, middles between neighbours, and numbers just beside the middles."""
    f = FORMATS[NAMES[short]]
    if f.bits <= 8:
        picked = range(f.top)
    else:
        step = 1 << f.fraction
        picked = [*range(12), *range(step - 3, step + 3), *range(5 * step - 2, 5 * step + 2),
                  *range((f.top // step // 2) * step - 2, (f.top // step // 2) * step + 3), *range(f.top - 5, f.top)]
    out = []
    for code in picked:
        a, b = value(NAMES[short], code), value(NAMES[short], code + 1)
        middle = a + (b - a) / 2
        out += [a, middle, math.nextafter(middle, 0), math.nextafter(middle, INF)]
    top = value(NAMES[short], f.top)
    out.append(top)
    return out + [-x for x in out] if f.signed else out


@pytest.mark.parametrize("short", [pytest.param(s, marks=clause(f"ENC-1.{s}")) for s in (
    "f16", "bf16", "f32", "tf32", "e4m3", "e5m2", "e8m0", "e5m3", "e2m1")])
def test_rounding(short):
    numbers = candidates(short)
    if short == "f32":
        want = [float(np.float32(x)) for x in numbers]
    else:
        want = rounded(NAMES[short], np.array(numbers))
    if short == "e8m0":  # ties go up
        m, e = np.frexp(numbers)
        want = np.ldexp(np.where(m < 0.75, 0.5, 1.0), e)
    same(encoded(numbers, short), want)


@clause("ENC-1.f64", "ENC-1.zero")
def test_doubles_are_kept():
    numbers = [0.1, -0.1, 1 / 3, 5e-324, -5e-324, 2.0**-1022, 1.7976931348623157e308, 0.0, -0.0]
    same(encoded(numbers, "f64"), numbers)


@pytest.mark.parametrize("short", [pytest.param(s, marks=clause(f"ENC-1.{s}")) for s in ("f16", "bf16", "f32", "tf32")])
def test_overflow_of_wide_formats(short):
    f = FORMATS[NAMES[short]]
    top = value(NAMES[short], f.top)
    half = math.ldexp(1.0, math.frexp(top)[1] - 2 - f.fraction)
    edge = top + half
    same(encoded([edge, -edge, math.nextafter(edge, 0), 1e300, -1e300], short), [INF, -INF, top, INF, -INF])


@clause("ENC-1.e4m3.over", "ENC-1.e4m3.464")
def test_overflow_of_e4m3():
    same(encoded([464, 464.0, 465, 464.1, -464, -465, 1e9, INF, -INF], "e4m3"),
         [448, 448, NAN, NAN, -448, NAN, NAN, NAN, NAN])


@clause("ENC-1.e5m2.over", "ENC-1.e5m2.61440")
def test_overflow_of_e5m2():
    same(encoded([61440, 61439, -61440, -61439.9, 1e9], "e5m2"), [INF, 57344, -INF, -57344, INF])


@clause("ENC-1.e8m0.over", "ENC-1.e8m0.under", "ENC-1.e8m0.3")
def test_ends_of_e8m0():
    numbers = [3, 3.0, 2.9, 5, 6, 2.0**127, 1.4 * 2.0**127, 2.0**128, 1e300, INF, 0, 0.0, 2.0**-127, 2.0**-128,
               1e-300, True]
    want = [4, 4, 2, 4, 8, 2.0**127, 2.0**127, NAN, NAN, NAN, *[2.0**-127] * 5, 1]
    same(encoded(numbers, "e8m0"), want)


@clause("ENC-1.e5m3.over")
def test_overflow_of_e5m3():
    same(encoded([114688, 118784, 118785, 122880, 1e9, INF, 0.0, 2.0**-17, 2.0**-19], "e5m3"),
         [114688, 114688, NAN, NAN, NAN, NAN, 0.0, 2.0**-17, 0.0])


@clause("ENC-1.e2m1.over", "ENC-1.e2m1.5")
def test_ends_of_e2m1():
    same(encoded([5, -5, 5.01, 6, 7, 7.01, 8, 1e9, INF, -INF, 0.25, 0.26, 0.75, -0.25], "e2m1"),
         [4, -4, 6, 6, 6, 6, 6, 6, 6, -6, 0, 0.5, 1, -0.0])


@clause("ENC-1.nan")
@pytest.mark.parametrize("short", [*FLOATS, *(s for s in RESTRICTED if s != "e2m1")])
def test_nan(short):
    same(encoded([NAN, -NAN], short), [NAN, NAN])


@clause("ENC-1.inf")
@pytest.mark.parametrize("short", [*FLOATS, "tf32", "e5m2"])
def test_infinities(short):
    same(encoded([INF, -INF], short), [INF, -INF])


@clause("ENC-1.zero")
@pytest.mark.parametrize("short", [*FLOATS, "tf32", "e4m3", "e5m2", "e2m1"])
def test_signs_of_zero(short):
    same(encoded([0.0, -0.0, -1e-300], short), [0.0, -0.0, -0.0 if short != "f64" else -1e-300])


@clause("ENC-1.int")
def test_integers_are_rounded_once():
    # Halfway for the format except for the last bit, which rounding to double precision first would lose.
    for short, bits in (("f16", 11), ("bf16", 8), ("f32", 24), ("f64", 53)):
        numbers = [(1 << 62) + (1 << 62 - bits) + d for d in (-1, 0, 1)] + [(1 << 63) - 1, -(1 << 63), (1 << 64) - 1,
            2049, 7]
        same(encoded(numbers, short), [nearest(NAMES[short], Fraction(n)) for n in numbers])


@pytest.mark.parametrize("short, numbers", [
    pytest.param("e2m1", (NAN,), marks=clause("ENC-2.e2m1")),
    pytest.param("e8m0", (-1, -1.0, -1e-300, -INF), marks=clause("ENC-2.e8m0")),
    pytest.param("e8m0", (-0.0,), marks=clause("ENC-2.e8m0.zero")),
    pytest.param("e5m3", (-1, -1.0, -1e-300, -INF), marks=clause("ENC-2.e5m3")),
    pytest.param("e5m3", (-0.0,), marks=clause("ENC-2.e5m3.zero"))])
def test_numbers_that_a_format_cannot_express(short, numbers):
    dtype = DTYPES[short]
    for x in numbers:
        refused("TileValueError", lambda x=x: ct.full((2,), x, dtype))


@clause("ENC-3.signed", "ENC-3.unsigned")
@pytest.mark.parametrize("short", INTEGERS)
def test_integers_wrap(short):
    width, signed, dtype = int(short[1:]), short[0] == "i", DTYPES[short]
    for n in (300, -1, -300, 1 << 31, 1 << 63, (1 << 64) - 1, -(1 << 63), (1 << width - 1) - 1, -(1 << width - 1),
              0x5AA5):
        want = n % (1 << width)
        if signed and want >= 1 << width - 1:
            want -= 1 << width
        value, d = constant(lambda n=n: ct.full((), n, dtype))
        assert d == dtype
        same_number(value, want)


@clause("ENC-3.300", "ENC-3.minus")
def test_examples_of_wrapping():
    @ct.kernel
    def k(a, b):
        ct.store(a, 0, ct.full((4,), 300, ct.int8))
        ct.store(b, 0, ct.full((4,), -1, ct.uint8))

    a, b = np.zeros(4, np.int8), np.zeros(4, np.uint8)
    run(k, a, b)
    assert a.tolist() == [44] * 4 and b.tolist() == [255] * 4


@clause("ENC-3.bool")
def test_constants_of_bool():
    numbers = (0.5, NAN, INF, -1, 256, 1 << 63, 1e-300, True, 0, 0.0, -0.0, False)

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.astile((*numbers, 0, 0, 0, 0), dtype=ct.bool_))

    assert run(k, np.zeros(16, np.bool_)).tolist() == [True] * 8 + [False] * 8


@clause("ENC-3.trunc")
@pytest.mark.parametrize("short", INTEGERS)
def test_floats_truncate(short):
    width, signed, dtype = int(short[1:]), short[0] == "i", DTYPES[short]
    for x in (2.9, -2.9, 0.99, -0.99, 300.7, -300.7, 1e10, -1e10, 2.0**70):
        want = int(x) % (1 << width)
        if signed and want >= 1 << width - 1:
            want -= 1 << width
        value, _ = constant(lambda x=x: ct.full((), x, dtype))
        same_number(value, want)


@clause("ENC-3.nan", "ENC-3.inf")
@pytest.mark.parametrize("short", INTEGERS)
def test_numbers_without_an_integer(short):
    dtype = DTYPES[short]
    for x in (NAN, INF, -INF):
        refused("TileValueError", lambda x=x: ct.full((2,), x, dtype))


@clause("ENC-3.true")
def test_bools_as_numbers():
    for short in (*INTEGERS, *FLOATS):
        same(encoded([True, False], short), [1, 0])

"""An oracle for numbers, independent of NumPy's own arithmetic: formats, and exact rounding in every mode.

A *code* is the unsigned integer that encodes a number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

# ------------------------------------------------------------------ formats


@dataclass(frozen=True)
class Format:
    """A float format. `top` is the code of the largest finite magnitude, `emin` the exponent of the smallest normal."""

    bits: int
    fraction: int
    emin: int
    top: int
    signed: bool = True
    inf: bool = True
    nan: bool = True

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1) if self.signed else 0


FORMATS = {
    "float16": Format(16, 10, -14, 0x7BFF),
    "bfloat16": Format(16, 7, -126, 0x7F7F),
    "float32": Format(32, 23, -126, 0x7F7FFFFF),
    "float64": Format(64, 52, -1022, 0x7FEFFFFFFFFFFFFF),
    "float8_e4m3fn": Format(8, 3, -6, 0x7E, inf=False),
    "float8_e5m2": Format(8, 2, -14, 0x7B),
    "float8_e8m0fnu": Format(8, 0, -127, 0xFE, signed=False, inf=False),
    "float8_e5m3fnu": Format(8, 3, -14, 0xFE, signed=False, inf=False),
    "float4_e2m1fn": Format(4, 1, 0, 7, inf=False, nan=False),
}
FORMATS["tfloat32"] = Format(19, 10, -126, (0xFE << 10) | 0x3FF)
FLOATS = tuple(FORMATS)
INTEGERS = tuple(f"{u}int{w}" for u in ("", "u") for w in (8, 16, 32, 64))
SMALL = tuple(n for n in FLOATS if FORMATS[n].bits <= 16)  # formats whose every value is tried


def width(name: str) -> int:
    """Bits of a stored code."""
    return {"float4_e2m1fn": 8, "tfloat32": 32, "bool_": 8}.get(name) or (
        FORMATS[name].bits if name in FORMATS else int(name.lstrip("uint"))
    )


def value(name: str, code: int) -> float:
    """The number behind a code, exactly, as a double."""
    f = FORMATS[name]
    sign = -1.0 if code & f.sign else 1.0
    mag = code & ~f.sign if f.signed else code
    if mag > f.top:
        return sign * math.inf if f.inf and mag == f.top + 1 else math.nan
    if name == "float8_e8m0fnu":
        return math.ldexp(1.0, mag - 127)
    field, fraction = mag >> f.fraction, mag & ((1 << f.fraction) - 1)
    if field:
        return sign * math.ldexp((1 << f.fraction) + fraction, field - 1 + f.emin - f.fraction)
    return sign * math.ldexp(fraction, f.emin - f.fraction)


@functools.cache
def _magnitudes(name: str) -> np.ndarray:
    """All finite magnitudes in the order of their codes, and the one that would follow if the exponent went on."""
    f = FORMATS[name]
    out = [value(name, c) for c in range(f.top + 1)]
    step = out[-1] if name == "float8_e8m0fnu" else math.ldexp(1.0, math.frexp(out[-1])[1] - 1 - f.fraction)
    return np.array([*out, out[-1] + step])


@functools.cache
def _all_values(name: str) -> np.ndarray:
    return np.array([value(name, c) for c in range(1 << FORMATS[name].bits)])


def codes(name: str) -> np.ndarray:
    """Every code of a format of at most 16 bits."""
    return np.arange(1 << FORMATS[name].bits).astype(f"u{width(name) // 8}")


def values(name: str, c: np.ndarray) -> np.ndarray:
    """The numbers behind codes, as doubles (float64: the doubles themselves)."""
    c = np.asarray(c)
    if name == "float64":
        return c.view(np.float64)
    if name == "float32":
        return _widened(c)
    if name == "tfloat32":
        return _widened(c & np.uint32(0xFFFFE000))
    return _all_values(name)[c & ((1 << FORMATS[name].bits) - 1)]


def _widened(c: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return c.view(np.float32).astype(np.float64)


# ------------------------------------------------------------------ rounding


def rounded(name: str, x: np.ndarray, mode: str = "RN", *, saturate: bool = False) -> np.ndarray:
    """Doubles rounded to a format of at most 19 bits, as doubles. Overflow: infinity, else NaN; or the largest.

    Signed zeros are kept; NaN stays.
    """
    x = np.asarray(x, np.float64)
    table = _magnitudes(name)
    f = FORMATS[name]
    low = 0 if table[0] == 0 else table[0]
    mag = np.clip(np.nan_to_num(np.abs(x), nan=0.0, posinf=table[-1]), low, table[-1])
    hi = np.searchsorted(table, mag, side="left")
    lo = np.where(table[hi] == mag, hi, np.maximum(hi - 1, 0))
    middle = (table[lo] + table[hi]) / 2
    up = {
        "RN": (mag > middle) | (mag == middle) & (lo % 2 == 1),
        "RA": mag >= middle,
        "RZ": np.zeros(x.shape, bool),
        "RP": x > 0,
        "RM": x < 0,
    }[mode]
    k = np.where(up, hi, lo)
    past = k > f.top
    grows = {"RN": True, "RA": True, "RZ": False, "RP": x > 0, "RM": x < 0}[mode]
    y = table[np.minimum(k, f.top)]
    over = np.inf if f.inf else np.nan
    if saturate:
        over = table[f.top]
    y = np.where(past & grows, over, y)
    y = np.where(np.isinf(x), over, y)
    y = np.copysign(y, x)
    return np.where(np.isnan(x), np.nan, y)


def nearest(name: str, q: Fraction, mode: str = "RN", zero: float = 0.0) -> float:
    """An exact number rounded to a format with infinities. `zero`: what 0 becomes."""
    f = FORMATS[name]
    if q == 0:
        return zero
    sign, m = (-1, -q) if q < 0 else (1, q)
    e = m.numerator.bit_length() - m.denominator.bit_length()
    e -= m < Fraction(2) ** e
    unit = Fraction(2) ** (max(e, f.emin) - f.fraction)
    k, rest = divmod(m, unit)
    half = unit / 2
    k += {
        "RN": rest > half or rest == half and k % 2 == 1,
        "RZ": False,
        "RP": rest > 0 and sign > 0,
        "RM": rest > 0 and sign < 0,
        "RA": rest >= half,
    }[mode]
    y = k * unit
    largest = Fraction(value(name, f.top))
    if y > largest:
        away = {"RN": True, "RA": True, "RZ": False, "RP": sign > 0, "RM": sign < 0}[mode]
        return sign * (math.inf if away else float(largest))
    return math.copysign(float(y), sign)


def exact(op: str, name: str, *xs: float, mode: str = "RN") -> float:
    """add, sub, mul, truediv, fma or sqrt of numbers of a format, rounded once; IEEE 754's special cases."""
    if any(x != x for x in xs):
        return math.nan
    if op == "sqrt":
        return _sqrt(name, *xs, mode)
    if op == "sub":
        op, xs = "add", (xs[0], -xs[1])
    a, b = xs[:2]
    if op == "truediv":
        if b == 0 or math.isinf(a) or math.isinf(b):
            return (
                math.nan
                if a == b == 0 or math.isinf(a) and math.isinf(b)
                else _signed(a, b, 0.0 if math.isinf(b) else math.inf)
            )
        return _signed(a, b, 0.0) if a == 0 else nearest(name, Fraction(a) / Fraction(b), mode)
    if op == "add":
        a, b, c = a, 1.0, b
    else:
        c = xs[2] if op == "fma" else None
    if any(map(math.isinf, (a, b))) or a == 0 or b == 0:
        product = a * b  # no rounding in these
        if c is None or math.isinf(product) or math.isnan(product):
            return product if c is None else product + c
    elif c is None:
        return nearest(name, Fraction(a) * Fraction(b), mode)
    if math.isinf(c):
        return c
    q = Fraction(a) * Fraction(b) + Fraction(c)
    if q:
        return nearest(name, q, mode)
    if _signed(a, b, 1.0) == math.copysign(1.0, c) and (a == 0 or b == 0):
        return c
    return -0.0 if mode == "RM" else 0.0


def _signed(a: float, b: float, x: float) -> float:
    return math.copysign(1.0, a) * math.copysign(1.0, b) * x


def _sqrt(name: str, x: float, mode: str) -> float:
    if x == 0 or x == math.inf:
        return x
    if x < 0:
        return math.nan
    q = Fraction(x)
    shift = 2 * max(0, 130 - q.numerator.bit_length() + q.denominator.bit_length()) + 2 * q.denominator.bit_length()
    scaled = (q.numerator << shift) // q.denominator  # exact: denominators are powers of two
    root = math.isqrt(scaled)
    odd = root * root != scaled  # what is missing only matters for its being there
    return nearest(name, Fraction(2 * root + odd, 2 << (shift // 2)), mode)


def flushed(x: float) -> float:
    """Float32 subnormals as zeros."""
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


# ------------------------------------------------------------------ samples


def specials(name: str) -> list[float]:
    """Zeros, ones, the ends of the range, subnormals, infinities, NaN."""
    f = FORMATS[name]
    tiny, least, top = value(name, int(f.emin > -127)), math.ldexp(1.0, f.emin), value(name, f.top)
    some = [
        0.0,
        1.0,
        1.5,
        2.0,
        3.0,
        0.5,
        tiny,
        3 * tiny,
        least,
        least - tiny,
        top,
        math.ldexp(1.0, f.emin // 2),
        math.inf,
    ]
    if not f.signed:
        return [v or tiny for v in some if v != math.inf] + [math.nan]
    return [s * v for v in some for s in (1.0, -1.0)] + [math.nan]


def sample(name: str, n: int, seed: int = 0, *, near: bool = False) -> np.ndarray:
    """`n` codes of a format, all specials among them; `near`: of magnitudes around one."""
    rng = np.random.default_rng(seed)
    if near:
        floats = np.ldexp(rng.uniform(1, 2, n), rng.integers(-6, 7, n)) * rng.choice([-1.0, 1.0], n)
        return encode(name, floats)
    c = rng.integers(0, 1 << 62, n).astype(np.uint64) * np.uint64(4) + rng.integers(0, 4, n).astype(np.uint64)
    c = c.astype(f"u{width(name) // 8}") if width(name) < 64 else c
    if name == "tfloat32":
        c &= np.uint32(0xFFFFE000)
    s = encode(name, np.array(specials(name)))
    c[: min(len(s), n)] = s[:n]
    return c


def pairs(name: str, n: int = 700, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Codes of operands: specials by specials, close magnitudes, any magnitudes."""
    s = encode(name, np.array(specials(name)))
    near = [sample(name, n, seed + i, near=True) for i in (0, 1)]
    far = [sample(name, n, seed + i)[len(s) :] for i in (2, 3)]
    return (
        np.concatenate([np.repeat(s, len(s)), near[0], far[0]]),
        np.concatenate([np.tile(s, len(s)), near[1], far[1]]),
    )


def encode(name: str, x: Iterable[float]) -> np.ndarray:
    """Codes of numbers, rounded to nearest."""
    x = np.asarray(x, np.float64)
    if name == "float64":
        return x.view(np.uint64)
    with np.errstate(all="ignore"):
        if name == "float32":
            return x.astype(np.float32).view(np.uint32)
        if name == "float16":
            return x.astype(np.float16).view(np.uint16)
        y = rounded(name, x)
        if name == "bfloat16":
            return (y.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        if name == "tfloat32":
            return y.astype(np.float32).view(np.uint32)
    table = _all_values(name)  # unsigned formats: of the magnitudes
    y = y if FORMATS[name].signed else np.abs(y)
    order = {(v, math.copysign(1.0, v)): c for c, v in reversed(list(enumerate(table)))}
    return np.array(
        [order[(v, math.copysign(1.0, v))] if v == v else (1 << FORMATS[name].bits) - 1 for v in y], np.uint8
    )


# ------------------------------------------------------------------ comparing


def assert_within(got, want, bound, name):
    """Within `bound` units in the last place of finite references; specials, and what overflows, exactly."""
    f = FORMATS[name]
    top = math.ldexp(2 - 2.0**-f.fraction, -f.emin + 1)
    unit = np.ldexp(1.0, np.maximum(np.frexp(want)[1] - 1, f.emin) - f.fraction)
    plain = np.isfinite(want) & (np.abs(want) < top) & (want != 0)
    with np.errstate(all="ignore"):
        error = np.abs(got - want) / unit
    bad = np.flatnonzero(plain & ~(error <= bound))
    assert not len(bad), f"{error[bad[0]]} ulp at {bad[0]}: {got[bad[0]]!r} for {want[bad[0]]!r}"
    huge = np.isfinite(want) & (np.abs(want) >= top * (1 + 2.0**-f.fraction))
    same_numbers(got[huge], np.copysign(np.inf, want[huge]))
    rest = ~np.isfinite(want) | (want == 0)
    same_numbers(got[rest], want[rest], name)


def same_numbers(got: np.ndarray, want: np.ndarray, about: object = "") -> None:
    """Equal doubles, signs of zeros included; any NaN equals any NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    ok = got == want
    if got.dtype.kind == "f":
        ok = ok & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
    bad = np.flatnonzero(~ok)
    assert not len(bad), (
        f"{about}: {len(bad)} of {got.size} differ, first at {bad[0]}: got {got[bad[0]]!r}, wanted {want[bad[0]]!r}"
    )


def chosen(a, b, smaller, propagate):
    if a != a or b != b:
        return math.nan if propagate else b if a != a else a
    if a == b == 0:
        negative = [math.copysign(1, v) < 0 for v in (a, b)]
        return -0.0 if (any(negative) if smaller else all(negative)) else 0.0
    return min(a, b) if smaller else max(a, b)

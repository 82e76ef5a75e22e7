"""Formats of floats: what their codes mean, and rounding to them in every mode, without NumPy's own arithmetic.

A *code* is the unsigned integer that encodes a number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

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
    """All finite magnitudes in the order of their codes, and the next one that a larger exponent would give."""
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
    """Doubles rounded to a format of at most 19 bits, as doubles. Overflow gives infinity, or NaN if there is none;
    with `saturate` the largest number.

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


# ------------------------------------------------------------------ encoding


def decoded(name: str, *codes: np.ndarray) -> list[np.ndarray]:
    """The numbers behind the codes of several operands."""
    return [values(name, c) for c in codes]


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
    table = _all_values(name)  # unsigned formats encode magnitudes
    y = y if FORMATS[name].signed else np.abs(y)
    order = {(v, math.copysign(1.0, v)): c for c, v in reversed(list(enumerate(table)))}
    return np.array(
        [order[(v, math.copysign(1.0, v))] if v == v else (1 << FORMATS[name].bits) - 1 for v in y], np.uint8
    )

"""The generator's own types: dtypes, promotion, rounding to a format. From the specification, not from cutile."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class D:
    """A dtype. Values are held in `host`, a NumPy dtype that represents them all."""

    short: str
    name: str  # ct.<name>
    kind: str  # b, i, u, f
    bits: int
    host: np.dtype
    mantissa: int = 0  # fraction bits of a float
    emin: int = 0
    largest: float = 0.0
    restricted: bool = False  # a float without arithmetic
    arrays: bool = True  # can be the dtype of an array

    def __repr__(self) -> str:
        return self.short


def _ints() -> list[D]:
    kinds = (("i", "int"), ("u", "uint"))
    return [D(f"{k}{w}", f"{n}{w}", k, w, np.dtype(f"{n}{w}")) for k, n in kinds for w in (8, 16, 32, 64)]


_F32 = np.dtype(np.float32)
DTYPES = {d.short: d for d in [
    D("b1", "bool_", "b", 8, np.dtype(bool)),
    *_ints(),
    D("f16", "float16", "f", 16, np.dtype(np.float16), 10, -14, 65504.0),
    D("bf16", "bfloat16", "f", 16, np.dtype(ml_dtypes.bfloat16), 7, -126, float.fromhex("0x1.fep127")),
    D("f32", "float32", "f", 32, _F32, 23, -126, float.fromhex("0x1.fffffep127")),
    D("f64", "float64", "f", 64, np.dtype(np.float64), 52, -1022, float.fromhex("0x1.fffffffffffffp1023")),
    D("tf32", "tfloat32", "f", 32, _F32, 10, -126, float.fromhex("0x1.ffcp127"), True, arrays=False),
    D("e4m3", "float8_e4m3fn", "f", 8, np.dtype(ml_dtypes.float8_e4m3fn), 3, -6, 448.0, True),
    D("e5m2", "float8_e5m2", "f", 8, np.dtype(ml_dtypes.float8_e5m2), 2, -14, 57344.0, True),
    D("e8m0", "float8_e8m0fnu", "f", 8, np.dtype(ml_dtypes.float8_e8m0fnu), 0, -127, 2.0**127, True),
    D("e5m3", "float8_e5m3fnu", "f", 8, _F32, 3, -14, 114688.0, True, arrays=False),
    D("e2m1", "float4_e2m1fn", "f", 4, np.dtype(ml_dtypes.float4_e2m1fn), 1, 0, 6.0, True),
]}

INTS = tuple(d for d in DTYPES if d[0] in "iu")
SIGNED = tuple(d for d in INTS if d[0] == "i")
UNSIGNED = tuple(d for d in INTS if d[0] == "u")
FLOATS = ("f16", "bf16", "f32", "f64")
ARITHMETIC = ("b1", *INTS, *FLOATS)
RESTRICTED = ("tf32", "e4m3", "e5m2")
SM100 = ("e8m0", "e5m3", "e2m1")  # dtypes that GPUs before sm_100 lack
_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2}


def category(d: str) -> int:
    """bool < integer < float [PROMO-1]."""
    return _CATEGORY[DTYPES[d].kind]


def promote(a: str, b: str) -> str | None:
    """The common dtype of two run-time operands [PROMO-5]; None where there is none."""
    if a == b:
        return a
    x, y = DTYPES[a], DTYPES[b]
    if x.restricted or y.restricted:
        return None
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if x.kind != y.kind or {a, b} == {"f16", "bf16"}:
        return None
    return a if x.bits > y.bits else b


def with_literal(d: str, literal: int | float) -> str:
    """The common dtype of a tile and a literal [PROMO-3, PROMO-4]."""
    c = 2 if isinstance(literal, float) else 0 if isinstance(literal, bool) else 1
    return d if category(d) >= c else "f32" if c == 2 else "i32"


def span(d: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    x = DTYPES[d]
    return (-(1 << x.bits - 1), (1 << x.bits - 1) - 1) if x.kind == "i" else (0, (1 << x.bits) - 1)


@dataclass(frozen=True)
class T:
    """The type of a tile."""

    dtype: str
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def d(self) -> D:
        return DTYPES[self.dtype]


# ------------------------------------------------------------------ rounding


def round_float(x: np.ndarray, d: D, mode: str = "RN") -> np.ndarray:
    """Numbers rounded to a float format, as longdouble. Overflow is left to the caller."""
    x = np.asarray(x, np.longdouble)
    if d.short == "f64" and mode == "RN":
        return x.astype(np.float64).astype(np.longdouble)
    _, e = np.frexp(np.where(np.isfinite(x), x, 1))
    unit = np.maximum(e - 1, d.emin) - d.mantissa
    scaled = np.ldexp(x, -unit)
    near = {"RN": np.rint, "RZ": np.trunc, "RM": np.floor, "RP": np.ceil, "RA": _away}[mode](scaled)
    y = np.ldexp(near, unit)
    return np.where(np.isfinite(x), np.copysign(y, x), x)


def _away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + np.longdouble(0.5)), x)


def to_float(x: np.ndarray, d: D, mode: str = "RN") -> np.ndarray:
    """Exact numbers (as longdouble) in a float dtype: rounded, then overflow [CAST-6, CAST-7, RM-1]."""
    x = np.asarray(x, np.longdouble)
    y = round_float(x, d, mode)
    over = np.abs(y) > np.longdouble(d.largest)
    if d.short == "e8m0":
        return np.clip(np.asarray(y, np.float64), 2.0**-127, 2.0**127).astype(d.host)
    saturates = d.short in ("e4m3", "e5m2", "e2m1", "e5m3")
    infinite = {"RN": True, "RA": True, "RZ": False, "RM": x < 0, "RP": x > 0}[mode]
    limit = np.where(np.isfinite(x) & ~np.asarray(infinite), np.longdouble(d.largest), np.longdouble(np.inf))
    limit = np.longdouble(d.largest) if saturates else limit
    y = np.where(over, np.copysign(limit, x), y)
    return y.astype(np.float64).astype(d.host) if d.host.itemsize < 4 or d.host.kind == "V" else y.astype(d.host)

"""Operands of a float format, as codes: special numbers, random ones, and pairs of them."""

from __future__ import annotations

import math

import numpy as np

from conformance.harness.number_formats import FORMATS, encode, value, width


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
    """`n` codes of a format, including all specials; with `near`, numbers of magnitudes around one."""
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

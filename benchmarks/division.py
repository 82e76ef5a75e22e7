"""Corrected products against divisions (docs/division.md): python benchmarks/division.py [SAMPLES]

Prints how many differ, on random operands of the domain of float32 and on every mantissa of a divisor. Needs a GPU,
cutile's gpu extra, and PyTorch or CuPy; without them the interpreter runs it on few samples. SAMPLES is for each line,
10**10 by default. The exit code is 1 if a quotient differs.
"""

from __future__ import annotations

import sys

import numpy as np
from _gpu_arrays import libraries

import cutile as ct

INT, TILE, ROUNDS = ct.Constant[int], 1024, 64


@ct.function
def scrambled(h):
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    return h ^ (h >> 16)


@ct.function
def mantissa(h, kind):
    """23 bits: of any kind, near all ones, near all zeros, or few."""
    kind, few = kind & 3, h & 7
    near = ct.where(kind == 1, 0x7FFFFF - few, few)
    return ct.where(kind == 0, h & 0x7FFFFF, ct.where(kind == 3, h & 0x7F8000, near))


@ct.function
def corrected(e, s):
    r = 1.0 / s
    p = e * r
    m = ct.maximum(p * s - e, -3.4028234e38)
    return p - m * r


@ct.function
def differ(e, s):
    """1 where the two are not one number, 0 elsewhere. `corrected` has no division by s that the compiler replaces."""
    q, c = e / s, corrected(e, s)
    same = (ct.bitcast(q, ct.uint32) == ct.bitcast(c, ct.uint32)) | ((q != q) & (c != c))
    return ct.where(same, 0, 1)


@ct.kernel
def random_operands(count, seed: int, s_low: INT, s_high: INT, e_low: INT, e_high: INT):
    """Exponents between these, as the format has them."""
    wrong = ct.zeros((TILE,), ct.int32)
    for j in range(ROUNDS):
        n = ((ct.bid(0) * ROUNDS + j) * TILE + ct.arange(TILE, dtype=ct.int32)) ^ seed
        a = scrambled(n.astype(ct.uint32))
        b = scrambled(a + 0x9E3779B9)
        c = scrambled(b ^ 0x85EBCA6B)
        s = ((c >> 8) % (s_high - s_low + 1) + s_low << 23) | mantissa(b, c >> 2)
        e = (a & 0x80000000) | ((b >> 7) % (e_high - e_low + 1) + e_low << 23) | mantissa(a, c >> 4)
        wrong = wrong + differ(ct.bitcast(e, ct.float32), ct.bitcast(s, ct.float32))
    ct.atomic_add(count, (0,), ct.sum(wrong))


@ct.kernel
def every_mantissa(count, seed: int):
    """Of s, each with mantissas of e at random and near its own; both in [1, 2)."""
    m = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    s, wrong = ct.bitcast(m | 0x3F800000, ct.float32), ct.zeros((TILE,), ct.int32)
    for j in range(ROUNDS):
        h = scrambled((m * ROUNDS + j ^ seed).astype(ct.uint32))
        near = (m + (j - ROUNDS // 2)).astype(ct.uint32)
        for e in ct.static_iter((h, near)):
            wrong = wrong + differ(ct.bitcast(e & 0x7FFFFF | 0x3F800000, ct.float32), s)
    ct.atomic_add(count, (0,), ct.sum(wrong))


def count(lib, kernel, blocks: int, launches: int, *args) -> int:
    found = np.zeros(1, np.int32)
    array = lib.to_device(found) if lib else found
    stream = lib.current() if lib else None
    for k in range(launches):
        ct.launch(stream, (blocks,), kernel, (array, 0x1234567 * k, *args))
    return int((lib.to_host(array) if lib else found)[0])


def main(samples: int) -> int:
    lib = next(iter(libraries()), None)
    blocks = 65536 if lib else 16
    samples = samples if lib else min(samples, 1 << 21)
    launches = max(1, samples // (blocks * ROUNDS * TILE))
    wrong = 0
    rows = (("s in [2^-45, 2^45), e in [2^-80, 2^80)", (82, 171, 47, 206)),
            ("s in [2^-45, 2^45), e infinite or NaN", (82, 171, 255, 255)),
            ("s and e in [1, 2)", (127, 127, 127, 127)), ("s in [1, 2), e in [1/2, 1)", (127, 127, 126, 126)))
    for text, exponents in rows:
        found = count(lib, random_operands, blocks, launches, *exponents)
        wrong += found
        print(f"{text}: {found} of {launches * blocks * ROUNDS * TILE:.2e} differ")
    blocks = (1 << 23) // TILE if lib else 4
    found = count(lib, every_mantissa, blocks, launches)
    print(f"every mantissa of s: {found} of {launches * blocks * ROUNDS * 2 * TILE:.2e} differ")
    return int(wrong + found > 0)


if __name__ == "__main__":
    sys.exit(main(int(float(sys.argv[1])) if sys.argv[1:] else 10**10))

"""Rows for Triton's interpreter. Import it only after TRITON_INTERPRET=1 is in the environment.

It runs one block after another, at about a third of a millisecond an op, so only the first blocks of a grid are run,
and the time is taken for all. What they write is compared with the result.
"""

from __future__ import annotations

import time

import numpy as np
import triton
import triton.language as tl
from _row import Row
from _triton import HostArray, softmax

BLOCKS = 8  # of a grid, that are run


@triton.jit
def embed(table, words, y, T: tl.constexpr, W: tl.constexpr):
    i, at = tl.program_id(0), tl.arange(0, T)
    word = tl.load(words + i)
    tl.store(y + i * W + at, tl.load(table + word * W + at, mask=at < W), mask=at < W)


@triton.jit
def norm(x, w, y, COLS: tl.constexpr):
    col = tl.arange(0, COLS)
    at = tl.program_id(0) * COLS + col
    t = tl.load(x + at).to(tl.float32)
    r = tl.rsqrt(tl.sum(t * t, axis=0) / COLS + 1e-5)
    tl.store(y + at, (t * r * tl.load(w + col).to(tl.float32)).to(tl.float16))


@triton.jit
def bits(x, y, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    n = tl.load(x + at)
    n = n - ((n >> 1) & 0x55555555)
    n = (n & 0x33333333) + ((n >> 2) & 0x33333333)
    n = (n + (n >> 4)) & 0x0F0F0F0F
    tl.store(y + at, (n * 0x01010101) >> 24)


@triton.jit
def prefix(x, y, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + at, tl.cumsum(tl.load(x + at), axis=0))


@triton.jit
def axpy(x, y, z, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    tl.store(z + at, 0.5 * tl.load(x + at) + tl.load(y + at))


@triton.jit
def sparse(values, columns, x, y, T: tl.constexpr, W: tl.constexpr):
    row = tl.program_id(0) * T + tl.arange(0, T)
    at = row[:, None] * W + tl.arange(0, W)[None, :]
    tl.store(y + row, tl.sum(tl.load(values + at) * tl.load(x + tl.load(columns + at)), axis=1))


@triton.jit
def search(table, x, y, T: tl.constexpr, N: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    sought = tl.load(x + at)
    low = tl.zeros((T,), tl.int32)
    high = low + N
    for _ in range(13):
        middle = (low + high) >> 1
        less = (low < high) & (tl.load(table + middle, mask=middle < N) < sought)
        low, high = tl.where(less, middle + 1, low), tl.where(less, high, middle)
    tl.store(y + at, low)


@triton.jit
def ranks(keys, counts, y, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    tl.store(y + at, tl.atomic_add(counts + tl.load(keys + at), 1))


@triton.jit
def scatter(x, at, y, T: tl.constexpr):
    i = tl.program_id(0) * T + tl.arange(0, T)
    tl.store(y + tl.load(at + i), tl.load(x + i))


@triton.jit
def sums(x, ends, y, T: tl.constexpr):
    i = tl.program_id(0)
    first, last = tl.load(ends + i), tl.load(ends + i + 1)
    acc = tl.zeros((T,), tl.float32)
    for at in range(first, last, T):
        k = at + tl.arange(0, T)
        acc += tl.load(x + k, mask=k < last, other=0)
    tl.store(y + i, tl.sum(acc, axis=0))


@triton.jit
def move(points, matrix, y, T: tl.constexpr):
    row, c = tl.program_id(0) * T + tl.arange(0, T), tl.arange(0, 4)
    p = tl.load(points + row[:, None] * 4 + c[None, :])
    m = tl.load(matrix + c[:, None] * 4 + c[None, :])
    tl.store(y + row[:, None] * 4 + c[None, :], tl.sum(p[:, :, None] * m[None, :, :], axis=1))


@triton.jit
def gate(scores, y, T: tl.constexpr, E: tl.constexpr):
    expert = tl.arange(0, E)[None, :]
    at = (tl.program_id(0) * T + tl.arange(0, T))[:, None] * E + expert
    s = tl.load(scores + at)
    e = tl.exp(s - tl.max(s, axis=1)[:, None])
    p = e / tl.sum(e, axis=1)[:, None]
    first = expert == tl.argmax(p, axis=1)[:, None]
    second = expert == tl.argmax(tl.where(first, -1.0, p), axis=1)[:, None]
    kept = tl.where(first | second, p, 0.0)
    tl.store(y + at, kept / tl.sum(kept, axis=1)[:, None])


@triton.jit
def gelu(x, y, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    t = tl.load(x + at)
    u = 0.7978845608 * (t + 0.044715 * t * t * t)
    tl.store(y + at, 0.5 * t * (1 + (1 - 2 / (tl.exp(2 * u) + 1))))


@triton.jit
def convolve(x, w, y, TY: tl.constexpr, TX: tl.constexpr):
    row = (tl.program_id(0) * TY + tl.arange(0, TY))[:, None]
    col = (tl.program_id(1) * TX + tl.arange(0, TX))[None, :]
    acc = tl.zeros((TY, TX), tl.float32)
    for a in range(3):
        for b in range(3):
            r, c = row + (a - 1), col + (b - 1)
            inside = (r >= 0) & (r < 512) & (c >= 0) & (c < 512)
            acc += tl.load(w + a * 3 + b) * tl.load(x + r * 512 + c, mask=inside, other=0)
    tl.store(y + row * 512 + col, acc)


@triton.jit
def life(x, y, N: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr):
    row = (tl.program_id(0) * TY + tl.arange(0, TY))[:, None]
    col = (tl.program_id(1) * TX + tl.arange(0, TX))[None, :]
    n = tl.zeros((TY, TX), tl.int32)
    for a in range(3):
        for b in range(3):
            if a != 1 or b != 1:
                n += tl.load(x + (row + (a - 1) + N) % N * N + (col + (b - 1) + N) % N)
    alive = tl.load(x + row * N + col)
    tl.store(y + row * N + col, tl.where((n == 3) | ((alive == 1) & (n == 2)), 1, 0))


# name of the row -> kernel, constants if they are not those of the row
KERNELS = {
    "embedding, clipped tiles": (embed, (1024, 768)),
    "softmax f64": (softmax, None),
    "rms norm f16": (norm, None),
    "counting bits": (bits, None),
    "prefix sums f32": (prefix, None),
    "65,536 blocks of 16": (axpy, None),
    "sparse matrix by vector": (sparse, None),
    "binary search": (search, None),
    "ranks by key, old values": (ranks, None),
    "scatter, a permutation": (scatter, None),
    "sums of segments": (sums, None),
    "points by a 4×4 matrix": (move, None),
    "gates of 8 experts": (gate, None),
    "gelu, 4 blocks of 2^18": (gelu, None),
    "convolution 3×3 by gathers": (convolve, None),
    "cellular automaton": (life, None),
}


def seconds(row: Row) -> float | None:
    """Seconds for the grid of a row. None if there is no kernel for it here."""
    if row.name not in KERNELS:
        return None
    kernel, constants = KERNELS[row.name]
    some = min(row.grid[0], max(1, BLOCKS // int(np.prod(row.grid[1:]))))
    inputs, output = row.inputs(), row.output()
    expected, unwritten = row.expected(row.inputs()), np.iinfo(np.int8).max
    output[...] = unwritten
    arrays = [HostArray(a) for a in (*inputs, output)]
    start = time.perf_counter()
    kernel[(some, *row.grid[1:])](*arrays, *(row.constants if constants is None else constants))
    spent = time.perf_counter() - start
    written = output != unwritten
    if not written.any():
        raise AssertionError(f"{row.name}: Triton wrote nothing")
    row.verify("Triton", np.where(written, output, expected), expected)
    return spent * row.grid[0] / some

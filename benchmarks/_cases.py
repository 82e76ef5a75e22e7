"""The measured work: inputs, the float64 result, and NumPy code that does it in three ways.

`plain` is code without tiles. `loop` takes one block at a time, as the kernel does. `batched` is the best that we can
write by hand under the rules of the interpreter: the kernel's own steps, for chunks of blocks that stay in the cache,
in reused buffers, with exponentials in float64 and fma rounded once. It checks indices first, because NumPy and
`np.add.at`, which stands for an atomic update, count negative ones from the end; the plain way of a histogram is
`np.bincount`. This module does not import cutile, because it also measures the memory of plain NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

F32 = np.float32
LOG2_E = math.log2(math.e)


@dataclass(frozen=True)
class Case:
    """`inputs()` gives arrays; each way gets these and the output. `tolerance` is the allowed relative error."""

    name: str
    inputs: Callable[[], tuple[np.ndarray, ...]]
    output: Callable[[], np.ndarray]
    exact: Callable[..., np.ndarray]
    plain: Callable[..., None]
    loop: Callable[..., None]
    batched: Callable[..., None]
    tolerance: float
    accumulates: bool = False  # adds to its output, which starts as zeros


def random(*shape: int, seed: int = 0, dtype=F32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=F32).astype(dtype, copy=False)


def fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x*y + z in float64, rounded to float32 once: if the float64 sum lies exactly half way, its own error decides."""
    p = np.multiply(x, y, dtype=np.float64)  # exact
    s = p + z
    half = (s.view(np.uint64) & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)
    if half.any():
        t, p, z = (np.broadcast_to(v, s.shape)[half] for v in (s, p, z))  # there are few
        v = t - p
        error = (p - (t - v)) + (z - v)
        s[half] = np.nextafter(t, np.where(error == 0, t, np.where(error > 0, np.inf, -np.inf)))
    return s.astype(F32)


def round_to_f16(x: np.ndarray) -> np.ndarray:
    """float32 between -65504 and 65504 to the nearest float16, in float32: add and subtract a fitting power of two."""
    power = x.view(np.uint32) & np.uint32(0x7F800000)
    np.maximum(power, np.uint32(113 << 23), out=power)
    power += np.uint32(13 << 23)
    magic = power.view(F32)
    magic *= F32(1.5)
    x += magic
    x -= magic
    return x


# ------------------------------------------------------------------ vector add, 2**20 elements in tiles of 1024

N, T = 1 << 20, 1024


def add_plain(a, b, c):
    c[...] = a + b


def add_loop(a, b, c):
    for i in range(0, N, T):
        x, y = a[i:i + T], b[i:i + T]
        c[i:i + T] = x + y


def add_batched(a, b, c):
    for i in range(0, N, 32 * T):
        np.add(a[i:i + 32 * T], b[i:i + 32 * T], out=c[i:i + 32 * T])


# ------------------------------------------------------------------ softmax and layer norm, one row of 1024 a block

ROWS, COLS, EPS = 1024, 1024, F32(1e-5)
CHUNK = 64  # rows of float32: 256 KB


def softmax_plain(x, y):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    y[...] = e / e.sum(axis=1, keepdims=True)


def softmax_loop(x, y):
    for i in range(ROWS):
        t = x[i:i + 1]
        e = np.exp(t - t.max(axis=1, keepdims=True))
        y[i:i + 1] = e / e.sum(axis=1, keepdims=True)


def softmax_batched(x, y):
    t = np.empty((CHUNK, COLS), F32)
    for i in range(0, ROWS, CHUNK):
        part = x[i:i + CHUNK]
        np.subtract(part, part.max(axis=1, keepdims=True), out=t)
        np.exp(t, out=t, dtype=np.float64, casting="same_kind")
        np.divide(t, t.sum(axis=1, keepdims=True), out=y[i:i + CHUNK])


def softmax_exact(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def norm_plain(x, w, b, y):
    d = x - x.mean(axis=1, keepdims=True)
    y[...] = d * (1 / np.sqrt((d * d).mean(axis=1, keepdims=True) + EPS)) * w + b


def norm_loop(x, w, b, y):
    for i in range(ROWS):
        norm_plain(x[i:i + 1], w, b, y[i:i + 1])


def norm_batched(x, w, b, y):
    d, sq = np.empty((2, CHUNK, COLS), F32)
    w64, b64 = w.astype(np.float64), b.astype(np.float64)
    for i in range(0, ROWS, CHUNK):
        part = x[i:i + CHUNK]
        np.subtract(part, part.sum(axis=1, keepdims=True) / F32(COLS), out=d)
        np.multiply(d, d, out=sq)
        variance = sq.sum(axis=1, keepdims=True) / F32(COLS) + EPS
        d *= (1 / np.sqrt(variance.astype(np.float64))).astype(F32)
        y[i:i + CHUNK] = fma(d, w64, b64)


def norm_exact(x, w, b):
    x = x.astype(np.float64)
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + float(EPS)) * w + b


# ------------------------------------------------------------------ matmul 512 x 512 x 512 in tiles of 64 x 64 x 32

M, TM, TK = 512, 64, 32


def matmul_plain(a, b, c):
    c[...] = a.astype(F32) @ b.astype(F32)


def matmul_loop(a, b, c):
    for i in range(0, M, TM):
        for j in range(0, M, TM):
            acc = np.zeros((TM, TM), F32)
            for k in range(0, M, TK):
                acc += a[i:i + TM, k:k + TK].astype(F32) @ b[k:k + TK, j:j + TM].astype(F32)
            c[i:i + TM, j:j + TM] = acc


def matmul_batched(a, b, c):
    n, rows = M // TM, 4  # rows of tiles at a time: 512 KB of accumulators
    a, b = a.astype(F32), b.astype(F32)
    left = a.reshape(n, 1, TM, M)
    right = b.reshape(1, M, n, TM).swapaxes(1, 2)
    acc, part = np.empty((2, rows, n, TM, TM), F32)
    for i in range(0, n, rows):
        acc[...] = 0
        for k in range(0, M, TK):
            np.matmul(left[i:i + rows, ..., k:k + TK], right[:, :, k:k + TK], out=part)
            acc += part
        c[i * TM:(i + rows) * TM].reshape(rows, TM, n, TM)[...] = acc.swapaxes(1, 2)


# ------------------------------------------------------------------ attention 1 x 4 x 512 x 64, tiles of 64

HEADS, LENGTH, D = 4, 512, 64
SCALE = F32(LOG2_E / math.sqrt(D))  # scores in units of log 2


def attention_plain(q, k, v, out):
    q, k, v = q.astype(F32), k.astype(F32), v.astype(F32)
    s = q @ k.swapaxes(-1, -2) * F32(1 / math.sqrt(D))
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    out[...] = (p / p.sum(axis=-1, keepdims=True)) @ v


def attention_loop(q, k, v, out):
    for h in range(HEADS):
        for i in range(0, LENGTH, TM):
            query = q[0, h, i:i + TM].astype(F32)
            top, total, acc = np.full((TM, 1), -np.inf, F32), np.zeros((TM, 1), F32), np.zeros((TM, D), F32)
            for j in range(0, LENGTH, TM):
                s = query @ k[0, h, j:j + TM].astype(F32).T * SCALE
                new_top = np.maximum(top, s.max(axis=1, keepdims=True))
                p, shrink = np.exp2(s - new_top), np.exp2(top - new_top)
                total = total * shrink + p.sum(axis=1, keepdims=True)
                acc = acc * shrink + p @ v[0, h, j:j + TM].astype(F32)
                top = new_top
            out[0, h, i:i + TM] = acc / total


def attention_batched(q, k, v, out):
    n = LENGTH // TM
    queries = q[0].astype(F32).reshape(HEADS, n, TM, D)
    keys = k[0].astype(F32).reshape(HEADS, 1, LENGTH, D)
    values = v[0].astype(F32).reshape(HEADS, 1, LENGTH, D)
    top = np.full((HEADS, n, TM, 1), -np.inf, F32)
    total, acc, part = np.zeros_like(top), np.zeros_like(queries), np.empty_like(queries)
    s = np.empty((HEADS, n, TM, TM), F32)
    for j in range(0, LENGTH, TM):
        np.matmul(queries, keys[:, :, j:j + TM].swapaxes(-1, -2), out=s)
        s *= SCALE
        new_top = np.maximum(top, s.max(axis=-1, keepdims=True))
        s -= new_top
        np.exp2(s, out=s, dtype=np.float64, casting="same_kind")
        shrink = np.exp2((top - new_top).astype(np.float64)).astype(F32)
        total = fma(total, shrink, s.sum(axis=-1, keepdims=True))
        round_to_f16(s)
        np.matmul(s, values[:, :, j:j + TM], out=part)
        acc *= shrink
        acc += part
        top = new_top
    out[...] = (acc / total).reshape(out.shape)


def attention_exact(q, k, v):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = q @ k.swapaxes(-1, -2) / math.sqrt(D)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ v


# ------------------------------------------------------------------ histogram and gather, 2**18 elements, tiles of 1024

COUNT, BINS = 1 << 18, 256


def histogram_plain(x, counts):
    counts += np.bincount(x, minlength=BINS)


def histogram_loop(x, counts):
    for i in range(0, COUNT, T):
        np.add.at(counts, x[i:i + T], np.int32(1))


def histogram_batched(x, counts):
    for i in range(0, COUNT, 32 * T):
        at = x[i:i + 32 * T]
        if at.view(np.uint32).max() >= BINS:  # negative ones are the largest
            raise IndexError
        np.add.at(counts, at, np.int32(1))


def gather_plain(x, index, y):
    y[...] = x[index]


def gather_loop(x, index, y):
    for i in range(0, COUNT, T):
        y[i:i + T] = x[index[i:i + T]]


def gather_batched(x, index, y):
    for i in range(0, COUNT, 32 * T):
        at = index[i:i + 32 * T]
        if at.view(np.uint32).max() >= COUNT:
            raise IndexError
        np.take(x, at, out=y[i:i + 32 * T], mode="clip")


# ------------------------------------------------------------------ the table

CASES = {c.name: c for c in (
    Case("vector add", lambda: (random(N), random(N, seed=1)), lambda: np.empty(N, F32),
         lambda a, b: a.astype(np.float64) + b, add_plain, add_loop, add_batched, 1e-6),
    Case("softmax", lambda: (random(ROWS, COLS),), lambda: np.empty((ROWS, COLS), F32), softmax_exact,
         softmax_plain, softmax_loop, softmax_batched, 1e-5),
    Case("layer norm", lambda: (random(ROWS, COLS), random(COLS, seed=1), random(COLS, seed=2)),
         lambda: np.empty((ROWS, COLS), F32), norm_exact, norm_plain, norm_loop, norm_batched, 1e-5),
    Case("matmul f16", lambda: (random(M, M, dtype=np.float16), random(M, M, seed=1, dtype=np.float16)),
         lambda: np.empty((M, M), F32), lambda a, b: a.astype(np.float64) @ b.astype(np.float64),
         matmul_plain, matmul_loop, matmul_batched, 1e-3),
    Case("attention f16", lambda: tuple(random(1, HEADS, LENGTH, D, seed=s, dtype=np.float16) for s in range(3)),
         lambda: np.empty((1, HEADS, LENGTH, D), np.float16), attention_exact, attention_plain, attention_loop,
         attention_batched, 1e-2),
    Case("histogram", lambda: (np.random.default_rng(0).integers(0, BINS, COUNT, dtype=np.int32),),
         lambda: np.zeros(BINS, np.int32), lambda x: np.bincount(x, minlength=BINS), histogram_plain,
         histogram_loop, histogram_batched, 0, accumulates=True),
    Case("gather", lambda: (random(COUNT), np.random.default_rng(0).integers(0, COUNT, COUNT, dtype=np.int32)),
         lambda: np.empty(COUNT, F32), lambda x, index: x[index], gather_plain, gather_loop, gather_batched, 0),
)}


def verify(case: Case, way: str, output: np.ndarray, exact: np.ndarray) -> None:
    """Fail if a result is wrong: only right results are timed."""
    if not np.allclose(output.astype(np.float64), exact, rtol=case.tolerance, atol=case.tolerance):
        worst = np.abs(output - exact).max()
        raise AssertionError(f"{case.name}: {way} is wrong by {worst:.3g}")

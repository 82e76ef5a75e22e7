"""The measured cutile kernels, and how each is launched."""

from __future__ import annotations

import functools
import math

import numpy as np
from _cases import COLS, COUNT, EPS, HEADS, LENGTH, LOG2_E, ROWS, TK, TM, D, M, N, T

import cutile as ct

SCALE = LOG2_E / math.sqrt(D)


@ct.kernel
def add(a, b, c, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(c, i, ct.load(a, i, TILE) + ct.load(b, i, TILE))


@ct.kernel
def softmax(x, y, COLS: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, COLS))
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, (i, 0), e / ct.sum(e, axis=1, keepdims=True))


@ct.kernel
def layer_norm(x, w, b, y, eps: ct.Constant[float], COLS: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, COLS))
    d = t - ct.sum(t, axis=1, keepdims=True) / COLS
    r = ct.rsqrt(ct.sum(d * d, axis=1, keepdims=True) / COLS + eps)
    ct.store(y, (i, 0), d * r * ct.load(w, 0, COLS) + ct.load(b, 0, COLS))


@ct.kernel
def matmul(a, b, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.num_tiles(a, 1, (TM, TK))):
        acc = ct.mma(ct.load(a, (i, k), (TM, TK)), ct.load(b, (k, j), (TK, TN)), acc)
    ct.store(c, (i, j), acc)


@ct.kernel
def attention(q, k, v, out, scale: ct.Constant[float], TM: ct.Constant[int], TN: ct.Constant[int],
              D: ct.Constant[int], CAUSAL: ct.Constant[bool]):
    i, h = ct.bid(0), ct.bid(1)
    query = ct.load(q, (0, h, i, 0), (1, 1, TM, D)).reshape((TM, D))
    row = i * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    top = ct.full((TM, 1), -math.inf, ct.float32)
    total = ct.zeros((TM, 1), ct.float32)
    acc = ct.zeros((TM, D), ct.float32)
    steps = ct.num_tiles(k, 2, (1, 1, TN, D))
    if CAUSAL:
        steps = min(steps, ct.cdiv((i + 1) * TM, TN))
    for j in range(steps):
        keys = ct.load(k, (0, h, 0, j), (1, 1, D, TN), order=(0, 1, 3, 2)).reshape((D, TN))
        s = ct.mma(query, keys, ct.zeros((TM, TN), ct.float32)) * scale
        if CAUSAL:
            s = ct.where(j * TN + ct.arange(TN, dtype=ct.int32)[None, :] <= row, s, -math.inf)
        new_top = ct.maximum(top, ct.max(s, axis=1, keepdims=True))
        p = ct.exp2(s - new_top)
        shrink = ct.exp2(top - new_top)
        total = total * shrink + ct.sum(p, axis=1, keepdims=True)
        values = ct.load(v, (0, h, j, 0), (1, 1, TN, D)).reshape((TN, D))
        acc = ct.mma(p.astype(v.dtype), values, acc * shrink)
        top = new_top
    ct.store(out, (0, h, i, 0), (acc / total).astype(out.dtype).reshape((1, 1, TM, D)))


@ct.kernel
def histogram(x, counts, TILE: ct.Constant[int]):
    ct.atomic_add(counts, ct.load(x, ct.bid(0), TILE), 1)


@ct.kernel
def gather(x, index, y, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(y, i, ct.gather(x, ct.load(index, i, TILE)))


@ct.kernel
def newton(x, y, TILE: ct.Constant[int]):
    """Square roots; every block iterates until its own tile is good, so blocks leave the loop at different times."""
    i = ct.bid(0)
    a = ct.load(x, i, TILE)
    r = a
    steps = 0
    while steps < 60 and ct.max(ct.abs(r * r - a) / a) > 1e-5:
        r = 0.5 * (r + a / r)
        steps += 1
    ct.store(y, i, r)


# name of the case -> kernel, grid, arguments after the arrays
LAUNCHES = {
    "vector add": (add, (N // T,), (T,)),
    "softmax": (softmax, (ROWS,), (COLS,)),
    "layer norm": (layer_norm, (ROWS,), (float(EPS), COLS)),
    "matmul f16": (matmul, (M // TM, M // TM), (TM, TM, TK)),
    "attention f16": (attention, (LENGTH // TM, HEADS), (SCALE, TM, TM, D, False)),
    "histogram": (histogram, (COUNT // T,), (T,)),
    "gather": (gather, (COUNT // T,), (T,)),
}


def launcher(name: str, arrays: tuple, fresh: bool = False):
    """A function that runs the case; `fresh` compiles the kernel anew."""
    kernel, grid, constants = LAUNCHES[name]
    if fresh:
        kernel = ct.kernel(kernel.function)  # which has no programs or plans yet
    return functools.partial(ct.launch, None, grid, kernel, (*arrays, *constants))


def divergent() -> dict:
    """Launches whose blocks take different branches, to compare schedules."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 1, HEADS, LENGTH, D)).astype(np.float16)
    x = np.exp2(rng.uniform(0, 40, (1024, 1)) + rng.uniform(0, 1, (1024, 256))).astype(np.float32).reshape(-1)
    causal, roots = np.empty_like(q), np.empty_like(x)
    return {
        "causal attention f16": (functools.partial(
            ct.launch, None, (LENGTH // TM, HEADS), attention, (q, k, v, causal, SCALE, TM, TM, D, True)), causal),
        "while per block": (functools.partial(ct.launch, None, (1024,), newton, (x, roots, 256)), roots),
    }

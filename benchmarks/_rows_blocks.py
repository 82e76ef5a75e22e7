"""Rows of unlike blocks: many small ones, few large ones, and blocks that part."""

from __future__ import annotations

import numpy as np
from _row import F16, F32, I32, Row, blocks, integers, normal

import cutile as ct

# ------------------------------------------------------------------ many small blocks, few large ones

COUNT, SMALL = 1 << 20, 16


def axpy_plain(x, y, z):
    np.multiply(x, F32(0.5), out=z)
    z += y


@ct.kernel
def axpy(x, y, z, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(z, i, 0.5 * ct.load(x, i, T) + ct.load(y, i, T))


LARGE = 1 << 18


def gelu_plain(x, y):
    y[...] = F32(0.5) * x * (1 + np.tanh(F32(0.7978845608) * (x + F32(0.044715) * x * x * x)))


@ct.kernel
def gelu(x, y, T: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, i, T)
    ct.store(y, i, 0.5 * t * (1 + ct.tanh(0.7978845608 * (t + 0.044715 * t * t * t))))


TEXTS, WORDS, WIDE = 16, 50257, 65536


def best_plain(x, y):
    t = x.astype(F32)
    e = np.exp(t - t.max(axis=1, keepdims=True))
    y[:, 0], y[:, 1] = t.argmax(axis=1), e.max(axis=1) / e.sum(axis=1)


@ct.kernel
def best(x, y, T: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, T), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
    e = ct.exp(t - ct.max(t))
    ct.scatter(y, (i, 0), ct.argmax(t).astype(ct.float32))
    ct.scatter(y, (i, 1), ct.max(e) / ct.sum(e))


# ------------------------------------------------------------------ blocks that part

STARTS, TOGETHER = 1 << 14, 16


def collatz_plain(x, y):
    n, steps = x.astype(np.int64), np.zeros(x.shape, I32)
    while (n != 1).any():
        going = n != 1
        n = np.where(going, np.where(n & 1, 3 * n + 1, n >> 1), 1)
        steps += going
    y[...] = steps


@ct.kernel
def collatz(x, y, T: ct.Constant[int]):
    i = ct.bid(0)
    n, steps = ct.load(x, i, T).astype(ct.int64), ct.zeros((T,), ct.int32)
    while ct.max(n) > 1:
        going = n != 1
        n = ct.where(going, ct.where((n & 1) == 1, 3 * n + 1, n >> 1), 1)
        steps = steps + going.astype(ct.int32)
    ct.store(y, i, steps)


RAGGED, LONGEST, PIECE = 1024, 1024, 128


def ragged_plain(x, lengths, y):
    t = np.where(np.arange(LONGEST) < lengths[:, None], x, -np.inf)
    e = np.exp(t - t.max(axis=1, keepdims=True))
    y[...] = e / e.sum(axis=1, keepdims=True)


@ct.kernel
def ragged(x, lengths, y, T: ct.Constant[int], N: ct.Constant[int]):
    i = ct.bid(0)
    length = ct.gather(lengths, i)
    top, total = ct.full((), -np.inf, ct.float32), ct.zeros((), ct.float32)
    for k in range(ct.cdiv(length, T)):
        inside = k * T + ct.arange(T, dtype=ct.int32) < length
        t = ct.where(inside, ct.load(x, (i, k), (1, T)).reshape((T,)), -np.inf)
        new = ct.maximum(top, ct.max(t))
        total = total * ct.exp(top - new) + ct.sum(ct.exp(t - new))
        top = new
    for k in range(N // T):
        inside = k * T + ct.arange(T, dtype=ct.int32) < length
        t = ct.exp(ct.load(x, (i, k), (1, T)) - top) / total
        ct.store(y, (i, k), ct.where(inside[None, :], t, 0))


KINDS, MIXED, T = 3, 1 << 18, 256


def mixed_plain(x, kind, y):
    t, k = x.reshape(-1, T), kind[:, None]
    y[...] = np.select([k == 0, k == 1], [np.maximum(t, 0), t * t], np.abs(t) + 1).reshape(y.shape)


def mixed_loop(x, kind, y):
    for i, k in enumerate(kind.tolist()):
        t = x[i * T:(i + 1) * T]
        y[i * T:(i + 1) * T] = np.maximum(t, 0) if k == 0 else t * t if k == 1 else np.abs(t) + 1


@ct.kernel
def mixed(x, kind, y, T: ct.Constant[int]):
    i = ct.bid(0)
    k = ct.gather(kind, i)
    t = ct.load(x, i, T)
    if k == 0:
        t = ct.maximum(t, 0)
    elif k == 1:
        t = t * t
    else:
        t = ct.abs(t) + 1
    ct.store(y, i, t)


ROWS = (
    Row("65,536 blocks of 16", lambda: (normal(COUNT), normal(COUNT, seed=1)), lambda: np.empty(COUNT, F32), axpy_plain,
        blocks(axpy_plain, SMALL), axpy, (COUNT // SMALL,), (SMALL,), 1e-5),
    Row("gelu, 4 blocks of 2^18", lambda: (normal(4 * LARGE),), lambda: np.empty(4 * LARGE, F32), gelu_plain,
        blocks(gelu_plain, LARGE), gelu, (4,), (LARGE,), 1e-5),
    Row("top 1 of 50,257", lambda: (normal(TEXTS, WORDS, dtype=F16),), lambda: np.empty((TEXTS, 2), F32), best_plain,
        blocks(best_plain, 1), best, (TEXTS,), (WIDE,), 1e-4),
    Row("collatz, while by block", lambda: (integers(1, 1 << 12, STARTS),), lambda: np.empty(STARTS, I32),
        collatz_plain, blocks(collatz_plain, TOGETHER), collatz, (STARTS // TOGETHER,), (TOGETHER,)),
    Row("rows of unlike length", lambda: (normal(RAGGED, LONGEST), integers(1, LONGEST + 1, RAGGED)),
        lambda: np.empty((RAGGED, LONGEST), F32), ragged_plain, blocks(ragged_plain, 1), ragged, (RAGGED,),
        (PIECE, LONGEST), 1e-5),
    Row("three branches by block", lambda: (normal(MIXED), integers(0, KINDS, MIXED // T)),
        lambda: np.empty(MIXED, F32), mixed_plain, mixed_loop, mixed, (MIXED // T,), (T,), 1e-6),
)

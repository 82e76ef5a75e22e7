"""Rows of arithmetic: float64, short floats, integers and bits, scans, transcendental functions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from _row import F16, F32, F64, I32, Row, blocks, integers, normal

import cutile as ct

BF16 = ml_dtypes.bfloat16
EPS = 1e-5

# ------------------------------------------------------------------ rows of float64, float16 and bfloat16

ROWS_, COLS = 512, 1024


def softmax_plain(x, y):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    y[...] = e / e.sum(axis=1, keepdims=True)


@ct.kernel
def softmax(x, y, COLS: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, COLS))
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, (i, 0), e / ct.sum(e, axis=1, keepdims=True))


def norm_plain(x, w, y):
    t = x.astype(F32)
    y[...] = (t / np.sqrt((t * t).mean(axis=1, keepdims=True) + F32(EPS)) * w.astype(F32)).astype(y.dtype)


@ct.kernel
def norm(x, w, y, COLS: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, COLS)).astype(ct.float32)
    r = ct.rsqrt(ct.sum(t * t, axis=1, keepdims=True) / COLS + EPS)
    ct.store(y, (i, 0), (t * r * ct.load(w, 0, COLS).astype(ct.float32)).astype(y.dtype))


LENGTH, HEADS, DIM = 1024, 8, 64


def rotary_inputs():
    angle = np.arange(LENGTH)[:, None] / 10000 ** (np.arange(DIM // 2) / (DIM // 2))
    return normal(LENGTH, HEADS, DIM, dtype=F16), np.cos(angle).astype(F32), np.sin(angle).astype(F32)


def rotary_plain(x, cos, sin, y):
    t, half, c, s = x.astype(F32), DIM // 2, cos[:, None], sin[:, None]
    y[..., :half] = t[..., :half] * c - t[..., half:] * s
    y[..., half:] = t[..., half:] * c + t[..., :half] * s


@ct.kernel
def rotary(x, cos, sin, y, HEADS: ct.Constant[int], HALF: ct.Constant[int]):
    i = ct.bid(0)
    c, s = ct.load(cos, (i, 0), (1, HALF))[None], ct.load(sin, (i, 0), (1, HALF))[None]
    a = ct.load(x, (i, 0, 0), (1, HEADS, HALF)).astype(ct.float32)
    b = ct.load(x, (i, 0, 1), (1, HEADS, HALF)).astype(ct.float32)
    ct.store(y, (i, 0, 0), (a * c - b * s).astype(y.dtype))
    ct.store(y, (i, 0, 1), (b * c + a * s).astype(y.dtype))


# ------------------------------------------------------------------ matmul with 4-bit weights, scales by 32 rows

M, K, N, TM, TN, TK = 64, 512, 512, 64, 64, 32


def int4_inputs():
    scales = np.abs(normal(K // TK, N, seed=2)) / 8
    return normal(M, K, dtype=F16), integers(0, 256, K // 2, N, seed=1, dtype=np.uint8), scales.astype(F16)


def int4_plain(x, w, scales, y):
    low, high = (w & 15).astype(F32) - 8, (w >> 4).astype(F32) - 8
    weights = np.stack([low, high], axis=1).reshape(K, -1)
    weights = (weights.reshape(K // TK, TK, -1) * scales.astype(F32)[:, None]).astype(F16).reshape(weights.shape)
    y[...] = x.astype(F32) @ weights.astype(F32)


def int4_loop(x, w, scales, y):
    for j in range(0, N, TN):
        int4_plain(x, w[:, j:j + TN], scales[:, j:j + TN], y[:, j:j + TN])


@ct.kernel
def int4(x, w, scales, y, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.num_tiles(x, 1, (TM, TK))):
        packed = ct.load(w, (k, j), (TK // 2, TN))[:, None, :]
        part = ct.cat(((packed & 15), (packed >> 4)), 1).reshape((TK, TN))
        weights = (part.astype(ct.float32) - 8) * ct.load(scales, (k, j), (1, TN)).astype(ct.float32)
        acc = ct.mma(ct.load(x, (i, k), (TM, TK)), weights.astype(ct.float16), acc)
    ct.store(y, (i, j), acc)


# ------------------------------------------------------------------ integers and bits

COUNT, T = 1 << 18, 1024


def dropout_plain(x, y):
    h = np.arange(COUNT, dtype=np.uint32) * np.uint32(2654435761)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> np.uint32(16)
    y[...] = np.where(h > np.uint32(1 << 31), x * F32(2), F32(0))


def dropout_loop(x, y):
    for i in range(0, COUNT, T):
        h = np.arange(i, i + T, dtype=np.uint32) * np.uint32(2654435761)
        h ^= h >> np.uint32(16)
        h *= np.uint32(0x85EBCA6B)
        h ^= h >> np.uint32(13)
        h *= np.uint32(0xC2B2AE35)
        h ^= h >> np.uint32(16)
        y[i:i + T] = np.where(h > np.uint32(1 << 31), x[i:i + T] * F32(2), F32(0))


@ct.kernel
def dropout(x, y, T: ct.Constant[int]):
    i = ct.bid(0)
    h = (i * T + ct.arange(T, dtype=ct.int32)).astype(ct.uint32) * 2654435761
    h = (h ^ (h >> 16)) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    h = h ^ (h >> 16)
    ct.store(y, i, ct.where(h > 1 << 31, ct.load(x, i, T) * 2, 0))


def bits_plain(x, y):
    n = x - ((x >> np.uint32(1)) & np.uint32(0x55555555))
    n = (n & np.uint32(0x33333333)) + ((n >> np.uint32(2)) & np.uint32(0x33333333))
    n = (n + (n >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    y[...] = (n * np.uint32(0x01010101)) >> np.uint32(24)


@ct.kernel
def bits(x, y, T: ct.Constant[int]):
    i = ct.bid(0)
    n = ct.load(x, i, T)
    n = n - ((n >> 1) & 0x55555555)
    n = (n & 0x33333333) + ((n >> 2) & 0x33333333)
    n = (n + (n >> 4)) & 0x0F0F0F0F
    ct.store(y, i, (n * 0x01010101) >> 24)


# ------------------------------------------------------------------ scans

SCANS, SCANNED = 256, 1024


def prefix_plain(x, y):
    np.cumsum(x, axis=1, out=y)


@ct.kernel
def prefix(x, y, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(y, (i, 0), ct.cumsum(ct.load(x, (i, 0), (1, N)), axis=1))


def recurrence_plain(a, b, y):
    y[:, 0] = b[:, 0]
    for k in range(1, y.shape[1]):
        y[:, k] = a[:, k] * y[:, k - 1] + b[:, k]


@ct.kernel
def recurrence(a, b, y, R: ct.Constant[int], N: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, (i, 0), (R, N)), ct.load(b, (i, 0), (R, N))
    _, state = ct.scan(x, 1, lambda a0, b0, a1, b1: (a0 * a1, b0 * a1 + b1), (1.0, 0.0))
    ct.store(y, (i, 0), state)


# ------------------------------------------------------------------ transcendental functions; a fractal

PLACES = 1 << 17


def distance_plain(lat, lon, y):
    d = np.sin((lat - F32(0.8)) / 2) ** 2 + np.cos(lat) * F32(np.cos(0.8)) * np.sin((lon - F32(0.2)) / 2) ** 2
    y[...] = F32(12742) * np.arctan2(np.sqrt(d), np.sqrt(1 - d))


@ct.kernel
def distance(lat, lon, y, T: ct.Constant[int]):
    i = ct.bid(0)
    a, b = ct.load(lat, i, T), ct.load(lon, i, T)
    p, q = ct.sin((a - 0.8) / 2), ct.sin((b - 0.2) / 2)
    d = p * p + ct.cos(a) * ct.cos(0.8) * q * q
    ct.store(y, i, 12742 * ct.atan2(ct.sqrt(d), ct.sqrt(1 - d)))


PIXELS, ITERATIONS = 256, 32


def fractal_plain(cx, cy, y):
    zx, zy, n = np.zeros_like(cx), np.zeros_like(cx), np.zeros(cx.shape, I32)
    for _ in range(ITERATIONS):
        xx, yy = zx * zx, zy * zy
        inside = xx + yy < 4
        n += inside
        zx, zy = np.where(inside, xx - yy + cx, zx), np.where(inside, 2 * zx * zy + cy, zy)
    y[...] = n


@ct.kernel
def fractal(cx, cy, y, T: ct.Constant[int], STEPS: ct.Constant[int]):
    i = ct.bid(0)
    x0, y0 = ct.load(cx, (i, 0), (1, T)), ct.load(cy, (i, 0), (1, T))
    zx, zy, n = ct.zeros((1, T), ct.float64), ct.zeros((1, T), ct.float64), ct.zeros((1, T), ct.int32)
    for _ in range(STEPS):
        inside = zx * zx + zy * zy < 4
        n = n + inside.astype(ct.int32)
        zx, zy = (ct.where(inside, zx * zx - zy * zy + x0, zx), ct.where(inside, 2 * zx * zy + y0, zy))
    ct.store(y, (i, 0), n)


def plane():
    y, x = np.mgrid[-1.5:1.5:PIXELS * 1j, -2:1:PIXELS * 1j]
    return x + 0.0, y + 0.0


ROWS = (
    Row("softmax f64", lambda: (normal(ROWS_, COLS, dtype=F64),), lambda: np.empty((ROWS_, COLS)), softmax_plain,
        blocks(softmax_plain, 1), softmax, (ROWS_,), (COLS,), 1e-12),
    Row("rms norm f16", lambda: (normal(ROWS_, COLS, dtype=F16), normal(COLS, seed=1, dtype=F16)),
        lambda: np.empty((ROWS_, COLS), F16), norm_plain, blocks(norm_plain, 1, whole=1), norm, (ROWS_,), (COLS,),
        2e-3),
    Row("rms norm bf16", lambda: (normal(ROWS_, COLS, dtype=BF16), normal(COLS, seed=1, dtype=BF16)),
        lambda: np.empty((ROWS_, COLS), BF16), norm_plain, blocks(norm_plain, 1, whole=1), norm, (ROWS_,), (COLS,),
        1e-2),
    Row("rotary f16", rotary_inputs, lambda: np.empty((LENGTH, HEADS, DIM), F16), rotary_plain,
        blocks(rotary_plain, 1), rotary, (LENGTH,), (HEADS, DIM // 2), 2e-3),
    Row("matmul, 4-bit weights", int4_inputs, lambda: np.empty((M, N), F32), int4_plain, int4_loop, int4,
        (M // TM, N // TN), (TM, TN, TK), 1e-3),
    Row("dropout by a hash", lambda: (normal(COUNT),), lambda: np.empty(COUNT, F32), dropout_plain, dropout_loop,
        dropout, (COUNT // T,), (T,)),
    Row("counting bits", lambda: (integers(0, 1 << 32, COUNT, dtype=np.uint32),), lambda: np.empty(COUNT, np.uint32),
        bits_plain, blocks(bits_plain, T), bits, (COUNT // T,), (T,), 0, lambda x: np.bitwise_count(x)),
    Row("prefix sums f32", lambda: (normal(SCANS, SCANNED),), lambda: np.empty((SCANS, SCANNED), F32), prefix_plain,
        blocks(prefix_plain, 1), prefix, (SCANS,), (SCANNED,), 1e-4),
    Row("recurrence by scan", lambda: (np.abs(normal(SCANS, 256)) / 2, normal(SCANS, 256, seed=1)),
        lambda: np.empty((SCANS, 256), F32), recurrence_plain, blocks(recurrence_plain, 8), recurrence, (SCANS // 8,),
        (8, 256), 1e-3),
    Row("distances on a sphere", lambda: (normal(PLACES) / 4, normal(PLACES, seed=1)), lambda: np.empty(PLACES, F32),
        distance_plain, blocks(distance_plain, T), distance, (PLACES // T,), (T,), 1e-3),
    Row("fractal f64", plane, lambda: np.empty((PIXELS, PIXELS), I32), fractal_plain, blocks(fractal_plain, 1), fractal,
        (PIXELS,), (PIXELS, ITERATIONS), 1e-2),
)

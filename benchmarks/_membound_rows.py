"""More kernels of benchmarks/membound.py: each result comes from a whole row or column.

They are the source for every implementation: `_gpu_export.load` puts another module in the place of cutile.
"""

from __future__ import annotations

import math

import cutile as ct

Int = ct.Constant[int]
f32, i32 = ct.float32, ct.int32
LOWEST, ZERO = ct.PaddingMode.NEG_INF, ct.PaddingMode.ZERO


@ct.kernel
def softmax(x, out, T: Int):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, T), padding_mode=LOWEST).astype(f32)
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(out, (i, 0), (e / ct.sum(e, axis=1, keepdims=True)).astype(out.dtype))


@ct.kernel
def logsumexp(x, out, T: Int):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, T), padding_mode=LOWEST).astype(f32)
    top = ct.max(t, axis=1, keepdims=True)
    total = ct.sum(ct.exp(t - top), axis=1, keepdims=True)
    ct.store(out, (i,), (ct.log(total) + top).reshape((1,)))


@ct.kernel
def kl_divergence(logp, logq, out, T: Int):
    i = ct.bid(0)
    p = ct.load(logp, (i, 0), (1, T)).astype(f32)
    q = ct.load(logq, (i, 0), (1, T)).astype(f32)
    ct.store(out, (i,), ct.sum(ct.exp(p) * (p - q), axis=1))


@ct.kernel
def cross_entropy(x, target, out, T: Int):
    """The loss of each row of logits, in one pass over tiles of T."""
    i = ct.bid(0)
    top = ct.full((1, T), -math.inf, f32)
    total = ct.zeros((1, T), f32)
    for k in range(ct.num_tiles(x, 1, (1, T))):
        t = ct.load(x, (i, k), (1, T), padding_mode=LOWEST).astype(f32)
        new = ct.maximum(top, t)
        total = total * ct.exp(top - new) + ct.exp(t - new)
        top = new
    whole = ct.max(top, axis=1, keepdims=True)
    total = ct.sum(total * ct.exp(top - whole), axis=1, keepdims=True)
    own = ct.gather(x, (i, ct.load(target, (i,), (1,)).item())).astype(f32)
    ct.store(out, (i,), (ct.log(total) + whole - own).reshape((1,)))


@ct.kernel
def rms_norm(x, weight, out, N: Int, T: Int):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, T), padding_mode=ZERO).astype(f32)
    scale = ct.rsqrt(ct.sum(t * t, axis=1, keepdims=True) / N + 1e-6)
    w = ct.load(weight, (0,), (T,), padding_mode=ZERO).astype(f32)
    ct.store(out, (i, 0), (t * scale * w).astype(out.dtype))


@ct.kernel
def add_rms_norm(x, residual, weight, out, N: Int, T: Int):
    """residual += x; out = its norm."""
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, T), padding_mode=ZERO).astype(f32)
    t = t + ct.load(residual, (i, 0), (1, T), padding_mode=ZERO).astype(f32)
    ct.store(residual, (i, 0), t.astype(residual.dtype))
    scale = ct.rsqrt(ct.sum(t * t, axis=1, keepdims=True) / N + 1e-6)
    w = ct.load(weight, (0,), (T,), padding_mode=ZERO).astype(f32)
    ct.store(out, (i, 0), (t * scale * w).astype(out.dtype))


@ct.kernel
def layer_norm(x, weight, bias, out, mean, rstd, N: Int, T: Int):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, T), padding_mode=ZERO).astype(f32)
    mu = ct.sum(t, axis=1, keepdims=True) / N
    d = ct.where(ct.arange(T, dtype=i32) < N, t - mu, 0.0)
    r = ct.rsqrt(ct.sum(d * d, axis=1, keepdims=True) / N + 1e-5)
    w = ct.load(weight, (0,), (T,), padding_mode=ZERO).astype(f32)
    b = ct.load(bias, (0,), (T,), padding_mode=ZERO).astype(f32)
    ct.store(out, (i, 0), (d * r * w + b).astype(out.dtype))
    ct.store(mean, (i,), mu.reshape((1,)))
    ct.store(rstd, (i,), r.reshape((1,)))


@ct.kernel
def layer_norm_dx(dy, x, weight, mean, rstd, dx, N: Int, T: Int):
    i = ct.bid(0)
    w = ct.load(weight, (0,), (T,), padding_mode=ZERO).astype(f32)
    g = ct.load(dy, (i, 0), (1, T), padding_mode=ZERO).astype(f32) * w
    r = ct.load(rstd, (i,), (1,)).reshape((1, 1))
    h = (ct.load(x, (i, 0), (1, T), padding_mode=ZERO).astype(f32) - ct.load(mean, (i,), (1,)).reshape((1, 1))) * r
    along = ct.sum(g * h, axis=1, keepdims=True) / N
    level = ct.sum(g, axis=1, keepdims=True) / N
    ct.store(dx, (i, 0), ((g - h * along - level) * r).astype(dx.dtype))


@ct.kernel
def group_norm(x, weight, bias, out, C: Int, P: Int):
    """x: (images, channels, P pixels); a block normalises a group of C channels."""
    n, g = ct.bid(0), ct.bid(1)
    t = ct.load(x, (n, g, 0), (1, C, P)).astype(f32).reshape((C, P))
    mu = ct.sum(t) / (C * P)
    d = t - mu
    r = ct.rsqrt(ct.sum(d * d) / (C * P) + 1e-5)
    w = ct.load(weight, (g,), (C,)).astype(f32).reshape((C, 1))
    b = ct.load(bias, (g,), (C,)).astype(f32).reshape((C, 1))
    ct.store(out, (n, g, 0), (d * r * w + b).astype(out.dtype).reshape((1, C, P)))


@ct.kernel
def quantise(x, out, scale, T: Int):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, T), padding_mode=ZERO).astype(f32)
    s = ct.maximum(ct.max(ct.abs(t), axis=1, keepdims=True), 1e-8) / 127.0
    ct.store(out, (i, 0), ct.floor(t / s + 0.5).astype(ct.int8))
    ct.store(scale, (i,), s.reshape((1,)))


@ct.kernel
def sum_rows(x, out, T: Int):
    i = ct.bid(0)
    ct.store(out, (i,), ct.sum(ct.load(x, (i, 0), (1, T), padding_mode=ZERO).astype(f32), axis=1))


@ct.kernel
def sum_columns(x, out, R: Int, C: Int):
    j = ct.bid(0)
    total = ct.zeros((R, C), f32)
    for i in range(ct.num_tiles(x, 0, (R, C))):
        total += ct.load(x, (i, j), (R, C), padding_mode=ZERO).astype(f32)
    ct.store(out, (j,), ct.sum(total, axis=0))


@ct.kernel
def bias_gradient(dy, out, ROWS: Int, R: Int, C: Int):
    """out += sums of columns of dy, each block over ROWS rows."""
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((R, C), f32)
    for k in range(ROWS // R):
        total += ct.load(dy, (i * (ROWS // R) + k, j), (R, C)).astype(f32)
    ct.atomic_add(out, j * C + ct.arange(C, dtype=i32), ct.sum(total, axis=0))


@ct.kernel
def cumulative_sum(x, out, T: Int):
    i = ct.bid(0)
    ct.store(out, (i, 0), ct.cumsum(ct.load(x, (i, 0), (1, T)), axis=1))


@ct.kernel
def argmax(x, out, T: Int):
    i = ct.bid(0)
    ct.store(out, (i,), ct.argmax(ct.load(x, (i, 0), (1, T), padding_mode=LOWEST), axis=1))


@ct.kernel
def top1(x, value, index, T: Int):
    """The largest probability of each row of logits, and where it stands."""
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, T), padding_mode=LOWEST).astype(f32)
    top = ct.max(t, axis=1, keepdims=True)
    ct.store(value, (i,), (1.0 / ct.sum(ct.exp(t - top), axis=1)))
    ct.store(index, (i,), ct.argmax(t, axis=1))

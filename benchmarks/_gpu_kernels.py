"""Kernels of benchmarks/gpu.py, written plainly. They are compiled as they are, and with the import of another
implementation.
"""

import math

import cutile as ct

Int = ct.Constant[int]


@ct.kernel
def vector_add(a, b, c, T: Int):
    i = ct.bid(0)
    ct.store(c, (i,), ct.load(a, (i,), (T,)) + ct.load(b, (i,), (T,)))


@ct.kernel
def softmax(x, y, ROWS: Int, COLS: Int):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (ROWS, COLS), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, (i, 0), (e / ct.sum(e, axis=1, keepdims=True)).astype(y.dtype))


@ct.kernel
def softmax_tuned(x, y, ROWS: Int, COLS: Int):
    """All hints given, and approximations allowed."""
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (ROWS, COLS), allow_tma=False).astype(ct.float32) * 1.4426950408889634
    e = ct.exp2(t - ct.max(t, axis=1, keepdims=True), flush_to_zero=True)
    s = ct.sum(e, axis=1, keepdims=True)
    p = ct.truediv(e, s, flush_to_zero=True, rounding_mode=ct.RoundingMode.APPROX)
    ct.store(y, (i, 0), p.astype(y.dtype), allow_tma=False)


@ct.kernel
def softmax_gather(x, y, ROWS: Int, COLS: Int):
    i = ct.bid(0)
    cols = ct.arange(COLS, dtype=ct.int32)
    t = ct.gather(x, (i, cols), padding_value=-math.inf).astype(ct.float32)
    e = ct.exp(t - ct.max(t, axis=0, keepdims=True))
    ct.scatter(y, (i, cols), (e / ct.sum(e, axis=0, keepdims=True)).astype(y.dtype))


@ct.kernel
def copy_rows(x, y, ROWS: Int, COLS: Int):
    i = ct.bid(0)
    ct.store(y, (i, 0), ct.load(x, (i, 0), (ROWS, COLS)))


@ct.kernel
def add_2d(x, y, z, TM: Int, TN: Int):
    at = (ct.bid(0), ct.bid(1))
    ct.store(z, at, ct.load(x, at, (TM, TN)) + ct.load(y, at, (TM, TN)))


@ct.kernel
def sum_columns(x, y, TM: Int, TN: Int):
    j = ct.bid(0)
    acc = ct.full((TM, TN), 0, ct.float32)
    for i in range(ct.num_tiles(x, axis=0, shape=(TM, TN))):
        acc += ct.load(x, (i, j), (TM, TN), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, (j,), ct.sum(acc, axis=0))


@ct.kernel
def sum_rows(x, y, TM: Int, TN: Int):
    i = ct.bid(0)
    ct.store(y, (i,), ct.sum(ct.load(x, (i, 0), (TM, TN)), axis=1))


@ct.kernel
def layer_norm(x, weight, bias, y, eps: ct.Constant[float], ROWS: Int, COLS: Int):
    """Rows as wide as the tile."""
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (ROWS, COLS)).astype(ct.float32)
    t = t - ct.sum(t, axis=1, keepdims=True) / COLS
    r = ct.rsqrt(ct.sum(t * t, axis=1, keepdims=True) / COLS + eps)
    w = ct.load(weight, (0,), (COLS,)).astype(ct.float32)
    b = ct.load(bias, (0,), (COLS,)).astype(ct.float32)
    ct.store(y, (i, 0), (t * r * w + b).astype(y.dtype))


@ct.kernel
def matmul(a, b, c, TM: Int, TN: Int, TK: Int, GROUP: Int):
    """Blocks in groups of GROUP rows of tiles, so that they share columns of b in the cache."""
    rows, columns = ct.cdiv(a.shape[0], TM), ct.cdiv(b.shape[1], TN)
    in_group = GROUP * columns
    group, rest = ct.bid(0) // in_group, ct.bid(0) % in_group
    height = min(rows - group * GROUP, GROUP)
    i, j = group * GROUP + rest % height, rest // height
    acc = ct.full((TM, TN), 0, ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TM, TK))):
        x = ct.load(a, (i, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, (k, j), (TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, y, acc)
    ct.store(c, (i, j), acc.astype(c.dtype))


@ct.kernel
def attention(q, k, v, out, scale: ct.Constant[float], H: Int, D: Int, TM: Int, TN: Int, CAUSAL: ct.Constant[bool]):
    """Flash attention on (batch, H, length, D) with hints and flushing, as one would write it for speed."""
    i, b, h = ct.bid(0), ct.bid(1) // H, ct.bid(1) % H
    query = ct.load(q, (b, h, i, 0), (1, 1, TM, D)).reshape((TM, D))
    top = ct.full((TM, 1), -math.inf, ct.float32)
    total = ct.full((TM, 1), 0.0, ct.float32)
    acc = ct.full((TM, D), 0.0, ct.float32)
    steps = ct.cdiv(k.shape[2], TN)
    factor = scale * 1.4426950408889634
    full = steps
    if CAUSAL:
        steps = min(steps, ct.cdiv((i + 1) * TM, TN))
        full = (i * TM) // TN
    row = i * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    for j in range(steps):
        keys = ct.load(k, (b, h, 0, j), (1, 1, D, TN), order=(0, 1, 3, 2), latency=2).reshape((D, TN))
        s = ct.mma(query, keys, ct.full((TM, TN), 0.0, ct.float32))
        if CAUSAL and j >= full:
            col = j * TN + ct.arange(TN, dtype=ct.int32)[None, :]
            s = s + ct.where(row >= col, 0.0, -math.inf)
        new_top = ct.maximum(top, ct.max(s, axis=-1, keepdims=True) * factor)
        p = ct.exp2(s * factor - new_top, flush_to_zero=True)
        shrink = ct.exp2(top - new_top, flush_to_zero=True)
        total = total * shrink + ct.sum(p, axis=-1, keepdims=True)
        values = ct.load(v, (b, h, j, 0), (1, 1, TN, D), latency=4).reshape((TN, D))
        acc = ct.mma(p.astype(q.dtype), values, acc * shrink)
        top = new_top
    o = ct.truediv(acc, total, flush_to_zero=True, rounding_mode=ct.RoundingMode.APPROX)
    ct.store(out, (b, h, i, 0), o.astype(out.dtype).reshape((1, 1, TM, D)))

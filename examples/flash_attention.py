"""Attention written for tensor cores: forward (full, causal, grouped queries) and backward, in two passes.

Arrays are (batch, heads, length, D). `group` query heads share one head of keys and values.
"""

import math

import numpy as np
from _report import check, show, timed

import cutile as ct

ZERO = ct.PaddingMode.ZERO
LOG2_E = math.log2(math.e)
Int = ct.Constant[int]
Bool = ct.Constant[bool]


def block(CAUSAL: bool):
    """The tile, head and batch of this block; the grid is `grid_of`.

    Blocks start in the order of their numbers, so that neighbours read the same keys. In causal attention tiles differ
    in work: there the tiles with the most start first, in all heads, and those with the least fill the gaps at the end.
    """
    if CAUSAL:
        return ct.bid(1), ct.bid(0), ct.bid(2)
    return ct.bid(0), ct.bid(1), ct.bid(2)


def grid_of(length, T, heads, batch, causal):
    """A block for each tile of T rows of each head."""
    return (heads, ct.cdiv(length, T), batch) if causal else (ct.cdiv(length, T), heads, batch)


def queries_of(CAUSAL: bool):
    """`block` for tiles of queries, of which the last have the most to do."""
    i, head, batch = block(CAUSAL)
    if CAUSAL:
        i = ct.num_blocks(1) - 1 - i
    return i, head, batch


def rows_of(x, batch, head, i, T, D):
    """Rows i * T to (i + 1) * T of one head, as a matrix. Beyond the end they are zero."""
    return ct.load(x, (batch, head, i, 0), (1, 1, T, D), padding_mode=ZERO).reshape((T, D))


def columns_of(x, batch, head, i, T, D):
    """The same rows as columns, (D, T)."""
    return ct.load(x, (batch, head, 0, i), (1, 1, D, T), order=(0, 1, 3, 2), padding_mode=ZERO).reshape((D, T))


def numbers(i, T):
    return i * T + ct.arange(T, dtype=ct.int32)


def seen(row, col, length, CAUSAL: bool):
    """Which queries may attend to which keys."""
    return (col < length) & (col <= row) if CAUSAL else col < length


def limits(i, length, TM, TN, CAUSAL: bool):
    """How many tiles of keys all queries of a tile see whole, and how many some of them see."""
    whole, steps = length // TN, ct.cdiv(length, TN)
    if CAUSAL:
        whole, steps = min(whole, i * TM // TN), min(steps, ct.cdiv((i + 1) * TM, TN))
    return whole, steps


def scores(query, keys):
    return ct.mma(query, keys, ct.zeros((query.shape[0], keys.shape[1]), ct.float32))


def eighths(p):
    """Sums of eight kinds of columns. A thread has all of some kinds, so this takes no exchange between threads."""
    return ct.sum(p.reshape((p.shape[0], p.shape[1] // 8, 8)), axis=1)


def weights(score, top, total, factor):
    """Weights of keys by their scores, how what was added up before shrinks, and the new top and total."""
    new_top = ct.maximum(top, ct.max(score, axis=1, keepdims=True) * factor)
    p = ct.exp2(score * factor - new_top, flush_to_zero=True)
    shrink = ct.exp2(top - new_top, flush_to_zero=True)
    return p, shrink, new_top, total * shrink + eighths(p)


def attend(score, values, top, total, acc, factor):
    """Take the scores of more keys into the softmax so far: see `forward` for top, total and acc."""
    p, shrink, new_top, new_total = weights(score, top, total, factor)
    return new_top, new_total, ct.mma(p.astype(values.dtype), values, acc * shrink)


def finish(out, lse, batch, head, i, top, total, acc, TM, D):
    total = ct.sum(total, axis=1, keepdims=True)
    ct.store(out, (batch, head, i, 0), (acc * (1 / total)).reshape((1, 1, TM, D)).astype(out.dtype))
    ct.store(lse, (batch, head, i), (top + ct.log2(total)).reshape((1, 1, TM)))


@ct.kernel
def forward(q, k, v, out, lse, scale: float, group: Int, TM: Int, TN: Int, D: Int, CAUSAL: Bool):
    """TM queries of a head against the keys that they may attend to, TN keys at a time.

    Only tiles that a limit cuts are masked: the diagonal, the end of the keys. Tiles above the diagonal are skipped.
    lse: for the backward pass, the logarithm to base 2 of the sum of 2**score, scores in units of log 2.
    """
    i, head, batch = queries_of(CAUSAL)
    length, of, factor = k.shape[2], head // group, scale * LOG2_E
    query, row = rows_of(q, batch, head, i, TM, D), numbers(i, TM)[:, None]

    top = ct.full((TM, 1), -math.inf, ct.float32)  # the largest score so far, in units of log 2
    total = ct.zeros((TM, 8), ct.float32)  # sums of 2**(score - top) so far, of eight kinds of keys
    acc = ct.zeros((TM, D), ct.float32)  # their sum, weighted with the values
    whole, steps = limits(i, length, TM, TN, CAUSAL)
    for j in range(steps):
        score = scores(query, columns_of(k, batch, of, j, TN, D))
        if j >= whole:
            score = ct.where(seen(row, numbers(j, TN)[None, :], length, CAUSAL), score, -math.inf)
        top, total, acc = attend(score, rows_of(v, batch, of, j, TN, D), top, total, acc, factor)
    finish(out, lse, batch, head, i, top, total, acc, TM, D)


@ct.kernel
def forward_ahead(q, k, v, out, lse, scale: float, group: Int, TM: Int, TN: Int, D: Int, CAUSAL: Bool):
    """`forward` in another order: tensor cores compute the scores of the next keys during the softmax of these."""
    i, head, batch = queries_of(CAUSAL)
    length, of, factor = k.shape[2], head // group, scale * LOG2_E
    query, row = rows_of(q, batch, head, i, TM, D), numbers(i, TM)[:, None]

    top, total = ct.full((TM, 1), -math.inf, ct.float32), ct.zeros((TM, 8), ct.float32)
    acc = ct.zeros((TM, D), ct.float32)
    whole, steps = limits(i, length, TM, TN, CAUSAL)
    last = steps - 1
    score = scores(query, columns_of(k, batch, of, 0, TN, D))
    for j in range(last):
        following = scores(query, columns_of(k, batch, of, j + 1, TN, D))
        if CAUSAL and TM > TN:  # else the diagonal cuts the last tile only
            if j >= whole:
                score = ct.where(seen(row, numbers(j, TN)[None, :], length, CAUSAL), score, -math.inf)
        top, total, acc = attend(score, rows_of(v, batch, of, j, TN, D), top, total, acc, factor)
        score = following
    score = ct.where(seen(row, numbers(last, TN)[None, :], length, CAUSAL), score, -math.inf)
    top, total, acc = attend(score, rows_of(v, batch, of, last, TN, D), top, total, acc, factor)
    finish(out, lse, batch, head, i, top, total, acc, TM, D)


@ct.kernel
def forward_pairs(q, k, v, out, lse, scale: float, group: Int, TM: Int, TN: Int, D: Int, CAUSAL: Bool):
    """`forward` with two tiles of keys at a time: tensor cores weight the values of one during the other's softmax."""
    i, head, batch = queries_of(CAUSAL)
    length, of, factor = k.shape[2], head // group, scale * LOG2_E
    query, row = rows_of(q, batch, head, i, TM, D), numbers(i, TM)[:, None]

    top, total = ct.full((TM, 1), -math.inf, ct.float32), ct.zeros((TM, 8), ct.float32)
    acc = ct.zeros((TM, D), ct.float32)
    whole, steps = limits(i, length, TM, 2 * TN, CAUSAL)
    for j in range(steps):
        first = scores(query, columns_of(k, batch, of, 2 * j, TN, D))
        second = scores(query, columns_of(k, batch, of, 2 * j + 1, TN, D))
        if j >= whole:
            first = ct.where(seen(row, numbers(2 * j, TN)[None, :], length, CAUSAL), first, -math.inf)
            second = ct.where(seen(row, numbers(2 * j + 1, TN)[None, :], length, CAUSAL), second, -math.inf)
        new_top = ct.maximum(top, ct.max(ct.maximum(first, second), axis=1, keepdims=True) * factor)
        shrink = ct.exp2(top - new_top, flush_to_zero=True)
        p = ct.exp2(first * factor - new_top, flush_to_zero=True)
        acc = ct.mma(p.astype(v.dtype), rows_of(v, batch, of, 2 * j, TN, D), acc * shrink)
        r = ct.exp2(second * factor - new_top, flush_to_zero=True)
        acc = ct.mma(r.astype(v.dtype), rows_of(v, batch, of, 2 * j + 1, TN, D), acc)
        top, total = new_top, total * shrink + eighths(p + r)
    finish(out, lse, batch, head, i, top, total, acc, TM, D)


@ct.kernel
def forward_halves(q, k, v, out, lse, scale: float, group: Int, TM: Int, TN: Int, D: Int, CAUSAL: Bool):
    """`forward` with the queries in two halves, which share the keys: tensor cores work for one half during the
    softmax of the other.
    """
    i, head, batch = queries_of(CAUSAL)
    length, of, factor, H = k.shape[2], head // group, scale * LOG2_E, TM // 2
    upper, lower = rows_of(q, batch, head, 2 * i, H, D), rows_of(q, batch, head, 2 * i + 1, H, D)
    row, below = numbers(2 * i, H)[:, None], numbers(2 * i + 1, H)[:, None]

    top, total = ct.full((H, 1), -math.inf, ct.float32), ct.zeros((H, 8), ct.float32)
    low_top, low_total = top, total
    acc = low_acc = ct.zeros((H, D), ct.float32)
    whole, steps = limits(i, length, TM, TN, CAUSAL)
    for j in range(steps):
        keys = columns_of(k, batch, of, j, TN, D)
        score, low_score = scores(upper, keys), scores(lower, keys)
        if j >= whole:
            col = numbers(j, TN)[None, :]
            score = ct.where(seen(row, col, length, CAUSAL), score, -math.inf)
            low_score = ct.where(seen(below, col, length, CAUSAL), low_score, -math.inf)
        values = rows_of(v, batch, of, j, TN, D)
        p, shrink, top, total = weights(score, top, total, factor)
        acc = ct.mma(p.astype(values.dtype), values, acc * shrink)
        p, shrink, low_top, low_total = weights(low_score, low_top, low_total, factor)
        low_acc = ct.mma(p.astype(values.dtype), values, low_acc * shrink)
    finish(out, lse, batch, head, 2 * i, top, total, acc, H, D)
    finish(out, lse, batch, head, 2 * i + 1, low_top, low_total, low_acc, H, D)


@ct.kernel
def backward_rows(out, dout, delta, TM: Int, D: Int):
    """delta = the sum of out * dout along a row: what softmax's derivative subtracts."""
    i, head, batch = ct.bid(0), ct.bid(1), ct.bid(2)
    product = rows_of(out, batch, head, i, TM, D).astype(ct.float32) * rows_of(dout, batch, head, i, TM, D)
    ct.store(delta, (batch, head, i), ct.sum(product, axis=1).reshape((1, 1, TM)))


@ct.kernel
def backward_keys(q, k, v, dout, lse, delta, dk, dv, scale: float, group: Int, TM: Int, TN: Int, D: Int, CAUSAL: Bool):
    """dk and dv of TN keys: a sum over the queries that see them, TM at a time, in all heads of the group.

    Scores are computed transposed, (TN, TM), so that they can be the left operand of the products that follow.
    """
    j, head, batch = block(CAUSAL)
    count = ct.cdiv(q.shape[2], TM)
    keys, values = rows_of(k, batch, head, j, TN, D), rows_of(v, batch, head, j, TN, D)
    col = numbers(j, TN)[:, None]
    first, whole = 0, count
    if CAUSAL:
        first, whole = j * TN // TM, ct.cdiv((j + 1) * TN, TM)
    dkeys, dvalues = ct.zeros((TN, D), ct.float32), ct.zeros((TN, D), ct.float32)
    for h in range(head * group, (head + 1) * group):
        for i in range(first, count):
            score = ct.mma(keys, columns_of(q, batch, h, i, TM, D), ct.zeros((TN, TM), ct.float32))
            top = ct.load(lse, (batch, h, i), (1, 1, TM), padding_mode=ct.PaddingMode.POS_INF).reshape((1, TM))
            p = ct.exp2(score * (scale * LOG2_E) - top, flush_to_zero=True)
            if CAUSAL and i < whole:
                p = ct.where(col <= numbers(i, TM)[None, :], p, 0.0)
            do = rows_of(dout, batch, h, i, TM, D)
            dvalues = ct.mma(p.astype(v.dtype), do, dvalues)
            dp = ct.mma(values, columns_of(dout, batch, h, i, TM, D), ct.zeros((TN, TM), ct.float32))
            d = ct.load(delta, (batch, h, i), (1, 1, TM), padding_mode=ZERO).reshape((1, TM))
            dkeys = ct.mma((p * (dp - d)).astype(q.dtype), rows_of(q, batch, h, i, TM, D), dkeys)
    ct.store(dk, (batch, head, j, 0), (dkeys * scale).reshape((1, 1, TN, D)).astype(dk.dtype))
    ct.store(dv, (batch, head, j, 0), dvalues.reshape((1, 1, TN, D)).astype(dv.dtype))


@ct.kernel
def backward_queries(q, k, v, dout, lse, delta, dq, scale: float, group: Int, TM: Int, TN: Int, D: Int, CAUSAL: Bool):
    """dq of TM queries: a sum over the keys that they see, TN at a time."""
    i, head, batch = queries_of(CAUSAL)
    length = k.shape[2]
    query, do = rows_of(q, batch, head, i, TM, D), rows_of(dout, batch, head, i, TM, D)
    top = ct.load(lse, (batch, head, i), (1, 1, TM), padding_mode=ct.PaddingMode.POS_INF).reshape((TM, 1))
    d = ct.load(delta, (batch, head, i), (1, 1, TM), padding_mode=ZERO).reshape((TM, 1))
    row = numbers(i, TM)[:, None]
    whole, steps = length // TN, ct.cdiv(length, TN)
    if CAUSAL:
        whole, steps = min(whole, i * TM // TN), min(steps, ct.cdiv((i + 1) * TM, TN))
    acc = ct.zeros((TM, D), ct.float32)
    for j in range(steps):
        score = ct.mma(query, columns_of(k, batch, head // group, j, TN, D), ct.zeros((TM, TN), ct.float32))
        p = ct.exp2(score * (scale * LOG2_E) - top, flush_to_zero=True)
        if j >= whole:
            p = ct.where(seen(row, numbers(j, TN)[None, :], length, CAUSAL), p, 0.0)
        dp = ct.mma(do, columns_of(v, batch, head // group, j, TN, D), ct.zeros((TM, TN), ct.float32))
        acc = ct.mma((p * (dp - d)).astype(k.dtype), rows_of(k, batch, head // group, j, TN, D), acc)
    ct.store(dq, (batch, head, i, 0), (acc * scale).reshape((1, 1, TM, D)).astype(dq.dtype))


def reference(q, k, v, dout, scale, causal):
    """(out, dq, dk, dv), each with the size of the terms that its error is a part of."""
    group = q.shape[1] // k.shape[1]
    q, k, v, dout = (x.astype(np.float64) for x in (q, k.repeat(group, axis=1), v.repeat(group, axis=1), dout))
    s = q @ k.swapaxes(-1, -2) * scale
    if causal:
        s = np.where(np.tri(s.shape[-2], s.shape[-1], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    out = p @ v
    ds = p * (dout @ v.swapaxes(-1, -2) - (out * dout).sum(axis=-1, keepdims=True))
    # delta is made from the rounded result; small numbers of f16 have an error of their own
    size = np.abs(ds) + p * (np.abs(out * dout)).sum(axis=-1, keepdims=True) + 2**-13
    turned, turned_size, weights = ds.swapaxes(-1, -2), size.swapaxes(-1, -2), p.swapaxes(-1, -2)

    def heads(x):
        return x.reshape(x.shape[0], -1, group, *x.shape[2:]).sum(axis=2)

    return ((out, p @ np.abs(v)), (ds @ k * scale, size @ np.abs(k) * scale),
            (heads(turned @ q) * scale, heads(turned_size @ np.abs(q)) * scale),
            (heads(weights @ dout), heads(weights @ np.abs(dout))))


def main():
    batch, length, d, TM, TN = 2, 200, 64, 64, 64
    rng = np.random.default_rng(5)
    rows = []
    for name, heads, kv_heads, causal in (
        ("full", 2, 2, False),
        ("causal", 2, 2, True),
        ("grouped queries, causal", 4, 2, True),
    ):
        q, dout = rng.standard_normal((2, batch, heads, length, d)).astype(np.float16)
        k, v = rng.standard_normal((2, batch, kv_heads, length, d)).astype(np.float16)
        out, dq, dk, dv = map(np.empty_like, (q, q, k, k))
        lse, delta = np.empty((2, batch, heads, length), np.float32)
        grid, grid_keys = (grid_of(length, TM, heads, batch, causal), grid_of(length, TN, kv_heads, batch, causal))
        scale, group = 1 / math.sqrt(d), heads // kv_heads
        constants = (scale, group, TM, TN, d, causal)
        want = reference(q, k, v, dout, scale, causal)
        with timed() as watch:
            ct.launch(None, grid, forward, (q, k, v, out, lse, *constants))
        # weights and results are rounded to f16, 2**-11 each; the f32 arithmetic between adds far less
        allowed = [size * 2.1 * 2**-11 + 2**-18 for _, size in want]
        rows.append(check(f"flash attention f16, {name}", grid, (TM, TN, d), watch, (out, want[0][0], allowed[0])))
        with timed() as watch:
            ct.launch(None, grid_of(length, TM, heads, batch, False), backward_rows, (out, dout, delta, TM, d))
            ct.launch(None, grid_keys, backward_keys, (q, k, v, dout, lse, delta, dk, dv, *constants))
            ct.launch(None, grid, backward_queries, (q, k, v, dout, lse, delta, dq, *constants))
        rows.append(check(f"its backward, {name}", grid_keys, (TM, TN, d), watch,
                          *((x, w, a) for x, (w, _), a in zip((dq, dk, dv), want[1:], allowed[1:], strict=True))))
    return rows


if __name__ == "__main__":
    show(main())

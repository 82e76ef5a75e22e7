"""Flash attention: softmax(q k^T / sqrt(d)) v without ever holding the matrix of scores. Full, causal, grouped."""

import math

import numpy as np
from _report import check, show, timed

import cutile as ct

ZERO = ct.PaddingMode.ZERO
LOG2_E = math.log2(math.e)


@ct.kernel
def attention(q, k, v, out, scale: ct.Constant[float], heads: ct.Constant[int], group: ct.Constant[int],
              TM: ct.Constant[int], TN: ct.Constant[int], D: ct.Constant[int], CAUSAL: ct.Constant[bool]):
    """One block: TM queries of one head against all keys that they may attend to, TN keys at a time.

    Arrays are (batch, heads, length, D); `group` query heads share one head of keys and values.
    """
    i, batch, head = ct.bid(0), ct.bid(1) // heads, ct.bid(1) % heads
    length = k.shape[2]
    query = ct.load(q, index=(batch, head, i, 0), shape=(1, 1, TM, D), padding_mode=ZERO).reshape((TM, D))
    row = i * TM + ct.arange(TM, dtype=ct.int32)[:, None]

    top = ct.full((TM, 1), -math.inf, ct.float32)  # the largest score so far, in units of log 2
    total = ct.zeros((TM, 1), ct.float32)  # the sum of 2**(score - top) so far
    acc = ct.zeros((TM, D), ct.float32)  # that sum, weighted with the values
    steps = ct.num_tiles(k, axis=2, shape=(1, 1, TN, D))
    if CAUSAL:  # known when the kernel is compiled
        steps = min(steps, ct.cdiv((i + 1) * TM, TN))
    for j in range(steps):
        # order swaps the last two dimensions: the keys arrive transposed
        keys = ct.load(k, index=(batch, head // group, 0, j), shape=(1, 1, D, TN), order=(0, 1, 3, 2),
                       padding_mode=ZERO).reshape((D, TN))
        score = ct.mma(query, keys, ct.zeros((TM, TN), ct.float32)) * (scale * LOG2_E)
        col = j * TN + ct.arange(TN, dtype=ct.int32)[None, :]
        seen = (col < length) & (col <= row) if CAUSAL else col < length
        score = ct.where(seen, score, -math.inf)

        new_top = ct.maximum(top, ct.max(score, axis=1, keepdims=True))
        p = ct.exp2(score - new_top)
        shrink = ct.exp2(top - new_top)
        total = total * shrink + ct.sum(p, axis=1, keepdims=True)
        values = ct.load(v, index=(batch, head // group, j, 0), shape=(1, 1, TN, D),
                         padding_mode=ZERO).reshape((TN, D))
        acc = ct.mma(p.astype(v.dtype), values, acc * shrink)
        top = new_top
    ct.store(out, index=(batch, head, i, 0), tile=(acc / total).reshape((1, 1, TM, D)).astype(out.dtype))


def reference(q, k, v, scale, causal):
    """The result, and the same with |v|, by which errors are measured."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.astype(np.float64) for x in (q, k.repeat(group, axis=1), v.repeat(group, axis=1)))
    s = q @ k.swapaxes(-1, -2) * scale
    if causal:
        s = np.where(np.tri(s.shape[-2], s.shape[-1], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p @ v, p @ np.abs(v)


def main():
    batch, length, d, tile = 2, 300, 64, (64, 64)
    rng = np.random.default_rng(5)
    rows = []
    for name, heads, kv_heads, causal in (
        ("full", 4, 4, False),
        ("causal", 4, 4, True),
        ("grouped queries, causal", 8, 2, True),
    ):
        q = rng.standard_normal((batch, heads, length, d)).astype(np.float16)
        k, v = rng.standard_normal((2, batch, kv_heads, length, d)).astype(np.float16)
        out = np.empty_like(q)
        scale = 1 / math.sqrt(d)
        grid = (ct.cdiv(length, tile[0]), batch * heads)
        with timed() as watch:
            ct.launch(None, grid, attention, (q, k, v, out, scale, heads, heads // kv_heads, *tile, d, causal))
        want, size = reference(q, k, v, scale, causal)
        # the weights and the result are rounded to f16, 2**-11 each; the f32 arithmetic between adds far less
        rows.append(check(f"attention f16, {name}", grid, (*tile, d), watch, (out, want, size * 2.1 * 2**-11 + 2**-18)))
    return rows


if __name__ == "__main__":
    show(main())

"""One new query a sequence against keys in pages: the step that a language model takes for each token it writes.

The keys of a sequence are shared among several blocks ("split keys"), since a batch of sequences alone is too little
work for a GPU; a second kernel joins their results.
"""

import math

import numpy as np
from _report import check, show, timed

import cutile as ct

ZERO = ct.PaddingMode.ZERO
LOG2_E = math.log2(math.e)
Int = ct.Constant[int]


@ct.kernel
def decode(q, k_pages, v_pages, table, lengths, parts, stats, scale: float, SPLITS: Int, G: Int, PAGE: Int, D: Int):
    """Block (sequence, head of keys, split): the queries that share the head, against its share of the pages.

    q          (sequences, heads of keys, G', D) with G' ≤ G queries that share a head of keys
    k_pages    (pages, heads of keys, PAGE, D), as v_pages; table[sequence, n] is the n-th page of a sequence
    lengths    keys of each sequence, at least 1
    parts      (sequences, heads of keys, SPLITS, G, D): unnormalised sums of values
    stats      (2, sequences, heads of keys, SPLITS, G): largest score in units of log 2, sum of 2**(score - largest)
    """
    sequence, head, split = ct.bid(0), ct.bid(1), ct.bid(2)
    length = ct.load(lengths, sequence, ())
    count = ct.cdiv(length, PAGE)
    each = ct.cdiv(count, SPLITS)
    first, last = split * each, min((split + 1) * each, count)
    query = ct.load(q, (sequence, head, 0, 0), (1, 1, G, D), padding_mode=ZERO).reshape((G, D))
    factor = scale * LOG2_E

    top = ct.full((G, 1), -math.inf, ct.float32)
    total = ct.zeros((G, 1), ct.float32)
    acc = ct.zeros((G, D), ct.float32)
    for j in range(first, last):
        page = ct.load(table, (sequence, j), ())
        keys = ct.load(k_pages, (page, head, 0, 0), (1, 1, D, PAGE), order=(0, 1, 3, 2)).reshape((D, PAGE))
        score = ct.mma(query, keys, ct.zeros((G, PAGE), ct.float32)) * factor
        if (j + 1) * PAGE > length:
            score = ct.where(j * PAGE + ct.arange(PAGE, dtype=ct.int32)[None, :] < length, score, -math.inf)
        new_top = ct.maximum(top, ct.max(score, axis=1, keepdims=True))
        p = ct.exp2(score - new_top, flush_to_zero=True)
        shrink = ct.exp2(top - new_top, flush_to_zero=True)
        total = total * shrink + ct.sum(p, axis=1, keepdims=True)
        values = ct.load(v_pages, (page, head, 0, 0), (1, 1, PAGE, D)).reshape((PAGE, D))
        acc = ct.mma(p.astype(v_pages.dtype), values, acc * shrink)
        top = new_top
    ct.store(parts, (sequence, head, split, 0, 0), acc.reshape((1, 1, 1, G, D)))
    ct.store(stats, (0, sequence, head, split, 0), top.reshape((1, 1, 1, 1, G)))
    ct.store(stats, (1, sequence, head, split, 0), total.reshape((1, 1, 1, 1, G)))


@ct.kernel
def join(parts, stats, out, SPLITS: Int, G: Int, D: Int):
    """out (as q) = the parts, each scaled to the largest score of all, over the sum of their sums."""
    sequence, head, i = ct.bid(0), ct.bid(1), ct.bid(2)
    top = ct.load(stats, (0, sequence, head, 0, i), (1, 1, 1, SPLITS, 1)).reshape((SPLITS, 1))
    weight = ct.exp2(top - ct.max(top, axis=0, keepdims=True), flush_to_zero=True)
    total = ct.load(stats, (1, sequence, head, 0, i), (1, 1, 1, SPLITS, 1)).reshape((SPLITS, 1))
    part = ct.load(parts, (sequence, head, 0, i, 0), (1, 1, SPLITS, 1, D)).reshape((SPLITS, D))
    value = ct.sum(part * weight, axis=0) / ct.sum(total * weight)
    ct.store(out, (sequence, head, i, 0), value.reshape((1, 1, 1, D)).astype(out.dtype))


def reference(q, keys, values, scale):
    """The result of one sequence, and the same with |values|, by which errors are measured."""
    q, keys, values = (x.astype(np.float64) for x in (q, keys, values))
    s = q @ keys.swapaxes(-1, -2) * scale
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p @ values, p @ np.abs(values)


def main():
    heads, group, page, d, splits, g = 2, 4, 32, 64, 4, 16
    lengths = np.array([300, 1, 517], np.int32)
    rng = np.random.default_rng(6)
    n, most = len(lengths), ct.cdiv(int(lengths.max()), page)
    k_pages, v_pages = rng.standard_normal((2, n * most, heads, page, d)).astype(np.float16)
    table = rng.permutation(n * most).reshape(n, most).astype(np.int32)
    q = rng.standard_normal((n, heads, group, d)).astype(np.float16)
    out = np.empty_like(q)
    parts, stats = np.empty((n, heads, splits, g, d), np.float32), np.empty((2, n, heads, splits, g), np.float32)
    scale, grid = 1 / math.sqrt(d), (n, heads, splits)
    with timed() as watch:
        ct.launch(None, grid, decode, (q, k_pages, v_pages, table, lengths, parts, stats, scale, splits, g, page, d))
        ct.launch(None, (n, heads, group), join, (parts, stats, out, splits, g, d))
    found = []
    for i, length in enumerate(lengths):
        keys, values = (x[table[i]].swapaxes(0, 1).reshape(heads, -1, d)[:, :length] for x in (k_pages, v_pages))
        want, size = reference(q[i], keys, values, scale)
        found.append((out[i], want, size * 2.1 * 2**-11 + 2**-18))
    return [check("paged decode f16, split keys", grid, (g, page, d), watch, *found)]


if __name__ == "__main__":
    show(main())

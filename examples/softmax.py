"""Softmax of the rows of a matrix, fused into one kernel: as whole rows, and for rows too long for one tile."""

import math

import numpy as np
from _report import check, show, timed

import cutile as ct


@ct.kernel
def softmax_rows(x, y, ROWS: ct.Constant[int], COLS: ct.Constant[int]):
    """A block holds ROWS whole rows. COLS is a power of two >= the row length; elements beyond read as -inf."""
    i = ct.bid(0)
    t = ct.load(x, index=(i, 0), shape=(ROWS, COLS), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, index=(i, 0), tile=e / ct.sum(e, axis=1, keepdims=True))


@ct.kernel
def softmax_online(x, y, ROWS: ct.Constant[int], COLS: ct.Constant[int]):
    """A block walks along its rows, COLS at a time: once for the maximum and the sum together, once to write."""
    i = ct.bid(0)
    steps = ct.num_tiles(x, axis=1, shape=(ROWS, COLS))
    top = ct.full((ROWS, 1), -math.inf, ct.float32)
    total = ct.zeros((ROWS, 1), ct.float32)
    for j in range(steps):
        t = ct.load(x, index=(i, j), shape=(ROWS, COLS), padding_mode=ct.PaddingMode.NEG_INF)
        new_top = ct.maximum(top, ct.max(t, axis=1, keepdims=True))
        total = total * ct.exp(top - new_top) + ct.sum(ct.exp(t - new_top), axis=1, keepdims=True)
        top = new_top
    for j in range(steps):
        t = ct.load(x, index=(i, j), shape=(ROWS, COLS), padding_mode=ct.PaddingMode.NEG_INF)
        ct.store(y, index=(i, j), tile=ct.exp(t - top) / total)


def reference(x):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main():
    rng = np.random.default_rng(1)
    rows = []
    for name, kernel, shape, tile in (
        ("softmax f32", softmax_rows, (1024, 1000), (4, 1024)),
        ("softmax f32, online", softmax_online, (250, 10_007), (8, 1024)),
    ):
        x = (3 * rng.standard_normal(shape)).astype(np.float32)
        y = np.empty_like(x)
        grid = (ct.cdiv(shape[0], tile[0]),)
        with timed() as watch:
            ct.launch(None, grid, kernel, (x, y, *tile))
        want = reference(x)
        # x - max is rounded, |x - max| < 32: that moves exp by 2**-19 of itself at most; the rest is smaller
        rows.append(check(name, grid, tile, watch, (y, want, want * 2**-18)))
    return rows


if __name__ == "__main__":
    show(main())

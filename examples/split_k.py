"""Split-K matrix product: when c is small and k long, several blocks share a tile of c and add by atomics."""

import numpy as np
from _report import check, show, timed

import cutile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def matmul_split_k(a, b, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """Block (i, j, s) adds the part of every num_blocks(2)-th k tile; c starts as zeros."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.bid(2), ct.num_tiles(a, axis=1, shape=(TM, TK)), ct.num_blocks(2)):
        x = ct.load(a, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        y = ct.load(b, index=(k, j), shape=(TK, TN), padding_mode=ZERO)
        acc = ct.mma(x, y, acc)
    row = i * TM + ct.arange(TM, dtype=ct.int32)
    col = j * TN + ct.arange(TN, dtype=ct.int32)
    ct.atomic_add(c, (row[:, None], col[None, :]), acc)  # indices are elements here, and checked against c's size


def main():
    m, n, k, splits, tile = 90, 75, 8000, 6, (32, 32, 64)
    rng = np.random.default_rng(6)
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    grid = (ct.cdiv(m, tile[0]), ct.cdiv(n, tile[1]), splits)
    with timed() as watch:
        ct.launch(None, grid, matmul_split_k, (a, b, c, *tile))
    a, b = a.astype(np.float64), b.astype(np.float64)
    # in float32 each product passes through a sum of TK terms, then through a sum of at most k / TK of those
    allowed = (tile[2] + ct.cdiv(k, tile[2])) * 2**-24 * (np.abs(a) @ np.abs(b))
    return [check("matmul f16, split-K", grid, tile, watch, (c, a @ b, allowed))]


if __name__ == "__main__":
    show(main())

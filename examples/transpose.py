"""Transpose a matrix: turn each tile, or load it turned."""

import numpy as np
from _report import check, show, timed

import cutile as ct


@ct.kernel
def transpose(x, y, ROWS: ct.Constant[int], COLS: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    tile = ct.load(x, index=(i, j), shape=(ROWS, COLS))
    ct.store(y, index=(j, i), tile=ct.transpose(tile))


@ct.kernel
def transpose_by_order(x, y, ROWS: ct.Constant[int], COLS: ct.Constant[int]):
    """order=(1, 0): the first index and the first tile dimension go along the array's second dimension."""
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, index=(j, i), tile=ct.load(x, index=(j, i), shape=(COLS, ROWS), order=(1, 0)))


def main():
    m, n, tile = 1021, 770, (32, 64)
    x = np.random.default_rng(4).integers(-2**31, 2**31, (m, n), dtype=np.int32)
    grid = (ct.cdiv(m, tile[0]), ct.cdiv(n, tile[1]))
    rows = []
    for name, kernel in (("transpose i32", transpose), ("transpose i32, by order", transpose_by_order)):
        y = np.empty((n, m), x.dtype)
        with timed() as watch:
            ct.launch(None, grid, kernel, (x, y, *tile))
        rows.append(check(name, grid, tile, watch, (y, x.T, 0)))
    return rows


if __name__ == "__main__":
    show(main())

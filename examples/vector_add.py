"""The smallest kernel: c = a + b, one tile of elements per block."""

import numpy as np
from _report import check, show, timed

import cutile as ct


@ct.kernel
def vector_add(a, b, c, TILE: ct.Constant[int]):
    i = ct.bid(0)  # which block of the grid this is
    x = ct.load(a, index=i, shape=TILE)  # elements i*TILE ... i*TILE + TILE - 1
    y = ct.load(b, index=i, shape=TILE)
    ct.store(c, index=i, tile=x + y)  # elements beyond the end of c are dropped


def main():
    n, tile = 1_000_003, 1024  # the last tile is only partly inside the arrays
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, n), dtype=np.float32)
    c = np.empty_like(a)
    grid = (ct.cdiv(n, tile),)
    with timed() as watch:
        ct.launch(None, grid, vector_add, (a, b, c, tile))
    want = a.astype(np.float64) + b
    return [check("vector add f32", grid, (tile,), watch, (c, want, np.abs(want) * 2**-24))]  # rounded once


if __name__ == "__main__":
    show(main())

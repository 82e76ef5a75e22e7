"""Layer normalisation of the rows of a matrix, forward and backward."""

import numpy as np
from _report import check, show, timed

import cutile as ct

ZERO = ct.PaddingMode.ZERO


def row_mean(t, inside, n):
    """Mean over the n columns that lie inside the array."""
    return ct.sum(ct.where(inside, t, 0.0), axis=1, keepdims=True) / n


@ct.kernel
def forward(x, weight, bias, y, mean, rstd, eps: ct.Constant[float], ROWS: ct.Constant[int], COLS: ct.Constant[int]):
    """y = (x - mean) * rstd * weight + bias; the mean and 1/deviation of each row are kept for the backward pass."""
    i = ct.bid(0)
    n = x.shape[1]
    inside = ct.arange(COLS, dtype=ct.int32)[None, :] < n
    t = ct.load(x, index=(i, 0), shape=(ROWS, COLS), padding_mode=ZERO)
    mu = row_mean(t, inside, n)
    r = ct.rsqrt(row_mean((t - mu) * (t - mu), inside, n) + eps)
    w = ct.load(weight, index=0, shape=COLS, padding_mode=ZERO)
    b = ct.load(bias, index=0, shape=COLS, padding_mode=ZERO)
    ct.store(y, index=(i, 0), tile=(t - mu) * r * w + b)  # w and b broadcast over the rows
    ct.store(mean, index=i, tile=mu.reshape((ROWS,)))
    ct.store(rstd, index=i, tile=r.reshape((ROWS,)))


@ct.kernel
def backward_x(dy, x, weight, mean, rstd, dx, ROWS: ct.Constant[int], COLS: ct.Constant[int]):
    """dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * weight."""
    i = ct.bid(0)
    n = x.shape[1]
    inside = ct.arange(COLS, dtype=ct.int32)[None, :] < n
    mu = ct.load(mean, index=i, shape=ROWS, padding_mode=ZERO)[:, None]
    r = ct.load(rstd, index=i, shape=ROWS, padding_mode=ZERO)[:, None]
    xhat = (ct.load(x, index=(i, 0), shape=(ROWS, COLS), padding_mode=ZERO) - mu) * r
    w = ct.load(weight, index=0, shape=COLS, padding_mode=ZERO)
    g = ct.load(dy, index=(i, 0), shape=(ROWS, COLS), padding_mode=ZERO) * w
    ct.store(dx, index=(i, 0), tile=r * (g - row_mean(g, inside, n) - xhat * row_mean(g * xhat, inside, n)))


@ct.kernel
def backward_weights(dy, x, mean, rstd, dw, db, ROWS: ct.Constant[int], COLS: ct.Constant[int]):
    """dw = sum over rows of dy * xhat, db = sum of dy; a block owns a strip of COLS columns."""
    j = ct.bid(0)
    dw_sum = ct.zeros((ROWS, COLS), ct.float32)
    db_sum = ct.zeros((ROWS, COLS), ct.float32)
    for i in range(ct.num_tiles(x, axis=0, shape=(ROWS, COLS))):
        mu = ct.load(mean, index=i, shape=ROWS, padding_mode=ZERO)[:, None]
        r = ct.load(rstd, index=i, shape=ROWS, padding_mode=ZERO)[:, None]
        d = ct.load(dy, index=(i, j), shape=(ROWS, COLS), padding_mode=ZERO)
        dw_sum += d * (ct.load(x, index=(i, j), shape=(ROWS, COLS), padding_mode=ZERO) - mu) * r
        db_sum += d
    ct.store(dw, index=j, tile=ct.sum(dw_sum, axis=0))
    ct.store(db, index=j, tile=ct.sum(db_sum, axis=0))


def reference(x, w, b, dy, eps):
    x, w, b, dy = (v.astype(np.float64) for v in (x, w, b, dy))
    mean = x.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + eps)
    xhat, g = (x - mean) * rstd, dy * w
    dx = rstd * (g - g.mean(axis=1, keepdims=True) - xhat * (g * xhat).mean(axis=1, keepdims=True))
    return xhat * w + b, dx, (dy * xhat).sum(axis=0), dy.sum(axis=0)


def main():
    m, n, eps, tile, strip = 1001, 1000, 1e-5, (4, 1024), (32, 64)
    rng = np.random.default_rng(2)
    x = (2 * rng.standard_normal((m, n)) + 1).astype(np.float32)
    dy = rng.standard_normal((m, n), dtype=np.float32)
    w, b = rng.standard_normal((2, n), dtype=np.float32)
    y, dx = np.empty_like(x), np.empty_like(x)
    mean, rstd = np.empty((2, m), np.float32)
    dw, db = np.empty((2, n), np.float32)
    want_y, want_dx, want_dw, want_db = reference(x, w, b, dy, eps)

    # values here are below 32, so one rounding is at most 2**-20; sums of m terms below 256: 2**-17
    rows_grid, strips_grid = (ct.cdiv(m, tile[0]),), (ct.cdiv(n, strip[1]),)
    with timed() as t:
        ct.launch(None, rows_grid, forward, (x, w, b, y, mean, rstd, eps, *tile))
    rows = [check("layer norm forward", rows_grid, tile, t, (y, want_y, 4 * 2**-20))]
    with timed() as t:
        ct.launch(None, rows_grid, backward_x, (dy, x, w, mean, rstd, dx, *tile))
    rows.append(check("layer norm backward, x", rows_grid, tile, t, (dx, want_dx, 4 * 2**-20)))
    with timed() as t:
        ct.launch(None, strips_grid, backward_weights, (dy, x, mean, rstd, dw, db, *strip))
    rows.append(check("layer norm backward, weights", strips_grid, strip, t,
                      (dw, want_dw, 4 * 2**-17), (db, want_db, 4 * 2**-17)))
    return rows


if __name__ == "__main__":
    show(main())

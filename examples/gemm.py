"""Matrix products written for tensor cores: order of tiles, persistent blocks, split sums, batches, groups, float8."""

import ml_dtypes
import numpy as np
from _report import check, show, timed

import cutile as ct

ZERO = ct.PaddingMode.ZERO
Int = ct.Constant[int]
Bool = ct.Constant[bool]


def place(t, rows, columns, GROUP):
    """Row and column of the t-th tile. GROUP rows of tiles are walked together, column by column.

    Blocks that run at the same time then share rows of a and columns of b, which stay in the GPU's cache.
    """
    first = t // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    return first + t % (GROUP * columns) % height, t % (GROUP * columns) // height


def product(a, b, i, j, steps, TM, TN, TK, B_BY_ROWS):
    """Tile (i, j) of a @ b in float32, from the tiles along k that `steps` names.

    B_BY_ROWS  b is given as its transpose, (n, k): tensor cores take float8 in this layout only
    Sums of float8 products are fast where tensor cores may keep fewer bits of them, which float8 data seldom notice.
    """
    float8 = a.dtype == ct.float8_e4m3fn or a.dtype == ct.float8_e5m2
    acc = ct.zeros((TM, TN), ct.float32)
    for k in steps:
        x = ct.load(a, (i, k), (TM, TK), padding_mode=ZERO)  # zeros beyond the edges add nothing
        y = ct.load(b, (k, j), (TK, TN), order="F" if B_BY_ROWS else "C", padding_mode=ZERO)
        acc = ct.mma(x, y, acc, use_fast_acc=float8)
    return acc


@ct.kernel
def gemm(a, b, c, scale: float, TM: Int, TN: Int, TK: Int, GROUP: Int, B_BY_ROWS: Bool):
    """c = scale * (a @ b), with one block for each tile of c."""
    i, j = place(ct.bid(0), ct.num_tiles(c, 0, (TM, TN)), ct.num_tiles(c, 1, (TM, TN)), GROUP)
    acc = product(a, b, i, j, range(ct.num_tiles(a, 1, (TM, TK))), TM, TN, TK, B_BY_ROWS)
    ct.store(c, (i, j), (acc * scale).astype(c.dtype))


@ct.kernel
def gemm_persistent(a, b, c, scale: float, TM: Int, TN: Int, TK: Int, GROUP: Int, B_BY_ROWS: Bool):
    """The same with as many blocks as the GPU has room for: one tile's store and the next one's loads overlap."""
    rows, columns = ct.num_tiles(c, 0, (TM, TN)), ct.num_tiles(c, 1, (TM, TN))
    for t in range(ct.bid(0), rows * columns, ct.num_blocks(0)):
        i, j = place(t, rows, columns, GROUP)
        acc = product(a, b, i, j, range(ct.num_tiles(a, 1, (TM, TK))), TM, TN, TK, B_BY_ROWS)
        ct.store(c, (i, j), (acc * scale).astype(c.dtype))


@ct.kernel
def gemm_batched(a, b, c, TM: Int, TN: Int, TK: Int, GROUP: Int):
    """c[n] = a[n] @ b[n] for each n of the batch, with as many blocks as the GPU has room for, or one for each tile."""
    rows, columns = ct.num_tiles(c, 1, (1, TM, TN)), ct.num_tiles(c, 2, (1, TM, TN))
    for t in range(ct.bid(0), c.shape[0] * rows * columns, ct.num_blocks(0)):
        n = t // (rows * columns)
        i, j = place(t % (rows * columns), rows, columns, GROUP)
        acc = ct.zeros((TM, TN), ct.float32)
        for k in range(ct.num_tiles(a, 2, (1, TM, TK))):
            x = ct.load(a, (n, i, k), (1, TM, TK), padding_mode=ZERO).reshape((TM, TK))
            y = ct.load(b, (n, k, j), (1, TK, TN), padding_mode=ZERO).reshape((TK, TN))
            acc = ct.mma(x, y, acc)
        ct.store(c, (n, i, j), acc.astype(c.dtype).reshape((1, TM, TN)))


@ct.kernel
def gemm_skinny(a, b, parts, TM: Int, TN: Int, TK: Int, B_BY_ROWS: Bool):
    """For an a of few rows: blocks (j, s) share the sum over k. Block s writes its part to parts[s].

    `parts` may be c itself, as an array of one part, for one block a column of tiles."""
    j, s = ct.bid(0), ct.bid(1)
    count = ct.num_tiles(a, 1, (TM, TK))
    each = ct.cdiv(count, ct.num_blocks(1))
    steps = range(s * each, min((s + 1) * each, count))
    acc = product(a, b, 0, j, steps, TM, TN, TK, B_BY_ROWS)
    ct.store(parts, (s, 0, j), acc.reshape((1, TM, TN)).astype(parts.dtype))


@ct.kernel
def add_parts(parts, c, PARTS: Int, TM: Int, TN: Int):
    """c = the sum of the parts of gemm_skinny."""
    t = ct.load(parts, (0, ct.bid(1), ct.bid(0)), (PARTS, TM, TN), padding_mode=ZERO)
    ct.store(c, (ct.bid(1), ct.bid(0)), ct.sum(t, axis=0).astype(c.dtype))


@ct.kernel
def group_tiles(ends, plan, T: Int, TM: Int, GROUPS: Int):
    """plan[t] = (group, first row, end of the group's rows) of the t-th row of tiles in gemm_grouped; T a block.

    Each group has rows of tiles of its own, of which the last may hang over. Beyond the last one, plan[t] has no rows.
    """
    t = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)[:, None]
    g = ct.arange(GROUPS, dtype=ct.int32)
    groups = ends.shape[0]
    stop = ct.gather(ends, g, mask=g < groups)
    start = ct.where(g > 0, ct.gather(ends, g - 1), 0)
    tiles = ct.where(g < groups, ct.cdiv(stop - start, TM), 0)
    after = ct.cumsum(tiles, axis=0)  # rows of tiles up to the end of each group
    mine = (after - tiles <= t) & (t < after)
    row = start + (t - (after - tiles)) * TM
    ct.store(plan, (ct.bid(0), 0), ct.sum(ct.where(mine, g, 0), axis=1, keepdims=True))
    ct.store(plan, (ct.bid(0), 1), ct.sum(ct.where(mine, row, 0), axis=1, keepdims=True))
    ct.store(plan, (ct.bid(0), 2), ct.sum(ct.where(mine, stop, 0), axis=1, keepdims=True))


@ct.kernel
def gemm_grouped(a, b, c, plan, TM: Int, TN: Int, TK: Int, GROUP: Int):
    """c[rows of g] = a[rows of g] @ b[g]: rows from ends[g - 1] to ends[g], as those of an expert of a model."""
    i, j = place(ct.bid(0), plan.shape[0], ct.num_tiles(c, 1, (TM, TN)), GROUP)
    group, first, end = ct.load(plan, (i, 0), ()), ct.load(plan, (i, 1), ()), ct.load(plan, (i, 2), ())
    if first < end:
        rows = a.slice(axis=0, start=first, stop=end)
        acc = ct.zeros((TM, TN), ct.float32)
        for k in range(ct.num_tiles(a, 1, (TM, TK))):
            x = ct.load(rows, (0, k), (TM, TK), padding_mode=ZERO)
            y = ct.load(b, (group, k, j), (1, TK, TN), padding_mode=ZERO).reshape((TK, TN))
            acc = ct.mma(x, y, acc)
        ct.store(c.slice(axis=0, start=first, stop=end), (0, j), acc.astype(c.dtype))


def largest_error(size, k, TK, rounding=0.0):
    """Of products of random numbers: `size` is |a| @ |b|, which bounds the sums in float32 and a rounded result."""
    return size * ((TK + ct.cdiv(k, TK) + 2) * 2**-24 + rounding)


def kept(a, b):
    """What a GPU may lose of float8 products: 32 of them are added to the sum at a time, and of what is added only the
    13 bits below the largest may be kept.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    starts = range(0, a.shape[1], 32)
    return sum(np.abs(a[:, :k] @ b[:k]) + np.abs(a[:, k:k + 32]) @ np.abs(b[k:k + 32]) for k in starts) * 2**-13


def main():
    m, n, k, batch, splits = 517, 389, 643, 3, 4  # no multiple of a tile in any direction
    TM, TN, TK = tile = (64, 64, 32)
    rng = np.random.default_rng(3)
    rows = []

    def run(name, launches, out, a, b, rounding=0.0, more=0.0):
        want, size = a.astype(np.float64) @ b.astype(np.float64), np.abs(a.astype(np.float64)) @ np.abs(b.astype(float))
        with timed() as watch:
            for kernel, grid, args in launches:
                ct.launch(None, grid, kernel, args)
        rows.append(check(f"gemm {name}", launches[0][1], tile, watch,
                          (out, want, largest_error(size, k, TK, rounding) + more)))

    blocks = ct.cdiv(m, TM) * ct.cdiv(n, TN)
    for name, kernel, dtype, by_rows, grid in (
        ("f16", gemm, np.float16, False, (blocks,)),
        ("bf16, persistent", gemm_persistent, ml_dtypes.bfloat16, False, (8,)),
        ("float8_e4m3fn", gemm, ml_dtypes.float8_e4m3fn, True, (blocks,)),
    ):
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
        c = np.empty((m, n), np.float32)
        given = np.ascontiguousarray(b.T) if by_rows else b
        run(name, [(kernel, grid, (a, given, c, 1.0, *tile, 4, by_rows))], c, a, b, more=kept(a, b) if by_rows else 0.0)

    a, b = rng.standard_normal((batch, m, k)).astype(np.float16), rng.standard_normal((batch, k, n)).astype(np.float16)
    c = np.empty((batch, m, n), np.float32)
    run("f16, batched", [(gemm_batched, (8,), (a, b, c, *tile, 4))], c, a, b)

    a, b = a[0, :13], b[0]
    parts, c = np.empty((splits, 13, n), np.float32), np.empty((13, n), np.float16)
    run("f16, few rows", [(gemm_skinny, (ct.cdiv(n, TN), splits), (a, b, parts, 16, TN, TK, False)),
                          (add_parts, (ct.cdiv(n, 128), 1), (parts, c, splits, 16, 128))], c, a, b, 2**-11)

    sizes = np.array([70, 0, 129, 318])  # rows of each group
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((len(sizes), k, n)).astype(np.float16)
    c, ends = np.empty((m, n), np.float32), np.cumsum(sizes, dtype=np.int32)
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    want, size = (np.concatenate([x @ y for x, y in zip(np.split(x, ends[:-1]), y, strict=True)])
                  for x, y in ((a64, b64), (np.abs(a64), np.abs(b64))))
    plan = np.empty((m // TM + len(sizes), 3), np.int32)
    grouped = len(plan) * ct.cdiv(n, TN),
    with timed() as watch:
        ct.launch(None, (ct.cdiv(len(plan), 8),), group_tiles, (ends, plan, 8, TM, len(sizes)))
        ct.launch(None, grouped, gemm_grouped, (a, b, c, plan, *tile, 4))
    rows.append(check("gemm f16, grouped", grouped, tile, watch, (c, want, largest_error(size, k, TK))))
    return rows


if __name__ == "__main__":
    show(main())

"""A solution of each puzzle of docs/puzzles.md. Try yourself first."""

import cutile as ct


@ct.kernel
def celsius(x, out):
    t = ct.load(x, index=0, shape=16)
    ct.store(out, index=0, tile=(t - 32) / 1.8)


@ct.kernel
def midpoints(x, y, out, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, i, (ct.load(x, i, TILE) + ct.load(y, i, TILE)) / 2)


@ct.kernel
def spread(x, out, COLUMNS: ct.Constant[int]):
    row = ct.bid(0)
    # Padding with NAN would do for both: max and min pass over it.
    highest = ct.max(ct.load(x, (row, 0), (1, COLUMNS), padding_mode=ct.PaddingMode.NEG_INF), axis=1)
    lowest = ct.min(ct.load(x, (row, 0), (1, COLUMNS), padding_mode=ct.PaddingMode.POS_INF), axis=1)
    ct.store(out, row, highest - lowest)


@ct.kernel
def rings(out, T: ct.Constant[int]):
    i = ct.bid(0) * T + ct.arange(T, dtype=ct.int32)[:, None]
    j = ct.bid(1) * T + ct.arange(T, dtype=ct.int32)[None, :]
    rows, columns = out.shape
    near = ct.minimum(ct.minimum(i, rows - 1 - i), ct.minimum(j, columns - 1 - j))
    ct.store(out, (ct.bid(0), ct.bid(1)), near % 2)


@ct.kernel
def mirror(x, out, TILE: ct.Constant[int]):
    row, part = ct.bid(0), ct.bid(1)
    column = part * TILE + ct.arange(TILE, dtype=ct.int32)
    t = ct.gather(x, (row, x.shape[1] - 1 - column), padding_value=0)
    ct.store(out, (row, part), t.reshape((1, TILE)))


@ct.kernel
def ballots(votes, out, TILE: ct.Constant[int]):
    at = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    vote = ct.gather(votes, at, padding_value=-1)
    ct.atomic_add(out, vote, 1, check_bounds=True)  # an index that is outside changes nothing


@ct.kernel
def balance(x, out, TILE: ct.Constant[int]):
    row = ct.bid(0)
    before = ct.zeros((1, 1), ct.int32)
    for part in range(ct.num_tiles(x, axis=1, shape=(1, TILE))):
        t = ct.load(x, (row, part), (1, TILE), padding_mode=ct.PaddingMode.ZERO)
        ct.store(out, (row, part), before + ct.cumsum(t, axis=1))
        before = before + ct.sum(t, axis=1, keepdims=True)


@ct.kernel
def nearest(x, centres, out, POINTS: ct.Constant[int], CENTRES: ct.Constant[int], D: ct.Constant[int]):
    i = ct.bid(0)
    p = ct.load(x, (i, 0), (POINTS, D), padding_mode=ct.PaddingMode.ZERO)
    c = ct.load(centres, (0, 0), (CENTRES, D), padding_mode=ct.PaddingMode.ZERO)
    # |p - c|² is |p|² - 2 p·c + |c|², and |p|² is the same for all centres
    distance = ct.sum(c * c, axis=1)[None, :] - 2 * (p @ ct.transpose(c))
    there = ct.arange(CENTRES, dtype=ct.int32) < centres.shape[0]
    ct.store(out, i, ct.argmin(ct.where(there, distance, float("inf")), axis=1))

"""Histogram of a photograph's grey levels: one atomic for each element, or counts per block and then atomics."""

import numpy as np
from _report import check, show, timed
from skimage import data

import cutile as ct


@ct.kernel
def histogram(x, counts, TILE: ct.Constant[int]):
    i = ct.bid(0)
    level = ct.load(x, index=i, shape=TILE).astype(ct.int32)
    inside = i * TILE + ct.arange(TILE, dtype=ct.int32) < x.shape[0]
    ct.atomic_add(counts, ct.where(inside, level, -1), 1)  # an index out of range changes nothing


@ct.kernel
def histogram_per_block(x, counts, TILE: ct.Constant[int], BINS: ct.Constant[int]):
    i = ct.bid(0)
    level = ct.load(x, index=i, shape=TILE).astype(ct.int32)
    inside = i * TILE + ct.arange(TILE, dtype=ct.int32) < x.shape[0]
    bins = ct.arange(BINS, dtype=ct.int32)
    mine = ct.sum((level[:, None] == bins) & inside[:, None], axis=0)  # a sum of bools counts
    ct.atomic_add(counts, bins, mine)


def main():
    x = data.camera()[:-1].reshape(-1)  # 261,632 bytes; one row less, so that the last tile is not full
    bins = 256
    rows = []
    for name, kernel, tile in (("histogram u8", histogram, (1024,)),
                               ("histogram u8, per block", histogram_per_block, (1024, bins))):
        counts = np.zeros(bins, np.int32)  # atomics add to the old contents
        grid = (ct.cdiv(x.size, tile[0]),)
        with timed() as watch:
            ct.launch(None, grid, kernel, (x, counts, *tile))
        rows.append(check(name, grid, tile, watch, (counts, np.bincount(x, minlength=bins), 0)))
    return rows


if __name__ == "__main__":
    show(main())

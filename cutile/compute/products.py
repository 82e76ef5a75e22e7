"""Counting many samples by products of matrices, which the tensor cores of a GPU compute.

The counters of bins are a matrix of ROWS rows. For some samples one matrix says which rows are at or before that of a
sample, another one does so for columns. Their product counts the samples whose row and column are at or behind each
counter; bins are differences of neighbours. Atomic updates, which L2 memory does at the same time, count other samples.

The matrices have 0x80 for true, four samples in an integer: adding 0x80 - k to a number below 0x80 sets bit 7 where it
is k or more.
"""

from typing import Any

import cutile as ct
from cutile.compute.algorithm import position
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.iterators.values import INT64
from cutile.compute.joint import ONE_BY_ONE
from cutile.compute.readers import Place

ROWS = 64  # of the matrix of counters; tensor cores take no fewer
FEWEST = 8  # columns
MOST = 64
TILE = 256  # samples of a tile
UPDATED = 2  # tiles that atomic updates count, for each one that a product counts
STEP = TILE * (1 + UPDATED)
STEPS = ((1 << 18) - 1) // TILE  # most of a block: each counts 2^14 in 32 bits
BLOCKS = 1188  # nine for each multiprocessor of an H200, which holds three at a time
COPIES = 16  # of the matrix


def columns_of(bins: int) -> int:
    """How many columns the matrix has, a power of two; bins are at most ROWS * MOST."""
    return max(FEWEST, 1 << (-(-bins // ROWS) - 1).bit_length())


def _digits(above, columns):
    """The row plus one and the column of each sample, from the last counter on; row 0 for samples beyond all counters.
    In the bytes of an integer those of four samples, which lie as far above the lower level as `above` says.
    """
    cells = ct.static_eval(ROWS * columns)
    k = tuple(ct.minimum(x, ct.uint32(cells)) for x in ct.static_iter(above))
    last = ct.uint32(ct.static_eval((cells + columns - 1) * 0x00010001))
    a, b = last - (k[0] + (k[1] << 16)), last - (k[2] + (k[3] << 16))
    shift, low = ct.static_eval(columns.bit_length() - 1), ct.uint32(ct.static_eval((columns - 1) * 0x00010001))
    row = ((a >> shift) & ct.uint32(0x007F007F)) + (((b >> shift) & ct.uint32(0x007F007F)) << 8)
    return row, (a & low) + ((b & low) << 8)


def _reached(digits, first, many):
    """A matrix of bytes, a row for each of `many` numbers from `first` on: which samples have a digit that reaches it.
    """
    numbers = ct.astype(ct.arange(many, dtype=ct.int32) + first, ct.uint32)
    true = ct.uint32(0x80808080)
    bits = (digits[None, :] + (true - numbers * ct.uint32(0x01010101))[:, None]) & true
    size = ct.static_eval(many * digits.shape[0])
    return ct.reshape(ct.unpack_from_bytes(ct.pack_to_bytes(ct.reshape(bits, (size,))), ct.uint8),
                      (many, ct.static_eval(4 * digits.shape[0])))


def counting(samples: IteratorBase, how: Any, many: int, bins: int, wide: bool) -> Any:
    """A kernel that counts the samples of whole steps: by products in copies of the matrix, and in copies of the bins.
    """
    reader, columns = samples.reader(), columns_of(bins)

    @ct.kernel(occupancy=3)
    def count_by_products(source: samples.annotation(wide), counters: ARRAYS[wide], matrices: ARRAYS[wide],
                          way: ARRAYS[False], levels: tuple[(INT64,) * many], n: position(wide), steps: int,
                          each: int, copies: ct.Constant[int]):
        if ct.load(way, (0,), (1,)).item() == ONE_BY_ONE:
            block = ct.bid(0)
            total = ct.zeros((ROWS, columns), ct.int32)
            for j in range(block * each, ct.minimum((block + 1) * each, steps)):
                above = ()
                for k in ct.static_iter(range(4)):
                    place = Place(j * ct.static_eval(4 * (1 + UPDATED)) + k, ct.static_eval(TILE // 4), n, True)
                    above = above + (how.above(reader.tile(source, place), levels),)
                for k in ct.static_iter(range(UPDATED)):
                    place = Place(j * ct.static_eval(1 + UPDATED) + ct.static_eval(1 + k), TILE, n, True)
                    k = how.above(reader.tile(source, place), levels)
                    k = ct.where(k < ct.uint32(bins), ct.astype(k, ct.int32) + block % copies * bins, -1)
                    ct.atomic_add(counters, k, 1, check_bounds=True, memory_order=ct.MemoryOrder.RELAXED)
                row, column = _digits(above, columns)
                total = ct.mma(_reached(row, 1, ROWS), ct.transpose(_reached(column, 0, columns)), total)
            counts = ct.astype(ct.bitcast(total, ct.uint32) >> 14, matrices.dtype)
            index = ct.arange(ROWS, dtype=ct.int32)[:, None] * columns + ct.arange(columns, dtype=ct.int32)[None, :]
            ct.atomic_add(matrices, index + block % COPIES * ct.static_eval(ROWS * columns), counts,
                          memory_order=ct.MemoryOrder.RELAXED)

    return count_by_products


def counted(matrices, index, columns):
    """How many samples the products counted in bins."""
    index = ct.static_eval(ROWS * columns - 1) - index  # digits grow from the last counter on
    row, column = index // columns, index % columns
    below, right = row + 1 < ROWS, column + 1 < columns
    counts = _all(matrices, index, columns, row >= 0) - _all(matrices, index + columns, columns, below)
    return counts - _all(matrices, index + 1, columns, right) + _all(matrices, index + columns + 1, columns,
                                                                     below & right)


def _all(matrices, index, columns, mask):
    copy = ct.arange(COPIES, dtype=ct.int32)[:, None] * ct.static_eval(ROWS * columns)
    return ct.sum(ct.gather(matrices, copy + index[None, :], mask=mask[None, :]), axis=0)

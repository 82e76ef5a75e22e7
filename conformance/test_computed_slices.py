"""Parts of arrays whose beginning is computed: every way in which a number that others divide becomes an index.

Compilers tell the hardware which powers of two divide an address, as far as they know. Here each beginning takes
multiples of a small number, and others too.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch
from conformance.test_computed_indices import in_python

TILE, BLOCKS, SIZE = 4, 4, 1024

#: where a part begins, from the block b and the counter i of a loop
STARTS = {
    "product": lambda b, i: b * 8,
    "product of two": lambda b, i: (b * 4) * (i * 2),
    "small product": lambda b, i: b * 2 * i,
    "sum": lambda b, i: b * 16 + i * 8,
    "sum of unlike": lambda b, i: b * 16 + i * 2,
    "sum with a constant": lambda b, i: b * 16 + 4,
    "sum with an odd constant": lambda b, i: b * 16 + 3,
    "difference": lambda b, i: b * 32 + 640 - i * 16,
    "difference of unlike": lambda b, i: b * 32 + 96 - i * 2,
    "difference with a constant": lambda b, i: b * 16 - 2 + i * 8 + 2,
    "negative": lambda b, i: -(b * -8),
    "least": lambda b, i: min(b * 16, i * 8),
    "least of unlike": lambda b, i: min(b * 16 + 16, i * 2),
    "largest": lambda b, i: max(b * 16, i * 8),
    "largest of unlike": lambda b, i: max(b * 16, i * 2),
    "masked": lambda b, i: (b * 8 + i) & 24,
    "masked by more": lambda b, i: (b * 8) & 31,
    "masked by a variable": lambda b, i: (b * 8 + 7) & (i * 4 + 1),
    "or": lambda b, i: (b * 16) | (i * 8),
    "or of unlike": lambda b, i: (b * 16) | i,
    "remainder": lambda b, i: (b * 16 + 8) % 12,
    "quotient": lambda b, i: (b * 16 + i * 8) // 2,
    "quotient of unlike": lambda b, i: (b * 16 + i) // 2,
    "quotient up": lambda b, i: ct.cdiv(b * 16 + 2, 4),
    "shifted": lambda b, i: b << 3,
    "shifted down": lambda b, i: (b * 16 + i * 8) >> 2,
    "chosen": lambda b, i: ct.where(b > i, b * 8, 16),
    "chosen of unlike": lambda b, i: ct.where(b > i, b * 8, 3),
    "chosen by a branch": lambda b, i: (b * 8 if b > i else i),
    "of int64": lambda b, i: ct.int64(b) * 8,
    "of int16": lambda b, i: ct.astype(b * 8, ct.int16) + ct.astype(i * 8, ct.int16),
    "of a truth": lambda b, i: ct.astype(b > i, ct.int32),
    "of a truth, scaled": lambda b, i: ct.astype(b > i, ct.int32) * 16,
    "counter": lambda b, i: i,
    "block": lambda b, i: b,
    "zero": lambda b, i: b * 0,
    "constant": lambda b, i: 12,
    "absolute": lambda b, i: abs(b * 4 - i * 8),
    "assumed": lambda b, i: ct.assume_divisible_by(b * 16, 8) + ct.assume_divisible_by(b * i * 6, 2),
    "exclusive or": lambda b, i: (b * 16) ^ (i * 8),
    "exclusive or of unlike": lambda b, i: (b * 16) ^ i,
}
#: over what the counter goes
LOOPS = {"of one": lambda b: range(3), "of eight": lambda b: range(0, 24, 8), "from four": lambda b: range(4, 40, 16),
         "by a step of six": lambda b: range(8, 24, 6), "from the block": lambda b: range(b * 8, b * 8 + 32, 16)}


@clause("SLICE-1.base", "SLICE-1.size", "SLICE-2.bounds", "ASSUME-1.value", "LOAD-5.edge", "STORE-1.edge")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("start", STARTS)
def test_parts_that_begin_at_computed_elements(start, loop):
    f, over = STARTS[start], LOOPS[loop]

    @ct.kernel
    def k(x, y, sums):
        b = ct.bid(0)
        total = ct.zeros((TILE,), ct.int32)
        for i in over(b):
            begin = f(b, i)
            part = x.slice(0, begin, begin + TILE + 1)
            total = total * 3 + ct.load(part, 0, (TILE,))
            ct.store(y.slice(1, begin, begin + TILE), (b, 0), ct.full((1, TILE), i + 2, ct.int32))
        ct.store(sums, (b, 0), total.reshape((1, TILE)))

    x = np.arange(1, SIZE + 1, dtype=np.int32)
    y, sums = np.zeros((BLOCKS, SIZE), np.int32), np.zeros((BLOCKS, TILE), np.int32)
    launch(k, x, y, sums, grid=(BLOCKS,))
    want, written = np.zeros_like(sums), np.zeros_like(y)
    for b in range(BLOCKS):
        for i in over(b):
            begin = int(in_python(f)(b, i))
            want[b] = want[b] * 3 + x[begin:begin + TILE]
            written[b, begin:begin + TILE] = i + 2
    assert sums.tolist() == want.tolist() and y.tolist() == written.tolist()


@clause("SLICE-1.size", "SLICE-2.bounds", "LOAD-5.edge", "LOAD-5.outside")
@pytest.mark.parametrize("length", [TILE, TILE + 1, 2 * TILE, 2 * TILE + 3])
@pytest.mark.parametrize("start", ["product", "sum", "difference", "negative", "masked", "constant", "block",
                                   "of int64"])
def test_tiles_over_the_end_of_parts(start, length):
    """Each part ends far before its array."""
    f = STARTS[start]

    @ct.kernel
    def k(x, y):
        b = ct.bid(0)
        begin = f(b, 2) + 32
        part = x.slice(0, begin, begin + length)
        for j in ct.static_iter(range(4)):
            ct.store(y, (b, j), ct.load(part, j, (TILE,), padding_mode=ct.PaddingMode.ZERO).reshape((1, TILE)))

    x, y = np.arange(1, SIZE + 1, dtype=np.int32), np.zeros((BLOCKS, 4 * TILE), np.int32)
    launch(k, x, y, grid=(BLOCKS,))
    want = np.zeros_like(y)
    for b in range(BLOCKS):
        begin = int(in_python(f)(b, 2)) + 32
        want[b, :length] = x[begin:begin + length]
    assert y.tolist() == want.tolist()

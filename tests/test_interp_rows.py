"""The rows of benchmarks/interp.py: kernels as users write them give what plain NumPy does, in both schedules."""

import sys
from pathlib import Path

import pytest

from cutile import settings

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from _rows import ROWS

MOST_BLOCKS = 16  # along each grid axis, for the schedule that takes them one by one


@pytest.mark.parametrize("name", ROWS)
def test_the_kernel_computes_what_plain_numpy_does(name):
    row = ROWS[name]
    inputs, output = row.inputs(), row.output()
    output[...] = 0
    row.launcher((*inputs, output))()
    row.verify("cutile", output, row.expected(row.inputs()))


@pytest.mark.parametrize("name", ROWS)
def test_batch_and_block_give_equal_bits(name):
    row = ROWS[name]
    grid = tuple(min(n, MOST_BLOCKS) for n in row.grid)
    bits = set()
    for schedule in ("batch", "block"):
        arrays = (*row.inputs(), row.output())
        arrays[-1][...] = 0
        with settings.override(SCHEDULE=schedule):
            row.launcher(arrays, grid)()
        bits.add(b"".join(a.tobytes() for a in arrays))
    assert len(bits) == 1

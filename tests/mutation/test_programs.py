"""What is recorded of programs, by which mutants are told from what they mutate."""

from __future__ import annotations

import numpy as np

import cutile as ct
from tests.mutation.programs import Program


@ct.kernel
def wrong(x, out):
    t = ct.load(x, 0, 4)
    ct.store(out, 0, ct.full((4,), t))


def test_of_an_error_all_is_recorded_that_it_shows():
    args = np.zeros(4, np.float32), np.zeros(4, np.float32)
    [recorded] = Program("t", wrong, wrong.classify(args)).parts("front")
    for part in ("TileTypeError", "full()", "dtype=", "line 14, col 22", "help: "):
        assert part in recorded, recorded

"""Random programs, and what they print before and after a pass."""

from __future__ import annotations

import contextlib
import functools
import io
from random import Random

from cutile import interp, settings
from cutile.ir.check import check
from cutile.ir.nodes import Kernel
from tests.interp.ir_programs import RandomKernel

GRIDS = ((1, 1, 1), (5, 1, 1), (3, 2, 1))


def program(seed: int) -> Kernel:
    return RandomKernel(Random(seed), 40).make()


def trace(kernel: Kernel, seed: int) -> str:
    """What a program prints."""
    check(kernel)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), settings.override(CHECK=True, STEP_LIMIT=20000):
        interp.run(kernel, GRIDS[seed % len(GRIDS)], [seed], schedule="block")
    return out.getvalue()


@functools.cache
def printed(seed: int) -> str:
    """What the program of a seed prints as it was made, for the tests of all passes."""
    return trace(program(seed), seed)

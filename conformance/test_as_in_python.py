"""Random functions of Python compute and print the same in a kernel: calls, closures, managers, loops, texts."""

import contextlib
import io
from random import Random

import numpy as np
import pytest

from conformance.generate.random_modules import USED, RandomModule
from conformance.harness.api import clause, ct, launch
from conformance.harness.tile_code import module


@clause("CALL-5.late", "CALL-5.after", "CALL-8.order", "CM-2.order", "CM-2.nested", "EX-8.precedence", "PRINT-2.nested",
        "ST-2.nested", "ST-14.nested", "CV-1.any")
@pytest.mark.parametrize("seed", range(40))
def test_random_functions(seed, capfd):
    rng = Random(seed)
    f = module(RandomModule(rng).source(), **USED)["f"]
    a, b = rng.randrange(-9, 21), rng.randrange(-3, 10)

    @ct.kernel
    def k(out, a, b):
        ct.store(out, 0, f(a, b))

    with contextlib.redirect_stdout(io.StringIO()) as wanted:
        number = f(a, b)
    out = np.zeros(1, np.int32)
    capfd.readouterr()
    launch(k, out, a, b)
    assert (out[0], capfd.readouterr().out) == (number, wanted.getvalue())

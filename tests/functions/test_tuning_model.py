"""Estimates of configurations: what makes one slower."""

import numpy as np
import pytest

import cutile as ct
from cutile.analysis.block_work import BlockWork
from cutile.analysis.cost import MATRIX, OTHER, Work
from cutile.functions import tuning_model
from cutile.gpu.cubin_resources import Resources
from cutile.gpu.target import parse_target
from cutile.runtime import launch_plan
from tests.functions.shows import shows
from tests.gpu import arrays
from tests.gpu.fake_driver import installed

MODEL = tuning_model.usual(parse_target("sm_90"))
F16, F32, F64 = Work(MATRIX, ct.float16), Work(OTHER, ct.float32), Work(OTHER, ct.float64)


def work(products=0.0, rows=128, arithmetic=0.0, double=0.0, read=0.0, turns=1.0, held=1024):
    found = BlockWork(read=read, turns=turns, held=held)
    found.products[F16, rows] += products
    found.operations[F32] += arithmetic
    found.operations[F64] += double
    return found


def cycles(grid=(132 * 8, 1, 1), occupancy=None, warps=None, taken=None, **done):
    return MODEL.cycles(work(**done), grid, {"occupancy": occupancy, "num_worker_warps": warps}, taken)


@shows("TUN-11.model")
def test_the_busiest_unit_decides():
    """1000 blocks of 2**20 operations in waves of 264 blocks: four waves."""
    assert cycles((1000, 1, 1), arithmetic=2.0**20, turns=0) == 4 * 2 * 2**20 / 128
    assert cycles((1000, 1, 1), products=2.0**30, turns=0) == 4 * 2 * 2**30 / 4096
    assert cycles((1000, 1, 1), read=2.4e6, turns=0) == pytest.approx(4 * 2 * 1e5)
    assert cycles(products=1e9, rows=32) == pytest.approx(2 * cycles(products=1e9), rel=0.01)
    assert cycles(products=1e9, rows=64, warps=8) == pytest.approx(2 * cycles(products=1e9, rows=64), rel=0.01)
    assert cycles(double=1e7) == pytest.approx(2 * cycles(arithmetic=1e7), rel=0.01)


@shows("TUN-11.model")
def test_latency_is_hidden_by_other_blocks():
    slow = {"turns": 100.0, "arithmetic": 1e5}
    assert cycles(occupancy=4, **slow) < cycles(occupancy=2, **slow) < cycles(occupancy=1, **slow)
    assert cycles(turns=200.0) > 1.9 * cycles(turns=100.0)


@shows("TUN-11.model")
def test_registers():
    assert cycles(held=200 << 10, warps=8, occupancy=1) < cycles(held=200 << 10, warps=8)  # two blocks do not fit
    assert cycles(held=200 << 10, warps=8, occupancy=1) < cycles(held=200 << 10, warps=4, occupancy=1)  # nor four warps
    few, many, spilled = (Resources(r, s, 0, 256, 1, 0) for r, s in ((64, 0), (255, 0), (64, 8)))
    assert cycles(taken=few, turns=50.0) < cycles(taken=many, turns=50.0) < cycles(taken=spilled, turns=50.0)


@ct.kernel
def summed(x, y, n, T: ct.Constant[int]):
    t = ct.zeros((T,), ct.float32)
    for i in range(n):
        t += ct.load(x[i], ct.bid(0), T)
    ct.store(y, ct.bid(0), t)


def test_the_work_of_a_launch(monkeypatch):
    """From the arguments as a launch has them: an array, a list, a number."""
    installed(monkeypatch)
    x, y = ([arrays.at(4096 * n, (1024,)) for n in (1, 2)], arrays.at(1 << 20, (1024,)))
    plan, values = launch_plan.find(summed, (x, y, 2, 128), None)
    found = tuning_model.work_of(plan.program.kernel, (8, 1, 1), plan.dims, values)
    assert (found.read, found.written, found.turns) == (2 * 512, 512, 2)
    assert tuning_model.of_gpu(0).target.number >= 80 and tuning_model.of_gpu(0).processors > 0
    assert np.isfinite(tuning_model.of_gpu(0).cycles(found, (8, 1, 1), {}))

"""Searches whose configurations other processes measure [TUN-10]."""

import concurrent.futures
import multiprocessing
import os

import numpy as np
import pytest

import cutile as ct
from cutile.functions import tuning_spread as spread
from cutile.functions.tuning_check import Outputs
from tests.functions.kernels import scaled_kernel
from tests.functions.shows import shows
from tests.functions.tuning import TILES, X, tuned, wrong_at_16

pytestmark = pytest.mark.usefixtures("own_cache")


def process_of_scale(job):
    return os.getpid(), spread.measure(job).why


@shows("TUN-10.executor")
def test_other_processes_measure():
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        f = tuned(executor=executor)
        assert np.array_equal(f(X, 2.0), X * 2)
        assert len(f.last.times) == 3 and not f.last.failures
        job = spread.job({"TILE": 4}, scaled_kernel, (25, 1, 1), (X, X.copy(), 2.0, 4), None, Outputs())
        process, why = executor.submit(process_of_scale, job).result()
        assert process != os.getpid() and not why


@shows("TUN-10.executor")
def test_the_fastest_is_taken_whoever_measures(times):
    times.update({4: 30.0, 16: 10.0, 32: 20.0})
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        f = tuned(executor=executor)
        f(X, 2.0)
    assert f.last.best == {"TILE": 16} and [c["TILE"] for c, _, _ in f.last.times] == [16, 32, 4]


@shows("TUN-10.copies")
def test_arrays_of_the_caller_are_only_read():
    x = np.where(X < 4, X, 0)
    x.flags.writeable = False
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        f = ct.autotune([{"TILE": t} for t in (4, 16)], quiet=True, timeout_s=None, executor=executor)(
            ct.jit(counts, grid=(1,)).inout("total"))
        total = np.zeros(1, np.float32)
        f(total, x)
        assert total[0] == 6


@ct.kernel
def counts(total, x: ct.Array["N"], TILE: ct.Constant[int]):
    ct.atomic_add(total, 0, ct.sum(ct.load(x, 0, TILE)))


@shows("TUN-10.checked")
def test_what_others_store_is_compared():
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        f = tuned(kernel=wrong_at_16, executor=executor, reference=lambda x, factor: x * factor)
        f(X, 2.0)
        assert [c["TILE"] for c, _ in f.last.failures] == [16, 32]
        f = tuned([{"TILE": 32}, {"TILE": 4}], kernel=wrong_at_16, executor=executor)
        assert f.best(X, 2.0) == {"TILE": 4} and "no block stores element [0] of `y`" in f.last.failures[0][1]
        with pytest.raises(ValueError, match="its configurations store different values"):
            tuned([{"TILE": 16}, {"TILE": 4}], kernel=wrong_at_16, executor=executor)(X, 2.0)


@shows("TUN-10.found")
def test_kernels_that_others_cannot_import():
    @ct.kernel
    def own(x: ct.Array["N"], y, TILE: ct.Constant[int]):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), TILE))

    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        f = ct.autotune(TILES, quiet=True, executor=executor)(ct.jit(own, grid="cdiv(N, TILE)", out=ct.Out("N")))
        with pytest.raises(ValueError, match="executor= needs kernels that other processes can import, and .*own"):
            f(X)


@shows("TUN-10.lost")
def test_a_process_that_is_lost_fails_its_configuration():
    class Broken(concurrent.futures.Executor):
        def submit(self, f, job):
            future = concurrent.futures.Future()
            if job.config["TILE"] == 16:
                future.set_exception(concurrent.futures.BrokenExecutor("a worker ended"))
            else:
                future.set_result(f(job))
            return future

    f = tuned(executor=Broken())
    f(X, 2.0)
    assert [(c["TILE"], w) for c, w in f.last.failures] == [(16, "BrokenExecutor: a worker ended")]

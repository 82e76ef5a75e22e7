"""ct.compile_all: many compilations at once."""

import concurrent.futures
import threading

import pytest

import cutile as ct
from cutile.functions.compile_all import run_all
from tests.functions.kernels import softmax
from tests.functions.shows import shows
from tests.gpu.tileir.tool import needs_tool

OPEN = ct.ArraySpec("M N", ct.float32)


@needs_tool
@shows("CPL-5.order", "CPL-5.collect", "CPL-5.configs")
def test_configurations(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    got = softmax.compile_all([{"TILE": 32}, (3,), (16,)], (OPEN,), targets=["sm_90", "sm_100"], errors="collect")
    assert [type(g).__name__ for g in got] == ["Fresh", "Fresh", "TileTypeError", "TileTypeError", "Fresh", "Fresh"]
    assert [g.target for g in got if isinstance(g, ct.CompiledFunction)] == ["sm_90", "sm_100"] * 2
    assert "I32" in got[0].symbol and "I16" in got[4].symbol
    with pytest.raises(ct.TileTypeError):
        softmax.compile_all([{"TILE": 32}, {"TILE": 3}], (OPEN,), targets=["sm_90"])
    jobs = [(softmax, (OPEN, 16), {"target": "sm_90"}), (softmax, [OPEN, 32], {"target": "sm_90"})]
    assert [g.symbol for g in ct.compile_all(jobs, threads=2)] == [got[4].symbol, got[0].symbol]


@needs_tool
def test_configurations_of_an_iterator(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    got = softmax.compile_all(({"TILE": t} for t in (16, 32)), (OPEN,), targets=["sm_90", "sm_100"])
    assert [g.target for g in got] == ["sm_90", "sm_100"] * 2 and "I32" in got[-1].symbol


@pytest.mark.parametrize("configs", [None, 5, OPEN, "TILE", {"TILE": 32}, [5]], ids=lambda v: type(v).__name__)
def test_what_are_no_configurations(configs):
    with pytest.raises(TypeError, match="configurations of softmax.compile_all are a list of dictionaries"):
        softmax.compile_all(configs, (OPEN,), targets=["sm_90"])


@shows("CPL-5.jobs")
@pytest.mark.parametrize("job", [3, softmax, (softmax,), (3, OPEN), (softmax, OPEN, {}, 3)])
def test_what_is_no_job(job):
    with pytest.raises(TypeError, match="a job is"):
        ct.compile_all([job])


def test_what_to_do_with_errors():
    with pytest.raises(ValueError, match='"raise" or "collect"'):
        ct.compile_all([], errors="ignore")
    assert ct.compile_all([]) == []


def test_work_runs_at_once():
    barrier = threading.Barrier(3)

    def fails():
        barrier.wait(10)
        raise ZeroDivisionError

    got = run_all([lambda: barrier.wait(10) and 0 or 1, fails, lambda: barrier.wait(10) and 0 or 3], threads=3)
    assert got[0] == 1 and got[2] == 3 and isinstance(got[1], ZeroDivisionError)


def test_an_executor_of_the_caller():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert run_all([lambda: 1, lambda: 2], executor=pool) == [1, 2]
        assert pool.submit(lambda: 3).result() == 3


def test_an_interrupt_ends_what_waits():
    ran = []

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all([interrupted, *[lambda: ran.append(1)] * 50], threads=1)
    assert len(ran) < 50

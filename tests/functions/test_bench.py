"""do_bench: how calls are timed."""

import sys
import types

import numpy as np
import pytest

import cutile as ct
from cutile.functions import bench
from cutile.testing import do_bench
from tests.functions.kernels import softmax
from tests.functions.shows import shows
from tests.gpu.fake_driver import installed

X = np.ones((4, 8), np.float32)


@shows("BEN-1.result", "BEN-2.least", "BEN-5.cpu")
def test_results():
    calls = []
    ms = do_bench(lambda: calls.append(softmax(X)), warmup=1, repeats=3, mode="wall")
    assert isinstance(ms, float) and 0 < ms < 10_000 and len(calls) == 1 + 5 + 1 + 3
    low, high = do_bench(lambda: softmax(X), warmup=0, repeats=9, quantiles=(0.0, 1.0), mode="wall")
    assert low <= high
    assert do_bench(lambda: softmax(X), warmup_ms=0, rep_ms=0, return_samples=True, mode="wall").shape == (5,)


def test_statistics(monkeypatch):
    times = iter([1.0] * 100)
    monkeypatch.setattr(bench, "_wall", lambda call: next(times) * 1000)
    for statistic, want in {"min": 1, "max": 9, "median": 3, "mean": 4}.items():
        times = iter([1.0] * 5 + [1.0, 3.0, 2.0, 9.0, 5.0])
        assert do_bench(lambda: None, warmup=0, repeats=5, statistic=statistic, mode="wall") == want


@shows("BEN-1.wrong")
@pytest.mark.parametrize("given", [{"mode": "cupti"}, {"statistic": "mode"}, {"flush": "l1"}])
def test_what_there_is_not(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        do_bench(lambda: None, **given)


def test_gradients_are_dropped():
    x = types.SimpleNamespace(grad=3)
    do_bench(lambda: None, warmup=0, repeats=1, mode="wall", grad_to_none=[x])
    assert x.grad is None


@pytest.fixture
def gpu(monkeypatch):
    """A driver that is none, and a CuPy that has a current stream."""
    fake = installed(monkeypatch)
    cupy = types.ModuleType("cupy")
    stream = types.SimpleNamespace(ptr=7)
    cupy.cuda = types.SimpleNamespace(is_available=lambda: True, get_current_stream=lambda: stream,
                                      runtime=types.SimpleNamespace(getDevice=lambda: 1))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "torch", None)
    return fake


def busy(fake, ms):
    def call():
        fake.now += ms
        fake.calls.append(("call",))
    return call


@shows("BEN-3.flush")
def test_events(gpu):
    assert do_bench(busy(gpu, 0.5), warmup=1, repeats=2) == pytest.approx(0.5)
    names = [n for n in gpu.names() if n in ("cuMemsetD8Async", "cuEventRecord", "call")]
    assert names[1:5] == ["cuMemsetD8Async", "cuEventRecord", "call", "cuEventRecord"]
    assert names.count("cuMemsetD8Async") == 5 + 1 + 2
    assert all(c[-1] == 7 for c in gpu.calls if c[0] in ("cuMemsetD8Async", "cuEventRecord"))


@shows("BEN-3.short")
def test_short_calls_without_flushing(gpu):
    assert do_bench(busy(gpu, 0.01), warmup=0, repeats=1, flush=None) == pytest.approx(0.01)
    assert "cuMemsetD8Async" not in gpu.names()
    between = "".join("c" if n == "call" else "e" for n in gpu.names() if n in ("call", "cuEventRecord"))
    assert "e" + "c" * 16 + "e" in between


def test_no_gpu(monkeypatch):
    from cutile.gpu import driver

    def none():
        raise RuntimeError("no driver")

    monkeypatch.setattr(driver, "driver", none)
    with pytest.raises(ValueError, match='mode "graph" needs PyTorch|needs a GPU'):
        do_bench(lambda: None, mode="graph")
    with pytest.raises(ValueError, match="needs a GPU"):
        do_bench(lambda: None, mode="events")


def test_it_is_public():
    assert ct.testing.do_bench is do_bench

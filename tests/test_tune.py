"""cutile.tune [TUNE-1…11]."""

import numpy as np
import pytest

import cutile as ct
from cutile import tune
from cutile.gpu import build as building
from cutile.gpu import driver as drivers
from tests.gpu.arrays import Cuda, at
from tests.gpu.fake_driver import FakeDriver


@ct.kernel
def double(x, out, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, i, ct.load(x, i, N) * 2)


def search(space, **options):
    x = np.arange(64, dtype=np.float32)
    out = np.empty_like(x)
    return tune.exhaustive_search(space, None, lambda n: (64 // n,), double, lambda n: (x, out, n), quiet=True,
                                  **options)


def test_every_configuration_is_measured_and_the_fastest_is_best():
    result = search([16, 64])
    assert {m.config for m in result.successes} == {16, 64} and not result.failures
    assert result.best.mean_us == min(m.mean_us for m in result.successes)
    assert all(m.num_samples >= tune.MIN_SAMPLES for m in result.successes)


def test_a_configuration_that_cannot_run_is_a_failure():
    result = search([16, 3])
    assert [m.config for m in result.successes] == [16]
    (config, cls, message), = result.failures
    assert (config, cls) == (3, ct.TileTypeError) and "power of two" in message


def test_nothing_ran():
    with pytest.raises(ValueError, match="power of two"):
        search([3, 5])


def test_empty_space():
    with pytest.raises(ValueError, match="empty"):
        search([])


def test_errors_outside_the_runs_end_the_search():
    with pytest.raises(TypeError, match="unknown kernel option"):
        search([16], hints_fn=lambda n: {"no_such": 1})


def test_summary_marks_the_best_and_leaves_out_the_middle():
    ms = [tune.Measurement(config=i, mean_us=float(i), num_samples=5, error_margin_us=0.1) for i in range(1, 20)]
    text = str(tune.TuningResult(best=ms[0], successes=tuple(ms), failures=()))
    lines = text.splitlines()
    assert lines[1].startswith("*") and "…" in text and len(lines) == 1 + 10 + 1 + 2


# ------------------------------------------------------------------ on a GPU


@pytest.fixture
def gpu(monkeypatch):
    fake = FakeDriver()
    monkeypatch.setattr(drivers, "_driver", fake.start())
    monkeypatch.setattr(building, "build", lambda *a: f"cubin of {a[-1]}".encode())
    fake.takes.update({(4, 1, 1): 0.5, (1, 1, 1): 0.125})
    return fake


def search_on_gpu(**options):
    x, out = at(4096, (64,)), at(8192, (64,))
    kernel = ct.kernel(double.function)  # one that remembers nothing of another test's driver
    return tune.exhaustive_search([16, 64], 77, lambda n: (64 // n,), kernel, lambda n: (x, out, n), quiet=True,
                                  **options)


def test_times_on_a_gpu_are_the_gpus_own(gpu):  # TUNE-7
    result = search_on_gpu()
    assert {m.config: round(m.mean_us, 6) for m in result.successes} == {16: 500, 64: 125}
    timed = sum(m.num_samples + tune.WARM_UPS - 1 for m in result.successes)
    assert gpu.names().count("cuMemsetD8Async") == timed and gpu.names().count("cuEventSynchronize") == timed
    assert all(launch["stream"] == 77 for launch in gpu.launches)
    assert not gpu.events and gpu.names().count("cuMemAlloc") == gpu.names().count("cuMemFree") == 1


def test_without_flushing(gpu):
    result = search_on_gpu(flush_l2=False)
    assert result.best.config == 64 and "cuMemsetD8Async" not in gpu.names() and "cuMemAlloc" not in gpu.names()


def test_what_fails_on_the_gpu_is_a_failure(gpu):
    gpu.fails["cuEventSynchronize"] = 700
    with pytest.raises(ValueError, match="DriverError.*outside its arrays"):
        search_on_gpu()
    assert not gpu.events


def test_gpu_arrays_in_the_interpreter_go_by_the_wall_clock(gpu, monkeypatch):
    monkeypatch.setenv("CUTILE_BACKEND", "interp")
    x, out = Cuda(np.arange(64, dtype=np.float32)), Cuda(np.zeros(64, np.float32))
    result = tune.exhaustive_search([16], 77, lambda n: (64 // n,), ct.kernel(double.function), lambda n: (x, out, n),
                                    quiet=True)
    assert result.best.mean_us > 0 and "cuEventRecord" not in gpu.names() and out.array[3] == 6

"""cutile.tune [TUNE-1…11]."""

import io
import math
import sys
import threading

import numpy as np
import pytest

import cutile as ct
from cutile import tune
from cutile.tune import candidates
from tests.gpu.arrays import Cuda
from tests.gpu.fake_driver import installed


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
    assert all(m.num_samples >= candidates.MIN_SAMPLES for m in result.successes)


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
    fake = installed(monkeypatch)
    fake.takes.update({(4, 1, 1): 0.5, (1, 1, 1): 0.125})
    return fake


def search_on_gpu(**options):
    x, out = Cuda(np.arange(64, dtype=np.float32)), Cuda(np.zeros(64, np.float32))
    kernel = ct.kernel(double.function)  # a kernel without plans for another test's driver
    return tune.exhaustive_search([16, 64], 77, lambda n: (64 // n,), kernel, lambda n: (x, out, n), quiet=True,
                                  **options)


def test_times_on_a_gpu_are_the_gpus_own(gpu):  # TUNE-7
    result = search_on_gpu()
    assert {m.config: round(m.mean_us, 6) for m in result.successes} == {16: 500, 64: 125} and not result.note
    timed = sum(m.num_samples + candidates.WARM_UPS for m in result.successes)
    assert gpu.names().count("cuMemsetD8Async") == timed and gpu.names().count("cuEventSynchronize") == timed
    assert all(launch["stream"] == 77 for launch in gpu.launches)
    assert not gpu.events and gpu.names().count("cuMemAlloc") == gpu.names().count("cuMemFree") == 1
    assert gpu.names().count("cuMemAllocAsync") == gpu.names().count("cuMemFreeAsync") == timed


def test_configurations_are_compiled_at_once_and_before_any_run(gpu, monkeypatch):
    together, build = threading.Barrier(2, timeout=60), gpu.build

    def in_pairs(*given):
        together.wait()  # for the compilation of the other configuration
        assert not gpu.launches
        return build(*given)

    monkeypatch.setattr("cutile.gpu.cubin.build", in_pairs)
    monkeypatch.setattr(tune.os, "cpu_count", lambda: 2)
    assert {m.config for m in search_on_gpu().successes} == {16, 64}


def test_what_cannot_be_compiled_is_a_failure(gpu, monkeypatch):
    def build(program, constraints, target, options, symbol):
        if options.opt_level == 0:
            raise ct.TileCompilerExecutionError("no registers left")
        return gpu.build(program, constraints, target, options, symbol)

    monkeypatch.setattr("cutile.gpu.cubin.build", build)
    result = search_on_gpu(hints_fn=lambda n: {"opt_level": n // 32})
    assert [m.config for m in result.successes] == [64]
    assert [(f[0], f[1]) for f in result.failures] == [(16, ct.TileCompilerExecutionError)]


def test_arguments_are_made_for_each_run_and_for_what_is_compiled(gpu):
    x, out, made = Cuda(np.arange(64, dtype=np.float32)), Cuda(np.zeros(64, np.float32)), []
    tune.exhaustive_search([64], 77, lambda n: (1,), ct.kernel(double.function),
                           lambda n: made.append(n) or (x, out, n), quiet=True)
    assert len(made) == len(gpu.launches) + 1


def test_without_flushing(gpu):
    result = search_on_gpu(flush_l2=False)
    assert result.best.config == 64 and "cuMemsetD8Async" not in gpu.names() and "cuMemAlloc" not in gpu.names()


def test_what_fails_on_the_gpu_is_a_failure(gpu):
    gpu.fails["cuEventSynchronize"] = 700
    with pytest.raises(ValueError, match="DriverError.*outside its arrays"):
        search_on_gpu()
    assert not gpu.events


def test_gpu_memory_that_cannot_be_kept_is_a_failure(gpu):
    gpu.fails["cuMemAllocAsync"] = 999
    with pytest.raises(ValueError, match="no 256 bytes of GPU memory to keep what the kernel may change"):
        search_on_gpu()
    assert not gpu.launches


def test_gpu_arrays_in_the_interpreter_go_by_the_wall_clock(gpu, monkeypatch):
    monkeypatch.setenv("CUTILE_BACKEND", "interp")
    x, out = Cuda(np.arange(64, dtype=np.float32)), Cuda(np.zeros(64, np.float32))
    result = tune.exhaustive_search([1, 2], 77, lambda n: (4,), ct.kernel(double.function), lambda n: (x, out, 16),
                                    lambda n: {"num_ctas": n}, quiet=True)
    assert result.best.mean_us > 0 and "cuEventRecord" not in gpu.names() and not out.array.any()
    assert "2 configurations are 1 kernel" in result.note


# ------------------------------------------------------------------ the interpreter ignores hints


@ct.kernel
def add(x, n, C: ct.Constant):
    ct.store(x, ct.bid(0), ct.load(x, ct.bid(0), 4) + (n + C))


def counted(space, args, hints=lambda c: {}, kernel=add, grid=lambda c: (4,), **options):
    """The result of a search, and how often it launched."""
    launches, launch = [], candidates.launch.launch
    with pytest.MonkeyPatch.context() as m:
        m.setattr(candidates.launch, "launch", lambda *given: launches.append(given) or launch(*given))
        result = tune.exhaustive_search(space, None, grid, kernel, args, hints, quiet=True, **options)
    return result, len(launches)


A_SEARCH = candidates.WARM_UPS_INTERPRETED + candidates.BATCH


def test_configurations_that_differ_in_hints_are_measured_once():
    space = [(n, k) for n in (1, 2, 4) for k in (1, 2, 3)]
    result, launches = counted(space, lambda c: (np.zeros(16, np.float32), 1, 2),
                               lambda c: {"num_ctas": c[0], "occupancy": c[1]})
    assert launches == A_SEARCH and [m.config for m in result.successes] == space
    assert len({(m.mean_us, m.num_samples) for m in result.successes}) == 1 and result.best.config == space[0]
    assert "9 configurations are 1 kernel there" in result.note and result.note in str(result)


@pytest.mark.parametrize("args, grid", [
    (lambda c: (np.zeros(16 * c, np.float32), 1, 2), lambda c: (4,)),
    (lambda c: (np.zeros(16, (np.float32, np.float16)[c - 1]), 1, 2), lambda c: (4,)),
    (lambda c: (np.zeros(16, np.float32), c, 2), lambda c: (4,)),
    (lambda c: (np.zeros(16, np.float32), 1, c), lambda c: (4,)),
    (lambda c: (np.zeros(16, np.float32), 1, 2), lambda c: (c,))],
    ids=["shape", "dtype", "number", "constant", "grid"])
def test_what_else_differs_is_measured_apart(args, grid):
    result, launches = counted([1, 2], args, grid=grid)
    assert launches == 2 * A_SEARCH and "configurations are" not in result.note


def test_configurations_of_different_kernels_are_measured_apart():
    other = ct.kernel(add.function)
    _, launches = counted([1, 2], lambda c: (np.zeros(16, np.float32), 1, 2), kernel=lambda c: (add, other)[c - 1])
    assert launches == 2 * A_SEARCH


def test_a_kernel_that_fails_fails_for_all_its_configurations():
    @ct.kernel
    def fails(x):
        ct.assert_(ct.bid(0) < 2, "too far")

    with pytest.raises(ValueError, match="too far"):
        counted([1, 2], lambda c: (np.zeros(4),), lambda c: {"occupancy": c}, fails)
    result, launches = counted([1, 2, 3], lambda c: (np.zeros(4),), lambda c: {"occupancy": c}, fails,
                               lambda c: (1 + c // 2 * 2,))
    assert [m.config for m in result.successes] == [1] and [f[0] for f in result.failures] == [2, 3]
    assert launches == A_SEARCH + 1


def test_slow_kernels_are_sampled_less(monkeypatch):
    monkeypatch.setattr(candidates, "MAX_SECONDS", 0)
    result, launches = counted([1], lambda c: (np.zeros(16, np.float32), 1, 2))
    assert launches == candidates.WARM_UPS_INTERPRETED + 1 and result.best.num_samples == 1


# ------------------------------------------------------------------ arrays are as they were


@ct.kernel
def everything(x, y, both, pair):
    ct.store(x, 0, ct.load(y, 0, 4) + ct.load(both[0], 0, 4))
    ct.store(both[1], 0, ct.load(x, 0, 4))
    ct.atomic_add(pair[0], 0, ct.load(pair[1], 0, ()))


@pytest.mark.parametrize("hints", [lambda c: {}, lambda c: {"occupancy": c}])
def test_arrays_are_as_they_were(hints):
    memory = np.arange(32, dtype=np.float32)
    memory[5], memory[7] = -0.0, np.nan
    arrays = memory[::2][:8], memory[6:14], [memory[::-1][:4], memory[14:18]], (memory[20:21], memory[31:])
    before, seen = memory.tobytes(), []

    def args(c):
        seen.append(memory.tobytes())
        return arrays

    tune.exhaustive_search([1, 2], None, lambda c: (1,), everything, args, hints, quiet=True)
    assert memory.tobytes() == before and set(seen) == {before}  # so all runs see the same data


def test_arrays_are_as_they_were_after_a_failure_and_an_interrupt(monkeypatch):
    @ct.kernel
    def fails(x, n):
        ct.store(x, 0, ct.load(x, 0, 4) + 1)
        ct.assert_(n < 2, "too far")

    x = np.zeros(4, np.float32)
    result = tune.exhaustive_search([1, 2], None, lambda n: (1,), fails, lambda n: (x, n), quiet=True)
    assert len(result.failures) == 1 and not x.any()
    launch = candidates.launch.launch

    def interrupted(*given):
        launch(*given)
        assert x.any()
        raise KeyboardInterrupt

    monkeypatch.setattr(candidates.launch, "launch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune.exhaustive_search([1], None, lambda n: (1,), fails, lambda n: (x, n), quiet=True)
    assert not x.any()


def test_an_interrupt_while_arrays_are_put_back():
    from cutile.runtime.restoring import _even_if_interrupted

    calls = []

    def restore():
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _even_if_interrupted(restore)
    assert len(calls) == 2


def test_gpu_arrays_are_as_they_were(gpu):
    x = Cuda(np.arange(64, dtype=np.float32))
    out = Cuda(np.arange(256, dtype=np.float32)[5:][:192:3])
    before = out.array.base.tobytes()

    def runs(*parameters):
        out.array[:] = 7

    gpu.runs = runs
    tune.exhaustive_search([16, 64], 77, lambda n: (64 // n,), ct.kernel(double.function), lambda n: (x, out, n),
                           quiet=True)
    assert len(gpu.launches) > 8 and out.array.base.tobytes() == before
    gpu.fails["cuLaunchKernel"] = 719
    with pytest.raises(ValueError, match="DriverError"):
        tune.exhaustive_search([16], 77, lambda n: (64 // n,), ct.kernel(double.function), lambda n: (x, out, n),
                               quiet=True)
    assert out.array.base.tobytes() == before


# ------------------------------------------------------------------ wrong arguments


X = np.arange(64, dtype=np.float32)
RIGHT = {"grid_fn": lambda n: (64 // n,), "kernel": double, "args_fn": lambda n: (X, np.empty_like(X), n)}


def given(**options):
    return tune.exhaustive_search(options.pop("search_space", [16]), None, **{**RIGHT, **options})


@pytest.mark.parametrize("value", [5, (4,), "text", [double], {}], ids=repr)
@pytest.mark.parametrize("name", ["search_space", "grid_fn", "kernel", "args_fn", "hints_fn"])
def test_what_is_no_function_is_refused_by_name(name, value):
    if name == "search_space":
        value = 5
    with pytest.raises(TypeError, match=f"{name}.* is a (function|kernel|list).*, not"):
        given(**{name: value}, quiet=True)


def test_what_functions_return():
    for other in (None, 5, lambda x: x):
        with pytest.raises(TypeError, match="given for `kernel` returned .* for the configuration 16, and no kernel"):
            given(kernel=lambda n: other, quiet=True)  # noqa: B023
    for other in (None, 5, [("occupancy", 2)]):
        with pytest.raises(TypeError, match="hints_fn returned .* for the configuration 16, and no dictionary"):
            given(hints_fn=lambda n: other, quiet=True)  # noqa: B023


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_without_standard_streams(name, monkeypatch):
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, name, stream)
        assert given().best.config == 16


@pytest.mark.parametrize("seconds", [math.inf, 1e300])
def test_a_limit_beyond_what_threads_wait(seconds):
    result = given(single_run_timeout_sec=seconds, quiet=True)
    assert result.best.config == 16 and not result.failures

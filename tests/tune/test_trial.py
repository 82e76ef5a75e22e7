"""First runs in another process: what is copied, how a kernel is found, and what happens if a run does not end."""

import shutil
import subprocess
import sys
import textwrap

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile import tune
from cutile.tune import candidates, trial
from cutile.tune.trial import TileLaunchTimeoutError, Trials, copied, route_to


@ct.kernel
def waits(x, out, N: ct.Constant[int]):
    i = ct.bid(0)
    while N == 32:
        pass
    ct.store(out, i, ct.load(x, i, N) * 2)


@ct.jit(grid=(1,), out=ct.Out("N"))
def made(n):
    @ct.kernel
    def k(x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 4) + n)

    return k


SPACE = [16, 32, 64]
X = np.arange(64, dtype=np.float32)


def test_a_configuration_that_hangs_is_ended_alone():
    out = np.zeros_like(X)
    result = tune.exhaustive_search(SPACE, None, lambda n: (64 // n,), waits, lambda n: (X, out, n), quiet=True,
                                    single_run_timeout_sec=5)
    assert {m.config for m in result.successes} == {16, 64}
    [(config, cls, message)] = result.failures
    assert (config, cls) == (32, TileLaunchTimeoutError) and "5.0 s" in message
    assert not out.any()


@pytest.mark.parametrize("seconds", [0, -1, "1", True])
def test_limits_that_are_none(seconds):
    with pytest.raises(ValueError, match="single_run_timeout_sec is a number of seconds"):
        tune.exhaustive_search(SPACE, None, lambda n: (1,), waits, lambda n: (X, X, n), single_run_timeout_sec=seconds)


def test_a_run_leaves_the_arrays_alone():
    trials, out = Trials(), np.zeros_like(X)
    try:
        assert trials.run(waits, (1, 1, 1), (X, out, 64), 60) and not out.any()
        first = trials._process
        assert trials.run(waits, (1, 1, 1), (X, out, 16), 60) and trials._process is first
        assert not trials.run(waits, (1, 1, 1), (X, out, 3), 60)  # its error is that of the run that counts
    finally:
        trials.close()
    assert first.poll() is not None


def search(space=(16, 64)):
    return tune.exhaustive_search(space, None, lambda n: (64 // n,), waits, lambda n: (X, np.zeros_like(X), n),
                                  quiet=True, single_run_timeout_sec=5)


@pytest.fixture
def nothing_runs_here(monkeypatch):
    monkeypatch.setattr(candidates.Candidate, "run", lambda *a: pytest.fail("a run without a limit"))


@pytest.mark.parametrize("program", [sys.executable + " that is not there", shutil.which("false")])
def test_a_process_that_does_not_start(monkeypatch, nothing_runs_here, program):
    if program is None:
        pytest.skip("there is no program `false`")
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(ValueError, match="no configuration ran; .* in a process of their own, which does not start"):
        search()


def test_a_process_that_cannot_import_the_kernel(monkeypatch, nothing_runs_here):
    route = trial.Route("a_module_that_is_not_there", None, "k", None, {})
    monkeypatch.setattr(trial, "route_to", lambda kernel: route)
    with pytest.raises(ValueError, match="could not make the first run: ModuleNotFoundError: .*a_module_that_is_not"):
        search()


def test_a_process_that_runs_out_of_memory(monkeypatch, nothing_runs_here):
    """What fails there for reasons of the process does not run here, where nothing would end it."""
    launched = trial.copied
    monkeypatch.setattr(trial, "copied", lambda args: (launched(args[0]), _Large(), args[2]))
    with pytest.raises(ValueError, match="could not make the first run: MemoryError"):
        search([16])


class _Large(trial.Copied):
    """An array for which another process has no memory."""

    def __init__(self):
        super().__init__(b"", 0, (0,), (1,), ct.float32, None)

    def array(self, gpu=None):
        raise MemoryError


def test_which_kernels_another_process_finds():
    @ct.kernel
    def local():
        pass

    assert route_to(local) is None
    assert route_to(waits.replace_hints(occupancy=2)).hints["occupancy"] == 2
    route = route_to(made(5).kernel)
    assert route.name == "made" and route.call == ((5,), {})
    assert route.kernel().function is made(5).kernel.function


@pytest.mark.parametrize("a", [
    np.arange(24, dtype=np.float32).reshape(4, 6)[::2, 1:4], np.arange(6, dtype=np.int8)[::-1], 
    np.zeros((0, 3), np.int64),
    np.arange(4).astype(ml_dtypes.bfloat16), np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
    np.array(3, np.int16), np.broadcast_to(np.float32(2), (3, 4)),
], ids=str)
def test_arrays_are_copied_with_their_layout(a):
    b = copied(a).array()
    assert b.dtype == a.dtype and b.strides == a.strides and np.array_equal(a, b) and not np.shares_memory(a, b)


def test_other_arguments():
    got = copied(([X], (1, 2.5, "x", None), True))
    assert got[1:] == ((1, 2.5, "x", None), True) and np.array_equal(got[0][0].array(), X)


@pytest.mark.parametrize("guarded", [False, True])
def test_kernels_of_a_script(tmp_path, guarded):
    """With `if __name__ == "__main__"` and without it: the other process runs the script up to its search."""
    body = """
        x = np.arange(64, dtype=np.float32)
        out = np.zeros_like(x)
        result = tune.exhaustive_search([16, 32], None, lambda n: (64 // n,), k, lambda n: (x, out, n), quiet=True,
                                        single_run_timeout_sec=5)
        print([m.config for m in result.successes], [(f[0], f[1].__name__) for f in result.failures])
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent("""
        import numpy as np
        import cutile as ct
        from cutile import tune
        @ct.kernel
        def k(x, out, N: ct.Constant[int]):
            i = ct.bid(0)
            while N == 32:
                pass
            ct.store(out, i, ct.load(x, i, N) * 2)
        """) + f"if __name__ == '__main__' or not {guarded}:\n" + textwrap.indent(textwrap.dedent(body), "    "))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[16] [(32, 'TileLaunchTimeoutError')]", done.stderr

"""Programs of JAX that end while kernels still run, in processes of their own."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.functions.shows import shows

jax = pytest.importorskip("jax")
from cutile.jax import ending, host  # noqa: E402

START = """
    import atexit, signal, sys
    import jax
    jax.config.update("jax_num_cpu_devices", 4)
    atexit.register(lambda: print("first registered", f(jax.numpy.ones(4))[0] if "early" in sys.argv else ""))
    import cutile as ct, cutile.jax

    @ct.jit(grid="cdiv(N, 4)", out=ct.Out("N"))
    @ct.kernel
    def kernel(x: ct.Array["N"], y, turns: ct.Constant[int]):
        t = ct.load(x, ct.bid(0), 4)
        for _ in range(turns):
            t = 0.5 * t
        ct.store(y, ct.bid(0), t)

    mesh, spec = jax.make_mesh((4,), ("d",)), jax.sharding.PartitionSpec("d")
    x = jax.device_put(jax.numpy.ones(4096), jax.NamedSharding(mesh, spec))
    f = jax.jit(lambda x: kernel(x, 1))
    each = lambda turns: jax.jit(jax.shard_map(lambda x: kernel(x, turns), mesh=mesh, in_specs=spec, out_specs=spec))
"""


def ended(folder, code, *arguments):
    """What a process printed, its errors, and its exit status. It fails if the process hangs."""
    program = folder / "program.py"
    program.write_text(textwrap.dedent(START) + textwrap.dedent(code))
    done = subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    return done.stdout, done.stderr, done.returncode


@shows("JC-14.end")
def test_results_that_nobody_waits_for(tmp_path):
    """XLA's threads hang if they ask for the GIL too late. Calls by functions for atexit work."""
    out, errors, status = ended(tmp_path, """
        y = [each(1)(x + i) for i in range(3)]
        each(2)(x)
        atexit.register(lambda: print("last registered", f(jax.numpy.ones(4))[0]))
    """, "early")
    assert (out, status) == ("last registered 0.5\nfirst registered 0.5\n", 0), errors


@shows("JC-14.end")
def test_an_error_ends_the_program(tmp_path):
    out, errors, status = ended(tmp_path, """
        y = each(1)(each(1)(x))
        1 / 0
    """)
    assert status == 1 and errors.rstrip().endswith("ZeroDivisionError: division by zero")


@shows("JC-14.end")
def test_an_interrupt_while_the_program_ends(tmp_path):
    """The first ends the waiting for results, the second the kernels."""
    out, errors, status = ended(tmp_path, """
        each(1)(x).block_until_ready()
        y = each(2**30)(x)

        left = [0, 1]

        def interrupt(*_):
            print("interrupted", flush=True)
            left.pop() or signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    """)
    assert (status, out.count("interrupted")) == (0, 2), errors


class Handlers:
    """Some calls that run, and one fewer at each look."""

    def __init__(self, calls):
        self.calls, self.looks = calls, []

    def close(self):
        self.looks.append(self.calls)
        self.calls -= 1
        return self.looks[-1]


@pytest.mark.parametrize("error", [RuntimeError("no platform cpu"), KeyboardInterrupt()])
def test_calls_are_refused_whatever_happens_before(monkeypatch, error):
    def fails(*_):
        raise error

    handlers = Handlers(2)
    monkeypatch.setattr(jax, "live_arrays", fails)
    monkeypatch.setattr(host, "used", lambda: True)
    ending._end(handlers, os.getpid())
    assert handlers.looks == [2, 1, 0]


def test_a_fork_does_not_wait_for_threads_that_it_has_not():
    handlers = Handlers(2)
    ending._end(handlers, os.getpid() + 1)
    assert handlers.looks == []


def test_interrupts_stop_what_runs(monkeypatch):
    handlers, stopped = Handlers(2), []

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ending.time, "sleep", interrupt)
    monkeypatch.setattr(host, "used", lambda: False)
    monkeypatch.setattr(host, "stop", lambda: stopped.append(handlers.calls))
    ending._end(handlers, os.getpid())
    assert stopped == [1, 0] and handlers.looks == [2, 1, 0]

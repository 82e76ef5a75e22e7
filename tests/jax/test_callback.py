"""Calls through buffer_callback: where the handlers in C are missing, and kernels without outputs."""

import numpy as np
import pytest

import cutile as ct
from tests.functions.shows import shows
from tests.jax.kernels import N, accumulate, add, first_half, scale

jax = pytest.importorskip("jax")
jnp = jax.numpy
from cutile.jax import InputOutput, OutputPlaceholder, cutile_call, primitive  # noqa: E402

X, Y = jnp.arange(3 * N, dtype=jnp.float32).reshape(3, N), jnp.arange(N, dtype=jnp.float32) * 100
either = pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])


def out():
    return OutputPlaceholder((N,), "float32")


@pytest.fixture
def no_handlers(monkeypatch):
    monkeypatch.setattr(primitive, "handlers", lambda: None)
    primitive._compiled.cache_clear()
    yield
    primitive._compiled.cache_clear()


@shows("JC-14.callback")
@either
def test_without_handlers(no_handlers, jit):
    f = jit(lambda x, y: cutile_call((1,), add, (x, y, out())))
    assert np.array_equal(f(X[0], Y), X[0] + Y)
    assert np.array_equal(jit(lambda x: cutile_call((2,), scale, (x, out(), 2.0, 4)))(Y), Y * 2)
    g = jit(lambda x, y: cutile_call((1,), accumulate, (x, InputOutput(y))))
    assert np.array_equal(g(X[1], Y), X[1] + Y)
    nested = jax.vmap(jax.vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    assert np.array_equal(jit(nested)(X, X + 1), X[:, None] + X[None] + 1)
    assert np.array_equal(jit(jax.vmap(g, in_axes=(None, 0)))(Y, X), X + Y)
    half = jit(lambda x: cutile_call((1,), first_half, (x, out())))(Y)
    assert np.array_equal(half, np.where(np.arange(N) < N // 2, Y, np.nan), equal_nan=True)
    if jit is jax.jit:
        assert "callback" in f.lower(X[0], Y).as_text()


def test_on_a_gpu_in_the_interpreter(monkeypatch):
    monkeypatch.setenv("CUTILE_BACKEND", "interp")
    f = jax.jit(lambda x: cutile_call((2,), scale, (x, out(), 2.0, 4)))
    assert "xla_buffer_python_gpu_callback" in f.trace(Y).lower(lowering_platforms=("cuda",)).as_text()


@either
def test_a_kernel_without_outputs(jit, capfd):
    @ct.kernel
    def show(x):
        ct.print("sum", ct.sum(ct.load(x, 0, N)))

    f = jit(lambda x: cutile_call((1,), show, (x,)))
    assert f(Y) == ()
    jax.effects_barrier()
    assert "sum 2800" in capfd.readouterr().out

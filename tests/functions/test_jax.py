"""Functions on arrays of JAX, inside jax.jit and outside. Skipped where JAX is not installed."""

import numpy as np
import pytest

import cutile as ct
from tests.functions.kernels import scaled, softmax

jax = pytest.importorskip("jax")
jnp = jax.numpy

either = pytest.mark.parametrize("jit", [False, True])
X = np.random.default_rng(0).random((5, 12)).astype(np.float32)


@either
def test_an_output(jit):
    f = jax.jit(softmax) if jit else softmax
    y = f(jnp.asarray(X))
    assert isinstance(y, jax.Array) and np.allclose(np.asarray(y).sum(1), 1)


@either
def test_numbers(jit):
    f = jax.jit(lambda x: scaled(x, 3.0) + 1) if jit else lambda x: scaled(x, 3.0) + 1
    assert np.array_equal(np.asarray(f(jnp.arange(10.0))), np.arange(10) * 3 + 1)


def test_errors():
    x = jnp.asarray(X)
    with pytest.raises(TypeError, match="cannot be given"):
        softmax(x, out=x)
    with pytest.raises(ValueError, match="must have 2 axes"):
        jax.jit(softmax)(x[0])
    with pytest.raises(TypeError, match="an array of JAX"):
        @ct.kernel
        def k(a: ct.Array["N"], b: ct.Array["N"], c):
            ct.store(c, 0, ct.load(a, 0, 4))

        ct.jit(k, grid=(1,), out=ct.Out("N"))(x[0], X[0])


@either
def test_arguments_that_are_written(jit):
    @ct.kernel
    def k(x: ct.Array["N"], y):
        t = ct.load(x, 0, 4)
        ct.store(x, 0, t + 1)
        ct.store(y, 0, ct.load(y, 0, 4) + t)

    f = ct.jit(k, grid=(1,), out=ct.Out("N", fill=5)).inout("x")
    x = jnp.arange(4.0)
    a, b = (jax.jit(f) if jit else f)(x)
    assert a.tolist() == [1, 2, 3, 4] and b.tolist() == [5, 6, 7, 8] and x.tolist() == [0, 1, 2, 3]


def test_a_function_that_writes_nothing():
    @ct.kernel
    def k(x: ct.Array["N"]):
        pass

    with pytest.raises(TypeError, match="arrays of JAX cannot be written to"):
        ct.jit(k, grid=(1,))(jnp.arange(4.0))


def test_the_target_of_a_function():
    f = ct.jit(scaled.kernel, **{**scaled.given, "target": "sm_80"})
    jaxpr = jax.make_jaxpr(lambda x: f(x, 3.0))(jnp.arange(10.0))
    assert [e.params["call"].target for e in jaxpr.eqns if e.primitive.name == "cutile_call"] == ["sm_80"]

"""Functions on arrays of JAX, inside jax.jit and outside. Skipped where JAX is not installed."""

import functools

import numpy as np
import pytest

import cutile as ct
from tests.functions.kernels import scaled, scaled_kernel, softmax
from tests.functions.shows import shows

jax = pytest.importorskip("jax")
jnp = jax.numpy
from cutile.jax import custom_vjp  # noqa: E402

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
    with pytest.raises(TypeError, match=r"make `b` an array of JAX, jax.numpy.asarray\(b\)"):
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


@pytest.fixture
def tuned(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    f = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), name="scaled")
    return ct.autotune([{"TILE": 8, "occupancy": 2}, {"TILE": 16, "occupancy": 2}], quiet=True, timeout_s=None)(f)


@shows("TUN-12.jax")
@either
def test_results_of_a_search_serve_arrays_of_jax(tuned, jit):
    x = np.arange(32, dtype=np.float32)
    f = jax.jit(lambda x: tuned(x, 2.0)) if jit else lambda x: tuned(x, 2.0)
    with pytest.raises(TypeError, match=r"scaled\(\): no search has run for such arrays, .* scaled.tune"):
        f(jnp.asarray(x))
    best = tuned.best(x, 2.0)
    assert tuned.best(jnp.asarray(x), 2.0) == best
    assert np.array_equal(f(jnp.asarray(x)), 2 * x)
    with pytest.raises(TypeError, match="no search has run"):
        f(jnp.asarray(x, jnp.bfloat16))


@shows("TUN-12.jax")
@either
def test_a_configuration_with_hints_that_is_given(tuned, jit):
    x = jnp.arange(32.0)
    f = custom_vjp(tuned, lambda factor, grad_y: {"x": factor * grad_y})
    for g in (tuned, f):
        g = functools.partial(g, factor=2.0, TILE=8, occupancy=4)
        assert np.array_equal((jax.jit(g) if jit else g)(x), 2 * x)
    calls = jax.make_jaxpr(lambda x: tuned(x, 2.0, TILE=8, occupancy=4))(x).eqns
    assert [e.params["call"].kernel.options.occupancy for e in calls if e.primitive.name == "cutile_call"] == [4]
    with pytest.raises(TypeError, match=r"scaled\(\) has no argument occupancy"):
        custom_vjp(tuned.function, lambda factor, grad_y: {})(x, factor=2.0, occupancy=4)


def test_tools_take_arrays_of_jax():
    x = jnp.arange(8.0)
    f = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), defaults={"TILE": 4})
    assert not ct.testing.assert_matches(f, lambda x, factor: 2 * x, (x, 2.0)).error
    assert f.profile(x, 2.0).bytes_read == 32
    assert [a.name for a in ct.bounds.bounds(f, None, (x, 2.0)).arrays] == ["x", "y"]
    with pytest.raises(TypeError, match="an array that JAX traces has no value yet; call this outside of jax.jit"):
        jax.jit(lambda x: f.profile(x, 2.0))(x)


def test_the_target_of_a_function():
    f = ct.jit(scaled.kernel, **{**scaled.given, "target": "sm_80"})
    jaxpr = jax.make_jaxpr(lambda x: f(x, 3.0))(jnp.arange(10.0))
    assert [e.params["call"].target for e in jaxpr.eqns if e.primitive.name == "cutile_call"] == ["sm_80"]

"""Functions by ct.jit with a derivative in JAX."""

import numpy as np
import pytest

import cutile as ct
from tests.functions.shows import shows
from tests.jax.kernels import N, square, square_backward

jax = pytest.importorskip("jax")
jnp = jax.numpy
from cutile.jax import custom_vjp  # noqa: E402

X = np.arange(3 * N, dtype=np.float32).reshape(3, N)
squared = custom_vjp(square, square_backward)


@shows("JC-10.backward")
def test_a_backward_kernel():
    assert np.array_equal(squared(X[0]), X[0] ** 2)
    for f in (jax.grad, lambda f: jax.jit(jax.grad(f))):
        assert np.array_equal(f(lambda x: (squared(x) * 3).sum())(jnp.asarray(X[0])), 6 * X[0])


@shows("JC-10.vmap")
def test_with_vmap():
    assert np.array_equal(jax.vmap(jax.grad(lambda x: squared(x).sum()))(X), 2 * X)
    assert np.array_equal(jax.grad(lambda x: jax.vmap(squared)(x).sum())(X), 2 * X)


@shows("JC-10.backward")
def test_a_backward_function_in_python():
    f = custom_vjp(square, lambda x, y, grad_y, T: {"x": 2 * x * grad_y + 0 * y + (T == 8)})
    assert np.array_equal(jax.grad(lambda x: f(x, T=8).sum())(jnp.asarray(X[0])), 2 * X[0] + 1)


def test_gradients_agree_with_differences():
    from jax.test_util import check_grads

    check_grads(squared, (jnp.linspace(0.5, 1, N),), order=1, modes=["rev"], atol=1e-2, rtol=1e-2)


@ct.jit(grid=1, out=(ct.Out("N"), ct.Out("N")))
@ct.kernel
def both(x: ct.Array["N"], i: ct.Array["N"], total, product):
    a, b = ct.load(x, 0, N), ct.load(i, 0, N)
    ct.store(total, 0, a + b)
    ct.store(product, 0, a * b)


@shows("JC-10.shard")
@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_devices_that_share_an_argument(jit):
    """Its gradient is the sum over the devices."""
    f = custom_vjp(both, lambda x, i, grad_total, grad_product: {
        "x": grad_total + i * grad_product, "i": grad_total + x * grad_product})
    mesh = jax.make_mesh((4,), ("d",))
    over, every = jax.sharding.PartitionSpec("d"), jax.sharding.PartitionSpec()

    def loss(shared, x):
        total, product = f(x, shared)
        return jax.lax.psum(jnp.sum(total * product), "d")

    x = jax.device_put(jnp.arange(4.0 * N), jax.sharding.NamedSharding(mesh, over))
    shared = jnp.linspace(1, 2, N)
    gradients = jax.shard_map(jax.grad(loss, argnums=(0, 1)), mesh=mesh, in_specs=(every, over),
                              out_specs=(every, over))
    found = jit(gradients)(jax.device_put(shared, jax.sharding.NamedSharding(mesh, every)), x)
    plain = jax.grad(lambda s, x: jnp.sum((x + s) * x * s), argnums=(0, 1))(shared, np.arange(4.0 * N).reshape(4, N))
    assert np.allclose(found[0], plain[0], rtol=1e-5) and np.allclose(found[1].reshape(4, N), plain[1], rtol=1e-5)


def test_several_outputs_and_inputs_without_gradient():
    f = custom_vjp(both, lambda i, grad_total, grad_product: {"x": grad_total + i * grad_product})
    x, i = jnp.asarray(X[1]), jnp.arange(N, dtype=jnp.int32)
    assert np.array_equal(jax.grad(lambda x: sum(map(jnp.sum, f(x, i))))(x), 1 + np.arange(N))
    y = jnp.asarray(X[2])
    grads = jax.grad(lambda x, y: sum(map(jnp.sum, f(x, y))), argnums=(0, 1))(x, y)
    assert np.array_equal(grads[0], 1 + X[2]) and not grads[1].any()


def test_wrong_functions():
    with pytest.raises(TypeError, match="custom_vjp.. takes a function made by ct.jit that declares outputs"):
        custom_vjp(lambda x: x, square_backward)
    with pytest.raises(TypeError, match="backward takes grad_z, which is no .*; there are x, T, y, grad_y"):
        custom_vjp(square, lambda x, grad_z: {})
    with pytest.raises(TypeError, match="output y of backward is no gradient; those are named grad_x, grad_T"):
        custom_vjp(square, square)
    with pytest.raises(TypeError, match="missing a required argument"):
        squared()

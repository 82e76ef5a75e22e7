"""Functions by ct.jit with a derivative in JAX."""

import re

import numpy as np
import pytest

import cutile as ct
from tests.functions.shows import shows
from tests.jax.kernels import N, square, square_backward
from tools.docgen import framework_errors

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
    f = custom_vjp(both, lambda i, grad_total, grad_product: {"x": grad_total + i * grad_product, "i": None})
    y = jnp.asarray(X[2])
    grads = jax.grad(lambda x, y: sum(map(jnp.sum, f(x, y))), argnums=(0, 1))(x, y)
    assert np.array_equal(grads[0], 1 + X[2]) and not grads[1].any()


@shows("JC-10.outputs")
def test_outputs_that_serve_the_gradient():
    """The backward function takes a result that callers do not use, and the gradient of an output of integers is 0."""
    @ct.jit(grid=1, out=(ct.Out("N"), ct.Out("N", ct.int32)))
    @ct.kernel
    def rounded(x: ct.Array["N"], y, n):
        t = ct.load(x, 0, N)
        ct.store(y, 0, t * t)
        ct.store(n, 0, ct.floor(t).astype(ct.int32))

    f = custom_vjp(rounded, lambda n, grad_y, grad_n: {"x": 2 * n * grad_y + grad_n})
    assert np.array_equal(jax.grad(lambda x: f(x)[0].sum())(jnp.asarray(X[0])), 2 * X[0])


@shows("JC-10.wrong")
@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("found, text", [
    ({"grad_x": 1}, "returned a gradient of 'grad_x', which is no input; did you mean x.; write {\"x\": ...}"),
    ({}, "returned no gradient of x; write {\"x\": ...}, with None where it is 0"),
    ({"x": np.ones((2, N))}, r"returned a gradient of x of shape \(2, 8\), but x has \(8,\); sum over the other axes"),
    ({"x": None, "T": 1}, "returned a gradient of T, which is no array here; leave it out"),
    ((1,), "must return a dictionary of gradients by input, such as {\"x\": ...}, not tuple")])
def test_wrong_gradients(jit, found, text):
    f = custom_vjp(square, lambda x, grad_y: found)
    with pytest.raises(TypeError, match=text):
        jit(jax.grad(lambda x: f(x).sum()))(jnp.asarray(X[0]))


@shows("JC-10.dtype")
@pytest.mark.parametrize("backward", [lambda x, grad_y: {"x": (2 * x * grad_y).astype(jnp.bfloat16)},
                                      lambda x, grad_y: {"x": np.arange(0, 2 * N, 2)}])
def test_a_gradient_has_the_dtype_of_its_input(backward):
    f = custom_vjp(square, backward)
    g = jax.grad(lambda x: f(x).sum())(jnp.asarray(X[0]))
    assert g.dtype == jnp.float32 and np.array_equal(g, 2 * X[0])


@shows("JC-10.dtype")
def test_a_gradient_by_a_kernel_is_not_rounded_to_the_dtype_of_another_input():
    @ct.jit(grid=1, out=ct.Out("N", ct.float32))
    @ct.kernel
    def scaled(i: ct.Array["N"], w: ct.Array["N"], y):
        ct.store(y, 0, ct.load(i, 0, N) * ct.load(w, 0, N))

    @ct.jit(grid=1, out=ct.Out("N"))
    @ct.kernel
    def of_w(i: ct.Array["N"], grad_y: ct.Array["N"], grad_w):
        ct.store(grad_w, 0, (ct.load(i, 0, N) * ct.load(grad_y, 0, N)).astype(grad_w.dtype))

    f, w = custom_vjp(scaled, of_w), jnp.ones(N)
    with pytest.raises(TypeError, match="grad_w of of_w has the dtype of its first array, int32, but `w` of scaled "
                                        "has float32: give it one by ct.Out"):
        jax.grad(lambda w: f(jnp.arange(N), w).sum())(w)
    f = custom_vjp(scaled, lambda i, grad_y: {"w": of_w(i, grad_y)})
    assert np.array_equal(jax.grad(lambda w: f(jnp.arange(N), w).sum())(w), X[0])


again = custom_vjp(square_backward, lambda x, grad_y, grad_grad_x: {
    "x": 2 * grad_y * grad_grad_x, "grad_y": 2 * x * grad_grad_x})


@shows("JC-10.again")
@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("backward", [lambda x, grad_y: {"x": 2 * x * grad_y}, again], ids=["python", "kernel"])
def test_derivatives_of_gradients(jit, backward):
    """By a backward in Python, or one by ct.jit that has a derivative."""
    x, f = jnp.asarray(X[0]), custom_vjp(square, backward)
    first = jax.grad(lambda x: (f(x) * f(x)).sum())
    assert np.array_equal(jit(first)(x), 4 * X[0] ** 3)
    assert np.array_equal(jit(jax.grad(lambda x: first(x).sum()))(x), 12 * X[0] ** 2)
    assert np.array_equal(jit(jax.jacrev(first))(x), np.diag(12 * X[0] ** 2))


@shows("JC-10.again")
@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_no_derivative_of_a_gradient(jit):
    with pytest.raises(ValueError, match="kernel square_backward has no derivative of its own; cutile.jax.custom_vjp"):
        jit(jax.grad(lambda x: jax.grad(lambda x: squared(x).sum())(x).sum()))(jnp.asarray(X[0]))


@shows("JC-10.again")
@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_no_derivative_forwards(jit):
    with pytest.raises(TypeError, match="forward-mode autodiff"):
        jax.jvp(jit(squared), (X[0],), (X[0],))
    assert np.array_equal(jit(jax.grad(jax.checkpoint(lambda x: squared(x).sum())))(jnp.asarray(X[0])), 2 * X[0])


@ct.jit(grid=1, out=(ct.Out("N"), ct.Out("N")))
@ct.kernel
def cube(x: ct.Array["N"], y, s):
    t = ct.load(x, 0, N)
    ct.store(y, 0, t * t * t)
    ct.store(s, 0, 3 * t * t)


@shows("JC-10.lost")
@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("constant", [(), ("s",)], ids=["", "non_differentiable"])
def test_no_gradient_is_lost(jit, constant):
    """The backward function reads `s` and takes no gradient of it: what would need that is an error."""
    f = custom_vjp(cube, lambda s, grad_y: {"x": s * grad_y}, non_differentiable=constant)
    x = jnp.asarray(X[0])
    first = jax.grad(lambda x: f(x)[0].sum())
    of_s = jit(jax.grad(lambda x: jax.vmap(f)(x[None])[1].sum()))
    lost = "a gradient comes to output `s` of cube, but <lambda>, its backward function, takes no grad_s: take grad_s"
    assert np.array_equal(jit(first)(x), 3 * x ** 2)
    assert np.array_equal(jax.grad(lambda x: jax.checkpoint(jit(f))(x)[0].sum())(x), 3 * x ** 2)
    with pytest.raises(TypeError, match=f"{lost} in <lambda>, or for a derivative of a gradient, compute `s` in"):
        jit(jax.jacrev(first))(x)
    if constant:
        assert not of_s(x).any()
    else:
        with pytest.raises(TypeError, match=f"{lost}.*, or say by non_differentiable=..s.,. of cutile.jax.custom_vjp"):
            of_s(x)


@shows("JC-10.lost")
def test_gradients_through_an_output_that_serves_the_gradient():
    f = custom_vjp(cube, lambda x, s, grad_y, grad_s: {"x": s * grad_y + 6 * x * grad_s})
    x = jnp.asarray(X[0])
    assert np.array_equal(jax.jacrev(jax.grad(lambda x: f(x)[0].sum()))(x), np.diag(6 * X[0]))
    assert np.array_equal(jax.grad(lambda x: f(x)[1].sum())(x), 6 * x)


def test_wrong_functions():
    with pytest.raises(ValueError, match="non_differentiable names 'rstd', which is no output of cube; there are y, s"):
        custom_vjp(cube, lambda grad_y: {}, non_differentiable=("rstd",))
    with pytest.raises(TypeError, match="non_differentiable is a tuple of names, such as .'s',., not 's'"):
        custom_vjp(cube, lambda grad_y: {}, non_differentiable="s")
    with pytest.raises(TypeError, match="custom_vjp.. takes a function made by ct.jit that declares outputs"):
        custom_vjp(lambda x: x, square_backward)
    with pytest.raises(TypeError, match="takes grad_z, which is no .* of square; .*; there are x, T, y, grad_y"):
        custom_vjp(square, lambda x, grad_z: {})
    with pytest.raises(TypeError, match="output y of square is no gradient; those of square are named grad_x, grad_T"):
        custom_vjp(square, square)
    with pytest.raises(TypeError, match="square.. needs the argument `x`"):
        squared()


# ------------------------------------------------------------------ how it is called


@ct.jit(grid=1, out=ct.Out("N"), defaults={"T": lambda N: N})
@ct.kernel
def product(x: ct.Array["N"], w: ct.Array["N"], y, T: ct.Constant[int], factor: ct.Constant[float] = 1.0):
    ct.store(y, 0, ct.load(x, 0, T) * ct.load(w, 0, T) * factor)


multiplied = custom_vjp(product, lambda x, w, grad_y, T, factor: {"x": w * grad_y * factor, "w": x * grad_y * factor})


@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_arguments_by_name(jit):
    x, w = jnp.asarray(X[0]), jnp.asarray(X[1])
    assert np.array_equal(jit(lambda **k: multiplied(**k))(x=x, w=w), x * w)
    assert np.array_equal(jit(lambda x, w: multiplied(w=w, x=x, factor=2.0))(x, w), 2 * x * w)
    found = jit(jax.grad(lambda p: multiplied(x=p["x"], w=p["w"]).sum()))({"w": w, "x": x})
    assert np.array_equal(found["x"], w) and np.array_equal(found["w"], x)


def test_a_backward_function_gets_what_the_caller_left_out():
    seen = []

    def backward(x, w, grad_y, T, factor):
        seen.append((T, factor))
        return {"x": w * grad_y, "w": x * grad_y}

    f = custom_vjp(product, backward)
    x = jnp.asarray(X[0])
    jax.grad(lambda x: f(x, x).sum())(x)
    jax.grad(lambda x: f(x, x, factor=3.0).sum())(x)
    assert seen == [(N, 1.0), (N, 3.0)]


@pytest.mark.parametrize("call, text", [
    (lambda x: multiplied(x), "product() needs the argument `w`"),
    (lambda x: multiplied(x, ww=x), "product() has no argument ww; did you mean w?"),
    (lambda x: multiplied(x, x, x=x), "product() got two values for the argument `x`"),
    (lambda x: multiplied(x, x, N, 1.0, 2), "product() takes 4 arguments (`x`, `w`, `T`, `factor`), got 5"),
    (lambda x: multiplied(x, w=x[:3]),
     "product(): the size of `w` along axis 0 is 3, but N is 8, the size of `x` along"),
    (lambda x: multiplied(x, w=3.0),
     "product(): `w` must be an array, got the number 3.0; jax.numpy.asarray([w], dtype) "
     "makes one of one element, or annotate the parameter as a number, w: float"),
    (lambda x: multiplied(x, x, T=8.0),
     "product(): `T` is a constant of the kernel, annotated as int, got 8.0; write 8"),
    (lambda x: multiplied(x, x, T=jnp.asarray(8)), "product(): `T` is a constant of the kernel, got an array "),
    (lambda x: multiplied(x, x, out=x), "product() takes no out= here: arrays of JAX cannot be written to"),
    (lambda x: multiplied(x, x, stream=0),
     "product() takes no stream= here: JAX's programs have streams of their own")])
@pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_wrong_calls(call, text, jit):
    with pytest.raises((TypeError, ValueError), match=re.escape(text)):
        jit(call)(jnp.asarray(X[0]))


def test_it_is_compiled_and_checked_as_the_function():
    assert multiplied.compile(ct.ArraySpec("8", ct.float32), ct.ArraySpec("8", ct.float32), target="sm_90").cubin
    x = jnp.linspace(0, 1, N)
    assert ct.testing.assert_matches(multiplied, lambda x, w: np.asarray(x, np.float64) * w, (x, x)).error == 0
    assert multiplied.profile(x, x).bytes_written == 4 * N


@pytest.mark.parametrize("make, text", [
    (lambda: custom_vjp(square, None),
     "the backward function of square is made by ct.jit or a function of Python, not"),
    (lambda: custom_vjp(square, lambda *a: {}), "are names among x, T, y, grad_y, and `*a` is none"),
    (lambda: custom_vjp(square, lambda **a: {}), "are names among x, T, y, grad_y, and `**a` is none"),
    (lambda: custom_vjp(factory, lambda x: {}), "it is a factory: give what its calls return"),
    (lambda: jax.grad(lambda x: custom_vjp(square, lambda x, grad_y: {"x": "text"})(x).sum())(jnp.asarray(X[0])),
     "returned a gradient of x that is no array, but of type str")])
def test_what_is_no_backward_function(make, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        make()


@ct.jit(grid=1, out=ct.Out("N"))
def factory(f):
    return square.kernel


def test_derivatives_forwards_are_jaxs_error():
    why = next(text for text, *_ in framework_errors.JAX if "forward-mode" in text)
    with pytest.raises(TypeError, match=re.escape(why)):
        jax.hessian(lambda x: squared(x).sum())(jnp.asarray(X[0]))

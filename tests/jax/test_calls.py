"""Kernels inside jax.jit [JAX-1…9]: on JAX's CPU, in the interpreter. Skipped where JAX is not installed.

benchmarks/gpu_smoke.py has the checks that need a GPU.
"""

import doctest

import numpy as np
import pytest

import cutile as ct
import cutile.jax
from cutile.jax import InputOutput, OutputPlaceholder, cutile_call
from tests.functions.shows import shows

jax = pytest.importorskip("jax")
jnp = jax.numpy
import jax.export  # noqa: E402

N = 8


@ct.kernel
def scale(x, y, f, T: ct.Constant[int]):
    ct.store(y, ct.bid(0), (ct.load(x, ct.bid(0), T) * f).astype(y.dtype))


@ct.kernel
def accumulate(x, y):
    ct.store(y, 0, ct.load(y, 0, N) + ct.load(x, 0, N))


@ct.kernel
def both(pair: tuple, total):
    x, y = pair
    t = ct.load(x, 0, N)
    ct.store(y, 0, t + t)
    ct.store(total, 0, ct.sum(t))


def out(n=N, dtype=jnp.float32):
    return OutputPlaceholder((n,), dtype)


def jitted(f, jit):
    return jax.jit(f) if jit else f


either = pytest.mark.parametrize("jit", [False, True])


@pytest.mark.parametrize("function", [getattr(cutile.jax, n) for n in cutile.jax.__all__])
def test_examples_of_the_help(function):
    names = {"jax": jax, "ct": ct, "cutile": cutile, "np": np}
    [test] = doctest.DocTestFinder().find(function, function.__name__, globs=names)
    assert test.examples and not doctest.DocTestRunner().run(test).failed


# ------------------------------------------------------------------ results


@either
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float16", "int32"])
def test_an_output(dtype, jit):
    f = jitted(lambda x: cutile_call((2,), scale, (x, out(dtype=dtype), 2, 4)) * 1, jit)
    y = f(jnp.arange(N, dtype=dtype))
    assert y.dtype == dtype and y.tolist() == [2 * i for i in range(N)]


@pytest.mark.parametrize("dtype", ["bool", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_without_arithmetic(dtype):
    @ct.kernel
    def copy(x, y):
        ct.store(y, 0, ct.load(x, 0, N))

    x = (jnp.arange(N) % 2).astype(dtype)
    y = jax.jit(lambda x: cutile_call((1,), copy, (x, out(dtype=dtype))))(x)
    assert y.dtype == x.dtype and y.tolist() == x.tolist()


@either
def test_an_input_that_is_an_output(jit):
    f = jitted(lambda x, y: (cutile_call((1,), accumulate, (x, InputOutput(y))), y), jit)
    x, y = jnp.arange(N, dtype=jnp.float32), jnp.full(N, 10.0)
    new, old = f(x, y)
    assert new.tolist() == [10 + i for i in range(N)] and old.tolist() == y.tolist() == [10.0] * N


@either
def test_tuples_and_several_outputs(jit):
    f = jitted(lambda x: cutile_call((1,), both, ((x, out()), out(1))), jit)
    doubled, total = f(jnp.arange(N, dtype=jnp.float32))
    assert doubled.tolist() == [2 * i for i in range(N)] and total.tolist() == [28]


def test_numbers():
    @ct.kernel
    def k(x, b, i, j: ct.ScalarInt64, f, c: ct.Constant):
        ct.static_assert(b.dtype == ct.int32 and i.dtype == ct.int32 and j.dtype == ct.int64 and f.dtype == ct.float32)
        ct.store(x, 0, ct.static_eval(c[0]) + b + i + ct.astype(j > 2**40, ct.int32) + f)

    assert cutile_call((1,), k, (out(1), True, 5, 2**50, 0.5, ("a", 3)[1:])).tolist() == [3 + 1 + 5 + 1 + 0.5]


def test_one_array_twice_and_a_call_twice():
    @ct.kernel
    def add(x, y, z):
        ct.store(z, 0, ct.load(x, 0, N) + ct.load(y, 0, N))

    x = jnp.arange(N, dtype=jnp.float32)
    f = jax.jit(lambda x: cutile_call((1,), add, (x, x, out())))
    assert f(f(x)).tolist() == [4 * i for i in range(N)]


# ------------------------------------------------------------------ errors, while JAX traces


X = np.arange(N, dtype=np.float32)


@pytest.mark.parametrize("args, error, text", [
    ((1, 2), TypeError, "one argument for each of the 4 parameters of scale, got 2"),
    ([X, out(), 2.0, 4], TypeError, "parameter `x`: cutile_call.. takes jax.Array, .* got ndarray"),
    (("jax", out(), 2.0, "jax"), TypeError, "parameter `T` is Constant; it cannot be an array"),
    (("jax", InputOutput(X), 2.0, 4), TypeError, "parameter `y`: InputOutput takes a jax.Array, got ndarray"),
    (("jax", "jax", 2.0, 4), TypeError, "the kernel stores to parameter `y`, .* read-only. .*cutile_call"),
    (("jax", out(), 2**40, 4), OverflowError, "`f`.*ScalarInt64"),
    (("jax", out(dtype="complex64"), 2.0, 4), TypeError, "parameter `y`: an array of dtype complex64"),
    (("jax", out(), None, 4), TypeError, "parameter `f`: .* got NoneType"),
    (("jax", out(), 2.0, 3), ct.TileError, "power of two"),
])
@either
def test_wrong_arguments(args, error, text, jit):
    def f(x):
        return cutile_call((2,), scale, type(args)(x if isinstance(a, str) else a for a in args))

    with pytest.raises(error, match=text):
        jitted(f, jit)(jnp.asarray(X))


@shows("JC-12.x64")
@pytest.mark.parametrize("shape, dtype, error, text", [
    (8, "float32", TypeError, "parameter `y`: OutputPlaceholder takes a tuple of sizes, got 8"),
    ((8.0,), "float32", TypeError, "parameter `y`: sizes are ints, got .8.0,."),
    ((8, -1), "float32", ValueError, "parameter `y`: sizes are not negative, got .8, -1."),
    ((8,), "nonsense", TypeError, "parameter `y`: an array of dtype nonsense cannot be passed"),
    ((8,), "int64", TypeError, "parameter `y`: JAX has no arrays of dtype int64 unless jax_enable_x64 is set"),
])
def test_wrong_placeholders(shape, dtype, error, text):
    with pytest.raises(error, match=text):
        cutile_call((2,), scale, (jnp.asarray(X), OutputPlaceholder(shape, dtype), 2.0, 4))


@shows("JC-12.x64")
def test_arrays_of_keys():
    with pytest.raises(TypeError, match="parameter `x`: an array of dtype key<fry> cannot be passed"):
        cutile_call((2,), scale, (jax.random.key(0), out(), 2.0, 4))


def test_a_grid_that_is_traced():
    with pytest.raises(TypeError, match="the grid depends on the value of an array"):
        jax.jit(lambda n: cutile_call((n,), scale, (jnp.asarray(X), out(), 2.0, 4)))(2)


def test_dtypes_of_cutile_and_of_64_bits():
    f = lambda dtype: cutile_call((2,), scale, (jnp.asarray(X), OutputPlaceholder((N,), dtype), 2.0, 4))
    assert f(ct.bfloat16).dtype == "bfloat16"
    with jax.enable_x64(True):
        assert f("int64").tolist() == [2 * i for i in range(N)] and f(ct.float64).dtype == "float64"


@shows("JC-13.disabled")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_without_compiling():
    x = jnp.asarray(X)
    with jax.disable_jit():
        f = jax.jit(lambda x: cutile_call((2,), scale, (x, out(), 2, 4)) * 1)
        assert f(x).tolist() == [2 * i for i in range(N)] and jax.vmap(f)(x[None]).shape == (1, N)


def test_the_sanitizer(monkeypatch):
    @ct.kernel
    def k(x, y):
        ct.store(y, 0, ct.gather(x, ct.arange(N, dtype=ct.int32) + 3, check_bounds=False))

    monkeypatch.setenv("CUTILE_SANITIZE", "bounds")
    with pytest.raises(jax.errors.JaxRuntimeError, match="(?s)test_calls.py.*gather"):
        jax.jit(lambda x: cutile_call((1,), k, (x, out())))(jnp.asarray(X)).block_until_ready()


def test_no_kernel():
    with pytest.raises(TypeError, match="must be a kernel, got function"):
        cutile_call((1,), lambda x: x, ())


def test_tuples_as_annotated():
    @ct.kernel
    def k(pair: tuple[ct.Constant[int], float], x):
        ct.store(x, 0, pair[0] + pair[1])

    assert cutile_call((1,), k, ((1, 0.5), out(1))).tolist() == [1.5]
    with pytest.raises(TypeError, match="a tuple of 2 items, got 1"):
        cutile_call((1,), k, ((1,), out(1)))
    with pytest.raises(TypeError, match="asks for a tuple, got int"):
        cutile_call((1,), k, (1, out(1)))


def test_symbolic_shapes():
    n, = jax.export.symbolic_shape("n")
    with pytest.raises(NotImplementedError, match="symbolic"):
        jax.export.export(jax.jit(lambda x: cutile_call((1,), scale, (x, out(), 2.0, 4))))(
            jax.ShapeDtypeStruct((n,), jnp.float32))

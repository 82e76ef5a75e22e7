"""Kernels inside jax.jit [JAX-1…9]: on JAX's CPU, in the interpreter. Skipped where JAX is not installed.

benchmarks/gpu_smoke.py has the checks that need a GPU.
"""

import doctest
import re
import subprocess
import sys

import numpy as np
import pytest

import cutile as ct
import cutile.jax
from cutile.jax import InputOutput, OutputPlaceholder, cutile_call
from tests.functions.shows import shows
from tools.docgen import framework_errors

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
    ([b"x", out(), 2.0, 4], TypeError, "parameter `x`: cutile_call.. takes arrays of JAX and NumPy, .* got bytes"),
    ([X.astype(float), out(), 2.0, 4], TypeError, "parameter `x`: JAX has no arrays of dtype float64 unless"),
    (("jax", out(), 2.0, "jax"), TypeError, "parameter `T` is Constant; it cannot be an array"),
    (("jax", InputOutput(8), 2.0, 4), TypeError, "parameter `y`: InputOutput takes an array of JAX or NumPy, got int"),
    (("jax", "jax", 2.0, 4), TypeError, r"kernel scale stores to `y`, but arrays of JAX do not change; a call with "
                                        r"InputOutput.y. returns .*\n.*test_calls.py.*\n    ct.store.y"),
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


@either
def test_arrays_and_numbers_of_numpy(jit):
    f = jitted(lambda: cutile_call((2,), scale, (X, out(), np.float32(0.1), 4)), jit)
    assert np.array_equal(f(), X * np.float32(0.1))
    f = jitted(lambda: cutile_call((1,), accumulate, (X, InputOutput(X))), jit)
    assert np.array_equal(f(), 2 * X) and np.array_equal(X, np.arange(N))


def test_outputs_by_shape_and_dtype_as_jax_has_them():
    y = cutile_call((2,), scale, (X, jax.ShapeDtypeStruct((N,), jnp.bfloat16), 2.0, 4))
    assert y.dtype == jnp.bfloat16 and np.array_equal(y, 2 * X)


# ------------------------------------------------------------------ what JAX traces


@ct.jit(grid="cdiv(N, 4)", out=ct.Out("N"))
@ct.kernel
def scaled(x: ct.Array["N"], f, T: ct.Constant[int], y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), T) * f)


@pytest.mark.parametrize("call", [lambda x, f: cutile_call((2,), scale, (x, out(), f, 4)),
                                  lambda x, f: scaled(x, f, 4)])
def test_numbers_that_are_traced(call):
    """They are arrays without axes, which errors say."""
    for f in (jax.jit(call), call):
        with pytest.raises(ct.TileTypeError, match=r"note: `f` is an array of JAX without axes, as all numbers are "
                                                   r"that jax.jit traces: load it, ct.load\(f, \(\), \(\)\), or pass a "
                                                   r"number of Python, by static_argnames of jax.jit"):
            f(jnp.asarray(X), jnp.float32(2))
    assert np.array_equal(jax.jit(call, static_argnums=1)(X, 2.0), 2 * X)

    @ct.kernel
    def loads(x, f: ct.Array[""], y):  # noqa: F722
        ct.store(y, 0, ct.load(x, 0, N) * ct.load(f, (), ()))

    assert np.array_equal(jax.jit(lambda x, f: cutile_call((1,), loads, (x, f, out())))(X, 2.0), 2 * X)


@pytest.mark.parametrize("call, text", [
    (lambda x, n: cutile_call((2,), scale, (x, out(), 2.0, n)), "parameter `T` is Constant; it cannot be an array, got "
     ".*: numbers that jax.jit traces are arrays; name it in static_argnames of jax.jit"),
    (lambda x, n: cutile_call((2,), scale, (x, out(n), 2.0, 4)), "parameter `y`: a size depends on the value of an "
     "array, but programs have fixed ones; .* static_argnames of jax.jit"),
    (lambda x, n: cutile_call((n,), scale, (x, out(), 2.0, 4)), "the grid depends on the value of an array, .*"),
    (lambda x, n: ct.launch(None, (2,), scale, (x, np.zeros(N), 2.0, 4)), "`x`.: an array that JAX traces has no "
     "memory yet; .* cutile.jax.cutile_call.grid, kernel, args., or a function by ct.jit")])
def test_what_must_not_be_traced(call, text):
    with pytest.raises(TypeError, match=text):
        jax.jit(call)(X, 4)


def test_launches_of_arrays_of_jax():
    with pytest.raises(TypeError, match="stores to parameter `y`, .* read-only; JAX's all are: cutile.jax.cutile_call"):
        ct.launch(None, (2,), scale, (jnp.asarray(X), jnp.zeros(N), 2.0, 4))


@pytest.mark.parametrize("call", [lambda x: cutile_call((2,), scale, (x, out(), 2.0, 4)), lambda x: scaled(x, 2.0, 4)])
def test_symbolic_dimensions(call):
    shape = jax.export.symbolic_shape("b")
    with pytest.raises(NotImplementedError, match=r"`x`: the shape \(b,\) has a symbolic dimension, but kernels in "
                                                  "programs of JAX need numbers; export one program for each size"):
        jax.export.export(jax.jit(call))(jax.ShapeDtypeStruct(shape, jnp.float32))


def test_a_function_that_writes_to_an_input():
    @ct.jit(grid=1, out=ct.Out("N"))
    @ct.kernel
    def f(x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, N))
        ct.store(x, 0, ct.load(x, 0, N) + 1)

    with pytest.raises(TypeError, match=r'kernel f stores to `x`, but arrays of JAX do not change; f.inout\("x"\) '
                                        r"returns what it is after the kernel\n.*test_calls.py.*\n    ct.store\(x"):
        jax.jit(f)(X)
    x, y = jax.jit(f.inout("x"))(jnp.asarray(X))
    assert np.array_equal(x, X + 1) and np.array_equal(y, X)


@shows("JC-12.x64")
@pytest.mark.parametrize("shape, dtype, error, text", [
    (8, "float32", TypeError, "parameter `y`: OutputPlaceholder takes a tuple of sizes, got 8"),
    ((8.0,), "float32", TypeError, "parameter `y`: sizes are ints, got .8.0,."),
    ((8, -1), "float32", ValueError, "parameter `y`: sizes are not negative, got .8, -1."),
    ((8,), "nonsense", TypeError, "parameter `y`: 'nonsense' is no dtype"),
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
    with pytest.raises(TypeError, match="<lambda> is a plain function, not a kernel: decorate it with @ct.kernel"):
        cutile_call((1,), lambda x: x, ())
    with pytest.raises(TypeError, match="the second argument of cutile_call.. must be a kernel, got tuple"):
        cutile_call(scale, (1,), ())
    with pytest.raises(TypeError, match="must be a kernel: scaled is a function made by ct.jit; call it as scaled"):
        cutile_call((1,), scaled, ())


def test_tuples_as_annotated():
    @ct.kernel
    def k(pair: tuple[ct.Constant[int], float], x):
        ct.store(x, 0, pair[0] + pair[1])

    assert cutile_call((1,), k, ((1, 0.5), out(1))).tolist() == [1.5]
    with pytest.raises(TypeError, match="a tuple of 2 items, got 1"):
        cutile_call((1,), k, ((1,), out(1)))
    with pytest.raises(TypeError, match="asks for a tuple, got int"):
        cutile_call((1,), k, (1, out(1)))


# ------------------------------------------------------------------ outputs that have no values


@ct.kernel
def reads(x, y):
    ct.load(x, 0, N) + ct.load(y, 0, N)


@ct.kernel
def forgets_one(x, y, z):
    ct.store(y, 0, ct.load(x, 0, N))


@ct.kernel
def updates(x, total):
    ct.atomic_add(total, 0, ct.sum(ct.load(x, 0, N)))


@ct.kernel
def perhaps(x, y, z, BOTH: ct.Constant[bool]):
    ct.store(y, 0, ct.load(x, 0, N))
    if BOTH:
        ct.store(z, 0, ct.load(x, 0, N))


@either
@pytest.mark.parametrize("call, text, line", [
    (lambda x: cutile_call((1,), reads, (x, out())), "the kernel never stores to `y`, an output of this call of reads, "
     "so that its elements are undetermined", "def reads"),
    (lambda x: cutile_call((1,), forgets_one, (x, out(), out())), "never stores to `z`, an output of this call of "
     "forgets_one", "def forgets_one"),
    (lambda x: cutile_call((1,), updates, (x, out(1))), "atomic_add.. updates `total`, an output of this call of "
     "updates, whose elements are undetermined before", "ct.atomic_add")])
def test_outputs_whose_elements_nobody_gives_a_value(call, text, line, jit):
    with pytest.raises(ct.TileTypeError, match=text) as e:
        jitted(call, jit)(jnp.asarray(X))
    assert line in e.value.loc.source_line()


@either
def test_outputs_that_have_values(jit):
    x = jnp.asarray(X)
    assert np.array_equal(jitted(lambda x: cutile_call((1,), reads, (x, InputOutput(x))), jit)(x), X)
    total = jitted(lambda x: cutile_call((1,), updates, (x, InputOutput(jnp.zeros(1)))), jit)(x)
    assert total[0] == X.sum()
    y, z = jitted(lambda x: cutile_call((1,), perhaps, (x, out(), out(), False)), jit)(x)
    assert np.array_equal(y, X) and np.isnan(z).all()  # constants switch the other store off


# ------------------------------------------------------------------ what users get wrong


@pytest.mark.parametrize("args, text", [
    (("jax", OutputPlaceholder, 2.0, 4), "got the class OutputPlaceholder; write OutputPlaceholder(shape, dtype)"),
    (("jax", InputOutput, 2.0, 4), "got the class InputOutput; write InputOutput(x)"),
    (("jax", OutputPlaceholder((N,), "flaot32"), 2.0, 4), "parameter `y`: 'flaot32' is no dtype"),
    (("jax", OutputPlaceholder((N,), float), 2.0, 4), "no arrays of dtype float64 unless jax_enable_x64 is set; write "
                                                      "float32"),
    (("jax", out(), 2.0, np.array(4)),
     "parameter `T` is Constant; it cannot be an array, got ndarray: pass a number of "
     "Python, such as int(x)")])
def test_arguments_that_say_what_to_write(args, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        cutile_call((2,), scale, tuple(jnp.asarray(X) if isinstance(a, str) else a for a in args))


def test_a_constant_that_is_an_array_of_jax():
    with pytest.raises(TypeError, match="parameter `T` is Constant; .*, got ArrayImpl: pass a number of Python"):
        cutile_call((2,), scale, (X, out(), 2.0, jnp.asarray(4)))


@ct.jit(grid="cdiv(N, T)", out=ct.Out("N"))
@ct.kernel
def annotated(x: ct.Array["N"], f: float, y, T: ct.Constant[int] = 4):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), T) * f)


@ct.jit(grid="cdiv(N, 4)", out=ct.Out("N"))
@ct.kernel
def by_array(x: ct.Array["N"], f: ct.Array[""], y):  # noqa: F722
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 4) * ct.load(f, (), ()))


@pytest.mark.parametrize("call, text", [
    (jax.jit(annotated),
     "`f` is annotated as a number, got an array of shape (); numbers that jax.jit traces are arrays: "
     "name `f` in static_argnames of jax.jit, or annotate `f` as ct.Array[\"\"] and load it"),
    (lambda x, f: annotated(x, jnp.float32(f)),
     "`f` is annotated as a number, got an array of shape (); pass f.item()"),
    (lambda x, f: annotated(x, f, T=jnp.asarray(4)), "`T` is a constant of the kernel, got an array without axes "
                                                     "(jaxlib._jax.ArrayImpl); pass int(T)"),
    (lambda x, f: jax.jit(lambda t: annotated(x, f, T=t))(4),
     "`T` is a constant of the kernel, got an array of shape () that JAX traces; numbers that jax.jit traces are arrays"
     ": name `T` in static_argnames of jax.jit"),
    (by_array, "`f` must be an array, got the number 2.0; jax.numpy.asarray(f, dtype) makes one without axes, or "
     "annotate the parameter as a number, f: float")])
def test_numbers_of_functions(call, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        call(jnp.asarray(X), 2.0)
    x = jnp.asarray(X)
    assert np.array_equal(annotated(x, 2.0), 2 * X) and np.array_equal(by_array(x, jnp.asarray(2.0)), 2 * X)
    assert np.array_equal(jax.jit(annotated, static_argnames=("f", "T"))(x, 2.0, T=8), 2 * X)


def test_arrays_that_jax_traces_are_compiled_for():
    seen = []
    jax.jit(lambda x: seen.append(annotated.compile(x, 2.0, target="sm_90")) or x)(jnp.asarray(X))
    assert seen[0].cubin == annotated.compile(ct.ArraySpec((N,), ct.float32), 2.0, target="sm_90").cubin


# ------------------------------------------------------------------ errors of JAX itself, which docs/errors.md explains


def _shown(part):
    """The text of a row of the page."""
    return next(text for text, *_ in framework_errors.JAX if part in text)


def test_an_export_without_the_checks_disabled():
    with pytest.raises(ValueError, match=re.escape(_shown("compatibility guarantees"))):
        jax.export.export(jax.jit(lambda x: annotated(x, 2.0)))(X)


def test_sizes_that_are_traced():
    with pytest.raises(IndexError, match=re.escape(_shown("static integers"))):
        jax.jit(lambda x, n: annotated(x[:n], 2.0))(X, 3)


def test_what_a_program_cannot_return():
    with pytest.raises(TypeError, match=re.escape(_shown("valid JAX type"))):
        jax.jit(lambda x: annotated.profile)(X)


LOADED = """
import sys
import jax.export
import numpy as np
try:
    jax.export.deserialize(open(sys.argv[1], "rb").read()).call(np.ones(8, np.float32))
except jax.errors.JaxRuntimeError as e:
    print(e)
"""


def test_a_process_that_knows_no_kernels(tmp_path):
    pytest.importorskip("flatbuffers")
    program = jax.export.export(jax.jit(lambda x: annotated(x, 2.0)), disabled_checks=cutile.jax.disabled_checks())(X)
    (tmp_path / "program").write_bytes(program.serialize())
    found = subprocess.run([sys.executable, "-c", LOADED, tmp_path / "program"], capture_output=True, text=True)
    assert _shown("FFI handler") in found.stdout, found.stderr

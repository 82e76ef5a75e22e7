"""Calls as JAX traces, batches, differentiates, distributes and lowers them."""

import gc
import threading
import weakref

import numpy as np
import pytest

import cutile as ct
from tests.functions.shows import shows
from tests.jax.kernels import N, accumulate, add, copy, fill, first_half, scale

jax = pytest.importorskip("jax")
jnp = jax.numpy
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

from cutile.jax import InputOutput, OutputPlaceholder, cutile_call  # noqa: E402
from cutile.jax.targets import TARGET  # noqa: E402

X, Y = jnp.arange(24, dtype=jnp.float32).reshape(3, N), jnp.arange(N, dtype=jnp.float32) * 100
either = pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])


def out(n=N, dtype="float32"):
    return OutputPlaceholder((n,), dtype)


def doubled(x):
    return cutile_call((2,), scale, (x, out(), 2.0, 4))


def summed(x, y):
    return cutile_call((1,), add, (x, y, out()))


def accumulated(x, y):
    return cutile_call((1,), accumulate, (x, InputOutput(y)))


def same(found, wanted):
    return np.array_equal(np.asarray(found), np.asarray(wanted))


@shows("JC-1.target")
def test_the_program_calls_the_handler():
    text = jax.jit(doubled).lower(Y).as_text()
    assert f"@{TARGET}" in text and "callback" not in text


def test_how_a_call_prints():
    assert "cutile_call[call=scale grid=(2, 1, 1)]" in str(jax.make_jaxpr(doubled)(Y))


# ------------------------------------------------------------------ control flow, aliases, memory


@shows("JC-14.control")
@either
def test_control_flow(jit):
    assert same(jit(lambda y: jax.lax.scan(lambda c, x: (accumulated(x, c), c), y, X)[0])(Y), Y + X.sum(0))
    assert same(jit(lambda y: jax.lax.fori_loop(0, 3, lambda i, c: accumulated(y, c), y))(Y), Y * 4)
    f = jit(lambda y: jax.lax.cond(y[1] > 0, doubled, lambda x: x, y))
    assert same(f(Y), Y * 2) and same(f(-Y), -Y)


@shows("JC-14.alias")
def test_a_donated_input_is_the_output():
    f, y = jax.jit(accumulated, donate_argnums=1), Y + 0
    place = y.unsafe_buffer_pointer()
    z = f(Y, y)
    assert z.unsafe_buffer_pointer() == place and same(z, 2 * Y) and y.is_deleted()


@shows("JC-14.pytrees")
def test_arguments_of_calls_are_pytrees():
    f = jax.jit(lambda pair: cutile_call((1,), accumulate, pair))
    assert same(f((X[0], InputOutput(Y))), X[0] + Y)
    assert same(jax.jit(lambda y: cutile_call((1,), fill, (y,)))(out()), np.full(N, 3))
    [leaf], tree = jax.tree.flatten(InputOutput(1))
    assert leaf == 1 and jax.tree.unflatten(tree, [2]).array == 2


@shows("JC-14.threads")
def test_threads():
    f, found = jax.jit(doubled), [None] * 8

    def work(i):
        found[i] = all(same(f(Y + i), (Y + i) * 2) for _ in range(20))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True] * 8


@shows("JC-13.eager")
def test_calls_outside_of_jit_do_not_trace_again():
    before = doubled(Y)
    with jax.log_compiles(False), jax.no_tracing():
        assert same(doubled(Y), before)


def test_numbers_and_constants_tell_calls_apart():
    x = Y
    for f in (2.0, -0.0, 0.0, 3, 2, True):
        y = cutile_call((2,), scale, (x, out(), f, 4))
        assert same(y, Y * f) and same(np.signbit(y), np.signbit(Y * np.float32(f)))
    assert same(cutile_call((1,), scale, (x, out(), 2.0, 8)), Y * 2)


def test_a_kernel_whose_globals_change_is_another():
    def run():
        @ct.kernel
        def k(y):
            ct.store(y, 0, ct.full((N,), factor, ct.float32))

        found = []
        for factor in (1.0, 2.0):  # noqa: B007  which the kernel reads
            found.append(cutile_call((1,), k, (out(),))[0].item())
        return found

    assert run() == [1, 2]


def test_the_inputs_of_a_call_are_not_kept():
    x = Y + 1
    gone = weakref.ref(x)
    doubled(x).block_until_ready()
    del x
    gc.collect()
    assert gone() is None


@shows("JC-14.fresh")
@either
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "uint16", "bool"])
def test_elements_that_no_block_stores(jit, dtype):
    """They are what they are in arrays of NumPy, in each item of a batch. An input that is an output keeps them."""
    x = jnp.ones((3, N), dtype)
    function = ct.jit(first_half, grid=1, out=ct.Out(like="x"))
    expected = function(np.asarray(x[0]))
    assert np.array_equal(np.asarray(jit(function)(x[0])).view(np.uint8), expected.view(np.uint8))
    batch = jit(jax.vmap(lambda x: cutile_call((1,), first_half, (x, out(dtype=dtype)))))(x)
    assert np.array_equal(np.asarray(batch).view(np.uint8), np.stack([expected] * 3).view(np.uint8))
    zeros = jit(lambda x: cutile_call((1,), first_half, (x, InputOutput(jnp.zeros_like(x)))))(x[0])
    assert zeros.astype(int).tolist() == [1] * (N // 2) + [0] * (N // 2)


# ------------------------------------------------------------------ batches


@shows("JC-8.vmap", "JC-8.nested")
@either
def test_batches(jit):
    assert same(jit(jax.vmap(doubled))(X), X * 2)
    assert same(jit(jax.vmap(doubled, out_axes=1))(X), (X * 2).T)
    assert same(jit(jax.vmap(summed, in_axes=(0, None)))(X, Y), X + Y)
    assert same(jit(jax.vmap(summed, in_axes=(None, 1)))(Y, X.T), X + Y)
    nested = jax.vmap(jax.vmap(summed, in_axes=(None, 0)), in_axes=(0, None))
    assert same(jit(nested)(X, X + 1), X[:, None] + X[None] + 1)
    assert same(jit(jax.vmap(jax.vmap(doubled, in_axes=1), in_axes=2))(jnp.stack([X.T, X.T + 1], 2)),
                jnp.stack([X, X + 1]) * 2)


@shows("JC-8.written")
@either
def test_batches_of_what_is_written(jit):
    for axes, given in (((0, None), (X, Y)), ((None, 0), (Y, X))):
        assert same(jit(jax.vmap(accumulated, in_axes=axes))(*given), X + Y)
    assert same(Y, np.arange(N) * 100)


def test_an_empty_batch():
    assert jax.vmap(doubled)(X[:0]).shape == (0, N)


@shows("JC-8.vmap", "JC-8.nested")
def test_a_batch_is_one_call():
    text = jax.jit(jax.vmap(jax.vmap(doubled))).lower(jnp.stack([X, X])).as_text()
    assert text.count(f"@{TARGET}") == 1 and "while" not in text


# ------------------------------------------------------------------ several devices


@pytest.fixture(params=["Auto", "Explicit"])
def mesh(request):
    assert jax.device_count() == 4
    return jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType[request.param],))


def spread(mesh, x):
    return jax.device_put(x, NamedSharding(mesh, PartitionSpec("i")))


@shows("JC-9.shard")
@either
@pytest.mark.parametrize("checked", [True, False])
def test_each_device_runs_on_its_shard(mesh, jit, checked):
    i, every = PartitionSpec("i"), PartitionSpec()

    def over(f, specs, result=i):
        return jit(jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=result, check_vma=checked))

    z = spread(mesh, np.arange(4 * N, dtype=np.float32))
    found = over(doubled, (i,))(z)
    assert same(found, z * 2) and found.sharding.spec == i
    assert len({s.device for s in found.addressable_shards}) == 4
    total = over(lambda x: jax.lax.psum(doubled(x), "i"), (i,), every)
    assert all(same(total(z), np.asarray(z).reshape(4, N).sum(0) * 2) for _ in range(20))
    assert same(over(summed, (i, every))(z, Y), (np.asarray(z).reshape(4, N) + Y).ravel())
    assert same(over(lambda x: summed(x, cutile_call((1,), fill, (out(),))), (i,))(z), np.asarray(z) + 3)
    if not checked or jit is jax.jit:
        assert same(over(summed, (every, every), every)(Y, Y), Y * 2)


@shows("JC-9.gathered")
def test_a_sharded_array_that_reaches_a_call_is_gathered(mesh):
    z = spread(mesh, np.arange(4 * N, dtype=np.float32))
    whole = jax.jit(lambda x: cutile_call((8,), scale, (x, out(4 * N), 2.0, 4)))
    expected = pytest.warns(UserWarning, match="kernel scale is called in a program of 4 devices outside of jax.shard")
    with expected:
        assert same(whole(z), np.asarray(z) * 2)
    rows = np.asarray(z).reshape(4, N)
    with expected:
        assert same(jax.jit(jax.vmap(doubled))(spread(mesh, rows)), rows * 2)


# ------------------------------------------------------------------ derivatives and errors


@shows("JC-10.none")
@pytest.mark.parametrize("derivative", [jax.grad, lambda f: lambda x: jax.jvp(f, (x,), (x,))])
def test_a_call_has_no_derivative(derivative):
    with pytest.raises(ValueError, match=r"kernel scale has no derivative of its own; cutile.jax.custom_vjp\(\)"):
        derivative(lambda x: doubled(x).sum())(Y)


@shows("JC-14.errors")
@either
def test_errors_while_it_runs_name_the_line(jit):
    @ct.kernel
    def k(x, y):
        ct.assert_(ct.sum(ct.load(x, 0, N)) < 0, "too large")
        ct.store(y, 0, ct.load(x, 0, N))

    with pytest.raises(jax.errors.JaxRuntimeError, match=r"TileAssertionError: .*too large.*\n.*test_primitive.py"):
        jit(lambda x: cutile_call((1,), k, (x, out())))(Y).block_until_ready()


@shows("JC-14.mode")
@either
def test_subnormal_numbers_are_kept(jit):
    """XLA's threads flush them to zero."""
    x = jnp.full(N, 1e-40, jnp.float32)
    assert same(jit(lambda x: cutile_call((1,), copy, (x, out())))(x), np.full(N, 1e-40, np.float32))

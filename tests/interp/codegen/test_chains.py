"""Chains must not show in any result, nor in what is stored where; they save passes over memory."""

import numpy as np
import pytest
from ml_dtypes import bfloat16

import cutile as ct
from cutile import compiled, settings
from cutile.errors import TileInternalError
from cutile.interp.codegen import batch, chains, steps
from cutile.ir.walk import nodes_of

pytestmark = pytest.mark.skipif(not compiled.steps(), reason="the C extension was not built, or this CPU has none")

T = 1 << 13
rng = np.random.default_rng(3)


@pytest.fixture
def made(monkeypatch):
    """The names of the ops of each chain that is made."""
    found = []

    def spy(kernel, check):
        k = real(kernel, check)
        found.extend(n for n in nodes_of(k) if getattr(n, "op", None) is not None and n.op.name == "chain")
        return k

    real = chains.chained
    monkeypatch.setattr(batch, "chained", spy)
    return found


def kernel_of(f):
    @ct.kernel
    def one(x, out, n: ct.Constant[int]):
        ct.store(out, ct.bid(0), f(ct.load(x, ct.bid(0), n)))

    return one


def run(kernel, arrays, out, n=T):
    """The launch with chains, with chains that are compared, and without: all must agree."""
    results = []
    for how in ({}, {"CHECK": True}, {"COMPILED": False}):
        got = [a.copy() for a in arrays] if out is None else arrays
        target = got[0] if out is None else np.zeros_like(out)
        with settings.override(**how):
            kernel(got, target, n)
        results.append(target)
    a, b, c = (r.view(f"u{r.dtype.itemsize}") for r in results)
    with np.errstate(invalid="ignore"):
        nan = (results[0] != results[0]) & (results[2] != results[2])
    assert (a == b).all() and ((a == c) | nan).all()
    return results[0]


def launch_one(f):
    kernel = kernel_of(f)
    return lambda arrays, out, n: ct.launch(None, (out.size // n,), kernel, (arrays[0], out, n))


def numbers(dtype, size=4 * T):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 256, (size, dtype.itemsize), np.uint8).view(dtype).ravel()
    return (rng.standard_normal(size) * 10).astype(dtype)


def twice_or_more(x):
    return ct.where(x > 0, x * 2 + 1, x - 1)


def remainders(x):
    return (x // 3) * 2 + x % 7


def shifted(x):
    return (x << 2) ^ (x >> 1) | 1


def clipped(x):
    return ct.minimum(ct.maximum(x, 1), 9)


def diamond(x):
    y = x + 1
    return (y * y - x) * (y + x)


@pytest.mark.parametrize("f", [twice_or_more, remainders, shifted, clipped, diamond])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64", "uint32"])
def test_integers(f, dtype, made):
    x = numbers(dtype)
    run(launch_one(f), [x], x)
    assert made


def curve(x):
    return ct.abs(x * x - 1) + ct.sqrt(ct.maximum(x, 0))


def narrowed(x):
    return x.astype(ct.int16) + 1


@pytest.mark.parametrize("dtype, exponent", [
    (dtype, e) for dtype in ("float16", bfloat16, "float32", "float64", "int8", "uint16", "int32", "int64")
    for e in (-2, 0, 1, *chains.POWERS, chains.POWERS[-1] + 1) if e >= 0 or dtype != "uint16"])
def test_powers(dtype, exponent, made):
    """Those that are products have the bits of the powers, also of special numbers, and where they overflow."""
    x = numbers(dtype)
    if x.dtype.kind not in "iu":
        x[:10] = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-4, 6e4, -3e-5]
        x[T:2 * T] *= x.dtype.type(1e30) if x.dtype.itemsize > 2 else x.dtype.type(30)
    run(launch_one(lambda v: (v - 1) ** exponent), [x], x)
    assert bool(made) == (exponent == 2 if dtype in ("float16", bfloat16) else exponent in chains.POWERS)
    run(launch_one(lambda v: (v ** exponent) ** 2 + v), [x], x)


@pytest.mark.parametrize("f", [twice_or_more, clipped, diamond, curve])
@pytest.mark.parametrize("dtype", ["float16", bfloat16, "float32", "float64"])
def test_floats(f, dtype, made):
    x = numbers(dtype)
    x[:5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    run(launch_one(f), [x], x)
    assert made


@pytest.mark.parametrize("dtype", ["float16", bfloat16, "float32", "float64"])
def test_floats_to_short_integers(dtype, made):
    x = numbers(dtype)
    x[:4] = [np.nan, np.inf, -np.inf, 40000.0]
    run(launch_one(narrowed), [x], np.zeros(x.size, np.int16))
    assert made


@pytest.mark.parametrize("to", [ct.int8, ct.uint8, ct.int16, ct.uint16, ct.int32])
@pytest.mark.parametrize("dtype", ["float16", bfloat16, "float32", "float64"])
def test_floats_to_integers_alone(dtype, to, made):
    """NumPy looks at all numbers whether they fit, and if some do not, computes each several times."""
    x = numbers(dtype)
    x[:8] = [np.nan, np.inf, -np.inf, 40000.0, -40000.0, -0.5, 300.0, -300.0]
    run(launch_one(lambda t: t.astype(to)), [x], np.zeros(x.size, to.name))
    assert len(made) >= 1


@pytest.mark.parametrize("f", [abs, lambda x: -x, lambda x: -abs(x)])
@pytest.mark.parametrize("dtype", ["float16", bfloat16])
def test_signs_of_short_floats_change_as_bits(f, dtype, made):
    """Every bit pattern. A signalling NaN of float16 becomes quiet, as everywhere."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    got = run(launch_one(f), [x], x)
    assert made and all(map(chains.takes_bits, made))
    with np.errstate(all="ignore"):
        want = np.asarray(f(x), dtype)
        real, nan = x == x, got != got
    assert (got.view(np.uint16) == want.view(np.uint16))[real].all() and nan[~real].all()


def test_signs_of_a_tile_that_something_else_reads_too():
    @ct.kernel
    def both(x, out, sums):
        t = ct.load(x, ct.bid(0), T)
        ct.store(out, ct.bid(0), abs(t))
        ct.store(sums, ct.bid(0), t + abs(t))

    x = numbers("float16")
    out, sums = np.zeros_like(x), np.zeros_like(x)
    ct.launch(None, (4,), both, (x, out, sums))
    assert (out == abs(x)).all() and (sums == x + abs(x)).all()


def test_in_place_and_into_a_neighbour(made):
    @ct.kernel
    def onto(a):
        i = ct.bid(0)
        ct.store(a, i, ct.load(a, i, T) * 2 + ct.load(a, i + 1, T))

    def launch(arrays, out, n):
        ct.launch(None, (1,), onto, (out,))

    a = numbers("int32")
    got = run(launch, [a], None)
    assert made and (got[:T] == a[:T] * 2 + a[T:2 * T]).all() and (got[T:] == a[T:]).all()


def test_an_array_that_is_stored_to_between(made):
    """A chain stands where its result is stored, after a store to what it read before."""
    @ct.kernel
    def swapped(a, b):
        x, y = ct.load(a, 0, T), ct.load(b, 0, T)
        u, v = y * 2 + 1, x * 3 - 1
        ct.store(a, 0, u)
        ct.store(b, 0, v)

    a, b = numbers("int32", T), numbers("int32", T)
    x, y = a.copy(), b.copy()
    ct.launch(None, (1,), swapped, (x, y))
    assert len(made) == 2 and (x == b * 2 + 1).all() and (y == a * 3 - 1).all()


def test_results_that_several_read(made):
    @ct.kernel
    def shared(x, out, also):
        t = ct.load(x, ct.bid(0), T)
        y = (t + 1) * 3
        ct.store(out, ct.bid(0), y)
        ct.store(also, ct.bid(0), y // 2 - t)

    x = numbers("int16")
    out, also = np.zeros_like(x), np.zeros_like(x)
    ct.launch(None, (4,), shared, (x, out, also))
    y = (x + np.int16(1)) * np.int16(3)
    assert (out == y).all() and (also == y // 2 - x).all() and len(made) == 2


def test_a_number_and_a_strided_array(made):
    @ct.kernel
    def scaled(x, k, out):
        ct.store(out, ct.bid(0), (ct.load(x, ct.bid(0), T) + 1) * k)

    memory, target = numbers("float32", 8 * T), np.zeros(8 * T, np.float32)
    ct.launch(None, (4,), scaled, (memory[::2], 2.5, target[1::2]))
    assert made and (target[1::2] == (memory[::2] + 1) * np.float32(2.5)).all() and not target[::2].any()


def test_loops_and_branches(made):
    @ct.kernel
    def looped(x, out, n):
        t = ct.load(x, ct.bid(0), T)
        for i in range(n):
            t = (t + i) * 3 - 1
            if i == 2:
                t = (t ^ 5) + 1
        ct.store(out, ct.bid(0), t * 2 + 1)

    x = numbers("int32")
    out = np.zeros_like(x)
    ct.launch(None, (4,), looped, (x, out, 5))
    t = x
    for i in range(5):
        t = (t + i) * 3 - 1
        t = (t ^ 5) + 1 if i == 2 else t
    assert made and (out == t * 2 + 1).all()


def many_operands(x):
    t = x
    for k in ct.static_iter(range(1, 30)):
        t = (t * k) ^ (t + (k + 100))
    return t


def test_more_ops_and_operands_than_a_chain_has(made):
    x = numbers("int32")
    run(launch_one(many_operands), [x], x)
    assert len(made) > 1


def test_small_tiles_and_ops_without_steps_stay(made):
    x = numbers("float32")
    out = np.zeros_like(x)
    ct.launch(None, (x.size // 1024,), kernel_of(twice_or_more), (x, out, 1024))
    ct.launch(None, (4,), kernel_of(lambda t: ct.exp(t)), (x, out, T))
    ct.launch(None, (4,), kernel_of(lambda t: t + 1), (x, out, T))
    assert not made


def test_a_chain_that_gives_other_bits_is_found_out(monkeypatch):
    monkeypatch.setitem(steps.RULES, "sub", lambda s, n, x, y: s.add("add int32", x, y))
    x = numbers("int32")
    with settings.override(CHECK=True), pytest.raises(TileInternalError, match="the chain of add, mul, sub"):
        ct.launch(None, (4,), kernel_of(lambda t: t + 1 - t * 2), (x, np.zeros_like(x), T))

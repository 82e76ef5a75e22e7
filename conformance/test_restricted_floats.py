"""Operations that floats without arithmetic have and lack [DT-4, DT-5]."""

import operator

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, needs, refuses, run
from conformance.harness.dtype_names import DTYPES, NUMPY, RESTRICTED
from conformance.harness.type_probes import on_target, unary

STORED = [s for s in RESTRICTED if s in NUMPY]


@clause("DT-4.load", "DT-4.gather")
@pytest.mark.parametrize("short",
                         [pytest.param(s, marks=needs("float4 arrays") if s == "e2m1" else ()) for s in STORED])
def test_memory_of_restricted_floats(short):
    @ct.kernel
    def k(x, a, b, c):
        t = ct.load(x, 0, 4)
        ct.store(a, 0, t)
        i = ct.arange(4, dtype=ct.int32)
        ct.store(b, 0, ct.gather(x, 3 - i))
        ct.scatter(c, 3 - i, t)

    x = np.array([1, 2, 4, 0.5], NUMPY[short])
    a, b, c = np.ones_like(x), np.ones_like(x), np.ones_like(x)
    with on_target(short):
        launch(k, x, a, b, c)
    assert a.astype(float).tolist() == [1, 2, 4, 0.5]
    assert b.astype(float).tolist() == c.astype(float).tolist() == [0.5, 4, 2, 1]


def numbers_of(f, short, n, *, size=8):
    """f of the numbers 1, 2, 4, 0.5, … as a tile of a restricted float, in doubles."""
    dtype = DTYPES[short]
    given = (1, 2, 4, 0.5, 4, 2, 1, 1)[:size]

    @ct.kernel
    def k(out):
        t = ct.astile(given, dtype=dtype)
        u = f(t)
        d = u.dtype
        ct.static_assert(d == dtype)
        ct.store(out, 0, ct.reshape(u.astype(ct.float64), (n,)))

    with on_target(short):
        return run(k, np.zeros(n)).tolist()


@clause("DT-4.shape", "DT-4.where", "DT-4.full", "DT-4.reduce", "DT-4.astype")
@pytest.mark.parametrize("short", RESTRICTED)
def test_moving_restricted_floats(short):
    dtype = DTYPES[short]
    assert numbers_of(lambda t: t.reshape((2, 4)).permute((1, 0)), short, 8) == [1, 4, 2, 2, 4, 1, 0.5, 1]
    assert numbers_of(lambda t: ct.cat((t.extract(1, 4), t.extract(0, 4)), 0), short, 8) == [4, 2, 1, 1, 1, 2, 4, 0.5]
    assert numbers_of(lambda t: t.insert(3, t.extract(0, 2)), short, 8) == [1, 2, 4, 0.5, 4, 2, 1, 2]
    assert numbers_of(lambda t: ct.broadcast_to(t.extract(4, 1), (4,)), short, 4) == [4] * 4
    assert numbers_of(lambda t: ct.where(ct.arange(8, dtype=ct.int32) < 4, t, 2), short, 8) == [1, 2, 4, 0.5, 2, 2, 2,
        2]
    assert numbers_of(lambda t: ct.full((2,), 4, dtype), short, 2) == [4, 4]
    assert numbers_of(lambda t: ct.ones((2,), dtype), short, 2) == [1, 1]
    zero = 2.0**-127 if short == "e8m0" else 0
    assert numbers_of(lambda t: ct.zeros((2,), dtype), short, 2) == [zero, zero]
    assert numbers_of(lambda t: ct.reduce(t.extract(0, 1), 0, lambda a, b: b, 1), short, 1) == [1]
    assert numbers_of(lambda t: ct.scan(t, 0, lambda a, b: a, 0.5), short, 8) == [1] * 8


@clause("DT-4.bitcast", "DT-4.pack")
@pytest.mark.parametrize("short", RESTRICTED)
def test_bits_of_restricted_floats(short):
    def again(t):
        return ct.unpack_from_bytes(ct.pack_to_bytes(t), dtype)

    dtype = DTYPES[short]
    assert numbers_of(again, short, 8) == [1, 2, 4, 0.5, 4, 2, 1, 1]
    if short != "e2m1":
        word = ct.uint32 if short == "tf32" else ct.uint8
        assert numbers_of(lambda t: ct.bitcast(ct.bitcast(t, word), dtype), short, 8) == [1, 2, 4, 0.5, 4, 2, 1, 1]


@clause("DT-4.astype")
@pytest.mark.parametrize("short", RESTRICTED)
def test_conversion_of_restricted_floats(short):
    """Conversion to a restricted float at run time, and from it."""
    dtype = DTYPES[short]
    mode = ct.RoundingMode.RZ if short == "e8m0" else None

    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 0, 4).astype(dtype, rounding_mode=mode).astype(ct.float32))

    with on_target(short):
        got = run(k, np.array([1, 2, 4, 0.5], np.float32), np.zeros(4, np.float32))
    assert got.tolist() == [1, 2, 4, 0.5]


@clause("DT-4.mma")
@pytest.mark.parametrize("short", ["tf32", "e4m3", "e5m2"])
def test_products_of_restricted_floats(short):
    dtype = DTYPES[short]

    @ct.kernel
    def k(out):
        a, b = ct.full((16, 16), 2, dtype), ct.full((16, 16), 0.5, dtype)
        ct.store(out, (0, 0), ct.mma(a, b, ct.ones((16, 16), ct.float32)))

    assert run(k, np.zeros((16, 16), np.float32)).tolist() == [[17.0] * 16] * 16


WITHOUT = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "minimum": ct.minimum,
    "maximum": ct.maximum,
    "atan2": ct.atan2, "and": operator.and_, "lshift": operator.lshift, "equal": operator.eq, "less": operator.lt,
}
WITHOUT_UNARY = {
    "neg": [operator.neg], "abs": [abs], "floor": [ct.floor, ct.ceil], "isnan": [ct.isnan],
    "exp": [ct.exp, ct.exp2, ct.log, ct.log2, ct.sqrt, ct.rsqrt, ct.sin, ct.cos, ct.tan, ct.sinh, ct.cosh, ct.tanh],
    "sum": [ct.sum], "prod": [ct.prod], "max": [ct.max], "min": [ct.min], "argmax": [ct.argmax], "argmin": [ct.argmin],
    "cumsum": [ct.cumsum], "cumprod": [ct.cumprod],
}


@pytest.mark.parametrize("f", [pytest.param(f, marks=clause(f"DT-5.{n}"), id=n) for n, f in WITHOUT.items()])
@pytest.mark.parametrize("short", RESTRICTED)
def test_binary_operations_that_restricted_floats_lack(short, f):
    dtype = DTYPES[short]

    @ct.kernel
    def same():
        f(ct.ones((2,), dtype), ct.ones((2,), dtype))

    @ct.kernel
    def literal():
        f(ct.ones((2,), dtype), 1)

    @ct.kernel
    def other():
        f(ct.ones((2,), ct.float32), ct.ones((2,), dtype))

    for k in (same, literal, other):
        refuses("TileTypeError", k)


@pytest.mark.parametrize("functions",
                         [pytest.param(f, marks=clause(f"DT-5.{n}"), id=n) for n, f in WITHOUT_UNARY.items()])
@pytest.mark.parametrize("short", RESTRICTED)
def test_unary_operations_that_restricted_floats_lack(short, functions):
    for f in functions:
        unary(f, short, None)

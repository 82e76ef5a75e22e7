"""reduce with a function of the user [RED-9 … RED-14]."""

import math
import operator

import numpy as np
import pytest

from conformance.harness.api import clause, ct, needs, refuses, run
from conformance.harness.integer_arithmetic import wrap
from conformance.harness.number_formats import encode
from conformance.harness.operand_types import refused, typed
from conformance.harness.reductions import reduced

inf, nan = math.inf, math.nan


RESTRICTED = ("tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float4_e2m1fn")


SHAPE = (2, 4, 8)


# ------------------------------------------------------------------ reduce


@clause("RED-13.value", "RED-9.func")
@pytest.mark.parametrize(
    "func, oracle",
    [
        (lambda a, b: a + b, operator.add),
        (lambda a, b: ct.maximum(a, b), max),
        (operator.add, operator.add),
        (ct.add, operator.add),
        (ct.maximum, max),
        (max, max),
        (min, min),
        (operator.mul, operator.mul),
        (lambda a, b: a ^ b, operator.xor),
        (ct.bitwise_or, operator.or_),
    ],
)
def test_reduce(func, oracle):
    x = np.random.default_rng(1).integers(-100, 100, 128).astype(np.int32)
    for axis, moved in (
        (1, x.reshape(8, 16)),
        (0, x.reshape(8, 16).T),
        (-1, x.reshape(8, 16)),
        (-2, x.reshape(8, 16).T),
    ):
        got = reduced(lambda t: ct.reduce(t, axis, func, 0), x.view(np.uint32), "int32", (8, 16), "int32")
        want = []
        for row in moved.tolist():
            total = row[0]
            for v in row[1:]:
                total = wrap(oracle(total, v), "int32")
            want.append(total)
        assert got.tolist() == want


@clause("RED-9.x", "RED-10.args", "RED-10.result")
def test_reduce_of_tuples():
    def first_largest(v0, i0, v1, i1):
        take = (v1 > v0) | ((v1 == v0) & (i1 < i0))
        return ct.where(take, v1, v0), ct.where(take, i1, i0)

    x = np.random.default_rng(1).integers(-5, 5, 64).astype(np.int32)

    def fn(t):
        v, i = ct.reduce((t, ct.arange(16, dtype=ct.int16)), 1, first_largest, (-1000, 0))
        return v * 100 + i

    got = reduced(fn, x.view(np.uint32), "int32", (4, 16), "int32")
    assert got.tolist() == [max(r) * 100 + r.index(max(r)) for r in x.reshape(4, 16).tolist()]
    typed(lambda t: ct.reduce((t,), 0, lambda a, b: (a + b,), (0,))[0], "float16 (4, 2)", dtype="float16", shape=(2,))
    refused(lambda t, u: ct.reduce((t, u), 0, lambda a, b, c, d: (a, b), (0, 0)), "int32 (4,)", "int32 (8,)")
    typed(
        lambda t, u: ct.reduce((t, u), 1, lambda a, b, c, d: (a + c, b + d), (0, 0))[1],
        "int32 (4, 1)",
        "int8 (8,)",
        dtype="int8",
        shape=(4,),
    )


@clause("RED-3.reduce.keepdims")
def test_reduce_keepdims():
    typed(lambda t: ct.reduce(t, 1, operator.add, 0, keepdims=True), f"int8 {SHAPE}", dtype="int8", shape=(2, 1, 8))
    typed(lambda t: ct.reduce(t, 1, operator.add, 0), f"int8 {SHAPE}", dtype="int8", shape=(2, 8))
    typed(
        lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: (a, b), (0, 0), keepdims=True)[0],
        "int8 (4,)",
        dtype="int8",
        shape=(1,),
    )
    refused(lambda t: ct.reduce(t, 0, operator.add, 0, keepdims=1), "int8 (4,)")


def add(a, b):
    return a + b


@pytest.mark.parametrize(
    "fn",
    [
        *(
            pytest.param(f, marks=clause("RED-9.x"))
            for f in (lambda t: ct.reduce(None, 0, add, 0), lambda t: ct.reduce((t, None), 0, add, (0, 0)))
        ),
        pytest.param(lambda t: ct.reduce((), 0, add, ()), marks=clause("RED-9.empty")),
        *(
            pytest.param(f, marks=clause("RED-9.axis"))
            for f in (
                lambda t: ct.reduce(t, None, add, 0),
                lambda t: ct.reduce(t, (0,), add, 0),
                lambda t: ct.reduce(t, 2, add, 0),
                lambda t: ct.reduce(t, -3, add, 0),
                lambda t: ct.reduce(t, True, add, 0),
                lambda t: ct.reduce(t, 1.0, add, 0),
                lambda t: ct.reduce(t, ct.bid(0), add, 0),
                lambda t: ct.reduce(t),
            )
        ),
        *(
            pytest.param(f, marks=clause("RED-9.func"))
            for f in (
                lambda t: ct.reduce(t, 0, 5, 0),
                lambda t: ct.reduce(t, 0, None, 0),
                lambda t: ct.reduce(t, 0, "add", 0),
                lambda t: ct.reduce(t, 0, t, 0),
            )
        ),
        *(
            pytest.param(f, marks=clause("RED-9.identity"))
            for f in (
                lambda t: ct.reduce(t, 0, add, None),
                lambda t: ct.reduce(t, 0, add, (0,)),
                lambda t: ct.reduce(t, 0, add, ct.bid(0)),
                lambda t: ct.reduce(t, 0, add, t),
                lambda t: ct.reduce((t, t), 0, add, 0),
                lambda t: ct.reduce((t, t), 0, add, (0,)),
                lambda t: ct.reduce(t, 0, add, "0"),
            )
        ),
        *(
            pytest.param(f, marks=clause("RED-10.arity"))
            for f in (
                lambda t: ct.reduce(t, 0, lambda a: a, 0),
                lambda t: ct.reduce(t, 0, lambda a, b, c: a, 0),
                lambda t: ct.reduce((t, t), 0, lambda a, b: (a, b), (0, 0)),
            )
        ),
        *(
            pytest.param(f, marks=clause("RED-10.result"))
            for f in (
                lambda t: ct.reduce(t, 0, lambda a, b: (a, b), 0),
                lambda t: ct.reduce(t, 0, lambda a, b: None, 0),
                lambda t: ct.reduce(t, 0, lambda a, b: "x", 0),
                lambda t: ct.reduce(t, 0, lambda a, b: ct.zeros(4, ct.int32), 0),
                lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: a, (0, 0)),
                lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: (a,), (0, 0)),
                lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: (a, b, c), (0, 0)),
            )
        ),
        *(
            pytest.param(f, marks=clause("RED-10.cast"))
            for f in (
                lambda t: ct.reduce(t, 0, lambda a, b: a + 0.5, 0),
                lambda t: ct.reduce(t, 0, lambda a, b: ct.astype(a, ct.int64), 0),
                lambda t: ct.reduce(t.astype(ct.float16), 0, lambda a, b: ct.float32(a), 0),
            )
        ),
    ],
)
def test_reduce_refuses(fn):
    refused(fn, "int32 (2, 4)")


@clause("RED-10.cast")
def test_results_are_cast():
    typed(lambda t: ct.reduce(t, 0, lambda a, b: ct.int8(a) + ct.int8(b), 0), "int32 (4,)", dtype="int32", shape=())
    typed(lambda t: ct.reduce(t, 0, lambda a, b: 1, 0), "float16 (4,)", dtype="float16", shape=())
    typed(lambda t: ct.reduce(t, 0, lambda a, b: a > b, 0), "int32 (4,)", dtype="int32", shape=())
    x = np.array([1, 2, 300, 4], np.int32)
    got = reduced(
        lambda t: ct.reduce(t, 0, lambda a, b: ct.int8(a) + ct.int8(b), 0), x.view(np.uint32), "int32", (4,), "int32"
    )
    assert got.item() == 51


@clause("RED-13.value")
@pytest.mark.parametrize("dtype, most", [("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0), ("float16", 65504.0),
                                         ("bfloat16", 2.0**127), ("float32", 2.0**127), ("tfloat32", 2.0**127),
                                         ("float64", 2.0**1023), ("int8", 127), ("int64", 2**62)])
def test_an_identity_of_each_width(dtype, most):
    def least(a, b):
        return ct.where(a.astype(ct.float64) < b.astype(ct.float64), a, b)

    @ct.kernel
    def k(x, out):
        t = ct.load(x, 0, 4).astype(getattr(ct, dtype))
        ct.store(out, 0, ct.reduce(t, 0, least, most, keepdims=True).astype(ct.float64))

    assert run(k, np.array([3.0, 2.0, 4.0, 6.0]), np.zeros(1)).item() == 2


@clause("RED-10.args")
def test_the_function_sees_scalars():
    def check(a, b):
        ct.static_assert(a.shape == () and b.shape == ())
        right = a.dtype == ct.int16
        ct.static_assert(right)
        return a + b

    typed(lambda t: ct.reduce(t, 1, check, 0), "int16 (2, 4)", dtype="int16", shape=(2,))


@pytest.mark.parametrize(
    "body",
    [
        *(
            pytest.param(f, marks=clause("RED-11.nested"))
            for f in (
                lambda a, b: ct.sum(ct.full(4, a, ct.int32)) + b,
                lambda a, b: a + ct.reduce(ct.full(4, b, ct.int32), 0, add, 0),
                lambda a, b: a + b + ct.sum(ct.cumsum(ct.full(4, 1, ct.int32))),
            )
        )
    ],
)
def test_nested_reductions(body):
    refused(lambda t: ct.reduce(t, 0, body, 0), "int32 (4,)", error="TileSyntaxError")


def with_if(a, b):
    if a > b:
        return a
    return b


def with_ternary(a, b):
    return a if a > b else b


def with_and(a, b):
    return ct.int32(a > 0 and b > 0)


def with_for(a, b):
    for _ in range(2):
        a = a + b
    return a


def with_while(a, b):
    while a > b:
        a = a - 1
    return a


def with_print(a, b):
    print(a)
    return a + b


def with_assert(a, b):
    ct.assert_(a > b)
    return a + b


@pytest.mark.parametrize(
    "body",
    [
        *(pytest.param(f, marks=clause("RED-11.branch")) for f in (with_if, with_ternary, with_and)),
        *(pytest.param(f, marks=clause("RED-11.loop")) for f in (with_for, with_while)),
        *(pytest.param(f, marks=clause("RED-11.memory")) for f in (with_print, with_assert)),
    ],
)
@clause("SCAN-4.body")
def test_bodies(body):
    refused(lambda t: ct.reduce(t, 0, body, 0), "int32 (4,)", error="TileSyntaxError")
    refused(lambda t: ct.scan(t, 0, body, 0), "int32 (4,)", error="TileSyntaxError")


@clause("RED-11.memory", "SCAN-4.body")
def test_bodies_with_memory():
    def make(access, how):
        @ct.kernel
        def k(a):
            how(ct.load(a, 0, 4), 0, lambda x, y: access(a, x, y), 0)

        return k

    for access in (
        lambda a, x, y: x + ct.load(a, 0, ()),
        lambda a, x, y: x + ct.gather(a, 0),
        lambda a, x, y: x + ct.atomic_add(a, 0, 1),
    ):
        for how in (ct.reduce, ct.scan):
            refuses("TileSyntaxError", make(access, how), np.zeros(4, np.int32))


@clause("RED-11.outer")
def test_bodies_see_outer_variables():
    @ct.kernel
    def k(a, out):
        offset, use = ct.bid(0) * 10, True

        def body(x, y):
            pair = (x, y)
            if use:
                return ct.maximum(pair[0], pair[1]) + offset + 0 * ct.bid(0)
            return x

        ct.store(out, ct.bid(0), ct.reduce(ct.load(a, 0, 2), 0, body, 0))

    assert run(k, np.array([3, 7], np.int32), np.zeros(4, np.int32), grid=(4,)).tolist() == [7, 17, 27, 37]


@clause("RED-12.int", "RED-12.bool")
def test_identities_are_converted():
    for d, identity in (
        ("int32", 0.5),
        ("int8", 300),
        ("uint8", -1),
        ("float16", 1e10),
        ("bool_", 5),
        ("bool_", 0.5),
        ("float32", 1 << 40),
    ):
        typed(lambda t: ct.reduce(t, 0, lambda a, b: a, identity), f"{d} (4,)", dtype=d, shape=())
        typed(lambda t: ct.reduce(t, 0, lambda a, b: a, ct.int64(3)), f"{d} (4,)", dtype=d, shape=())
    x = np.array([True, False, False, False])
    got = reduced(lambda t: ct.reduce(t, 0, lambda a, b: a | b, 0), x, "bool_", (4,), "bool_")
    assert got.item() is np.True_ or bool(got)


@needs("measured")
@clause("RED-13.two", "RED-13.four")
def test_order_of_operands():
    x = np.array([1, 10, 100, 1000], np.int32)
    f = lambda a, b: 2 * a + b
    got = reduced(lambda t: ct.reduce(t, 0, f, 0), x[:2].view(np.uint32), "int32", (2,), "int32")
    assert got.item() == 2 * 1 + 10
    got = reduced(lambda t: ct.reduce(t, 0, f, 0), x.view(np.uint32), "int32", (4,), "int32")
    assert got.item() == 2 * (2 * 1 + 100) + (2 * 10 + 1000)
    got = reduced(
        lambda t: ct.reduce((t, t), 0, lambda a, b, c, d: (2 * a + c, 3 * b + d), (0, 0))[1],
        x[:2].view(np.uint32),
        "int32",
        (2,),
        "int32",
    )
    assert got.item() == 13


@clause("RED-14.restricted", "RED-14.rank")
def test_reduce_of_restricted_floats():
    for d in RESTRICTED:
        typed(lambda t: ct.reduce(t, 0, lambda a, b: a, 1.0), f"{d} (4, 2)", dtype=d, shape=(2,))
        refused(lambda t: ct.reduce(t, 0, lambda a, b: a + b, 1.0), f"{d} (4,)")
        refused(lambda t: ct.reduce(t, 0, lambda a, b: a, 1.0), f"{d} ()")
    refused(lambda t: ct.reduce(t, 0, add, 0), "int32 ()")
    refused(lambda t: ct.reduce(t, -1, add, 0), "int32 ()")
    c = encode("float8_e4m3fn", [3.0, 3.0])
    assert (
        reduced(
            lambda t: ct.reduce(t, 0, lambda a, b: ct.where(ct.bid(0) == 0, a, b), 1.0),
            c,
            "float8_e4m3fn",
            (2,),
            "float8_e4m3fn",
        ).item()
        == 3
    )


@clause("RED-9.x")
def test_reduce_of_one_element():
    x = np.array([7], np.int32)
    assert (
        reduced(lambda t: ct.reduce(t, 0, lambda a, b: a + b, 100), x.view(np.uint32), "int32", (1,), "int32").item()
        == 7
    )

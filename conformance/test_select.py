"""where [WHERE]."""

import math

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, refuses, run
from conformance.harness.code_kernels import apply, dtype, made, ternary, unary
from conformance.harness.number_formats import FLOATS, INTEGERS, codes, values
from conformance.harness.number_samples import sample
from conformance.harness.operand_types import refused, typed, varies

RESTRICTED = ("tfloat32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e5m3fnu", "float4_e2m1fn")


@clause("WHERE-1.cond")
@pytest.mark.parametrize("name", [*INTEGERS, "float16", "bfloat16", "float32", "float64"])
def test_where(name):
    d = dtype(name)
    got = made(
        lambda: ct.where(ct.arange(8, dtype=ct.int32) % 3 == 1, ct.arange(8, dtype=d), ct.full(8, 100, d)), name, 8
    )
    assert list(got) == [i if i % 3 == 1 else 100 for i in range(8)]


@clause("WHERE-1.cond.int", "WHERE-1.cond.float")
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_conditions_of_numbers(name):
    c = (
        codes(name)
        if name in FLOATS and dtype(name).bitwidth <= 8
        else sample(name, 300)
        if name in FLOATS
        else np.array(
            [0, 1, 2, 0, 1 << (dtype(name).bitwidth - 1), (1 << dtype(name).bitwidth) - 1],
            f"u{dtype(name).bitwidth // 8}",
        )
    )
    v = values(name, c) if name in FLOATS else c
    got = apply(unary(lambda x: ct.where(x, 1, 0), name, "int32"), "int32", c)
    assert list(got) == [int(a != 0) for a in v]


@clause("WHERE-1.dtype", "WHERE-1.bool", "WHERE-1.literal", "WHERE-1.literals")
def test_dtypes():
    for a, b, d in (
        ("int8", "int16", "int16"),
        ("int8", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("bool_", "uint8", "uint8"),
        ("bool_", "bool_", "bool_"),
        ("uint8", "uint64", "uint64"),
    ):
        typed(lambda x, y: ct.where(ct.bid(0) == 0, x, y), a, b, dtype=d)
        typed(lambda x, y: ct.where(ct.bid(0) == 0, x, y), b, a, dtype=d)
    for a, b in (
        ("int8", "uint8"),
        ("float16", "bfloat16"),
        ("float8_e5m2", "float8_e4m3fn"),
        ("float8_e5m2", "float32"),
        ("tfloat32", "float32"),
    ):
        refused(lambda x, y: ct.where(ct.bid(0) == 0, x, y), a, b)
    typed(lambda c: ct.where(c, 1, 2.5), "bool_", dtype="float32")
    typed(lambda c: ct.where(c, 1, 2), "bool_", dtype="int32")
    typed(lambda c: ct.where(c, True, False), "bool_", dtype="bool_")
    typed(lambda c: ct.where(c, 1, 1 << 40), "bool_", dtype="int64")
    typed(lambda c: ct.where(c, True, 3), "bool_", dtype="int32")
    typed(lambda c, x: ct.where(c, x, 3), "bool_", "uint8", dtype="uint8")
    typed(lambda c, x: ct.where(c, 1.5, x), "bool_", "uint8", dtype="float32")
    typed(lambda c, x: ct.where(c, 1, x), "bool_", "float16", dtype="float16")
    typed(lambda c, x: ct.where(c, x, 1), "bool_", "bool_", dtype="int32")
    assert list(made(lambda: ct.where(ct.arange(2, dtype=ct.bool_), 1, 2.5), "float32", 2)) == [2.5, 1]


@clause("WHERE-1.range")
def test_literals_beyond_the_range():
    refused(lambda c, x: ct.where(c, x, 300), "bool_", "uint8", error="TileValueError")
    refused(lambda c, x: ct.where(c, -1, x), "bool_", "uint8", error="TileValueError")
    refused(lambda c: ct.where(c, ct.int8(1), 128), "bool_", error="TileValueError")
    typed(lambda c, x: ct.where(c, x, 255), "bool_", "uint8", dtype="uint8")


@clause("WHERE-1.shape")
def test_shapes():
    typed(ct.where, "bool_ (4, 1, 1)", "int32 (2, 1)", "int32 (8,)", dtype="int32", shape=(4, 2, 8))
    typed(ct.where, "bool_ ()", "int32 (2, 1)", "int32 ()", dtype="int32", shape=(2, 1))
    typed(ct.where, "bool_ (4,)", "int32 ()", "int32 ()", dtype="int32", shape=(4,))
    typed(lambda x: ct.where(True, x, 0), "int32 (4,)", dtype="int32", shape=(4,))

    @ct.kernel
    def k(out):
        c = ct.arange(2, dtype=ct.int32)[:, None] == 1
        y = ct.where(c, ct.arange(4, dtype=ct.int32), -ct.arange(4, dtype=ct.int32)[None, :] - 1)
        ct.store(out, (0, 0), y)

    assert run(k, np.zeros((2, 4), np.int32)).tolist() == [[-1, -2, -3, -4], [0, 1, 2, 3]]


@clause("WHERE-1.mismatch")
def test_shapes_that_do_not_broadcast():
    refused(ct.where, "bool_ (4,)", "int32 (8,)", "int32 (8,)")
    refused(ct.where, "bool_ (4,)", "int32 (4,)", "int32 (8,)")
    refused(ct.where, "bool_ (2, 4)", "int32 (4, 2)", "int32 ()")


@clause("WHERE-2.restricted")
@pytest.mark.parametrize("name", RESTRICTED)
def test_restricted_floats(name):
    typed(lambda x, y: ct.where(ct.bid(0) == 0, x, y), name, name, dtype=name)
    typed(lambda x: ct.where(ct.bid(0) == 0, x, 1.0), name, dtype=name)
    typed(lambda x: ct.where(ct.bid(0) == 0, 2, x), name, dtype=name)
    x, y = sample(name, 16, 1), sample(name, 16, 2)[::-1].copy()
    fn = lambda a, b, c: ct.where(ct.arange(16, dtype=ct.int32) % 2 == 0, a, b)
    assert (apply(ternary(fn, name), name, x, y, y) == np.where(np.arange(16) % 2 == 0, x, y)).all()


@clause("WHERE-2.pointer")
def test_pointers():
    @ct.kernel
    def k(a, b, out):
        p = ct.where(ct.bid(0) == 1, a.foreign_pointer, b.foreign_pointer)
        ct.store(out, ct.bid(0), ct.load(ct.Array.from_foreign(p, (1,), (1,)), 0, 1))

    out = run(k, np.array([1.0], np.float32), np.array([2.0], np.float32), np.zeros(2, np.float32), grid=(2,))
    assert list(out) == [2, 1]

    @ct.kernel
    def mixed(a, b):
        ct.where(ct.bid(0) == 1, a.foreign_pointer, b.foreign_pointer)

    accepts(mixed, np.zeros(1, np.float32), np.zeros(1, np.float32))
    refuses("TileTypeError", mixed, np.zeros(1, np.float32), np.zeros(1, np.int32))


@clause("WHERE-2.other")
def test_other_things():
    for bad in (None, "1", (1, 2), ct.int32):
        refused(lambda x: ct.where(x, bad, 1), "bool_")
        refused(lambda x: ct.where(x, 1, bad), "bool_")
        refused(lambda x: ct.where(bad, x, 1), "int32")

    @ct.kernel
    def k(a):
        ct.where(ct.bid(0) == 0, a, a)

    @ct.kernel
    def pointer_condition(a):
        ct.where(a.foreign_pointer, 1, 2)

    for kernel in (k, pointer_condition):
        refuses("TileTypeError", kernel, np.zeros(4, np.float32))


@clause("WHERE-2.both")
def test_both_sides_are_evaluated():
    @ct.kernel
    def k(counter, out):
        y = ct.where(ct.bid(0) == 0, ct.atomic_add(counter, 0, 1), ct.atomic_add(counter, 1, 1))
        ct.store(out, 0, y)

    counter = np.zeros(2, np.int32)
    run(k, counter, np.zeros(1, np.int32))
    assert list(counter) == [1, 1]


@clause("WHERE-2.runtime")
def test_where_is_no_constant():
    varies(lambda: ct.where(True, 1, 2))
    varies(lambda: ct.where(ct.bool_(True), ct.int8(1), ct.int8(2)))
    assert made(lambda: ct.full(4, ct.where(math.nan, 1, 2), ct.int32), "int32", 4)[0] == 1


@clause("WHERE-2.pointer")
def test_pointers_have_no_other_use():
    uses = [
        lambda p: p.astype(ct.int64),
        lambda p: ct.full(4, p, ct.int64),
        lambda p: ct.arange(4, dtype=ct.int32, start=p),
        lambda p: ct.astile((p, p), dtype=ct.int64),
        lambda p: p == p,
        lambda p: p < p,
        lambda p: not p,
        lambda p: p + 1,
        lambda p: -p,
        lambda p: abs(p),
        lambda p: ct.exp(p),
        lambda p: p & 1,
        lambda p: p**2,
        lambda p: ct.sum(p),
        lambda p: ct.where(ct.bid(0) == 0, p, 1),
        lambda p: ct.int64(p),
        lambda p: ct.pack_to_bytes(p),
    ]

    def make(use):
        @ct.kernel
        def k(a):
            use(a.foreign_pointer)

        return k

    for use in uses:
        refuses("TileTypeError", make(use), np.zeros(4, np.float32))

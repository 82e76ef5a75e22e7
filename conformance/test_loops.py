# ruff: noqa: B007 -- tile code under test, not code to tidy
"""Loops at run time."""

import dataclasses

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.tile_code import body, rejects, result, takes

DTYPES = {"int8": ct.int8, "int16": ct.int16, "int32": ct.int32, "int64": ct.int64}


def digits(r):
    s = 0
    for i in r:
        s = s * 10 + i + 1
    return s


@pytest.mark.parametrize("f, args, want", [
    pytest.param(lambda n: digits(range(n)), (4,), 1234, marks=clause("LOOP-1.stop")),
    pytest.param(lambda n: digits(range(4)) + n, (0,), 1234, marks=clause("LOOP-1.stop")),
    pytest.param(lambda a, n: digits(range(a, n)), (2, 5), 345, marks=clause("LOOP-1.start")),
    pytest.param(lambda a, n: digits(range(2, n)) + a, (0, 5), 345, marks=clause("LOOP-1.start")),
    pytest.param(lambda a, n, s: digits(range(a, n, s)), (1, 8, 3), 258, marks=clause("LOOP-1.step")),
    pytest.param(lambda a, n, s: digits(range(a, n, s)), (0, 8, 4), 15, marks=clause("LOOP-1.step")),
    pytest.param(lambda a, n, s: digits(range(0, 9, 4)) + a, (0, 8, 4), 159, marks=clause("LOOP-1.step")),
    pytest.param(lambda n: digits(range(n)), (0,), 0, marks=clause("LOOP-2.empty")),
    pytest.param(lambda n: digits(range(n)), (-5,), 0, marks=clause("LOOP-2.empty", "LOOP-2.signed")),
    pytest.param(lambda n: digits(range(n, 3)), (3,), 0, marks=clause("LOOP-2.empty")),
    pytest.param(lambda n: digits(range(n, 3)), (9,), 0, marks=clause("LOOP-2.empty")),
    pytest.param(lambda n: digits(range(n, 2)), (-1,), 12, marks=clause("LOOP-2.signed"))])
def test_ranges(f, args, want):
    assert result(f, *args) == want


@pytest.mark.parametrize("name", [pytest.param(n, marks=clause(f"LOOP-1.{n}")) for n in DTYPES])
@clause("LOOP-3.dtype")
def test_dtypes_of_bounds(name):
    d, wide = DTYPES[name], ct.int64 if name == "int64" else ct.int32

    def f(n):
        s = 0
        for i in range(n.astype(d)):
            e = i.dtype
            ct.static_assert(e == wide)
            s = s * 10 + i.astype(ct.int32) + 1
        t = 0
        for i in range(0, n, d(1)):
            e = i.dtype
            ct.static_assert(e == wide)
            t = t + 1
        return s, t

    assert result(f, 4) == [1234, 4]


@pytest.mark.parametrize("bounds", [lambda n, d: (d(0), n), lambda n, d: (n, n.astype(d)), lambda n, d: (0, n, d(1)),
                                    lambda n, d: (n.astype(d), n + 3, 1), lambda n, d: (n.astype(d), 9, 1)])
@clause("LOOP-3.dtype", "IDX-4.mixed")
def test_each_bound_makes_the_counter_wider(bounds):
    def f(n):
        for i in range(*bounds(n, ct.int64)):
            e = i.dtype
            ct.static_assert(e == ct.int64)
        return n

    assert result(f, 4) == 4


@clause("LOOP-1.int64")
def test_large_bounds():
    def f(n):
        s = 0
        for i in range(1 << 40, (1 << 40) + 3):
            s = s * 10 + (i - (1 << 40) + n).astype(ct.int32)
        return s

    assert result(f, 1) == 123


@pytest.mark.parametrize("f", [
    pytest.param(lambda n: range(n > 0), marks=clause("LOOP-1.bool")),
    pytest.param(lambda n: range(True), marks=clause("LOOP-1.bool")),
    pytest.param(lambda n: range(n.astype(ct.uint32)), marks=clause("LOOP-1.unsigned")),
    pytest.param(lambda n: range(ct.uint8(3)), marks=clause("LOOP-1.unsigned")),
    pytest.param(lambda n: range(n * 1.0), marks=clause("LOOP-1.float")),
    pytest.param(lambda n: range(3.0), marks=clause("LOOP-1.float")),
    pytest.param(lambda n: range(0, 4, 1.0), marks=clause("LOOP-1.float")),
    pytest.param(lambda n: range(ct.zeros((1,), ct.int32)), marks=clause("LOOP-1.tile")),
    pytest.param(lambda n: range(None), marks=clause("LOOP-1.tile")),
    pytest.param(lambda n: range(), marks=clause("LOOP-1.count")),
    pytest.param(lambda n: range(1, 2, 3, 4), marks=clause("LOOP-1.count")),
    pytest.param(lambda n: range(0, 4, 0), marks=clause("LOOP-2.constant")),
    pytest.param(lambda n: range(4, 0, -1), marks=clause("LOOP-2.constant"))])
def test_ranges_that_are_refused(f):
    rejects("TileTypeError", f, 1)


@clause("LOOP-1.variable")
def test_ranges_as_values():
    def f(n):
        r = range(1, n)
        return digits(r) * 1000 + digits(r), digits(r if n > 0 else r)

    assert result(f, 4) == [234234, 234]


@clause("LOOP-3.once", "LOOP-3.variable")
def test_what_does_not_change_the_iteration():
    def f(n):
        s = step = 1
        for i in range(0, n, step):
            n = n - 1
            step = step + 1
            i = i * 2
            s = s * 10 + i
        return s

    assert result(f, 4) == 10246


@clause("LOOP-3.once")
def test_bounds_are_evaluated_once():
    def bound(out, v):
        ct.store(out, 0, ct.load(out, 0, 1) + 1)
        return v

    @ct.kernel
    def k(out):
        for i in range(bound(out, 0), bound(out, 5), bound(out, 2)):
            ct.store(out, 1, ct.load(out, 1, 1) + 1)

    assert run(k, np.zeros(2, np.int32)).tolist() == [3, 3]


@clause("LOOP-4")
def test_the_variable_is_no_constant():
    rejects("TileTypeError", body("for i in range(1):\n    ct.zeros((i + 1,), ct.int32)"), 1)
    rejects("TileTypeError", body("for i in range(2):\n    (1, 2)[i]"), 1)


@clause("LOOP-5.carried", "LOOP-5.several", "LOOP-5.tuple")
def test_carried_variables():
    @dataclasses.dataclass(frozen=True)
    class Both:
        a: object
        b: object

    def f(n):
        a, b, t, p = 0, 1, (n, (0, 1.0)), Both(n, 0)
        for i in range(n):
            a, b = b, a + b
            t = t[0] + i, (t[1][0] + 1, t[1][1] * 2)
            p = Both(p.b, p.a + 1)
        return a, b, t[0], t[1][0], t[1][1], p.a, p.b

    assert result(f, 10) == [55, 89, 55, 10, 1024, 15, 5]
    assert result(f, 0) == [0, 1, 0, 0, 1, 0, 0]


@clause("LOOP-5.carried")
def test_carried_tiles():
    def f(n):
        t = ct.arange(4, dtype=ct.int32)
        i = 0
        while i < n:
            t = t * 2 + 1
            i += 1
        return ct.sum(t)

    assert result(f, 3) == sum(8 * v + 7 for v in range(4))


LOOPS = ("for i in range(n):", "while n > 0:")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("before, inside", [
    pytest.param("0", "x = x + 1.0", marks=clause("LOOP-5.float")),
    pytest.param("0", "x = 1.5", marks=clause("LOOP-5.type")),
    pytest.param("0", "x = None", marks=clause("LOOP-5.type")),
    pytest.param("None", "x = n", marks=clause("LOOP-5.type")),
    pytest.param("'a'", "x = 'b'", marks=clause("LOOP-5.type")),
    pytest.param("ct.int8", "x = ct.int16", marks=clause("LOOP-5.type")),
    pytest.param("True", "x = n", marks=clause("LOOP-5.type")),
    pytest.param("ct.int8(0)", "x = x + n", marks=clause("LOOP-5.strict")),
    pytest.param("0", "x = n.astype(ct.int64)", marks=clause("LOOP-5.type")),
    pytest.param("ct.zeros((2,), ct.int8)", "x = ct.zeros((4,), ct.int8)", marks=clause("LOOP-5.shape")),
    pytest.param("(1, 2)", "x = (1, 2, 3)", marks=clause("LOOP-5.type")),
    pytest.param("0", "if n > 1:\n        x = x + 1.0", marks=clause("LOOP-5.type"))])
@clause("LOOP-5.unused")
def test_types_that_change(loop, before, inside):
    rejects("TileTypeError", body(f"x = {before}\n{loop}\n    {inside}\nreturn n"), 1)


@clause("LOOP-5.fine")
def test_types_that_stay():
    def f(n):
        x, y, z = 0.0, ct.int8(0), 1
        for i in range(n):
            x = x + 1
            y = y + 1
            z = z * 3
        d = y.dtype
        ct.static_assert(d == ct.int8)
        return x, y, z

    assert result(f, 3) == [3, 3, 27]


@clause("LOOP-6.body", "LOOP-6.after")
def test_constants_and_loops():
    rejects("TileTypeError", body("m = 4\nfor i in range(n):\n    ct.zeros((m,), ct.int32)\n    m = 4"), 1)
    takes(body("m = 4\nfor i in range(n):\n    ct.zeros((m,), ct.int32)"), 1)
    takes(body("m = 4\nfor i in range(n):\n    m = 4\nct.zeros((m,), ct.int32)"), 1)
    rejects("TileTypeError", body("m = 4\nfor i in range(n):\n    m = 8\nct.zeros((m,), ct.int32)"), 1)
    lines = "m = 4\nfor i in range(n):\n    m = 8\n    m = 4\n    if n > 1:\n        break\nct.zeros((m,), ct.int32)"
    takes(body(lines), 1)


@clause("LOOP-7.first", "LOOP-7.constant", "LOOP-7.variable", "LOOP-7.before", "LOOP-7.while_true")
def test_variables_after_a_loop():
    rejects("TileTypeError", body("for i in range(n):\n    x = 1\nreturn x"), 1)
    rejects("TileTypeError", body("while n > 0:\n    x = 1\nreturn x"), 1)
    rejects("TileTypeError", body("for i in range(3):\n    x = 1\nreturn x"), 1)
    rejects("TileTypeError", body("for i in range(3):\n    pass\nreturn i"), 1)
    rejects("TileTypeError", body("while True:\n    if n > 0:\n        break\n    x = 1\nreturn x"), 1)
    takes(body("for i in range(n):\n    x = 1\nreturn n"), 1)
    assert result(body("i = n * 100\nfor i in range(n):\n    pass\nreturn i"), 4) == 3
    assert result(body("i = 100\nfor i in range(n):\n    pass\nreturn i"), 0) == 100
    rejects("TileTypeError", body("i = 1.5\nfor i in range(n):\n    pass\nreturn i"), 4)

    def f(n):
        while True:
            x = n * 2
            if x > 20:
                break
            n = n + 1
        return x

    assert result(f, 3) == 22


@clause("LOOP-8")
def test_use_before_assignment():
    lines = "for i in range(n):\n    if i > 0:\n        y = x\n    x = i"
    rejects(("TileTypeError", "TileSyntaxError"), body(lines), 3)
    rejects(("TileTypeError", "TileSyntaxError"), body("while n > 0:\n    y = x\n    x = 1"), 3)

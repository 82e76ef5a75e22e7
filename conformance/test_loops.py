# ruff: noqa: B007 -- tile code under test, not code to tidy
"""Loops at run time."""

import contextlib
import dataclasses

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, refuses, run
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


@contextlib.contextmanager
def counted(out):
    ct.store(out, 0, ct.load(out, 0, 1) + 1)
    yield
    ct.store(out, 1, ct.load(out, 1, 1) + 1)


@clause("LOOP-9.break", "LOOP-9.continue", "LOOP-9.if")
def test_values_at_the_exit():
    def f(n):
        s = t = 0
        for i in range(10):
            s = s + 1
            if i % 2 == 0:
                if n > 0:
                    continue
            t = t + i
            if i > 4:
                if n > 0:
                    t = t + 1000
                    break
        return s, t

    # odd i: 1, 3, then 5 leaves
    assert result(f, 1) == [6, 1009] and result(f, 0) == [10, 45]


@clause("LOOP-9.return", "LOOP-9.with")
def test_leaving_by_with():
    def g(out, n):
        for i in range(10):
            with counted(out):
                if i == 1:
                    continue
                if i == n:
                    break
                for j in range(5):
                    with counted(out):
                        if i + j == 6:
                            return i * 10 + j
        return -i_or(n)

    def i_or(n):
        return n

    @ct.kernel
    def k(n, out):
        ct.store(out, 2, g(out, n))

    # n = 2: i = 0 runs 1 + 5, i = 1 enters, i = 2 enters and leaves
    assert run(k, 2, np.zeros(3, np.int32)).tolist() == [8, 8, -2]
    # n = 99: 6, 1, then i = 2 enters once and j = 0..4 reach 6 at j = 4
    assert run(k, 99, np.zeros(3, np.int32)).tolist() == [13, 13, 24]


@clause("LOOP-10")
def test_loops_without_end():
    @ct.kernel
    def k(n):
        if n > 0:
            while True:
                pass

    accepts(k, 1)
    launch(k, 0)


@clause("LOOP-11")
def test_loops_in_reductions():
    def f(a, b):
        for i in range(2):
            a = a + b
        return a

    def g(a, b):
        while True:
            break
        return a + b

    for h in (f, g):
        rejects("TileSyntaxError", lambda n, h=h: ct.reduce(ct.zeros((4,), ct.int32), 0, h, 0), 1)
        rejects("TileSyntaxError", lambda n, h=h: ct.scan(ct.zeros((4,), ct.int32), 0, h, 0), 1)


@clause("LOOP-13.while")
def test_the_condition_of_a_while():
    def more(out, n):
        ct.store(out, 0, ct.load(out, 0, 1) + 1)
        return n > 0

    @ct.kernel
    def k(n, out):
        while more(out, n):
            n = n - 1

    assert run(k, 4, np.zeros(1, np.int32)).tolist() == [5]
    assert run(k, -1, np.zeros(1, np.int32)).tolist() == [1]


@clause("LOOP-13.blocks")
def test_blocks_loop_differently():
    @ct.kernel
    def k(out):
        b = ct.bid(0)
        s = n = 0
        for i in range(b):
            if i == 4:
                break
            if i == 1:
                continue
            s = s * 10 + i + 1
        m = b
        while m > 0:
            m = m // 2
            n = n + 1
        ct.store(out, (b, 0), s)
        ct.store(out, (b, 1), n)

    got = run(k, np.zeros((7, 2), np.int32), grid=(7,))
    assert got[:, 0].tolist() == [0, 1, 1, 13, 134, 134, 134]
    assert got[:, 1].tolist() == [b.bit_length() for b in range(7)]


@clause("LOOP-13.blocks", "LOOP-9.return")
def test_blocks_return_from_loops():
    @ct.kernel
    def k(out):
        b = ct.bid(0)
        for i in range(5):
            for j in range(5):
                if i * j == b:
                    ct.store(out, b, i * 10 + j + 100)
                    return
        ct.store(out, b, -1)

    want = [next((i * 10 + j + 100 for i in range(5) for j in range(5) if i * j == b), -1) for b in range(18)]
    assert run(k, np.zeros(18, np.int32), grid=(18,)).tolist() == want
    refuses("TileTypeError", k, 1)


# ------------------------------------------------------------------ branches on the counter

COMPARED = {
    "j < x": lambda j, x: j < x, "j <= x": lambda j, x: j <= x, "j > x": lambda j, x: j > x,
    "j >= x": lambda j, x: j >= x, "x < j": lambda j, x: x < j, "x <= j": lambda j, x: x <= j,
    "x > j": lambda j, x: x > j, "x >= j": lambda j, x: x >= j, "j == x": lambda j, x: j == x,
    "j + 1 > x": lambda j, x: j + 1 > x,
}


def plain(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            s = s * 3 + j
        else:
            s = s * 5 - j
        s = s ^ j
    return s


def without_else(holds, start, stop, x):
    s, t = 1, 2
    for j in range(start, stop):
        y = s - t
        if holds(j, x):
            y = y * 3 + j
            t = t + y
        s = s ^ y
    return s + t


def going_on(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        s = s * 3
        if holds(j, x):
            s = s + j
            continue
        s = s ^ j
        if s > 7:
            s = s - 5
    return s


def twice(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            s = s * 3 + j
        if holds(j, x + 2):
            s = s * 7 - j
        if s > 1000:
            if holds(j, x):
                s = s - 1000
    return s


def by_twos(holds, start, stop, x):
    s = 1
    for j in range(start, stop, 2):
        if holds(j, x):
            s = s * 3 + j
        s = s + 1
    return s


def leaving(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            s = s * 3 + j
        if s > 50:
            break
    return s


def around_a_loop(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            for i in range(2):
                s = s * 3 + i
        s = s + j
    return s


def of_a_moving_bound(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            s = s * 3 + j
            x = x - 1
        else:
            x = x + 2
        if holds(j, s):
            s = s - 4
    return s


def of_itself(holds, start, stop, x):
    s = x
    for j in range(start, stop):
        if holds(j, j):
            s = s * 3 + j
        if holds(s, x):
            s = s - 2
    return s


def with_memory(holds, start, stop, x):
    """Sums of what two branches make."""
    s = 1
    for j in range(start, stop):
        r = s + j
        if holds(j, x):
            a = r * 2
            b = a - s
        else:
            b = s - 1
            a = b * 4
        s = (a ^ b) - j
    return s


WRAPPING = plain, without_else, with_memory  # these may be compared modulo 2**bits


@clause("LOOP-12")
@pytest.mark.parametrize("compared", COMPARED)
@pytest.mark.parametrize("body", [plain, without_else, going_on, twice, by_twos, leaving, around_a_loop,
                                  of_a_moving_bound, of_itself, with_memory], ids=lambda f: f.__name__)
def test_branches_on_the_counter(body, compared):
    holds, dtype = COMPARED[compared], np.int32

    @ct.kernel
    def k(bounds, out):
        b = ct.bid(0)
        start, stop, x = ct.load(bounds, (b, 0), ()), ct.load(bounds, (b, 1), ()), ct.load(bounds, (b, 2), ())
        ct.store(out, b, body(holds, start, stop, x))

    cases = [(a, b, x) for a, b in ((0, 5), (-3, 2), (4, 4), (5, 2)) for x in range(-4, 8)]
    if body in WRAPPING and "+" not in compared:
        last = np.iinfo(dtype).max
        cases += [(0, 5, x) for x in (last, last - 1, -last - 1)] + [(last - 4, last, last - i) for i in range(6)]
        cases += [(-last - 1, -last + 3, -last + i) for i in range(-1, 5)]
    out = run(k, np.array(cases, dtype), np.zeros(len(cases), dtype), grid=(len(cases),))
    bits = 8 * out.itemsize
    assert [w % (1 << bits) for w in out.tolist()] == [body(holds, *c) % (1 << bits) for c in cases]


@clause("LOOP-10")
@pytest.mark.parametrize("count", [0, -1])
def test_loops_without_end_in_loops_that_never_run(count):
    @ct.kernel
    def k(n, y):
        for i in range(n):
            while True:
                i = i + 1
        ct.store(y, 0, 7)

    assert run(k, count, np.zeros(1, np.int32)).tolist() == [7]

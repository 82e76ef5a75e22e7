"""Code that a kernel runs again with arguments of other types, other constants, or other values: each means its own."""

import contextlib
import dataclasses
import enum
import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, run
from conformance.harness.tile_code import body, module, rejects, result, takes
from conformance.harness.type_probes import static


@dataclasses.dataclass(frozen=True)
class Sum:
    a: object
    b: object = 2

    def of(self, n):
        return self.a + self.b + n


@dataclasses.dataclass(frozen=True)
class Product:
    a: object
    b: object = 2

    def of(self, n):
        return self.a * self.b * n


@dataclasses.dataclass(frozen=True)
class Renamed:
    b: object
    a: object = 2

    def of(self, n):
        return self.a * 100 + self.b * 10 + n


class Unhashable(enum.Enum):
    A = 1
    B = 2

    __hash__ = None


class Equal(enum.Enum):
    C = 1
    D = 2

    def __eq__(self, other):
        return isinstance(other, Equal)

    def __hash__(self):
        return 1


# ------------------------------------------------------------------ arguments


def doubled(x):
    y = x * 2
    return y, y.dtype


def twice(x):
    return doubled(x)[1]


@clause("FN-2.inline", "CALL-2")
def test_equal_numbers_of_other_types():
    """1, 1.0, True and strict ones, in every order: nothing of one call is seen in another."""
    def all_of(n):
        i, j = ct.int8(3), ct.int16(3)
        a = twice(1), twice(1.0), twice(True), twice(i), twice(j), twice(3), twice(ct.float16(3)), twice(3.0), twice(n)
        b = twice(n.astype(ct.int8)), twice(n.astype(ct.uint8)), twice(n * 1.0), twice(ct.float64(3)), twice(0.0)
        c = twice(-0.0), twice(0), twice(ct.uint64(3)), twice(ct.int64(3)), twice(ct.bool_(1)), twice(i), twice(n)
        return *a, *b, *c

    names = [d.name for d in static(lambda: all_of(ct.bid(0)))]
    assert names[:9] == ["int32", "float32", "int32", "int8", "int16", "int32", "float16", "float32", "int32"]
    assert names[9:14] == ["int8", "uint8", "float32", "float64", "float32"]
    assert names[14:] == ["float32", "int32", "uint64", "int64", "int32", "int8", "int32"]


@clause("FN-2.inline", "CALL-2")
def test_constants_that_are_equal_and_differ():
    def text(x):
        return str(x)

    def f(n):
        t = text(1), text(True), text(1.0), text(0.0), text(-0.0), text(0), text(False), text("1"), text(None), text((1,)), \
            text((True,)), text((1.0,)), text(ct.int8(1)), text(1 << 40), text(math.inf), text(math.nan), text(math.nan)
        return ", ".join(t)

    got = static(lambda: f(1))
    assert got == "1, True, 1.0, 0.0, -0.0, 0, False, 1, None, (1,), (True,), (1.0,), 1, 1099511627776, inf, nan, nan"


@clause("FN-2.inline", "CV-2.method", "DC-2.method")
def test_records_of_classes_with_equal_fields():
    def of(p, n):
        return p.of(n)

    def f(n):
        return (of(Sum(n, 3), n), of(Product(n, 3), n), of(Sum(n), n + 1), of(Product(n), n + 1), of(Renamed(n), n),
                of(Renamed(2, n), n), of(Sum(Product(n), 3).a, n), of(Sum(2, n), n), of(Sum(n, n), n), of(Sum(n, n + 1), n))

    n = 5
    assert result(f, n) == [13, 75, 13, 60, 255, 525, 50, 12, 15, 16]


@clause("FN-2.inline", "CALL-1.star", "CALL-1.double_star", "CALL-6.argument")
def test_arguments_of_every_kind():
    def f(n, m):
        def call(g, *xs, **ys):
            return g(*xs, **ys)

        def named(a, b=1, *, c=100):
            return a - b + c

        add, sub = lambda x, y: x + y, lambda x, y: x - y
        k = n + m
        late = lambda x=n: x * k
        first = call(late), call(late, 2), call(lambda: k), call(lambda: n)
        k = k + 1
        return (*first, call(late), call(lambda: k), call(add, n, m), call(sub, n, m), call(add, m, n), call(sub, m, n),
                call(sub, n, n), call(named, n), call(named, n, c=m), call(named, n, b=m), call(named, a=n, b=m, c=1))

    n, m = 7, 3
    assert result(f, n, m) == [70, 20, 10, 7, 77, 11, 10, 4, 10, -4, 0, 106, 9, 104, 5]


@clause("FN-2.inline")
def test_equal_and_different_values():
    """A call with one value twice, then with two values, and the other way round."""
    def sub(x, y, z):
        a = x - y * z
        for i in range(z % 3 + 1):
            a = a + (y if i < x else z)
        return a

    def python(x, y, z):
        return x - y * z + sum(y if i < x else z for i in range(z % 3 + 1))

    def f(n, m, k):
        return sub(n, n, m), sub(n, m, k), sub(m, m, m), sub(k, n, n), sub(n, m, n), sub(n, 2, 2), sub(m, 2, 2), sub(2, n, 2)

    n, m, k = 5, 7, 4
    assert result(f, n, m, k) == [python(*x) for x in (
        (n, n, m), (n, m, k), (m, m, m), (k, n, n), (n, m, n), (n, 2, 2), (m, 2, 2), (2, n, 2))]


# ------------------------------------------------------------------ results


def closure(n):
    k = n * 2
    return lambda x: x + k


def closures(n):
    def inner(m):
        return lambda: n * 10 + m
    return inner, inner(n + 1)


def counted(n):
    return range(n, n + 3)


def words(n, **more):
    return more


def showing(n):
    return f"<{n}>"


def sliced(n):
    return Sum((n, n + 1), slice(0, 1, 1)), (n, (n + 2,))


def method(n):
    return Sum(n, 1).of


@contextlib.contextmanager
def manager(n):
    yield n + 1


def managed(n):
    return manager(n)


def view(a, m):
    return a.tiled_view((m,))


@clause("FN-2.inline", "CALL-5.after", "CALL-6.result")
def test_results_of_every_kind():
    """A function called twice with other run-time values: what each call gives belongs to that call."""
    def f(n, m):
        g, h = closure(n), closure(m)
        (i, j), (k, l) = closures(n), closures(m)
        total = 0
        for x in counted(n):
            total = total + x
        for x in counted(m):
            total = total + x * 100
        p, q = words(0, a=n, b=1), words(0, a=m, b=1)
        (s, t), (u, v) = sliced(n), sliced(m)
        w, z = method(n), method(m)
        return (g(1), h(1), i(1)(), j(), k(1)(), l(), total, p["a"], q["a"], s.a[s.b][0], u.a[u.b][0], t[1][0], v[1][0],
                w(1), z(1))

    n, m = 3, 7
    assert result(f, n, m) == [7, 15, 31, 34, 71, 78, 12 + 2400, 3, 7, 3, 7, 5, 9, 5, 9]


@clause("FN-2.inline", "CM-3.stored", "PRINT-2.formatted")
def test_managers_texts_and_views(capfd):
    @ct.kernel
    def k(a, out, n, m):
        c, d = managed(n), managed(m)
        with c as x:
            with d as y:
                print(showing(n), showing(m), showing(x), showing(y))
        v, w = view(a, 2), view(a, 2)
        ct.store(out, 0, ct.sum(v.load((n,))) * 1000 + ct.sum(w.load((m,))))

    a = np.arange(20, dtype=np.int32)
    capfd.readouterr()
    out = run(k, a, np.zeros(1, np.int32), 3, 7)
    assert out.tolist() == [13 * 1000 + 29]
    assert capfd.readouterr().out == "<3> <7> <4> <8>\n"


@clause("FN-2.inline", "CALL-3.same")
def test_calls_in_calls():
    def leaf(x):
        if x > 4:
            return x * 2, (x,)
        return x, (x + 1,)

    def middle(x, y):
        a, (b,) = leaf(x)
        c, (d,) = leaf(y)
        while a > 0:
            a = a - c - 1
            b = b + leaf(d)[0]
        return Sum(a, b), d

    def python(x, y):
        (a, (b,)), (c, (d,)) = leaf(x), leaf(y)
        while a > 0:
            a = a - c - 1
            b = b + leaf(d)[0]
        return a, b, d

    def f(n, m):
        (p, a), (q, b), (r, c) = middle(n, m), middle(m, n), middle(n, n)
        return p.a, p.b, a, q.a, q.b, b, r.a, r.b, c

    assert result(f, 9, 2) == [*python(9, 2), *python(2, 9), *python(9, 9)]


@clause("FN-2.inline", "SEVAL-2.python")
def test_calls_that_run_static_code():
    """Static code runs again in each call."""
    space = module("""
        state = [0]

        def number():
            state[0] += 1
            return state[0]

        def next_one(n):
            return n * 10 + ct.static_eval(number())

        def around(n):
            return next_one(n), next_one(n)

        def f(n):
            state_now = ct.static_eval(state.clear() or state.append(0))
            return (*around(n), *around(n), next_one(n), next_one(n + 1))
    """)
    assert result(space["f"], 1) == [11, 12, 13, 14, 15, 26]


# ------------------------------------------------------------------ operations


@clause("SEVAL-7.types", "SEVAL-7.constant")
def test_operations_that_repeat():
    """The same line with constants and values of other types, and members of enums."""
    def f(n):
        xs = (n, n, n * 1.0, ct.int8(3), 3, n.astype(ct.int64), n.astype(ct.int8), n, 3.0, True)
        total = tuple(ct.add(x, ct.int8(1)) + x * 2 - ct.maximum(x, 2) for x in ct.static_iter(xs))
        return total

    assert result(f, 3) == [7, 7, 7, 7, 7, 7, 7, 7, 7, 2]

    def rounded(x):
        return tuple(ct.add(x, 2.0**-24, rounding_mode=m) == 1.0 for m in ct.static_iter(
            (ct.RoundingMode.RN, ct.RoundingMode.RP, ct.RoundingMode.RM, ct.RoundingMode.RP, "RZ", "RP", None)))

    assert result(rounded, 1.0) == [1, 0, 1, 0, 1, 0, 1]


@clause("PRINT-2.enum", "CV-3.eq", "SEVAL-7.constant")
def test_members_of_enums_that_repeat(capfd):
    @ct.kernel
    def k():
        for e in ct.static_iter((Unhashable.A, Unhashable.B, Unhashable.A, Equal.C, Equal.D, Equal.C)):
            print(e)

    capfd.readouterr()
    launch(k)
    assert capfd.readouterr().out.split() == [
        "Unhashable.A", "Unhashable.B", "Unhashable.A", "Equal.C", "Equal.D", "Equal.C"]


@clause("SEVAL-7.constant")
def test_shapes_and_tuples_that_repeat():
    def f(n):
        out = 0
        for shape, axis in ct.static_iter((((4, 2), 0), ((4, 2), 1), ((2, 4), 0), ((2, 4), 1), ((8, 1), 0), ((4, 2), 0))):
            t = ct.full(shape, n, ct.int32) + ct.reshape(ct.arange(8, dtype=ct.int32), shape)
            s = ct.sum(t, axis)
            out = out * 3 + ct.max(s) * (s.shape[0] + axis)
        return out

    def python(n):
        out = 0
        for shape, axis in (((4, 2), 0), ((4, 2), 1), ((2, 4), 0), ((2, 4), 1), ((8, 1), 0), ((4, 2), 0)):
            s = (np.arange(8).reshape(shape) + n).sum(axis)
            out = out * 3 + int(s.max()) * (s.shape[0] + axis)
        return out

    assert result(f, 5) == python(5)


# ------------------------------------------------------------------ names


@dataclasses.dataclass(frozen=True)
class Numbers:
    pi: object
    inf: object = 5
    shape: object = 6


@clause("EX-4.local", "EX-4.global", "EX-5.read", "FN-7.constant")
def test_names_that_are_those_of_modules():
    """`math.pi` where math is the module, a parameter, a variable, a captured variable, and the module again."""
    def of_parameter(math):
        return math.pi

    def of_variable(n):
        math = Numbers(n)
        return math.pi + math.inf

    def f(n):
        a = math.pi
        b, c, d = of_parameter(Numbers(n)), of_variable(n), of_parameter(math)
        g = lambda math: (lambda: math.inf)()
        e = tuple(math.pi for math in ct.static_iter((Numbers(1), math, Numbers(n))))
        return a > 3, b, c, d > 3, g(Numbers(1)), e[0], e[1] > 3, e[2], math.pi > 3

    assert result(f, 7) == [1, 7, 12, 1, 5, 1, 1, 7, 1]

    def around(n):
        math = Numbers(n)
        inner = lambda: math.pi * 2
        return inner(), of_parameter(math), math.pi

    assert result(around, 7) == [14, 7, 7]


GLOBAL = 50


@clause("EX-4.local", "EX-4.global", "EX-4.builtin", "CALL-7.local", "ST-3.value")
def test_names_of_inner_scopes():
    """Names that lambdas, generators and inner functions bind are theirs: outside they mean what they did."""
    outer = 60

    def f(n):
        a = tuple(GLOBAL for GLOBAL in ct.static_iter((1, 2)))
        b = tuple(outer + n for outer in ct.static_iter((1, 2)))
        c = (lambda GLOBAL, outer=1: GLOBAL + outer)(n)
        d = (lambda max: max + 1)(n)

        def inner(x):
            GLOBAL = x
            outer = GLOBAL + 1
            min = outer
            return min

        return (*a, *b, c, d, inner(n), GLOBAL, outer, max(n, 2), min(n, 2))

    assert result(f, 7) == [1, 2, 8, 9, 8, 8, 8, 50, 60, 7, 2]


@clause("CALL-7.before", "ST-4.undefined", "EX-4.undefined")
def test_names_that_are_assigned_later():
    for lines in ("y = GLOBAL\nGLOBAL = 1", "GLOBAL += 1", "def g():\n    return n\ng = g() + h\nh = 1",
                  "for i in range(n):\n    pass\nreturn j",
                  "y = GLOBAL\nwith m() as GLOBAL:\n    pass", "y = GLOBAL\nfor GLOBAL in range(n):\n    pass",
                  "y = GLOBAL\ndef GLOBAL():\n    pass", "y = GLOBAL\n(a, [GLOBAL]) = 1, (2,)",
                  "return tuple(i for i in ct.static_iter((1, 2))) and i"):
        rejects(("TileSyntaxError", "TileTypeError"), body(lines, GLOBAL=3, m=manager), 1)


# ------------------------------------------------------------------ closures that meet


def at(k):
    return lambda x: x * k


def at_two(k):
    f = lambda: k

    def g(x):
        return f() * 10 + x
    return g


def other_at(k):
    return lambda x: x - k


@clause("JOIN-6.closure")
def test_closures_that_meet():
    """Of one definition, from other calls: what they capture is joined."""
    def f(n):
        fs = tuple((lambda x, i=i * n: x + i) for i in ct.static_iter((1, 2, 3)))
        gs = ()
        for i in ct.static_iter((4, 5)):
            def g(x, i=i + n):
                return x * i
            gs = (*gs, g)
        if n > 0:
            a, b, c, d, e = at(n), at_two(n + 1), fs[0], gs[0], (at(2), at_two(n))
        else:
            a, b, c, d, e = at(n - 1), at_two(n), fs[2], gs[1], (at(n), at_two(3))
        h = at(5) if n > 2 else at(n)
        return a(10), b(3), c(100), d(100), e[0](10), e[1](1), h(10)

    def python(n):
        p = n > 0
        return [10 * (n if p else n - 1), (n + 1 if p else n) * 10 + 3, 100 + n * (1 if p else 3),
                100 * (4 + n if p else 5 + n), 10 * (2 if p else n), (n if p else 3) * 10 + 1, 10 * (5 if n > 2 else n)]

    assert result(f, 3) == python(3) and result(f, 1) == python(1) and result(f, -3) == python(-3)


@clause("JOIN-6.closure", "LOOP-5.carried")
def test_closures_that_a_loop_carries():
    def f(n):
        g, h = at(n), at_two(1)
        for i in range(3):
            h = at_two(g(i) + i)
            g = at(n + i)
        return g(10), h(4)

    def python(n):
        g, h = at(n), at_two(1)
        for i in range(3):
            h = at_two(g(i) + i)
            g = at(n + i)
        return [g(10), h(4)]

    assert result(f, 5) == python(5)


@clause("JOIN-2.function", "JOIN-2.use", "CALL-6.join", "JOIN-6.closure")
def test_closures_that_do_not_meet():
    def chosen(f, g):
        def use(n):
            h = f(n) if n > 0 else g(n)
            return h(n)

        return use

    same = lambda n: at(n)
    pairs = [(at, other_at), (at, at_two), (at, lambda n: abs), (at_two, other_at), (lambda n: at(n), lambda n: at(1.5)),
             (lambda n: at(1), lambda n: at(True)), (lambda n: at("a"), lambda n: at("b")), (at, lambda n: None),
             (lambda n: (lambda x: x), lambda n: (lambda x: x)), (lambda n: at(at(n)), lambda n: at(other_at(n))),
             (lambda n: (at(n), 1), lambda n: (at(n), 1.5)), (lambda n: at_two(n), lambda n: at_two(n * 1.0))]
    for f, g in pairs:
        rejects("TileTypeError", chosen(f, g), 1)
    for f in (at, at_two, other_at, lambda n: at(n + 1), lambda n: same(n)):
        takes(chosen(f, f), 1)


@clause("JOIN-2.use", "LOOP-5.type", "LOOP-5.unused", "LOOP-9.break")
def test_loops_that_are_left_with_another_type():
    for start, end, fine in (("1", "1.5", False), ("1", "2", True), ("1", "None", False), ("(1, 2)", "(1, 2.5)", False),
                             ("n", "'a'", False), ("None", "None", True), ("'a'", "'a'", True), ("'a'", "'b'", False),
                             ("(n, 'a')", "(1, 'a')", True), ("(n, 'a')", "(1, 'b')", False), ("ct.int8(1)", "n", False)):
        for loop in ("while True:\n    if n > 2:\n        x = {}\n        break\n    n = n + 1",
                     "for i in range(n):\n    if i > 2:\n        x = {}\n        break",
                     "for i in range(n):\n    if i > 2:\n        x = {}\n        continue\n    n = n + 1",
                     "for i in range(n):\n    x = {}", "while n < 9:\n    n = n + 1\n    x = {}"):
            lines = f"x = {start}\nz = n\n{loop.format(end)}\ny = x\nreturn z + 1"
            if fine:
                takes(body(lines), 1)
            else:
                rejects("TileTypeError", body(lines + "\nw = (x, 1)"), 1)
                used = lines.replace("return z + 1", "print(x)\nreturn 1")
                rejects("TileTypeError", body(used), 1)

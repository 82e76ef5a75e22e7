"""Code that a kernel runs again with arguments of other types, other constants, or other values: each means its own."""

import contextlib
import dataclasses
import enum
import math
import types

import numpy as np

from conformance.harness.api import clause, ct, launch, run
from conformance.harness.tile_code import module, rejects, result
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
        t = text(1), text(True), text(1.0), text(0.0), text(-0.0), text(0), text(False), text("1"), text(None)
        u = text((1,)), text((True,)), text((1.0,)), text(ct.int8(1)), text(1 << 40), text(math.inf), text(math.nan)
        return ", ".join((*t, *u, text(math.nan)))

    got = static(lambda: f(1))
    assert got == "1, True, 1.0, 0.0, -0.0, 0, False, 1, None, (1,), (True,), (1.0,), 1, 1099511627776, inf, nan, nan"


@clause("FN-2.inline", "CV-2.method", "DC-2.method")
def test_records_of_classes_with_equal_fields():
    def of(p, n):
        return p.of(n)

    def f(n):
        a = of(Sum(n, 3), n), of(Product(n, 3), n), of(Sum(n), n + 1), of(Product(n), n + 1), of(Renamed(n), n)
        b = of(Renamed(2, n), n), of(Sum(Product(n), 3).a, n), of(Sum(2, n), n), of(Sum(n, n), n), of(Sum(n, n + 1), n)
        return *a, *b

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


def shifted(n):
    return applied(lambda x: x + SHIFT, n)


SHIFT = 1


@clause("FN-2.inline", "CALL-6.argument", "EX-4.global")
def test_lambdas_of_functions_with_equal_code():
    """One lambda in functions with other globals, passed to one function."""
    other = types.FunctionType(shifted.__code__, {"applied": applied, "SHIFT": 20}, "shifted")
    assert result(lambda n: (shifted(n), other(n), shifted(n + 1), other(n + 1)), 5) == [6, 25, 7, 26]


def applied(g, x):
    y = g(x)
    return y


@clause("FN-2.inline", "CALL-6.argument", "CALL-5.late")
def test_functions_whose_variables_change():
    """One function, passed again after variables that it reads have changed: in its scope, and in those around it."""
    def f(n):
        k = n
        late, default = (lambda x: x * k), (lambda x, y=n: x + y)
        a = applied(late, 10), applied(default, 1)
        k = n + 1
        b = applied(late, 10), applied(default, 1)
        k = 7
        c = applied(late, 10)
        k = 7.0
        d = applied(late, 10) / 2
        k = n + 1
        e = tuple(applied(lambda x: x * i + n, 10) for i in ct.static_iter((1, 2, n, n * 2)))

        def outer(m):
            def inner(x):
                return x + m + k
            return applied(inner, 100)

        g = outer(1), outer(2), outer(n), applied(late, 10)
        return *a, *b, c, d, *e, *g

    n = 3
    assert result(f, n) == [30, 4, 40, 4, 70, 35, 13, 23, 33, 63, 105, 106, 107, 40]


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
        a = sub(n, n, m), sub(n, m, k), sub(m, m, m), sub(k, n, n), sub(n, m, n)
        return *a, sub(n, 2, 2), sub(m, 2, 2), sub(2, n, 2)

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
        (i, j), (k, o) = closures(n), closures(m)
        total = 0
        for x in counted(n):
            total = total + x
        for x in counted(m):
            total = total + x * 100
        p, q = words(0, a=n, b=1), words(0, a=m, b=1)
        (s, t), (u, v) = sliced(n), sliced(m)
        w, z = method(n), method(m)
        return (g(1), h(1), i(1)(), j(), k(1)(), o(), total, p["a"], q["a"], s.a[s.b][0], u.a[u.b][0], t[1][0], v[1][0],
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
    for e in Unhashable.A, Equal.C:
        error = rejects("TileTypeError", lambda n, e=e: ct.add(n * 1.0, 1.0, rounding_mode=e), 1)
        assert not isinstance(error, ct.TileInternalError)


class WithoutHash(type):
    __hash__ = None


class Odd(metaclass=WithoutHash):
    pass


@clause("ERR-4.kind")
def test_classes_that_are_no_dtypes():
    """Also a class of which Python makes no key."""
    rejects("TileTypeError", lambda n: n.astype(Odd), 1)
    rejects("TileTypeError", lambda n: ct.full((2,), n, Odd), 1)


@clause("SEVAL-7.constant", "EX-6.tuple.slice")
def test_slices_that_repeat():
    """The same slice with other bounds."""
    def f(n):
        xs = (n, n + 1, n + 2, n + 3)
        a = tuple(xs[i:i + 2][0] for i in ct.static_iter(range(3)))
        b = tuple(xs[i:][0] for i in ct.static_iter(range(3)))
        c = tuple(len(xs[:i]) * 10 + len(xs[::i]) for i in ct.static_iter((1, 2, 3)))
        return *a, *b, *c, len(xs[:]), len((1, *xs)[:])

    assert result(f, 5) == [5, 6, 7, 5, 6, 7, 14, 22, 32, 4, 5]


@clause("SEVAL-7.constant")
def test_shapes_and_tuples_that_repeat():
    cases = ((4, 2), 0), ((4, 2), 1), ((2, 4), 0), ((2, 4), 1), ((8, 1), 0), ((4, 2), 0)

    def f(n):
        out = 0
        for shape, axis in ct.static_iter(cases):
            t = ct.full(shape, n, ct.int32) + ct.reshape(ct.arange(8, dtype=ct.int32), shape)
            s = ct.sum(t, axis)
            out = out * 3 + ct.max(s) * (s.shape[0] + axis)
        return out

    def python(n):
        out = 0
        for shape, axis in cases:
            s = (np.arange(8).reshape(shape) + n).sum(axis)
            out = out * 3 + int(s.max()) * (s.shape[0] + axis)
        return out

    assert result(f, 5) == python(5)

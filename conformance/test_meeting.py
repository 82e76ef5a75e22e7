# ruff: noqa: B007, C416, C420 -- tile code under test, not code to tidy
"""Names that mean different things in different scopes, and closures of one definition that meet."""

import contextlib
import dataclasses
import functools
import math
import types

from conformance.harness.api import clause, ct
from conformance.harness.tile_code import body, module, rejects, result, takes


@contextlib.contextmanager
def manager(n):
    yield n + 1


# ------------------------------------------------------------------ names


@dataclasses.dataclass(frozen=True)
class Numbers:
    pi: object
    inf: object = 5
    int8: object = 9


@clause("EX-4.local", "EX-4.global", "EX-5.read", "FN-7.constant")
def test_names_that_are_those_of_modules():
    """A name and its attribute where the name is the module, a parameter, a variable, captured, the module again."""
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

    def of_library(ct):
        return ct.int8

    def types(n):
        a = ct.int8(3)
        b, c = of_library(Numbers(1)), of_library(ct)(4)
        ct_int8 = tuple(ct.int8 for ct in ct.static_iter((Numbers(2), Numbers(n))))
        return a, b, c, *ct_int8

    assert result(types, 7) == [3, 9, 4, 9, 9]

    def around(n):
        math = Numbers(n)
        inner = lambda: math.pi * 2
        return inner(), of_parameter(math), math.pi

    assert result(around, 7) == [14, 7, 7]

    def again(n):
        a = of_parameter(math), of_parameter(Numbers(n)), of_parameter(math), of_parameter(Numbers(n + 1))
        b, c = of_library(ct)(4), of_library(Numbers(1, int8=n))
        d = tuple((math.inf > 9, math.pi) for math in ct.static_iter((math, Numbers(n), math, Numbers(2))))
        return a[0] > 3, a[1], a[2] < 4, a[3], b, c, d[0][0], d[1][1], d[2][1] > 3, d[3][1]

    assert result(again, 7) == [1, 7, 1, 8, 4, 7, 1, 7, 1, 2]


@clause("EX-4.global", "EX-5.read", "FN-7.constant", "SEVAL-2.python")
def test_names_that_functions_of_several_modules_use():
    """One name and attribute in two modules, and a module whose attribute static code sets."""
    one, two = (types.ModuleType("constants") for _ in range(2))
    one.k, two.k = 3, 5
    text = """
        def read(n):
            return constants.k + n

        def setting(n):
            a = constants.k
            b = ct.static_eval(setattr(constants, "k", constants.k + 1) or constants.k)
            return a * 100 + b * 10 + constants.k

        def setting_functions(n):
            a = constants.f(n), constants.f(n)
            ct.static_eval(setattr(constants, "f", constants.g))
            b = constants.f(n), constants.f(n)
            ct.static_eval(setattr(constants, "f", constants.h))
            return *a, *b, constants.f(n)
    """
    first, second = module(text, constants=one), module(text, constants=two)
    a, b, c, d = first["read"], second["read"], first["setting"], second["setting"]

    def f(n):
        return a(n), b(n), a(n + 1), b(n + 1), constants_of(one), constants_of(two)

    def constants_of(constants):
        return constants.k

    assert result(f, 10) == [13, 15, 14, 16, 3, 5]
    assert result(lambda n: (c(n), d(n)), 1) == [344, 566]
    one.f = one.h = lambda x: x + 1
    one.g = lambda x: x + 2
    e = first["setting_functions"]
    assert result(lambda n: e(n), 1) == [2, 2, 3, 3, 2]


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


@clause("EX-4.global", "SEVAL-2.python", "CALL-7.local")
def test_names_of_comprehensions_in_static_code():
    def f(n):
        a = ct.static_eval(sum([GLOBAL for GLOBAL in (1, 2)]))
        b = ct.static_eval(sum({GLOBAL for GLOBAL in (1, 2)}))
        c = ct.static_eval(sum({GLOBAL: 1 for GLOBAL in (1, 2)}))
        d = ct.static_eval(sum(GLOBAL for GLOBAL in (1, 2)))
        e = ct.static_eval((lambda GLOBAL: GLOBAL)(3))
        return a, b, c, d, e, GLOBAL + n

    assert result(f, 7) == [3, 3, 3, 3, 3, 57]


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


@clause("CALL-5.after", "CALL-6.result", "JOIN-6.closure")
def test_composed_closures_that_meet():
    """Functions made of functions, of which a path gives one, which a third function hands on."""
    def compose(f, g):
        return lambda x: f(g(x))

    def add(k):
        return lambda x: x + k

    def build(m):
        h = add(m)
        for i in ct.static_iter(range(3)):
            h = compose(h, add(i + m))
        return h

    def f(n):
        if n > 0:
            g = build(n)
        else:
            g = build(n + 2)

        def last():
            return g
        return last()(n)

    assert result(f, 3) == 3 + 4 * 3 + 3 and result(f, -3) == -3 + 4 * -1 + 3


@clause("CALL-5.after", "CALL-6.result", "CALL-5.late")
def test_closures_that_hold_closures_of_functions_that_have_ended():
    """Functions in functions in functions, which end one after another, each with variables of its own."""
    def outer(n):
        a, b = n + 1, n + 2

        def make(k):
            c = k + a

            def middle(j):
                d = j + c

                def deep(i):
                    e = i + d
                    return lambda x: (x * k + j + a, c, d * 10 + e, b)
                return deep(j + 1)
            return middle(k + 2), middle(3)
        f, g = make(3)
        h = make(4)[1]
        b = n + 5
        return (lambda x: (*f(x), *g(x), *h(x), a)), f

    def python(n):
        f, g = outer(n)
        return [*f(2), *g(1)][:13]

    def of_tiles(n):
        f, g = outer(n)
        return (*f(2), *g(1))[:13]

    assert result(of_tiles, 10) == python(10)


@clause("CALL-6.argument", "CALL-5.late", "CALL-4.hundreds")
def test_closures_that_wrap_each_other_many_times():
    def around(f, k):
        return lambda x: f(x) + k

    def f(n):
        g = h = lambda x: x
        for i in ct.static_iter(range(300)):
            g = around(g, n)
            h = around(h, 1)
        return g(1), g(2), h(n), g(1)

    assert result(f, 3) == [901, 902, 303, 901]

    def by_default(n):
        g = lambda x: x
        for i in ct.static_iter(range(300)):
            g = lambda x, f=g: f(x) + n
        return g(1), applied(g, 2), applied(g, n), g(1)

    def applied(g, x):
        return g(x)

    assert result(by_default, 3) == [901, 902, 903, 901]


@clause("FN-2.inline", "FN-6.closure", "CALL-1.keyword", "CALL-1.positional")
def test_functions_of_python_with_equal_code():
    """From one definition, with other captured variables, defaults or globals, called in one kernel."""
    def made(k, default):
        def f(x, /, y=default, *, z=k):
            return x * k + y * 10 + z
        return f

    def plain(k):
        return lambda x: x * k + 1

    first, then = plain(2), plain(5)
    assert result(lambda n: (first(n), then(n), first(n), then(n + 1)), 7) == [15, 36, 15, 41]
    one, two, three = made(1, 2), made(3, 2), made(1, 5)
    spaces = [module("def f(x): return x + LOCAL\n", LOCAL=k) for k in (100, 200)]
    four, five = spaces[0]["f"], spaces[1]["f"]
    copied = types.FunctionType(four.__code__, {"LOCAL": 300}, "f")

    def use(g, n):
        return g(n)

    def f(n):
        return (one(n), two(n), three(n), one(n), four(n), five(n), copied(n), four(n), use(one, n), use(two, n),
                use(three, n), use(four, n), use(five, n), use(copied, n))

    assert result(f, 7) == [one(7), two(7), three(7), one(7), 107, 207, 307, 107, one(7), two(7), three(7), 107, 207,
                            307]


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
    pairs = [(at, other_at), (at, at_two), (at, lambda n: abs), (at_two, other_at),
             (lambda n: at(n), lambda n: at(1.5)), (lambda n: at(1), lambda n: at(True)),
             (lambda n: at("a"), lambda n: at("b")), (at, lambda n: None),
             (lambda n: (lambda x: x), lambda n: (lambda x: x)), (lambda n: at(at(n)), lambda n: at(other_at(n))),
             (lambda n: (at(n), 1), lambda n: (at(n), 1.5)), (lambda n: at_two(n), lambda n: at_two(n * 1.0))]
    for f, g in pairs:
        rejects("TileTypeError", chosen(f, g), 1)
    for f in (at, at_two, other_at, lambda n: at(n + 1), lambda n: same(n)):
        takes(chosen(f, f), 1)


def of_python(k):
    """A function of tile code with a captured variable of Python."""
    def make(n):
        return lambda x: (x + k) * 10 + n

    return make


def of_two(n, first):
    def make(k):
        return lambda: k * 10 + n

    a, b = make(n + 1), make(n + 2)
    c = a if first else b
    return lambda x: a() * 1000 - b() * 100 + c() + x


def of_parts(n, first):
    def inner(k):
        def deeper():
            return k + n
        return deeper

    if first:
        f, g = inner(1), inner(n)
    else:
        g, f = inner(1), inner(n)
    return lambda x: f() * 10 - g() * x


def of_managers(n, first):
    with manager(n) as m:
        get = (lambda x: m + x) if first else (lambda x: m - x)
    return get


@clause("JOIN-6.closure", "JOIN-2.function", "JOIN-1.value")
def test_closures_that_meet_or_do_not():
    """Where what they hold is built otherwise, closures of one definition are refused, or have their own values."""
    ones, twos = of_python(1), of_python(2)
    pairs = [(ones, twos), (lambda n: of_two(n, True), lambda n: of_two(n, False)),
             (lambda n: of_parts(n, True), lambda n: of_parts(n, False)),
             (lambda n: of_managers(n, True), lambda n: of_managers(n, False)),
             (lambda n: of_two(n, True), lambda n: of_two(n + 1, True)), (lambda n: at_two(2), lambda n: at_two(n))]
    for f, g in pairs:
        def use(n, f=f, g=g):
            if n > 0:
                h = f(n)
            else:
                h = g(n)
            return h(5)

        for n in 3, -3:
            try:
                got = result(use, n)
            except ct.TileTypeError:
                continue
            want = result(lambda n, h=f if n > 0 else g: h(n)(5), n)
            assert got == want, (f, g, n)


def second(a, b=2):
    return b


def around(f):
    @functools.wraps(f)
    def run(a, b):
        return b
    return run


wrapped = around(second)


@contextlib.contextmanager
def ignoring(a, b):
    yield b


def both(a, *rest, **more):
    return rest[0] if "c" not in more else 7


@clause("JOIN-2.argument", "JOIN-2.unused", "FN-2.plain")
def test_arguments_of_two_types_that_functions_do_not_use():
    def f(n):
        def own(a, b):
            return b

        x = second(1 if n > 0 else 1.5), second(None if n > 0 else n, n), both((1, 2) if n > 2 else "a", n)
        return (*x, both("a" if n else 1, n, c=n), own(1 if n > 0 else "b", 3), second(b=n, a=1 if n else None),
                (lambda a, b: b)(1 if n > 0 else 1.5, n), Numbers(n).pi)

    assert result(f, 5) == [2, 5, 5, 7, 3, 5, 5, 5]

    def through_others(n):
        x = wrapped(1 if n > 0 else 1.5, n)
        with ignoring(1 if n > 0 else None, n + 1) as y:
            return x, y

    assert result(through_others, 5) == [5, 6]
    for g in (lambda n: wrapped(2, 1 if n > 0 else 1.5) + 1, lambda n: second(2, 1 if n > 0 else 1.5) + 1,
              lambda n: both(1, 1 if n > 0 else "a") + 1, lambda n: ct.add(1, 1 if n > 0 else 1.5),
              lambda n: Numbers(1 if n > 0 else None).pi + 1):
        rejects("TileTypeError", g, 1)


@clause("JOIN-2.use", "LOOP-5.type", "LOOP-5.unused", "LOOP-9.break")
def test_loops_that_are_left_with_another_type():
    for start, end, fine in (("1", "1.5", False), ("1", "2", True), ("1", "None", False), ("n", "'a'", False),
                             ("(1, 2)", "(1, 2.5)", False), ("None", "None", True), ("'a'", "'a'", True),
                             ("'a'", "'b'", False), ("(n, 'a')", "(1, 'a')", True), ("(n, 'a')", "(1, 'b')", False),
                             ("ct.int8(1)", "n", False)):
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

import ast
import contextlib
import types

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.front.closures import free_names
from cutile.ir.nodes import Frame
from tests.front.compiling import AI, I32, result, typed


def free(source: str) -> set[str]:
    return set(free_names(ast.parse(source).body[0]))


def test_free_names():
    assert free("def f(a, b=x): return a + c") == {"c"}
    assert free("def f():\n    c = 1\n    return c + d") == {"d"}
    assert free("def f():\n    def g(h=i): return j + k\n    k = 1") == {"i", "j"}
    assert free("def f(): return lambda a: a + b") == {"b"}


def test_own_name_of_a_recursive_function_is_free():
    assert free("def f(n): return f(n - 1)") == {"f"}


# ------------------------------------------------------------------ closures that outlive their scope [CALL-5]


def twice(f):
    return f() * 10 + f()


def chain(n):
    """A closure over another closure, whose variables belong to an outer function."""
    w = n * 2

    def make():
        g = lambda: w
        h = lambda: g()
        return h
    return make()


def shadowed():
    """Two variables of one name: each function sees its own."""
    x = 1
    g = lambda: x

    def make():
        x = 2
        return lambda: g() * 10 + x
    return make()


def each_other(n):
    make = lambda f: lambda d: n if d == 0 else f(d - 1)
    a = make(lambda d: b(d))
    b = make(lambda d: a(d) + 1)
    return a


def recursive(n):
    def g(d):
        return n if d == 0 else g(d - 1)
    n = n + 1
    return g


def over_a_recursive_one(n):
    a = recursive(n)

    def use():
        return lambda: a(2) + n
    return use


def in_a_default(n):
    v = n
    g = lambda: v
    h = lambda f=g: f() + v
    v = n * 3
    return h


def several(n):
    return tuple((lambda k=i: k + n) for i in ct.static_iter(range(3)))


def together(n):
    h = chain(n)
    k = lambda: h() + n
    n = n + 1
    return k, h


def deep(n):
    h = lambda: n
    for _ in ct.static_iter(range(30)):
        h = (lambda g: lambda: g() + 1)(h)
    return h


def uses_several(n):
    fs = several(n)
    return fs[0]() + fs[2]() * 100


def uses_together(n):
    k, h = together(n)
    return k() * 100 + h()


def from_both_sides(n):
    k, h = together(n) if n > 2 else together(n + 5)
    return k() * 100 + h()


def carried_by_a_loop(n):
    f = recursive(n)
    for i in range(3):
        if i == n:
            f = recursive(i + 7)
    return f(2)


USES = [lambda n: chain(n)(), lambda n: shadowed()() + n, lambda n: each_other(n)(5), lambda n: recursive(n)(3),
        lambda n: over_a_recursive_one(n)()(), lambda n: in_a_default(n)(), uses_several, uses_together,
        from_both_sides, lambda n: deep(n)(), carried_by_a_loop]


def as_in_python(f, n):
    for schedule in ("batch", "block"):
        with settings.override(SCHEDULE=schedule):
            assert result(f, n) == f(n)


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("use", range(len(USES)))
def test_closures_of_functions_that_ended(use, n):
    as_in_python(USES[use], n)


def plus(f, i):
    return lambda x: f(x) + i


def plus_either(f, i):
    """Its returns give closures of one function, or the closure that it was given."""
    g = lambda x, j=i: f(x) + j
    return (g, f) if i > 2 else (g, f)


def wraps_values(n):
    f = lambda x: x
    for i in ct.static_iter(range(5)):
        f = plus(f, n * i)
    return f(n)


def wraps_what_a_branch_gave(n):
    f = plus(lambda x: x, 3 if n > 1 else n)
    f = plus(f, n)
    return f(1) * 100 + plus(f, 7)(n)


def gives_back_what_it_was_given(n):
    f = plus(lambda x: x * 2, n)
    for i in ct.static_iter(range(4)):
        f, old = plus_either(f, i)
        f = plus(f, old(n))
    return f(n)


def wraps_in_a_function(n):
    def build(m):
        f = lambda x: x + m
        for i in ct.static_iter(range(300)):
            f = plus(f, i)
        return f

    return build(n)(n)


def in_a_call_that_is_repeated(n):
    def through(g, m):
        return plus(g, m)(m)

    f = plus(lambda x: x, n)
    return through(f, n + 1) * 100 + through(f, n + 2)


WRAPS = [wraps_values, wraps_what_a_branch_gave, gives_back_what_it_was_given, wraps_in_a_function,
         in_a_call_that_is_repeated]


@pytest.mark.parametrize("n", [0, 2, 5])
@pytest.mark.parametrize("use", WRAPS)
def test_closures_that_wrap_closures(use, n):
    in_python = types.FunctionType(use.__code__, globals() | {"ct": types.SimpleNamespace(static_iter=iter)})
    for schedule in ("batch", "block"):
        with settings.override(SCHEDULE=schedule):
            assert result(use, n) == in_python(n)


def test_a_call_gives_out_only_what_it_captured():
    """What its argument had captured is visible after the call anyway: otherwise calls would have more and more
    results.
    """
    def k(o, c):
        f = lambda x: x
        for i in ct.static_iter(range(6)):
            f = plus(f, c + i)
        ct.scatter(o, 0, f(c))

    results = [len(n.results) for n in typed(k, AI, I32).body.nodes if isinstance(n, Frame)]
    assert results == [1] * 7


# ------------------------------------------------------------------ closures of context managers


@contextlib.contextmanager
def counted(n):
    v = n
    yield lambda: v
    v = v + 100


@contextlib.contextmanager
def rebound(n):
    """A loop and a branch after the yield change them."""
    v = n
    yield lambda: v
    for i in range(3):
        v = v * 2 + i
        if v > 20:
            break


@contextlib.contextmanager
def with_default(n):
    v = n
    g = lambda: v
    yield lambda f=g: f() + v
    v = v * 2


@contextlib.contextmanager
def over(get):
    w = get()
    yield lambda: w * 10 + get()
    w = w + 1000


@contextlib.contextmanager
def around(n):
    k = 1
    with counted(n) as get, rebound(n + 1) as other:
        yield get, lambda: get() + other() + k
        k = other()
    k = k + get()


@contextlib.contextmanager
def knowing_each_other(n):
    even = lambda d: n if d == 0 else odd(d - 1)
    odd = lambda d: n + 1 if d == 0 else even(d - 1)
    yield even
    n = n + 50


@contextlib.contextmanager
def calling_at_the_end(f):
    r = 0
    yield lambda: r
    r = f()


@contextlib.contextmanager
def making_functions(n):
    def make(a):
        b = a + n

        def inner():
            return a + b + n
        return inner
    yield make(10)
    n = 7


def after(n):
    with rebound(n) as get:
        inside = get()
    return inside * 1000 + twice(get)


def defaults(n):
    with with_default(n) as g:
        inside = g()
    return inside * 1000 + g()


def one_over_another(n):
    with counted(n) as a:
        with over(a) as b:
            x = b()
        y = b()
    return x + y * 3 + b() * 7


def stored_first(n):
    with counted(n) as get:
        m = over(get)
    with m as w:
        pass
    return w()


def in_one_another(n):
    with around(n) as (a, b):
        x = a() + b()
    return x * 1000 + a() + b()


def know_each_other(n):
    with knowing_each_other(n) as even:
        x = even(3)
    return x * 1000 + even(2)


def of_the_surroundings(n):
    v = 1
    with calling_at_the_end(lambda: v) as r:
        v = n
    v = 99
    return r()


def of_inner_functions(n):
    with making_functions(n) as g:
        x = g()
    return x * 1000 + g()


def returned(n):
    def inner():
        with counted(n) as get:
            if n > 2:
                return get
            x = 1
        return get
    return inner()()


def returned_with_a_value(n):
    def inner():
        with counted(n) as get:
            return get() + 5, get
    a, g = inner()
    return a * 1000 + g()


def left_by_continue(n):
    r = 0
    for i in range(3):
        with counted(n + i) as g:
            if i == 1:
                continue
            r = r * 10 + g()
        r = r + g()
    return r


def left_by_break(n):
    while True:
        with counted(n) as get:
            with rebound(n + 10) as other:
                if n > 3:
                    break
            n = n + 1
            continue
    return get() * 1000 + other()


def kept_by_a_loop(n):
    with counted(0) as get:
        pass
    for i in range(4):
        with counted(i) as get:
            pass
        if i == n:
            break
    return get()


def in_static_loops(n):
    r = 0
    for i in ct.static_iter(range(3)):
        with counted(n + i) as get:
            r = r + get()
        r = r * 2 + get()
    return r


def joined(n):
    with counted(n) as a, counted(n + 1) as b:
        if n > 1:
            g = a
        else:
            g = a
    return g() * 1000 + b()


def closures_over_them(n):
    with counted(n) as a:
        s = lambda: a() * 2
        with around(n) as (p, q):
            t = lambda: p() + q() + s()
        h = (lambda f: lambda: f() + 1)(t)
    return h()


def made_in_a_function(n):
    with counted(n) as g:
        s = lambda: g() + 1

        def inner():
            with counted(3) as z:
                pass
            return lambda: s() + z()
        d = inner()
        e = d()
    return d() * 1000 + e


WITH = [after, defaults, one_over_another, stored_first, in_one_another, know_each_other, of_the_surroundings,
        of_inner_functions, returned, returned_with_a_value, left_by_continue, left_by_break, kept_by_a_loop,
        in_static_loops, joined, closures_over_them, made_in_a_function]


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("f", WITH)
def test_closures_of_context_managers(f, n):
    as_in_python(f, n)


def test_an_unassigned_variable_is_not_looked_up_outside():
    """`twice` is also a global, which the closure does not mean."""
    def late():
        get = lambda: twice
        if False:
            twice = 1
        return get

    k = ct.kernel(lambda o: ct.scatter(o, 0, late()()))
    with pytest.raises(ct.TileSyntaxError, match="Undefined variable `twice` used"):
        ct.launch(None, (1,), k, (np.zeros(1, np.int32),))

"""The with statement."""

import contextlib
import dataclasses

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, run
from conformance.harness.tile_code import module, rejects, result

REFUSED = ("UnsupportedCallError", "TileTypeError")


def digit(out, d):
    ct.store(out, 0, ct.load(out, 0, 1) * 10 + d)


@contextlib.contextmanager
def scope(out, d):
    digit(out, d)
    yield d * 2
    digit(out, d + 1)


@contextlib.contextmanager
def silent():
    yield


@contextlib.contextmanager
def several(x):
    y = x + 1
    yield y, (x, "a")
    y = 0


def written(f):
    @ct.kernel
    def k(n, out):
        f(n, out)

    return lambda n: int(run(k, n, np.zeros(1, np.int64))[0])


@clause("CM-1.function", "CM-2.order", "CM-2.value")
def test_order():
    def f(n, out):
        with scope(out, 1) as v:
            digit(out, v + 3)

    assert written(f)(0) == 152


@clause("CM-2.none", "CM-2.pattern", "CM-2.local")
def test_values():
    def f(n):
        y = 7
        with silent() as nothing, several(n) as (a, (b, c)):
            ct.static_assert(nothing is None)
            ct.static_assert(c == "a")
            r = a * 100 + b
        return r, y

    assert result(f, 3) == [403, 7]


@clause("CM-2.nested")
def test_nesting():
    def f(n, out):
        with scope(out, 1):
            with scope(out, 4):
                digit(out, 9)
            with scope(out, 6):
                pass

    assert written(f)(0) == 1495672


@clause("CM-2.break", "CM-2.continue", "CM-2.return")
def test_leaving():
    def g(n, out):
        for i in range(3):
            with scope(out, 1):
                if i == 0:
                    continue
                if n == 1:
                    break
                with scope(out, 4):
                    if n == 2:
                        return
                digit(out, 9)
        digit(out, 7)

    run_it = written(lambda n, out: g(n, out))
    assert run_it(1) == 12127
    assert run_it(2) == 121452
    assert run_it(3) == 12_145_9_2_145_9_2_7


@clause("CM-2.return")
def test_the_value_is_computed_before_leaving():
    @ct.kernel
    def k(out, seen):
        def f():
            with scope(out, 1):
                return ct.load(out, 0, 1).item()

        ct.store(seen, 0, f())

    out = np.zeros(1, np.int64)
    assert run(k, out, np.zeros(1, np.int64)).tolist() == [1] and out[0] == 12


@contextlib.contextmanager
def inside(out, d):
    with scope(out, d):
        with scope(out, d + 2) as v:
            digit(out, 0)
            yield v
            digit(out, 9)
        v = d
    digit(out, v)


@clause("CM-1.with")
def test_a_yield_in_a_with_statement():
    def f(n, out):
        with inside(out, 1):
            if n > 0:
                return
            digit(out, 7)

    assert written(f)(0) == 1_3_0_7_9_4_2_1
    assert written(f)(1) == 1_3_0_9_4_2_1


BODIES = {
    "CM-1.one": ("TileTypeError", "yield 1\n    yield 2"),
    "CM-1.none": ("TileTypeError", "pass"),
    "CM-1.if": ("TileTypeError", "if True:\n        yield 1"),
    "CM-1.loop": ("TileTypeError", "for i in range(1):\n        yield 1"),
    "CM-1.try": ("TileSyntaxError", "try:\n        yield 1\n    finally:\n        pass"),
    "CM-1.return": ("TileSyntaxError", "yield 1\n    return"),
}


@pytest.mark.parametrize("error, lines", [pytest.param(*v, marks=clause(i), id=i) for i, v in BODIES.items()])
def test_managers_that_are_refused(error, lines):
    space = module(f"""
import contextlib
@contextlib.contextmanager
def other():
    yield 1
@contextlib.contextmanager
def cm():
    {lines}
def f(n):
    with cm():
        pass
""")
    rejects(error, space["f"], 1)


@clause("CM-3.stored", "CM-3.once")
def test_managers_in_variables():
    def once(n, out):
        m = scope(out, 1)
        digit(out, 5)
        with m as v:
            digit(out, v + 5)

    def twice(n):
        m = silent()
        with m:
            pass
        with m:
            pass

    assert written(once)(0) == 5172
    rejects("TileTypeError", twice, 1)


@clause("CM-3.once", "CM-3.stored")
@pytest.mark.parametrize("first, second", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("made", ["before", "on both paths", "on one"])
def test_managers_that_a_path_has_used(made, first, second):
    """A manager that is used on some path is used up after the paths have met."""
    make = {"before": ("x = m(n)", "pass", "pass"), "on both paths": ("pass", "x = m(n)", "x = m(n + 1)"),
            "on one": ("x = m(n + 1)", "x = m(n)", "pass")}[made]
    before, *sides = make
    used = [f"{side}\n    with x as y:\n        z = y" if use else side for side, use in zip(sides, (first, second))]
    f = module(f"""
import contextlib
@contextlib.contextmanager
def m(x):
    yield x

def f(n):
    {before}
    if n > 0:
        {used[0].replace(chr(10), chr(10) + "    ")}
    else:
        {used[1].replace(chr(10), chr(10) + "    ")}
    with x as y:
        return y * 10
""")["f"]
    if first or second:
        rejects("TileTypeError", f, 1)
    else:
        want = {"before": (3, -3), "on both paths": (3, -2), "on one": (3, -2)}[made]
        assert (result(f, 3), result(f, -3)) == (want[0] * 10, want[1] * 10)


AGAIN = {  # code that may use the manager `x` again
    "straight on": "with x: pass\nwith x: pass",
    "inside": "with x:\n    with x: pass",
    "in one statement": "with x, x: pass",
    "in a loop": "for i in range(n):\n    with x: pass",
    "in some iterations": "for i in range(n):\n    if i == 3:\n        with x: pass",
    "and on with the loop": "for i in range(n):\n    with x: continue",
    "in a while loop": "while n > 0:\n    with x: n = n - 1",
    "in an inner loop": "for i in range(n):\n    for j in range(n):\n        with x: break",
    "in an unrolled loop": "for i in ct.static_iter(range(2)):\n    with x: pass",
    "after a loop that it left": "for i in range(n):\n    with x: break\nwith x: pass",
    "in a helper": "enter(x)\nenter(x)",
    "in a helper in a loop": "for i in range(n):\n    enter(x)",
    "after a path of a helper": "enter_if(x, n)\nwith x: pass",
    "in a closure": "def g():\n    with x: pass\ng()\ng()",
    "in a closure in a loop": "def g():\n    with x: pass\nfor i in range(n):\n    g()",
    "by another name": "y = x\nwith y: pass\nwith x: pass",
    "of a tuple": "y = (1, x)\nwith y[1]: pass\nwith x: pass",
    "of a tuple in a loop": "y = (1, x)\nfor i in range(n):\n    with y[1]: pass",
    "by a name for one of two": "y = m(n)\nif n > 0:\n    y = x\nwith y: pass\nwith x: pass",
    "of one of two tuples": "y = (m(n), 1)\nif n > 0:\n    y = (x, 1)\nwith y[0]: pass\nwith x: pass",
}
OF_HELPERS = """
import contextlib

@contextlib.contextmanager
def m(x):
    yield x

def enter(x):
    with x: pass

def enter_if(x, n):
    if n > 0:
        with x: return 1
    return 0

def f(n):
    x = m(n)
"""


@clause("CM-3.once")
@pytest.mark.parametrize("code", AGAIN)
def test_managers_that_may_be_used_again(code):
    """Also where only some launches would use them again."""
    lines = AGAIN[code].splitlines()
    f = module(OF_HELPERS + "".join(f"    {line}\n" for line in lines) + "    return 1\n")["f"]
    rejects("TileTypeError", f, 1)


@clause("CM-3.once")
def test_managers_that_are_made_again():
    lines = """
    r = 0
    for i in range(n):
        y = m(i + 1)
        with y as digit:
            r = r * 10 + digit
    return r
"""
    assert result(module(OF_HELPERS + lines)["f"], 4) == 1234


class ByClass:
    def __enter__(self):
        return 1

    def __exit__(self, *args):
        pass


@dataclasses.dataclass(frozen=True)
class ByDataclass:
    def __enter__(self):
        return 1

    def __exit__(self, *args):
        pass


instance = ByDataclass()


def plain():
    return 1


def in_with(make):
    def f(n):
        with make(n):
            pass

    return f


@pytest.mark.parametrize("error, make", [
    pytest.param(REFUSED, lambda n: ByClass(), marks=clause("CM-3.class")),
    pytest.param(REFUSED, lambda n: instance, marks=clause("CM-3.class")),
    pytest.param(REFUSED, lambda n: contextlib.nullcontext(), marks=clause("CM-3.nullcontext")),
    pytest.param("TileTypeError", lambda n: n, marks=clause("CM-3.kind")),
    pytest.param("TileTypeError", lambda n: None, marks=clause("CM-3.kind")),
    pytest.param("TileTypeError", lambda n: silent, marks=clause("CM-3.kind")),
    pytest.param("TileTypeError", lambda n: plain(), marks=clause("CM-3.kind"))])
def test_what_is_no_manager(error, make):
    rejects(error, in_with(make), 1)


@clause("CM-2.local")
def test_variables_of_the_body():
    def f(n):
        with silent():
            x = n + 1
        return x

    assert result(f, 4) == 5

    @ct.kernel
    def k():
        with silent():
            return

    accepts(k)


@contextlib.contextmanager
def counting(n):
    k = n

    def get(x):
        return k * 100 + x
    yield get, (lambda: k + 1), (1, lambda y: y - k)
    k = k + 10


@contextlib.contextmanager
def around_counting(n):
    j = n
    with counting(n + 1) as (g, h, t):
        yield g, (lambda x: g(x) + j), n
        j = j * 2
    j = j + h()


@clause("CM-2.local", "CM-2.value", "CALL-5.late", "CALL-5.after")
def test_functions_that_leave_a_manager():
    """They see what its exit code assigns, in the functions around it too, and after all of them have ended."""
    def f(n):
        with counting(n) as (g, h, t):
            a = g(1), h(), t[1](n)
            keep = g, h
        b = g(1), h(), t[1](n), keep[0](2), keep[1]()
        with around_counting(n) as (p, q, r):
            c = p(1), q(1)
        return *a, *b, *c, p(1), q(1)

    def inside(n):
        with counting(n) as (g, h, t):
            with around_counting(n + 1) as (p, q, r):
                return g, h, q

    def outside(n):
        g, h, q = inside(n)
        return g(1), h(), q(2)

    assert result(f, 3) == [*f(3)] and result(outside, 4) == [*outside(4)]

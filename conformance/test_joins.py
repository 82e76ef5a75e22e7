"""The types and values of variables after an if."""

import dataclasses
import enum
import re
from typing import Annotated, Any

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, refuses, run
from conformance.harness.tile_code import body, module, rejects, result, takes


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Pair:
    a: object
    b: object


@dataclasses.dataclass(frozen=True)
class Other:
    a: object
    b: object


def f1(x):
    return x + 1


def f2(x):
    return x + 2


NAMES = {"Color": Color, "Pair": Pair, "Other": Other, "f1": f1, "f2": f2}


def joined(left, right, use="x"):
    """Source of a function that assigns `left` or `right` to x, and uses x."""
    return body(f"""
        if n > 0:
            x = {left}
        else:
            x = {right}
        y = {use}
        return n
    """, **NAMES)


@clause("JOIN-1.defined", "JOIN-1.value", "JOIN-1.before", "JOIN-1.ternary")
@pytest.mark.parametrize("n", [3, -3])
def test_values(n):
    def f(n):
        y = n * 5
        z = w = 1
        if n > 0:
            x = n + 1
            y = 70
            w = n
        else:
            x = n * 2
            z = n
        return x, y, z, w, (n + 7 if n > 0 else n + 8)

    want = [4, 70, 1, 3, 10] if n > 0 else [-6, -15, -3, 1, 5]
    assert result(f, n) == want


@clause("JOIN-1.equal", "JOIN-1.loose", "JOIN-1.ternary")
def test_equal_constants():
    def f(n):
        if n > 0:
            x, y, s = 4, ct.int8(3), "text"
        else:
            x, y, s = 4, ct.int8(3), "te" + "xt"
        ct.static_assert(s == "text")
        z = 8 if n > 0 else 8
        ct.static_assert(x == 4)
        ct.static_assert(y == 3)
        a, b = ct.int16(1) + x, 1 + y
        ad, bd = a.dtype, b.dtype
        ct.static_assert(ad == ct.int16)
        ct.static_assert(bd == ct.int8)
        return ct.zeros((x, z), ct.int32)

    takes(f, 1)


@clause("JOIN-1.different", "JOIN-1.strict")
def test_different_constants():
    rejects("TileTypeError", joined("4", "8", "ct.zeros((x,), ct.int32)"), 1)

    def f(n):
        if n > 0:
            x = 4
        else:
            x = 5
        d = (ct.int16(1) + x).dtype
        ct.static_assert(d == ct.int32)
        return x * 10

    assert result(f, 1) == 40 and result(f, -1) == 50


PAIRS = {
    "JOIN-2.int_float": [("1", "1.0"), ("n", "n * 1.0"), ("n", "1.5")],
    "JOIN-2.width": [("n", "n.astype(ct.int64)"), ("n", "n.astype(ct.uint32)"), ("n.astype(ct.int8)", "n")],
    "JOIN-2.literal": [("1", "1 << 40")],
    "JOIN-2.bool": [("True", "1"), ("n > 0", "n")],
    "JOIN-2.none": [("None", "n"), ("1", "None")],
    "JOIN-2.string": [("'a'", "'b'"), ("'a'", "1")],
    "JOIN-2.dtype": [("ct.int8", "ct.int16")],
    "JOIN-2.enum": [("Color.RED", "Color.BLUE")],
    "JOIN-2.function": [("f1", "f2"), ("f1", "(lambda x: x)")],
    "JOIN-2.shape": [("ct.zeros((2,), ct.int8)", "ct.zeros((4,), ct.int8)"),
                     ("ct.zeros((1,), ct.int32)", "n"), ("ct.zeros((1, 2), ct.int8)", "ct.zeros((2, 1), ct.int8)")],
    "JOIN-5.length": [("(1, 2)", "(1, 2, 3)"), ("()", "(1,)")],
    "JOIN-5.class": [("Pair(1, 2)", "Other(1, 2)"), ("Pair(1, 2)", "(1, 2)")],
}


def of_all(pairs):
    return [pytest.param(*p, marks=clause(i), id=f"{i} {p}") for i, ps in pairs.items() for p in ps]


@pytest.mark.parametrize("left, right", of_all(PAIRS))
@clause("JOIN-2.use", "JOIN-2.unused")
def test_types_that_differ(left, right):
    rejects("TileTypeError", joined(left, right), 1)
    rejects("TileTypeError", joined(right, left, "x is None"), -1)
    takes(joined(left, right, "1"), 1)


@clause("JOIN-2.use")
def test_types_that_differ_in_a_call_and_an_expression():
    for use in ("x + 1", "f1(x)", "(x, 2)", "x if n > 0 else x"):
        rejects("TileTypeError", joined("n", "1.5", use), 1)


@clause("JOIN-2.argument")
def test_types_that_differ_in_an_argument():
    def second(a, b=0):
        return b

    def collect(*rest):
        return 2

    takes(lambda n: second(1 if n > 0 else 1.5, 2), 1)
    takes(lambda n: second(b=2, a=(1 if n > 1 else 1.5) if n > 0 else 3), 1)
    rejects("TileTypeError", lambda n: second(2, 1 if n > 0 else 1.5), 1)
    rejects("TileTypeError", lambda n: collect(1 if n > 0 else 1.5), 1)
    rejects("TileTypeError", lambda n: second((1 if n > 0 else 1.5, 2)), 1)


USES = ("len(x)", "abs(x)", "int(x)", "float(x)", "bool(x)", "str(x)", "tuple(x)", "range(x)", "slice(x, 1, 1)",
        "min(x, 1)", "divmod(x, 1)", "getattr(x, 'a')", "print(x)", "Color(x)", "ct.exp(x)", "x()", "x.a", "x[0]",
        "not x", "-x")


@clause("JOIN-2.use", "JOIN-2.text")
@pytest.mark.parametrize("use", USES)
def test_every_use_names_the_types(use):
    """Whatever is called, also what does not look at all of its arguments."""
    either = re.sub(r"\bx\b", "(n if n > 0 else (n, n))", use)
    for f in joined("n", "(n, n)", use), joined("n", "n", either):
        assert "depends on path" in rejects("TileTypeError", f, 1).message


@clause("JOIN-2.text")
def test_text():
    e = rejects("TileTypeError", joined("n", "n * 1.5"), 1)
    assert "x" in e.message and "int32" in str(e) and "float32" in str(e)


@clause("JOIN-2.use")
def test_a_new_assignment_ends_the_conflict():
    takes(body("""
        if n > 0:
            x = 1
        else:
            x = None
        x = 5
        return x
    """), 1)


@clause("JOIN-2.same")
@pytest.mark.parametrize("value, use", [("'a'", "x + 'b'"), ("ct.int8", "ct.zeros((2,), x)"), ("Color.RED", "x.value"),
                                        ("None", "x is None"), ("f1", "x(n)"),
                                        ("(1, 'a')", "ct.zeros((x[0],), ct.int8)")])
def test_the_same_on_both_paths(value, use):
    takes(joined(value, value, use), 1)


# What joins: what is compared of it, which must be the same on both paths, and how it is used.
PARTS = {
    "text": ('f"{{n:{0}}}|{1}"', "(print(x) is None)", ("3", "a"), ("4", "a"), ("3", "b")),
    "keywords": ("keywords({0}=n, {1}=2)", "x['a']", ("a", "b"), ("a", "c"), ("b", "a")),
    "slice": ("slice(0, {0}, {1})", "(n, 2, 3)[x][0]", ("2", "1"), ("1", "1"), ("2", "None")),
    "method": ("Pair(n, {0}).{1}", "x(1)", ("1", "plus"), ("1.5", "plus"), ("1", "minus")),
    "record": ("Pair(n, {0}) if {1} else Other(n, {0})", "x.a", ("1", "True"), ("1.5", "True"), ("1", "False")),
    "tuple": ("(n, ({0}, {1}))", "x[0]", ("1", "'a'"), ("1.5", "'a'"), ("1", "'b'")),
    "view": ("v.tiled_view(({0},), traversal_steps=({1},))", "ct.sum(x.load(0))", ("2", "1"), ("4", "1"), ("2", "2")),
    "range": ("range(n, {0}, {1})", "total(x)", ("9", "2"), ("ct.int64(9)", "2"), ("9", "ct.int64(2)")),
    "manager": ("managed({0}={1})", "entered(x)", ("a", "n"), ("b", "n"), ("a", "1.5")),
    "function": ("at({0}, {1})", "x(1)", ("n", "1"), ("1.5", "1"), ("n", "1.5")),
}
DEFINED = """
import contextlib
import dataclasses

def keywords(**given):
    return given

@dataclasses.dataclass(frozen=True)
class Pair:
    a: object
    b: object

    def plus(self, n):
        return self.a + n

    def minus(self, n):
        return self.a - n

@dataclasses.dataclass(frozen=True)
class Other(Pair):
    pass

@contextlib.contextmanager
def managed(a=1, b=2):
    yield a

def entered(m):
    with m as value:
        return value

def total(r):
    s = 0
    for i in r:
        s = s * 10 + ct.int32(i)
    return s

def at(k, default):
    def f(x, y=default):
        return x * k
    return f
"""


@clause("JOIN-1.value", "JOIN-2.use", "JOIN-6.range", "JOIN-6.closure", "JOIN-6.view")
@pytest.mark.parametrize("what", PARTS)
def test_parts_that_must_be_the_same(what):
    """Two of a kind, made on two paths: usable if all but their run-time values is the same."""
    make, use, same, *others = PARTS[what]
    text = DEFINED + """
@ct.kernel
def kern(n, v, out):
    if n > 0:
        x = {}
    else:
        n = n + 10
        x = {}
    ct.store(out, 0, {} + 0)
"""
    v = np.arange(16, dtype=np.int32)
    for other in others:
        for first, second in ((same, other), (other, same)):
            space = module(text.format(make.format(*first), make.format(*second), use))
            refuses("TileTypeError", space["kern"], 1, v, np.zeros(1, np.int32))
    space = module(text.format(make.format(*same), make.format(*same), use))
    text = text.replace("    else:\n        n = n + 10\n        x = {}\n", "").replace("if n > 0:", "if True:")
    alone = module(text.format(make.format(*same), use))
    for n in 3, -3:
        got = run(space["kern"], n, v, np.zeros(1, np.int32)).tolist()
        assert got == run(alone["kern"], n if n > 0 else n + 10, v, np.zeros(1, np.int32)).tolist()


@clause("JOIN-2.array")
def test_arrays_of_two_static_sizes():
    static = Annotated[Any, ct.ArrayAnnotation(static_shape_dims=(0,))]

    @ct.kernel
    def k(n, a: static, b: static):
        c = a if n > 0 else b
        ct.load(c, 0, 2)

    refuses("TileTypeError", k, 1, np.zeros(4, np.int32), np.zeros(8, np.int32))
    accepts(k, 1, np.zeros(4, np.int32), np.zeros(4, np.int32))


@clause("JOIN-2.view", "JOIN-6.view")
def test_views():
    def kernel(m):
        @ct.kernel
        def k(n, a, out):
            v = a.tiled_view((2,)) if n > 0 else a.tiled_view((m,))
            ct.store(out, 0, ct.sum(v.load((1,))))

        return k

    a = np.arange(8, dtype=np.int32)
    refuses("TileTypeError", kernel(4), 1, a, np.zeros(1, np.int32))
    assert run(kernel(2), 1, a, np.zeros(1, np.int32)).tolist() == [5]


@clause("JOIN-6.view", "JOIN-6.array")
def test_views_and_arrays_by_path():
    @ct.kernel
    def k(a, b, out):
        i = ct.bid(0)
        if i % 2 == 0:
            c, v = a, b.tiled_view((2,))
        else:
            c, v = b, a.tiled_view((2,))
        ct.store(out, i, ct.sum(ct.load(c, 0, 4)) * 100 + ct.sum(v.load((1,))))

    a, b = np.array([1, 2, 3, 4], np.int32), np.array([5, 6, 7, 8], np.int32)
    assert run(k, a, b, np.zeros(3, np.int32), grid=(3,)).tolist() == [1015, 2607, 1015]


@clause("JOIN-3.some", "JOIN-3.unused", "JOIN-3.never")
def test_variables_that_are_not_always_defined():
    some = "if n > 0:\n    x = 1\n"
    rejects("TileTypeError", body(some + "return x"), 1)
    rejects("TileTypeError", body(some + "y = x + 1"), 1)
    rejects("TileTypeError", body("if n > 0:\n    pass\nelse:\n    x = 1\nreturn x"), 1)
    rejects("TileTypeError", body("if n > 0:\n    if n > 1:\n        x = 1\nelse:\n    x = 2\nreturn x"), 1)
    takes(body(some + "return n"), 1)
    takes(body(some + "x = 2\nreturn x"), 1)
    rejects("TileSyntaxError", body("if n > 0:\n    pass\nreturn x"), 1)


@clause("JOIN-4.return", "JOIN-4.break", "JOIN-4.continue")
def test_branches_that_leave():
    def f(n):
        if n < 0:
            x = None
            return -1
        else:
            x = n
        s = 0
        for i in range(10):
            if i == 7:
                y = "text"
                break
            elif i % 2 == 1:
                y = 1.5
                continue
            else:
                y = i
            s = s + y
        return x * 100 + s

    assert result(f, 3) == 312 and result(f, -3) == -1


@clause("JOIN-4.return")
def test_a_branch_that_returns_leaves_constants():
    def f(n):
        size = 4
        if n < 0:
            size = 8
            return 0
        return ct.sum(ct.full((size,), n, ct.int32))

    assert result(f, 3) == 12 and result(f, -3) == 0


@clause("JOIN-5.tuple", "JOIN-5.dataclass")
def test_tuples_and_dataclasses():
    def f(n):
        if n > 0:
            x, p = (n, (2, "a")), Pair(n, 5)
        else:
            x, p = (7, (n, "a")), Pair(8, n)
        ct.static_assert(x[1][1] == "a")
        return x[0], x[1][0], p.a, p.b

    assert result(f, 3) == [3, 2, 3, 5] and result(f, -3) == [7, -3, 8, -3]


@clause("JOIN-5.part")
def test_items_that_differ():
    rejects("TileTypeError", joined("(n, 1)", "(n, 1.5)", "x[1] + 1"), 1)
    rejects("TileTypeError", joined("Pair(n, 1)", "Pair(n, None)", "x.b + 1"), 1)


@clause("JOIN-6.range", "JOIN-6.closure")
def test_ranges_and_closures():
    def f(n):
        def g(k):
            return lambda x: x * k

        if n > 0:
            r, h = range(n), g(n)
        else:
            r, h = range(2, 4), g(10)
        s = 0
        for i in r:
            s = s * 10 + i
        return s, h(7)

    assert result(f, 4) == [123, 28] and result(f, -4) == [23, 70]


@clause("JOIN-6.closure")
def test_closures_of_one_function_in_loops_and_nested():
    def f(n):
        def adding(k, more=0):
            def deep():
                return lambda x, y=more: x + k * 10 + y

            return deep()

        def own(x):
            return x - 1

        g = adding(n)
        h = own if n > 0 else own
        for i in range(3):
            g = adding(g(i)) if i == 1 else adding(g(i), i)
        return g(5), h(7)

    def plain(n):
        add = lambda k, more=0: lambda x, y=more: x + k * 10 + y
        g = add(n)
        for i in range(3):
            g = add(g(i)) if i == 1 else add(g(i), i)
        return [g(5), n and 6]

    assert result(f, 2) == plain(2) and result(f, -1) == plain(-1)


@clause("JOIN-2.function")
def test_closures_of_different_functions():
    def f(n):
        def first():
            return lambda: 1

        def second():
            return lambda: 2

        g = first() if n > 0 else second()
        return g()

    rejects("TileTypeError", f, 1)


@clause("JOIN-3.never")
def test_a_name_that_is_assigned_later_only():
    space = module("def f(n):\n    y = x\n    x = 1\n    return y\n")
    rejects(("TileSyntaxError", "TileTypeError"), space["f"], 1)

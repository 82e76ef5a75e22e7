# ruff: noqa: B007, B018, PIE790 -- tile code under test, not code to tidy
"""Statements: the effect of each, and which are refused."""

import contextlib
import dataclasses
import sys

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, refuses, run
from conformance.harness.tile_code import body, module, rejects, result, takes
from conformance.harness.type_probes import static


@contextlib.contextmanager
def noted(out, i, n):
    ct.store(out, i, n)
    yield n * 2
    ct.store(out, i + 1, n + 1)


@clause("ST-0.taken")
@pytest.mark.parametrize("lines", ["undefined_name", "sorted(n)", "n.nothing", "n()", "ct.exp(None)", "x, y = 3",
                                   "x = n[0]", "raise ct.static_exception(ValueError('no'))"])
def test_what_is_not_reached(lines):
    takes(body(f"if False: {lines}\nreturn n"), 1)
    takes(body(f"if True: pass\nelse: {lines}\nreturn n"), 1)
    takes(body(f"while False: {lines}\nreturn n"), 1)
    takes(body(f"return n\n{lines}"), 1)


SYNTAX = {
    "ST-7.del": "x = 1\ndel x",
    "ST-7.global": "global G",
    "ST-7.import": "import math",
    "ST-7.from": "from math import pi",
    "ST-7.assert": "assert n",
    "ST-7.try": "try:\n    pass\nexcept Exception:\n    pass",
    "ST-7.match": "match n:\n    case 1:\n        pass",
    "ST-7.class": "class A:\n    pass",
    "ST-7.async": "async def g():\n    pass",
    "ST-8.plain": "raise ValueError('a')",
    "ST-8.bare": "raise",
    "ST-8.from": "raise ct.static_exception(ValueError('a')) from None",
    "ST-10.else": "while n < 0:\n    pass\nelse:\n    pass",
    "ST-11.else": "for i in range(n):\n    pass\nelse:\n    pass",
    "ST-5": "n.x = 1",
    "ST-2.star": "a, *b = (1, 2, 3)",
    "ST-17.yield": "yield n",
    "EX-3.list": "x = [1, 2]", "EX-3.dict": "x = {'a': 1}", "EX-3.set": "x = {1}",
    "EX-3.list_comprehension": "x = [i for i in (1, 2)]",
    "EX-3.dict_comprehension": "x = {i: i for i in (1, 2)}",
    "EX-3.set_comprehension": "x = {i for i in (1, 2)}",
    "EX-3.generator": "x = (i for i in ct.static_iter((1, 2)))",
    "EX-3.tuple.other": "x = tuple(i for i in (1, 2))",
    "EX-7.literal": "def g(a):\n    return a\ng(**{'a': 1})",
    "EX-15.conversion": "x = f'{n!r}'",
    "EX-15.nested": "x = f'{n:{n}}'",
    "EX-16.walrus": "(x := 1)",
    "EX-16.yield": "x = yield",
    "ST-17.decorator": "@ct.function\ndef g(a):\n    return a",
    "ST-15.static_iter": "for i in ct.static_iter((1, 2)):\n    return",
}
VARIANTS = [*SYNTAX.items(),
    ("ST-7.global", "global n2, n3"), ("ST-7.try", "try:\n    pass\nfinally:\n    pass"),
    ("ST-7.class", "@dataclass\nclass A:\n    x: int"), ("ST-8.plain", "raise ct.TileTypeError('a')"),
    ("ST-8.plain", "raise ValueError"), ("ST-5", "n.x += 1"), ("ST-5", "n.x, y = 1, 2"),
    ("ST-2.star", "*a, b = (1, 2)"), ("ST-2.star", "(a, (*b, c)) = (1, (2, 3))"),
    ("EX-15.conversion", "x = f'{n!s}'"), ("EX-15.conversion", "x = f'{n!a}'"), ("EX-15.conversion", "x = f'{n=}'"),
    ("EX-3.generator", "sum(i for i in ct.static_iter((1, 2)))"), ("EX-3.list", "x = []"), ("EX-3.dict", "x = {}"),
    ("EX-3.tuple.other", "x = tuple(i for j in ct.static_iter((1, 2)) for i in (j, j))"),
    ("ST-7.async", "async def g():\n    async with n:\n        pass"), ("ST-17.yield", "yield"),
    ("ST-17.yield", "yield from n"), ("EX-16.walrus", "if (x := n) > 1:\n    pass"),
    ("ST-17.yield", "def g():\n    yield 1\ng()")]


UNREACHED = ["x = 1\ndef g():\n    nonlocal x\n    x = 2", "async def g():\n    await n", "x = {}", "x = {1, n}",
             "def g():\n    yield from n", "def g():\n    import math",
             "def g():\n    from math import pi", "def g():\n    x = [i for i in (1, 2)]", "lambda: (x := 1)",
             "def g(a=[1]):\n    return a", "def g(*, a={1: 2}):\n    return a", "lambda a=(x := 1): a"]


@pytest.mark.parametrize("lines", [
    *(pytest.param(lines, marks=clause(i), id=f"{i} {k}") for k, (i, lines) in enumerate(VARIANTS)),
    pytest.param("type X = int", marks=[clause("ST-7.type"), pytest.mark.skipif(
        sys.version_info < (3, 12), reason="not applicable: Python has no type statement before 3.12")])])
def test_syntax_that_is_refused(lines):
    try:
        f = body(lines)
    except SyntaxError:  # some versions of Python refuse it already
        pytest.fail(f"this is no Python: {lines}")
    rejects("TileSyntaxError", f, 1)


@clause("ST-0.syntax")
@pytest.mark.parametrize("lines", [*(lines for i, lines in SYNTAX.items() if i != "ST-15.static_iter"), *UNREACHED])
def test_syntax_that_is_refused_though_not_reached(lines):
    indented = "\n".join("    " + line for line in lines.splitlines())
    rejects("TileSyntaxError", body(f"if False:\n{indented}\nreturn n"), 1)
    rejects("TileSyntaxError", body(f"return n\n{lines}"), 1)


@clause("ST-7.nonlocal")
def test_nonlocal():
    rejects("TileSyntaxError", body("x = 1\ndef g():\n    nonlocal x\n    x = 2\ng()"), 1)


@clause("EX-16.await")
def test_await():
    rejects("TileSyntaxError", body("async def g():\n    await n\nreturn n"), 1)


@clause("ST-1.pass", "ST-1.expression", "ST-1.docstring", "ST-1.ellipsis", "EX-1.ellipsis")
def test_statements_that_do_nothing():
    def f(n):
        """A docstring."""
        pass
        n + 1
        ...
        "a string"
        None
        n, n
        return n

    assert result(f, 4) == 4


@clause("ST-1.expression")
def test_a_call_as_statement():
    @ct.kernel
    def k(out):
        ct.store(out, 0, 3)

    assert run(k, np.zeros(1, np.int32)).tolist() == [3]


@pytest.mark.parametrize("lines, want", [
    pytest.param("a = n\nreturn a + 1", 5, marks=clause("ST-2.assign")),
    pytest.param("a = b = n\nb = b + 1\nreturn a, b", [4, 5], marks=clause("ST-2.multiple")),
    pytest.param("a = b, c = n, 7\nreturn a[0], b, c", [4, 4, 7], marks=clause("ST-2.multiple")),
    pytest.param("a, b = n, 7\nreturn b, a", [7, 4], marks=clause("ST-2.tuple")),
    pytest.param("(a,) = (n,)\nreturn a", 4, marks=clause("ST-2.tuple")),
    pytest.param("[a, b] = n, 7\nreturn b, a", [7, 4], marks=clause("ST-2.list")),
    pytest.param("a, (b, [c, d]) = 1, (n, (3, 5))\nreturn d, c, b, a", [5, 3, 4, 1], marks=clause("ST-2.nested")),
    pytest.param("a, b = n, 7\na, b = b, a\nreturn a, b", [7, 4], marks=clause("ST-2.swap")),
    pytest.param("a, b, c = n, 5, 6\na, b, c = c, a, b\nreturn a, b, c", [6, 4, 5], marks=clause("ST-2.swap")),
    pytest.param("a: float = n\nreturn a", 4, marks=clause("ST-3.value")),
    pytest.param("a: not_defined = n\nreturn a", 4, marks=clause("ST-3.value")),
    pytest.param("a = n\na: int\nreturn a", 4, marks=clause("ST-3.bare")),
    pytest.param("x = n\nx += 3\nreturn x", 7, marks=clause("ST-4.add")),
    pytest.param("x = n\nx -= 3\nreturn x", 1, marks=clause("ST-4.sub")),
    pytest.param("x = n\nx *= 3\nreturn x", 12, marks=clause("ST-4.mul")),
    pytest.param("x = n\nx /= 8\nreturn x * 100", 50, marks=clause("ST-4.truediv")),
    pytest.param("x = n + 3\nx //= 2\nreturn x", 3, marks=clause("ST-4.floordiv")),
    pytest.param("x = n + 3\nx %= 4\nreturn x", 3, marks=clause("ST-4.mod")),
    pytest.param("x = n * 1.0\nx **= 3\nreturn x", 64, marks=clause("ST-4.pow")),
    pytest.param("x = n + 3\nx &= 5\nreturn x", 5, marks=clause("ST-4.and")),
    pytest.param("x = n\nx |= 3\nreturn x", 7, marks=clause("ST-4.or")),
    pytest.param("x = n + 3\nx ^= 5\nreturn x", 2, marks=clause("ST-4.xor")),
    pytest.param("x = n\nx <<= 3\nreturn x", 32, marks=clause("ST-4.lshift")),
    pytest.param("x = n\nx >>= 1\nreturn x", 2, marks=clause("ST-4.rshift"))])
def test_assignments(lines, want):
    assert result(body(lines), 4) == want


@clause("ST-4.matmul")
def test_augmented_matmul():
    def f(n):
        x = ct.full((2, 2), n, ct.float32)
        x @= ct.full((2, 2), 3.0, ct.float32)
        return ct.extract(x, (0, 0), (1, 1)).item()

    assert result(f, 4.0) == 24


@clause("ST-4.add")
def test_augmented_assignment_of_tiles_does_not_change_others():
    def f(n):
        x = ct.full((2,), n, ct.int32)
        y = x
        x += 1
        return ct.sum(x), ct.sum(y)

    assert result(f, 4) == [10, 8]


@pytest.mark.parametrize("error, lines", [
    pytest.param("TileTypeError", "a, b = n", marks=clause("ST-2.kind")),
    pytest.param("TileTypeError", "a, b = None", marks=clause("ST-2.kind")),
    pytest.param("TileTypeError", "a, b = 'ab'", marks=clause("ST-2.kind")),
    pytest.param("TileTypeError", "a, b = ct.zeros((2,), ct.int32)", marks=clause("ST-2.kind")),
    pytest.param("TileTypeError", "a, (b, c) = 1, 2", marks=clause("ST-2.kind")),
    pytest.param("TileValueError", "a, b = 1, 2, 3", marks=clause("ST-2.many")),
    pytest.param("TileValueError", "() = (1,)", marks=clause("ST-2.many")),
    pytest.param("TileValueError", "a, b, c = 1, 2", marks=clause("ST-2.few")),
    pytest.param("TileValueError", "a, (b, c) = 1, (2,)", marks=clause("ST-2.few")),
    pytest.param("TileSyntaxError", "x: int\nreturn x", marks=clause("ST-3.bare")),
    pytest.param("TileSyntaxError", "x += 1", marks=clause("ST-4.undefined")),
    pytest.param("TileTypeError", "n[0] = 1", marks=clause("ST-6.other")),
    pytest.param("TileTypeError", "t = (1, 2)\nt[0] = 1", marks=clause("ST-6.other")),
    pytest.param("TileTypeError", "t = ct.zeros((2,), ct.int32)\nt[0] = 1", marks=clause("ST-6.other")),
    pytest.param("TileTypeError", "t = ct.zeros((2,), ct.int32)\nt[0] += 1", marks=clause("ST-6.other")),
    pytest.param("TileTypeError", "for i in (1, 2): pass", marks=clause("ST-13.tuple")),
    pytest.param("TileTypeError", "for i in (): pass", marks=clause("ST-13.tuple")),
    pytest.param("TileTypeError", "for i in ct.zeros((2, 4), ct.int8).shape: pass", marks=clause("ST-13.shape")),
    pytest.param("TileTypeError", "for i in ct.zeros((2, 4), ct.int8): pass", marks=clause("ST-13.tile")),
    pytest.param("TileTypeError", "for i in n: pass", marks=clause("ST-13.number")),
    pytest.param("TileTypeError", "for i in 3: pass", marks=clause("ST-13.number")),
    pytest.param("TileTypeError", "for i, j in range(3): pass", marks=clause("ST-11.pattern"))])
def test_statements_that_are_refused(error, lines):
    rejects(error, body(lines), 1)


@clause("ST-13.array", "ST-13.other")
def test_loops_over_arrays():
    @ct.kernel
    def k(x):
        for i in x:
            pass

    refuses("TileTypeError", k, np.zeros(4, np.int32))
    refuses("TileTypeError", k, [np.zeros(4, np.int32)] * 2)
    refuses("TileTypeError", k, (np.zeros(4, np.int32),) * 2)
    refuses("TileTypeError", k, 3)


@clause("ST-13.other")
@pytest.mark.parametrize("what", [
    "None", "'ab'", "f'{n}'", "ct", "ct.int32", "ct.exp", "abs", "range", "lambda: 1", "f", "dataclasses", "Cell",
    "Cell(n)", "Cell", "m(n)", "n > 0", "1.5", "t", "t.shape", "slice(1, n, 2)", "more", "rest", "ct.Tile", "t.reshape",
    "ct.RoundingMode.RN", "a.tiled_view((2,))", "a.get_raw_memory()", "a.shape"])
def test_what_no_loop_runs_over(what):
    f = module(f"""
        def f(n, a):
            return g(n, a, n, n, c=n)

        def g(n, a, *rest, **more):
            t = ct.zeros((2,), ct.int8)
            for i in {what}:
                n = n + i
            return n
    """, Cell=Cell, m=noted, dataclasses=dataclasses)["f"]

    @ct.kernel
    def k(n, a):
        f(n, a)

    e = refuses("TileTypeError", k, 1, np.zeros(4, np.int32))
    assert e.loc.line == 7 and e.loc.function == "g"


@dataclasses.dataclass(frozen=True)
class Cell:
    array: object

    def __setitem__(self, i, v):
        ct.store(self.array, i, v * 10)
        return 5


@clause("ST-6.setitem")
def test_setitem_of_dataclasses():
    @ct.kernel
    def k(out):
        c = Cell(out)
        c[1] = 4

    assert run(k, np.zeros(2, np.int32)).tolist() == [0, 40]


@clause("ST-8.raise", "ST-8.runtime", "ST-8.untaken")
def test_static_exceptions():
    def always(n):
        raise ct.static_exception(ValueError("too large"))

    def some(n):
        if n > 0:
            raise ct.static_exception(KeyError("k"))
        return n

    def never(n):
        if n is None:
            raise ct.static_exception(ValueError("no"))
        return n

    e = rejects("StaticException", always, 1, match="too large")
    assert isinstance(e.__cause__, ValueError)
    rejects("StaticException", some, 0)
    takes(never, 1)


def ladder(n):
    if n < 0:
        r = 1
    elif n == 0:
        r = 2
    elif n < 10:
        r = 3
    else:
        r = 4
    return r


@clause("ST-9.if", "ST-9.else", "ST-9.elif")
@pytest.mark.parametrize("n, want", [(-3, 1), (0, 2), (5, 3), (9, 3), (10, 4), (11, 4)])
def test_if(n, want):
    assert result(ladder, n) == want


@clause("ST-9.if", "ST-9.elif")
def test_if_of_constants():
    assert result(lambda n: (ladder(-3), ladder(0), ladder(5), ladder(10)), 0) == [1, 2, 3, 4]


@clause("ST-9.if")
def test_if_without_else():
    def f(n):
        r = 5
        if n > 2:
            r = r + n
        return r

    assert result(f, 3) == 8 and result(f, 2) == 5


@clause("ST-10.while")
@pytest.mark.parametrize("n, want", [(0, 0), (1, 1), (6, 8), (27, 111)])
def test_while(n, want):
    def f(n):
        steps = 0
        while n > 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    assert result(f, n) == (want if n > 1 else 0)


@clause("ST-11.for", "ST-12")
def test_for():
    def f(n):
        s = t = 0
        for i in range(n):
            s = s * 10 + i + 1
        for i in ct.static_iter((7, 8)):
            t = t * 10 + i
        return s, t

    assert result(f, 3) == [123, 78]


@clause("ST-14.break", "ST-14.continue", "ST-14.nested")
def test_break_and_continue():
    def f(n):
        s = 0
        for i in range(10):
            if i % 2 == 1:
                if n > 0:
                    continue
            for j in range(10):
                if j == 2:
                    break
                s = s + 1
            if i > 5:
                if n > 0:
                    break
        return s

    # n > 0: i = 0, 2, 4, 6 -> 8; otherwise all ten -> 20
    assert result(f, 1) == 8 and result(f, 0) == 20


@clause("ST-14.break", "ST-14.continue")
def test_break_and_continue_in_while():
    def f(n):
        i = s = 0
        while True:
            i += 1
            if i > n:
                break
            if i == 3:
                continue
            s = s * 10 + i
        return s

    assert result(f, 5) == 1245


@clause("ST-15.if", "ST-15.loop")
def test_return():
    def first(n, limit):
        for i in range(100):
            for j in range(i + 1):
                if i * j > limit:
                    return i * 100 + j
        if n > 5:
            return -1
        return -2

    assert result(lambda n, m: first(n, m), 1, 10) == 403
    assert result(lambda n, m: first(n, m), 6, 100000) == -1
    assert result(lambda n, m: first(n, m), 5, 100000) == -2


@clause("ST-15.kernel")
def test_return_ends_the_block():
    @ct.kernel
    def k(out):
        b = ct.bid(0)
        if b % 2 == 1:
            return
        for i in range(10):
            if i == b:
                return
            ct.store(out, b, i + 1)
        ct.store(out, b, -1)

    assert run(k, np.zeros(6, np.int32), grid=(6,)).tolist() == [0, 0, 2, 0, 4, 0]


@clause("ST-15.manager")
def test_return_in_a_manager():
    space = module("""
        import contextlib
        @contextlib.contextmanager
        def cm():
            yield 1
            return
        def f(n):
            with cm():
                pass
    """)
    rejects("TileSyntaxError", space["f"], 1)


@clause("ST-16.with", "ST-16.several")
def test_with():
    @ct.kernel
    def k(out):
        with noted(out, 0, 1) as a, noted(out, 2, 10) as b:
            ct.store(out, 4, a + b)
            ct.store(out, 5, ct.load(out, 0, 1) * 10 + ct.load(out, 1, 1))

    assert run(k, np.zeros(6, np.int32)).tolist() == [1, 2, 10, 11, 22, 10]


@contextlib.contextmanager
def traced(out, n):
    ct.store(out, 0, ct.load(out, 0, 1) * 10 + n)
    yield
    ct.store(out, 0, ct.load(out, 0, 1) * 10 + n)


@clause("ST-16.several")
def test_order_of_managers():
    @ct.kernel
    def k(out):
        with traced(out, 1), traced(out, 2):
            ct.store(out, 0, ct.load(out, 0, 1) * 10 + 5)

    assert run(k, np.zeros(1, np.int32)).tolist() == [12521]


@clause("ST-17.def", "ST-17.lambda")
def test_nested_functions():
    def f(n):
        def g(a, b=2):
            def h(c):
                return a * 100 + b * 10 + c
            return h(n)
        return g(1), (lambda a: a + n)(3)

    assert result(f, 5) == [125, 8]


@clause("ST-1.docstring")
def test_a_docstring_alone():
    def f():
        """Nothing else."""

    assert static(lambda: f()) is None


@clause("ST-17.def")
def test_a_nested_function_that_is_not_called():
    @ct.kernel
    def k():
        def g(a):
            return a.nothing

    accepts(k)

"""The places that errors name: line, column and function, in texts of any kind; and which source is a function's."""

import ast
import contextlib
import dataclasses
import gc
import importlib.machinery
import inspect
import linecache
import textwrap

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, refuses, run
from conformance.harness.tile_code import body, module, rejects, result, takes


def marked(e):
    """The source that an error's carets mark, in its last frame."""
    lines = str(e).splitlines()
    at = max(i for i, line in enumerate(lines) if line.strip() and set(line.strip()) == {"^"})
    return lines[at - 1][lines[at].index("^"):lines[at].rindex("^") + 1]


def names_place(e, line, wrong, whole=None):
    """Assert that an error is about `wrong`, or what is around or in it, at a line. `whole`: the most to mark."""
    got = marked(e)
    assert e.loc.line == line, f"line {e.loc.line}, {got}"
    assert got and (got in wrong or wrong in got) and got in (whole or got), got


# ------------------------------------------------------------------ lines and columns


@clause("ERR-12.line", "ERR-12.caret", "ERR-12.loc")
@pytest.mark.parametrize("before", ["''", "'é' * 0", "'日本語'", "'𝄞𝄞'", "('ß', '\\u00e9')"], ids=ascii)
def test_texts_beyond_ascii(before):
    """In a function of one line, on its first line, on a line before and on the last."""
    before = before.replace(" * 0", "")
    one = module(f"def f(n): return {before}, ct.exp(None), {before}")["f"]
    names_place(rejects("TileTypeError", one, 1), 1, "ct.exp(None)")
    followed = module(f"def f(n): return {before}, ct.exp(None)\n\nx = 1")["f"]
    names_place(rejects("TileTypeError", followed, 1), 1, "ct.exp(None)")
    last = module(f"# {before}\n\ndef f(n):\n    s = 1\n    return {before}, ct.exp(None)")["f"]
    names_place(rejects("TileTypeError", last, 1), 5, "ct.exp(None)")
    earlier = module(f"def f(n):\n    s = {before}\n    return n, ct.exp(None)\n\n# {before}")["f"]
    names_place(rejects("TileTypeError", earlier, 1), 3, "ct.exp(None)")
    first = module(f"def f(n, s={before}, x=ct.exp): return x(\n    None)")["f"]
    assert rejects("TileTypeError", first, 1).loc.line in (1, 2)


@clause("ERR-12.caret", "ERR-12.line")
@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"])
def test_the_wrong_operand(symbol):
    f = body(f"x = n\nreturn None {symbol} x")
    names_place(rejects("TileTypeError", f, 1), 3, "None", f"None {symbol} x")
    f = body(f"x = 2\nreturn n {symbol} (None, x)")
    names_place(rejects("TileTypeError", f, 1), 3, "(None, x)", f"n {symbol} (None, x)")


@clause("ERR-12.caret", "ERR-12.line", "ERR-4.dtype")
@pytest.mark.parametrize("symbol", ["&", "|", "^", "<<", ">>", "@"])
def test_the_operand_of_the_wrong_dtype(symbol):
    wrong, fine = ("n", "x") if symbol == "@" else ("1.5", "n")
    for left, right in ((wrong, fine), (fine, wrong)):
        f = body(f"x = ct.zeros((2, 2), ct.float32)\nreturn {left} {symbol} {right}")
        names_place(rejects("TileTypeError", f, 1), 3, wrong, f"{left} {symbol} {right}")


@clause("ERR-12.caret", "ERR-12.line")
@pytest.mark.parametrize("call, wrong", [
    ("ct.add(n, None)", "None"), ("ct.add(None, n)", "None"), ("ct.where(n > 0, n, None)", "None"),
    ("ct.zeros((3,), ct.int8)", "(3,)"), ("ct.zeros((4,), dtype=7)", "7"), ("ct.sum(t, 9)", "9"),
    ("ct.sum(axis=9, x=t)", "9"), ("t.astype('q')", "'q'"), ("n.nothing", "n.nothing"), ("t[7]", "t[7]"),
    ("three[7]", "three[7]"), ("len(n)", "len(n)"), ("not three.x", "three.x"),
    ("n if t else n", "t"), ("-None", "-None"), ("n < None", "n < None"), ("n and t", "t"), ("t and n", "t"),
    ("(*n, 1)", "*n"), ("three + n", "three + n"), ("unknown", "unknown"), ("1 // 0", "1 // 0"),
])
def test_the_wrong_part(call, wrong):
    f = body(f"t = ct.zeros((4,), ct.int32)\nthree = (1, 2, 3)\nreturn (n,\n        {call},\n        t)")
    names_place(rejects("TileError", f, 1) if "unknown" not in call else rejects("TileSyntaxError", f, 1), 5, wrong)


REFUSED = """\
del n
global g
import math
from math import pi
assert n
assert n, "text"
async def f(): pass
x = [1]
x = {1: 2}
x = {1}
x = [i for i in (1, 2)]
x = {i for i in (1, 2)}
x = {i: i for i in (1, 2)}
x = (i for i in ct.static_iter((1, 2)))
x = tuple(i for i in (1, 2))
x = (y := 2)
x.y = n
x = x.y = n
x.y += n
x.y: int = n
a, x.y = 1, 2
a, *b = 1, 2
[a, (*b, c)] = 1, (2, 3)
*b, = 1, 2
raise ValueError("a")
raise
raise ct.static_exception(ValueError("a")) from None
x = yield n
x = f"{n!r}"
x = f"{n:{n}}"
f(**{"a": 1})
x: int = [1]
x: [int] = {n}
with m() as x.y: pass
with m() as (a, *b): pass
with m() as a, m() as [c, x.y]: pass
for x.y in range(n): pass
for a, *b in ct.static_iter(((1, 2),)): pass
for i in ct.static_iter((1,), (2,)): pass
x = tuple(1 for x.y in ct.static_iter((1, 2)))
x = tuple(1 for a, *b in ct.static_iter(((1, 2),)))
x = tuple([i] for i in ct.static_iter((1, 2)))
x = tuple(i for i in ct.static_iter((1, 2)) if [i])
x = lambda a=[1]: a
x = lambda: [1]
x = lambda *, a={1: 2}: a
def g(a={1}): pass
ct.exp(x=[n])
[n][0](1)
{1: n}[1](n)
ct.exp([n])
ct.exp(*[n])
(lambda: {n})()(1)
x = n if [n] else n
x = n and [n]
x = n < [n]
x = (n, [n])
x = ct[[n]]
x = f"{[n]}"
return [n]
while [n]: pass
if {n}: pass
with [n]: pass
for i in [1, 2]: pass
""".splitlines() + [
    "try:\n    pass\nexcept ValueError:\n    pass", "try:\n    pass\nfinally:\n    pass",
    "try:\n    pass\nexcept* ValueError:\n    pass",
    "match n:\n    case 1:\n        pass",
    "class A:\n    pass", "def g():\n    nonlocal n", "@ct.function\ndef g(): pass",
    "async def g():\n    async with n: pass", "async def g():\n    async for i in n: pass", "def g():\n    yield 1",
    "def g():\n    yield from (1, 2)", "lambda: (yield)", "while n > 0:\n    n = n - 1\nelse:\n    pass",
    "for i in range(n):\n    pass\nelse:\n    pass", "def g():\n    def h():\n        return [1]"]


@clause("ST-7.del", "ST-7.global", "ST-7.nonlocal", "ST-7.import", "ST-7.from", "ST-7.assert", "ST-7.try", "ST-7.match",
        "ST-7.class", "ST-7.async", "ST-8.plain", "ST-8.bare", "ST-8.from", "ST-10.else", "ST-11.else", "ST-5",
        "ST-2.star", "EX-3.list", "EX-3.dict", "EX-3.set", "EX-3.generator", "EX-3.tuple.other", "EX-15.conversion",
        "EX-15.nested", "ST-17.yield", "ST-17.decorator", "ST-0.syntax", "ERR-1", "ERR-12.line")
def test_lines_of_refused_syntax():
    """Wherever it stands: also where control does not get to, and in functions that nobody calls."""
    for lines in REFUSED:
        for around in ("{}", "if False:\n{}", "return 1\n{}", "def unused():\n    if n:\n{}\n        return 1"):
            indent = " " * 4 * (around.count("\n") and 1 + around.startswith("def")) if "\n{}" in around else ""
            indent = "" if around.startswith("return") else indent
            text = around.format(textwrap.indent(lines, indent))
            first = 2 + around.split("{}")[0].count("\n")
            try:
                f = body(text, m=None)
            except SyntaxError:  # the place is wrong for Python too
                assert around != "{}", lines
                continue
            e = rejects("TileSyntaxError", f, 1)
            assert first <= e.loc.line <= first + lines.count("\n"), f"{e.loc.line}: {text}"
            assert e.loc.function in ("f", "g", "h", "unused", "<lambda>"), e.loc.function


@clause("ST-3.value")
def test_annotations_are_ignored():
    f = body("""
        x: [int] = n
        y: {1: 2} = x + 1
        z: (lambda: [2]) = y
        k: undefined[n] = z
        return x + y + z + k
    """)
    assert result(f, 1) == 7


@clause("SEVAL-7.break", "SEVAL-7.continue", "SEVAL-7.return", "ERR-12.line")
@pytest.mark.parametrize("word", ["break", "continue", "return 1"])
def test_leaving_static_loops(word):
    for around in ("{}", "if True:\n        {}", "if i == 2:\n        {}", "if n > i:\n        {}",
                   "for j in ct.static_iter((1, 2)):\n        {}", "x = i\n    {}"):
        text = f"for i in ct.static_iter((1, 2)):\n    {around.format(word)}\n"
        e = rejects("TileSyntaxError", body(f"{text}return n"), 1)
        assert e.loc.line == 3 + around.count("\n"), text
        for loop in "for k in range(n):", "while n > 0:":
            e = rejects("TileSyntaxError", body(f"{loop}\n{textwrap.indent(text, '    ')}    n = n - 1\nreturn n"), 1)
            assert e.loc.line == 4 + around.count("\n"), text


@clause("ERR-12.line", "CALL-3.differ", "CALL-3.missing")
def test_the_line_of_returns_that_differ():
    e = rejects("TileTypeError", body("def g():\n    if n > 2:\n        return 1\n    return 1.5\nreturn g()"), 1)
    assert e.loc.line in (4, 5, 6)


# ------------------------------------------------------------------ which function of a line


@clause("FN-6.lambda", "FN-2.source", "EX-18")
def test_lambdas_of_one_line():
    def f(n):
        fs = lambda: 1, lambda: 2, lambda x=n: x, lambda: n + 1, lambda: n + 2
        return tuple(g() for g in ct.static_iter(fs))

    assert result(f, 5) == [1, 2, 5, 6, 7]
    one = (lambda x: x + 1, lambda x: x + 2, lambda y: y + 1, lambda x: (lambda x: x * 3)(x), lambda x: 4, lambda x: 5,
           lambda x: 5.0, lambda x: "é" == "é", lambda x: (x,)[0], lambda x, *y: x - 1, lambda x, **y: x - 2)
    assert [result(g, 5) for g in one] == [6, 7, 6, 15, 4, 5, 5, 1, 5, 4, 3]
    a, b = 10, 20
    two = [lambda x: x + a, lambda x: x + b, lambda x: x - a, lambda: a,
           lambda: b]
    assert [result(g, 5) for g in two[:3]] + [result(lambda n, g=g: g(), 5) for g in two[3:]] == [15, 25, -5, 10, 20]


@clause("ERR-12.caret", "ERR-12.lambda", "FN-2.source")
def test_equal_lambdas_of_one_line():
    space = module("fs = (lambda x: ct.exp(None), lambda x: ct.exp(None), lambda y: (lambda x: ct.exp(None))(y))")
    columns = [rejects("TileTypeError", g, 1).loc.col for g in space["fs"]]
    text = linecache.getlines(inspect.getsourcefile(space["fs"][0]))[0]
    found = [text.index("ct.exp(None)")]
    for _ in range(2):
        found.append(text.index("ct.exp(None)", found[-1] + 1))
    assert [found[k] <= c < found[k] + len("ct.exp(None)") for k, c in enumerate(columns)] == [True] * 3


@clause("FN-2.source", "FN-2.plain")
def test_functions_of_one_name():
    """A file's later function hides an earlier one; both have their own source."""
    space = module("""
        def f(n): return n + 1
        first = f
        def f(n): return n + 2
        if True:
            second = f
            def f(n): return n + 3
        else:
            def f(n): return n + 4
        def outer(k):
            def f(n): return n + k
            return f
        class A:
            def f(n): return n + 5
            class B:
                def f(n): return n + 6
    """)
    fs = space["first"], space["second"], space["f"], space["outer"](9), space["A"].f, space["A"].B.f
    assert [result(f, 10) for f in fs] == [11, 12, 13, 19, 15, 16]


# ------------------------------------------------------------------ sources that come and go

@dataclasses.dataclass(frozen=True)
class Base:
    x: int


DOCUMENTED = '''
@dataclasses.dataclass(frozen=True)
class Own(Base):
    def _both(self, n):
        """Adds.

            All of it.
        """
        return self.x + n

    def both(self, n):
        "One line"
        return self._both(n) * 2


def plain(n, m=2):
    """Multiplies.

    Two numbers.
    """
    return n * m


def other(n):
    return (lambda m: plain(n, m))(5) + 1
'''


@clause("FN-2.source", "FN-2.plain", "FN-5.method")
def test_code_that_was_compiled_apart_from_its_file():
    """As by tools that reload a function, and by notebooks: statement after statement, on other lines."""
    space = module(DOCUMENTED, dataclasses=dataclasses, Base=Base)
    path = inspect.getsourcefile(space["plain"])
    tree = ast.parse(linecache.getlines(path) and "".join(linecache.getlines(path)))
    for statement in tree.body:
        exec(compile(ast.Module([statement], []), path, "exec"), space)
    for name in ("plain", "other"):
        apart = dict(space)
        lines = textwrap.dedent(inspect.getsource(space[name]))
        exec(compile("\n" * 7 + lines, path, "exec"), apart)
        space[name].__code__ = apart[name].__code__
    own = space["Own"](3)
    f = lambda n: (own.both(n), space_plain(n), space_other(n))
    space_plain, space_other = space["plain"], space["other"]
    assert result(f, 4) == [14, 8, 21]


@clause("FN-2.source", "FN-5.method")
def test_methods_of_inner_classes_that_were_compiled_apart():
    """The class alone, on its lines, so that what was a variable around it is a global."""
    text = """
        def outer():
            k = 3
            class A:
                def f(self, n):
                    return self.__x * n + k
            return A
    """
    path = inspect.getsourcefile(module(text)["outer"])
    lines = linecache.getlines(path)
    apart = {"k": 5}
    exec(compile("\n" * 3 + textwrap.dedent("".join(lines[3:6])), path, "exec"), apart)
    f, held = apart["A"].f, dataclasses.make_dataclass("A", ["_A__x"], frozen=True)(7)
    assert result(lambda n: f(held, n), 4) == 33


@clause("ST-7.async", "ERR-12.line", "ERR-12.function")
def test_the_place_of_functions_that_are_async():
    """A kernel, and what one calls, is refused where it stands, and has all other errors too."""
    space = module("""
        async def helper(n):
            return n

        @ct.kernel
        async def kern(n):
            return 1

        @ct.kernel
        def calls(n):
            helper(n)
    """)
    e = refuses("TileSyntaxError", space["kern"], 1)
    assert e.loc.line in (5, 6) and e.loc.function == "kern"
    e = refuses("TileSyntaxError", space["calls"], 1)
    assert e.loc.line == 2 and e.loc.function == "helper" and "helper(n)" in str(e)


@clause("FN-2.source")
def test_sources_that_are_not_those_of_the_code(tmp_path):
    """A file that has another text than its functions came from is no source of them."""
    path = tmp_path / "changed.py"
    for name, was, now in (("f", "def f(n):\n    return n + 1\n", "def f(n):\n    return n + 2\n"),
                           ("f", "f = lambda n: n + 1\n", "f = lambda n: n - 1\n"),
                           ("f", "f = lambda n: n + 1\n", "f = lambda n: n + 2\n"),
                           ("f", "def f(n): return n + 1\n", "def f(n): return n + 2\n"),
                           ("f", "def f(n):\n    return n + 1\n", "# a line\n\ndef f(m):\n    return m\n"),
                           ("f", "def f(n): return n + 1\n", "def g(n): return n + 1\n"),
                           ("f", "def f(n):\n    'a'\n    return n + 1\n", "def f(n):\n    'a'\n    return n + 3\n"),
                           ("f", "def f(n):\n    return n, 1\n", "def f(n):\n    return n, 1.0\n"),
                           ("f", "def f(n):\n    return n, 0.0\n", "def f(n):\n    return n, -0.0\n"),
                           ("f", "def f(n):\n    def g(): return 1\n    return g()\n",
                            "def f(n):\n    def g(): return 2\n    return g()\n"),
                           ("f", "def f(n): return n + A\n", "def f(n): return n + B\n"),
                           ("f", "def f(n): return ct.exp(n)\n", "def f(n): return ct.exp2(n)\n"),
                           ("f", "def f(n): return abs(n)\n", "def f(n): return bool(n)\n"),
                           ("f", "def f(n): return max(x=n)\n", "def f(n): return max(y=n)\n"),
                           ("f", "def f(n):\n    a = n\n    return a\n", "def f(n):\n    b = n\n    return b\n"),
                           ("f", "def f(n): return (lambda: A)() + n\n", "def f(n): return (lambda: B)() + n\n"),
                           ("f", "f = (lambda a, b: lambda n: n + a)(1, 2)\n",
                           "f = (lambda a, b: lambda n: n + b)(1, 2)\n"),
                           ("f", "def f(n):\n    def g(): return n\n    return 1\n",
                            "def f(n):\n    def h(): return n\n    return 1\n"),
                           ("f", "def f(n): return n, 1\n", "def f(n): return n, True\n"),
                           ("f", "def f(n): return 'a'\n", "def f(n): return 'b'\n"),
                           ("f", "def f(n): return n, (1, 2)\n", "def f(n): return n, (1, 3)\n"),
                           ("f", "def f(n): return n in (1, 2)\n", "def f(n): return n in (1, 3)\n"),
                           ("f", "def f(n): return n\n", "def f(n) return n\n")):
        space = {"A": 1, "B": 2, "ct": ct}
        exec(compile(was, str(path), "exec"), space)
        path.write_text(now)
        linecache.checkcache(str(path))
        f = space[name]
        with pytest.raises((OSError, ct.TileError)) as found:
            takes(lambda n: f(n), 1)
        assert not isinstance(found.value, ct.TileInternalError)


def doubled(n):
    return n * 2


@clause("FN-2.source")
@pytest.mark.parametrize("loader, theirs", [
    ({}, False), ({"__loader__": None}, False), ({"__loader__": importlib.machinery.BuiltinImporter}, False),
    ({"__loader__": importlib.machinery.SourceFileLoader("a", __file__)}, False), ({"__loader__": object()}, True)],
    ids=["none", "None", "a class", "that of Python", "another"])
def test_code_that_is_not_that_of_an_old_file(loader, theirs):
    """A loader that is not Python's may have compiled a changed version of the text, as tools for coverage do: then the
    text is the source. Without one, the file is no source.
    """
    space = {"seen": lambda: None, **loader}
    lines = inspect.getsourcelines(doubled)[1] * "\n" + "    seen()\n    return n * 2\n"
    exec(compile(lines.replace("\n    seen", "def doubled(n):\n    seen", 1), __file__, "exec"), space)
    f = space["doubled"]
    assert f(4) == 8 and f.__code__.co_firstlineno == doubled.__code__.co_firstlineno
    if theirs:
        assert result(f, 4) == 8
        return
    with pytest.raises((OSError, ct.TileError)) as found:
        takes(lambda n: f(n), 1)
    assert not isinstance(found.value, ct.TileInternalError)


@clause("FN-2.source")
def test_sources_of_a_file_that_has_had_several(tmp_path):
    """A function has the source that it was defined with, also if a kernel first calls it much later."""
    path, spaces = tmp_path / "edited.py", []
    for k in range(4):
        path.write_text("\n" * k + f"def f(n):\n    return n + {k}\n\ndef late(n):\n    return n * 10 + {k}\n")
        linecache.checkcache(str(path))
        space = {}
        exec(compile(path.read_text(), str(path), "exec"), space)
        f = space["f"]
        assert result(lambda n, f=f: f(n), 5) == 5 + k
        spaces.append(space)
        if k == 2:
            del f, space, spaces[1]
            gc.collect()
    assert [result(lambda n, f=s["late"]: f(n), 5) for s in spaces] == [50, 52, 53]


@clause("FN-2.source")
@pytest.mark.parametrize("before", [None, ["def f(n):\n", "    return n\n"], ["def f(n)\n"]],
                         ids=["none", "other", "wrong"])
def test_a_source_that_is_registered_later(before):
    text, name = "def f(n):\n    return n + 1\n", f"<registered later than {before}>"
    space = {"ct": ct}
    exec(compile(text, name, "exec"), space)
    f = space["f"]

    @ct.kernel
    def k(n, out):
        ct.store(out, 0, f(n))

    try:
        if before is not None:
            linecache.cache[name] = 9, None, before, name
        with pytest.raises((OSError, ct.TileError)) as found:
            accepts(k, 1, np.zeros(1, np.int32))
        assert not isinstance(found.value, ct.TileInternalError)
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        assert run(k, 1, np.zeros(1, np.int32)).tolist() == [2]
    finally:
        linecache.cache.pop(name, None)


# ------------------------------------------------------------------ limits


def deep(n):
    return 0 if n == 0 else deep(n - 1)


@clause("CALL-4.depth", "ERR-6")
def test_the_exact_depth():
    @ct.kernel
    def k(n: ct.Constant):
        deep(n)

    accepts(k, 999)  # a thousand calls
    refuses("TileRecursionError", k, 1000)


def one_less(n):
    return n - 1


def deep_beside(n):
    return 0 if n == 0 else deep_beside(one_less(n))


@clause("CALL-4.depth", "ERR-6")
def test_the_exact_depth_with_calls_that_have_ended():
    @ct.kernel
    def k():
        deep_beside(1000)

    refuses("TileRecursionError", k)


@clause("EX-8.precedence", "EX-8.add", "EX-9.neg", "EX-2.tuple")
def test_deep_expressions():
    for text, want in (("+".join(["n"] * 700), 700), ("(" * 90 + "n" + "+1)" * 90, 91), ("-" * 900 + "n", 1),
                       ("max(n, " * 60 + "0" + ")" * 60, 1), ("n if n > 9 else " * 60 + "5", 5)):
        assert result(body("return " + text), 1) == want


@clause("ERR-12.line", "ERR-12.chain")
def test_errors_of_helpers_that_several_call():
    space = module("""
        def inner(x):
            return ct.exp(x)

        @ct.kernel
        def kern(x):
            inner(1.0)
            inner(2.0)
            inner(x)
            inner(None)
    """)
    e = refuses("TileTypeError", space["kern"], 1.0)
    text = str(e)
    assert e.loc.line == 3 and e.loc.function == "inner"
    assert "inner(None)" in text and "line 10, " in text and "line 9, " not in text


@clause("FN-6.reached", "CALL-3.unreached", "ST-8.untaken")
@pytest.mark.parametrize("before", [
    "return n", "while True:\n    pass", "for i in ct.static_iter((1, 2)):\n    while True:\n        pass",
    "if n > 0:\n    return n\nelse:\n    while True:\n        n = n + 1", "with m():\n    while True:\n        pass",
    "for i in ct.static_iter((1,)):\n    for j in ct.static_iter((1,)):\n        while True:\n            n = n * 2",
    "if True:\n    return n", "while True:\n    if n > 3:\n        return n\n    n = n + 1",
    "with m(), m():\n    return n", "while True:\n    with m():\n        while True:\n            pass",
    "with endless():\n    n = n + 1", "with m(), endless():\n    n = n + 1", "with endless(), m():\n    return n",
    "with endless_at_last():\n    n = 1", "with m():\n    with endless_at_last():\n        n = n + 1"])
def test_what_control_does_not_reach(before):
    """It is not compiled, so it has no errors; what comes before has."""
    @contextlib.contextmanager
    def m():
        yield 1

    @contextlib.contextmanager
    def endless():
        while True:
            pass
        yield

    @contextlib.contextmanager
    def endless_at_last():
        yield
        while True:
            pass

    names = {"m": m, "endless": endless, "endless_at_last": endless_at_last}
    f = body(f"{before}\nx = ct.exp(None)\nreturn x + 'a'", **names)
    takes(lambda n: f(n), 1)
    rejects("TileTypeError", body(f"ct.exp(None)\n{before}\nreturn n", **names), 1)

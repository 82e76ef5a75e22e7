"""One mistake gives one error: what uses a wrong expression has none of its own."""

import contextlib
import dataclasses
import re

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses
from conformance.harness.tile_code import body, module, rejects


@contextlib.contextmanager
def manager(x):
    yield x


@dataclasses.dataclass(frozen=True)
class Pair:
    x: object
    y: object = 2

    def both(self, z):
        return self.x, z

    def __getitem__(self, k):
        return self.x + k

    def __call__(self, k):
        return self.x + k

    def __setitem__(self, k, v):
        print(k + v)


def first(x, *rest, y=1, **more):
    return x


def added(x, y=1):
    return x + y


def pair_of(x):
    return Pair(x, lambda y: x + y)


# Uses of a wrong expression, each of which is wrong in no other way.
USES = """\
bad
bad + n
n + bad
bad @ bad
-bad
not bad
bad < n
n < bad
bad < n < 3
0 < bad < n
0 < n < bad
bad == n
bad is None
None is not bad
bad in (1, 2)
n in bad
1 in (bad, 2)
bad and n
n and bad
bad or n
n or bad
bad if n > 0 else n
n if n > 0 else bad
n if bad else n
bad.x
bad.x.y
bad.x(n)
bad(n)
bad(n)(n)
bad[0]
n[bad]
t[bad]
t[0, bad]
bad[bad]
t[bad:]
(1, 2)[bad]
(1, 2)[bad:]
(1, 2)[:1:bad]
(bad, n)[0] + 1
(n, bad)[1].x
(n, bad) + (n, n)
(bad,) * 2
(n, *bad)
(bad,)[0](n)
ct.exp(bad)
ct.exp(x=bad)
ct.add(n, bad)
ct.add(bad, n)
ct.add(n, y=bad)
ct.where(n > 0, bad, n)
ct.sum(t, axis=bad)
ct.cat((t, bad), 0)
ct.cat(bad, 0)
ct.reshape(t, bad)
ct.full(bad, n, ct.int32)
ct.full((2,), bad, ct.int32)
ct.full((2,), n, bad)
ct.zeros((2, bad), ct.int32)
ct.zeros(*bad)
ct.zeros(**bad)
t.reshape(bad)
t.astype(bad)
bad.astype(ct.int8)
ct.Tile.reshape(bad, (4,))
ct.reduce(t, 0, bad, 0)
ct.reduce(t, 0, lambda x, y: x + bad, 0)
ct.reduce(t, 0, lambda x, y: x + y, bad)
ct.scan(bad, 0, lambda x, y: x + y, 0)
ct.elementwise(bad)(t)
ct.elementwise(first)(t, bad)
ct.elementwise(lambda x: x + bad)(t)
ct.load(bad, 0, 4)
ct.load(a, bad, 4)
ct.load(a, 0, bad)
ct.load(a, (bad,), (4,))
ct.load(a, 0, 4, padding_mode=bad)
ct.store(bad, 0, t)
ct.store(a, bad, t)
ct.store(a, 0, bad)
ct.gather(a, bad)
ct.scatter(a, (t,), bad)
ct.atomic_add(a, bad, 1)
ct.atomic_add(a, 0, bad)
a.slice(0, bad, 2)
a.tiled_view(bad)
a.tiled_view((4,)).load(bad)
bad.tiled_view((4,)).load(0)
a.get_raw_memory().load_offset(bad)
abs(bad)
max(bad, n)
max(n, bad)
divmod(n, bad)
int(bad)
float(bad)
bool(bad)
str(bad) + "a"
repr(bad)
len(bad)
len((bad, 1)) + bad
tuple(bad)
slice(bad, 1, 2)
range(bad)
range(n, bad)
range(0, n, bad)
getattr(bad, "x")
getattr(n, bad)
print(bad)
print(n, bad, n)
print(f"{bad}")
print(f"{n} {bad:>4}" + "a")
ct.printf("%d", bad)
ct.printf(bad, n)
ct.assert_(bad)
ct.assert_(n > 0, bad)
ct.static_eval(bad)
ct.static_eval(bad + 1)
ct.static_eval((lambda: bad)())
ct.static_assert(bad)
ct.static_assert(True, bad)
first(bad)
first(n, bad) + 1
first(n, y=bad)
first(n, z=bad)
first(*bad)
first(**bad)
first(n, *(bad, 1))
added(bad)
added(n, bad) + added(bad, n)
added(y=bad, x=n)
added(added(bad))
bad(added(bad))
(lambda: bad)()
(lambda: bad + n)() + n
(lambda x=bad: x)()
(lambda x, y=bad: x + y)(n) + 1
(lambda x: x + bad)(n)
(lambda f: f(bad))(lambda x: x + 1)
Pair(bad)
Pair(bad).x
Pair(bad).x + 1
Pair(bad)[n]
Pair(bad)(n)
Pair(n, bad).both(n)
Pair(n).both(bad)[1] + 1
Pair(x=bad) == Pair(n)
Pair(bad).both
pair_of(bad).x
pair_of(bad).y(n)
pair_of(n).y(bad)
dataclasses.replace(bad, x=n)
dataclasses.replace(Pair(n), x=bad).x + 1
dataclasses.replace(Pair(bad), y=n).x
tuple(bad for i in ct.static_iter((1, 2)))
tuple(i + bad for i in ct.static_iter((1, 2)))
tuple(i for i in ct.static_iter(bad))
tuple(i for i in ct.static_iter((bad, 1)))
tuple(i for i in ct.static_iter((1, 2)) if bad)
tuple(i for i in ct.static_iter((1, 2)) if i > bad)
tuple((i, j) for i in ct.static_iter((1, 2)) for j in ct.static_iter((bad,)))
""".splitlines()
STATEMENTS = [
    "x, y = bad", "x, (y, z) = 1, bad\ny + z", "x = y = bad\nx + y", "bad += 1\nbad + 1", "n += bad\nn + 1",
    "bad[0] = n", "bad[0] += n", "Pair(n)[bad] = n", "Pair(n)[0] = bad", "x: int = bad\nx + 1", "return bad",
    "return bad, n", "return Pair(bad)", "return lambda: bad", "return bad + 1",
    "if bad:\n    x = 1\nelse:\n    x = 2\nx + 1", "if bad:\n    pass", "while bad:\n    n = n + 1\nn + 1",
    "if n > 0:\n    x = bad\nelse:\n    x = 1\nx + 1", "if n > 0:\n    x = 1\nelse:\n    x = bad\nx + 1",
    "if n > 0:\n    x = bad\nelse:\n    x = bad\nx + 1", "if n > 0:\n    bad = 1\nbad + 1",
    "if n > 0:\n    x = bad, 1\nelse:\n    x = 1, 1\nx[0] + 1", "if n > 0:\n    return bad\nreturn 1",
    "for i in bad:\n    i + 1", "for i in range(bad):\n    i + 1", "for i in range(n, bad, 2):\n    n = n + i",
    "for i in range(n):\n    bad = bad + i\nbad + 1", "for i in range(n):\n    n = bad\nn + 1",
    "for i in range(n):\n    x = bad + i\n    x + 1", "for i in range(n):\n    if i > bad:\n        break\nn + 1",
    "while n > 0:\n    n = bad\nn + 1", "while n > 0:\n    n = n - 1\n    bad = bad + n\nbad + 1",
    "while n > bad:\n    n = n + 1\nn + 1", "while True:\n    n = bad\n    break\nn + 1",
    "while True:\n    if n > 3:\n        x = bad\n        break\n    n = n + 1\nx + 1",
    "while n > 0:\n    if n > 5:\n        n = bad\n        continue\n    n = n - 1\nn + 1",
    "for i in ct.static_iter(bad):\n    i + 1", "for i in ct.static_iter((bad, 1)):\n    i + 1",
    "for i, j in ct.static_iter(((1, 2), bad)):\n    i + j",
    "for i in ct.static_iter((1, 2)):\n    bad = bad + i\nbad + 1",
    "with bad:\n    n + 1", "with bad as x:\n    x + 1", "with m(bad) as x:\n    x + 1", "with m(n) as x:\n    x + bad",
    "with m(bad) as (x, y):\n    x + y", "x = m(bad)\nwith x as y:\n    y + 1",
    "raise ct.static_exception(bad)", "def g(x=bad):\n    return x + 1\ng()", "def g():\n    return bad + 1\ng() + g()",
    "def g():\n    return lambda x: x + bad\ng()(n) + 1",
    "def g(x):\n    return h(x) + bad\ndef h(x):\n    return x\ng(n)",
    "def g(x):\n    return lambda: x\nh = g(bad)\nk = lambda: h() + 1\nk() + 1",
    "def g(x):\n    return (lambda: x, n)\nif n > 0:\n    h = g(bad)\nelse:\n    h = g(n)\nh[0]() + 1",
    "def g(x):\n    return lambda y: x + y\nh = g(bad)\nfor i in range(n):\n    h = g(i)\nh(n) + 1",
    "if n > 0:\n    x = Pair(bad)\nelse:\n    x = Pair(n)\nx.x + 1",
    "x = Pair(bad)\nfor i in range(n):\n    x = Pair(i)\nx.x + 1",
    "x = (lambda: bad)()\ny = x\ny + 1", "t = t + bad\nct.store(a, 0, t)\nt.shape", "a = bad\na.shape[0] + 1"]
NAMES = {"m": manager, "Pair": Pair, "first": first, "added": added, "pair_of": pair_of, "dataclasses": dataclasses}
MISTAKES = ["nowhere", "ct.exp(None)", "n + 'a'", "n.nothing", "1 // 0", "ct.zeros((3,), ct.int8)", "pair_of(n).z"]


def shows_only(e, line, text):
    """Assert that the whole text of an error is about one line of a function."""
    assert not isinstance(e, ct.TileInternalError) and e.loc.line == line, f"line {e.loc.line}: {text}\n\n{e}"
    shown = {int(k) for k in re.findall(r"lines? (\d+)[^\n]* in f\b", str(e))}
    assert shown <= {line}, f"{text}\n\n{e}"


def given(lines, mistake):
    return f"t = ct.arange(4, dtype=ct.int32)\nbad = {mistake}\n{lines}\nreturn n"


def of_array(text):
    """A kernel whose function gets a number and an array."""
    f = module("def f(n, a):\n" + "".join(f"    {line}\n" for line in text.splitlines()), **NAMES)["f"]

    @ct.kernel
    def k(n, a):
        f(n, a)
    return k


@clause("ERR-12.once", "ERR-12.loc", "ERR-12.line")
@pytest.mark.parametrize("lines", [*USES, *STATEMENTS])
def test_one_mistake(lines):
    for mistake in MISTAKES[:1] if lines in USES else MISTAKES[:2]:
        text = given(lines, mistake)
        shows_only(refuses("TileError", of_array(text), 1, np.zeros(4, np.int32)), 3, text)


@clause("ERR-12.once", "ERR-12.loc", "ERR-12.line")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_uses_one_after_another(mistake):
    """All of them in one function."""
    skipped = ("ct.static", "tuple(")  # after an error in these, nothing else need be compiled
    text = given("\n".join(u for u in USES if not u.startswith(skipped)), mistake)
    shows_only(refuses("TileError", of_array(text), 1, np.zeros(4, np.int32)), 3, mistake)


@contextlib.contextmanager
def twice(x):
    yield x
    yield x


@contextlib.contextmanager
def ended(x):
    yield x
    return


WRONG = {  # by the names that they would assign, statements that are wrong themselves
    "x": [
        "x = ct.exp(None)", "x: int = ct.exp(None)", "x = -None", "x = n()", "x = lambda y=nowhere: y",
        "def x(y=nowhere): return y", "x = {}", "(x := 1)", "import x", "import x.y", "import z as x",
        "from z import x", "class x: pass", "async def x(): pass", "@ct.function\ndef x(): pass", "with n as x: pass",
        "with m() as x: pass", "with twice(n) as x: pass", "with ended(n) as x: pass", "with m as x: pass",
        "x = yield n", "match n:\n    case 1 as x: pass", "x = ct.static_eval(1, 2)",
        "x = ct.static_iter((1,))", "x = ct.static_eval([1])", "global x", "with n as z, m(n) as x: pass"],
    "xy": [
        "x, y = 1, 2, 3", "x, y = 1,", "x, y = n", "x, (y, z) = 1, 2", "[x, y] = None", "x = y = ct.exp(None)",
        "x, y = ct.exp(None), n + 'a'", "x, y = (i for i in (1, 2))", "x = y = [1, 2]", "with None as (x, y): pass",
        "with m(1, 2, 3) as (x, y): pass", "with m(n) as (x, y): pass", "with m(nowhere) as x, m(x) as y: pass",
        "with m(n) as x, nowhere as y: pass", "with nowhere as x, x as y: pass", "x, *y = 1, 2",
        "try:\n    x = y = 1\nexcept ValueError as z: pass", "match n:\n    case [x, *y]: pass",
        "match n:\n    case {'a': x, **y}: pass", "x, y = ct.static_eval([1, 2])"],
}


@clause("ERR-12.once", "ERR-12.line")
@pytest.mark.parametrize("names, lines", [(names, lines) for names, of in WRONG.items() for lines in of])
def test_what_a_wrong_statement_assigns(names, lines):
    """What uses the names later has no error."""
    uses = [f"{x} + n" for x in names] + [f"ct.exp({x})" for x in names]
    f = body("\n".join([lines, *uses, "return n"]), **NAMES, twice=twice, ended=ended)
    e = rejects("TileError", f, 1)
    shown = {int(k) for k in re.findall(r"lines? (\d+)[^\n]* in f\b", str(e))}
    assert not isinstance(e, ct.TileInternalError) and max(shown) <= 1 + len(lines.splitlines()), f"{lines}\n\n{e}"


@clause("ERR-12.once")
def test_a_mistake_in_a_function_that_is_called_again():
    """With equal arguments, others, and in other functions: the text says it once for each line."""
    f = body("""
        def g(x):
            return ct.exp(None) + x
        a, b, c = g(n), g(n), g(n + 1)
        h = lambda x: g(x)
        return a + b + c + h(n) + h(1.0) + g(g(n))
    """)
    e = rejects("TileTypeError", f, 1)
    assert e.loc.line == 3 and str(e).count(e.message) == 1, str(e)


def endless(n):
    return endless(n + 1)


# Mistakes after which a compiler may stop.
ENDING = ["endless(n)", "ct.static_assert(False)", "ct.static_assert(1 > 2, 'no')", "ct.static_eval(1 // 0)",
          "x = ct.static_eval(nowhere)", "raise ct.static_exception(ValueError('no'))", "ct.static_eval(ct.exp(n))",
          "for i in ct.static_iter(range(2000)):\n    pass", "for i in ct.static_iter(1 // 0):\n    pass",
          "ct.static_eval(ct.static_eval(1))", "for i in ct.static_iter(([1],)):\n    pass"]


@clause("ERR-12.line", "ERR-12.loc", "ERR-8.eval", "ERR-8.exception", "ERR-8.assert", "ERR-6")
@pytest.mark.parametrize("lines", ENDING)
def test_the_first_of_several_mistakes(lines):
    """It is the error that is raised, whatever else the text says."""
    for then in ("ct.exp(None)", "nowhere", "ct.static_assert(False)", "ct.static_eval(1 // 0)"):
        f = body(f"{lines}\n{then}\nreturn n", endless=endless)
        e = rejects("TileError", f, 1)
        assert e.loc.line in (2, 3) or e.loc.function == "endless", str(e)
        f = body(f"n.nothing\n{lines}\nreturn n", endless=endless)
        assert rejects("TileTypeError", f, 1).loc.line == 2


@clause("ERR-12.line", "ERR-12.message")
@pytest.mark.parametrize("mistake", ["ct.exp(None)", "n + 'a'", "x = n.nothing", "ct.zeros((3,), ct.int8)"])
def test_equal_mistakes_on_several_lines(mistake):
    e = rejects("TileError", body(f"{mistake}\n{mistake}\nif n > 0:\n    {mistake}\nreturn n"), 1)
    assert e.loc.line == 2 and str(e).startswith(e.message)


@clause("ERR-12.once", "ERR-12.line")
@pytest.mark.parametrize("lines", [
    "def g():\n    x = nowhere\n    return lambda y: ct.exp(None) + x\nh = g()\nh(1)",
    "def g(x):\n    z = x + nowhere\n    def inner(y):\n        return y.nothing, z\n"
    "    return inner, 1\nh = g(n)\nh[0](n)",
    "def g():\n    x = nowhere\n    f = lambda: x\n    return lambda y: (f(), ct.exp(None))\nh = g()\nh(1)",
    "def g(x):\n    return lambda y: ct.exp(None) + x\nh = g(nowhere)\nh(1)"])
def test_mistakes_in_functions_that_hold_a_wrong_value(lines):
    """The first mistake is where the value comes from."""
    e = rejects("TileSyntaxError", body(f"{lines}\nreturn n"), 1)
    assert "nowhere" in lines.splitlines()[e.loc.line - 2] and "nowhere" in str(e).splitlines()[0]

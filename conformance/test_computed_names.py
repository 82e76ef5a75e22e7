"""What static code looks up by names that it computes: a change counts, wherever the function that looks up is from."""


import pytest

from conformance.harness.api import clause
from conformance.harness.read_module import KERNEL, stored
from conformance.harness.tile_code import Counter, module

SOURCE = """
import builtins
import functools
import inspect
import operator
import types
from inspect import getattr_static, getmembers
from operator import attrgetter, methodcaller

found, other, at = "".join(["fou", "nd"]), "".join(["oth", "er"]), "".join(["a", "t"])

class Base:
    def found(self):
        return 3

class Own(Base):
    number = 3

own = Own()
inner = types.ModuleType("inner")
inner.found = lambda: 3
held = [getattr, inspect.getattr_static, vars, operator.attrgetter]
getter, caller = attrgetter(found), methodcaller(found)
static = functools.partial(getattr_static, own)

def applied(f, *args):
    return f(*args)

def chosen(k):
    return held[k]

def found_global():
    return 3

def by_globals():
    return globals()["".join(["found", "_global"])]()

def by_eval():
    return eval("".join(["found", "_global()"]))

def by_exec():
    made = {}
    exec("".join(["x = found", "_global()"]), globals(), made)
    return made["x"]

def through(name, *args):
    import builtins, inspect, operator
    module = {"b": builtins, "i": inspect, "o": operator}[name[0]]
    return getattr(module, name[2:])(*args)

def by_builtins():
    import builtins
    return builtins.getattr(own, found)()

def by_operator():
    import operator
    return operator.attrgetter(found)(own)()

def by_inspect():
    import inspect as other
    return other.getattr_static(own, found)(own)

def by_variable():
    module = inspect
    return module.getattr_static(own, found)(own)

def globals_of_builtins():
    import builtins
    return builtins.globals()["".join(["found", "_global"])]()

def eval_of_builtins():
    return builtins.eval("".join(["found", "_global()"]))
"""
OF_OBJECTS = [  # ways to call own.found
    "getattr(own, found)()", "getattr(own, found, None)()", "getattr(own, 'fou' + 'nd'[:2])()",
    "operator.attrgetter(found)(own)()", "attrgetter(found)(own)()", "operator.methodcaller(found)(own)",
    "methodcaller(found)(own)", "inspect.getattr_static(own, found)(own)", "getattr_static(Own, found)(own)",
    "dict(inspect.getmembers(own))[found]()", "dict(getmembers(Own))[found](own)", "vars(Base)[found](own)",
    "Base.__dict__[found](own)", "own.__getattribute__(found)()", "object.__getattribute__(own, found)()",
    "[getattr(own, n) for n in dir(own) if n == found][0]()", "getter(own)()", "caller(own)",
    "applied(getattr, own, found)()", "applied(getattr_static, own, found)(own)",
    "applied(operator.attrgetter(found), own)()",
    "applied(vars, Base)[found](own)", "held[0](own, found)()", "held[1](own, found)(own)", "chosen(0)(own, found)()",
    "chosen(1)(own, found)(own)", "chosen(2)(Base)[found](own)", "chosen(3)(found)(own)()", "static(found)(own)",
    "(lambda f: f(own, found))(getattr)()", "by_builtins()", "by_operator()",
    "by_inspect()", "by_variable()", "builtins.getattr(own, found)()", "through('b.getattr', own, found)()",
    "through('i.getattr_static', own, found)(own)", "through('o.attrgetter', found)(own)()"]
OF_MODULES = [  # ways to call inner.found
    "getattr(inner, found)()", "operator.attrgetter(found)(inner)()", "operator.methodcaller(found)(inner)",
    "getattr_static(inner, found)()", "dict(inspect.getmembers(inner))[found]()", "vars(inner)[found]()",
    "inner.__dict__[found]()", "inner.__getattribute__(found)()", "getter(inner)()", "caller(inner)",
    "applied(getattr, inner, found)()", "[getattr(inner, n) for n in dir(inner) if n == found][0]()"]
NEW = [  # whether there is a name that is new
    "8 if hasattr({}, other) else 3", "8 if other in dir({}) else 3", "getattr({}, other, 3)",
    "8 if other in dict(inspect.getmembers({})) else 3", "getattr_static({}, other, 3)"]
CHANGES = [*((e, "Base.found = lambda self: 8") for e in OF_OBJECTS),
           *((e, "inner.found = lambda: 8") for e in OF_MODULES),
           *((e.format("own"), "Base.other = 8") for e in NEW), *((e.format("Own"), "Own.other = 8") for e in NEW),
           *((e.format("inner"), "inner.other = 8") for e in NEW),
           *((f"{e}()", "def found_global(): return 8") for e in (
               "by_globals", "by_eval", "by_exec", "globals_of_builtins", "eval_of_builtins"))]


@clause("CONST-4.contents", "SEVAL-9.function", "SPEC-1.same")
@pytest.mark.parametrize("expression, change", CHANGES)
def test_what_is_looked_up(expression, change):
    """In the static code itself, and in a function that it calls."""
    for text, kernel in (("", KERNEL.format(expression)), (f"def helper():\n    return {expression}\n",
                                                           KERNEL.format("helper()"))):
        counter = Counter()
        space = module(SOURCE + text + kernel, hit=counter.hit)
        assert [stored(space["kern"]) for _ in range(2)] == [3] * 2 and counter.count == 1
        exec(change, space)
        assert [stored(space["kern"]) for _ in range(2)] == [8] * 2, text
        assert counter.count == 2


# ------------------------------------------------------------------ names that are written out

WRITTEN = """
import types
inner = types.ModuleType("inner")
inner.found = lambda: 3
number = [3]

class Own:
    def found(self):
        return 3

    def unread(self):
        return 3

own = Own()

def second(x, text):
    return number[0]

def second_by_name(x, text="a"):
    return second(x, "a") if text == "found" else text

class Called:
    def __call__(self, x, text):
        return number[0]

    def method(self, text, more="a"):
        return number[0]

called = Called()
"""


@clause("CONST-4.contents", "SEVAL-9.function", "SPEC-1.same")
@pytest.mark.parametrize("expression", [
    "second(own, 'found')", "second('found', 'found')", "second(second, 'found')", "second_by_name(own, 'found')",
    "called(own, 'found')", "called.method(own, 'found')", "(lambda x, y: number[0])(own, 'found')",
    "getattr(called, 'method')(own, 'found')", "max(second(own, 'found'), second(own, 'unread'))",
    "[second(own, 'found') for _ in (1,)][0]", "getattr(own, 'nothing', second(own, 'found'))"])
def test_functions_that_are_called_with_a_text(expression):
    """They are not getattr: what they read counts."""
    counter = Counter()
    space = module(WRITTEN + KERNEL.format(expression), hit=counter.hit)
    assert [stored(space["kern"]) for _ in range(2)] == [3] * 2 and counter.count == 1
    space["number"][0] = 8
    assert [stored(space["kern"]) for _ in range(2)] == [8] * 2 and counter.count == 2


@clause("SPEC-1.same")
@pytest.mark.parametrize("expression", [
    "getattr(own, 'found')()", "3 if hasattr(own, 'found') else 8", "getattr(inner, 'found')()",
    "getattr(own, 'found', 8)()",
    "(lambda: getattr(own, 'found')())()", "3 + hasattr(own, 'nothing') + hasattr(inner, 'none')"])
def test_names_that_getattr_is_given(expression):
    """Other members do not count."""
    counter = Counter()
    space = module(WRITTEN + KERNEL.format(expression), hit=counter.hit)
    for change in ("pass", "Own.unread = lambda self: 8", "inner.unread = lambda: 8", "Own.more = lambda self: 8"):
        exec(change, space)
        assert stored(space["kern"]) == 3 and counter.count == 1, change

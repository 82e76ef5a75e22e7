"""Which functions look up names that they compute."""

import builtins
import operator
import types

import pytest

from cutile.front import computed_names
from cutile.front.bytecode_names import uses

FUNCTIONS = (types.FunctionType, property)
CONSTANT = [
    "getattr(x, 'a')", "getattr(x, 'a', None)", "hasattr(x, 'a')", "getattr(x.y, 'a')", "getattr(x[0], 'a', x)",
    "getattr(x, 'a') + getattr(y, 'b')", "[getattr(z, 'a') for z in x]", "(lambda: getattr(x, 'a'))()",
]
COMPUTED = [
    "getattr(x, y)", "getattr(x, 'a' + y)", "getattr(x, f'{y}')", "map(getattr, x, y)", "getattr(*x)",
    "getattr(x, 'a' if y else 'b')", "[getattr]", "[getattr(z, z) for z in x]", "(lambda: getattr(x, y))()",
    "getattr(x, 'a') + getattr(x, y)", "getattr(x.f('q', 'a'), y)", "getattr(x, y, 'a')",
    "hasattr(x, y.z)", "hasattr(x, x.f('a'))", "(getattr, x, 'a')", "f(x, 'a', getattr)",
]


def constant(text):
    code = compile(text, "t", "eval")
    return all(computed_names.reads_constant_names(getattr(builtins, u.name), code, u) for u in uses(code)
               if u.name in ("getattr", "hasattr"))


@pytest.mark.parametrize("text", CONSTANT)
def test_names_that_stand_in_the_code(text):
    assert constant(text)


@pytest.mark.parametrize("text", COMPUTED)
def test_names_that_are_computed(text):
    assert not constant(text)


def test_functions_that_look_up():
    assert all(map(computed_names.looks_up, (getattr, vars, globals, operator.attrgetter, operator.attrgetter("a"))))
    assert not any(map(computed_names.looks_up, (len, "getattr", operator.itemgetter(1), print)))
    assert computed_names.looks_up_globals(eval) and not computed_names.looks_up_globals(getattr)


def test_names_of_a_class_that_code_may_notice():
    class A:
        value = 1

        def method(self):
            pass

        def other(self):
            pass

        def __len__(self):
            return 1

    some = computed_names.noticed_names({"other", "missing"}, FUNCTIONS)
    every = computed_names.noticed_names(None, FUNCTIONS)
    before = some(A)
    assert {"value", "other", "__len__"} <= {*before} and "method" not in before and "method" in every(A)
    A.more = lambda self: 1
    A.__annotations__  # Python makes it now
    assert some(A) == before and "more" in every(A)
    A.missing = lambda self: 1
    assert "missing" in some(A)
    A.__bool__ = lambda self: True
    assert "__bool__" in some(A)
    del A.value
    assert "value" not in some(A)

"""Private names of classes, as CPython mangles them."""

import ast
import sys
import types

import pytest

from cutile.front.private_names import with_private_names

SOURCES = [
    "class A:\n def f(self): return self.__x + __y(self.z, __k=1)",
    "class __A:\n def f(self, __a, *, __b=1): return __a + __b",
    "class __:\n def f(self): return self.__x",
    "class A:\n class __B:\n  def f(self): return self.__x",
    "class A:\n def f(self):\n  def __g(__z): return __z.__x\n  return __g(self)",
    "class A:\n f = lambda self: self.__x + (lambda __y: __y)(1)",
    "def h():\n class A:\n  def f(self): return self.__x\n return A",
    "class A:\n def f(self): return self.__x__ + __doc__ + self._x + _x",
    "def f(self): return self.__x + __y",
    "def h():\n def f(self): return self.__x\n return f",
    "class A:\n def h(self):\n  def g():\n   def f(x): return x.__y\n   return f\n  return g",
]


def codes(code):
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield c
            yield from codes(c)


@pytest.mark.parametrize("source", SOURCES)
def test_names_are_those_of_the_code(source):
    """A function with the names that Python reads compiles, outside of any class, to code with the same names."""
    [code] = [c for c in codes(compile(source, "s", "exec")) if c.co_name in ("f", "<lambda>") and c.co_firstlineno > 0
              and (c.co_name == "f" or "self" in c.co_varnames)]
    tree = ast.parse(source)
    before = ast.dump(tree)
    [node] = [n for n in ast.walk(tree) if getattr(n, "name", "") == "f" or isinstance(n, ast.Lambda)
              and n.args.args[0].arg == "self"]
    made = with_private_names(node, code)
    assert ast.dump(tree) == before  # others read it too
    body = ast.Expression(made) if isinstance(made, ast.Lambda) else ast.Module([made], [])
    space = compile(body, "s", "eval" if isinstance(made, ast.Lambda) else "exec")
    [again] = [c for c in space.co_consts if isinstance(c, types.CodeType)]
    assert again.co_varnames == code.co_varnames and set(again.co_names) == set(code.co_names)
    assert [c.co_varnames for c in codes(again)] == [c.co_varnames for c in codes(code)]
    assert [set(c.co_names) for c in codes(again)] == [set(c.co_names) for c in codes(code)]


def test_functions_without_private_names_are_not_copied():
    tree = ast.parse("class A:\n def f(self): return self.x")
    [code] = list(codes(compile(tree, "s", "exec")))[1:]
    assert code.co_name == "f" and with_private_names(tree.body[0].body[0], code) is tree.body[0].body[0]


def test_expressions_that_nest_deeply():
    source = "class A:\n def f(self): return " + "-" * (sys.getrecursionlimit() // 4) + "self.__x"
    tree = ast.parse(source)
    code = list(codes(compile(tree, "s", "exec")))[1]
    names = {n.attr for n in ast.walk(with_private_names(tree.body[0].body[0], code)) if isinstance(n, ast.Attribute)}
    assert names == {"_A__x"}

"""The names and attributes that bytecode reads from outside itself."""

import pytest

from cutile.front.bytecode_names import FREE, GLOBAL, IMPORT, mentioned, uses


def of(text):
    return uses(compile(text, "<test>", "eval"))


def test_attributes_count_as_far_as_nothing_else_happens():
    assert of("a.b.c") == ((GLOBAL, "a", ("b", "c")),)
    assert of("a.b[0].c") == ((GLOBAL, "a", ("b",)),)
    assert of("a.b(c.d).e") == ((GLOBAL, "a", ("b",)), (GLOBAL, "c", ("d",)))
    assert of("(a + b).c") == ((GLOBAL, "a", ()), (GLOBAL, "b", ()))
    assert set(of("a.b if a else a.c")) == {(GLOBAL, "a", ("b",)), (GLOBAL, "a", ()), (GLOBAL, "a", ("c",))}


def test_functions_inside_count():
    assert set(of("[x.y for x in a.b if c.d]")) == {(GLOBAL, "a", ("b",)), (GLOBAL, "c", ("d",))}
    assert set(of("(lambda x: x.y + a.b)(c)")) == {(GLOBAL, "a", ("b",)), (GLOBAL, "c", ())}


def test_variables_of_outer_functions_and_imports():
    config, other = object(), object()

    def f(x):
        import os.path
        from sys import path

        def g():
            local = x
            return config.a.b, local, os, path

        return [other for _ in x], g

    assert set(uses(f.__code__)) == {(FREE, "config", ("a", "b")), (FREE, "other", ()), (IMPORT, "os.path", ()),
                                     (IMPORT, "sys", ())}


def test_names_of_attributes():
    def f(x):
        x.a.b().c = 1
        del x.d
        f.e(getattr(x, "g"), key=x, text="no name")
        return [y.h for y in x]

    read = mentioned(f.__code__)
    assert {"a", "b", "e", "g", "h"} <= read
    assert not {"f", "getattr", "no name", "c", "d"} & read


SETTING = {  # statements, and the attributes or names that they set
    "x.a = 1": {"a"}, "del x.b": {"b"}, "class C:\n  c = 1": {"c"}, "class C:\n  del d": {"d"},
    "global e; e = 1": {"e"}, "global f; del f": {"f"},
}


@pytest.mark.parametrize("text", SETTING)
def test_every_way_of_setting(text):
    space = {}
    exec("def function(x):\n" + "".join(f"  {line}\n" for line in text.splitlines()), space)
    assert not SETTING[text] & mentioned(space["function"].__code__)

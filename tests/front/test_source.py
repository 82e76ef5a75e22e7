import ast
import functools
import importlib
import importlib.util
import linecache
import os
import sys
import time

import numpy as np
import pytest

import cutile as ct
from cutile.front.source import assigned_names, definition_of
from tests.front.compiling import cell, constant, result


def source_of(fn) -> str:
    d = definition_of(fn)
    return ast.get_source_segment("".join(d.lines), d.node)


# Two functions that begin on one line, and more of the kind.
first, second = (lambda x: x + 1), (lambda x: x + 2)
same, again = (lambda x: x), (lambda y: y)
nested = lambda x: (lambda x: x * 3)(x)
zero, one, six, last = (lambda x: 0), (lambda x: 1), (lambda x: 2 * 3), (lambda x: True)


def test_lambdas_of_one_line_are_told_apart():
    assert source_of(first) == "lambda x: x + 1"
    assert source_of(second) == "lambda x: x + 2"
    assert source_of(same) == "lambda x: x"
    assert source_of(again) == "lambda y: y"
    assert source_of(nested) == "lambda x: (lambda x: x * 3)(x)"


def test_lambdas_that_return_constants_are_told_apart():
    """Some versions of Python 3.12 give their code no positions."""
    assert list(map(source_of, (zero, one, six, last))) == [
        "lambda x: 0", "lambda x: 1", "lambda x: 2 * 3", "lambda x: True"]


def plus_one(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs) + 1
    return wrapper


@plus_one
def decorated(x, *, k=2):
    return x * k


class Namespace:
    def method(self, __private):
        return __private

    def __hidden(self):
        return 1

    hidden = __hidden


def test_decorated_functions_methods_and_mangled_names():
    assert source_of(decorated).startswith("def wrapper(")  # FN-5: the wrapper is what is called
    assert source_of(decorated.__wrapped__).startswith("def decorated(")
    assert source_of(Namespace.method).startswith("def method(")
    assert source_of(Namespace.hidden).startswith("def __hidden(")


def test_wraps_decorator_runs():  # FN-5
    assert result(lambda x: decorated(x, k=5), 3) == 16


@plus_one
@ct.function
def decorated_tile_function(x):
    return x * 2


def test_a_decorator_over_a_tile_function_runs():
    """functools.wraps gives it all attributes of the function."""
    assert result(lambda x: decorated_tile_function(x), 3) == 7  # FN-5


def test_closure_of_a_decorator_is_its_own():  # FN-5
    def adding(n):
        def decorate(fn):
            @functools.wraps(fn)
            def wrapper(x):
                return fn(x) + n
            return wrapper
        return decorate

    @adding(10)
    @adding(5)
    def f(x):
        return x

    assert constant(f, 1) == 16


def test_locals():
    def f(a, /, b, *c, d, **e):
        g = h = 1
        (i, [j]), k = a
        for n in b:
            with c as o:
                p: int = 1
        q: int

        def r():
            s = 1
        t = [u for u in b]
        v += lambda: w

    assert definition_of(f).locals == set("abcdeghijknoprtv")


def test_assigned_names_leave_out_inner_scopes():
    body = ast.parse("def f():\n x = 1\ny = lambda: (z := 1)\nw = tuple(q for q in p)").body
    assert assigned_names(body) == {"f", "y", "w"}


def test_span_counts_characters_not_bytes():
    space = cell("""
        def k():
            s = "größe: µ"; y = undefined
    """)
    d = definition_of(space["k"])
    name = d.node.body[1].value
    span = d.span(name)
    assert span.source_line()[span.col:span.end_col] == "undefined"


# ------------------------------------------------------------------ where Python cannot show the source [FN-2]


def kernel_of(source: str, filename: str):
    space = {"ct": ct}
    exec(compile(source, filename, "exec"), space)
    return space["k"]


def test_no_source_at_all():
    k = kernel_of("def k():\n    pass\n", "<nowhere>")
    with pytest.raises(ct.TileSyntaxError, match="Python cannot show its source") as e:
        definition_of(k)
    assert "k (<nowhere>, line 1)" in e.value.message
    assert "linecache.cache" in e.value.help
    with pytest.raises(ct.TileSyntaxError):
        ct.launch(None, (1,), ct.kernel(k), ())


def test_source_in_linecache():
    assert constant(cell("def f(x): return x + 1")["f"], 1) == 2


def test_helper_without_source_is_reported_at_its_call():
    helper = kernel_of("def k():\n    pass\n", "<nowhere>")

    def f():
        return helper()

    with pytest.raises(ct.TileSyntaxError) as e:
        constant(f)
    assert e.value.loc.function == "f"


def test_cell_that_was_replaced():
    old = cell("def f(x): return x + 1")["f"]
    name = old.__code__.co_filename
    for new in ("def f(x): return x + 2", "def g(x): return x", "def f(x): return (x +"):
        linecache.cache[name] = (len(new), None, [new], name)
        with pytest.raises(ct.TileSyntaxError, match="has changed since it was defined|no longer parses"):
            definition_of(old)


def test_file_that_was_edited(tmp_path):
    path = tmp_path / "edited_kernels.py"
    path.write_text("import cutile as ct\n\ndef f(x):\n    return x + 1\n")
    spec = importlib.util.spec_from_file_location("edited_kernels", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    assert constant(module.f, 1) == 2
    path.write_text("import cutile as ct\n\ndef f(x):\n    return x + 7\n")
    os.utime(path, (time.time() + 10,) * 2)
    linecache.checkcache(str(path))
    with pytest.raises(ct.TileSyntaxError, match="has changed since it was defined"):
        definition_of(module.f)


def test_module_that_was_loaded_again(tmp_path, monkeypatch):
    """As importlib.reload and %autoreload do: what linecache keeps of the file is older than the function."""
    text = "def f(x):\n    def twice(y):\n        return y * 2\n    return twice(x)\n"
    file = tmp_path / "loaded_again.py"
    file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import loaded_again as m

    assert constant(m.f, 3) == 6
    for new, gives in ((text.replace("* 2", "* 5"), 15), ("# moved\n" + text, 6), (text + "#\n", 6)):
        file.write_text(new)
        importlib.reload(m)
        assert constant(m.f, 3) == gives


def test_change_of_a_nested_function(tmp_path, monkeypatch):
    """The text was edited before it was first read: the function that runs is the older one."""
    file = tmp_path / "nested_change.py"
    file.write_text("def f(x):\n    return (lambda y: y * 2)(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import nested_change as m

    file.write_text("def f(x):\n    return (lambda y: y * 5)(x)\n")
    with pytest.raises(ct.TileSyntaxError, match="source has changed"):
        definition_of(m.f)


def test_rewritten_asserts_are_no_change():
    """Test tools rewrite assert statements: the error must be about assert, not about the source."""
    def f(x):
        assert x

    assert definition_of(f).name == "f"


def test_a_newer_file_with_an_older_time(tmp_path, monkeypatch):
    """As rsync -t, mv, cp -p or unpacking an archive leave it."""
    text = "import cutile as ct\n\n\ndef f(x):\n    return x + 1\n\n\n" \
           "@ct.kernel\ndef k(a, c):\n    ct.store(c, 0, f(ct.load(a, 0, 4)))\n"
    file = tmp_path / "moved_in_place.py"
    file.write_text(text)
    os.utime(file, (time.time() - 1e6,) * 2)
    monkeypatch.syspath_prepend(tmp_path)
    import moved_in_place as m

    ct.launch(None, (1,), m.k, (np.zeros(4, np.float32), np.zeros(4, np.float32)))
    other = tmp_path / "other"
    other.write_text(text.replace("x + 1", "x - 1") + "#\n")
    os.utime(other, (time.time() - 5e5,) * 2)
    other.replace(file)
    linecache.checkcache()  # as each traceback does that is printed
    with pytest.raises(ct.TileSyntaxError, match="source has changed"):
        ct.launch(None, (1,), m.k, (np.zeros(4), np.zeros(4)))

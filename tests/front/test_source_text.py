"""The source text of functions [FN-2]."""

import __future__

import ast
import functools
import gc
import importlib.machinery
import linecache
import os
import sys
import threading
import time
import types
import weakref
import zipfile
import zipimport

import numpy as np
import pytest

import cutile as ct
from cutile.front import source_text
from cutile.front.source_text import definition_of
from tests.front.compiling import cell, constant, result


@pytest.fixture(autouse=True)
def lines_of_others():
    """Restores in linecache what other tests registered when they were imported; tests here clear it."""
    before = dict(linecache.cache)
    yield
    linecache.cache.update(before)


def source_of(fn) -> str:
    d = definition_of(fn)
    return ast.get_source_segment("".join(d.lines), d.node)


# Sources with several functions on one line.
first, second = (lambda x: x + 1), (lambda x: x + 2)
same, again = (lambda x: x), (lambda y: y)
twins = (lambda x: x.dtype.nope), (lambda x: x.dtype.nope)
nested = lambda x: (lambda x: x * 3)(x)
zero, one, six, last = (lambda x: 0), (lambda x: 1), (lambda x: 2 * 3), (lambda x: True)


def test_lambdas_of_one_line_are_told_apart():
    assert source_of(first) == "lambda x: x + 1"
    assert source_of(second) == "lambda x: x + 2"
    assert source_of(same) == "lambda x: x"
    assert source_of(again) == "lambda y: y"
    assert source_of(nested) == "lambda x: (lambda x: x * 3)(x)"


def test_equal_lambdas_of_one_line_stand_at_their_places():
    assert [definition_of(f).node.col_offset for f in twins] == [9, 35]


def test_lambdas_that_return_constants_are_told_apart():
    """In some versions of Python 3.12 their code has no positions."""
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
    assert source_of(decorated).startswith("def wrapper(")  # FN-5: the wrapper is called
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
    """functools.wraps copies all attributes of the function."""
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


def test_module_that_was_loaded_again(tmp_path, monkeypatch):
    """As importlib.reload and %autoreload do: linecache has an older text than the function."""
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
    """The file was edited before its text was read: the function that runs is older than the text."""
    file = tmp_path / "nested_change.py"
    file.write_text("def f(x):\n    return (lambda y: y * 2)(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import nested_change as m

    file.write_text("def f(x):\n    return (lambda y: y * 5)(x)\n")
    with pytest.raises(ct.TileSyntaxError, match="source has changed"):
        definition_of(m.f)


def with_text(code_of, text, k="k"):
    """A function of another text, on the same lines, than its file has."""
    f = cell(text)[k]
    return types.FunctionType(cell(code_of)[k].__code__.replace(co_filename=f.__code__.co_filename), f.__globals__)


def test_an_indented_docstring_is_no_change_but_a_constant_is():
    """Tools that compile single functions of a class indent them otherwise."""
    assert definition_of(with_text('def k():\n    """a\n    b"""\n    return 5', 'def k():\n    """a\n  b"""\n    return 5'))
    for text in ("def k(): return {} + k", "def k():\n    'text'\n    return {} + k"):
        with pytest.raises(ct.TileSyntaxError, match="has changed"):
            definition_of(with_text(text.format(5), text.format(6)))


def test_texts_that_were_registered_meanwhile_are_tried():
    f, g = (cell(f"def k(): return {n}")["k"] for n in (1, 2))
    assert source_text._find(f, source_text._texts_of(g)).lines == ["def k(): return 1"]


LOADERS = [  # and whether they may compile another text than the file's
    (None, False), (importlib.machinery.BuiltinImporter, False),
    (importlib.machinery.SourceFileLoader("m", "m.py"), False),
    (zipimport.zipimporter.__new__(zipimport.zipimporter), False), (object(), True),
]


@pytest.mark.parametrize("loader, may", LOADERS, ids=lambda x: type(x).__name__)
def test_loaders_that_may_rewrite(loader, may):
    f = types.FunctionType(source_of.__code__, {"__loader__": loader})
    assert source_text._may_be_rewritten(f) is may


def test_rewritten_asserts_are_no_change():
    """Test tools rewrite assert statements: the error must be about assert, not about the source."""
    def f(x):
        assert x

    assert definition_of(f).name == "f"


# ------------------------------------------------------------------ texts that change while a program runs

HELPER = """
def scaled(x):
    return x * 2
"""
KERNEL = """
@ct.kernel
def k(a, n: ct.Constant[int]):
    ct.store(a, 0, scaled(ct.load(a, 0, (n,))))
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a module under a new name and import it; the module and its path."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = (f"text_of_{tmp_path.name}_{i}" for i in range(9))

    def write(text: str):
        path = tmp_path / f"{next(names)}.py"
        path.write_text("import cutile as ct\n" + text)
        return importlib.import_module(path.stem), path

    return write


def rewrite(path, text: str) -> None:
    path.write_text(text)
    os.utime(path, (time.time() + 10,) * 2)
    linecache.checkcache()  # as printing a traceback does


def launched(kernel, dtype=np.int32, n=4) -> float:
    a = np.ones(4, dtype)
    ct.launch(None, (1,), kernel, (a, n))
    return a[0]


OTHER_TEXTS = ("# nothing\n", "def scaled(x):\n    return (x", "import cutile as ct\n" + HELPER.replace("2", "5"))


@pytest.mark.parametrize("other", OTHER_TEXTS)
@pytest.mark.parametrize("launched_before", [True, False])
def test_a_kernel_keeps_its_text(file, other, launched_before):
    """Other functions of its file do so too: their text was read with it."""
    m, path = file(HELPER + KERNEL)
    if launched_before:
        assert launched(m.k) == 2
    rewrite(path, other)
    assert launched(m.k, np.float32) == 2
    assert launched(m.k, n=2) == 2
    found = []
    thread = threading.Thread(target=lambda: found.append(launched(m.k, np.int64)))
    thread.start()
    thread.join()
    assert found == [2]
    path.unlink()
    linecache.clearcache()
    assert launched(m.k.replace_hints(opt_level=1), np.float64) == 2


def test_a_function_keeps_the_text_it_was_first_reached_with(file):
    m, path = file(HELPER)
    assert result(lambda x: m.scaled(x), 3) == 6
    rewrite(path, HELPER.replace("2", "5"))
    assert result(lambda x: m.scaled(x), 3.0, dtype=np.float32) == 6
    m = importlib.reload(m)
    assert result(lambda x: m.scaled(x), 3) == 15


def test_a_function_that_was_edited_before_it_was_reached(file):
    m, path = file(HELPER)
    rewrite(path, HELPER.replace("2", "5"))
    with pytest.raises(ct.TileSyntaxError, match="source has changed since it was defined"):
        definition_of(m.scaled)


def test_a_function_whose_file_was_deleted_before_it_was_reached(file):
    m, path = file(HELPER)
    path.unlink()
    linecache.clearcache()
    with pytest.raises(ct.TileSyntaxError, match="Python cannot show its source"):
        definition_of(m.scaled)


def test_a_tile_function_keeps_the_text_it_was_declared_with(file):
    m, path = file("@ct.function" + HELPER)
    rewrite(path, "# nothing\n")
    assert result(lambda x: m.scaled(x), 3) == 6


@pytest.mark.parametrize("make", [
    "def make():\n    def scaled(x):\n        return x * 2\n    return scaled\nscaled = make()\n",
    "scaled = (lambda x: x * 3, lambda x: x * 2, lambda y: y * 2)[1]\n",
    "class Scale:\n    def by(x):\n        return x * 2\n\nscaled = Scale.by\n",
    "def scaled(x):\n    return x * 7\n\nif True:\n    def scaled(x):\n        return x * 2\n",
    "def twice(f):\n    return lambda x: f(x) * 2\n\n@twice\ndef scaled(x):\n    return x\n"])
def test_forms_of_functions_in_a_file_that_was_edited(file, make):
    m, path = file(make + KERNEL)
    rewrite(path, "# nothing\n")
    assert launched(m.k) == 2
    assert launched(m.k, np.float32) == 2


def test_kernels_of_older_and_newer_imports_side_by_side(file):
    m, path = file(HELPER + KERNEL)
    old = m.k, m.scaled
    text = path.read_text()
    rewrite(path, "# moved\n\n" + text.replace("2", "5"))
    new = importlib.reload(m).k
    assert source_of(old[1]) == "def scaled(x):\n    return x * 2"
    assert source_of(m.scaled) == "def scaled(x):\n    return x * 5"
    rewrite(path, "# nothing\n")
    assert definition_of(old[0].function).node.lineno + 2 == definition_of(new.function).node.lineno
    assert launched(new) == launched(old[0]) == 5  # its globals are those of the reloaded module


def put(target, source: str, name: str, filename: str, owner: str = "") -> None:
    """Give a function new code, compiled from its own lines alone, as tools that reload modules do."""
    if owner:
        source = f"class {owner}:\n" + "".join(f"    {line}\n" for line in source.splitlines())
    space: dict = {}
    exec(compile(source, filename, "exec"), {"ct": ct}, space)
    target.__code__ = (getattr(space[owner], name) if owner else space[name]).__code__


def test_code_that_was_put_into_a_function(file):
    """Its code begins on line 1, where the file has another function."""
    m, path = file("# first\n\n" + HELPER + KERNEL)
    assert launched(m.k) == 2
    rewrite(path, "def scaled(x, y=1): return x\n" + path.read_text().replace("2", "5"))
    put(m.scaled, "def scaled(x):\n    return x * 5", "scaled", str(path))
    assert launched(m.k) == 5
    assert definition_of(m.scaled).node.lineno == 6
    rewrite(path, "# nothing\n")
    assert launched(m.k, np.float32) == 5


def test_code_that_was_put_into_a_method(file):
    text = 'class Scale:\n    def by(x, __n):\n        """How\n        much."""\n        return x * __n\n'
    m, path = file(text)
    assert result(lambda x: m.Scale.by(x, 2), 3) == 6
    rewrite(path, "\n\n" + text.replace("* __n", "+ __n"))
    put(m.Scale.by, 'def by(x, __n):\n    """How\n    much."""\n    return x + __n', "by", str(path), "Other")
    assert result(lambda x: m.Scale.by(x, 2), 3) == 5


def test_code_that_fits_no_text(file):
    m, path = file("# first\n\n" + HELPER)
    put(m.scaled, "def scaled(x):\n    return x * 9", "scaled", str(path))
    with pytest.raises(ct.TileSyntaxError, match="source has changed since it was defined"):
        definition_of(m.scaled)


def test_a_zipped_module(tmp_path, monkeypatch):
    archive = tmp_path / "library.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("zipped_kernels.py", "import cutile as ct\n" + HELPER + KERNEL)
    monkeypatch.syspath_prepend(archive)
    m = importlib.import_module("zipped_kernels")
    archive.unlink()
    linecache.clearcache()
    assert launched(m.k) == 2
    assert launched(m.k, np.float32) == 2


def test_text_that_is_registered_after_the_kernel_was_made():
    name = "<registered late>"
    space = {"ct": ct}
    exec(compile(HELPER + KERNEL, name, "exec"), space)
    with pytest.raises(ct.TileSyntaxError, match="Python cannot show its source"):
        launched(space["k"])
    linecache.cache[name] = (0, None, (HELPER + KERNEL).splitlines(True), name)
    assert launched(space["k"]) == 2


def test_future_statements_of_who_compiles():
    """`exec` inherits the future statements of the calling code."""
    name, text = "<from the future>", "def f(x):\n    def g(y: int) -> int:\n        return y + 1\n    return g(x)\n"
    linecache.cache[name] = (0, None, text.splitlines(True), name)
    space: dict = {}
    exec(compile(text, name, "exec", __future__.annotations.compiler_flag, dont_inherit=True), space)
    assert result(space["f"], 3) == 4


def test_equal_code_of_two_files(file):
    (one, first), (two, second) = file(HELPER), file(HELPER)
    assert one.scaled.__code__ == two.scaled.__code__
    assert (definition_of(one.scaled).filename, definition_of(two.scaled).filename) == (str(first), str(second))


def test_an_error_shows_the_text_that_the_kernel_has(file):
    m, path = file(KERNEL.replace("(n,)", "(3,)"))
    rewrite(path, "# nothing\n" * 9)
    with pytest.raises(ct.TileError, match=r"ct\.load\(a, 0, \(3,\)\)"):
        launched(m.k)


def test_texts_are_shared_and_let_go(file):
    kernels = "".join(KERNEL.replace("def k(", f"def k{i}(") for i in range(20))
    m, path = file(HELPER + kernels)
    held = {id(t) for i in range(20) for t in source_text._known[id(getattr(m, f"k{i}").function.__code__)].texts}
    assert len(held) == 1
    for i in range(3):  # a function that was never launched keeps no older text
        rewrite(path, path.read_text() + "# more\n")
        importlib.reload(m)
    gc.collect()
    assert len(source_text._texts[str(path)]) == 1
    codes = len(source_text._known)
    kept = weakref.ref(m.k0.function.__code__)
    sys.modules.pop(m.__name__)
    del m
    gc.collect()
    source_text._recent.clear()
    assert kept() is None and len(source_text._known) <= codes - 20 and str(path) not in source_text._texts

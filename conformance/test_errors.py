"""Errors of compilation: the class for each mistake, and the text."""

import enum
import inspect
import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, fails, impl, refuses
from conformance.harness.tile_code import body, module, rejects


class Color(enum.Enum):
    RED = 1


def f4():
    return ct.zeros((4,), ct.float32)


def deep(n):
    return 0 if n == 0 else deep(n - 1)


def boom():
    raise KeyError("boom")


A = np.zeros(4, np.int32)


@pytest.mark.parametrize("error, lines", [
    pytest.param("TileSyntaxError", "x = [n]", marks=clause("ERR-1", "LIM-1.container")),
    pytest.param("TileSyntaxError", "x = {n: 1}", marks=clause("LIM-1.container")),
    pytest.param("TileSyntaxError", "try:\n    pass\nexcept ValueError:\n    pass",
                 marks=clause("ERR-1", "LIM-1.exception")),
    pytest.param("TileSyntaxError", "class A:\n    pass", marks=clause("LIM-1.class")),
    pytest.param("TileSyntaxError", "raise ValueError()", marks=clause("LIM-1.exception")),
    pytest.param("TileSyntaxError", "return nowhere", marks=clause("ERR-2")),
    pytest.param("UnsupportedCallError", "sorted((1, 2))", marks=clause("ERR-3")),
    pytest.param("TileTypeError", "ct.exp(None)", marks=clause("ERR-4.kind")),
    pytest.param("TileTypeError", "n + 'a'", marks=clause("ERR-4.kind")),
    pytest.param("TileTypeError", "ct.zeros((2,), ct.float32) & 1", marks=clause("ERR-4.dtype")),
    pytest.param("TileTypeError", "n.astype(ct.int32) + n.astype(ct.uint32)", marks=clause("ERR-4.dtype")),
    pytest.param("TileTypeError", "ct.cat((ct.zeros((2,), ct.int8), ct.zeros((4,), ct.int8)), 0)",
                 marks=clause("ERR-4.shape", "LIM-4.cat")),
    pytest.param("TileTypeError", "ct.reshape(ct.zeros((2,), ct.int8), (4,))", marks=clause("ERR-4.shape")),
    pytest.param("TileTypeError", "ct.permute(ct.zeros((2,), ct.int8), (0, 1))", marks=clause("ERR-4.rank")),
    pytest.param("TileTypeError", "ct.zeros((n,), ct.int8)", marks=clause("ERR-4.constant")),
    pytest.param("TileTypeError", "(lambda a: a)()", marks=clause("ERR-4.binding")),
    pytest.param("TileTypeError", "ct.exp()", marks=clause("ERR-4.binding")),
    pytest.param("TileTypeError", "ct.exp(1.0, 2)", marks=clause("ERR-4.binding")),
    pytest.param("TileTypeError", "(1 if n > 0 else 1.5) + 1", marks=clause("ERR-4.join")),
    pytest.param("TileValueError", "ct.add(ct.zeros((2,), ct.int8), 300)", marks=clause("ERR-5.range")),
    pytest.param("TileValueError", "1 << 70", marks=clause("ERR-5.range")),
    pytest.param("TileValueError", "a, b = (1, 2, 3)", marks=clause("ERR-5.unpack")),
    pytest.param("TileValueError", "1 // 0", marks=clause("ERR-5.fold")),
    pytest.param("TileValueError", "ct.int32(1) // ct.int32(0)", marks=clause("ERR-5.fold")),
    pytest.param("TileValueError", "ct.int32(1) % ct.int32(0)", marks=clause("ERR-5.fold")),
    pytest.param("TileValueError", "ct.sqrt(-1.0)", marks=clause("ERR-5.fold")),
    pytest.param("TileValueError", "ct.log(0.0)", marks=clause("ERR-5.fold")),
    pytest.param("TileValueError", "Color(5)", marks=clause("ERR-5.enum")),
    pytest.param("TileRecursionError", "deep(2000)", marks=clause("ERR-6")),
    pytest.param("TileStaticEvalError", "ct.static_eval(ct.static_eval(1))", marks=clause("ERR-8.eval")),
    pytest.param("TileStaticEvalError", "for i in ct.static_iter(range(5000)):\n    pass", marks=clause("ERR-8.eval")),
    pytest.param("StaticException", "ct.static_eval(1 // 0)", marks=clause("ERR-8.exception")),
    pytest.param("StaticException", "raise ct.static_exception(ValueError('a'))", marks=clause("ERR-8.exception")),
    pytest.param("TileStaticAssertionError", "ct.static_assert(False)", marks=clause("ERR-8.assert")),
    pytest.param("TileTypeError", "ct.zeros((2,), ct.int8) + ct.zeros((4,), ct.int8)",
                 marks=clause("ERR-9.broadcast")),
    pytest.param("TileTypeError", "ct.where(ct.zeros((2,), ct.bool_), ct.zeros((4,), ct.int8), 1)",
                 marks=clause("ERR-9.broadcast")),
    pytest.param(("TileValueError", "TileTypeError"), "ct.int32(math.nan)", marks=clause("ERR-9.nan")),
    pytest.param(("TileValueError", "TileTypeError"), "int(math.inf)", marks=clause("ERR-9.nan")),
    pytest.param("TileTypeError", "if n > 0:\n    x = (1, 2)\nelse:\n    x = (1,)\nreturn x",
                 marks=clause("ERR-9.join")),
    pytest.param("TileTypeError", "for i in range(3, 0, -1):\n    pass", marks=clause("LIM-2")),
    pytest.param("TileTypeError", "ct.cat((ct.zeros((2,), ct.int8),) * 3, 0)", marks=clause("LIM-4.cat")),
    pytest.param("TileTypeError", "z = ct.zeros((2,), ct.int8)\nct.cat((z, z, z), 0)", marks=clause("LIM-4.cat")),
    pytest.param(("TileTypeError", "TileValueError"), "ct.zeros((3,), ct.int8)", marks=clause("LIM-4.pow2")),
    pytest.param(("TileTypeError", "TileValueError"), "ct.arange(6, dtype=ct.int8)", marks=clause("LIM-4.pow2"))])
@clause("ERR-12.base", "ERR-12.message")
def test_classes(error, lines):
    e = rejects(error, body(lines, Color=Color, deep=deep, math=math), 1)
    assert isinstance(e, ct.TileError) and e.message and not isinstance(e, ct.TileInternalError)
    names = (error,) if isinstance(error, str) else error
    if "UnsupportedCallError" not in names:
        assert type(e) in {impl.error(n) for n in names}


@clause("ERR-5.latency")
def test_latency():
    for bad in (0, 11):
        @ct.kernel
        def k(a):
            ct.load(a, 0, 2, latency=bad)

        refuses("TileValueError", k, A)


@clause("ERR-8.exception")
def test_hierarchy():
    assert issubclass(ct.StaticException, ct.TileStaticEvalError)
    for name in ("TileSyntaxError", "TileTypeError", "TileValueError", "TileRecursionError", "TileInternalError",
                 "TileUnsupportedFeatureError", "TileStaticEvalError", "TileStaticAssertionError"):
        assert issubclass(getattr(ct, name), ct.TileError)


@ct.kernel
def fine(x):
    pass


@pytest.mark.parametrize("error, call", [
    pytest.param(TypeError, lambda: fails(TypeError, fine), marks=clause("ERR-11.type")),
    pytest.param(TypeError, lambda: fails(TypeError, fine, None), marks=clause("ERR-11.type")),
    pytest.param(ValueError, lambda: fails(ValueError, fine, 1, grid=(1, 1, 1, 1)), marks=clause("ERR-11.value")),
    pytest.param(OverflowError, lambda: fails(OverflowError, fine, 1 << 40), marks=clause("ERR-11.overflow"))])
def test_host_errors(error, call):
    call()


@clause("ERR-11.runtime")
def test_runtime_errors():
    with pytest.raises(RuntimeError):
        ct.exp(1.0)


# ------------------------------------------------------------------ what errors say

SOURCE = """
    def inner(x):
        return ct.exp(None)

    def outer(x):
        y = x + 1
        return inner(y)

    @ct.kernel
    def kern(x):
        outer(x)
"""


@clause("ERR-12.message", "ERR-12.loc", "ERR-12.str", "ERR-12.file", "ERR-12.line", "ERR-12.function", "ERR-12.source",
        "ERR-12.caret", "ERR-12.chain")
def test_what_an_error_says():
    space = module(SOURCE)
    e = refuses("TileTypeError", space["kern"], 1)
    text = str(e)
    assert e.message and text.startswith(e.message)
    file = inspect.getsourcefile(space["inner"])
    assert e.loc.filename == file and e.loc.line == 3 and e.loc.function == "inner"
    assert file in text
    places = [text.index(f"line {n}, ") for n in (11, 7, 3)]
    assert places == sorted(places)
    functions = [text.index(f"in {n}") for n in ("kern", "outer", "inner")]
    assert functions == sorted(functions)
    for source in ("outer(x)", "return inner(y)", "return ct.exp(None)"):
        assert source in text
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "ct.exp(None)" in line and "return" in line)
    source, carets = lines[at], lines[at + 1]
    marked = source[carets.index("^"):carets.rindex("^") + 1]
    assert set(carets.strip()) == {"^"} and marked in "ct.exp(None)" and marked


@clause("ERR-12.lambda")
def test_lambdas():
    e = rejects("TileTypeError", lambda n: (lambda x: ct.exp(None))(n), 1)
    assert "<lambda>" in str(e)


@clause("ERR-12.static")
def test_frames_of_static_constructs():
    e = rejects("StaticException", lambda n: ct.static_eval(boom()), 1)
    assert "boom" in str(e) and "KeyError" in str(e)
    assert "raise KeyError" in str(e) or "in boom" in str(e)
    assert isinstance(e.__cause__, KeyError)


@clause("ERR-12.static", "ERR-12.line", "ERR-12.caret")
def test_lines_of_frames_of_static_constructs():
    """Each Python function with its own line, and where in it the exception arose."""
    space = module("""
        def inner(n):
            m = n - 5
            return 1 + (7 // m)

        def outer(n):
            x = 2
            y = x + inner(n)
            return y

        def f(n):
            return ct.static_eval(outer(5)) + n
    """)
    e = rejects("StaticException", space["f"], 1)
    text = str(e)
    places = [text.index(f"line {n}, ") for n in (12, 8, 4)]
    assert len(set(places)) == 3 and "line 1, " not in text
    lines = text.splitlines()
    for source, part, least in (("return 1 + (7 // m)", "7 // m", "//"), ("y = x + inner(n)", "inner(n)", "inner")):
        at = next(i for i, line in enumerate(lines) if source in line)
        carets = lines[at + 1]
        marked = lines[at][carets.index("^"):carets.rindex("^") + 1]
        assert set(carets.strip()) == {"^"} and marked and (marked in part or part in marked), marked
        assert len(marked) <= len(part) + 2 and least in marked, marked


@clause("LIM-3")
def test_large_arrays():
    stretched = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (1 << 31,), (0,))
    fails(OverflowError, fine, stretched)


@clause("LIM-6")
def test_tuples_as_parameters():
    impl.compile(fine, ((1, (2.5, A)),))

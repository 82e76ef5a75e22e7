"""Spans, and the text of errors [EXC-1, EXC-2, ERR-12]."""

import copy
import linecache
import pickle

import pytest

import cutile as ct
from cutile import errors
from cutile.errors import Span, TileError, TileTypeError

SOURCE = [
    "def k(x):\n",
    "    y = helper(x +\n",
    "               1)\n",
    "\n",
    "def helper(z):\n",
    "    return z.größe\n",
]
linecache.cache["<errors>"] = (0, None, SOURCE, "<errors>")
CALL = Span("<errors>", 2, 8, 3, 17, "k")
PLACE = Span("<errors>", 6, 11, 6, 18, "helper", CALL)


def test_render_of_one_line():
    assert PLACE.render() == '  "<errors>", line 6, col 12-18, in helper\n    return z.größe\n           ^^^^^^^'


def test_render_of_several_lines():
    assert CALL.render() == '  "<errors>", lines 2--3, col 9-17, in k\n    y = helper(x +\n        ^^^^^^^^^^'


def test_render_of_one_column_and_of_none():
    assert Span("<errors>", 2, 4, 2, 5, "k").render().splitlines()[0] == '  "<errors>", line 2, col 5, in k'
    assert Span("<errors>", 2, 4, 2, 4, "k").render().splitlines()[2] == "    ^"


def test_render_without_source():
    assert Span("<nowhere>", 2, 4, 2, 5, "k").render() == '  "<nowhere>", line 2, col 5, in k'
    assert Span("<errors>", 4, 0, 4, 1, "k").render() == '  "<errors>", line 4, col 1, in k'


def test_frames_outermost_first():
    assert [s.function for s in PLACE.frames()] == ["k", "helper"]


def test_text_of_an_error():
    e = TileTypeError("it is wrong", PLACE, help="write it\nright", notes=[("see here", CALL), ("and think", None)])
    assert str(e) == f"""it is wrong
{CALL.render()}
{PLACE.render()}
  note: see here
{CALL.render()}
  note: and think
  help: write it
        right"""
    assert (e.message, e.loc, e.args) == ("it is wrong", PLACE, ("it is wrong",))


def test_text_of_several_errors():
    first, second = TileTypeError("one"), errors.TileValueError("two")
    first.errors = (first, second)
    assert str(first) == "one\n\nand 1 more error in this kernel:\n\nTileValueError: two"
    assert str(second) == "two"


def test_repeated_frames_are_counted():
    place = None
    for _ in range(10):
        place = Span("<errors>", 6, 11, 6, 18, "helper", place)
    lines = TileTypeError("deep", place).render().splitlines()
    assert len(lines) == 1 + 3 * 3 + 1
    assert lines[-1] == "  … and 7 more times the same call"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies(again):
    e = errors.TileCompilerExecutionError("failed", PLACE, compiler_flags="-O3", compiler_version="13")
    e.errors = (e, TileTypeError("other"))
    f = again(e)
    assert type(f) is type(e) and str(f) == str(e) and f.compiler_flags == "-O3" and f.errors[0] is not None


def test_hierarchy():
    assert issubclass(ct.StaticException, ct.TileStaticEvalError)
    assert issubclass(ct.TileCompilerExecutionError, errors.InternalCompilerError)
    assert issubclass(ct.TileCompilerTimeoutError, ct.TileInternalError)
    assert issubclass(ct.TileAssertionError, AssertionError)
    assert ct.TileRecursionError.__bases__ == (TileError, RecursionError)
    for name in (
        "TileSyntaxError",
        "TileTypeError",
        "TileValueError",
        "TileUnsupportedFeatureError",
        "TileStaticEvalError",
        "TileStaticAssertionError",
        "TileInternalError",
        "TileSanitizerError",
    ):
        cls = getattr(ct, name)
        assert cls.__bases__ == (TileError,) and cls.__name__ == name
    assert not hasattr(ct, "UnsupportedCallError")

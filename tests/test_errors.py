"""The text of errors, copies and classes of them [EXC-1, EXC-2, ERR-12]."""

import copy
import pickle

import pytest

import cutile as ct
from cutile import errors
from cutile.errors import TileError, TileTypeError
from tests.spans import CALL, PLACE


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

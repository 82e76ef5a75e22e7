"""Spans, and the text of errors [EXC-1, EXC-2, ERR-12]."""

import copy
import io
import linecache
import pickle

import numpy as np
import pytest

import cutile as ct
from cutile import errors
from cutile.compilation import export_kernel
from cutile.errors import Span, TileError, TileTypeError
from cutile.gpu import find_tileiras
from cutile.gpu.tileir import tileiras
from cutile.runtime import launch_plan

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


# ------------------------------------------------------------------ tracebacks


@ct.kernel
def wrong(x: ct.Array, y, TILE: ct.Constant[int]):
    ct.store(y, 0, ct.load(x, 0, TILE))


X = np.zeros(4, np.float32)
FUNCTION = ct.jit(wrong, grid=(1,), out=ct.Out(like="x"), name="function")


def to_bytecode(kernel, *args, **options):
    export_kernel(kernel, [args], io.BytesIO(), output_format="tileir_bytecode", bytecode_version="13.1",
                  **{"gpu_code": "sm_90", **options})


CALLS = {
    "launch": lambda: ct.launch(None, (1,), wrong, (X, X, 3)),
    "launch of too few": lambda: ct.launch(None, (1,), wrong, (X,)),
    "prepare": lambda: ct.prepare(wrong, (1,), (X, X)), "function": lambda: FUNCTION(X, 3),
    "argument of a function": lambda: FUNCTION(2.5, 3), "compile": lambda: FUNCTION.compile(X, 3, target="sm_90"),
    "argument of compile": lambda: FUNCTION.compile(2.5, 3, target="sm_90"),
    "view": lambda: ct.view(wrong, (1,), (X, X)),
    "export": lambda: to_bytecode(wrong, X, X, 3), "export of a function": lambda: to_bytecode(FUNCTION, X, X, 3),
    "export for no target": lambda: to_bytecode(wrong, X, X, 4, gpu_code="sm_9")}


def is_own(frame):
    return str(frame.path) == __file__


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_traceback_ends_at_the_call(call, monkeypatch):
    with pytest.raises((TileError, TypeError, ValueError)) as caught:
        call()
    assert all(map(is_own, (e for e in caught.traceback if not e.ishidden(caught))))
    followed = type(FUNCTION)._tracer is not None  # by PyTorch, for which a call begins one function earlier
    assert sum(not is_own(e) for e in caught.traceback) <= 2 + followed  # the functions that were called
    monkeypatch.setenv("CUTILE_DEBUG", "1")
    with pytest.raises((TileError, TypeError, ValueError)) as all_frames:
        call()
    assert len(all_frames.traceback) >= len(caught.traceback)


def test_a_missing_tool(monkeypatch):
    def nowhere():
        return find_tileiras._find((), "", (None, None, None))

    for module in (find_tileiras, tileiras):
        monkeypatch.setattr(module, "find_tool", nowhere)
    monkeypatch.setattr(find_tileiras, "_elsewhere", lambda *places: iter(()))
    find_tileiras._find.cache_clear()
    with pytest.raises(FileNotFoundError, match=r"tileiras, .* was not found\. Install it") as caught:
        export_kernel(wrong, [(X, X, 4)], io.BytesIO(), gpu_code="sm_90", output_format="cubin")
    assert [e.name for e in caught.traceback if not is_own(e)] == ["export_kernel"]


def test_bugs_keep_their_frames(monkeypatch):
    def broken(*args):
        raise AssertionError("a bug")

    monkeypatch.setattr(launch_plan, "find", broken)
    with pytest.raises(AssertionError, match="a bug") as caught:
        ct.launch(None, (1,), wrong, (X, X, 4))
    assert not any(e.ishidden(caught) for e in caught.traceback) and caught.traceback[-1].name == "broken"

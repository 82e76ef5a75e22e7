"""Tracebacks of errors for users: they end at the call, and bugs keep theirs."""

import io

import numpy as np
import pytest

import cutile as ct
from cutile.compilation import export_kernel
from cutile.errors import TileError
from cutile.gpu import find_tileiras
from cutile.gpu.tileir import tileiras
from cutile.runtime import launch_plan


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

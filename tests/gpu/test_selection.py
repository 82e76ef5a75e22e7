"""Code that is selected by what it takes of a multiprocessor."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile import settings
from cutile.dtypes import float16, float32
from cutile.errors import TileCompilerExecutionError
from cutile.front.program import Embedded
from cutile.gpu import cache, selection
from cutile.gpu.cubin_resources import Resources, read
from cutile.gpu.hints import OWN, EntryHints
from cutile.gpu.selection import First, Tried, best, build, cached, explain, for_first_launch
from cutile.gpu.target import parse_target
from cutile.gpu.tileir import tileiras
from cutile.runtime.options import Options
from cutile.types import ArrayType
from tests.gpu.tileir.lowering import typed, usual
from tests.gpu.tileir.tool import needs_tool

SM_90 = parse_target("sm_90")
MATRIX, VECTOR = ArrayType(float16, 2), ArrayType(float32, 1)


def backward(dy, x, w, mean, out, n):
    """Holds two rows of numbers while it adds up: too many for 64 registers."""
    g = ct.load(dy, (ct.bid(0), 0), (1, n), check_bounds=False).astype(ct.float32)
    g *= ct.load(w, (0,), (n,), check_bounds=False)
    h = ct.load(x, (ct.bid(0), 0), (1, n), check_bounds=False).astype(ct.float32)
    h -= ct.load(mean, (ct.bid(0),), (1,), check_bounds=False)
    a, b = ct.sum(g * h, axis=1, keepdims=True) / n, ct.sum(g, axis=1, keepdims=True) / n
    ct.store(out, (ct.bid(0), 0), (g - (h * a + b)).astype(out.dtype), check_bounds=False)


def doubled(x, y, n):
    ct.store(y, (ct.bid(0), 0), 2 * ct.load(x, (ct.bid(0), 0), (1, n)))


def request(fn, *kinds, **options) -> tuple:
    program = typed(fn, *kinds)
    return program, [usual(p.type) for p in program.params], SM_90, Options(**options), "entry"


BACKWARD = backward, MATRIX, MATRIX, VECTOR, VECTOR, MATRIX, Embedded(1024)
DOUBLED = doubled, MATRIX, MATRIX, Embedded(1024)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The hints of each code that is assembled, with an empty cache."""
    asked, assemble = [], tileiras.assemble

    def counted(code, *args, **kw):
        asked.append(code)
        return assemble(code, *args, **kw)

    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CUTILE_CACHE", raising=False)
    monkeypatch.setattr(tileiras, "assemble", counted)
    return asked


# ------------------------------------------------------------------ the criterion


def taken(stack: int, registers: int, threads: int = 128) -> Resources:
    return Resources(registers, stack, 0, threads, 1, 0)


@pytest.mark.parametrize("codes, kept", [
    ([taken(0, 64)], 0),
    ([taken(80, 64), taken(0, 80), taken(0, 93)], 1),  # the least stack, then the most warps
    ([taken(80, 64), taken(16, 80), taken(0, 200)], 2),
    ([taken(0, 64), taken(0, 32)], 0),  # 64 warps are no better than 32
    ([taken(0, 200), taken(0, 106, 256), taken(0, 60, 512)], 2),
    ([taken(0, 80), taken(0, 80)], 0),  # the first of equal ones
    ([taken(8, 64), None, taken(0, 255)], 2), ([taken(0, 64), None], 0), ([None], 0)])
def test_best(codes, kept):
    assert best([Tried(OWN, b"", t) for t in codes], SM_90) == kept


# ------------------------------------------------------------------ what is made


@needs_tool
def test_a_first_launch_waits_for_one_code_and_the_next_process_has_the_best(made):
    what = request(*BACKWARD)
    first = for_first_launch(*what)
    assert len(made) == 1 and not first.settled and read(first.code, "entry").stack > 0 and cached(*what) is None
    kept = build(*what)
    assert len(made) == 3 and read(kept, "entry").stack == 0
    assert for_first_launch(*what) == First(kept, True, False)
    assert cached(*what) == kept == build(*what) and len(made) == 3
    entries = [e.metadata() for e in cache.current().entries()]
    assert sorted("selected" in m for m in entries) == [False, True]


@needs_tool
def test_code_that_keeps_nothing_in_memory_is_alone(made):
    what = request(*DOUBLED)
    first = for_first_launch(*what)
    assert first.settled and cached(*what) == first.code == build(*what) and len(made) == 1


@needs_tool
def test_it_does_not_depend_on_the_order_of_calls(made, tmp_path, monkeypatch):
    what = request(*BACKWARD)
    kept = build(*what)
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path / "other"))
    for_first_launch(*what)
    assert build(*what) == kept


@needs_tool
@pytest.mark.parametrize("options", [{"occupancy": 16}, {"num_worker_warps": 4}, {"num_ctas": 1}])
def test_what_the_author_names_is_not_tried_otherwise(made, options):
    tried, kept = explain(*request(*BACKWARD, **options))
    assert [t.hints for t in tried] == [OWN] and kept == 0 and len(made) == 1


@needs_tool
def test_hints_turned_off(made):
    with settings.override(HINTS=False):
        tried, _ = explain(*request(*BACKWARD))
        assert [t.hints for t in tried] == [OWN]
    assert len(made) == 1


@needs_tool
def test_without_a_cache(made, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE", "0")
    what = request(*BACKWARD)
    assert not for_first_launch(*what).settled and cached(*what) is None
    assert read(build(*what), "entry").stack == 0


@needs_tool
def test_a_code_that_the_assembler_refuses_is_left_out(made, monkeypatch):
    assemble = tileiras.assemble

    def refuses(*args, **kw):
        if made:
            raise TileCompilerExecutionError("Return code 1: no")
        return assemble(*args, **kw)

    monkeypatch.setattr(tileiras, "assemble", refuses)
    tried, kept = explain(*request(*BACKWARD))
    assert kept == 0 and [t.refused for t in tried] == ["", *["Return code 1: no"] * 2]


def test_code_that_cannot_be_read_is_kept(monkeypatch):
    monkeypatch.setattr(selection.cubin, "build", lambda *what: b"code")
    what = request(*BACKWARD)
    assert for_first_launch(*what) == First(b"code", True, True) and build(*what) == b"code"


@needs_tool
@pytest.mark.parametrize("lists, warps", [("13.5", 1), ("13.4", 4)])
def test_an_assembler_that_knows_4_and_8_warps(made, monkeypatch, lists, warps):
    known = frozenset({(13, 4), tuple(map(int, lists.split(".")))})
    monkeypatch.setattr(tileiras, "_listed", lambda tool: known)
    assert read(for_first_launch(*request(*BACKWARD)).code, "entry").warps == warps


def test_first_tries():
    assert selection.Request(*request(*BACKWARD)).first_hints == EntryHints(1, 32)
    assert selection.Request(*request(*DOUBLED)).first_hints == EntryHints(None, 8)

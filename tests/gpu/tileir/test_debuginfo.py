import pytest

from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.builder import Module
from cutile.spans import Span
from tests.gpu.tileir.samples import vector_add
from tests.gpu.tileir.tool import needs_tool
from tests.tileir_eval.bytecode_cursor import sections
from tests.tileir_eval.bytecode_reader import decode

KERNEL = Span("/home/u/kernels.py", 10, 0, 20, 9, "add_them")
SITE = Span("/home/u/kernels.py", 13, 4, 13, 20, "add_them")
LOCS = {"kernel": KERNEL, "load": Span("/home/u/kernels.py", 11, 8, 12, 3, "add_them"),
        "add": Span("/home/u/helpers.py", 3, 11, 3, 16, "plus", SITE),
        "store": Span("/home/u/kernels.py", 15, 4, 15, 9, "add_them")}


@needs_tool
@pytest.mark.parametrize("version", ["13.1", "13.4"])
def test_the_disassembler_sees_lines_functions_and_calls(version):
    text = tileiras.disassemble(vector_add(version, LOCS).to_bytes(), debug_info=True)
    places = dict(line.split(" = ", 1) for line in text.splitlines() if line.startswith("#"))

    def place(op: str) -> str:
        line = next(line for line in text.splitlines() if f"{op} " in line and not line.startswith("#"))
        name = line[line.rindex("loc(") + 4:-1]
        return expanded(name)

    def expanded(name: str) -> str:
        out = places[name]
        for other in sorted(places, key=len, reverse=True):
            if other in out:
                out = out.replace(other, f"{{{expanded(other)}}}")
        return out

    assert 'kernels.py":11:9' in place("load_view_tko")
    assert 'name = "add_them", linkageName = "vector_add"' in place("load_view_tko")
    added = place("addf")
    assert added.startswith("loc(callsite(")
    callee, caller = added.split(" at ")
    assert 'helpers.py":3:12' in callee and 'name = "plus"' in callee
    assert 'kernels.py":13:5' in caller and 'name = "add_them"' in caller
    assert '"kernels.py" in "/home/u"' in added


@needs_tool
def test_lines_reach_the_cubin_when_asked():
    code = vector_add("13.4", LOCS).to_bytes()
    assert b"helpers.py" in tileiras.assemble(code, "sm_90", lineinfo=True)
    assert b"helpers.py" not in tileiras.assemble(code, "sm_90")


def test_without_sources_there_is_no_section():
    assert "debug" not in sections(vector_add("13.4").to_bytes())[1]
    assert "debug" in sections(vector_add("13.4", LOCS).to_bytes())[1]


def test_an_operation_without_source_stands_between_those_that_have_one():
    ops = decode(vector_add("13.4", {"kernel": KERNEL, "add": LOCS["add"]}).to_bytes()).entries[0].block.ops
    assert {o.spec.name for o in ops if o.loc and o.loc.filename.endswith("helpers.py")} == {"addf"}


def test_two_entries_keep_their_own_scopes():
    m = Module("13.4")
    for name, line in (("one", 3), ("two", 8)):
        span = Span("k.py", line, 0, line, 5, "kernel")
        m.entry(name, [], loc=span).body.op("return", loc=Span("k.py", line + 1, 4, line + 1, 9, "kernel"))
    again = decode(m.to_bytes())
    assert [e.block.ops[0].loc.line for e in again.entries] == [4, 9]

"""Each stage of a kernel as text."""

from __future__ import annotations

import cutile as ct
from cutile.cli.show.assumptions import constraint
from cutile.dtypes import float32
from cutile.front.program import Embedded
from cutile.functions.stages import STAGES, Compilation
from cutile.gpu.target import parse_target
from cutile.ir.text import parse
from cutile.types import ArrayType
from tests.gpu.tileir.tool import needs_nvdisasm, needs_tool


def halved(t):
    return t / 2


@ct.kernel
def scaled(x, y, n: ct.Constant[int]):
    """Scales."""
    i = ct.bid(0)
    t = ct.load(x, i, (n,))
    p = t * t
    ct.store(y, i, halved(p + t))


def text(stage: str, spans: bool = False) -> str:
    types = [ArrayType(float32, 1), ArrayType(float32, 1), Embedded(64)]
    return STAGES[stage].text(Compilation(scaled, types, list(map(constraint, types)), "entry_of_scaled",
                                          parse_target("sm_90"), "for this test", spans))


def test_source_has_the_functions_that_are_called():
    source = text("source")
    assert "def scaled(x, y, n: ct.Constant[int]):" in source and "ct.store(y, i, halved(p + t))" in source
    assert "def halved(t):\n    return t / 2" in source and f"# {__file__}:" in source


def test_ir_stages():
    assert "fma" not in text("ir") and "fma" in text("fma")
    assert parse(text("ir")).name == parse(text("fma")).name == "scaled"
    assert "spans {" in text("ir", spans=True)


def test_passes_show_what_changed():
    shown = text("passes")
    assert "# after flatten_frames\n" in shown and "# after licm: no change" in shown
    after = shown.split("# after choose_hints\n")[1]
    assert "allow_tma=False" in after and "frame" not in after


def test_host_code_is_that_of_the_schedule():
    shown = text("host")
    assert shown.startswith("# schedule batch (default)") and "def scaled(" in shown and "def halved(" in shown


@needs_tool
def test_gpu_stages():
    assert "entry @entry_of_scaled(" in (tile_ir := text("tileir")) and "fma" in tile_ir and "assume" in tile_ir
    assert "in function: entry_of_scaled" in text("remarks")
    assert "scaled for sm_90, for this test\nthreads a block" in text("resources")


@needs_tool
@needs_nvdisasm
def test_machine_code():
    assert ".text.entry_of_scaled" in (sass := text("sass")) and "FFMA" in sass

"""python -m cutile show --stage hints."""

from __future__ import annotations

import re

from tests.cli.show.test_command import SOFTMAX, said
from tests.gpu.tileir.tool import needs_tool


@needs_tool
def test_hints_of_rows(monkeypatch, tmp_path):
    text = said("show", SOFTMAX[0], "f16[2]", "f16[2]", "=1", "=1024", "--stage", "hints")
    assert text.startswith("softmax_rows for sm_90, if arrays are contiguous")
    every, inside = text.split("code for launches whose tiles all lie inside their arrays")
    for part in (every, inside):
        assert "num_worker_warps=1, occupancy=32, because it reduces a long axis of a tile of 1024 elements" in part
        assert re.search(r"num_worker_warps=1, occupancy=32 +32 +\d+ .*kept$", part, re.M)
        assert "allow_tma=False for 2 of 2 loads and stores" in part


@needs_tool
def test_hints_turned_off(monkeypatch):
    monkeypatch.setenv("CUTILE_HINTS", "0")
    text = said("show", *SOFTMAX, "--stage", "hints")
    assert "the assembler's own choice, because CUTILE_HINTS is 0" in text and "allow_tma=False for 0 of" in text
    assert "whose tiles all lie inside" not in text


@needs_tool
def test_all_that_was_tried():
    text = said("show", SOFTMAX[0], "f32[2]", "f32[2]", "=1", "=65536", "--stage", "hints")
    assert "num_worker_warps=16, occupancy=2" in text and "kept is the one with the least stack" in text
    assert len(re.findall(r"  kept$", text, re.M)) == 2

"""nvdisasm: where it is, what it prints."""

from __future__ import annotations

import pytest

from cutile.errors import TileCompilerExecutionError
from cutile.gpu import disassembler
from cutile.gpu.executables import EXE
from tests.gpu.tileir.tool import needs_nvdisasm


def test_it_is_found_on_the_path(tmp_path, monkeypatch):
    def nowhere():
        raise FileNotFoundError

    monkeypatch.setattr(disassembler, "find_tool", nowhere)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"pip install 'cutile\[inspect\]'"):
        disassembler.find_nvdisasm()
    program = tmp_path / f"nvdisasm{EXE}"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert disassembler.find_nvdisasm() == program


@needs_nvdisasm
def test_what_is_no_cubin_is_an_error():
    with pytest.raises(TileCompilerExecutionError, match="cannot read this cubin"):
        disassembler.sass(b"no ELF file")

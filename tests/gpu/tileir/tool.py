"""The assembler that these tests ask, or the reason why they are skipped."""

from __future__ import annotations

import pytest

from cutile.gpu.disassembler import find_nvdisasm
from cutile.gpu.tileir import tileiras


def _missing() -> str:
    try:
        tool = tileiras.find_tool()
    except FileNotFoundError as e:
        return str(e)
    return "" if tool.disassembler.is_file() else f"no tileirdisasm beside {tool.path}"


def _without_nvdisasm() -> bool:
    try:
        return not find_nvdisasm().is_file()
    except FileNotFoundError:
        return True


MISSING = _missing()
needs_nvdisasm = pytest.mark.skipif(_without_nvdisasm(), reason="these tests ask nvdisasm: pip install '.[inspect]'")
needs_tool = pytest.mark.skipif(bool(MISSING), reason=f"these tests ask NVIDIA's tools: {MISSING}")

"""The suite's readers of bytecode and cubins, on files made by hand; and which implementations must export."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.adapters.assembler import AHEAD_OF_TIME
from conformance.harness import compiled_files
from conformance.harness.compiled_files import Parameter

ROOT = Path(__file__).resolve().parents[2]


def elf(**sections: bytes) -> bytes:
    """A file with these sections and a table of their names. In the keywords `_` stands for `.`, and `__` for `_`."""
    names = [n.replace("__", "\0").replace("_", ".").replace("\0", "_") for n in sections]
    table = b"\0" + b"\0".join(n.encode() for n in [*names, ".shstrtab"]) + b"\0"
    body, heads = bytearray(64), []
    for name, content in [*zip(names, sections.values(), strict=True), (".shstrtab", table)]:
        heads.append((table.index(name.encode() + b"\0"), len(body), len(content)))
        body += content
    body[:4], body[0x28:0x30] = compiled_files.ELF, struct.pack("<Q", len(body))
    body[0x3C:0x40] = struct.pack("<HH", len(heads), len(heads) - 1)
    for name, offset, size in heads:
        body += struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0)
    return bytes(body)


def record(kind: int, *payload: int, code: str) -> bytes:
    data = struct.pack(f"<{code}", *payload)
    return struct.pack("<BBH", compiled_files.SIZED, kind, len(data)) + data


def parameter(ordinal: int, offset: int, size: int) -> bytes:
    return record(compiled_files.PARAMETER, 0, ordinal, offset, size << 18 | 0x1F000, code="IHHI")


INFO = (struct.pack("<BBH", 3, 0x1B, 255) + parameter(1, 8, 4) + record(0x2F, 7, 7, code="II") + parameter(0, 0, 8)
        + record(compiled_files.PARAMETER_BANK, 3, 0x160, 16, code="IHH"))


def instruction(form: int, address: int, bank: int = 0) -> bytes:
    return struct.pack("<QQ", form << 9 | address // 4 << 40 | bank << 54, 0)


CODE = (instruction(5, 0x168) + instruction(3, 0x16C) + instruction(5, 0x118) + instruction(1, 0x164)
        + instruction(5, 0x170, bank=3))
FILE = elf(_nv_info_k=INFO, _text_k=CODE, _text_other__one=b"")


def test_kernels_and_parameters_of_a_cubin():
    assert compiled_files.symbols(FILE) == {"k", "other_one"}
    assert compiled_files.parameters(FILE, "k") == [Parameter(0, 8), Parameter(8, 4)]
    with pytest.raises(StopIteration):
        compiled_files.parameters(FILE, "other_one")


def test_parameters_that_code_names():
    """Only operands in the first bank count, from the start of the parameters; no others with similar bits."""
    assert compiled_files.reads(FILE, "k") == {8, 12}


def test_the_version_of_bytecode():
    assert compiled_files.version_of(compiled_files.MAGIC + bytes([13, 4, 0, 0])) == "13.4"
    with pytest.raises(AssertionError):
        compiled_files.version_of(FILE)


def test_who_cannot_export_is_not_asked(tmp_path):
    """For an implementation without export, these clauses are not applicable; none is broken or absent."""
    command = [sys.executable, "-m", "conformance", "test_symbols.py", "test_targets.py", "--report", str(tmp_path),
               "--impl", "tests.conformance.toy.adapter:Toy"]
    found = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=found)
    assert done.returncode == 0, done.stdout[-2000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["run"]["tests"]["skipped"] == sum(report["run"]["tests"].values()) > 100
    groups = {c["id"].split("-")[0]: c["verdict"] for c in report["clauses"] if c["id"].startswith(("MNG-6", "ARCH-"))}
    assert groups == {"MNG": "not applicable", "ARCH": "not applicable"}


def test_everyone_else_is():
    from conformance.adapters.cuda_tile import CudaTile, WithoutGpu
    from conformance.adapters.cutile_gpu import Gpu
    from conformance.adapters.cutile_interp import Interp
    from conformance.adapters.cutile_torch import Torch

    for adapter in (CudaTile, WithoutGpu, Gpu, Interp, Torch):
        assert adapter.features >= AHEAD_OF_TIME

"""Machine code as text, by NVIDIA's nvdisasm."""

from __future__ import annotations

import os
from pathlib import Path

from cutile.errors import TileCompilerExecutionError, refusal
from cutile.gpu.executables import EXE, on_path
from cutile.gpu.find_tileiras import find_tool
from cutile.gpu.process import run


def find_nvdisasm() -> Path:
    """The path of nvdisasm: beside the assembler, where pip puts it, or on PATH. FileNotFoundError if it is in neither
    place.
    """
    try:
        beside = find_tool().path.with_name("nvdisasm" + EXE)
        if beside.is_file():
            return beside
    except FileNotFoundError:
        pass
    found = on_path("nvdisasm", os.environ.get("PATH"))
    if found is None:
        raise refusal(FileNotFoundError("nvdisasm, which shows machine code, was not found. Install it: "
                                        "pip install 'cutile[inspect]', or a CUDA toolkit"))
    return Path(found)


def sass(cubin: bytes) -> str:
    """The machine code of a cubin. FileNotFoundError without nvdisasm, TileCompilerExecutionError if it fails."""
    from cutile.gpu.tileir.work_folder import work_folder

    tool = find_nvdisasm()
    with work_folder() as folder:
        file = folder / "kernel.cubin"
        file.write_bytes(cubin)
        done = run([str(tool), "--print-code", str(file)], 60, merged=False)
    if done.code != 0:
        raise TileCompilerExecutionError(f"{tool} cannot read this cubin: {done.output.strip()[:200]}")
    return done.output

"""What it takes to prepare a kernel grows with its size, not with the square of it.

Counted are calls of Python functions and the memory at its peak, which do not depend on the machine's load.
`benchmarks/growth.py` times larger kernels.
"""

from __future__ import annotations

import gc
import io
import linecache
import sys
import tracemalloc

import numpy as np
import pytest

import cutile as ct
from benchmarks.growth import KINDS, STAGES
from cutile.compilation import CallingConvention, KernelSignature, export_kernel

SIZES = 5, 20, 60
BAR = 1.2  # times what they grow


def prepared(kind: str, n: int, stage: str) -> tuple[int, int]:
    """Calls and bytes that it takes to prepare a kernel."""
    name, source = f"<growth of {kind} {n} {stage}>", KINDS[kind][0](n)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"ct": ct}
    exec(compile(source, name, "exec"), space)
    kernel = space["k"]
    args = (np.zeros(8, np.int32), *[3] * (len(kernel.parameters) - 1))
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event == "call"

    gc.collect()
    tracemalloc.start()
    sys.setprofile(count)
    try:
        if stage == "export":
            signature = KernelSignature.from_kernel_args(kernel, args, CallingConvention.cutile_python_v2())
            export_kernel(kernel, [signature.with_symbol("k")], io.BytesIO(), gpu_code="sm_90",
                          output_format="tileir_bytecode", bytecode_version="13.1")
        else:
            ct.launch(None, (2,), kernel, args)
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return calls, peak


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_grows_with_the_size(kind, stage, monkeypatch):
    monkeypatch.setenv("CUTILE_CHECK", "0")
    if stage != "export":
        monkeypatch.setenv("CUTILE_SCHEDULE", stage)
    prepared(kind, 3, stage)
    found = [prepared(kind, n, stage) for n in SIZES]
    least, less, more = SIZES
    grown = [(c - a) / (b - a) for a, b, c in zip(*found, strict=True)]
    assert max(grown) <= BAR * (more - least) / (less - least), found

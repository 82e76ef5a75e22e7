"""The cost of preparing a kernel grows with its size, not with the square of its size.

The tests count calls of Python functions and objects that the garbage collector visits, which do not depend on the
machine's load, and for some kernels the peak of memory. `benchmarks/growth.py` measures times of larger kernels.
"""

from __future__ import annotations

import ast
import cProfile
import gc
import io
import json
import linecache
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cutile as ct
from benchmarks.growth import KINDS, STAGES
from cutile.compilation import CallingConvention, KernelSignature, export_kernel

SIZES = 5, 20, 60
BAR = 1.2  # times the growth of the sizes


def made(kind: str, n: int, stage: str) -> Callable[[], None]:
    """A function that prepares a kernel."""
    name, source = f"<growth of {kind} {n} {stage}>", KINDS[kind][0](n)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"ct": ct}
    exec(compile(source, name, "exec"), space)
    kernel = space["k"]
    args = (np.zeros(8, np.int32), *[3] * (len(kernel.parameters) - 1))

    def export() -> None:
        signature = KernelSignature.from_kernel_args(kernel, args, CallingConvention.cutile_python_v2())
        export_kernel(kernel, [signature.with_symbol("k")], io.BytesIO(), gpu_code="sm_90",
                      output_format="tileir_bytecode", bytecode_version="13.1")

    return export if stage == "export" else lambda: ct.launch(None, (2,), kernel, args)


def calls(kind: str, n: int, stage: str) -> int:
    """How often preparing a kernel calls a Python function."""
    counter = cProfile.Profile(builtins=False)
    counter.runcall(made(kind, n, stage))
    return sum(entry.callcount for entry in counter.getstats())


def peak(kind: str, n: int, stage: str) -> int:
    """Bytes that preparing a kernel takes."""
    prepare = made(kind, n, stage)
    gc.collect()
    tracemalloc.start()
    try:
        prepare()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def way(monkeypatch, stage):
    monkeypatch.setenv("CUTILE_CHECK", "0")
    if stage != "export":
        monkeypatch.setenv("CUTILE_SCHEDULE", stage)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_calls_grow_with_the_size(kind, stage, way):
    calls(kind, 3, stage)  # for imports and tables
    found = [calls(kind, n, stage) for n in SIZES]
    small, large = (y - x for x, y in pairwise(found))
    less, more = (y - x for x, y in pairwise(SIZES))
    assert large / small <= BAR * more / less, found


@pytest.mark.parametrize("kind, stage", [("lines", "batch"), ("names", "block"), ("branches", "batch")])
def test_memory_grows_with_the_size(kind, stage, way):
    peak(kind, 3, stage)
    found = [min(peak(kind, n, stage) for _ in range(2)) for n in (150, 300)]  # a table of the process may grow in one
    assert found[1] / found[0] <= 2.5, found


def objects() -> Counter[str]:
    """How many objects the garbage collector visits, by class."""
    gc.collect()
    return Counter(type(o).__qualname__ for o in gc.get_objects())


def objects_that_stay(stage: str) -> dict[str, list[int]]:
    """By kind of kernel, how many objects are left of preparing it, for each size."""
    found: dict[str, list[int]] = {}
    kept = []  # kernels: what one leaves would go at some time while others are prepared
    for kind in KINDS:
        for n in (3, *SIZES):  # the first for imports and tables
            gc.freeze()  # what is there already, which is not counted then
            kept.append(made(kind, n, stage))
            kept[-1]()
            found.setdefault(kind, []).append(objects().total())
    return {kind: counts[1:] for kind, counts in found.items()}


@pytest.mark.parametrize("stage", STAGES)
def test_objects_that_stay_grow_with_the_size(stage, way):
    """In a process of its own, where nothing else comes and goes."""
    code = f"import json, tests.test_growth as t; print(json.dumps(t.objects_that_stay({stage!r})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent.parent, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    less, more = (y - x for x, y in pairwise(SIZES))
    for kind, found in json.loads(done.stdout).items():
        small, large = (y - x for x, y in pairwise(found))
        if (kind, stage) == ("calls", "export"):  # one function, whose calls leave nothing
            assert (small, large) == (0, 0), found
        else:
            assert 0 < large <= BAR * more / less * small, (kind, found)


@pytest.mark.parametrize("stage", ["batch", "block"])
def test_the_syntax_of_emitted_code_is_not_kept(stage, way):
    made("mixed", 3, stage)()
    prepare = made("mixed", 60, stage)  # its own syntax is kept once it is read
    nodes = "Name", "Call", "keyword", "Assign", "FunctionDef", "arguments"
    before = Counter(type(n).__qualname__ for n in ast.walk(ast.parse(KINDS["mixed"][0](60)))) + objects()
    prepare()
    after = objects()
    assert {n: after[n] - before[n] for n in nodes if after[n] > before[n] + 10} == {}

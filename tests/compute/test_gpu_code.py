"""The kernels of all algorithms are assembled for a GPU, with the arguments that a call on arrays there has."""

from __future__ import annotations

import numpy as np

from cutile import compute
from cutile.compute import OpKind, algorithm
from tests.compute.checks import assemble_launches, at_levels
from tests.gpu.tileir.tool import needs_tool


def branching(v):
    if v > 100:
        return v * 2
    return -v


def larger(a, b):
    return a if abs(a) > abs(b) else b


@needs_tool
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    n = 5000
    x, i, o = np.arange(n, dtype=np.float32), np.arange(n, dtype=np.int32), np.zeros(n, np.float32)
    Range = compute.gpu_struct({"low": np.float32, "high": np.float32})
    compute.unary_transform(x, o, branching, n - 1)
    assert np.array_equal(o[:-1], [branching(v) for v in x[:-1]])
    compute.binary_transform(compute.PermutationIterator(x, i), compute.CountingIterator(np.int32(3)),
                             compute.ReverseIterator(o), OpKind.DIVIDES, n)
    compute.unary_transform(compute.TransformIterator(x, lambda v: Range(v, -v)), np.zeros(n, Range.dtype),
                            lambda r: Range(r.high, r[0]), n)
    for op in (larger, OpKind.PLUS):
        for make, arguments in ((compute.make_reduce_into, (n,)), (compute.make_inclusive_scan, (None, n)),
                                (compute.make_exclusive_scan, (np.float32(0), n))):
            made = make(x, o, op, *arguments[:-1])
            storage = np.zeros(made(None, x, o, op, *arguments), np.uint8)
            made(storage, x, o, op, *arguments)
    assert set(seen) == {"transform", "reduce_tiles", "sum_tiles", "scan_tiles"}
    assert algorithm.WIDE == 1 << 31

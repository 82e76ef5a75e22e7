"""What integers are multiples of: what is claimed holds in every run."""

from __future__ import annotations

import re

import pytest

import cutile as ct
from cutile.analysis.divisibility import MAX_DIVISOR, divisibility
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.ops import debug
from tests.front.compiling import A1, I32, typed
from tests.passes.random_programs import program, trace


@pytest.mark.parametrize("seed", range(40))
def test_what_is_claimed_holds(seed):
    """Random programs print numbers: each of which a divisor is claimed is a multiple of it."""
    kernel = program(seed)
    found = divisibility(kernel)
    claimed: dict[str, list[int]] = {}
    for n in walk(kernel.body):
        if isinstance(n, Op) and n.op is debug.emit_text:
            claimed[n.attrs["parts"][0]] = [found.get(v, 1) for v in n.operands]
    for line in trace(kernel, seed).splitlines():
        label, *values = line.split()
        for x, d in zip(map(int, values), claimed[label], strict=True):
            assert x % d == 0


def test_rules():
    def kernel(a, n):
        k = ct.assume_divisible_by(n, 48)
        for i in range(k, a.shape[0], 4):
            print("for", i)
            print("sum", i + k, k - 8, i * k * 2, -k, min(k, 64), k & 7, k | 32, k.astype(ct.int64))
            print("none", n, k + 1, n * 3, a.strides[0], k | 5)
            print("zero", n * 0, n & 0)
            print("shape", a.shape[0])

    t = typed(kernel, A1, I32)
    found = divisibility(t, lambda n: 64 if n.op.name == "array_dim" and not n.attrs["stride"] else 1)
    got = {}
    for n in walk(t.body):
        if isinstance(n, Op) and n.op is debug.emit_text:
            got[re.match(r"\w+", n.attrs["parts"][0])[0]] = [found.get(v, 1) for v in n.operands]
    assert got["for"] == [4]
    assert got["sum"] == [4, 8, 4 * 16 * 2, 16, 16, 16, 16, 16]
    assert got["none"] == [1, 1, 1, 1, 1]
    assert got["zero"] == [MAX_DIVISOR, MAX_DIVISOR]
    assert got["shape"] == [64]

"""What ops cost, against counts made by hand."""

from __future__ import annotations

from collections import Counter

import pytest

import cutile as ct
from cutile.analysis.cost import MATRIX, OTHER, Work, operations
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.passes.fma import fma
from tests.front.compiling import A1, A2, I32, typed


def cost(function, *kinds, fused=True) -> dict[Work, int]:
    """What the ops of a kernel cost that runs each of them once."""
    kernel = typed(function, *kinds)
    total = Counter()
    for n in walk((fma(kernel) if fused else kernel).body, lambda n: not isinstance(n, Op)):
        if isinstance(n, Op):
            total.update(operations(n))
    return dict(total)


def test_elementwise_arithmetic():
    def kernel(a, b):
        x, y = ct.load(a, 0, (16,)), ct.load(b, 0, (16,))
        ct.store(a, 0, ct.exp(x) / ct.maximum(y, x))
        ct.store(b, 0, (x.astype(ct.int32) & 3).astype(ct.float32))

    assert cost(kernel, A1, A1) == {Work(OTHER, ct.float32): 3 * 16, Work(OTHER, ct.int32): 16}


def test_a_fused_multiply_add_is_two():
    def kernel(a, b):
        ct.store(b, 0, ct.load(a, 0, (16,)) * 3.0 + ct.load(b, 0, (16,)))

    assert cost(kernel, A1, A1) == cost(kernel, A1, A1, fused=False) == {Work(OTHER, ct.float32): 32}


def test_what_is_no_arithmetic():
    def kernel(a, n):
        i = ct.bid(0) * n + 1
        x = ct.load(a, i, (16,))
        y = ct.where((x > 0) & (x < 5), x, +x)
        ct.store(a, i, ct.reshape(ct.permute(ct.reshape(y, (4, 4)), (1, 0)), (16,)).astype(ct.float16))

    assert cost(kernel, A1, I32) == {}


@pytest.mark.parametrize("dtype", [ct.float16, ct.bfloat16, ct.float64, ct.int8])
def test_products(dtype):
    def kernel(a):
        x = ct.load(a, (0, 0), (4, 8)).astype(dtype)
        y = ct.load(a, (0, 0), (8, 16)).astype(dtype)
        z = ct.mma(x, y, ct.zeros((4, 16), accumulated))
        ct.store(a, (0, 0), z.astype(ct.float32))

    accumulated = {ct.float64: ct.float64, ct.int8: ct.int32}.get(dtype, ct.float32)
    assert cost(kernel, A2) == {Work(MATRIX, dtype): 2 * 4 * 8 * 16}


def test_reductions_and_scans():
    def kernel(a):
        x = ct.load(a, (0, 0), (4, 8))
        ct.store(a, (0, 0), ct.sum(x, axis=1, keepdims=True))  # 4 sums of 8
        ct.store(a, (0, 0), ct.cumsum(x, axis=0))  # 8 scans of 4
        ct.store(a, (0, 0), ct.reduce(x, 1, lambda p, q: p * q + p, 1)[:, None])  # 4 of 8, two operations each

    assert cost(kernel, A2, fused=False) == {Work(OTHER, ct.float32): 4 * 7 + 8 * 3 + 4 * 7 * 2}


def test_atomics_are_one_for_each_element():
    def kernel(a):
        ct.atomic_add(a, ct.arange(8, dtype=ct.int32), 1.0)
        ct.atomic_xchg(a, 0, 1.0)
        a.tiled_view(16).atomic_store_add(0, 1.0)

    assert cost(kernel, A1) == {Work(OTHER, ct.float32): 8 + 1 + 16}

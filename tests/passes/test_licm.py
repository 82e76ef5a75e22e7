"""Invariant ops leave their loops, and programs print the same."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile.ir.check import check
from cutile.ir.nodes import For, Op
from cutile.ir.walk import walk
from cutile.passes.licm import licm
from tests.front.compiling import A1, AI, F32, I32, cell, typed
from tests.passes.random_programs import printed, program, trace
from tests.seeds import seeds
from tests.tileir_eval.kernels import instead_of_interpreter


@seeds(25, 60)
def test_random_programs(seed):
    assert trace(licm(program(seed)), seed) == printed(seed)


def in_loops(fn, *kinds) -> set[str]:
    loops = [n for n in walk(licm(typed(fn, *kinds)).body) if isinstance(n, For)]
    return {n.op.name for loop in loops for n in walk(loop.body) if isinstance(n, Op)}


def test_out_of_two_loops():
    def kernel(a, x, n):
        for i in range(n):
            for _ in range(n):
                ct.store(a, i, ct.exp(x) + 1.0)

    assert in_loops(kernel, A1, F32, I32) == {"store"}


def test_what_stays():
    def kernel(a, x, n, m):
        for i in range(n):
            if i > 2:
                ct.store(a, i, ct.exp(x))
            ct.store(a, i // m, ct.load(a, n // 3, ()))

    assert in_loops(kernel, A1, F32, I32, I32) == {"store", "load", "exp", "floordiv", "greater"}


@pytest.mark.parametrize("divisor, guarded", [
    ("3", False), ("0", True), ("m", True), ("ct.full((4,), 3, ct.int32)", False),
    ("ct.full((2, 2), 3, ct.int64).reshape((4,)).astype(ct.int32)", False), ("ct.full((4,), m, ct.int32)", True),
    ("ct.cat((ct.full((2,), 3, ct.int32), ct.full((2,), 3, ct.int32)), 0)", True),
    ("ct.cat((ct.full((2,), 3, ct.int32), ct.full((2,), m, ct.int32)), 0)", True),
    ("ct.full((4,), 257, ct.int32).astype(ct.int8).astype(ct.int32)", False),
    ("ct.full((4,), 256, ct.int32).astype(ct.int8).astype(ct.int32)", True),
    ("ct.full((4,), -(1 << 32), ct.int64).astype(ct.int32)", True),
    ("ct.full((4,), 0.5, ct.float32).astype(ct.int32)", True), ("~ct.full((4,), -1, ct.int32)", True)])
def test_divisions_by_what_may_be_zero_are_guarded(divisor, guarded):
    """Others are by a number that is known, also in each element of a tile, or cast to what is not zero."""
    kernel = cell(f"""def kernel(a, n, m):
        x = ct.load(a, 0, 4)
        d = {divisor}
        for i in range(n):
            for _ in range(n):
                ct.store(a, i, x // d)
    """)["kernel"]
    assert "floordiv" not in in_loops(kernel, AI, I32, I32)
    changed = licm(typed(kernel, AI, I32, I32))
    check(changed)
    assert [n.op.name for n in walk(changed.body) if isinstance(n, Op)].count("where") == guarded  # once for two loops


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("divide", [lambda x, y: x // y, lambda x, y: x % y, ct.cdiv])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_loop_that_does_not_run_divides_by_nothing(dtype, divide, n):
    """The number of iterations tells whether there is a divisor."""
    @ct.kernel
    def kernel(x, y, count, out):
        i = ct.bid(0)
        a, b = ct.load(x, i, ()), ct.load(y, i, ())
        s = a
        for _ in range(count if b != 0 else 0):
            s = s + divide(a, b)
        ct.store(out, i, s)

    x, y = (m.ravel().astype(dtype) for m in np.meshgrid(range(6), range(4)))
    want = [a + (n * int(divide(int(a), int(b))) if b else 0) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    out = np.zeros_like(x)
    arguments = x, y, n, out
    ct.launch(None, (len(x),), kernel, arguments)
    assert out.tolist() == want
    out[:] = 0
    with instead_of_interpreter():
        ct.launch(None, (len(x),), kernel, arguments)
    assert out.tolist() == want


def test_elements_whose_branch_is_not_taken_divide_by_nothing():
    """A branch of elements is a mask, and what divides is a tile."""
    def divided(a, b, count):
        s = a
        for _ in range(count):
            if b != 0:
                s = s + a // b - a % b + ct.cdiv(a, b)
        return s

    @ct.kernel
    def kernel(x, y, count, out):
        ct.store(out, 0, ct.elementwise(lambda a, b: divided(a, b, count))(ct.load(x, 0, 32), ct.load(y, 0, 32)))

    x, y = (m.ravel().astype(np.int32) for m in np.meshgrid(range(-3, 5), range(-1, 3)))
    out = np.zeros_like(x)
    with instead_of_interpreter():
        ct.launch(None, (1,), kernel, (x, y, 3, out))
    assert out.tolist() == [divided(a, b, 3) for a, b in zip(x.tolist(), y.tolist(), strict=True)]

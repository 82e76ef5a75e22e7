"""The walk of the lowering: control flow, arguments. Modules are assembled, and their text is read."""

from __future__ import annotations

import re
from random import Random

import pytest

import cutile as ct
from cutile.gpu.facts import ArrayFacts
from cutile.types import ArrayType, ListType, TileType
from tests.gpu.tileir.lowering import assemble, module, text
from tests.gpu.tileir.tool import needs_tool

pytestmark = needs_tool
F32, I32, B1 = TileType(ct.float32), TileType(ct.int32), TileType(ct.bool_)
A1, A2, I1 = ArrayType(ct.float32, 1), ArrayType(ct.float32, 2), ArrayType(ct.int32, 1)


def lines(source: str, *words: str) -> list[str]:
    return [line.strip() for line in source.splitlines() if all(w in line for w in words)]


# ------------------------------------------------------------------ arguments


def test_arguments_in_order():
    def kernel(a, n, arrays, flag):
        ct.store(a, (0, 0), ct.load(arrays[n], (0, 0), (1, 1)))

    head = text(kernel, A2, I32, ListType(A2), B1).split("{")[0]
    assert re.findall(r"tile<([^>]*>?)>", head) == [
        "ptr<f32>", "i32", "i32", "i32", "i32", "i32", "ptr<i64>", "i32", "i1"]


def test_facts_become_assumptions():
    facts = ArrayFacts((None, 64), (None, 1), (48, 1), (4, 1), (0, None), 32, (), False)

    def kernel(a):
        ct.store(a, (0, 0), ct.load(a, (0, 0), (8, 8)))

    t = text(kernel, A2, facts=[facts])
    assert lines(t, "assume div_by<32>", "ptr<f32>") and lines(t, "assume div_by<16>") and lines(t, "assume div_by<4>")
    assert lines(t, "make_tensor_view", "tensor_view<?x?xf32, strides=[?,1]>")
    assert len(lines(t, "bounded<0, ?>")) == 2  # the unknown size, the unknown stride


def test_strides_that_may_be_negative_are_wide():
    def kernel(a):
        ct.store(a, 0, ct.load(a, 0, 8))

    assert lines(text(kernel, A1, facts=[None]), "exti", "signed : tile<i32> -> tile<i64>")
    assert not lines(text(kernel, A1), "exti")
    assemble(kernel, A1, facts=[None])


def test_all_targets_need_a_version():
    def kernel(a):
        ct.store(a, 0, ct.load(a, 0, 8))

    module(kernel, A1, target=None, version="13.3")
    with pytest.raises(ct.TileUnsupportedFeatureError):
        module(kernel, A1, target=None, version="13.2")


# ------------------------------------------------------------------ control flow


def test_a_loop_that_nothing_breaks_is_a_for():
    def kernel(a, n):
        x = ct.load(a, 0, 8)
        for i in range(n):
            x = x + ct.load(a, i, 8)
        ct.store(a, 0, x)

    t = text(kernel, A1, I32)
    assert lines(t, "= for ") and not lines(t, "= loop ")
    assemble(kernel, A1, I32)


def test_breaks_continues_and_returns():
    def helper(a, n):
        for i in range(n):
            if ct.load(a, i, ()) > 3:
                return i
            if i == 7:
                break
            if i == 5:
                continue
            ct.store(a, i, 1)
        return n

    def kernel(a, n):
        if n == 3:
            return
        k = helper(a, n)
        while k < n:
            k += 1
            if k == 9:
                return
        while True:
            k -= 1
            if k == 2:
                last = k + 1
                break
            if k == 1:
                return
        ct.store(a, k, last)

    t = text(kernel, I1, I32)
    assert len(lines(t, "loop ")) == 3
    assemble(kernel, I1, I32)


def test_control_that_ends_nowhere():
    def kernel(a, n):
        if n > 3:
            while True:
                ct.store(a, 0, n)
        else:
            for i in range(n):
                if i > 2:
                    continue
                else:
                    break
        while True:
            if n == 2:
                return
            else:
                n = n + 1

    assemble(kernel, I1, I32)


def test_arrays_pass_through_branches_and_loops():
    def kernel(a, b, n):
        x = a.slice(0, 0, n)
        for i in range(n):
            x = x.slice(0, 1, n)
            if i == 3:
                x = b.slice(0, 2, n)
        ct.store(x, 0, ct.load(x, 1, 8))

    assemble(kernel, A1, A1, I32)


@pytest.mark.parametrize("seed", range(12))
def test_random_control_flow(seed):
    from cutile.gpu.tileir import tileiras
    from cutile.gpu.to_bytecode import to_bytecode
    from tests.interp.ir_programs import RandomKernel

    kernel = RandomKernel(Random(seed), 40).make()
    tileiras.disassemble(to_bytecode(kernel, [None], "sm_90", "13.4"))


# ------------------------------------------------------------------ options


def test_options_become_hints_of_the_entry():
    from cutile.runtime.options import ByTarget, Options

    def kernel(a):
        ct.store(a, 0, ct.load(a, 0, 8, latency=3, allow_tma=False))

    options = Options(num_ctas=2, occupancy=ByTarget(sm_90=4, default=1))
    t = text(kernel, A1, options=options)
    assert lines(t, "entry", "num_cta_in_cga = 2", "occupancy = 4")
    assert lines(t, "load_view_tko", "latency = 3", "allow_tma = false")
    t = text(kernel, A1, options=options, target=None)
    assert lines(t, "entry", "sm_90", "default", "occupancy = 1")


def test_what_is_known_of_a_slice():
    facts = ArrayFacts((None, None), (None, 1), (1, 1), (4, 1), (0, None), 64, (), False)

    def kernel(a, n):
        x = a.slice(0, n, 100)
        ct.store(a, (0, 0), ct.load(x, (0, 0), (8, 8)))
        y = a.slice(1, ct.assume_divisible_by(n, 8), 100)
        ct.store(a, (0, 0), ct.load(y, (0, 0), (8, 8)))

    t = text(kernel, A2, I32, facts=[facts, None])
    bases = lines(t, "assume div_by", "ptr<f32>")
    assert [re.search(r"div_by<(\d+)>", line)[1] for line in bases] == ["64", "16", "32"]

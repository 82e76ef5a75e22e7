"""What integers are multiples of: what is claimed holds in every run."""

from __future__ import annotations

import itertools
import math
import operator
import re

import pytest

import cutile as ct
from cutile.analysis import divisibility as rules
from cutile.analysis.divisibility import MAX_DIVISOR, divisibility
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.ops import debug
from tests.front.compiling import A1, I32, cell, typed
from tests.passes.random_programs import printed, program


@pytest.mark.parametrize("seed", range(40))
def test_what_is_claimed_holds(seed):
    """Random programs print numbers: each of which a divisor is claimed is a multiple of it."""
    kernel = program(seed)
    found = divisibility(kernel)
    claimed: dict[str, list[int]] = {}
    for n in walk(kernel.body):
        if isinstance(n, Op) and n.op is debug.emit_text:
            claimed[n.attrs["parts"][0]] = [found.get(v, 1) for v in n.operands]
    for line in printed(seed).splitlines():
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


# ------------------------------------------------------------------ each rule, on all small multiples

POWERS = (1, 2, 4, 8, 64)
OF_NUMBERS = {
    "x + y": operator.add, "x - y": operator.sub, "x * y": operator.mul, "x & y": operator.and_,
    "x | y": operator.or_, "ct.minimum(x, y)": min, "ct.maximum(x, y)": max, "-x": lambda x, y: -x,
    "x.astype(ct.int64)": lambda x, y: x,
}


def shown(*lines: str) -> tuple[dict, list]:
    """The divisors in a kernel of two ints, and the values that it prints."""
    kernel = typed(cell("def kernel(x, y):\n" + "".join(f"    {line}\n" for line in lines))["kernel"], I32, I32)
    return divisibility(kernel), [v for n in walk(kernel.body) if isinstance(n, Op) and n.op is debug.emit_text
                                  for v in n.operands]


def op_of(expression: str) -> Op:
    """The node with a rule that comes last in an expression of x and y."""
    kernel = typed(cell(f"def kernel(x, y):\n    print({expression})\n")["kernel"], I32, I32)
    *_, n = [n for n in walk(kernel.body) if isinstance(n, Op) and n.op in rules._RULES]
    return n


def divisor_of(n: Op, *known: int) -> int:
    """What is noted of a node whose operands have these divisors."""
    found: dict = {}
    rules._note(found, n.results[0], rules._RULES[n.op](n, list(known)[:len(n.operands)]))
    return found.get(n.results[0], 1)


def test_every_rule_is_compared():
    assert {op_of(e).op for e in (*OF_NUMBERS, "ct.assume_divisible_by(x, 2)", "x // 7")} == set(rules._RULES)


@pytest.mark.parametrize("expression", OF_NUMBERS)
def test_numbers(expression):
    """What divides all results is found, and no more."""
    n, f = op_of(expression), OF_NUMBERS[expression]
    for dx, dy in itertools.product(POWERS, POWERS):
        numbers = [f(dx * i, dy * j) for i in range(-9, 10) for j in range(-9, 10)]
        assert divisor_of(n, dx, dy) == math.gcd(*numbers), (dx, dy)


@pytest.mark.parametrize("divisor", [2, 6, 48, 7])
def test_what_is_assumed_adds_to_what_is_known(divisor):
    n = op_of(f"ct.assume_divisible_by(x, {divisor})")
    assert [divisor_of(n, d) for d in POWERS] == [max(d, math.gcd(divisor, 64)) for d in POWERS]


@pytest.mark.parametrize("c, want", [
    (0, MAX_DIVISOR), (1, 1), (6, 2), (-8, 8), (96, 32), (MAX_DIVISOR, MAX_DIVISOR), (2 * MAX_DIVISOR, MAX_DIVISOR)])
def test_constants(c, want):
    assert divisor_of(op_of(f"x ^ {c}")) == want


@pytest.mark.parametrize("expression, want", [
    ("x * 1024 * 1024 * 16", MAX_DIVISOR), ("(x * 8).astype(ct.float32).astype(ct.int32)", 1),
    ("x * 8 // 4", 1), ("(x * 8).astype(ct.int64) * 2", 16)])
def test_chains(expression, want):
    """No divisor is above the largest that is used; a float has none."""
    found, (v,) = shown(f"print({expression})")
    assert found.get(v, 1) == want


@pytest.mark.parametrize("start, step, want", [
    ("x * 8", "4", 4), ("x * 8", "x", 1), ("x", "4", 1), ("0", "x * 16", 16), ("x * 2", "y * 2", 2)])
def test_counters(start, step, want):
    found, (v,) = shown(f"for i in range({start}, 999, {step}):", "    print(i)")
    assert found.get(v, 1) == want

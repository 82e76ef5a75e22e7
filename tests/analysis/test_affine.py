"""Scalars as affine functions: what is claimed holds in every run, and what the functions can do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import cutile as ct
from cutile.analysis.affine import MAX_TERMS, AffineIndex, BlockIndex, affine_scalars
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.ops import memory
from tests.front.compiling import A1, I32, typed

NAMES = ["x", "y", "z"]
FUNCTIONS = st.builds(AffineIndex, st.integers(-9, 9), st.dictionaries(
    st.sampled_from(NAMES), st.integers(-3, 3).filter(bool)).map(lambda d: tuple(d.items())))
NUMBERS = st.fixed_dictionaries({n: st.integers(-9, 9) for n in NAMES})


def value(f: AffineIndex, at: dict) -> int:
    return f.constant + sum(k * at[v] for v, k in f.terms)


@given(FUNCTIONS, FUNCTIONS, NUMBERS, st.integers(-3, 3))
def test_functions_compute(f, g, at, n):
    assert value(f.plus(g), at) == value(f, at) + value(g, at)
    assert value(f.scale(n), at) == n * value(f, at) and value(f.shift(n), at) == value(f, at) + n
    assert value(f.without("x"), at) == value(f, at) - f.coefficient("x") * at["x"]
    assert all(k for h in (f.plus(g), f.scale(n)) for _, k in h.terms)


@given(FUNCTIONS, st.fixed_dictionaries({n: st.tuples(*[st.integers(-5, 5)] * 2, st.sampled_from([1, 2, -3]))
                                         for n in NAMES}))
def test_least_and_greatest_value(f, ends):
    ranges = {n: range(a, a + step * (1 + abs(b)), step) for n, (a, b, step) in ends.items()}
    seen = {value(f, {"x": x, "y": y, "z": z}) for x in ranges["x"] for y in ranges["y"] for z in ranges["z"]}
    assert f.extent(ranges) == (min(seen), max(seen))
    assert f.extent({}) is None or not f.terms
    assert f.extent({n: range(0) for n in NAMES}) is None or not f.terms


def indices(kernel):
    """The functions of the tile indices of each load and store."""
    of = affine_scalars(n for n in walk(kernel.body) if isinstance(n, Op))
    return [of(v) for n in walk(kernel.body) if isinstance(n, Op) and n.op in (memory.load, memory.store)
            for v in n.op.named(n.operands, n.layout)["index"]]


def test_what_is_followed():
    def kernel(a, n):
        i = ct.bid(0)
        for k in range(n):
            ct.load(a, 2 * (i - k) + 3, 8)
            ct.load(a, -i + n * 4 - (k + 1), 8)
            ct.load(a, i - i + 5, 8)
            ct.load(a, i * k, 8)
            ct.load(a, i // 2 + 1, 8)

    k = typed(kernel, A1, I32)
    (loop,) = (n for n in walk(k.body) if hasattr(n, "iv"))
    n, i = k.params[1], BlockIndex(0)
    first, second, third, fourth, fifth = indices(k)
    assert first == AffineIndex(3, ((i, 2), (loop.iv, -2)))
    assert second.constant == -1 and dict(second.terms) == {i: -1, n: 4, loop.iv: -1}
    assert third == AffineIndex(5)
    assert fourth.terms[0][1] == 1 and not {i, loop.iv} & {*fourth.variables}  # the product stands for itself
    assert fifth.constant == 1 and i not in fifth.variables


def test_a_sum_of_many_terms_stands_for_itself():
    def kernel(a, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9):
        ct.load(a, x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7, 8)
        ct.load(a, x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9, 8)

    few, many = indices(typed(kernel, A1, *[I32] * 10))
    assert len(few.terms) == MAX_TERMS and len(many.terms) == 2

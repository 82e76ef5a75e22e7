"""Ranges of floats: what is claimed holds for what random programs compute, and each rule claims something."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import cutile as ct
from cutile import interp
from cutile.analysis.float_ranges import FloatRanges, Range, constant_of, implied, of_dtype
from cutile.front.program import type_kernel
from cutile.ir.nodes import Op, Value
from cutile.ir.walk import definitions, walk
from cutile.ops import memory, shape
from cutile.passes.fma import fma
from cutile.types import ArrayType, TileType
from tests.front.compiling import cell

LINES = (
    "abs({x})", "-{x}", "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} * {x}", "{x} * {x} + {y}", "{x} / 3.0",
    "{x} * -0.3", "{x} / {y}", "{x} / n", "ct.maximum({x}, {y})", "ct.maximum({x}, {y}, propagate_nan=True)",
    "ct.minimum({x}, 2.5)", "ct.where({x} < {y}, {x}, {y})", "ct.sqrt({x})", "ct.exp({x})",
    "ct.sum({x}, axis=1, keepdims=True)", "ct.max({x}, axis=1, keepdims=True)",
    "ct.max({x}, axis=0, keepdims=True, propagate_nan=True)", "ct.min({x}, axis=1, keepdims=True)",
    "{x}.astype(ct.float16).astype(ct.float32)", "ct.broadcast_to({x}, (4, 8))", "ct.maximum({x}, 1e-8)",
    "ct.add({x}, {y}, rounding_mode=ct.RoundingMode.RP)", "ct.mul({x}, {y}, flush_to_zero=True)",
    "ct.exp({x} - ct.max({x}, axis=1, keepdims=True))",
    "ct.sum(ct.exp2(({x} - ct.max({x}, axis=1, keepdims=True)) * 1.4), axis=1, keepdims=True)",
    "ct.exp({x} - ct.max({x}, axis=0, keepdims=True))", "ct.sum(abs({x}), axis=1, keepdims=True)",
    "ct.sqrt(ct.sum({x} * {x}, axis=1, keepdims=True))",
)
HEAD = """
def kernel(a, h, i, out, n):
    v0 = ct.load(a, (0, 0), (4, 8))
    v1 = ct.load(h, (0, 0), (4, 8)).astype(ct.float32)
    v2 = ct.load(i, (0, 0), (4, 8)).astype(ct.float32)
"""


def source(lines: list[str]) -> str:
    text = HEAD + "".join(f"    v{k} = {line}\n" for k, line in enumerate(lines, 3))
    return text + "".join(f"    ct.store(out, ({k}, 0, 0), ct.broadcast_to(v{k}, (4, 8)).reshape((1, 4, 8)))\n"
                          for k in range(3 + len(lines)))


def computed(text: str, a, h, i) -> tuple[FloatRanges, dict[Value, np.ndarray]]:
    """The analysis of a kernel, and what its variables are when it runs on the arrays."""
    count = text.count("ct.store")
    kinds = [ArrayType(ct.float32, 2), ArrayType(ct.float16, 2), ArrayType(ct.int8, 2), ArrayType(ct.float32, 3),
             TileType(ct.int32)]
    kernel = fma(type_kernel(cell(text)["kernel"], kinds).kernel)
    out = np.zeros((count, 4, 8), np.float32)
    interp.launch(kernel, (1, 1, 1), [a, h, i, out, 100])
    origin = definitions(kernel.body)
    found = {}
    for k, n in enumerate(n for n in walk(kernel.body) if isinstance(n, Op) and n.op is memory.store):
        v = n.operands[-1]
        while isinstance(m := origin.get(v), Op) and m.op in (shape.reshape, shape.broadcast_to):
            v = m.operands[0]
        found[v] = out[k]
    return FloatRanges(origin), found


def holds(r: Range, x: np.ndarray) -> bool:
    finite = x[np.isfinite(x)].astype(float)
    return (bool(r.infinite or not np.isinf(x).any())
            and bool((abs(finite) < 2.0**r.high).all() if r.high < 1024 else True)
            and bool((np.ldexp(finite, -r.low) % 1 == 0).all())
            and bool(r.negative or not (x < 0).any())
            and bool(r.least is None or not (x < 2.0**r.least).any()))


def bounded(x: np.ndarray, high: int) -> bool:
    return bool((np.isnan(x) | (abs(x) < 2.0**high)).all())


@st.composite
def programs(draw):
    lines = []
    for k in range(draw(st.integers(1, 8))):
        line = draw(st.sampled_from(LINES))
        names = [f"v{draw(st.integers(0, k + 2))}" for _ in "xy"]
        lines.append(line.format(x=names[0], y=names[1]))
    return lines


@examples(max_examples=150, deadline=None)
@given(programs(), st.integers(0, 2**32 - 1), st.sampled_from([0, 10, 60, 120]), st.booleans())
def test_what_is_claimed_holds(lines, seed, scale, special):
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        a, h = (rng.standard_normal((4, 8)) * 2.0**rng.integers(-scale, scale + 1, (4, 8)) for _ in "ah")
        if special:
            values = [0, -0.0, math.inf, -math.inf, math.nan]
            a, h = (np.where(rng.random(x.shape) < 0.1, rng.choice(values, x.shape), x) for x in (a, h))
        ranges, found = computed(source(lines), a.astype(np.float32), h.astype(np.float16),
                                 rng.integers(-128, 128, (4, 8)).astype(np.int8))
        for v, x in found.items():
            assert holds(ranges.of(v), x), (ranges.of(v), x)
            if np.isnan(x).any() or np.isinf(x).any():
                continue
            high = math.frexp(float(abs(x).max()))[1]
            assumed = implied(ranges, v, high)
            for w, below in assumed.items():
                assert w not in found or bounded(found[w], below), (lines, below, found[w])
            under = FloatRanges(ranges.source, assumed)
            for w, y in found.items():
                assert holds(under.of(w), y)


def range_of(expression: str) -> Range:
    """The range of an expression of v0 (float32), v1 (float16) and v2 (int8), and of n."""
    ranges, found = computed(source([expression]), np.ones((4, 8), np.float32), np.ones((4, 8), np.float16),
                             np.ones((4, 8), np.int8))
    return ranges.of([*found][-1])


@pytest.mark.parametrize("expression, want", [
    ("v0 - 1.0", Range(-149, 128, True, True)),
    ("v1 + 0.0", Range(-24, 19, True, True)),
    ("abs(v1)", Range(-24, 17, True, False)),
    ("v2 * 0.5", Range(-1, 11, False, True)),
    ("v2 * v2", Range(0, 21, False, False)),
    ("v1 * v1 + abs(v2)", Range(-48, 37, True, False)),
    ("v1 / 4.0", Range(-149, 16, True, True)),
    ("ct.sum(v2, axis=1, keepdims=True)", Range(0, 19, False, True)),
    ("ct.sum(v2, axis=0, keepdims=True)", Range(0, 17, False, True)),
    ("ct.min(v1, axis=1, keepdims=True)", Range(-24, 17, True, True)),
    ("ct.full((4, 8), 0.0, ct.float32)", Range(0, 0, False, False)),
    ("ct.full((4, 8), 0.75, ct.float32)", Range(-2, 0, False, False, -1)),
    ("ct.full((4, 8), -6.0, ct.float32)", Range(1, 3, False, True)),
    ("ct.exp(v1)", Range(-149, 128, True, False)),
    ("ct.exp(v0 - ct.max(v0, axis=1, keepdims=True))", Range(-149, 1, False, False)),
    ("ct.sum(ct.exp(v0 - ct.max(v0, axis=1, keepdims=True)), axis=1, keepdims=True)",
     Range(-149, 10, False, False, -1)),
    ("ct.sum(ct.exp(v0 - ct.max(v0, axis=0, keepdims=True)), axis=1, keepdims=True)", Range(-149, 10, False, False)),
    ("ct.exp2((v0 - ct.max(v0, axis=1, keepdims=True)) * -0.5)", Range(-149, 128, True, False)),
    ("ct.exp2(1.4 * (v0 - ct.max(v0, axis=1, keepdims=True)))", Range(-149, 1, False, False)),
    ("ct.maximum(v0, 1e-8) / 127.0", Range(-149, 123, True, False, -34)),
    ("ct.sqrt(v1 * v1 + 1e-6)", Range(-149, 20, True, False, -10)),
    ("ct.where(v2 < 3.0, 2.0, 0.25)", Range(-2, 2, False, False, -2)),
    ("-ct.full((4, 8), 2.0, ct.float32)", Range(1, 2, False, True)),
    ("ct.sqrt(v1)", Range(-149, 10, True, False)),
    ("ct.where(v2 < 3.0, v1, 0.0)", Range(-24, 17, True, True)),
    ("ct.add(v2, v2, rounding_mode=ct.RoundingMode.RP)", of_dtype(ct.float32)),
])
def test_forward(expression, want):
    assert range_of(expression) == want


@pytest.mark.parametrize("expression, known", [
    ("ct.sum(abs(v0), axis=1, keepdims=True)", True),
    ("ct.sum(v0, axis=1, keepdims=True)", False),
    ("ct.max(abs(v0), axis=1, keepdims=True) / 127.0", True),
    ("ct.max(v0, axis=1, keepdims=True)", False),
    ("ct.maximum(ct.max(abs(v0), axis=1, keepdims=True), 1e-8)", True),
    ("ct.sqrt(ct.sum(v0 * v0, axis=1, keepdims=True) / n + 1e-5)", True),
    ("ct.sqrt(ct.sum(v0 * v0, axis=1, keepdims=True) / v1 + 1e-5)", False),
    ("ct.sum(v0 * v0 + 1.0, axis=1, keepdims=True)", True),
    ("ct.sum(v0 * v0 - v1, axis=1, keepdims=True)", False),
    ("ct.min(abs(v0), axis=1, keepdims=True)", False),
    ("-v0.astype(ct.float16).astype(ct.float32) * 3.0", True),
    ("v0 * v1", False),
    ("v0 - v2", True),
    ("v0 - v1", False),
])
def test_backward(expression, known):
    """Whether a number below 2**20 bounds v0."""
    ranges, found = computed(source([expression]), *(np.ones((4, 8), t) for t in (np.float32, np.float16, np.int8)))
    values = [*found]
    assert (implied(ranges, values[-1], 20).get(values[0], 999) < 99) is known


@pytest.mark.parametrize("lines, want", [
    (["abs(v0)"], {0: 20}), (["-v0"], {0: 20}), (["abs(v0) + abs(v1)"], {0: 20, 1: 20}),
    (["v0 - v2"], {0: 22}), (["v2 + v0"], {0: 22}), (["v0 * 3.0"], {0: 20}), (["0.25 * v0"], {0: 23}),
    (["v0 / 3.0"], {0: 23}), (["v0 * v0"], {0: 11}), (["v0 * v0 + abs(v1)"], {0: 11, 1: 20}),
    (["ct.sqrt(v0)"], {0: 41}), (["v0.astype(ct.float16).astype(ct.float32)"], {0: 22}),
    (["ct.sum(abs(v0), axis=1, keepdims=True)"], {0: 21}), (["ct.max(abs(v0), axis=1, keepdims=True)"], {0: 20}),
    (["ct.sum(abs(v0), axis=1, keepdims=True)", "v3 - 1.0"], {0: 23, 3: 22}),
    (["v0 * v0 + ct.sum(abs(v1), axis=1, keepdims=True)"], {0: 11, 1: 21}),
    (["v0 - 1.0", "v3 * v3 + abs(v1)"], {0: 13, 1: 20, 3: 11}),
])
def test_backward_exactly(lines, want):
    """Where the last number is below 2**20: the exponents below which those are that it was computed from.

    Each rounding doubles, each difference quadruples, and a root or a square rounds up.
    """
    ranges, found = computed(source(lines), *(np.ones((4, 8), t) for t in (np.float32, np.float16, np.int8)))
    assumed, values = implied(ranges, [*found][-1], 20), [*found]
    assert {k: assumed[v] for k, v in enumerate(values[:-1]) if v in assumed and k != 2} == want


def test_constants():
    ranges, found = computed(source(["ct.full((4, 8), 2.5, ct.float32) * 1.0", "v0 + v1"]),
                             *(np.ones((4, 8), t) for t in (np.float32, np.float16, np.int8)))
    seen = [constant_of(ranges.source, v) for n in ranges.source.values() if isinstance(n, Op) for v in n.operands]
    assert 2.5 in seen and constant_of(ranges.source, [*found][-1]) is None

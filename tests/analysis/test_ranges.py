"""Ranges of integers: what is said of each op is compared with all values. What is said of the places of tiles is
compared with what blocks access in test_inside.py.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from cutile.analysis import ranges
from cutile.analysis.guards import Guard
from cutile.analysis.ranges import ANY_GRID, ScalarRanges
from cutile.dtypes import int32, int_range
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.ops import debug, memory
from cutile.types import ListType, TileType
from tests.front.compiling import A1, A2, B1, I32, cell, typed

NUMBERS = range(-5, 7)
RANGES = [(a, b) for a in NUMBERS for b in NUMBERS if a <= b]
INT32 = int_range(int32)


def hull(f, *of: tuple[int, int]) -> tuple[int, int]:
    values = [f(*xs) for xs in itertools.product(*(range(a, b + 1) for a, b in of))]
    return min(values), max(values)


# Expressions of x and y, of a condition c: their values, and where a range must be exact or (None) may not be known.
OF_NUMBERS = {
    "ct.minimum(x, y)": (min, lambda x, y: True),
    "ct.maximum(x, y)": (max, lambda x, y: True),
    "x * y": (lambda x, y: x * y, lambda x, y: True),
    "x // y": (lambda x, y: x // y, lambda x, y: y[0] > 0 or None),
    "ct.cdiv(x, y)": (lambda x, y: -(-x // y), lambda x, y: y[0] > 0 or None),
    "x % y": (lambda x, y: x % y, lambda x, y: (y[0] == y[1] and x[0] // y[0] == x[1] // y[0]) if y[0] > 0 else None),
    "x & y": (lambda x, y: x & y, lambda x, y: False if x[0] >= 0 or y[0] >= 0 else None),
    "x << y": (lambda x, y: x << y, lambda x, y: y[0] == y[1] >= 0 or None),
    "x >> y": (lambda x, y: x >> y, lambda x, y: y[0] == y[1] >= 0 or None),
    "x.astype(ct.int64)": (lambda x, y: x, lambda x, y: True),
    "ct.assume_divisible_by(x, 2)": (lambda x, y: x, lambda x, y: True),
}
WITH_CONDITION = {
    "ct.where(c, x, y)": (lambda c, x, y: x if c else y),
    "c.astype(ct.int32)": (lambda c, x, y: int(c)),
}
OF_LAUNCHES = ("a.shape[0]", "ct.num_tiles(a, 0, 8)", "a.tiled_view(8).num_tiles(0)", "ct.num_blocks(0)", "len(arrays)")


def op_of(expression: str) -> Op:
    """The node with a rule that an expression becomes."""
    kernel = cell(f"def kernel(a, arrays, c, x, y):\n    print({expression})\n")["kernel"]
    *_, n = [n for n in walk(typed(kernel, A1, ListType(A1), B1, I32, I32).body)
             if isinstance(n, Op) and n.op in ranges._RULES]
    return n


def range_of(n: Op, **given: tuple[int, int]) -> tuple[int, int] | None:
    """What the rule of a node says, if its operands that are scalars have these ranges."""
    of = {v: given[v.name] for v in n.operands if v.name in given}
    return ranges._RULES[n.op](SimpleNamespace(of=of.__getitem__), n)


def test_every_rule_is_compared():
    assert {op_of(e).op for e in (*OF_NUMBERS, *WITH_CONDITION, *OF_LAUNCHES)} == set(ranges._RULES)


@pytest.mark.parametrize("expression", OF_NUMBERS)
def test_numbers(expression):
    n, (f, known) = op_of(expression), OF_NUMBERS[expression]
    for x, y in itertools.product(RANGES, RANGES):
        found, exact = range_of(n, x=x, y=y), known(x, y)
        assert (found is None) == (exact is None), (x, y)
        if found is not None:
            low, high = hull(f, x, y)
            assert found[0] <= low and high <= found[1], (x, y)
            assert not exact or found == (low, high), (x, y)


@pytest.mark.parametrize("expression", WITH_CONDITION)
def test_conditions(expression):
    n, f = op_of(expression), WITH_CONDITION[expression]
    for x, y in itertools.product(RANGES, RANGES):
        assert range_of(n, x=x, y=y) == hull(f, (0, 1), x, y)


def test_remainders_are_below_both():
    for x, y in itertools.product(RANGES, RANGES):
        if y[0] > 0 and x[0] >= 0:
            assert 0 <= ranges._remainder(x, y)[0] and ranges._remainder(x, y)[1] <= min(x[1], y[1] - 1)


def test_bits_of_both_are_none_of_either_more():
    for x, y in itertools.product(RANGES, RANGES):
        if (found := ranges._and(x, y)) is not None:
            assert found == (0, min(high for low, high in (x, y) if low >= 0))


@pytest.mark.parametrize("amount, known", [((0, 0), True), ((3, 3), True), ((31, 31), True), ((32, 32), False),
                                           ((1, 2), False), ((-1, -1), False), ((0, 32), False)])
def test_shifts_by_a_known_number(amount, known):
    assert range_of(op_of("x << y"), x=(-3, 5), y=amount) == (
        (-3 << amount[0], 5 << amount[0]) if known else None)


# ------------------------------------------------------------------ launches


class Launch:
    """The ranges of a kernel of two arrays, a list of arrays and an int, and the values that its lines print."""

    def __init__(self, *lines: str, blocks=((1, 1),) * 3, **shapes):
        body = "".join(f"    {line}\n" for line in lines)
        kernel = typed(cell(f"def kernel(a, m, arrays, n):\n{body}")["kernel"], A1, A2, ListType(A1), I32)
        self.ops = [n for n in walk(kernel.body) if isinstance(n, Op)]
        self.shown = [v for n in self.ops if n.op is debug.emit_text for v in n.operands]
        named = dict(zip(kernel.param_names, kernel.params, strict=True))
        self.found = ScalarRanges(kernel).of_launch(blocks, {named[k]: s for k, s in shapes.items()})


@pytest.mark.parametrize("expression, want", [
    ("ct.bid(0)", (0, 3)), ("ct.num_blocks(0)", (2, 4)), ("a.shape[0]", (33, 33)), ("ct.num_tiles(a, 0, 8)", (5, 5)),
    ("ct.num_tiles(m, 0, (4, 2), order=(1, 0))", (1, 1)), ("ct.num_tiles(m, 0, (4, 2))", (6, 6)),
    ("a.tiled_view(8).num_tiles(0)", (5, 5)), ("a.tiled_view(8, traversal_steps=16).num_tiles(0)", (3, 3)),
    ("ct.num_tiles(arrays[0], 0, 8)", (1, 3)), ("len(arrays)", (2, 2)), ("arrays[0].shape[0]", (7, 20)),
    ("a.slice(0, n, n + 6).shape[0]", (0, INT32[1])),
    ("a.strides[0]", INT32), ("n", INT32), ("n + 1", INT32), ("(ct.bid(0) + 1) * ct.num_blocks(0)", (2, 16)),
])
def test_what_a_launch_says(expression, want):
    launch = Launch(f"print({expression})", blocks=((2, 4), (1, 1), (1, 1)), a=(33,), m=(24, 3), arrays=[(7,), (20,)])
    assert [launch.found.of(v) for v in launch.shown] == [want]


def test_any_grid():
    """The largest grid has 2**24 - 1 blocks along each axis [LAUNCH-3]."""
    launch = Launch("print(ct.bid(0), ct.num_blocks(0), ct.bid(1), ct.num_blocks(1), ct.bid(2), ct.num_blocks(2))",
                    blocks=ANY_GRID)
    assert [launch.found.of(v) for v in launch.shown] == [(0, 2**24 - 2), (1, 2**24 - 1)] * 3


@pytest.mark.parametrize("grid, size", [((3, 1), (0, 2)), ((1, 3), (2, 4)), ((4, 1), None)])
def test_slices(grid, size):
    """Nothing is known of a length that may be negative."""
    launch = Launch("ct.load(a.slice(0, ct.bid(0), ct.bid(1) + 2), 0, ())",
                    blocks=((1, grid[0]), (1, grid[1]), (1, 1)), a=(64,))
    (part,) = [n.operands[0] for n in launch.ops if n.op is memory.load]
    assert launch.found.sizes(part) == [size]


@pytest.mark.parametrize("last, known", [(2**31 - 1, True), (2**31, False)])
def test_the_longest_slice(last, known):
    launch = Launch(f"ct.load(a.slice(0, 0, ct.bid(0).astype(ct.int64) + {last - 1}), 0, ())",
                    blocks=((1, 2), (1, 1), (1, 1)), a=(64,))
    (part,) = [n.operands[0] for n in launch.ops if n.op is memory.load]
    assert launch.found.sizes(part) == [(last - 1, last) if known else None]


# ------------------------------------------------------------------ loops and guards


def test_counters():
    """What a loop counts is in its range, and is all of it if start, stop and step are numbers."""
    loop = SimpleNamespace(iv=SimpleNamespace(type=TileType(int32)))
    few = [(a, b) for a, b in RANGES if a % 3 == 0]
    for start, stop, step in itertools.product(few, few, [(1, 1), (1, 3), (2, 2), (2, 4), (3, 3)]):
        found = ranges._counter(loop, start, stop, step)
        values = {i for s, e, k in itertools.product(*(range(a, b + 1) for a, b in (start, stop, step)))
                  for i in range(s, e, k)}
        assert values <= set(found), (start, stop, step)
        if start[0] == start[1] and step[0] == step[1]:
            longest = range(start[0], stop[1], step[0])
            assert (found[0], found[-1]) == (longest[0], longest[-1]) if longest else not found
    for step in [(0, 0), (0, 3), (-1, 4), (-2, -2)]:
        assert ranges._counter(loop, (0, 0), (3, 3), step) == range(INT32[0], INT32[1] + 1)


def test_guards():
    """Of sums of block indices, each of the others being at most, or at least, what a comparison says."""
    launch = Launch("i, j, k = ct.bid(0), ct.bid(1), ct.bid(2)",
                    "print(i, j + 0, i + j, i - j, j - i, 2 * i + j, 3 - i, i + j - k)",
                    blocks=((1, 3), (1, 4), (1, 2)))
    functions = [launch.found.scalars.function(v) for v in launch.shown]
    blocks = list(itertools.product(range(3), range(4), range(2)))
    values = [[f.constant + sum(c * at[v.axis] for v, c in f.terms) for at in blocks] for f in functions]
    for (v, xs), (lower, ls), (upper, us) in itertools.product(zip(launch.shown, values, strict=True), repeat=3):
        for gap in (-2, 0, 1):
            there = [x for x, a, b in zip(xs, ls, us, strict=True) if a + gap <= b]
            least, most = launch.found.under([Guard(lower, upper, gap)], v)
            assert all(least <= x <= most for x in there)
            assert min(xs) <= least and most <= max(xs)


@pytest.mark.parametrize("guards, want", [
    ([], INT32), ([("n", 8, 1)], INT32), ([(0, "n", 0)], INT32), ([("n", 8, 1), (0, "n", 0)], (0, 7)),
    ([("n", 8, 0), (-3, "n", 1)], (-2, 8)), ([("n", -4, 0), (-9, "n", 0)], (-9, -4))])
def test_guards_of_a_number_that_is_not_known(guards, want):
    launch = Launch("zero = ct.bid(0)", "print(n, zero + 8, zero + 0, zero - 3, zero - 4, zero - 9)")
    of = dict(zip(("n", 8, 0, -3, -4, -9), launch.shown, strict=True))
    given = [Guard(of[lower], of[upper], gap) for lower, upper, gap in guards]
    assert launch.found.under(given, of["n"]) == want

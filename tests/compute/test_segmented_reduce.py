"""segmented_reduce: segments of every kind, against a fold in Python."""

from __future__ import annotations

import functools
import importlib

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute import CountingIterator, OpKind, PermutationIterator, host_segments
from cutile.compute import segmented_reduce as one_shot
from cutile.compute.algorithm import WIDE, on_some_gpu
from cutile.compute.plans import Plan
from tests.compute.checks import assemble_launches, at_levels, check_docstring, deep_but, forget_plans
from tests.gpu.tileir.tool import needs_tool

segmented_reduce = importlib.import_module("cutile.compute.segmented_reduce")


def larger(a, b):
    if a > b:
        return a
    return b


def expected(x, starts, ends, f, init):
    return [functools.reduce(f, x[s:e].tolist(), init) for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]


@pytest.mark.parametrize("segments, mean", [(1, 5000), (3, 0), (7, 700), (300, 3), (2048, 1), (2049, 2), (40, 90)])
def test_segments(segments, mean):
    rng = np.random.default_rng(segments)
    sizes = rng.integers(0, 2 * mean + 1, segments)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    x, o = rng.integers(-99, 99, offsets[-1]).astype(np.int32), np.zeros(segments, np.int64)
    one_shot(x, o, segments, offsets[:-1], offsets[1:], OpKind.PLUS, np.array([3], np.int64))
    assert o.tolist() == expected(x, offsets[:-1], offsets[1:], lambda a, b: a + b, 3)
    starts = compute.CacheModifiedInputIterator(offsets)
    one_shot(x, o, segments, starts, starts + 1, larger, np.int32(-50), max_segment_size=1)
    assert o.tolist() == expected(x, offsets[:-1], offsets[1:], max, -50)


def added(a, b):
    return a + b


def divisor(a, b):
    while b != 0:
        a, b = b, a % b
    return a


OPERATORS = {"sums": (OpKind.PLUS, added, 5), "products": (OpKind.MULTIPLIES, lambda a, b: a * b, 3),
             "maxima": (OpKind.MAXIMUM, max, -3), "bits": (OpKind.BIT_XOR, lambda a, b: a ^ b, 9),
             "a function": (larger, max, 2), "a loop": (divisor, divisor, 12), "a plain function": (added, added, -1)}


def offsets_of(kind, segments, length, rng):
    """Starts and ends of segments in `segments * length` items."""
    n = segments * length
    starts = np.arange(segments) * length
    if kind == "alike":
        return starts, starts + length
    if kind == "backwards":
        return starts[::-1].copy(), starts[::-1] + length
    if kind == "one is shorter":
        ends = starts + length
        ends[segments // 2] -= 1
        return starts, ends
    if kind == "moved by one":
        return np.minimum(starts + 1, n), np.minimum(starts + 1 + length, n)
    cuts = np.sort(rng.integers(0, n + 1, segments - 1))
    return np.concatenate([[0], cuts]), np.concatenate([cuts, [n]])


@pytest.fixture
def kernel(monkeypatch):
    """Whatever the operator is, the kernel of a GPU runs, and no function of NumPy."""
    forget_plans()
    monkeypatch.setattr(host_segments, "reduce", lambda *args: False)
    yield
    forget_plans()


@pytest.mark.parametrize("kind", ["alike", "backwards", "one is shorter", "moved by one", "any"])
@pytest.mark.parametrize("length", deep_but([1, 2, 4, 7, 16, 64, 128, 256], 2, 7, 16))
def test_segments_that_may_be_alike(kind, length, kernel):
    """Results do not depend on whether the offsets are those of segments of one length."""
    rng = np.random.default_rng(length)
    segments = 2 * segmented_reduce._shape_alike(max(length, 2), 32).rows + 3
    starts, ends = offsets_of(kind, segments, length, rng)
    for name, (op, fold, init) in OPERATORS.items():
        x = rng.integers(1, 60, segments * length) if name != "products" else rng.choice([-1, 1, 2], segments * length)
        o = np.zeros(segments, np.int64)
        one_shot(x, o, segments, starts, ends, op, np.int64(init))
        if name != "products" or length < 60:  # Python's do not wrap
            assert o.tolist() == expected(x, starts, ends, fold, init), (name, kind)


@pytest.mark.parametrize("length", [16, 32, 64])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float32])
def test_short_items_of_segments_that_may_be_alike(length, dtype, kernel):
    rows = segmented_reduce._shape_alike(length, np.dtype(dtype).itemsize * 8).rows
    assert rows == max(segmented_reduce.LARGER.get(length, segmented_reduce.TILE) // length, 32)
    for segments in (rows, rows + 1, 2 * rows - 1):
        x = np.random.default_rng(segments).integers(-2, 3, segments * length).astype(dtype)
        o, offsets = np.zeros(segments, dtype), np.arange(0, len(x) + 1, length)
        for moved in (0, 1):
            one_shot(x, o, segments, offsets[:-1], offsets[1:] - moved, OpKind.PLUS, dtype(1))
            assert np.array_equal(o, x.reshape(segments, length)[:, :length - moved].sum(1, dtype=dtype) + dtype(1))


@pytest.mark.parametrize("length", [2, 16, 64])
def test_segments_that_may_be_alike_of_several_numbers(length, kernel):
    Pair = compute.gpu_struct({"a": np.int32, "b": np.float64})
    segments = segmented_reduce._shape_alike(length, 32).rows + 3
    n = segments * length
    offsets, x = np.arange(0, n + 1, length), np.zeros(n, Pair.dtype)
    x["a"], x["b"] = np.arange(n), np.arange(n) / 2
    o, z = np.zeros(segments, Pair.dtype), np.zeros(segments, complex)
    one_shot(x, o, segments, offsets[:-1], offsets[1:], lambda p, q: Pair(p.a + q.a, p.b + q.b), Pair(0, 0.0))
    for name in ("a", "b"):
        assert np.array_equal(o[name], x[name].reshape(-1, length).sum(1))
    one_shot(x["b"] * 2j, z, segments, offsets[:-1], offsets[1:], OpKind.PLUS, np.zeros(1, complex))
    assert np.array_equal(z, o["b"] * 2j)


@pytest.mark.parametrize("mean", deep_but([1, 3, 5, 9, 20, 40, 70, 300, 700, 2000, 20000], 3, 20, 300, 20000))
def test_lengths_of_segments(mean, kernel):
    rng = np.random.default_rng(mean)
    segments = 3 if mean > 1000 else segmented_reduce._shape(mean).rows + 3
    sizes = rng.integers(0, 2 * mean + 1, segments)
    sizes[0], sizes[-1] = 0, 2 * mean
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    x, o = rng.integers(-99, 99, offsets[-1]), np.zeros(segments, np.int64)
    for op, fold, init in (OPERATORS[k] for k in ("sums", "maxima", "a function")):
        one_shot(x, o, segments, offsets[:-1], offsets[1:], op, np.int64(init))
        assert o.tolist() == expected(x, offsets[:-1], offsets[1:], fold, init)
        source = compute.TransformIterator(x, lambda v: 2 * v)
        one_shot(source, o, segments, offsets[:-1], offsets[1:], op, np.int64(init))
        assert o.tolist() == expected(2 * x, offsets[:-1], offsets[1:], fold, init)


@pytest.mark.parametrize("mean", [2, 5, 40, 100, 300, 700, 1500])
def test_segments_far_longer_than_others(mean, kernel):
    """All lanes of a block go over what is left of each: several of one block, the first and the last, by one item and
    by many, also of a computed input, whose items are read once, and of several numbers."""
    rng = np.random.default_rng(mean)
    shape = segmented_reduce._shape(mean)
    assert shape.rows > 1
    most = shape.lanes * max(segmented_reduce.STEPS, 4 * mean // shape.lanes)
    sizes = np.full(shape.rows + 3, 1)
    sizes[[0, 1, 2, -4, -1]] = most + 1, 3 * most + 2, most, 2 * most, most + 3 * shape.rows * shape.lanes + 5
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    x, o = rng.integers(-99, 99, offsets[-1]), np.zeros(len(sizes), np.int64)
    for op, fold, init in (OPERATORS[k] for k in ("sums", "maxima", "a function")):
        one_shot(x, o, len(sizes), offsets[:-1], offsets[1:], op, np.int64(init), max_segment_size=mean)
        assert o.tolist() == expected(x, offsets[:-1], offsets[1:], fold, init)
    seen = np.zeros(len(x), np.int32)

    def counted(i):
        ct.atomic_add(seen, i, 1)
        return (i, 2 * i)
    Pair = compute.gpu_struct({"a": np.int64, "b": np.int64})
    pairs = np.zeros(len(sizes), Pair.dtype)
    one_shot(compute.TransformIterator(np.arange(len(x)), lambda i: Pair(*counted(i))), pairs, len(sizes), offsets[:-1],
             offsets[1:], lambda p, q: Pair(p.a + q.a, p.b + q.b), Pair(0, 0), max_segment_size=mean)
    assert pairs["a"].tolist() == expected(np.arange(len(x)), offsets[:-1], offsets[1:], added, 0)
    assert (pairs["b"] == 2 * pairs["a"]).all() and (seen == 1).all()


@pytest.mark.parametrize("length", [3, 8, 100])
def test_lanes_without_items_change_nothing(length, kernel):
    """Neither the sign of a zero nor NaN [SEG-1]."""
    segments = 40
    offsets = np.arange(segments + 1) * length - np.arange(segments + 1) % 2  # of two lengths
    offsets[0] = 0
    x, o = np.full(segments * length, -0.0, np.float32), np.zeros(segments, np.float32)
    one_shot(x, o, segments, offsets[:-1], offsets[1:], OpKind.PLUS, np.float32(-0.0))
    assert np.signbit(o).all() and not o.any()
    x[:] = np.nan
    for op in (OpKind.PLUS, OpKind.MINIMUM, OpKind.MULTIPLIES, lambda a, b: a + b):
        one_shot(x, o, segments, offsets[:-1], offsets[1:], op, np.float32(np.nan))
        assert np.isnan(o).all()
    one_shot(x, o, segments, offsets[:-1], offsets[:-1], OpKind.PLUS, np.float32(2))
    assert (o == 2).all()


def test_an_iterator_reads_each_item_once(kernel):
    """Nor does it read items that are in no segment."""
    seen = np.zeros(64, np.int32)

    def counted(i):
        ct.atomic_add(seen, i, 1)
        return i
    items = compute.TransformIterator(np.arange(64), counted)
    o = np.zeros(16, np.int64)
    for op in (OpKind.PLUS, OpKind.MAXIMUM, larger):
        seen[:] = 0
        starts = np.arange(16) * 4
        one_shot(items, o, 16, starts, starts + 3, op, np.int64(0))
        assert seen.tolist() == [1, 1, 1, 0] * 16


def test_the_sanitizer_reports_offsets_beyond_the_items(kernel):
    x, o = np.arange(20.0), np.zeros(3)
    for starts, ends in (([0, 8, 16], [8, 16, 21]), ([0, -1, 16], [8, 16, 20]), ([0, 10, 30], [10, 20, 31])):
        with ct.sanitize("all"), pytest.raises(ct.TileSanitizerError, match="bounds: gather.*shape .20,"):
            one_shot(x, o, 3, np.array(starts), np.array(ends), OpKind.PLUS, 0.0)
    with ct.sanitize("all"):
        one_shot(x, o, 3, np.array([0, 8, 40]), np.array([8, 20, 40]), OpKind.PLUS, 0.0)  # reads nothing there
    assert o.tolist() == [28, 162, 0]


@pytest.mark.parametrize("many, size", [(1, 1 << 29), (1, WIDE - 1), (2, WIDE - 1), (100_000, WIDE - 1)])
def test_numbers_of_launches_fit_their_parameters(many, size):
    """Those of few and very long segments, too: without int64 where positions need none."""
    x, i, o = np.zeros(4, np.float32), np.zeros(4, np.int32), np.zeros(4, np.float32)
    made = compute.make_segmented_reduce(x, o, i, i, OpKind.PLUS, np.float32(0))
    made_of = {name: on_some_gpu(v, size if name == "d_in" else many) for name, v in made._operands.items()}
    operands = [{"num_segments": many, "max_segment_size": None}.get(name, made_of.get(name)) for name in made.takes]
    plan = Plan(operands)
    made.plan(plan, *operands)
    launches = [[a for a in args if type(a) is int] for _, args in plan.launches()]
    assert launches and max(max(numbers) for numbers in launches) < 1 << 31


def test_samples_have_all_kernels():
    """Those that an object may launch, for segments of each length, alike or not, few or many."""
    def constants(operands):
        plan = Plan(operands)
        made.plan(plan, *operands)
        return {(k, *args[-6:]) for k, args in plan.launches()}
    x, i, o = np.zeros(4, np.float32), np.zeros(4, np.int32), np.zeros(4, np.float32)
    made = compute.make_segmented_reduce(x, o, i, i, OpKind.PLUS, np.float32(0))
    known = {found for operands in made.samples() for found in constants(operands)}
    assert len(known) > 20
    for length in (1, 2, 3, 8, 15, 16, 31, 64, 100, 128, 129, 256, 1000, 4095, 4096, 100_000):
        for n in (1, 3, 100, 5000, (1 << 30) // length, (1 << 31) - 1):
            for more in (0, 1):
                made_of = {name: on_some_gpu(x, n * length + more if name == "d_in" else n)
                           for name, x in made._operands.items()}
                operands = [{"num_segments": n, "max_segment_size": None}.get(name, made_of.get(name))
                            for name in made.takes]
                assert constants(operands) <= known, (length, n, more)


def test_any_segments():
    """They overlap, leave gaps, stand in any order, and end before they begin [SEG-1]."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 1 << 20, 3000).astype(np.uint64)
    starts, ends = rng.integers(0, 3000, (2, 500)).astype(np.int16)
    o = np.full(500, 7, np.uint64)
    one_shot(x, o, 499, starts, ends, OpKind.BIT_XOR, np.uint64(0))
    assert o[:499].tolist() == expected(x, starts[:499], ends[:499], lambda a, b: a ^ b, 0) and o[499] == 7


def test_iterators_structs_and_loops():
    Range = compute.gpu_struct({"low": np.int32, "high": np.float32})

    def joined(a, b):
        return Range(min(a.low, b.low), max(a.high, b.high))

    o = np.zeros(30, Range.dtype)
    squares = compute.TransformIterator(CountingIterator(np.int32(0)), lambda i: Range(i - 5, i * i))
    tens = compute.TransformIterator(CountingIterator(np.int32(0)), lambda i: i * 10)
    one_shot(squares, o, 30, tens, tens + 1, joined, Range(9, -1.0))
    assert o["low"].tolist() == [min(10 * k - 5, 9) for k in range(30)]
    assert o["high"].tolist() == [float((10 * k + 9) ** 2) for k in range(30)]
    one_shot(CountingIterator(12), d := np.zeros(3, np.int64), 3, np.array([0, 6, 3]), np.array([1, 7, 3]), divisor, 30)
    assert d.tolist() == [6, 6, 30]


@pytest.mark.parametrize("items,text", [
    (lambda x, i: PermutationIterator(x, i), "index 10 .*, in segment 2, is out of range: there are 10 items"),
    (lambda x, i: PermutationIterator(x, compute.TransformIterator(i, lambda v: 9 - v)), "index -1 .*, in segment 2"),
    (lambda x, i: PermutationIterator(i, compute.TransformIterator(i, lambda v: 9 - v)), "index -1 .* is negative"),
    (lambda x, i: PermutationIterator(x, PermutationIterator(np.append(np.arange(10), 12), i)),
     "index 12 .*, in segment 2, is out of range: there are 10 items"),
    (lambda x, i: PermutationIterator(PermutationIterator(x, np.append(np.arange(10), 10)), i), "index 10 "),
    (lambda x, i: compute.TransformIterator(compute.ZipIterator(PermutationIterator(x, i), i), lambda z: z[0]),
     "index 10")])
def test_places_among_endless_items(items, text):
    """Of PermutationIterators without an end, those that segments lead to are checked."""
    x, i, o = np.arange(100, 110), CountingIterator(np.int64(0)), np.zeros(3, np.int64)
    starts, ends = np.array([4, 0, 8]), np.array([6, 4, 10])
    source = items(x, i)
    one_shot(source, o, 3, starts, ends, OpKind.PLUS, np.int64(0))
    want = np.zeros(10, np.int64)
    compute.unary_transform(source, want, OpKind.IDENTITY, 10)
    assert o.tolist() == [want[a:b].sum() for a, b in zip(starts, ends, strict=True)]
    with pytest.raises(IndexError, match=f"argument `d_in`: {text}"):
        one_shot(source, o, 3, starts, ends + [0, 0, 1], OpKind.PLUS, np.int64(0))


def test_a_call_of_an_object():
    x, offsets, o = np.arange(50.0), np.arange(0, 60, 10), np.zeros(5)
    reduce = compute.make_segmented_reduce(x, o, offsets, offsets, OpKind.PLUS, 0.0)
    need = reduce(None, x, o, 5, offsets[:-1], offsets[1:], OpKind.PLUS, 0.0)
    assert not o.any()
    for first in (0.0, 1.5):
        for source in (x, x + 1):
            reduce(np.empty(need, np.uint8), source, o, 5, offsets[:-1], offsets[1:], OpKind.PLUS, first)
            assert np.array_equal(o, source.reshape(5, 10).sum(1) + first)
    reduce(np.empty(need, np.uint8), x, o, 0, offsets, offsets, OpKind.PLUS, 3.0)
    assert o[0] == 1.5 + 55


def test_what_is_refused():
    x, i, o = np.zeros(4), np.zeros(4, np.int32), np.zeros(4)
    with pytest.raises(TypeError, match="`h_init`: segments without items need an initial value"):
        one_shot(x, o, 4, i, i, OpKind.PLUS, None)
    with pytest.raises(TypeError, match="`end_offsets_in`: offsets are integers, not float64"):
        one_shot(x, o, 4, i, x, OpKind.PLUS, 0.0)
    with pytest.raises(ValueError, match="`num_segments` is 5, but `d_out` has 4 items"):
        one_shot(x, o, 5, i, i, OpKind.PLUS, 0.0)
    with pytest.raises(ValueError, match="`num_segments` is negative"):
        one_shot(x, o, -1, i, i, OpKind.PLUS, 0.0)
    many = compute.ConstantIterator(0)
    with pytest.raises(RuntimeError, match="at most 2147483647 segments"):
        one_shot(x, compute.DiscardIterator(), 1 << 31, many, many, OpKind.PLUS, 0.0)
    reduce = compute.make_segmented_reduce(x, o, i, i, OpKind.PLUS, 0.0)
    with pytest.raises(TypeError, match="`start_offsets_in`: this object was made for array of int32, got array of"):
        reduce(None, x, o, 4, i.astype(np.int64), i, OpKind.PLUS, 0.0)


@pytest.mark.parametrize("function", [one_shot, compute.make_segmented_reduce])
def test_documentation(function):
    check_docstring(function)


@needs_tool
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    x, offsets, o = np.arange(900, dtype=np.float32), np.arange(0, 910, 9), np.zeros(100, np.float32)
    one_shot(x, o, 100, offsets[:-1], offsets[1:], larger, np.float32(5))
    assert np.array_equal(o, np.maximum(x.reshape(100, 9).max(1), 5))
    one_shot(x, o, 100, offsets[:-1], offsets[1:], OpKind.PLUS, 0.0, 1000)
    assert seen == ["reduce_segments"] * 2

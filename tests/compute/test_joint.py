"""Counting by pairs, as on GPUs with many samples: beside NumPy, in each way of counting, for sizes around whole tiles,
kinds of samples, and numbers of bins. In the interpreter.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import compute
from cutile.compute import algorithm, histogram, joint, triples
from cutile.compute.plans import Plan
from tests.compute.checks import assemble_launches, at_levels, forget_plans
from tests.gpu.tileir.tool import needs_tool

WHOLE, CELLS = histogram.WHOLE, joint.CELLS
WAYS = {joint.BY_PAIRS: (1 << 30, 1), joint.ONE_BY_ONE: (-1, 1), joint.AT_ONCE: (-1, 1 << 14)}


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(histogram, "MANY", WHOLE)
    monkeypatch.setattr(joint, "CELLS", 1 << 12)  # as many take long here
    monkeypatch.setattr(triples, "copies_for", lambda bins: 0)  # by pairs, also where there are few bins
    forget_plans()
    yield monkeypatch
    forget_plans()


def counted_in(way, monkeypatch):
    """From now on, samples are counted in this way, whatever they are."""
    most, few = WAYS[way]
    monkeypatch.setattr(joint, "most_equal", lambda bins: most)
    monkeypatch.setattr(joint, "FEW", few)
    forget_plans()


def check(samples, bins, lower=0, upper=None):
    out, upper = np.full(bins + 1, 9, np.int32), lower + bins if upper is None else upper
    compute.histogram_even(samples, out, bins + 1, lower, upper, len(samples))
    inside = samples[(samples >= lower) & (samples < upper)].astype(np.float64)
    want = np.bincount(((inside - lower) * (bins / (upper - lower))).astype(np.int64), minlength=bins)
    assert np.array_equal(out[:bins], want) and out[bins] == 9


def kinds_of_samples(n, bins):
    """Uniform, periodic, of one bin, mostly of one, of few, in order, outside of all bins."""
    r, i = np.random.default_rng(n), np.arange(n)
    yield r.integers(-3, bins + 3, n)
    yield i * 7 % bins
    yield np.full(n, bins - 1)
    yield np.where(r.random(n) < 0.9, bins // 2, r.integers(0, bins, n))
    yield r.integers(0, min(bins, 5), n)
    yield i * bins // n
    yield r.integers(bins, bins + 9, n)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_each_way_counts_all_samples(as_on_a_gpu, way, dtype):
    counted_in(way, as_on_a_gpu)
    for samples in kinds_of_samples(2 * WHOLE + 77, 300):
        check(samples.astype(dtype), 300, dtype(0), dtype(300))


@pytest.mark.parametrize("n", [1, WHOLE - 1, WHOLE, WHOLE + 1, 2 * WHOLE - 1, 3 * WHOLE])
def test_sizes(n):
    check(np.random.default_rng(n).integers(-1, 60, n).astype(np.int32), 50)


@pytest.mark.parametrize("bins", [1, 2, 7, 8, 9, 127, 128, 129, 1025, joint.MOST, joint.MOST + 1])
def test_bins(bins):
    check(np.random.default_rng(bins).integers(-3, bins + 3, WHOLE).astype(np.int32), bins)


@given(bins=st.integers(1, 200), lower=st.integers(-100, 100), width=st.integers(1, 300),
       kind=st.sampled_from([np.int8, np.uint16, np.int64]))
@settings(max_examples=10, deadline=None)
def test_levels(bins, lower, width, kind):
    """Bins of any width, of integers of any dtype."""
    r, ends = np.random.default_rng(bins), np.iinfo(kind)
    samples = np.clip(r.integers(lower - 9, lower + width + 9, WHOLE), ends.min, ends.max).astype(kind)
    out = np.zeros(bins, np.int32)
    compute.histogram_even(samples, out, bins + 1, lower, lower + width, len(samples))
    above = samples.astype(np.int64) - lower
    inside = (above >= 0) & (above < width)
    assert np.array_equal(out, np.bincount(above[inside] * bins // width, minlength=bins))


def test_copies(as_on_a_gpu):
    as_on_a_gpu.setattr(joint, "CELLS", 10 * joint.cells_of(100))
    check(np.random.default_rng(7).integers(-1, 101, 5 * WHOLE).astype(np.int32), 100)


def test_cells(as_on_a_gpu):
    """Each pair of bins has a counter of its own; counters of neighbouring bins are in different sectors of memory."""
    as_on_a_gpu.setattr(joint, "CELLS", CELLS)
    for bins in (1, 2, 5, 64, 100):
        low, high = np.triu_indices(bins)
        cells = joint._cell(high, low)
        assert len(np.unique(cells)) == len(cells) and 0 <= cells.min() and cells.max() < joint.cells_of(bins)
        assert joint.cells_of(bins) < len(cells) + joint.SWAPPED
    assert len(np.unique(joint._cell(63, np.arange(8)) // 8)) == 8
    assert joint.cells_of(joint.MOST) < 1 << 24
    assert joint.copies_for(1) == joint.COPIES and joint.copies_for(joint.MOST) == 1


@pytest.mark.parametrize("bins", [16, 256, 1024, 4096])
def test_the_way_is_that_of_the_samples(as_on_a_gpu, bins):
    """Of uniform samples pairs are counted, whether they are periodic or in order; of few values they are not."""
    compute.clear_all_caches()  # to see kernels made
    as_on_a_gpu.setattr(joint, "CELLS", CELLS)
    ways = []
    looking = joint.looking

    def seen(*args):
        kernel = looking(*args)
        ways.append(kernel)
        return kernel
    as_on_a_gpu.setattr(joint, "looking", seen)
    found = []
    launch = Plan.launch

    def launched(plan, blocks, kernel, *args):
        launch(plan, blocks, kernel, *args)
        if ways and kernel is ways[-1]:
            plan.call(lambda way: found.append(int(way[0])), args[1])
    as_on_a_gpu.setattr(Plan, "launch", launched)
    n, r = 8 * WHOLE, np.random.default_rng(1)
    for samples in (r.integers(0, bins, n), np.arange(n) * 7 % bins, np.arange(n) * bins // n):
        check(samples.astype(np.int32), bins)
    assert found == [joint.BY_PAIRS] * 3
    for samples in (np.full(n, 5), r.integers(0, 3, n), np.where(r.random(n) < 0.5, 0, r.integers(0, bins, n))):
        check(samples.astype(np.int32), bins)
    assert found[3:] == [joint.AT_ONCE] * 3
    if bins > 256:
        check(r.integers(0, 30, n).astype(np.int32), bins)
        check((r.exponential(bins / 8, n)).astype(np.int32), bins)
        check(np.where(r.random(n) < 0.02, 0, r.integers(0, bins, n)).astype(np.int32), bins)
        assert found[6:] == [joint.ONE_BY_ONE, joint.BY_PAIRS, joint.BY_PAIRS]


def test_positions_beyond_int32(as_on_a_gpu):
    """Kernels for 2^31 samples and more have positions of int64; here they run on fewer."""
    as_on_a_gpu.setattr(algorithm, "WIDE", 1)
    for way in WAYS:
        counted_in(way, as_on_a_gpu)
        check(np.random.default_rng(3).integers(-1, 101, WHOLE + 5).astype(np.int32), 100)


def test_one_block_after_another_gives_the_same(monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", "block")
    check(np.random.default_rng(4).integers(-3, 303, WHOLE + 9).astype(np.int32), 300)


def test_the_sanitizer_has_nothing_to_report(monkeypatch, capfd):
    monkeypatch.setenv("CUTILE_SANITIZE", "all")
    check(np.random.default_rng(5).integers(-3, 303, WHOLE + 9).astype(np.int32), 300)
    assert not capfd.readouterr().err


@needs_tool
@at_levels
@pytest.mark.parametrize("wide", [False, True])
def test_kernels_are_assembled(wide, level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    monkeypatch.setattr(algorithm, "WIDE", 1 if wide else algorithm.WIDE)
    check(np.random.default_rng(6).integers(0, 100, WHOLE + 1).astype(np.float32), 100, 0.0, 100.0)
    assert set(seen) == {"clear", "clear_for", "compare_samples", "count_pairs", "add_pairs", "count_samples",
                         "add_copies"}

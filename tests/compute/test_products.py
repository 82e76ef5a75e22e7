"""Counting by products of matrices, as on GPUs with many samples: beside NumPy, for every size around steps, dtypes,
and levels at and beyond the ends of dtypes. In the interpreter.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import compute
from cutile.compute import algorithm, histogram, joint, products
from cutile.compute.plans import Plan
from tests.compute.checks import assemble_launches, at_levels, deep_but, forget_plans
from tests.gpu.tileir.tool import needs_tool

STEP, WHOLE = products.STEP, histogram.WHOLE
DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.bool_]


@pytest.fixture(autouse=True)
def products_only(monkeypatch):
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(histogram, "MANY", histogram.WHOLE)
    monkeypatch.setattr(joint, "most_equal", lambda bins: -1)
    monkeypatch.setattr(joint, "FEW", 1)
    monkeypatch.setattr(joint, "CELLS", 1 << 12)
    forget_plans()
    yield
    forget_plans()


def check(samples, lower, bins, integer=np.int64):
    out = np.full(bins + 1, 9, np.int32)
    compute.histogram_even(samples, out, bins + 1, integer(lower), integer(lower + bins), len(samples))
    found = samples.astype(np.int64) - lower
    assert np.array_equal(out[:bins], np.bincount(found[(found >= 0) & (found < bins)], minlength=bins))
    assert out[bins] == 9


def numbers(dtype, lower, bins, n):
    """Any numbers of a dtype, and as many close to the bins."""
    r, ends = np.random.default_rng(n), np.iinfo(np.uint8 if dtype is np.bool_ else dtype)
    near = np.clip(lower + r.integers(-3, bins + 3, n // 2), ends.min, ends.max)
    return r.permuted(np.concatenate([r.integers(ends.min, ends.max, n - n // 2, endpoint=True), near])).astype(dtype)


@pytest.mark.parametrize("n", [WHOLE - 1, WHOLE, WHOLE + 1, 2 * WHOLE + products.TILE])
def test_sizes(n):
    check(numbers(np.int32, 0, 4096, n), 0, 4096)


@pytest.mark.parametrize("bins", [1, 2, 64, 65, 511, 512, 513, 1000, 4095, 4096, 4097])
def test_bins(bins):
    check(numbers(np.int32, -7, bins, WHOLE), -7, bins)
    assert bins > 4096 or products.ROWS * products.columns_of(bins) >= bins


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@given(bins=st.integers(1, 400), lower=st.one_of(st.integers(-1000, 1000), st.sampled_from(
    [s * (1 << k) + d for s in (-1, 1) for k in (7, 8, 15, 16, 31, 32, 33) for d in (-300, -30, -1, 0, 1, 5)])))
@settings(max_examples=4, deadline=None)
def test_levels(dtype, bins, lower):
    """Where 32 bits would wrap, no product counts, and the result is the same."""
    check(numbers(dtype, lower, bins, WHOLE + 10), lower, bins)


def test_a_block_takes_as_many_steps_as_its_counters_hold():
    """Each sample counts 2^14 in 32 bits; here all are in the first row and column, where most are added."""
    assert products.STEPS * products.TILE < 1 << 18
    steps = products.STEPS - products.STEPS % 8
    x = np.full(steps * STEP, 4095, np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "BLOCKS", 1)
        check(x, 0, 4096)


def test_positions_beyond_int32(monkeypatch):
    """Kernels for 2^31 samples and more have positions of int64; here they run on fewer."""
    monkeypatch.setattr(algorithm, "WIDE", 1)
    check(numbers(np.int32, 0, 100, WHOLE + 3), 0, 100)


def test_one_block_after_another_gives_the_same(monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", "block")
    check(numbers(np.int32, 0, 300, WHOLE + 9), 0, 300)


def test_the_sanitizer_has_nothing_to_report(monkeypatch, capfd):
    monkeypatch.setenv("CUTILE_SANITIZE", "all")
    check(numbers(np.int32, 0, 300, WHOLE + 9), 0, 300)
    assert not capfd.readouterr().err


def test_other_samples_are_not_counted_so(monkeypatch):
    """Floats, integers of 64 bits, wider bins."""
    monkeypatch.setattr(products, "counting", None)
    for dtype, upper in ((np.float32, 100.0), (np.int64, 100), (np.int32, 200)):
        x = np.arange(-5, WHOLE).astype(dtype)
        out = np.zeros(100, np.int32)
        compute.histogram_even(x, out, 101, type(upper)(0), upper, len(x))
        assert out.tolist() == [int(upper) // 100] * 100


@needs_tool
@at_levels
@pytest.mark.parametrize("wide", deep_but((False, True), True))
def test_kernels_are_assembled(wide, level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    monkeypatch.setattr(algorithm, "WIDE", 1 if wide else algorithm.WIDE)
    for dtype, bins in ((np.int32, 4096), (np.uint8, 100)):
        check(numbers(dtype, 0, bins, WHOLE + 1), 0, bins)
    assert {"clear_for", "compare_samples", "count_pairs", "count_by_products", "add_pairs", "add_copies"} <= set(seen)

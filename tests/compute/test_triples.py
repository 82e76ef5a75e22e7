"""Counting by triples, as on GPUs with many samples in few bins: beside NumPy, for sizes, kinds of samples and numbers
of bins. In the interpreter.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cutile.compute import algorithm, histogram, joint, triples
from cutile.compute.plans import Plan
from tests.compute.checks import assemble_launches, at_levels, forget_plans
from tests.compute.test_joint import check, kinds_of_samples
from tests.gpu.tileir.tool import needs_tool

WHOLE = histogram.WHOLE


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    """Where few bins are counted by triples, whatever the samples are."""
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(histogram, "MANY", WHOLE)
    monkeypatch.setattr(triples, "MANY", WHOLE)
    monkeypatch.setattr(joint, "CELLS", 1 << 15)
    monkeypatch.setattr(triples, "most_equal", lambda bins, real=triples.most_equal: 1 << 30 if real(bins) >= 0 else -1)
    forget_plans()
    yield monkeypatch
    forget_plans()


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.uint8])
def test_all_samples_are_counted(dtype):
    for samples in kinds_of_samples(2 * WHOLE + 77, 40):
        check(np.clip(samples, *(0, 255) if dtype == np.uint8 else (-9, 99)).astype(dtype), 40, dtype(0), dtype(40))


def test_samples_outside_of_all_bins():
    """Of a triple none, one, two and all samples fall in a bin."""
    r = np.random.default_rng(2)
    for inside in (0.0, 0.1, 0.5, 0.9):
        samples = np.where(r.random(WHOLE) < inside, r.integers(0, 20, WHOLE), 99)
        check(samples.astype(np.int32), 20)


@pytest.mark.parametrize("n", [WHOLE - 1, WHOLE, WHOLE + 1, 2 * WHOLE - 1, 3 * WHOLE])
def test_sizes(n):
    check(np.random.default_rng(n).integers(-1, 40, n).astype(np.int32), 30)


@pytest.mark.parametrize("bins", [1, 2, 7, 15, 16, 17, 31, 32, 55, 56, 57, 63, 64, 65, 127])
def test_bins(bins, as_on_a_gpu):
    """Also more than one stretch of bins, and more than triples are counted of."""
    if bins > 57:
        as_on_a_gpu.setattr(joint, "CELLS", triples.cells_of(65))
    assert (triples.copies_for(bins) > 0) == (bins < 57 or bins in (63, 64, 65))
    check(np.random.default_rng(bins).integers(-3, bins + 3, WHOLE).astype(np.int32), bins)


def test_each_step_and_each_copy_counts(as_on_a_gpu):
    as_on_a_gpu.setattr(joint, "CELLS", 5 * triples.cells_of(20))
    for each in (1, 2, 7):
        as_on_a_gpu.setattr(triples, "EACH", each)
        forget_plans()
        check(np.random.default_rng(7).integers(-1, 21, 3 * WHOLE).astype(np.int32), 20)


def test_cells():
    """Each triple has a counter of its own, and there are hardly more."""
    for bins in (1, 2, 5, 20):
        low, mid, high = np.array(list(itertools.combinations_with_replacement(range(bins + 1), 3))).T
        cells = triples._cell(high, mid, low)
        assert len(np.unique(cells)) == len(cells) and 0 <= cells.min() and cells.max() < triples.cells_of(bins)
        assert triples.cells_of(bins) < len(cells) + joint.SWAPPED


def test_few_bins_are_counted_so_and_few_values_are_not(as_on_a_gpu):
    as_on_a_gpu.undo()
    assert triples.copies_for(256) == 1 and triples.copies_for(1) == triples.COPIES
    assert triples.copies_for(joint.MOST) == 0 and triples.most_equal(joint.MOST) == -1
    samples = joint.FIRST * joint.SECOND
    assert samples / 256 < triples.most_equal(256) < samples / 40
    assert triples.most_equal(256) < triples.most_equal(100) < triples.most_equal(16) < samples / 3


@pytest.mark.parametrize("n, many", [(3 * WHOLE, True), (3 * WHOLE - 1, False)])
def test_only_many_samples_are_counted_so(n, many, as_on_a_gpu):
    names = []

    def launch(plan, blocks, kernel, *args, real=Plan.launch):
        names.append(kernel.__name__)
        return real(plan, blocks, kernel, *args)
    as_on_a_gpu.setattr(Plan, "launch", launch)
    as_on_a_gpu.setattr(triples, "MANY", 3 * WHOLE)
    check(np.random.default_rng(n).integers(0, 10, n).astype(np.int32), 10)
    assert ("count_triples" in names) == many


def test_positions_beyond_int32(as_on_a_gpu):
    as_on_a_gpu.setattr(algorithm, "WIDE", 1)
    check(np.random.default_rng(3).integers(-1, 31, WHOLE + 5).astype(np.int32), 30)


def test_one_block_after_another_gives_the_same(monkeypatch):
    monkeypatch.setenv("CUTILE_SCHEDULE", "block")
    check(np.random.default_rng(4).integers(-3, 33, WHOLE + 9).astype(np.int32), 30)


def test_the_sanitizer_has_nothing_to_report(monkeypatch, capfd):
    monkeypatch.setenv("CUTILE_SANITIZE", "all")
    check(np.random.default_rng(5).integers(-3, 33, WHOLE + 9).astype(np.int32), 30)
    assert not capfd.readouterr().err


@needs_tool
@at_levels
@pytest.mark.parametrize("wide", [False, True])
def test_kernels_are_assembled(wide, level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    monkeypatch.setattr(algorithm, "WIDE", 1 if wide else algorithm.WIDE)
    check(np.random.default_rng(6).integers(0, 30, WHOLE + 1).astype(np.float32), 30, 0.0, 30.0)
    assert {"clear_for", "compare_samples", "count_triples", "add_triples"} <= set(seen)

"""histogram_even: exact bins of integers, bins of floats, and what a call refuses. Tests with `way` run the way for
host memory and the one for GPUs, in the interpreter.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import compute
from cutile.compute import algorithm
from cutile.compute.histogram import TILE
from cutile.compute.plans import Plan
from tests.compute.checks import assemble_launches, at_levels, forget_plans
from tests.gpu.tileir.tool import needs_tool

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@pytest.fixture(autouse=True)
def fresh():
    """Plans are made anew: those of other tests may be for the other way."""
    forget_plans()
    yield
    forget_plans()


@pytest.fixture(params=["host", "gpu"])
def way(request, monkeypatch):
    if request.param == "gpu":
        monkeypatch.setattr(Plan, "on_host", False)
    return request.param


def counted(samples, levels, lower, upper, n=None, dtype=np.int64):
    out = np.full(levels + 1, 9, dtype)
    compute.histogram_even(samples, out, levels, lower, upper, len(samples) if n is None else n)
    assert out[levels - 1:].tolist() == [9, 9]  # nothing behind the bins
    return out[:levels - 1].tolist()


def exact(samples, levels, lower, upper):
    bins, found = levels - 1, [0] * (levels - 1)
    for s in samples:
        if lower <= s < upper:
            found[(int(s) - lower) * bins // (upper - lower)] += 1
    return found


@pytest.mark.parametrize("n", [0, 1, 2, TILE - 1, TILE, TILE + 1, 5000])
def test_sizes(n, way):
    x = np.random.default_rng(n).integers(-40, 40, n).astype(np.int32)
    assert counted(x, 8, -25, 30) == exact(x.tolist(), 8, -25, 30)


@settings(max_examples=60, deadline=None)
@given(dtype=st.sampled_from(INTEGERS), seed=st.integers(0, 99), levels=st.integers(2, 40), data=st.data())
def test_bins_of_integers_are_exact(dtype, seed, levels, data):
    """Also where the levels lie beyond the samples' dtype, and where products need 64 bits."""
    limits = np.iinfo(dtype)
    x = np.random.default_rng(seed).integers(limits.min, limits.max, 200, dtype, endpoint=True)
    x[:2] = limits.min, limits.max
    lower = data.draw(st.integers(-(1 << 62), (1 << 62) - 1))
    near = data.draw(st.booleans())
    if near:
        lower = max(-(1 << 62), min((1 << 62), int(x[data.draw(st.integers(0, 199))])))
    width = data.draw(st.integers(1, min((1 << 63) - 1 - lower, ((1 << 64) - 1) // (levels - 1))))
    assert counted(x, levels, lower, lower + width) == exact(x.tolist(), levels, lower, lower + width)


def test_a_bin_of_each_integer_and_of_several(way):
    x = np.random.default_rng(1).integers(0, 300, 4000).astype(np.uint16)
    assert counted(x, 257, 0, 256) == np.bincount(x, minlength=300)[:256].tolist()
    assert counted(x, 101, 0, 200) == np.bincount(x // 2, minlength=150)[:100].tolist()
    assert counted(x.astype(bool), 3, 0, 2) == [np.sum(x == 0), np.sum(x != 0)]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_bins_of_floats(dtype, way):
    """NaN and infinities fall in no bin; zeros of both signs in the same."""
    x = (np.random.default_rng(2).integers(-64, 64, 3000) / 16).astype(dtype)
    x[:6] = np.nan, np.inf, -np.inf, -0.0, 0.0, 4
    wide = x.astype(np.float64)
    want = np.histogram(wide[np.isfinite(wide) & (wide < 4)], 32, (-4, 4))[0].tolist()
    for lower, upper in ((-4.0, 4.0), (dtype(-4), dtype(4)), (-4, 4), (np.float32(-4), np.float32(4))):
        assert counted(x, 33, lower, upper) == want


def test_many_bins_and_dtypes_of_counts(way):
    x = np.random.default_rng(3).integers(0, 70_000, 9000)
    for dtype in (np.int16, np.uint32, np.uint64, np.float64):
        assert counted(x, 70_001, 0, 70_000, dtype=dtype) == np.bincount(x, minlength=70_000).tolist()


def test_samples_beyond_int32(way, monkeypatch):
    monkeypatch.setattr(algorithm, "WIDE", 1)
    x = np.random.default_rng(4).integers(0, 9, 3000)
    assert counted(x, 10, 0, 9) == np.bincount(x, minlength=9).tolist()


def test_iterators(way):
    assert counted(compute.CountingIterator(np.int32(5)), 5, 0, 40, 30) == [5, 10, 10, 5]
    x = np.arange(40, dtype=np.float32)
    assert counted(compute.TransformIterator(x[::2], lambda v: v / 2), 3, 0.0, 14.0, 20) == [7, 7]
    out = np.zeros(4)
    compute.histogram_even(x, compute.ReverseIterator(out), 5, 0.0, 20.0, 40)
    assert out.tolist() == [5, 5, 5, 5]


def test_objects():
    """Bounds are free between calls, the number of levels is not. Storage that is too small writes nothing."""
    x, out = np.arange(100, dtype=np.int32), np.full(10, 7, np.int32)
    host = [np.array([v]) for v in (11, 0, 100)]
    counter = compute.make_histogram_even(x, out, *host, 100)
    need = counter(None, x, out, *host, 100)
    with pytest.raises(ValueError, match=f"{need} are needed"):
        counter(np.zeros(need - 1, np.uint8), x, out, *host, 100)
    assert (out == 7).all()
    storage = np.full(need, 255, np.uint8)
    assert counter(storage, x, out, *host, 100) == need and (out == 10).all()
    counter(storage, x, out, host[0], 50, 60, 100)
    assert (out == 1).all()
    for arguments, what in (((x, out, 12, 0, 100, 100), "`h_num_output_levels`"),
                            ((x, out, 11, 0.0, 9.0, 100), "`h_lower_level`"),
                            ((x.astype(np.int64), out, 11, 0, 9, 100), "`d_samples`"),
                            ((x, out.astype(np.int64), 11, 0, 9, 100), "`d_histogram`")):
        with pytest.raises(TypeError, match=what):
            counter(storage, *arguments)


@pytest.mark.parametrize("arguments, error, text", [
    ((2, 0, 1.0), TypeError, "pass both of one dtype"), ((2, np.int32(0), np.int64(1)), TypeError, "one dtype"),
    ((1, 0, 1), ValueError, "one bin has two levels"), ((3, 5, 5), ValueError, "not below"),
    ((3, 5.0, np.nan), ValueError, "not below"), ((3, 0.0, np.inf), ValueError, "no finite width"),
    ((3, -1.7e308, 1.7e308), ValueError, "no finite width"), ((2.5, 0, 1), TypeError, "expected an integer"),
    ((5, -(1 << 62), 1 << 62), RuntimeError, "beyond uint64"), ((22, 0, 1), ValueError, "has 20 items")])
def test_what_is_refused(arguments, error, text):
    x, out = np.zeros(20, np.int32), np.full(20, 7)
    with pytest.raises(error, match=text):
        compute.histogram_even(x, out, *arguments, 20)
    assert (out == 7).all()


def test_memory_and_counts():
    x = np.zeros(20, np.int64)
    for out, n, text in ((x, 20, "share memory"), (x[4:], 5, "share memory"), (np.zeros(4), 21, "has 20 items"),
                         (np.zeros(4), -1, "negative")):
        with pytest.raises(ValueError, match=text):
            compute.histogram_even(x, out, 5, 0, 4, n)
    with pytest.raises(TypeError, match="samples are numbers"):
        compute.histogram_even(compute.ZipIterator(x, x), np.zeros(4), 5, 0, 4, 4)


def test_the_sanitizer_has_nothing_to_report(way, monkeypatch, capfd):
    monkeypatch.setenv("CUTILE_SANITIZE", "all")
    x = np.arange(-5, 3000, dtype=np.int32)
    assert counted(x, 31, 0, 300) == [10] * 30
    assert not capfd.readouterr().err


@needs_tool
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    for dtype, lower, upper in ((np.float32, 0.0, 300.0), (np.uint8, 0, 30), (np.int64, -7, 1 << 40)):
        x = np.arange(3000).astype(dtype)
        levels = counted(x, 31, lower, upper)
        assert sum(levels) == np.sum((x >= lower) & (x < upper))
    assert set(seen) == {"clear", "count_samples", "add_copies"}

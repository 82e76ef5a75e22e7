"""Calls like ones before: in C, or in Python without checks."""

import numpy as np
import pytest

import cutile as ct
from cutile.runtime import launch as launching
from cutile.runtime import launch_cache
from tests.functions.kernels import LINE, X, expected, scaled_kernel, softmax_kernel
from tests.functions.shows import shows


def test_the_short_way_is_taken(monkeypatch):
    f = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"))
    o = np.zeros_like(LINE)
    want = f(LINE, 2.0)
    f(LINE, 2.0, out=o)
    monkeypatch.setattr(type(f), "slow", None)
    assert np.array_equal(f(LINE, 2.0), want) and f(LINE, 2.0, out=o) is o
    assert np.array_equal(f(LINE + 1, 3.0), (LINE + 1) * 3)
    with pytest.raises(TypeError):
        f(LINE[:3], 2.0)


@pytest.fixture
def no_python(monkeypatch):
    """After `no_python()`, a launch that Python code runs is a failure."""
    if launch_cache.extension() is None:
        pytest.skip("the compiled module is not built")
    monkeypatch.delenv("CUTILE_CHECK", raising=False)  # launches in C are off then

    def forbid():
        monkeypatch.setattr(launching, "launch", lambda *a: pytest.fail("Python code ran the launch"))

    return forbid


@ct.kernel
def split_kernel(x: ct.Array["N"], high, low, limit: ct.Constant[float]):
    t = ct.load(x, 0, 16)
    ct.store(high, 0, ct.where(t > limit, t, 0.0).astype(high.dtype))
    ct.store(low, 0, ct.where(t > limit, 0.0, t).astype(low.dtype))


@ct.kernel
def checked_kernel(x: ct.Array["N"], y):
    t = ct.load(x, 0, 16)
    ct.assert_(ct.min(t) >= 0, "a negative number")
    ct.store(y, 0, t)


def split(**given):
    return ct.jit(split_kernel, grid=(1,), out=(ct.Out("N", name="high"), ct.Out("N", name="low")), **given)


def test_calls_with_given_outputs_run_in_c(no_python):
    f, out = split(), (np.zeros_like(LINE), np.zeros_like(LINE))
    whole = ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"), defaults={"TILE": lambda N: 1 << (N - 1).bit_length()})
    to = np.zeros_like(X)
    f(LINE, 4.0, out=out), whole(X, out=to), whole(X, TILE=32, out=to)
    no_python()
    to[:] = 0
    for o in out:
        o[:] = -1
    assert f(LINE + 1, 4.0, out=out) == out
    assert np.array_equal(out[0], np.where(LINE + 1 > 4, LINE + 1, 0)) and out[0].sum() + out[1].sum() == 55
    assert whole(X, out=to) is to and np.allclose(to, expected(X), rtol=1e-5)
    assert whole(X, TILE=32, out=to) is to


def test_calls_without_outputs_run_in_c(no_python):
    @ct.kernel
    def doubles(x: ct.Array["N"]):
        ct.store(x, ct.bid(0), 2 * ct.load(x, ct.bid(0), 4))

    f, x = ct.jit(doubles, grid="cdiv(N, 4)").inout("x"), LINE.copy()
    f(x)
    no_python()
    assert f(x) is x and np.array_equal(x, LINE * 4)


@shows("JIT-7.poison", "JIT-7.fill", "JIT-11.returns")
def test_calls_that_make_their_outputs_run_in_c(no_python):
    @ct.kernel
    def some(x: ct.Array["N"], y, kept, n):  # outputs in the middle, of which not all is stored to
        ct.store(y, 0, ct.load(x, 0, 4) * 2)
        ct.store(kept, 1, ct.full((4,), n, ct.int16) + ct.arange(4, dtype=ct.int16))

    f = ct.jit(some, grid=(1,), out=(ct.Out("N", name="y"), ct.Out("N", ct.int16, fill=7, name="kept")))
    whole = ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"), defaults={"TILE": lambda N: 1 << (N - 1).bit_length()})
    before = f(LINE, 5)
    whole(X)
    no_python()
    y, kept = f(LINE + 1, 6)
    assert y.dtype == np.float32 and np.array_equal(y[:4], 2 * (LINE + 1)[:4]) and np.isnan(y[4:]).all()
    assert kept.dtype == np.int16 and kept.tolist() == [7] * 4 + [6, 7, 8, 9] + [7] * 2
    assert y is not before[0] and before[1].tolist() == [7] * 4 + [5, 6, 7, 8] + [7] * 2
    assert np.allclose(whole(X), expected(X), rtol=1e-5) and whole(X) is not whole(X)


def test_what_c_code_does_not_know_python_runs(no_python):
    f, out = split(), (np.zeros_like(LINE), np.zeros_like(LINE))
    f(LINE, 4.0, out=out)
    for x, limit in ((LINE[::-1], 4.0), (LINE, 5.0), (LINE.astype(np.float64), 4.0)):
        f(x, limit, out=out if x.dtype == LINE.dtype else tuple(o.astype(x.dtype) for o in out))
    f(LINE[::-1], 4.0, out=out)
    assert np.array_equal(out[0], np.where(LINE > 4, LINE, 0)[::-1])
    with pytest.raises(ValueError, match="output `low` must have the shape"):
        f(LINE, 4.0, out=(out[0], np.zeros(3, np.float32)))
    with pytest.raises(TypeError, match="takes a tuple of 2 arrays"):
        f(LINE, 4.0, out=out[0])
    frozen = out[1].copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(LINE, 4.0, out=(out[0], frozen))


def test_a_grid_from_a_number_is_none_of_a_signature():
    @ct.kernel
    def counted(x: ct.Array["N"], blocks, y):
        ct.atomic_add(y, 0, ct.sum(ct.load(x, ct.bid(0), 2)))

    f = ct.jit(counted, grid="blocks", out=ct.Out((1,), fill=0, name="y"))
    y = np.zeros(1, np.float32)
    for blocks in (2, 3, 2):
        y[:] = 0
        assert f(LINE, blocks, out=y)[0] == LINE[:2 * blocks].sum()
    assert not f.calls


def test_errors_of_kernels_that_ran_before():
    f, x, y = ct.jit(checked_kernel, grid=(1,), out=ct.Out("N")), LINE.copy(), np.zeros_like(LINE)
    f(x, out=y)
    x[3] = -1
    with pytest.raises(ct.TileAssertionError, match="a negative number") as e:
        f(x, out=y)
    assert "test_kept_calls.py" in str(e.value)


def test_without_the_compiled_module(monkeypatch):
    @ct.kernel
    def copied(x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 16))

    monkeypatch.setenv("CUTILE_LAUNCHER", "python")
    f, y = ct.jit(copied, grid=(1,), out=ct.Out("N")), np.zeros_like(LINE)
    assert f(LINE, out=y) is f(LINE, out=y) is y and np.array_equal(y, LINE) and not f.calls

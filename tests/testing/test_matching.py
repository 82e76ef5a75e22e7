"""assert_matches and assert_repeatable."""

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.testing import assert_matches, assert_repeatable
from tests.functions.kernels import scaled, softmax
from tests.functions.shows import shows

X = np.random.default_rng(0).standard_normal((6, 50)).astype(np.float32)


def reference(x):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@ct.kernel
def sums_kernel(x: ct.Array["M N"], y, T: ct.Constant[int] = 64):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (1, T), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, i, ct.sum(t, axis=1).astype(y.dtype))


sums = ct.jit(sums_kernel, grid="M", out=ct.Out("M"))


@shows("BEN-6.bound")
@pytest.mark.parametrize("scale", [1e-3, 1, 50])
def test_right_functions(scale):
    assert_matches(softmax, reference, (X * np.float32(scale),))
    assert_matches(sums, lambda x: x.astype(np.float64).sum(1), (X * np.float32(scale),))
    assert_matches(scaled, lambda x, f: x.astype(np.float64) * f, (X[0], 0.5))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_outputs(dtype):
    f = ct.jit(sums_kernel, grid="M", out=ct.Out("M", dtype))
    assert_matches(f, lambda x: x.astype(np.float64).sum(1), (X,))
    with pytest.raises(AssertionError):
        assert_matches(f, lambda x: x.astype(np.float64).sum(1) * 1.02, (X,))


@shows("BEN-6.message")
def test_wrong_functions():
    def wrong(x):
        y = reference(x)
        y[2, 3] *= 1 + 1e-4
        return y

    with pytest.raises(AssertionError, match=r"1 of 300 elements of the output of softmax are wrong\n  \[2, 3\]: 0.0\d+"
                                             r" instead of 0.0\d+, allowed is \d.*e-0\d"):
        assert_matches(softmax, wrong, (X,))
    with pytest.raises(AssertionError, match="has the shape"):
        assert_matches(softmax, lambda x: x[:3], (X,))
    with pytest.raises(ValueError, match="1 outputs, the reference returned 2"):
        assert_matches(softmax, lambda x: (x, x), (X,))


@shows("BEN-6.given")
def test_bounds_of_the_caller():
    assert_matches(softmax, lambda x: reference(x) + 0.01, (X,), bounds=0.02)
    with pytest.raises(AssertionError, match="allowed is 0.005"):
        assert_matches(softmax, lambda x: reference(x) + 0.01, (X,), bounds=0.005)

    @ct.kernel
    def decides(x: ct.Array["N"], y):
        t = ct.load(x, 0, 16)
        ct.store(y, 0, ct.where(ct.exp(t) > 1.0, t, -t))

    f = ct.jit(decides, grid=(1,), out=ct.Out("N"))
    x = np.full(16, 1e-8, np.float32)
    with pytest.raises(ValueError, match="no bound is known"):
        assert_matches(f, lambda x: -x, (x,))
    assert_matches(f, lambda x: -x, (x,), bounds=0)


@pytest.mark.parametrize("compute, finite", [(ct.float16, False), (ct.float32, True)])
def test_the_line_where_a_bound_is_lost(compute, finite):
    """A thousand float16 numbers may sum to 0 as far as roundings explain; what the text advises has a bound."""
    @ct.kernel
    def k(x: ct.Array["M N"], y):
        t = ct.load(x, (ct.bid(0), 0), (1, 1024), padding_mode=ct.PaddingMode.NEG_INF).astype(compute)
        e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
        total = ct.sum(e, axis=1, keepdims=True)
        ct.store(y, (ct.bid(0), 0), (e / total).astype(ct.float16))

    f = ct.jit(k, grid="M", out=ct.Out("M N"), name="rows")
    x = (np.random.default_rng(0).standard_normal((2, 1000)) * 5).astype(np.float16)
    if finite:
        return assert_matches(f, reference, (x,))
    with pytest.raises(ValueError, match=r"for the output of rows at \[0, 0\]: the divisor may be 0") as e:
        assert_matches(f, reference, (x,))
    assert "(e / total)" in str(e.value) and "help: compute in float32 (.astype(ct.float32)" in str(e.value)
    return assert_matches(f, reference, (x,), bounds=0.01)


def test_nan_and_infinity():
    x = np.array([np.nan, np.inf, -np.inf, 1, 0], np.float32)
    assert_matches(scaled, lambda x, f: x * f, (x, -1.0))
    with pytest.raises(AssertionError):
        assert_matches(scaled, lambda x, f: np.nan_to_num(x) * f, (x, -1.0))


def test_integers_are_equal():
    @ct.kernel
    def k(x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 16) * 3)

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    x = np.arange(16, dtype=np.int32)
    assert_matches(f, lambda x: x * 3, (x,))
    with pytest.raises(AssertionError):
        assert_matches(f, lambda x: x * 3 + (x == 5), (x,))


def test_tuned_functions():
    f = ct.autotune([{"TILE": 64}], quiet=True, timeout_s=None)(softmax)
    assert_matches(f, reference, (X,))


@shows("BEN-6.repeatable")
def test_repeatable():
    assert_repeatable(softmax, (X,), repeats=3)
    calls = []

    def other(x):
        calls.append(1)
        y = x.copy()
        y[1, 2] = -0.0 if len(calls) == 3 else 0.0
        return y

    with pytest.raises(AssertionError, match=r"output 0 at \[1, 2\] is 0.0 in the first call and -0.0 in call 3"):
        assert_repeatable(other, (X,))

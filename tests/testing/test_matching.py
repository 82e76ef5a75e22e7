"""assert_matches."""

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.errors import TileSanitizerError
from cutile.testing import Match, Matched, assert_matches
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
    with pytest.raises(ValueError, match="1 outputs, and the reference returned 2; return one array, for `y`"):
        assert_matches(softmax, lambda x: (x, x), (X,))
    with pytest.raises(ValueError, match="1 outputs, and bounds= has 2; "):
        assert_matches(softmax, reference, (X,), bounds=(1, 1))
    with pytest.raises(TypeError, match="the reference returned a dict; return one array, for `y`"):
        assert_matches(softmax, lambda x: {"y": x}, (X,))


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
        assert assert_matches(f, reference, (x,)).error > 0
        return
    with pytest.raises(ValueError, match=r"for the output of rows at \[0, 0\]: the divisor may be 0") as e:
        assert_matches(f, reference, (x,))
    assert "(e / total)" in str(e.value) and "help: compute in float32 (.astype(ct.float32)" in str(e.value)
    assert_matches(f, reference, (x,), bounds=0.01)


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


# ------------------------------------------------------------------ what values alone do not show


@ct.kernel
def padded_kernel(x: ct.Array["M N"], y, T: ct.Constant[int] = 64):
    i = ct.bid(0)
    ct.store(y, i, ct.sum(ct.load(x, (i, 0), (1, T)), axis=1))


def row_sums(x):
    return x.astype(np.float64).sum(1)


@shows("BEN-6.sanitize")
def test_undetermined_padding():
    """Here padding reads as 0, and the sums are right; elsewhere it may not."""
    f = ct.jit(padded_kernel, grid="M", out=ct.Out("M"))
    with pytest.raises(TileSanitizerError, match="undetermined: what store.. writes to element .0,. of `y` depends on"):
        assert_matches(f, row_sums, (X,))
    found = assert_matches(f, row_sums, (X,), sanitize=False)
    assert "did not run under the checks of ct.sanitize" in str(found)
    assert_matches(f, row_sums, (X,), bounds=1e-4)
    with pytest.raises(TileSanitizerError):
        assert_matches(f, row_sums, (X,), bounds=1e-4, sanitize=True)
    assert_matches(f, row_sums, (X[:, :48].repeat(2, 1)[:, :64],))  # no padding


@pytest.mark.parametrize("grid, words", [("M 2", r"race: .*never calls ct.bid\(1\)"), ("M+1", "bounds: "),
                                         ("2*M", "bounds: ")])
def test_grids_that_are_too_large(grid, words):
    f = ct.jit(sums_kernel, grid=grid, out=ct.Out("M"))
    with pytest.raises(TileSanitizerError, match=f"(?s){words}"):
        assert_matches(f, row_sums, (X,))


@shows("BEN-6.stored")
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_elements_that_no_block_stores(dtype):
    @ct.kernel
    def some(x: ct.Array["N"], y):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16))

    x = np.arange(40).astype(dtype)
    f = ct.jit(some, grid=(2,), out=ct.Out("N"))
    with pytest.raises(AssertionError, match=r"some: no block stores element \[32\] of `y`; there are 8 such elements, "
                                             r"of 40. Is the grid too small"):
        assert_matches(f, lambda x: x, (x,), bounds=0)
    with pytest.raises(AssertionError, match="no block stores"):  # though the poison is what is expected
        assert_matches(f, lambda x: np.where(np.arange(40) < 32, x, -2**31 if dtype is np.int32 else np.nan), (x,))
    g = ct.jit(some, grid=(2,), out=ct.Out("N", fill=7))
    assert_matches(g, lambda x: np.where(np.arange(40) < 32, x, 7), (x,))
    assert_matches(ct.jit(some, grid=(0,), out=ct.Out("0")), lambda x: x[:0], (x,))


def test_an_assignment_is_no_store():
    @ct.kernel
    def assigns(x: ct.Array["N"], y):
        y = ct.load(x, 0, 16)  # noqa: F841

    f = ct.jit(assigns, grid=(1,), out=ct.Out("N"))
    with pytest.raises(AssertionError, match=r"there are 16 such elements, of 16. Does the kernel call ct.store "
                                             r"with `y`\? An assignment such as `y = t` stores nothing"):
        assert_matches(f, lambda x: x, (np.ones(16),))


def test_nan_that_is_stored():
    x = np.array([np.nan, 1.0] * 8, np.float32)
    assert assert_matches(scaled, lambda x, f: x * f, (x, 1.0)).error == 0


def test_arguments_stay_as_they_are():
    """Also where the function changes one of them, or the reference does."""
    @ct.kernel
    def doubles(x: ct.Array["N"]):
        ct.store(x, 0, ct.load(x, 0, 16) * 2)

    f = ct.jit(doubles, grid=(1,)).inout("x")
    x = np.arange(16.0)

    def doubled(x):
        x *= 2
        return x

    assert assert_matches(f, doubled, (x,)).error == 0
    assert np.array_equal(x, np.arange(16.0))


# ------------------------------------------------------------------ what it returns


@shows("BEN-6.result")
def test_the_largest_error_and_its_bound():
    y = reference(X)
    found = assert_matches(softmax, reference, (X,))
    error = np.abs(softmax(X).astype(np.float64) - y)
    assert found.error == error.max() and [m.name for m in found.outputs] == ["y"] and not found.notes
    at = np.unravel_index(error.argmax(), y.shape)
    with pytest.raises(AssertionError, match="1 of 300 elements"):
        assert_matches(softmax, lambda x: _moved(reference(x), at, 2.5 * found.bound), (X,))
    assert assert_matches(softmax, reference, (X,), bounds=2 * error.max()).outputs[0].share == pytest.approx(0.5)
    assert str(found).startswith("`y`: the largest error is ") and "% of what is allowed" in str(found)


def _moved(y, at, by):
    y[at] += by
    return y


def test_several_outputs_and_none():
    m = Matched((Match("a", 1.0, 2.0, 0.5), Match("b", 3.0, 9.0, 0.4)), ("one",))
    assert (m.error, m.bound) == (3.0, 9.0) and str(m).count("\n") == 2 and str(m).endswith("note: one")
    assert (Matched(()).error, Matched(()).bound) == (0.0, 0.0)


@ct.kernel
def added_kernel(x: ct.Array["M N"], y, T: ct.Constant[int] = 64):
    for i in range(x.shape[0]):
        t = ct.load(x, (i, 0), (1, T), padding_mode=ct.PaddingMode.ZERO).reshape((T,))
        ct.atomic_add(y, ct.arange(T, dtype=ct.int32), t.astype(y.dtype), check_bounds=True)


@shows("BEN-6.nothing")
@pytest.mark.parametrize("dtype, said", [(ct.float32, False), (ct.bfloat16, True)])
def test_a_note_where_anything_would_be_right(dtype, said):
    f = ct.jit(added_kernel, grid=(1,), out=ct.Out("N", dtype, fill=0))
    x = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    found = assert_matches(f, lambda x: x.astype(np.float64).sum(0), (x,), sanitize=False)
    notes = [n for n in found.notes if "what is allowed of `y` is larger than the values themselves in " in n]
    assert bool(notes) is said and all("Add in float32" in n for n in notes)
    assert ("could be anything" in str(found)) is said
    given = assert_matches(f, lambda x: x.astype(np.float64).sum(0), (x,), bounds=1e3, sanitize=False)
    assert any("in 100% of its elements" in n for n in given.notes)


@shows("BEN-6.narrow")
@pytest.mark.parametrize("dtype, said", [(np.float32, True), (ml_dtypes.bfloat16, True), (np.float64, False)])
def test_references_in_narrow_floats(dtype, said):
    found = assert_matches(sums, lambda x: row_sums(x).astype(dtype), (X,))
    assert any("the reference is computed in" in n for n in found.notes) is said
    with pytest.raises(AssertionError) as e:
        assert_matches(sums, lambda x: (row_sums(x) + 100).astype(dtype), (X,))
    assert ("note: the reference is computed in" in str(e.value)) is said

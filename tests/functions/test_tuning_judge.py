"""What a search takes for right: agreement, references, checks, and elements that nobody stores."""

import itertools
import traceback

import numpy as np
import pytest

import cutile as ct
from tests.functions.kernels import scaled_kernel
from tests.functions.shows import shows
from tests.functions.tuning import TILES, X, changes, kept_on_disk, reference, tuned, wrong_at_16

pytestmark = pytest.mark.usefixtures("own_cache")


@shows("TUN-5.disagree")
@pytest.mark.parametrize("first, second", [(4, 16), (16, 4)])
def test_without_a_reference_configurations_must_agree(times, tmp_path, first, second):
    f = tuned([{"TILE": first}, {"TILE": second}], kernel=wrong_at_16)
    with pytest.raises(ValueError, match=r"scaled: its configurations store different values, and without reference= "
                                         r"nobody.*; 100 of 100 elements differ. Give ct.autotune reference=") as e:
        f(X, 2.0)
    assert type(e.value) is ValueError and f.last is None and not kept_on_disk(tmp_path)
    values = {4: "0.0", 16: "1.0"}
    assert (f"`y`[0] is {values[second]} with {{'TILE': {second}}} and {values[first]} with {{'TILE': {first}}}"
            in str(e.value))
    f = tuned([{"TILE": first}, {"TILE": second}], kernel=wrong_at_16, reference=reference)
    assert np.array_equal(f(X, 2.0), X * 2) and f.last.best == {"TILE": 4} and kept_on_disk(tmp_path) == 1


@shows("TUN-5.disagree")
def test_an_output_whose_shape_depends_on_the_configuration(times):
    f = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("cdiv(N, TILE)", name="y"), name="parts")
    f = ct.autotune(TILES[:2], quiet=True, timeout_s=None)(f)
    with pytest.raises(ValueError, match="parts: the shape of `y` depends on `TILE`, so results cannot be compared.* "
                                         "Give ct.autotune reference=.*, and check=, which compares outputs"):
        f(X, 2.0)


@shows("TUN-5.poison")
@pytest.mark.parametrize("order", list(itertools.permutations((4, 8, 32))))
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_missing_stores_lose_whoever_comes_first(times, tmp_path, order, dtype):
    """TILE 32 does not store the first 32 elements, and is the fastest."""
    times.update({8: 50.0, 32: 2.0})
    x = X.astype(dtype)
    f = tuned([{"TILE": t} for t in order], kernel=wrong_at_16)
    assert np.array_equal(f(x, 2), x * 2) and f.last.best == {"TILE": 8}
    [(config, why)] = f.last.failures
    assert config == {"TILE": 32}
    assert "no block stores element [0] of `y`; there are 32 such elements, of 100" in why and "store" in why
    assert [c["TILE"] for c, *_ in f.last.times] == [8, 4]


@ct.kernel
def one_tile(x: ct.Array["N"], y, TILE: ct.Constant[int], SKIP: ct.Constant[int] = 0):
    if ct.bid(0) != SKIP - 1:
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), TILE))


@shows("TUN-5.nobody")
@pytest.mark.parametrize("tiles", [(64,), (32, 64), (64, 32)])
@pytest.mark.parametrize("how", [{}, {"check": lambda got, want: None}])
def test_elements_that_no_configuration_stores(tmp_path, tiles, how):
    """Also where there is one configuration alone: its grid is too small."""
    f = ct.autotune([{"TILE": t} for t in tiles], quiet=True, timeout_s=None, **how)(
        ct.jit(one_tile, grid=(1,), out=ct.Out("N")))
    with pytest.raises(ValueError, match=r"no configuration stores element \[64\] of `y`; there are 36 such elements, "
                                         r"of 100.*declare the output with fill="):
        f(X)
    assert f.last is None and not kept_on_disk(tmp_path)
    filled = ct.autotune([{"TILE": 64}], quiet=True, timeout_s=None, **how)(
        ct.jit(one_tile, grid=(1,), out=ct.Out("N", fill=0)))
    assert filled(X)[63:65].tolist() == [63.0, 0.0]
    wants = ct.autotune([{"TILE": 64}], quiet=True, timeout_s=None, reference=lambda x: x)(f.function)
    with pytest.raises(ValueError, match=r"none of 1 configurations ran; 1 × ValueError: no block stores element "
                                         r"\[64\]"):
        wants(X)


@pytest.mark.parametrize("first, second", [(64, 128), (128, 64)])
def test_values_of_one_that_leaves_elements_are_no_evidence(first, second):
    """A row of 100 in one tile: that of 64 leaves elements, and its sums are wrong too."""
    @ct.kernel
    def k(x: ct.Array["M N"], y, T: ct.Constant[int]):
        t = ct.load(x, (ct.bid(0), 0), (1, T), padding_mode=ct.PaddingMode.ZERO)
        ct.store(y, (ct.bid(0), 0), t / ct.sum(t, axis=1, keepdims=True))

    f = ct.autotune([{"T": first}, {"T": second}], quiet=True, timeout_s=None)(
        ct.jit(k, grid="M", out=ct.Out("M N")))
    x = np.ones((3, 100), np.float32)
    assert np.allclose(f(x), 0.01) and f.last.best == {"T": 128} and [c["T"] for c, _ in f.last.failures] == [64]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_those_that_lack_elements_are_no_party(order):
    """Two lack the same elements and store different values; the third one stores all, whenever it comes."""
    @ct.kernel
    def k(x: ct.Array["N"], y, T: ct.Constant[int], ADD: ct.Constant[int]):
        ct.store(y, 0, ct.load(x, 0, T) + ADD)

    configs = [{"T": 64, "ADD": 1}, {"T": 64, "ADD": 2}, {"T": 128, "ADD": 0}]
    f = ct.autotune([configs[i] for i in order], quiet=True, timeout_s=None)(
        ct.jit(k, grid=(1,), out=ct.Out("N")))
    assert np.array_equal(f(X), X) and f.last.best == configs[2] and len(f.last.failures) == 2


def test_each_of_two_leaves_what_the_other_stores(tmp_path):
    """Neither is right; a third one that stores all may be."""
    configs = [{"TILE": 64, "SKIP": 1}, {"TILE": 64, "SKIP": 2}]
    f = ct.jit(one_tile, grid="cdiv(N, TILE)", out=ct.Out("N"))
    with pytest.raises(ValueError, match="none of 2 configurations ran; 1 × .*no block stores element"):
        ct.autotune(configs, quiet=True, timeout_s=None)(f)(X)
    g = ct.autotune([*configs, {"TILE": 16, "SKIP": 0}], quiet=True, timeout_s=None)(f)
    assert np.array_equal(g(X), X) and g.last.best == {"TILE": 16, "SKIP": 0} and len(g.last.failures) == 2


def test_stored_nan_is_stored():
    """Elements that are stored as what they began as are no missing ones."""
    for x in (np.full(100, np.nan, np.float32), np.full(100, -2**15, np.int16), np.ones(100, bool)):
        f = ct.autotune([{"TILE": 32}, {"TILE": 64}], quiet=True, timeout_s=None)(
            ct.jit(one_tile, grid="cdiv(N, TILE)", out=ct.Out("N")))
        assert np.array_equal(f(x), x, equal_nan=x.dtype == np.float32) and not f.last.failures


def test_outputs_that_the_kernel_does_not_store_to(tmp_path):
    @ct.kernel
    def k(x: ct.Array["N"], y, z, TILE: ct.Constant[int], BOTH: ct.Constant[bool]):
        t = ct.load(x, ct.bid(0), TILE)
        ct.store(y, ct.bid(0), t)
        if BOTH:
            ct.store(z, ct.bid(0), t + 1)

    def made(*both, **out):
        f = ct.jit(k, grid="cdiv(N, TILE)", out=(ct.Out("N", name="y"), ct.Out("N", name="z", **out)))
        return ct.autotune([{"TILE": 4 * (i + 1), "BOTH": b} for i, b in enumerate(both)], quiet=True,
                           timeout_s=None)(f)

    with pytest.raises(ValueError, match=r"no configuration stores element \[0\] of `z`; there are 100 such elements"):
        made(False, False)(X)
    f = made(False, True)
    assert np.array_equal(f(X)[1], X + 1) and [c["BOTH"] for c, _ in f.last.failures] == [False]
    with pytest.raises(ValueError, match=r"store different values.*`z`\[0\] is 1.0 with"):
        made(False, True, fill=0)(X)
    assert (made(False, False, fill=0)(X)[1] == 0).all()


def test_a_reference_need_not_return_what_is_stored_besides(times):
    """A counter that callers pass; a reference for it may be returned too."""
    @ct.kernel
    def k(x: ct.Array["N"], count, y, TILE: ct.Constant[int]):
        ct.atomic_add(count, 0, TILE)
        ct.store(y, 0, ct.load(x, 0, TILE))

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    x, count = X[:16], np.zeros(1, np.int32)
    given = {"quiet": True, "timeout_s": None}
    for right in (lambda x, count: x, lambda x, count: (count + 16, x)):
        g = ct.autotune([{"TILE": 16}], reference=right, **given)(f)
        assert g.best(x, count) == {"TILE": 16} and count == 0
    g = ct.autotune([{"TILE": 16}], reference=lambda x, count: (count, x), **given)(f)
    with pytest.raises(ValueError, match="`count`.0. is 16 instead of 0"):
        g.best(x, count)


@shows("TUN-5.reference")
def test_a_reference(times):
    f = tuned([{"TILE": 16}, {"TILE": 4}], kernel=wrong_at_16, reference=reference)
    times[16] = 1.0
    f(X, 2.0)
    assert f.last.best == {"TILE": 4} and len(f.last.failures) == 1


@shows("TUN-5.later")
def test_a_reference_that_comes_later_searches_again(times, tmp_path):
    """A result counts only for the reference and the check that it was compared with."""
    times[16] = 1.0
    only = [{"TILE": 16}]
    tuned(only, kernel=wrong_at_16)(X, 2.0)
    f = tuned(only, kernel=wrong_at_16)
    assert f.best(X, 2.0) == {"TILE": 16}                # nobody can tell
    f.export(tmp_path / "best.json")
    g = tuned(only, kernel=wrong_at_16, reference=reference, save=tmp_path / "best.json")
    with pytest.raises(ValueError, match=r"none of 1 configurations ran; 1 × ValueError: `y`\[0\] is 1.0 instead of"):
        g(X, 2.0)
    right = tuned(reference=reference)
    assert np.array_equal(right(X, 2.0), X * 2)
    count = len(times["tried"])
    tuned(reference=reference)(X, 2.0)
    assert len(times["tried"]) == count                  # the same reference: what is kept counts
    for other in ({"reference": changes}, {"reference": reference, "check": lambda got, want: None}, {}):
        count = len(times["tried"])
        tuned(**other)(X, 2.0)
        assert len(times["tried"]) > count
    count = len(times["tried"])
    for by in (2, 3):
        tuned(reference=lambda x, factor, by=by: x * factor * by / by)(X, 2.0)
        assert len(times["tried"]) > count
        count = len(times["tried"])


def test_a_reference_gets_copies():
    x = X.copy()
    f = tuned(reference=changes)
    assert np.array_equal(f(x, 2.0), X * 2) and np.array_equal(x, X) and not f.last.failures


def test_an_error_of_the_reference_is_named_as_its_own(tmp_path):
    def broken(x, factor):
        raise KeyError("mine")

    f = tuned(reference=broken)
    with pytest.raises(RuntimeError, match="the reference of scaled, broken, raised KeyError: 'mine'") as e:
        f(X, 2.0)
    assert isinstance(e.value.__cause__, KeyError)
    assert [frame.name for frame in traceback.extract_tb(e.value.__cause__.__traceback__)] == ["broken"]
    assert f.last is None and not kept_on_disk(tmp_path)


@shows("TUN-5.check")
def test_a_check_of_the_caller():
    def check(got, want):
        assert abs(got[0][0] - want[0][0]) < 2, "too far"

    f = tuned([{"TILE": 4}, {"TILE": 16}, {"TILE": 32}], kernel=wrong_at_16, check=check, reference=reference)
    f(X, 2.0)
    assert [(c["TILE"], w.split("\n")[0]) for c, w in f.last.failures] == [
        (32, "ValueError: check= raised AssertionError: too far")]

    def strict(got, want):
        assert got[0][0] == want[0][0], "another"

    f = tuned([{"TILE": 4}, {"TILE": 16}], kernel=wrong_at_16, check=strict)
    with pytest.raises(ValueError, match=r"{'TILE': 16} beside {'TILE': 4}: check= raised AssertionError: another"):
        f(X, 2.0)


@shows("TUN-5.check")
@pytest.mark.parametrize("false", [False, np.False_])
def test_a_check_that_returns_false(false):
    f = tuned([{"TILE": 4}, {"TILE": 16}], kernel=wrong_at_16, reference=reference,
              check=lambda got, want: np.allclose(got, want) or false)
    f(X, 2.0)
    assert [(c["TILE"], w) for c, w in f.last.failures] == [(16, "ValueError: check= returned False")]
    with pytest.raises(ValueError, match="none of 1 configurations ran; 1 × ValueError: check= returned False"):
        tuned([{"TILE": 4}], reference=reference, check=lambda got, want: false)(X, 2.0)
    with pytest.raises(ValueError, match=r"{'TILE': 16} beside {'TILE': 4}: check= returned False"):
        tuned([{"TILE": 4}, {"TILE": 16}], check=lambda got, want: false)(X, 2.0)


@shows("TUN-5.check")
@pytest.mark.parametrize("given", [{}, {"reference": lambda x, factor: x * factor}])
def test_a_check_that_returns_neither(given, tmp_path):
    for check in (lambda got, want: 0.25, lambda got, want: got[0] == want[0]):
        with pytest.raises(TypeError, match="check= returned .*; it gets two tuples of arrays"):
            tuned(check=check, **given)(X, 2.0)
    assert not kept_on_disk(tmp_path)


@pytest.mark.parametrize("returned, what", [
    ({"y": 1}, "a dict"), (None, "None"), ("y", "a str"), ((X, None), "a NoneType in a tuple"), (object(), "a object")])
def test_a_reference_of_another_form(returned, what):
    with pytest.raises(TypeError, match=f"^the reference returned {what}; return one array, for `y`"):
        tuned(reference=lambda x, factor: returned)(X, 2.0)


def test_a_reference_of_another_count():
    with pytest.raises(ValueError, match="the reference returned 3 arrays, and the kernel stores to 1 array; return "
                                         "one array, for `y`"):
        tuned(reference=lambda x, factor: (x, x, x))(X, 2.0)


def test_what_a_reference_refuses_says_how_much_is_allowed():
    with pytest.raises(ValueError, match=r"elements differ; 0.0242 is allowed; give check= where results may differ by "
                                         "more"):
        tuned([{"TILE": 16}], kernel=wrong_at_16, reference=reference)(X, 2.0)

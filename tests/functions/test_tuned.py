"""ct.autotune: which calls search, what is compared, what is remembered."""

import functools
import itertools
import json
import time
import traceback

import numpy as np
import pytest
from typer.testing import CliRunner

import cutile as ct
from cutile.cli.main import app
from cutile.functions import tuning_search, tuning_store
from cutile.functions.tuning_key import _text
from cutile.tune.candidates import Candidate
from tests.functions.kernels import scaled_kernel
from tests.functions.shows import shows
from tests.gpu.tileir.tool import needs_tool

X = np.arange(100, dtype=np.float32)
TILES = [{"TILE": t} for t in (4, 16, 32)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def times(monkeypatch):
    """Runs take what this dictionary says of their configuration, by its TILE, and are counted in `tried`."""
    said = {"tried": []}
    original = Candidate.run

    def run(self, args):
        original(self, args)
        tile = self.config.get("TILE", self.config.get("tile"))
        said["tried"].append(tile)
        return said.get(tile, 100.0)

    monkeypatch.setattr(Candidate, "run", run)
    return said


def tuned(configs=TILES, kernel=scaled_kernel, **given):
    f = ct.jit(kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), name="scaled")
    return ct.autotune(configs, **{"quiet": True, "timeout_s": None, **given})(f)


def searches(f, *args, **named):
    """Whether a call searches."""
    before = f.last
    f(*args, **named)
    return f.last is not before


@shows("TUN-1.above", "TUN-3.class")
def test_which_calls_search(times):
    times.update({4: 30.0, 16: 10.0, 32: 20.0})
    f = tuned()
    assert np.array_equal(f(X, 2.0), X * 2) and f.last.best == {"TILE": 16}
    assert [c["TILE"] for c, _, _ in f.last.times] == [16, 32, 4]
    assert not searches(f, X, 3.0) and not searches(f, X[:70], 3.0)
    assert searches(f, X[:10], 2.0) and searches(f, X.astype(np.float64), 2.0)
    assert np.array_equal(f(X[:10], factor=2.0), X[:10] * 2)
    o = np.zeros_like(X)
    assert f(X, 2.0, out=o) is o and np.array_equal(o, X * 2)


@shows("TUN-1.below")
def test_below_jit(times):
    @ct.jit(grid="cdiv(N, TILE)", out=ct.Out("N"))
    @ct.autotune(TILES, quiet=True, timeout_s=None)
    @ct.kernel
    def k(x: ct.Array["N"], y, TILE: ct.Constant[int]):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), TILE))

    times[32] = 1.0
    assert np.array_equal(k(X), X) and k.last.best == {"TILE": 32}


@shows("TUN-1.other")
@pytest.mark.parametrize("wrong", [3, lambda x: x])
def test_what_cannot_be_tuned(wrong):
    with pytest.raises(TypeError, match="decorates a kernel below ct.jit, or what ct.jit made"):
        ct.autotune(TILES)(wrong)


@pytest.mark.parametrize("wrong", [{"TILE": [4, 16]}, [("TILE", 4)], [4], 4, ["TILE"]])
def test_configurations_that_are_no_dictionaries(wrong):
    with pytest.raises(TypeError, match="configurations are a list of dictionaries, such as .*, not"):
        ct.autotune(wrong)
    with pytest.raises(TypeError, match="configurations are a list of dictionaries, such as .*, not"):
        tuned(configs=lambda N: wrong)(X, 2.0)


@shows("TUN-1.factory")
def test_factories(times):
    @ct.autotune([{"tile": t} for t in (4, 16)], quiet=True, timeout_s=None)
    @ct.jit(grid=lambda N: (N // 4,), out=ct.Out("N"))
    def make(tile, unused=0):
        @ct.kernel
        def k(x: ct.Array["N"], y):
            ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), tile))

        return k

    times.update({4: 5.0, 16: 9.0})
    assert np.array_equal(make(X), X) and make.last.best == {"tile": 4}
    with pytest.raises(ValueError, match="TILE cannot be tuned.*what can is tile, unused"):
        ct.autotune(TILES)(make.function)


@shows("TUN-2.keys", "TUN-2.empty")
def test_configurations_that_are_none():
    with pytest.raises(ValueError, match="TIEL cannot be tuned; did you mean TILE\\?; what can is TILE, num_ctas"):
        tuned([{"TIEL": 4}])
    with pytest.raises(ValueError, match="got none"):
        tuned([])
    with pytest.raises(ValueError, match="there are no configurations for these"):
        tuned(lambda N: [])(X, 1.0)
    with pytest.raises(ValueError, match="factor cannot be tuned"):
        tuned(lambda: [{"factor": 2}])(X, 1.0)


def test_hints(times):
    f = tuned([{"TILE": 4, "occupancy": 2}, {"TILE": 16, "occupancy": 8}])
    times[16] = 1.0
    f(X, 1.0)
    best, values = f.configured(f.last.best)
    assert best.launched.options.occupancy == 8 and values == {"TILE": 16} and best.kernel is scaled_kernel


@shows("TUN-2.function")
def test_configurations_from_sizes(times):
    f = tuned(lambda N, factor: [{"TILE": 4}, {"TILE": 64}] if N > 50 else [{"TILE": 2}])
    times[64] = 1.0
    f(X, 1.0)
    assert f.last.best == {"TILE": 64}
    f(X[:8], 1.0)
    assert f.last.best == {"TILE": 2}


@shows("TUN-2.hints")
def test_the_caller_chooses_hints(times):
    f = tuned([{"TILE": 4, "occupancy": 2}, {"TILE": 16, "occupancy": 8}])
    assert np.array_equal(f(X, 2.0, TILE=8, occupancy=4), X * 2) and f.last is None and not times["tried"]
    assert f.resolved((X, 2.0), {"TILE": 8, "occupancy": 4})[0].launched.options.occupancy == 4
    for call in (f, f.best, f.tune):
        with pytest.raises(TypeError, match="got an unexpected keyword argument 'factr'; did you mean factor"):
            call(X, factr=2.0)
    assert not times["tried"]


@shows("TUN-2.given")
def test_the_caller_chooses(times):
    f = tuned()
    assert np.array_equal(f(X, 2.0, TILE=8), X * 2) and f.last is None and not times["tried"]
    with pytest.raises(TypeError, match="what is tuned is given by name"):
        f(X, 2.0, 8)


@shows("TUN-3.key")
def test_keys(times):
    f = tuned(key=["N"])
    assert searches(f, X, 1.0) and searches(f, X[:99], 1.0) and not searches(f, X[1:], 2.0)


@shows("TUN-4.own")
def test_arguments_are_as_they_were():
    @ct.kernel
    def k(x: ct.Array["N"], y, TILE: ct.Constant[int]):
        i = ct.bid(0)
        t = ct.load(x, i, TILE)
        ct.store(x, i, t + 1)
        ct.store(y, i, t)

    x = X.copy()
    f = ct.autotune(TILES, quiet=True, timeout_s=None)(ct.jit(k, grid="cdiv(N, TILE)", out=ct.Out("N")))
    best = f.best(x)
    assert best in TILES and np.array_equal(x, X) and not f.last.failures
    assert np.array_equal(f(x), X) and np.array_equal(x, X + 1)


@shows("TUN-4.made")
@pytest.mark.parametrize("inputs", ["zeros", "normal", "integers", lambda x, f: (x * 0 + 7, f)])
def test_other_inputs(inputs):
    seen = []

    def check(got, want):
        seen.append(got[0])

    f = tuned(inputs=inputs, check=check)
    assert np.array_equal(f(X, 2.0), X * 2)
    assert seen and not np.array_equal(seen[0], X * 2)
    with pytest.raises(ValueError, match="inputs is"):
        tuned(inputs="ones")


@ct.kernel
def wrong_at_16(x: ct.Array["N"], y, factor, TILE: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, i, TILE) * factor
    if TILE == 16:
        t = t + 1
    if TILE != 32 or i > 0:
        ct.store(y, i, t)


def reference(x, factor):
    return x * factor


def kept_on_disk(tmp_path):
    return len(list((tmp_path / "cache").glob("tuned/*.json")))


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
    for reference in (lambda x, count: x, lambda x, count: (count + 16, x)):
        g = ct.autotune([{"TILE": 16}], reference=reference, **given)(f)
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


def changes(x, factor):
    x *= factor
    return x


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


@ct.kernel
def waits(x: ct.Array["N"], y, TILE: ct.Constant[int]):
    i = ct.bid(0)
    while TILE == 16:
        pass
    ct.store(y, i, ct.load(x, i, TILE))


@shows("TUN-6.hang")
def test_a_configuration_that_hangs():
    f = ct.autotune(TILES, quiet=True, timeout_s=4)(ct.jit(waits, grid="cdiv(N, TILE)", out=ct.Out("N")))
    assert np.array_equal(f(X), X)
    assert [(c["TILE"], w.partition(":")[0]) for c, w in f.last.failures] == [(16, "TileLaunchTimeoutError")]


# ------------------------------------------------------------------ what is remembered


@shows("TUN-7.disk", "TUN-7.content")
def test_results_on_disk(times):
    times[16] = 1.0
    tuned()(X, 2.0)
    count = len(times["tried"])
    again = tuned()
    assert np.array_equal(again(X, 2.0), X * 2) and len(times["tried"]) == count and again.last.best == {"TILE": 16}
    tuned(TILES[:2])(X, 2.0)
    assert len(times["tried"]) > count
    count = len(times["tried"])
    tuned(TILES[:1])(X, 2.0)
    assert len(times["tried"]) > count
    count = len(times["tried"])
    tuned(TILES[:1], kernel=wrong_at_16)(X, 2.0)
    assert len(times["tried"]) > count


def test_functions_as_text():
    """What a key has of a function is the same in each process, and differs where the function does."""
    class Callable:
        def __call__(self, x):
            return x

    made = [eval(text) for text in ("lambda x: x + 1", "lambda x: x + 2", "lambda x: (lambda y: y - 1)(x)",
                                    "lambda x: (lambda y: y - 2)(x)")]
    texts = [_text(f) for f in (*made, np.exp, np.log, functools.partial(reference, factor=2),
                                functools.partial(reference, factor=3), reference, changes, Callable())]
    assert len(set(texts)) == len(texts) and not any("0x" in t for t in texts)
    assert _text({"a": [1, "b"], "c": (None, 2.0)}) == "{a: (1, 'b'), c: (None, 2.0)}"


@shows("TUN-7.content")
def test_other_declarations_search_again(times):
    """Grid, outputs and defaults decide what a launch does, as the kernel does."""
    def made(grid="cdiv(N, TILE)", **out):
        f = ct.jit(scaled_kernel, grid=grid, out=ct.Out("N", name="y", **out), defaults={"factor": lambda N: N * 1.0},
                   name="scaled")
        return ct.autotune(TILES, quiet=True, timeout_s=None)(f)

    made()(X)
    for again, f in ((False, made()), (True, made(fill=0)), (True, made(lambda N, TILE: (ct.cdiv(N, TILE),)))):
        count = len(times["tried"])
        f(X)
        assert (len(times["tried"]) > count) is again


def test_damaged_results_are_none(times, tmp_path):
    tuned()(X, 2.0)
    [path] = (tmp_path / "cache" / "tuned").glob("*.json")
    for text in ("", "[]", "{}", path.read_text().replace('"format": 2', '"format": 1')):
        path.write_text(text)
        count = len(times["tried"])
        tuned()(X, 2.0)
        assert len(times["tried"]) > count


@shows("TUN-7.export", "TUN-7.save")
def test_files(times, tmp_path, monkeypatch):
    times[16] = 1.0
    f = tuned(save=tmp_path / "best.json")
    f(X, 2.0), f(X[:10], 2.0)
    f.export(tmp_path / "other.json")
    assert len(json.loads((tmp_path / "best.json").read_text())["results"]) == 2
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path / "empty"))
    count = len(times["tried"])
    tuned(save=tmp_path / "best.json")(X, 2.0)
    g = tuned()
    g.load(tmp_path / "other.json")
    assert np.array_equal(g(X, 2.0), X * 2) and g.last.best == {"TILE": 16} and len(times["tried"]) == count
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="no file with results"):
        g.load(tmp_path / "other.json")


@shows("TUN-7.save")
def test_a_file_gets_what_was_kept_before(times, tmp_path):
    tuned()(X, 2.0)
    count = len(times["tried"])
    tuned(save=tmp_path / "best.json")(X, 2.0)
    assert len(times["tried"]) == count
    assert len(json.loads((tmp_path / "best.json").read_text())["results"]) == 1
    with pytest.raises(FileNotFoundError) as e:
        tuned(save=tmp_path / "nowhere" / "best.json")(X, 2.0)
    assert e.value.filename == str(tmp_path / "nowhere" / "best.json")


@shows("TUN-7.export")
def test_results_of_another_function(times, tmp_path):
    f = tuned()
    f(X, 2.0)
    f.export(tmp_path / "best.json")
    g = ct.autotune(TILES, quiet=True)(ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), name="g"))
    with pytest.warns(UserWarning, match="best.json' has no results of g, only of scaled; calls of g search"):
        g.load(tmp_path / "best.json")


@shows("TUN-7.failed")
def test_nothing_ran():
    with pytest.raises(ValueError, match=r"scaled: none of 3 configurations ran; 2 × TileTypeError: .*; 1 × "):
        tuned([{"TILE": 3}, {"TILE": 3}, {"TILE": "x"}])(X, 1.0)


def test_commands(times):
    times[16] = 1.0
    assert said("cache", "tuned") == "no configurations are kept\n"
    tuned()(X, 2.0)
    shown = said("cache", "tuned")
    assert "scaled" in shown and "interpreter" in shown and "16" in shown
    assert said("cache", "tuned", "--clear") == "removed 1\n"
    assert said("cache", "tuned") == "no configurations are kept\n"


def said(*words):
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


# ------------------------------------------------------------------ many configurations


@shows("TUN-8.few")
def test_many_configurations(times):
    """Times with one lowest point: the search finds it, and tries a part."""
    tiles, factors = [1, 2, 4, 8, 16, 32, 64, 128], list(range(1, 13))

    @ct.kernel
    def k(x: ct.Array["N"], y, TILE: ct.Constant[int], U: ct.Constant[int]):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), TILE))

    original = Candidate.run

    def run(self, args):
        original(self, args)
        return 10.0 + 3 * abs(tiles.index(self.config["TILE"]) - 5) + 2 * abs(self.config["U"] - 9)

    configs = [{"TILE": t, "U": u} for t in tiles for u in factors]
    with pytest.MonkeyPatch.context() as m:
        m.setattr(Candidate, "run", run)
        f = ct.autotune(configs, quiet=True, timeout_s=None)(ct.jit(k, grid="cdiv(N, TILE)", out=ct.Out("N")))
        f(X)
    assert f.last.best == {"TILE": 32, "U": 9} and f.last.skipped > len(configs) / 2
    assert f"{f.last.skipped} were not tried" in f.last.summary()


@shows("TUN-11.order")
def test_estimates_say_which_are_tried(times, monkeypatch):
    """Of 100 configurations, those whose estimates are low, and a few others."""
    @ct.kernel
    def k(x: ct.Array["N"], y, TILE: ct.Constant[int], U: ct.Constant[int]):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), TILE))

    class Estimates:
        def cycles(self, work, grid, hints):
            return work["U"] + 0.001 * work["TILE"]

    monkeypatch.setattr(tuning_search.Search, "_work", lambda self, config: (Estimates(), config, (1, 1, 1)))
    configs = [{"TILE": 2**t, "U": u} for u in range(1, 51) for t in (5, 6)]
    f = ct.autotune(configs, quiet=True, timeout_s=None)(ct.jit(k, grid="cdiv(N, TILE)", out=ct.Out("N")))
    f(X)
    tried = [c["U"] for c, _, _ in f.last.times]
    assert set(range(1, 7)) <= set(tried) and len(tried) <= 12 + 4 + 2 * 8
    assert max(tried) <= 2 * tuning_search.HOPELESS and f.last.skipped == 100 - len(tried)


def test_what_has_no_estimate(times):
    """In the interpreter nothing is estimated, and a configuration that does not run has no estimate."""
    search = tuning_search.Search(tuned([{"TILE": 2**t} for t in range(8)] * 4), (X, 2.0), {})
    search._estimate()
    assert all(t.cycles is None for t in search.trials) and len(search._first_round()) == 6
    assert search._work({"TILE": 3}) is None


@shows("TUN-8.budget")
def test_a_budget(times, monkeypatch):
    clock = iter(range(0, 10000, 10))
    monkeypatch.setattr(tuning_search.time, "monotonic", lambda: float(next(clock)))
    f = tuned([{"TILE": 2**t} for t in range(10)], budget_s=35)
    f(X, 1.0)
    assert 0 < len(f.last.times) < 10 and f.last.skipped == 10 - len(f.last.times)
    monkeypatch.undo()
    assert time.monotonic() > 0


@shows("TUN-9.quiet")
def test_what_is_printed(times, capfd):
    tuned()(X, 1.0)
    assert capfd.readouterr() == ("", "")
    tuned(quiet=False)(X[:10], 1.0)
    printed = capfd.readouterr().out
    assert printed.startswith("scaled on interpreter, x: float32[≤16], factor: float: 3 of 3 configurations ran in")
    assert "times of the interpreter on this CPU, and say nothing about a GPU" in printed and "hints" not in printed
    tuned([{"TILE": 4}, {"TILE": 4, "occupancy": 2}], quiet=False, key=["N"])(X[:10], 1.0)
    printed = capfd.readouterr().out
    assert printed.startswith("scaled on interpreter, x: float32[_], factor: float, N = 10: 2 of 2")
    assert "the interpreter ignores hints" in printed


def test_one_slow_run_decides_nothing(monkeypatch, capfd):
    """The least mean is that of TILE 32; of TILE 4 half of the runs are faster than any of it."""
    said = {4: [10, 10, 10, 10, 4000, 10, 10], 16: [30.0], 32: [20.0]}
    runs = {tile: itertools.cycle(us) for tile, us in said.items()}
    monkeypatch.setattr(Candidate, "run", lambda self, args: next(runs[self.config["TILE"]]))
    monkeypatch.setattr(tuning_search, "FINALISTS", 2)
    f = tuned(check=lambda got, want: None, quiet=False)
    f(X, 1.0)
    assert [c["TILE"] for c, _, _ in f.last.times] == [4, 32, 16]
    assert [t[1:] for t in f.last.times] == [(10.0, 0.0), (20.0, 0.0), (30.0, None)]
    assert "30.00 us  (roughly)  {'TILE': 16}" in capfd.readouterr().out
    again = tuning_store.Tuning.of_json(json.loads(json.dumps(f.last.as_json())))
    assert list(again.times) == list(f.last.times)


@pytest.mark.parametrize("name, words", [
    ("n", "key `n` is no named size and no argument; there are N, factor"),
    ("factr", "did you mean factor"), ("TILE", "there are N, factor$"),
    ("x", "key `x` is an array; a key is a named size")])
def test_keys_that_are_none(name, words):
    with pytest.raises(ValueError, match=words):
        tuned(key=["N", name])


def test_keys_that_calls_show_to_be_none():
    @ct.kernel
    def k(x, scale, y, TILE: ct.Constant[int]):
        i = ct.bid(0)
        ct.store(y, i, ct.load(x, i, TILE) * scale)

    f = ct.autotune(TILES, quiet=True, timeout_s=None, key=["x"])(
        ct.jit(k, grid=(1,), out=ct.Out(like="x")))
    with pytest.raises(ValueError, match="key `x` is an array"):
        f(X, 2.0)
    f = ct.autotune([{"tile": 4}], quiet=True, timeout_s=None, key=["M"])(ct.jit(factory, grid="cdiv(N, 4)",
                                                                              out=ct.Out("N")))
    with pytest.raises(ValueError, match="key `M` is no named size and no argument that is given; there are N"):
        f(X)


def factory(tile):
    @ct.kernel
    def k(x: ct.Array["N"], y):
        i = ct.bid(0)
        ct.store(y, i, ct.load(x, i, tile))
    return k


def test_tuned_kernels_are_not_launched():
    below = ct.autotune(TILES)(scaled_kernel)
    for wrong in (lambda: ct.launch(None, (1,), below, (X,)), lambda: below(X), lambda: below[(1,)]):
        with pytest.raises(TypeError, match=r"@ct\.autotune over a kernel needs @ct\.jit"):
            wrong()
    with pytest.raises(TypeError, match=r"scaled is a tuned function; call it as scaled\(\.\.\.\)"):
        ct.launch(None, (1,), tuned(), (X,))
    with pytest.raises(TypeError, match=r"launch its kernel, scaled\.kernel"):
        ct.launch(None, (1,), tuned().function, (X,))


def test_tuned_functions_as_objects():
    f = tuned()
    assert f.__wrapped__ is not None and "tuned" in repr(f) and f.__name__ == "scaled"


# ------------------------------------------------------------------ compiled and profiled like other functions


SPEC = ct.ArraySpec("N", ct.float32)


@needs_tool
@shows("TUN-12.compile")
def test_compiled_without_a_search(times):
    """By a configuration that is given: constants and hints; what `ct.jit` would make of them."""
    f = tuned([{"TILE": 4, "occupancy": 2}, {"TILE": 16}])
    got = f.compile(SPEC, ct.float32, TILE=16, target="sm_90")
    plain = f.function.compile(SPEC, ct.float32, TILE=16, target="sm_90")
    assert isinstance(got, ct.CompiledFunction) and got.cubin == plain.cubin and got.symbol == plain.symbol
    hinted = f.compile(SPEC, factor=2.0, TILE=4, occupancy=2, target="sm_90")
    assert "occupancy = 2" in hinted.text("tileir") and not times["tried"]
    each = f.compile_all(specs=(SPEC, ct.float32), targets=["sm_90", "sm_100"])
    assert [c.target for c in each] == ["sm_90", "sm_100"] * 2 and each[2].symbol == got.symbol
    assert "occupancy = 2" in each[0].text("tileir") and "occupancy" not in each[2].text("tileir")
    [wrong, right] = f.compile_all([{"TILE": 3}, {"TILE": 16}], (SPEC, ct.float32), targets=["sm_90"], errors="collect")
    assert type(wrong) is ct.TileTypeError and right.symbol == got.symbol
    assert [type(c) for c in ct.compile_all([(f, (SPEC, 2.0), {"TILE": 4, "target": "sm_90"})])] == [type(got)]
    with pytest.raises(ValueError, match="TIEL cannot be tuned; did you mean TILE"):
        f.compile_all([{"TIEL": 4}], (SPEC, ct.float32))


@needs_tool
def test_factories_are_compiled():
    f = ct.autotune([{"tile": 4}, {"tile": 16}], quiet=True, timeout_s=None)(
        ct.jit(factory, grid=lambda N: (N // 4,), out=ct.Out("N")))
    made = f.compile(SPEC, tile=16, target="sm_90")
    assert made.cubin == f.function(16).compile(SPEC, target="sm_90").cubin
    assert len(f.compile_all(specs=(SPEC,), targets=["sm_90"])) == 2


@needs_tool
@shows("TUN-12.kept")
def test_what_a_search_found_is_compiled(times):
    times[16] = 1.0
    f = tuned()
    with pytest.raises(TypeError, match=r"scaled: to compile a tuned function, give a configuration by name "
                                        r"\(TILE=...\), or arrays for which a search has run: scaled.best"):
        f.compile(X, 2.0, target="sm_90")
    assert not times["tried"]
    f(X, 2.0)
    count = len(times["tried"])
    for g in (f, tuned()):  # the other one finds it on disk
        assert g.compile(X, 3.0, target="sm_90").symbol == f.compile(SPEC, 3.0, TILE=16, target="sm_90").symbol
    with pytest.raises(TypeError, match="give a configuration by name"):
        f.compile(SPEC, 3.0, target="sm_90")
    assert len(times["tried"]) == count


def test_profiles(times):
    times[16] = 1.0
    assert tuned().profile(X, 2.0).operations == {"other float32": 112}  # seven tiles of 16

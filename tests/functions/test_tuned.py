"""ct.autotune: which calls search, which configurations there are, and tuned functions as objects."""

import re

import numpy as np
import pytest

import cutile as ct
from tests.functions.kernels import scaled_kernel
from tests.functions.shows import shows
from tests.functions.tuning import TILES, X, factory, searches, tuned
from tests.gpu.tileir.tool import needs_tool

pytestmark = pytest.mark.usefixtures("own_cache")


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
    with pytest.raises(ValueError, match="5 cannot be tuned; what can is TILE"):
        tuned([{5: 6}])
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
        for named, says in (({"factr": 2.0}, "; did you mean factor?"), ({"streem": None}, "; did you mean stream?"),
                            ({"ocupancy": 2}, "; did you mean occupancy?"),
                            ({"y": X}, "; `y` is an output, which the call makes and returns; out= takes an array of "
                                       "yours instead"),
                            ({"block": 4}, "; it takes x, factor, TILE, out, stream, num_ctas")):
            (name,) = named
            says = f"scaled() got an unexpected keyword argument {name!r}{says}"
            with pytest.raises(TypeError, match=re.escape(says)):
                call(X, **named)
    assert not times["tried"]


@shows("TUN-2.given")
def test_the_caller_chooses(times):
    f = tuned()
    assert np.array_equal(f(X, 2.0, TILE=8), X * 2) and f.last is None and not times["tried"]
    with pytest.raises(TypeError, match="what is tuned is given by name"):
        f(X, 2.0, 8)


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

"""Which configurations a search tries, in which order, and what it prints."""

import itertools
import json
import time

import numpy as np
import pytest

import cutile as ct
from cutile.functions import tuning_search, tuning_store
from cutile.tune.candidates import Candidate
from tests.functions.shows import shows
from tests.functions.tuning import TILES, X, tuned

pytestmark = pytest.mark.usefixtures("own_cache")


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


@shows("TUN-7.failed")
def test_nothing_ran():
    with pytest.raises(ValueError, match=r"scaled: none of 3 configurations ran; 2 × TileTypeError: .*; 1 × "):
        tuned([{"TILE": 3}, {"TILE": 3}, {"TILE": "x"}])(X, 1.0)

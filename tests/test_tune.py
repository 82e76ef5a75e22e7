"""cutile.tune [TUNE-1…11]."""

import numpy as np
import pytest

import cutile as ct
from cutile import tune


@ct.kernel
def double(x, out, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, i, ct.load(x, i, N) * 2)


def search(space, **options):
    x = np.arange(64, dtype=np.float32)
    out = np.empty_like(x)
    return tune.exhaustive_search(space, None, lambda n: (64 // n,), double, lambda n: (x, out, n), quiet=True,
                                  **options)


def test_every_configuration_is_measured_and_the_fastest_is_best():
    result = search([16, 64])
    assert {m.config for m in result.successes} == {16, 64} and not result.failures
    assert result.best.mean_us == min(m.mean_us for m in result.successes)
    assert all(m.num_samples >= tune.MIN_SAMPLES for m in result.successes)


def test_a_configuration_that_cannot_run_is_a_failure():
    result = search([16, 3])
    assert [m.config for m in result.successes] == [16]
    (config, cls, message), = result.failures
    assert (config, cls) == (3, ct.TileTypeError) and "power of two" in message


def test_nothing_ran():
    with pytest.raises(ValueError, match="power of two"):
        search([3, 5])


def test_empty_space():
    with pytest.raises(ValueError, match="empty"):
        search([])


def test_errors_outside_the_runs_end_the_search():
    with pytest.raises(TypeError, match="unknown kernel option"):
        search([16], hints_fn=lambda n: {"no_such": 1})


def test_summary_marks_the_best_and_leaves_out_the_middle():
    ms = [tune.Measurement(config=i, mean_us=float(i), num_samples=5, error_margin_us=0.1) for i in range(1, 20)]
    text = str(tune.TuningResult(best=ms[0], successes=tuple(ms), failures=()))
    lines = text.splitlines()
    assert lines[1].startswith("*") and "…" in text and len(lines) == 1 + 10 + 1 + 2

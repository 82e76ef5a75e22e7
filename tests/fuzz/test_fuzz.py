"""Mutated kernels end with a result or with an error meant for the user, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz.outcomes import Fault, mutant, outcome

SAMPLE = 300


def fuzz(seeds) -> Counter[str]:
    faults, seen = [], Counter()
    for seed in seeds:
        try:
            seen[outcome(seed)] += 1
        except Fault as e:
            faults.append(str(e))
    assert not faults, f"{len(faults)} of {len(seeds)} mutants:\n\n" + "\n\n".join(faults[:5])
    return seen


def test_a_sample():
    seen = fuzz(range(SAMPLE))
    assert seen["ran"] > SAMPLE / 20 and seen["TileTypeError"] > SAMPLE / 20 and seen["not Python"] < SAMPLE / 5, seen


@pytest.mark.deep
@pytest.mark.parametrize("part", range(20))
def test_many(part):
    fuzz(range(1000 * part, 1000 * part + 1000))


def test_mutants_differ_and_repeat():
    texts = [mutant(s)[0] for s in range(100)]
    assert texts == [mutant(s)[0] for s in range(100)] and len(set(texts)) > 80


def test_every_kernel_of_the_corpus_runs():
    from tests.fuzz import corpus, outcomes

    for fn in corpus.FUNCTIONS:
        grid, args = corpus.arguments(fn)
        assert outcomes.launch(fn, grid, tuple(args), None, check=True) == "ran", fn.__name__


@pytest.mark.parametrize("error", [RecursionError, IndexError, RuntimeWarning, TypeError])
def test_a_fault_is_seen(monkeypatch, error):
    from tests.fuzz import outcomes

    def broken(*args):
        raise error("inside")

    monkeypatch.setattr(outcomes.ct, "launch", broken)
    with pytest.raises(Fault, match="inside"):
        for seed in range(20):
            outcome(seed)

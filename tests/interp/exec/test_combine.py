"""Combine functions of reductions and scans in code that runs one block: at once, or element by element."""

from __future__ import annotations

import numpy as np

import cutile as ct
from cutile import settings
from cutile.interp.exec import combine


def halved(x):
    return x * 0.5 + 1.0


@ct.kernel
def folds(x, flags, totals, places, runs, weight: float, n: ct.Constant[int]):
    """Each block waits for the one before it, then folds its tile with functions that capture what varies."""
    i = ct.bid(0)
    while i > 0 and ct.atomic_add(flags, i - 1, 0) == 0:
        pass
    t = ct.load(x, (i, 0), (n, n))
    shift = ct.sum(t) + i

    def mixed(a, b):
        return halved(a) * weight + ct.minimum(b, shift)

    def first_of_pairs(a, i, b, j):
        later = b > a
        return ct.where(later, b, a), ct.where(later, j, i)

    ct.store(totals, (i, 0), ct.reduce(t, 1, mixed, 0.0, keepdims=False)[None, :])
    _, at = ct.reduce((t, ct.broadcast_to(ct.arange(n, dtype=ct.int32), (n, n))), 1, first_of_pairs, (-1e30, 0))
    ct.store(places, (i, 0), at[None, :])
    ct.store(runs, (i, 0), ct.scan(t, 1, lambda a, b: 3.0, 0.0) + ct.scan(t, 0, mixed, 0.0))
    ct.atomic_xchg(flags, i, 1)


def folded(schedule=None):
    x = np.random.default_rng(5).standard_normal((12, 4), dtype=np.float32)
    flags = np.ones(3, np.int32) if schedule else np.zeros(3, np.int32)
    arrays = x, flags, np.zeros((3, 4), np.float32), np.zeros((3, 4), np.int32), np.zeros_like(x)
    with settings.override(**({"SCHEDULE": schedule} if schedule else {})):
        ct.launch(None, (3,), folds, (*arrays, 0.25, 4))
    return [a.tobytes() for a in arrays[2:]]


def test_combine_functions_take_all_elements_at_once(monkeypatch):
    """And give the bits that they give one by one, and in batch."""
    calls = []
    one_by_one = combine.combine_elements
    monkeypatch.setattr(combine, "combine_elements", lambda *a: calls.append(a) or one_by_one(*a))
    together = folded()
    assert not calls
    monkeypatch.setattr(combine.debugger, "attached", lambda: True)
    assert folded() == together and calls
    monkeypatch.undo()
    assert folded("interleave") == folded("block") == together

"""difference(): the first value that differs between two back ends, beyond what the language leaves open."""

from __future__ import annotations

import numpy as np

import cutile as ct
from cutile.cli.diff.compare import difference
from tests.cli.diff.test_record import arguments, much


def test_an_error_late_in_a_loop_is_seen(wrong):
    calls = []

    def change(y):
        calls.append(1)
        return y + (1 if len(calls) > 15 else 0)

    wrong("where", change)
    d = difference(much, (2,), arguments(), ("interp", "gpu")).first
    assert d is not None and d.what == "total" and d.block[0] == 1


def test_no_difference_beyond_what_is_known(wrong):
    """Past a branch that depends on rounding, the report names the branch and no difference."""
    @ct.kernel
    def k(x, y):
        s = ct.sum(ct.load(x, (0,), (4,)))
        t = s * 2
        if s > 0:
            t = t + 1
        ct.store(y, (0,), t)

    wrong("sum", lambda y: y + np.float32(1e-7))
    r = difference(k, (1,), (np.array([1, -1, 1, -1], np.float32), np.zeros(1, np.float32)), ("interp", "gpu"))
    assert r.first is None and "the branch in line" in r.inconclusive

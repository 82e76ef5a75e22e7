"""Recording what statements assign: results stay, and of a loop the first executions and the last are kept."""

from __future__ import annotations

import numpy as np

import cutile as ct
from cutile import interp
from cutile.cli.diff.record import LIMIT, recorded
from cutile.ir.check import check


@ct.kernel
def much(xs, y, n):
    pair = (ct.load(xs[0], (0,), (4,)), 3)
    half = pair[0].astype(ct.tfloat32)
    bits = ct.load(xs[1], (0,), (4,)) > 1
    total = ct.zeros((4,), ct.float32)
    for i in range(12):
        total += ct.where(bits, pair[0], 0)
        if i > n:
            break
    both = pair[0], ct.arange(4, dtype=ct.int32)
    least, place = ct.reduce(both, 0, lambda a, b, c, d: (min(a, c), max(b, d)), (9, 0))
    ct.store(y, (ct.bid(0),), total + least + place + half.astype(ct.float32))


def arguments():
    return [np.arange(4, dtype=np.float32), np.arange(4, dtype=np.float32)], np.zeros(8, np.float32), 10


def test_recording_changes_nothing_and_is_checked():
    args = arguments()
    known = much.classify(args)
    program, records, made = recorded(much.program(known).kernel, (2, 1, 1))
    check(program)
    names = [r.variable for r in records]
    assert {"pair[0]", "half", "bits", "total", "least", "place", "i"} <= set(names)
    plain, rich = arguments(), arguments()
    ct.launch(None, (2,), much, plain)
    extra = made()
    interp.launch(program, (2, 1, 1), [*rich, *extra])
    assert np.array_equal(plain[1], rich[1])
    total = max((r for r in records if r.variable == "total"), key=lambda r: r.span.line)
    log, when = extra[total.log], extra[total.when]
    assert np.array_equal(log[0, :, 2], [2, 4, 6, 8, 10, 12, 14, 16, 24])  # eight rounds, and the last
    assert (np.diff(when[0]) > 0).all() and log.shape == (2, LIMIT + 1, 4)

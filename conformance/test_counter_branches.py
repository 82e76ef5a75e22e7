"""Branches on the counter of a loop, which compilers split there."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run

COMPARED = {
    "j < x": lambda j, x: j < x, "j <= x": lambda j, x: j <= x, "j > x": lambda j, x: j > x,
    "j >= x": lambda j, x: j >= x, "x < j": lambda j, x: x < j, "x <= j": lambda j, x: x <= j,
    "x > j": lambda j, x: x > j, "x >= j": lambda j, x: x >= j, "j == x": lambda j, x: j == x,
    "j + 1 > x": lambda j, x: j + 1 > x,
}


def plain(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            s = s * 3 + j
        else:
            s = s * 5 - j
        s = s ^ j
    return s


def without_else(holds, start, stop, x):
    s, t = 1, 2
    for j in range(start, stop):
        y = s - t
        if holds(j, x):
            y = y * 3 + j
            t = t + y
        s = s ^ y
    return s + t


def going_on(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        s = s * 3
        if holds(j, x):
            s = s + j
            continue
        s = s ^ j
        if s > 7:
            s = s - 5
    return s


def twice(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            s = s * 3 + j
        if holds(j, x + 2):
            s = s * 7 - j
        if s > 1000:
            if holds(j, x):
                s = s - 1000
    return s


def by_twos(holds, start, stop, x):
    s = 1
    for j in range(start, stop, 2):
        if holds(j, x):
            s = s * 3 + j
        s = s + 1
    return s


def leaving(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            s = s * 3 + j
        if s > 50:
            break
    return s


def around_a_loop(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            for i in range(2):
                s = s * 3 + i
        s = s + j
    return s


def of_a_moving_bound(holds, start, stop, x):
    s = 1
    for j in range(start, stop):
        if holds(j, x):
            s = s * 3 + j
            x = x - 1
        else:
            x = x + 2
        if holds(j, s):
            s = s - 4
    return s


def of_itself(holds, start, stop, x):
    s = x
    for j in range(start, stop):
        if holds(j, j):
            s = s * 3 + j
        if holds(s, x):
            s = s - 2
    return s


def with_memory(holds, start, stop, x):
    """Sums of what two branches make."""
    s = 1
    for j in range(start, stop):
        r = s + j
        if holds(j, x):
            a = r * 2
            b = a - s
        else:
            b = s - 1
            a = b * 4
        s = (a ^ b) - j
    return s


WRAPPING = plain, without_else, with_memory  # these may be compared modulo 2**bits


@clause("LOOP-12")
@pytest.mark.parametrize("compared", COMPARED)
@pytest.mark.parametrize("body", [plain, without_else, going_on, twice, by_twos, leaving, around_a_loop,
                                  of_a_moving_bound, of_itself, with_memory], ids=lambda f: f.__name__)
def test_branches_on_the_counter(body, compared):
    holds, dtype = COMPARED[compared], np.int32

    @ct.kernel
    def k(bounds, out):
        b = ct.bid(0)
        start, stop, x = ct.load(bounds, (b, 0), ()), ct.load(bounds, (b, 1), ()), ct.load(bounds, (b, 2), ())
        ct.store(out, b, body(holds, start, stop, x))

    cases = [(a, b, x) for a, b in ((0, 5), (-3, 2), (4, 4), (5, 2)) for x in range(-4, 8)]
    if body in WRAPPING and "+" not in compared:
        last = np.iinfo(dtype).max
        cases += [(0, 5, x) for x in (last, last - 1, -last - 1)] + [(last - 4, last, last - i) for i in range(6)]
        cases += [(-last - 1, -last + 3, -last + i) for i in range(-1, 5)]
    out = run(k, np.array(cases, dtype), np.zeros(len(cases), dtype), grid=(len(cases),))
    bits = 8 * out.itemsize
    assert [w % (1 << bits) for w in out.tolist()] == [body(holds, *c) % (1 << bits) for c in cases]

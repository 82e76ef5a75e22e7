"""What lines cost, against bytes and operations counted by hand, under every schedule."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.interp.profile import process
from cutile.interp.profile.report import operations

SCHEDULES = ("batch", "block", "interleave")


@ct.function
def halved(t):
    return t * 0.5


@ct.kernel
def kernel(x, counts, out):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8), padding_mode=ct.PaddingMode.ZERO)
    for _k in range(i):
        t = halved(t)
    s = ct.sum(t, axis=1)
    ct.atomic_add(counts, i, 1)
    ct.store(out, (i, 0), (t - s[:, None]).astype(ct.float16))


def arguments():
    return np.ones((10, 8), np.float32), np.zeros(3, np.int32), np.zeros((10, 8), np.float16)


def profiles(schedule="batch", launch=lambda: ct.launch(None, (3,), kernel, arguments()), **more):
    process.take()
    with settings.override(PROFILE="1", SCHEDULE=schedule, **more):
        launch()
    return process.take()


def by_line(p):
    """(runs, read, written, operations) of each line of the kernel, and of each line of helpers."""
    first = p.span.line
    return {tuple(n - first for _, _, n in line): (c.times, c.bytes_read, c.bytes_written, operations(c))
            for line, c in p.lines.items()}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lines_against_counts_by_hand(schedule):
    (p,) = profiles(schedule)
    assert (p.name, p.launches, p.blocks) == ("kernel", 1, 3)
    helper = by_line(p)[4, -4]
    assert helper == (3, 0, 0, {"other float32": 3 * 32})  # 0 + 1 + 2 calls
    assert {line[0]: cost for line, cost in by_line(p).items() if len(line) == 1} == {
        1: (3, 0, 0, {}), 2: (3, 10 * 8 * 4, 0, {}), 3: (3, 0, 0, {}), 4: (3, 0, 0, {}),
        5: (3, 0, 0, {"other float32": 3 * 4 * 7}), 6: (3, 12, 12, {"other int32": 3}),
        7: (3, 0, 10 * 8 * 2, {"other float32": 3 * 32})}
    assert all(c.seconds >= 0 for c in p.lines.values()) and any(c.seconds for c in p.lines.values())


@ct.kernel
def repeated(x):
    def at(k):
        return ct.load(x, k, 4)

    t = at(0) + at(1) + at(2)
    for k in ct.static_iter(range(3)):
        t = t + at(k)
        t = ct.where(
            t > 0, t, 0)
    ct.store(x, ct.bid(0), t)


def test_a_line_has_run_in_each_call_and_in_each_iteration_that_is_unrolled():
    (p,) = profiles(launch=lambda: ct.launch(None, (2,), repeated, (np.ones(12, np.float32),)))
    runs = {line: cost[0] for line, cost in by_line(p).items()}
    assert runs == {(4,): 2, (4, 2): 6, (6,): 6, (6, 2): 6, (7,): 6, (8,): 6, (9,): 2}


def test_with_checks_the_same_is_counted():
    (p,), (checked,) = profiles(), profiles(SANITIZE="all")
    assert by_line(p) == by_line(checked)


def test_launches_add_up_also_of_other_programs_of_the_kernel():
    def launches():
        for dtype in (np.float32, np.float64, np.float32):
            x, counts, out = arguments()
            ct.launch(None, (3,), kernel, (x.astype(dtype), counts, out))

    (p,) = profiles(launch=launches)
    assert p.launches == 3 and by_line(p)[2,][:2] == (9, 10 * 8 * 16)
    assert by_line(p)[5,][3] == {"other float32": 2 * 84, "other float64": 84}


def test_threads_share_a_profile():
    def launches():
        def run():
            with settings.override(PROFILE="1"):
                for _ in range(20):
                    ct.launch(None, (3,), kernel, arguments())

        threads = [threading.Thread(target=run) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    (p,) = profiles(launch=launches)
    assert p.launches == 80 and by_line(p)[5,][3] == {"other float32": 80 * 84}


def test_the_kernel_computes_what_it_did():
    expected, measured = arguments(), arguments()
    ct.launch(None, (3,), kernel, expected)
    profiles(launch=lambda: ct.launch(None, (3,), kernel, measured))
    assert all(np.array_equal(a, b) for a, b in zip(expected, measured, strict=True))


@ct.kernel
def copies(x, y):
    ct.store(y, 0, ct.load(x, 0, (8,)))


def test_arrays_that_are_only_read_may_be_read_only():
    x, y = np.broadcast_to(np.float32(3), (8,)), np.zeros(8, np.float32)
    (p,) = profiles(launch=lambda: ct.launch(None, (1,), copies, (x, y)))
    assert by_line(p)[1,][:3] == (1, 32, 32) and y.tolist() == [3] * 8


def test_nothing_is_measured_without_the_setting():
    process.take()
    ct.launch(None, (3,), kernel, arguments())
    with settings.override(PROFILE="0"):
        ct.launch(None, (3,), kernel, arguments())
    assert process.take() == []

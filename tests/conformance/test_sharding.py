"""A process that dies or hangs costs one result; all other results come exactly once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest

from conformance.referee.sharding import Done, End, Lost, each


class Square:
    spoiled = False

    def __init__(self):
        self.n = 0

    def __call__(self, seed):
        self.n += 1
        print("this goes nowhere")
        return seed * seed

    def end(self):
        return self.n


class Bad(Square):
    """Dies on seed 5, hangs on 7, and can do nothing more after 9."""

    def __call__(self, seed):
        if seed == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == 7:
            time.sleep(60)
        self.spoiled = seed == 9
        return super().__call__(seed)


class Faulty(Square):
    def __call__(self, seed):
        raise ValueError("a mistake")


def done(found):
    return {d.seed: d.value for d in found if isinstance(d, Done)}


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_seed_once(jobs, capfd):
    found = list(each(Square, range(20), jobs=jobs, chunk=4))
    assert [d.seed for d in sorted((d for d in found if isinstance(d, Done)), key=lambda d: d.seed)] == list(range(20))
    assert done(found) == {n: n * n for n in range(20)}
    ends = [e for e in found if isinstance(e, End)]
    assert len(ends) == 5 and sum(e.value for e in ends) == 20 and all(1 < e.memory < 4000 for e in ends)
    assert capfd.readouterr().out == ""


def test_one_job_keeps_the_order():
    assert [d.seed for d in each(Square, range(10), chunk=3) if isinstance(d, Done)] == list(range(10))


def test_what_dies_or_hangs_is_lost_alone():
    found = list(each(Bad, range(12), jobs=2, chunk=6, limit=3))
    assert done(found) == {n: n * n for n in range(12) if n not in (5, 7)}
    lost = {d.seed: d.why for d in found if isinstance(d, Lost)}
    assert lost == {5: "the process died: signal 9", 7: "nothing came for 3 s"}


def test_time_is_up():
    for seconds in (0.5, 5, 50):
        found = list(each(Slow, range(10_000), seconds=seconds))
        if done(found):  # on a busy machine, perhaps none has begun
            break
    assert 0 < len(done(found)) <= seconds / Slow.SECONDS + 1
    assert [e.value for e in found if isinstance(e, End)] == [len(done(found))]


class Slow(Square):
    SECONDS = 0.05

    def __call__(self, seed):
        time.sleep(self.SECONDS)
        return super().__call__(seed)


def test_a_mistake_of_the_work_comes_through():
    with pytest.raises(RuntimeError, match=r"seed 0: [\s\S]*ValueError: a mistake"):
        list(each(Faulty, range(3)))


def test_leaving_early_ends_the_processes():
    for d in each(Square, range(1000), jobs=2, chunk=2):
        if isinstance(d, Done):
            break
    assert not multiprocessing.active_children()

"""Launches in unusual circumstances: nothing to do, many at once, after a fork."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from tests.interp.debugging.interpreters import run

SCHEDULES = pytest.mark.parametrize("schedule", ["batch", "block", "interleave"])


@ct.kernel
def every_access(x, y, counts):
    i = ct.bid(0)
    k = ct.arange(4, dtype=ct.int32) + 4 * i
    ct.store(y, index=i, tile=ct.load(x, index=i, shape=4))
    ct.scatter(y, k, ct.gather(x, k) + 1)
    ct.atomic_add(counts, k % 2, 1)
    ct.printf("%d\n", i)


@SCHEDULES
@pytest.mark.parametrize("grid", [(0,), (2, 0), (3, 1, 0)])
def test_empty_grids(schedule, grid, capsys):
    x, counts = np.arange(8, dtype=np.int32), np.zeros(2, np.int32)
    with settings.override(SCHEDULE=schedule):
        ct.launch(None, grid, every_access, (x, x, counts))
    assert capsys.readouterr() == ("", "") and x.tolist() == list(range(8)) and not counts.any()


@SCHEDULES
def test_empty_arrays(schedule, capsys):
    x, y, counts = (np.zeros(0, np.int32) for _ in range(3))
    with settings.override(SCHEDULE=schedule):
        ct.launch(None, (3,), every_access, (x, y, counts))
    assert capsys.readouterr() == ("0\n1\n2\n", "")


# ------------------------------------------------------------------ many at once


@ct.kernel
def sums(x, out, T: ct.Constant[int]):
    total = ct.zeros((T,), ct.int32)
    for k in range(ct.num_tiles(x, axis=0, shape=T)):
        total += ct.load(x, index=k, shape=T)
    ct.store(out, index=ct.bid(0), tile=ct.sum(total) + ct.bid(0))


@ct.kernel
def queue(lock, out):
    while ct.atomic_cas(lock, 0, 0, 1) != 0:
        pass
    ct.store(out, 0, ct.load(out, 0, ()) + 1)
    ct.atomic_xchg(lock, 0, 0)


def descend(x, n):
    if n == 0:
        return x
    return descend(x + 1, n - 1)


@ct.kernel
def deep(x):
    ct.store(x, 0, descend(ct.load(x, 0, ()), 150))


def test_many_threads_launching_at_once():
    """Three kernels, one of which waits and one of which calls deeply, in all schedules, two tile sizes."""
    limit, faults, start = sys.getrecursionlimit(), [], threading.Barrier(12)

    def work(i: int) -> None:
        try:
            start.wait()
            for turn in range(3):
                schedule = ("batch", "block", "interleave")[(i + turn) % 3]
                with settings.override(SCHEDULE=schedule):
                    x, out = np.arange(32, dtype=np.int32) + i, np.zeros(3, np.int32)
                    ct.launch(None, (3,), sums, (x, out, (8, 16)[i % 2]))
                    assert out.tolist() == [x.sum() + b for b in range(3)]
                    done = np.zeros(1, np.int32)
                    ct.launch(None, (4,), queue, (np.zeros(1, np.int32), done))
                    assert done[0] == 4
                    ct.launch(None, (1,), deep, (done,))
                    assert done[0] == 154
        except BaseException as e:
            faults.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not faults, faults[0]
    assert sys.getrecursionlimit() == limit


# ------------------------------------------------------------------ fork

FORKING = """
import os
import numpy as np
import cutile as ct

@ct.kernel
def add(x, y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), shape=4) + 1)

def works():
    x, y = np.arange(8), np.zeros(8, np.int64)
    ct.launch(None, (2,), add, (x, y))
    return (y == x + 1).all()

def child():
    pid = os.fork()
    if pid == 0:
        os._exit(0 if works() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

print(child(), works(), child(), works())  # before the first launch, and after it
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork(tmp_path):
    file = tmp_path / "forking.py"
    file.write_text(FORKING)
    assert run(sys.executable, "-W", "error", file).stdout == "0 True 0 True\n"

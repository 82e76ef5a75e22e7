"""Launches in unusual circumstances: nothing to do, many at once, after a fork."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from tests.front.compiling import cell
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


# ------------------------------------------------------------------ subclasses of arrays


class Units(np.ndarray):
    """Converts what is read and written by indexing, and what ufuncs see, as arrays with units do."""

    def __getitem__(self, key):
        return np.ndarray.__getitem__(self, key) / 100

    def __setitem__(self, key, value):
        np.ndarray.__setitem__(self, key, np.asarray(value) * 100)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kw):
        return getattr(ufunc, method)(*[np.asarray(v) / 100 if isinstance(v, Units) else v for v in inputs], **kw)

    def __array_function__(self, *args):
        raise AssertionError

    def reshape(self, *shape):
        return np.zeros(shape, self.dtype)

    view = copy = ravel = astype = reshape


@ct.kernel
def in_every_way(x, y, xs, pair, n):
    i, k = ct.bid(0), ct.arange(4, dtype=ct.int32)
    row, column = ct.full((4,), 1, ct.int32) * i, k
    t = ct.load(x, (i, 0), (1, 4)) + ct.gather(x, (row, column)).reshape((1, 4))
    t += x.tiled_view((1, 4)).load((i, 0)) + ct.load(xs[n], (i, 0), (1, 4))
    t += ct.load(pair[0].slice(1, 0, 4), (i, 0), (1, 4))
    t += x.get_raw_memory().load_offset(4 * i + k).reshape((1, 4))
    t += ct.load_advanced_indexing(x, (ct.full((1,), 1, ct.int32) * i, ct.Slice(0, 4)))
    ct.store(y, (i, 0), t)
    ct.scatter(y, (row, column), ct.gather(y, (row, column)) + 1)
    y.get_raw_memory().store_offset(4 * i + k, y.get_raw_memory().load_offset(4 * i + k) + 1)
    y.tiled_view((1, 4)).store((i, 0), y.tiled_view((1, 4)).load((i, 0)) + 1)
    ct.store_advanced_indexing(y, (ct.full((1,), 1, ct.int32) * i, ct.Slice(0, 4)), ct.load(y, (i, 0), (1, 4)) + 1)
    ct.atomic_add(y, (row, column), 1)
    ct.atomic_add(xs[1], (row, column), 3)
    ct.atomic_xchg(pair[1], (row, column), 5)


@SCHEDULES
@pytest.mark.parametrize("cls", [np.ndarray, np.matrix, Units])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("strided", [False, True])
def test_subclasses_of_arrays(schedule, cls, dtype, strided):
    """Results are those of the plain array, in every way of reading and writing."""
    def launch(as_class):
        base = [np.arange(k, k + 2 * 3 * 4, dtype=dtype).reshape(3, 8) for k in range(5)]
        plain = [b[:, ::2] if strided else b[:, :4].copy() for b in base]
        x, y, a, b, c = (np.ndarray.view(p, as_class) for p in plain)
        with settings.override(SCHEDULE=schedule):
            for _ in range(2):  # the second is like the first
                ct.launch(None, (3,), in_every_way, (x, y, [a, b], (c, b), 0))
        return base, plain

    assert [[a.tolist() for a in arrays] for arrays in launch(cls)] == [
        [a.tolist() for a in arrays] for arrays in launch(np.ndarray)]


# ------------------------------------------------------------------ many axes


def ranked(rank, body):
    """A kernel whose lines may say {at} and {tile}: the index and the shape of tiles of two elements."""
    at = ", ".join(["0"] * (rank - 1) + ["ct.bid(0)"])
    lines = body.format(at=at, tile=", ".join(["1"] * (rank - 1) + ["2"])).splitlines()
    return ct.kernel(cell("def k(x, y):\n" + "".join(f"    {line}\n" for line in lines))["k"])


COPIES = {
    "load": "ct.store(y, ({at}), ct.load(x, ({at}), ({tile})) + 1)",
    "view": "y.tiled_view(({tile})).store(({at}), x.tiled_view(({tile})).load(({at})) + 1)",
    "sum": "t = ct.load(x, ({at}), ({tile}))\nct.store(y, ({at}), t + 1 + 0 * ct.sum(t, axis=-1, keepdims=True))",
    "reduce": "t = ct.load(x, ({at}), ({tile}))\n"
              "ct.store(y, ({at}), t + 1 + 0 * ct.reduce(t, -1, lambda a, b: a + b, 0.0, keepdims=True))",
    "cumsum": "t = ct.load(x, ({at}), ({tile}))\nct.store(y, ({at}), t + 1 + 0 * ct.cumsum(t, axis=-1))",
    "scan": "t = ct.load(x, ({at}), ({tile}))\n"
            "ct.store(y, ({at}), t + 1 + 0 * ct.scan(t, -1, lambda a, b: a + b, 0.0))",
    "reshape": "ct.store(y, ({at}), ct.reshape(ct.reshape(ct.load(x, ({at}), ({tile})), (2,)), ({tile})) + 1)",
}


@SCHEDULES
@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("rank", [28, 29, 30, 32, 33, 61, 62, 64])
def test_many_axes(rank, name, schedule):
    """Right, or an error at the line where NumPy has no arrays of so many axes."""
    x = np.arange(6, dtype=np.float32).reshape((1,) * (rank - 1) + (6,))
    y = np.zeros_like(x)
    with settings.override(SCHEDULE=schedule):
        try:
            ct.launch(None, (3,), ranked(rank, COPIES[name]), (x, y))
        except ct.TileUnsupportedFeatureError as e:
            assert rank > 32 and name in ("cumsum", "scan", "reduce")
            assert e.loc is not None and e.loc.function == "k" and "reshape" in e.help
        else:
            assert np.array_equal(y, x + 1)


def test_more_axes_than_numpy_has():
    ones = f"ct.ones({(1,) * 65}, ct.int32)"
    k = ct.kernel(cell(f"def k(y):\n    ct.store(y, 0, ct.full((8,), ct.sum({ones}), ct.int32))")["k"])
    with pytest.raises(ct.TileUnsupportedFeatureError, match="a tile of 65 axes.*at most 64") as e:
        ct.launch(None, (1,), k, (np.zeros(8, np.int32),))
    assert e.value.loc.function == "k" and "reshape" in e.value.help

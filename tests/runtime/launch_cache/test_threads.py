"""Threads that launch, look up, insert and replace arguments at once."""

import random
import struct
import threading

import numpy as np

import cutile as ct
from cutile import settings
from cutile.runtime import launch_cache
from tests.gpu.extension import CuPyArray
from tests.runtime.launch_cache.launches import IN_C, X, Y, scaling


def test_threads(c, gpu):
    k = scaling()
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))

    def run(n):
        gpu.contexts[:] = [0x1000]
        for m in range(50):
            ct.launch(n, (1,), k, (CuPyArray(4096 * (n + 1), (48,), (1,)), Y, float(100 * n + m), 16))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(gpu.launches) == 201 and gpu.names().count(IN_C) == 200
    for one in gpu.launches[1:]:
        n = one["stream"]
        assert one["parameters"][0] == struct.pack("<Q", 4096 * (n + 1))
        assert struct.unpack("<f", one["parameters"][6])[0] // 100 == n


def at_once(*works):
    """Run functions in threads of their own, which begin together. The first error is raised here."""
    barrier, errors = threading.Barrier(len(works)), []

    def run(work, seed):
        barrier.wait()
        try:
            work(random.Random(seed))
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(work, seed)) for seed, work in enumerate(works)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_threads_that_look_up_what_others_insert(c):
    """Whatever is found is of the arguments that were asked for, though the cache is full again and again."""
    watch = settings.watch("BACKEND")
    cache = c.LaunchCache(constants=bytes((0, 1)), watch=watch, host_watch=watch, grid_limit=9, capacity=12)
    cache.kinds[np.ndarray] = c.NUMPY
    given = [(np.zeros(1 + n % 5), n) for n in range(30)]
    found = []

    def work(rng):
        for _ in range(1500):
            args = given[rng.randrange(30)]
            if rng.random() < 0.3:
                assert cache.insert(args, {}, lambda: True, ["of", args[1]], None, None, None) is True
            elif (one := cache.lookup(args)) is not None:
                assert one == ["of", args[1]]
                found.append(args[1])
            assert len(cache) <= 12 + 8  # as many may pass the limit as insert at once

    at_once(*[work] * 8)
    assert len(set(found)) == 30


FACTOR = 1


def test_threads_that_launch_while_a_dependency_changes(c, monkeypatch):
    """Known and new launches, of kernels whose caches are full again and again: each result is of one factor."""
    monkeypatch.setattr(launch_cache, "LIMIT", 4)
    monkeypatch.setitem(globals(), "FACTOR", 1)

    @ct.kernel
    def k(x, y, N: ct.Constant):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 4) * FACTOR + N)

    ending = threading.Event()

    def launch(rng):
        try:
            for _ in range(50):
                blocks, n = rng.randrange(1, 4), rng.randrange(2)
                x, y = np.arange(4 * blocks), np.zeros(4 * blocks, int)
                ct.launch(None, (blocks,), k, (x, y, n))
                assert y.tolist() in ((x + n).tolist(), (2 * x + n).tolist())
        finally:
            ending.set()

    def change(rng):
        while not ending.wait(0.01):
            globals()["FACTOR"] = 3 - FACTOR

    at_once(*[launch] * 7, change)


def test_threads_that_replace_arguments_of_a_prepared_launch(c, gpu):
    """Each launch has the numbers of one `set`."""
    k = scaling()
    prepared = ct.prepare(k, (3,), (X, Y, 0.0, 16))
    prepared(77)  # decides which code runs
    step = prepared._in_c
    values = {n: (4096 * n, 8192 * n, float(n)) for n in range(1, 9)}
    step.set((X, Y, 1.0, 16), values[1])
    gpu.launches.clear()

    def launch(rng):
        gpu.contexts[:] = [0x1000]
        for _ in range(200):
            assert step.launch(77) is None

    def replace(rng):
        for _ in range(2000):
            n = rng.randrange(1, 9)
            step.set((X, Y, float(n), 16), values[n])

    at_once(*[launch] * 4, *[replace] * 2)
    seen = [tuple(struct.unpack(f, one["parameters"][i])[0] for f, i in (("<Q", 0), ("<Q", 3), ("<f", 6)))
            for one in gpu.launches]
    assert len(seen) == 800 and set(seen) <= set(values.values())

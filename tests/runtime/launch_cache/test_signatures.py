"""Signatures against launch keys, and launches with C code against those without, on random arguments."""

import enum
import math
import random
import struct

import numpy as np
import pytest

import cutile as ct
from cutile.runtime import c_readers, launch_cache, launch_key
from cutile.runtime.annotations import PLAIN, ParameterSpec
from tests.gpu.extension import CuPyArray, LentTensor, Tensor
from tests.runtime.launch_cache.launches import IN_C, X, launches_of


class Level(enum.IntEnum):
    LOW = 1


def random_array(r, tensor):
    cls = r.choice((CuPyArray, tensor))
    shape = tuple(r.choice((1, 5, 16)) for _ in range(r.randrange(3)))
    strides = tuple(r.choice((1, 5, 16, -1)) for _ in shape)
    more = {"cuda": r.random() < 0.95, "neg": r.random() < 0.1} if cls is tensor else {}
    return cls(r.choice((4096, 4100, 8192, 2**47)), shape, strides, r.choice(("f4", "i4", "f2")),
               int(r.random() < 0.1), **more)


def random_value(r, tensor):
    return r.choice((lambda: random_array(r, tensor), lambda: r.choice((True, False)),
                     lambda: r.choice((0.0, -0.0, 1e300)),
                     lambda: r.choice((0, 1, -1, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**63 - 1, 2**63, 2**70)),
                     lambda: r.choice((np.float64(1.5), np.float32(1), None, "a", (1,), [X], Level.LOW))))()


CONSTANTS = [0, 1, -1, True, False, None, 0.0, -0.0, 1.0, 2**63, 2**70, "a", Level.LOW, ct.int8, np.int8(1), math.nan]
SPECS = [PLAIN, PLAIN, ParameterSpec(constant=True)]
FLAGS = bytes(s.constant for s in SPECS)


@pytest.mark.parametrize("tensor", [Tensor, LentTensor])
def test_equal_signatures_mean_equal_keys(c, tensor):
    """And, of values that are the same objects or plain numbers and arrays, the other way round."""
    r = random.Random(1)
    cache = c.LaunchCache(constants=FLAGS, watch=(), host_watch=(), grid_limit=1, capacity=1)
    for value in (True, 1, 1.0, np.float64(1), tensor(4096, (48,), (1,)), X):
        cache.kinds[type(value)] = c_readers.c_reader(c, value)
    by_signature, by_key = {}, {}
    for _ in range(20000):
        values = (random_value(r, tensor), random_value(r, tensor), r.choice(CONSTANTS))
        found = cache.signature(values)
        key, launch_values = [], []
        try:
            launch_key.read(values, SPECS, key, launch_values)
            key = tuple(key)
        except Exception:
            key = None
        if found is NotImplemented:
            continue
        assert key is not None, values
        signature, packed = found
        assert by_signature.setdefault(signature, key) == key
        assert by_key.setdefault(key, signature) == signature
        want = b"".join(struct.pack("<d", v) if isinstance(v, float) else struct.pack("<Q", v % 2**64)
                        for v in launch_values)
        assert packed == want
    assert len(by_key) > 2000


@pytest.mark.parametrize("tensor", [Tensor, LentTensor])
def test_both_ways(c, gpu, monkeypatch, tensor):
    """A run of random launches of one kernel, with the extension and without: the driver hears the same."""
    r = random.Random(2)
    pool = [random_array(r, tensor) for _ in range(10)]
    jobs = [(r.choice((0, 5)), (r.randrange(4),) * r.randrange(1, 3),
             (r.choice(pool), r.choice(pool), r.choice((1.5, -2.0, 3, 2**31, True)), r.choice((16, 16.0, True))))
            for _ in range(400)]
    jobs = [r.choice(jobs[:60]) if r.random() < 0.7 else j for j in jobs]

    @ct.kernel
    def k(x, y, f, N: ct.Constant):
        ct.printf("%f", ct.full((), f, ct.float32))

    def outcomes(k):
        out = []
        for stream, grid, values in jobs:
            gpu.launches.clear()
            try:
                ct.launch(stream, grid, k, values)
            except Exception as e:
                out.append((type(e), str(e)))
            else:
                out.append(launches_of(gpu))
        return out

    got = outcomes(k)
    repeated = gpu.names().count(IN_C)
    monkeypatch.setattr(launch_cache, "extension", lambda: None)
    assert got == outcomes(ct.kernel(k.function))
    assert repeated > 30 and gpu.names().count(IN_C) == repeated and sum(isinstance(o, tuple) for o in got) > 20

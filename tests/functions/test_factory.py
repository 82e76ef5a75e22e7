"""Factories: which calls make a kernel, and which find one."""

import copy
import pickle
from enum import Enum

import numpy as np
import pytest

import cutile as ct
from cutile.functions.factory import frozen
from tests.functions.shows import shows

X = np.arange(4, dtype=np.float32)


def factory():
    calls = []

    @ct.jit(grid=(1,), out=ct.Out("N"))
    def make(n=1, *, tile=4, extra=None):
        calls.append((n, tile, extra))

        @ct.kernel
        def k(x: ct.Array["N"], y):
            ct.store(y, 0, (ct.load(x, 0, tile) + n).astype(y.dtype))

        return k

    return make, calls


@shows("JIT-19.once")
def test_called_once():
    make, calls = factory()
    f = make(1, tile=4)
    assert make() is make(1) is make(n=1) is make(tile=4, n=1) is make(1, extra=None) is f and len(calls) == 1
    assert make(2) is make(n=2) is not f and len(calls) == 2
    assert np.array_equal(f(X), X + 1) and np.array_equal(make(2)(X), X + 2)


@shows("JIT-19.kinds")
def test_kinds_of_values_differ():
    make, calls = factory()
    for _ in range(2):
        found = [make(v) for v in (1, 1.0, True, 0.0, -0.0, (1,), (True,), ((1.0,),), ((1,),))]
        assert len({id(f) for f in found}) == len(found) == len(calls)


class Color(Enum):
    RED = 1


@shows("JIT-19.unhashable")
def test_values_that_cannot_be_hashed():
    make, calls = factory()
    assert make([1, {2: {3}}]) is make([1, {2: {3}}]) is not make([1, {2: {4}}])
    assert make(extra=np.arange(3)) is make(extra=np.arange(3)) is not make(extra=np.arange(4))
    assert len(calls) == 4


@pytest.mark.parametrize("a, b", [(float("nan"), float("nan")), (Color.RED, Color.RED), ({1: 2, 3: 4}, {3: 4, 1: 2}),
                                  ({1, 2}, {2, 1}), (ct.float32, ct.float32), (np.float32, np.float32)])
def test_equal_keys(a, b):
    assert frozen(a) == frozen(b) and hash(frozen(a)) == hash(frozen(b))


@pytest.mark.parametrize("a, b", [(1, 1.0), (1, True), (0.0, -0.0), ([1], (1,)), ("1", 1), (Color.RED, 1)])
def test_different_keys(a, b):
    assert frozen(a) != frozen(b)


@shows("JIT-19.info")
def test_cache_info():
    make, calls = factory()
    make(), make(), make(n=1), make(5)
    assert make.cache_info() == (2, 2, 2)
    make.clear()
    assert make.cache_info() == (0, 0, 0)
    make()
    assert len(calls) == 3


def test_wrong_arguments():
    make, _ = factory()
    with pytest.raises(TypeError, match="unexpected keyword"):
        make(m=1)


@ct.jit(grid=(1,))
def at_the_top():
    raise NotImplementedError


def test_as_objects():
    assert pickle.loads(pickle.dumps(at_the_top)) is copy.deepcopy(at_the_top) is at_the_top
    assert "at_the_top" in repr(at_the_top) and at_the_top.__wrapped__


def test_methods():
    class Model:
        @ct.jit(grid=(1,), out=ct.Out("N"))
        def make(self, n):
            @ct.kernel
            def k(x: ct.Array["N"], y):
                ct.store(y, 0, ct.load(x, 0, 4) * n)

            return k

    m = Model()
    assert m.make(3) is m.make(3) and np.array_equal(m.make(3)(X), X * 3)

"""Functions made of kernels: calls of them, and the functions as objects."""

import copy
import pickle
import threading

import numpy as np
import pytest

import cutile as ct
from tests.functions import kernels
from tests.functions.kernels import LINE, X, expected, scaled, scaled_kernel, softmax, softmax_kernel
from tests.functions.shows import shows


def test_calls_of_many_sizes():
    for n in (1, 12, 5, 12):
        assert np.allclose(softmax(X[:, :n]), expected(X[:, :n]), rtol=1e-5)


@shows("JIT-17.pickle", "JIT-17.copy", "JIT-17.wrapped")
def test_as_objects():
    assert pickle.loads(pickle.dumps(kernels.softmax_kernel)) is softmax_kernel
    assert copy.copy(softmax) is copy.deepcopy(softmax) is softmax
    assert softmax.__wrapped__ is softmax_kernel.function
    assert "softmax" in repr(softmax) and len({softmax, scaled, softmax}) == 2


@ct.jit(grid="cdiv(N, 4)", out=ct.Out("N"))
@ct.kernel
def at_the_top(x: ct.Array["N"], y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 4))


again = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), defaults={"TILE": 8})


@shows("JIT-17.made")
def test_pickles():
    assert pickle.loads(pickle.dumps(at_the_top)) is at_the_top
    other = pickle.loads(pickle.dumps(again))
    assert other is not again and other.kernel is scaled_kernel
    assert np.array_equal(other(LINE, 2.0), LINE * 2)


@shows("JIT-17.class")
def test_in_a_class():
    class Model:
        soft = softmax

        def __call__(self, x):
            return self.soft(x)

    assert np.array_equal(Model()(X), softmax(X))


@shows("JIT-23.silent", "JIT-23.once")
def test_threads(capfd):
    @ct.kernel
    def k(x: ct.Array["M N"], y):
        i = ct.bid(0)
        ct.store(y, (i, 0), ct.load(x, (i, 0), (1, 16)) * 2)

    f = ct.jit(k, grid="M", out=ct.Out("M N"))
    results, start = [], threading.Barrier(4)

    def call():
        start.wait()
        results.append(f(X))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 4 and all(np.array_equal(r, X * 2) for r in results)
    assert len(k._programs) == 1 and capfd.readouterr() == ("", "")


def test_errors_of_the_kernel_are_those_of_a_launch():
    @ct.kernel
    def k(x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 3))

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    with pytest.raises(ct.TileTypeError, match="power of two"):
        f(LINE)


def test_a_number_where_the_kernel_takes_an_array():
    with pytest.raises((TypeError, ct.TileError)) as e:
        ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"))(X, "no")
    assert e.value


def test_numbers_before_the_first_array():
    @ct.kernel
    def k(n, x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 4) + n)

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    for n in (1, 2, 3):
        assert np.array_equal(f(n, LINE[:4]), LINE[:4] + n)
    assert f.plans or f.calls


def test_lists_of_arrays():
    @ct.kernel
    def k(xs, y, n: ct.Constant[int]):
        t = ct.zeros((4,), ct.float32)
        for i in range(n):
            t = t + ct.load(xs[i], 0, 4)
        ct.store(y, 0, t)

    f = ct.jit(k, grid=(1,), out=ct.Out((4,), name="y"))
    assert np.array_equal(f([LINE[:4], LINE[:4]], 2), LINE[:4] * 2)

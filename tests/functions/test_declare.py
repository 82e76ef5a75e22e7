"""ct.jit as a decorator and as a call, and what it refuses."""

import numpy as np
import pytest

import cutile as ct
from tests.functions.kernels import scaled_kernel, softmax_kernel
from tests.functions.shows import shows

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@shows("JIT-1.decorator", "JIT-1.launch")
def test_on_a_kernel():
    @ct.jit(grid="M", out=ct.Out("M N"))
    @ct.kernel
    def double(x: ct.Array["M N"], y):
        i = ct.bid(0)
        ct.store(y, (i, 0), ct.load(x, (i, 0), (1, 4)) * 2)

    assert np.array_equal(double(X), 2 * X)
    y = np.zeros_like(X)
    ct.launch(None, (3,), double.kernel, (X, y))
    assert np.array_equal(y, 2 * X)


@shows("JIT-1.call")
def test_as_a_call():
    f = ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"))
    assert np.allclose(f(X, 4).sum(1), 1)


@shows("JIT-1.bare", "JIT-3.factory")
def test_bare_on_a_function():
    calls = []

    @ct.jit
    def make(n):
        calls.append(n)

        @ct.jit(grid=(1,), out=ct.Out("N"))
        @ct.kernel
        def plus(x: ct.Array["N"], y):
            ct.store(y, 0, ct.load(x, 0, 4) + n)

        return plus

    assert not calls
    assert np.array_equal(make(5)(X[0]), X[0] + 5)


@shows("JIT-2.keywords")
def test_an_unknown_keyword():
    with pytest.raises(TypeError, match="no keyword grids; did you mean grid?"):
        ct.jit(softmax_kernel, grids=(1,))


@shows("JIT-2.grid")
def test_no_grid():
    with pytest.raises(TypeError, match="needs the grid of softmax_kernel"):
        ct.jit(softmax_kernel, out=ct.Out("M N"))


@shows("JIT-2.hints")
def test_hints():
    f = ct.jit(scaled_kernel, grid=(1,), out=ct.Out("N", name="y"), hints={"occupancy": 4})
    assert f.launched.options.occupancy == 4 and f.kernel is scaled_kernel and scaled_kernel.options.occupancy is None
    with pytest.raises(TypeError):
        ct.jit(scaled_kernel, grid=(1,), hints={"occupansy": 4})


@shows("JIT-3.returns")
def test_a_factory_without_a_kernel():
    @ct.jit(grid=(1,))
    def make():
        return 3

    with pytest.raises(TypeError, match="make must return a kernel, since ct.jit decorates it, but returned 3"):
        make()


@shows("JIT-3.other")
@pytest.mark.parametrize("wrong", [3, np.zeros(3), int])
def test_anything_else(wrong):
    with pytest.raises(TypeError, match="a kernel, or a function that returns kernels"):
        ct.jit(wrong, grid=(1,))


def test_a_function_made_already():
    with pytest.raises(TypeError, match="made by ct.jit already"):
        ct.jit(ct.jit(scaled_kernel, grid=(1,)))


def test_keywords_around_a_function_made_already():
    @ct.jit(grid=(1,))
    def make():
        return ct.jit(scaled_kernel, grid=(1,))

    with pytest.raises(TypeError, match="takes no keywords"):
        make()

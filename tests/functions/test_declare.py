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
@pytest.mark.parametrize("wrong", [3.5, np.zeros(3), int])
def test_anything_else(wrong):
    with pytest.raises(TypeError, match="a kernel, or a function that returns kernels"):
        ct.jit(wrong, grid=(1,))


def body(x: ct.Array["M N"], y):
    ct.store(y, (ct.bid(0), 0), ct.load(x, (ct.bid(0), 0), (1, 4)))


def unannotated(x, y):
    ct.store(y, (ct.bid(0), 0), ct.load(x, (ct.bid(0), 0), (1, 4)))


WHAT = {"grid": "M", "out": ct.Out("M N")}


@shows("JIT-3.order")
@pytest.mark.parametrize("wrong, message", [
    (lambda: ct.kernel(ct.jit(**WHAT)(body)), r"^body has parameters as a kernel has them, and is none: write "
                                              r"@ct.kernel between @ct.jit\(\.\.\.\) and it$"),
    (lambda: ct.kernel(ct.jit(**WHAT)(unannotated)), r"another object of unannotated: write @ct.jit\(\.\.\.\) above"),
    (lambda: ct.jit(**WHAT)(body), "body has parameters as a kernel has them, and is none"),
    (lambda: ct.jit(**WHAT)(unannotated)(X), r"^unannotated\(x, y\) is a function that returns kernels, for ct.jit: "
                                             r"missing .*'y'. If it is a kernel itself, write @ct.kernel between"),
    (lambda: ct.kernel(ct.jit(ct.kernel(body), **WHAT)), "got body, a function made by ct.jit; its kernel is body.k"),
    (lambda: ct.jit(ct.Out("M")), r"takes outputs by name: ct.jit\(out=ct.Out\(...\), grid=...\)"),
    (lambda: ct.jit("M N"), r"takes what it is told by name: ct.jit\(grid='M N', out=...\)"),
    (lambda: ct.jit((3,)), r"ct.jit\(grid=\(3,\), out=...\)")])
def test_decorators_that_are_missing_or_in_another_order(wrong, message):
    with pytest.raises(TypeError, match=message):
        wrong()


@pytest.mark.parametrize("declare", [
    lambda: ct.jit(grids=1), lambda: ct.jit(ct.kernel(body), grid="M,"), lambda: ct.jit(grid="M*")(ct.kernel(body)),
    lambda: ct.Out("M", fill="0"), lambda: ct.Array["M,N"], lambda: ct.jit(ct.kernel(body), grid="M")(X[0], 3),
    lambda: ct.jit(ct.kernel(body), **WHAT)(), lambda: ct.jit(ct.kernel(body), **WHAT)(X, X),
    lambda: ct.jit(ct.kernel(body), **WHAT).compile(target="sm_90")])
def test_tracebacks_end_at_the_call(declare):
    with pytest.raises((TypeError, ValueError)) as e:
        declare()
    here = [t.name for t in e.traceback]
    assert here[1] == "<lambda>" and len(here) == 3, here  # this test, the call, and one frame of cutile


def test_a_function_made_already():
    with pytest.raises(TypeError, match="made by ct.jit already"):
        ct.jit(ct.jit(scaled_kernel, grid=(1,)))


def test_keywords_around_a_function_made_already():
    @ct.jit(grid=(1,))
    def make():
        return ct.jit(scaled_kernel, grid=(1,))

    with pytest.raises(TypeError, match="takes no keywords"):
        make()


@pytest.mark.parametrize("given, message", [
    ({"defaults": [3]}, "defaults of ct.jit is a dictionary by name, not"), ({"hints": 4}, "hints of ct.jit is a dict"),
    ({"checks": "no"}, "checks of ct.jit is True or False, not 'no'"), ({"name": 3}, "name of ct.jit is text, not 3"),
    ({"defaults": {"TILE": "N"}}, "`TILE` is int, not text: write a number, or a function of named sizes, such as"),
    ({"grid": lambda x: x.shape}, "the grid reads x, an array; grids and defaults follow from numbers and from sizes"),
    ({"grid": "K"}, r'K is no named size and no argument; .*annotations name sizes, such as x: ct.Array\["K"\]')])
def test_keywords_of_other_kinds(given, message):
    with pytest.raises(TypeError, match=message):
        ct.jit(softmax_kernel, **{**WHAT, **given})


def test_a_size_with_the_name_of_an_array():
    @ct.kernel
    def k(x: ct.Array["x N"], y):
        ct.store(y, (0, 0), ct.load(x, (0, 0), (1, 4)))

    with pytest.raises(TypeError, match="x is the size of `x` along axis 0, and the argument `x` is .*another name"):
        ct.jit(k, grid=(1,), out=ct.Out("x N"))(X)

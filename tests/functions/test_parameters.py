"""Parameters of functions: names, positions, defaults, and what calls leave out."""

import inspect
import re

import numpy as np
import pytest

import cutile as ct
from cutile.functions.entry import Tracer
from cutile.functions.tile_function import TileFunction, let_trace
from tests.functions import kernels
from tests.functions.kernels import LINE, X, scaled, scaled_kernel, softmax
from tests.functions.shows import shows


@shows("JIT-6.keyword", "JIT-6.default")
def test_keywords_and_defaults():
    want = LINE * 3
    for got in (scaled(LINE, 3.0), scaled(x=LINE, factor=3.0), scaled(LINE, factor=3.0, TILE=16), scaled(LINE, 3.0, 2)):
        assert np.array_equal(got, want)
    f = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), defaults={"factor": 2.0, "TILE": 8})
    assert np.array_equal(f(LINE), LINE * 2)


@shows("JIT-6.computed")
def test_computed_defaults():
    assert np.allclose(softmax(X), softmax(X, TILE=32), rtol=1e-6)
    f = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"),
               defaults={"TILE": lambda N, factor: 4 if factor > 2 else kernels.power_of_two(N)})
    assert np.array_equal(f(LINE, 3.0), LINE * 3) and np.array_equal(f(LINE, 1.0), LINE)


@shows("JIT-6.signature")
def test_signatures():
    assert str(inspect.signature(softmax)) == "(x, TILE=<computed>, *, out=None, stream=None)"
    assert str(inspect.signature(scaled)) == "(x, factor, TILE=4, *, out=None, stream=None)"


@pytest.fixture(params=[False, True], ids=["not traced", "traced"])
def tracer(request):
    """As it is without a compiler that traces Python, and as it is with one."""
    before = TileFunction._tracer
    let_trace(Tracer(lambda: False, lambda *a, **named: None, lambda f: None) if request.param else None)
    yield
    let_trace(before)


@shows("JIT-6.signature")
def test_help_shows_what_calls_take_and_return(tracer):
    import pydoc

    @ct.kernel
    def documented(x: ct.Array["M N", ct.float32], y, z):
        """Rows of x."""

    for f, takes, gives in [
            (softmax, "x (M N), TILE", "y (M N)"),
            (ct.jit(documented, grid="M", out=(ct.Out(like="x"), ct.Out(("M", 1), ct.int8))).inout("x"),
             "x (M N, float32)", "x, y (like x), z (M 1, int8)")]:
        shown = pydoc.plain(pydoc.render_doc(type(f)))
        assert f"Takes {takes}. Returns {gives}." in shown and str(inspect.signature(f)) in shown
        assert "object object at" not in shown and ("Rows of x." in shown) is (f is not softmax)
    assert "Takes x (M N), TILE. Returns y (M N)." in pydoc.plain(pydoc.render_doc(softmax))


@shows("JIT-6.count")
def test_counts():
    with pytest.raises(TypeError, match=r"scaled\(\) needs the argument `factor`$"):
        scaled(LINE)
    with pytest.raises(TypeError, match=r"takes 3 arguments \(`x`, `factor`, `TILE`\), got 4; `y` is an output, which "
                       "the call makes and returns; out= takes an array of yours instead$"):
        scaled(LINE, 1.0, 4, 5)
    for _ in range(2):
        for named, says in (({"y": LINE}, "; `y` is an output, which the call makes and returns; out= takes an array "
                                          "of yours instead"),
                            ({"TILES": 4}, "; did you mean TILE?"), ({"strem": None}, "; did you mean stream?"),
                            ({"block": 4}, "; it takes x, factor, TILE, out, stream")):
            (name,) = named
            with pytest.raises(TypeError, match=re.escape(f"scaled() got an unexpected keyword argument {name!r}{says}")
                               + "$"):
                scaled(LINE, 1.0, **named)
        scaled(LINE, 1.0)  # so that C code knows the call


def test_a_constant_that_a_call_leaves_out():
    @ct.kernel
    def k(x: ct.Array["M N"], T: ct.Constant[int], y, w):
        ct.store(y, (0, 0), ct.load(x, (0, 0), (1, T)) * ct.load(w, 0, 1))

    f = ct.jit(k, grid=(1,), out=ct.Out("M N", name="y"), name="scaled")
    one = np.ones(1, np.float32)
    for out in (None, np.empty_like(X)):
        for _ in range(2):
            with pytest.raises(TypeError, match=r'scaled\(\) needs the argument `T`, .* defaults={"T": lambda N: '):
                f(X, w=one, out=out)
            with pytest.raises(TypeError, match=r"scaled\(\) needs the argument `w`$"):
                f(X, 4, out=out)
            with pytest.raises(TypeError, match=r"scaled\(\) needs the arguments `T` and `w`$"):
                f(X, out=out)
            assert f(X, 4, one, out=out)[0, 3] == X[0, 3]
    with pytest.raises(TypeError, match=r"scaled\(\) needs the arguments `x` and `w`$"):
        f(T=4)


@shows("JIT-6.order")
def test_a_default_before_a_required_parameter():
    @ct.kernel
    def k(n: ct.Constant[int], x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 4) + n)

    f = ct.jit(k, grid=(1,), out=ct.Out("N"), defaults={"n": 1})
    assert str(inspect.signature(f)) == "(x, *, n=1, out=None, stream=None)"
    assert np.array_equal(f(LINE[:4]), LINE[:4] + 1) and np.array_equal(f(LINE[:4], n=5), LINE[:4] + 5)


def test_names_of_parameters_that_are_keywords():
    @ct.kernel
    def k(x, stream):
        pass

    with pytest.raises(TypeError, match="parameter `stream` of the kernel has the name of a keyword"):
        ct.jit(k, grid=(1,))


def test_an_output_may_be_called_out():
    @ct.kernel
    def k(x: ct.Array["N"], out):
        ct.store(out, 0, ct.load(x, 0, 4))

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    o = np.zeros(4, np.float32)
    assert np.array_equal(f(LINE[:4]), LINE[:4]) and f(LINE[:4], out=o) is o and np.array_equal(o, LINE[:4])

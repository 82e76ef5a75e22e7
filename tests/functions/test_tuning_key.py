"""Which calls share a search, and which results kept on disk are those of a function."""

import functools

import numpy as np
import pytest

import cutile as ct
from cutile.functions.tuning_key import _text
from tests.functions.kernels import scaled_kernel
from tests.functions.shows import shows
from tests.functions.tuning import TILES, X, changes, factory, reference, searches, tuned

pytestmark = pytest.mark.usefixtures("own_cache")


@shows("TUN-3.key")
def test_keys(times):
    f = tuned(key=["N"])
    assert searches(f, X, 1.0) and searches(f, X[:99], 1.0) and not searches(f, X[1:], 2.0)


@pytest.mark.parametrize("name, words", [
    ("n", "key `n` is no named size and no argument; there are N, factor"),
    ("factr", "did you mean factor"), ("TILE", "there are N, factor$"),
    ("x", "key `x` is an array; a key is a named size")])
def test_keys_that_are_none(name, words):
    with pytest.raises(ValueError, match=words):
        tuned(key=["N", name])


def test_keys_that_calls_show_to_be_none():
    @ct.kernel
    def k(x, scale, y, TILE: ct.Constant[int]):
        i = ct.bid(0)
        ct.store(y, i, ct.load(x, i, TILE) * scale)

    f = ct.autotune(TILES, quiet=True, timeout_s=None, key=["x"])(
        ct.jit(k, grid=(1,), out=ct.Out(like="x")))
    with pytest.raises(ValueError, match="key `x` is an array"):
        f(X, 2.0)
    f = ct.autotune([{"tile": 4}], quiet=True, timeout_s=None, key=["M"])(ct.jit(factory, grid="cdiv(N, 4)",
                                                                              out=ct.Out("N")))
    with pytest.raises(ValueError, match="key `M` is no named size and no argument that is given; there are N"):
        f(X)


def test_functions_as_text():
    """What a key has of a function is the same in each process, and differs where the function does."""
    class Callable:
        def __call__(self, x):
            return x

    made = [eval(text) for text in ("lambda x: x + 1", "lambda x: x + 2", "lambda x: (lambda y: y - 1)(x)",
                                    "lambda x: (lambda y: y - 2)(x)")]
    texts = [_text(f) for f in (*made, np.exp, np.log, functools.partial(reference, factor=2),
                                functools.partial(reference, factor=3), reference, changes, Callable())]
    assert len(set(texts)) == len(texts) and not any("0x" in t for t in texts)
    assert _text({"a": [1, "b"], "c": (None, 2.0)}) == "{a: (1, 'b'), c: (None, 2.0)}"


@shows("TUN-7.content")
def test_other_declarations_search_again(times):
    """Grid, outputs and defaults decide what a launch does, as the kernel does."""
    def made(grid="cdiv(N, TILE)", **out):
        f = ct.jit(scaled_kernel, grid=grid, out=ct.Out("N", name="y", **out), defaults={"factor": lambda N: N * 1.0},
                   name="scaled")
        return ct.autotune(TILES, quiet=True, timeout_s=None)(f)

    made()(X)
    for again, f in ((False, made()), (True, made(fill=0)), (True, made(lambda N, TILE: (ct.cdiv(N, TILE),)))):
        count = len(times["tried"])
        f(X)
        assert (len(times["tried"]) > count) is again

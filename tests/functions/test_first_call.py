"""Outputs that calls make or are given, arguments that they return, and what they warn of."""

import warnings

import numpy as np
import pytest

import cutile as ct
from tests.functions.kernels import LINE, X, scaled, softmax, softmax_kernel
from tests.functions.shows import shows


@shows("JIT-10.out", "JIT-10.code")
def test_the_array_for_an_output():
    before = len(softmax_kernel._programs)
    want = softmax(X)
    programs = len(softmax_kernel._programs)
    for o in (np.zeros_like(X), np.zeros_like(X), np.zeros((5, 24), np.float32)[:, ::2]):
        assert softmax(X, out=o) is o and np.array_equal(o, want)
    assert len(softmax_kernel._programs) == programs >= before


W = X[:3, :4].copy()


@ct.kernel
def total(x: ct.Array["M N"], y, z, TILE: ct.Constant[int] = 4):
    t = ct.load(x, (ct.bid(0), 0), (1, TILE))
    ct.atomic_add(y, ct.arange(TILE, dtype=ct.int32), t.reshape((TILE,)))
    ct.store(z, ct.bid(0), ct.sum(t, axis=1))


@shows("JIT-7.fill", "JIT-10.out")
def test_an_array_that_is_given_is_filled(monkeypatch):
    f = ct.jit(total, grid="M", out=(ct.Out("N", fill=0), ct.Out("M")))
    y, z = np.full(4, 7, np.float32), np.full(3, 7, np.float32)
    wanted, others = (W.sum(axis=0), W.sum(axis=1)), (y[::-1], z)
    for out in ((y, z), (y, z), others, others, [y, z]):
        got = f(W, out=out)
        assert got[0] is out[0] and np.array_equal(got[0], wanted[0]) and np.array_equal(got[1], wanted[1])
    monkeypatch.setattr(type(f), "slow", None)
    f(W, out=(y, z))
    f(W, out=(y, z))
    assert np.array_equal(y, wanted[0])


@shows("JIT-7.fill")
def test_an_array_that_is_given_stays_without_a_fill():
    f = ct.jit(total, grid="M", out=(ct.Out("N"), ct.Out("M")))
    y, z = np.ones(4, np.float32), np.ones(3, np.float32)
    for n in range(1, 4):
        f(W, out=(y, z))
        assert np.allclose(y, 1 + n * W.sum(axis=0))


@shows("JIT-7.fill", "JIT-13.grid")
def test_filled_where_nothing_is_launched():
    f = ct.jit(total, grid=(0,), out=(ct.Out("N", fill=3), ct.Out("M")))
    assert f(W, out=(np.ones(4, np.float32), np.ones(3, np.float32)))[0].tolist() == [3] * 4


@shows("JIT-7.fill", "JIT-12.same")
def test_an_argument_is_not_filled():
    @ct.kernel
    def k(x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 4))

    f, x = ct.jit(k, grid=(1,), out=ct.Out("N", fill=0)), W[0].copy()
    f(x, out=np.empty_like(x))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"out= is the array that `x` is, too, and output `y` is filled with 0"):
            f(x, out=x)
    assert np.array_equal(x, W[0])


@shows("JIT-10.several")
def test_several_outputs():
    @ct.kernel
    def k(x: ct.Array["N"], y, z):
        t = ct.load(x, 0, 4)
        ct.store(y, 0, t + 1)
        ct.store(z, 0, (t + 2).astype(ct.int32))

    f = ct.jit(k, grid=(1,), out=(ct.Out("N"), ct.Out("N", ct.int32)))
    o = np.zeros(4, np.float32), np.zeros(4, np.int32)
    for _ in range(2):
        got = f(LINE[:4], out=o)
        assert type(got) is tuple and got[0] is o[0] and got[1] is o[1] and o[1].tolist() == [2, 3, 4, 5]
    for wrong in (o[0], (o[0],), (*o, o[0])):
        with pytest.raises(TypeError, match="out= takes a tuple of 2 arrays, for `y`, `z`"):
            f(LINE[:4], out=wrong)


@shows("JIT-10.checked", "JIT-16.before")
def test_arrays_for_outputs_are_checked(monkeypatch):
    read_only = np.zeros_like(X)
    read_only.flags.writeable = False
    softmax(X, out=np.zeros_like(X))
    for wrong, error, message in ((np.zeros((5, 11), np.float32), ValueError, "have the shape (5, 12), got (5, 11)"),
                                  (np.zeros(60, np.float32), ValueError, "must have the shape (5, 12), got (60,)"),
                                  (np.zeros((5, 12)), TypeError, "must have dtype float32, got float64"),
                                  (read_only, ValueError, "is read-only"),
                                  (3, TypeError, "out= must give an array for `y`, got the number 3; without out=")):
        with pytest.raises(error) as e:
            softmax(X, out=wrong)
        assert message in str(e.value) and "`y`" in str(e.value)
    from cutile.functions import libraries

    def never(*args):
        raise AssertionError("allocated")

    monkeypatch.setattr(libraries._NumPy, "maker", never)
    with pytest.raises(AssertionError, match="allocated"):
        ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"), defaults={"TILE": 16})(X)
    fresh = ct.jit(softmax_kernel, grid="M+1", out=ct.Out("M N"), defaults={"TILE": 16})
    with pytest.raises(TypeError, match="must be an array"):
        fresh(3)
    with pytest.raises(ValueError, match="must have 2 axes"):
        fresh(LINE)
    with pytest.raises(ValueError, match="the grid"):
        ct.jit(softmax_kernel, grid="M-6", out=ct.Out("M N"), defaults={"TILE": 16})(X)


@shows("JIT-11.returns")
def test_no_outputs():
    @ct.kernel
    def k(x):
        ct.store(x, 0, 7)

    x = np.zeros(1, np.int32)
    f = ct.jit(k, grid=(1,))
    assert f(x) is None and f(x, stream=None) is None and x[0] == 7
    assert not isinstance(scaled(LINE, 1.0), tuple)


@shows("JIT-11.empty")
def test_without_arguments():
    ran = []

    @ct.kernel
    def k():
        ct.static_eval(ran.append(1))

    f = ct.jit(k, grid=(1,))
    assert f() is None and f() is None and ran


@shows("JIT-12.inout")
def test_arguments_that_are_written():
    @ct.kernel
    def k(y, x: ct.Array["N"], z):
        t = ct.load(x, 0, 4)
        ct.store(x, 0, t + 1)
        ct.store(y, 0, t)
        ct.store(z, 0, t * 2)

    f = ct.jit(k, grid=(1,), out=(ct.Out("N", name="y"), ct.Out("N", name="z"))).inout("x")
    x = np.arange(4, dtype=np.float32)
    for step in range(2):
        y, same, z = f(x)
        assert same is x and x[0] == step + 1 and y[0] == step and z[0] == 2 * step
    with pytest.raises(TypeError, match="w is no array that callers pass"):
        f.inout("w")


@shows("JIT-13.grid", "JIT-13.outputs")
def test_nothing_is_launched_over_nothing():
    ran = []

    @ct.kernel
    def k(x: ct.Array["M N"], y):
        ct.static_eval(ran.append(1))
        ct.store(y, (0, 0), ct.load(x, (0, 0), (1, 1)))

    assert ct.jit(k, grid="M", out=ct.Out("N 1"))(np.zeros((0, 3), np.float32)).shape == (3, 1)
    assert ct.jit(k, grid="M", out=ct.Out("M N"))(np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert ct.jit(k, grid=lambda M, N: (M // N,), out=ct.Out("M N"))(np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert not ran
    ct.jit(k, grid="M", out=ct.Out("M N"))(np.zeros((1, 1), np.float32))
    assert ran


@shows("JIT-22.warning")
def test_many_forms():
    @ct.kernel
    def k(x: ct.Array["M"], y, n: ct.Constant[int], m: ct.Constant[int]):
        ct.store(y, 0, n + m)

    f = ct.jit(k, grid=(1,), out=ct.Out("1"))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in range(12):
            f(LINE, n, n % 2)
    assert len(seen) == 1 and "`n`" in str(seen[0].message) and "for 9 values" in str(seen[0].message)
    assert seen[0].filename == __file__

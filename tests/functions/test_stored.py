"""Outputs that are not what the kernel stores to."""

import numpy as np
import pytest

import cutile as ct
from tests.functions.shows import shows


@ct.kernel
def copy(y: ct.Array["N"], x: ct.Array["N"]):
    ct.store(y, 0, ct.load(x, 0, 4))


@ct.kernel
def count(y, x: ct.Array["N"], WAY: ct.Constant[int] = 0):
    t = ct.load(x, 0, 4)
    if WAY == 0:
        ct.atomic_add(y, ct.arange(4, dtype=ct.int32), t)
    elif WAY == 1:
        ct.store(y.slice(0, 0, 2), 0, ct.extract(t, 0, 2))
    else:
        ct.store(x, 0, t)


@ct.kernel
def split(y, x: ct.Array["N"], z):
    t = ct.load(x, 0, 4)
    ct.store(y, 0, t)
    ct.store(z, 0, t)


@ct.kernel
def listed(ys, x: ct.Array["N"]):
    ct.store(ys[1], 0, ct.load(x, 0, 4))


def x_and_copy():
    return np.arange(4, dtype=np.float32), np.arange(4, dtype=np.float32)


def refused(f, *args, **named):
    with pytest.raises(ct.TileTypeError, match="which callers pass, and not to") as caught:
        f(*args, **named)
    return caught.value


@shows("JIT-7.stored")
@pytest.mark.parametrize("f, named", [
    (ct.jit(copy, grid=(1,), out=ct.Out("N")), {}),
    (ct.jit(copy, grid=(1,), out=ct.Out("N", name="x")), {}),
    (ct.jit(copy, grid=(1,), out=ct.Out("N", fill=0)), {}),
    (ct.jit(copy, grid=lambda N: (N // N,), out=ct.Out("N"), hints={"occupancy": 2}), {}),
    (ct.jit(count, grid=(1,), out=ct.Out((4,))), {}),
    (ct.jit(count, grid=(1,), out=ct.Out((4,))), {"WAY": 1}),
    (ct.jit(split, grid=(1,), out=(ct.Out((4,)), ct.Out((4,)))), {})])
def test_an_argument_is_not_overwritten(f, named):
    x, before = x_and_copy()
    for _ in range(2):
        e = refused(f, x, **named)
        assert np.array_equal(x, before)
        assert "(y" in e.loc.source_line() and '"y"' in e.help and "`x`" in e.message and "`y`" in e.message
        assert ("outputs without a name" in e.help) == (f.outputs[0].out.name is None)
    with ct.sanitize("all"):
        refused(f, x, **named)
    refused(f, x, out=x.copy() if len(f.outputs) == 1 else (x.copy(), x.copy()), **named)


def test_items_of_a_list():
    x, before = x_and_copy()
    f = ct.jit(listed, grid=(1,), out=ct.Out((4,)))
    assert "`ys`" in refused(f, [x, x]).message and np.array_equal(x, before)


def test_constants_decide_for_each_call():
    x, before = x_and_copy()
    f = ct.jit(count, grid=(1,), out=ct.Out((4,)))
    assert f(x, WAY=2) is not None  # stores to the output alone
    refused(f, x, WAY=0)
    assert np.array_equal(x, before)


def test_what_is_declared_rightly():
    x, before = x_and_copy()
    assert np.array_equal(ct.jit(copy, grid=(1,), out=ct.Out("N", name="y"))(x), before)
    y, z = ct.jit(split, grid=(1,), out=(ct.Out("N", name="y"), ct.Out("N")))(x)
    assert np.array_equal(y, before) and np.array_equal(z, before)


def test_arguments_that_calls_are_meant_to_change():
    x, _ = x_and_copy()
    y = np.zeros(4, np.float32)
    f = ct.jit(split, grid=(1,), out=ct.Out("N"))  # also writes y
    assert np.array_equal(f(y, x), x) and np.array_equal(y, x)
    same, _ = ct.jit(copy, grid=(1,), out=ct.Out((4,))).inout("y")(x)
    assert same is x


def test_an_output_that_constants_switch_off():
    @ct.kernel
    def k(x: ct.Array["N"], counter, y, mean, MEAN: ct.Constant[bool]):
        t = ct.load(x, 0, 4)
        ct.store(y, 0, t)
        ct.atomic_add(counter, 0, 1)
        if MEAN:
            ct.store(mean, 0, ct.sum(t) / 4)

    f = ct.jit(k, grid=(1,), out=(ct.Out("N", name="y"), ct.Out("1", name="mean")))
    counter = np.zeros(1, np.int32)
    assert f(x_and_copy()[0], counter, True)[1] == 1.5 and np.isnan(f(x_and_copy()[0], counter, False)[1])
    assert counter[0] == 2


def test_what_the_launch_refuses_is_left_to_it():
    f = ct.jit(split, grid=(1,), out=ct.Out("N"))
    with pytest.raises(ct.TileTypeError, match=r"^Invalid argument .* of store\(\)"):
        f(np.zeros((4, 4), np.float32), x_and_copy()[0])


def test_compiled_functions():
    f = ct.jit(copy, grid=(1,), out=ct.Out((4,), ct.float32))
    refused(lambda: f.compile(ct.ArraySpec("N", ct.float32), target="sm_90"))


def test_an_input_called_out():
    @ct.kernel
    def k(out, x: ct.Array["N"]):
        ct.store(out, 0, ct.load(x, 0, 4))

    with pytest.raises(TypeError, match=r'is no output: that is `x`, .*ct\.Out\(\.\.\., name="out"\)'):
        ct.jit(k, grid=(1,), out=ct.Out("N"))
    with pytest.raises(TypeError, match="keyword of its function; rename it"):
        ct.jit(k, grid=(1,), out=ct.Out("N", name="x"))


@pytest.mark.parametrize("grid, defaults", [("N", {}), (lambda N: (N,), {}), ((1,), {"T": lambda N: N})])
def test_sizes_that_only_the_output_has(grid, defaults):
    @ct.kernel
    def k(y, x: ct.Array["N"], T: ct.Constant[int] = 4):
        ct.store(y, 0, ct.load(x, 0, T))

    f = ct.jit(k, grid=grid, out=ct.Out((4,)), defaults=defaults)
    with pytest.raises((TypeError, ValueError), match=r"reads N, a size of `x`, which is the output and not there"):
        f(np.zeros(4, np.float32))

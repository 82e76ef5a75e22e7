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


@ct.kernel
def reads(y, x: ct.Array["N"], SUM: ct.Constant[bool] = False):
    t = ct.load(x, index=0, shape=4) + ct.gather(x, 0)
    if SUM:
        ct.atomic_add(y, 0, ct.sum(t))
    else:
        ct.store(y, 0, t + x.shape[0])


@ct.kernel
def may_store(x: ct.Array["N"], BACK: ct.Constant[bool] = False):
    t = ct.load(x, 0, 4)
    if BACK:
        ct.store(x, 0, 2 * t)


@shows("JIT-12.inout")
def test_an_argument_that_is_only_read_is_not_written():
    x, before = x_and_copy()
    f = ct.jit(reads, grid=(1,), out=ct.Out("N", name="y")).inout("x")
    for _ in range(2):
        with pytest.raises(ct.TileTypeError, match=r'stores to `x`, which reads.inout\("x"\) says') as caught:
            f(x)
        assert "leave out inout" in caught.value.help and "def reads" in str(caught.value)
    g = ct.jit(may_store, grid=(1,)).inout("x")
    assert g(x) is x and np.array_equal(x, before)  # constants may switch a store off
    assert g(x, BACK=True) is x and np.array_equal(x, 2 * before)


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
    same, _ = ct.jit(split, grid=(1,), out=ct.Out("N")).inout("y")(y, x)
    assert same is y


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
    f = ct.jit(copy, grid=(1,), out=ct.Out("N", ct.float32))
    refused(lambda: f.compile(ct.ArraySpec("N", ct.float32), target="sm_90"))


@pytest.mark.parametrize("grid, defaults", [("N", {}), (lambda N: (N,), {}), ((1,), {"T": lambda N: N})])
def test_sizes_that_only_the_output_has(grid, defaults):
    @ct.kernel
    def k(y, x: ct.Array["N"], T: ct.Constant[int] = 4):
        ct.store(y, 0, ct.load(x, 0, T))

    with pytest.raises(TypeError, match=r"reads N, a size of `x`, which is the output and not there yet; outputs .* "
                                        r"into the annotation of an argument \(`y`\)$"):
        ct.jit(k, grid=grid, out=ct.Out((4,)), defaults=defaults)
    with pytest.raises(TypeError, match=r"is the output and not there yet; write N into the annotation"):
        ct.jit(k, grid=grid, out=ct.Out((4,), name="x"), defaults=defaults)


# ------------------------------------------------------------------ outputs that nothing is stored to


@ct.kernel
def forgets(x: ct.Array["N"], y):
    ct.load(x, 0, 4) * 2


@ct.kernel
def renames(x: ct.Array["N"], y):
    t = ct.load(x, 0, 4)
    y = t * 2  # noqa: F841 - what it is about


@ct.kernel
def only_reads(x: ct.Array["N"], y, WAY: ct.Constant[int] = 0):
    t = ct.load(x, 0, 4).astype(y.dtype)
    if WAY:
        ct.store(y, 0, t)


@ct.kernel
def forgets_one(x: ct.Array["N"], y, z):
    ct.store(y, 0, ct.load(x, 0, 4))


def never(f, *args, **named):
    with pytest.raises(ct.TileTypeError, match="the output of") as caught:
        f(*args, **named)
    return caught.value


@shows("JIT-7.never")
@pytest.mark.parametrize("kernel, out, line", [
    (forgets, ct.Out("N"), "def forgets"), (forgets, ct.Out("N", name="y"), "def forgets"),
    (forgets, ct.Out("N", fill=0), "def forgets"), (renames, ct.Out("N"), "y = t * 2"),
    (only_reads, ct.Out("N"), "ct.store(y, 0, t)"), (forgets_one, (ct.Out("N"), ct.Out("1")), "def forgets_one"),
    (forgets_one, (ct.Out("N"), ct.Out("1", fill=0, name="z")), "def forgets_one")])
def test_an_output_that_is_never_stored(kernel, out, line):
    f = ct.jit(kernel, grid=(1,), out=out)
    for _ in range(2):
        e = never(f, x_and_copy()[0])
        assert line in e.loc.source_line()
        missed = "z" if kernel is forgets_one else "y"
        assert f"`{missed}`, the output of {kernel.__name__}" in e.message
        assert f"ct.store({missed}, index, tile)" in e.help
    with pytest.raises(ct.TileTypeError, match="the output of") as compiled:
        f.compile(ct.ArraySpec("N", ct.float32), target="sm_90")
    assert compiled.value.message == e.message


def test_what_is_said_of_an_output_that_constants_switch_off():
    f = ct.jit(only_reads, grid=(1,), out=ct.Out("N"))
    x, _ = x_and_copy()
    e = never(f, x)
    assert e.message == "with WAY = 0 the kernel never stores to `y`, the output of only_reads"
    assert e.help.endswith("or say what it holds then: ct.Out(..., fill=0)")
    assert np.array_equal(f(x, WAY=1)[:4], x[:4])
    assert not ct.jit(only_reads, grid=(1,), out=ct.Out("N", fill=0))(x).any()


def test_an_output_that_constants_let_be_stored():
    f = ct.jit(only_reads, grid=(1,), out=ct.Out("N"))
    x, before = x_and_copy()
    assert np.array_equal(f(x, WAY=1), before)
    never(f, x, WAY=0)
    filled = ct.jit(only_reads, grid=(1,), out=ct.Out("N", fill=3))
    assert np.array_equal(filled(x, WAY=0), np.full(4, 3, np.float32))


# ------------------------------------------------------------------ arrays that are given for outputs


@shows("JIT-12.same")
def test_an_argument_given_as_the_output():
    f = ct.jit(split, grid=(1,), out=(ct.Out("N", name="y"), ct.Out("N", name="z")))
    x, before = x_and_copy()
    y, z = np.zeros_like(x), np.zeros_like(x)
    for _ in range(3):
        f(x, out=(y, z))
    with pytest.warns(UserWarning, match=r'^split\(\): out= is the array that `x` is, too. The kernel writes to it as '
                                         r'`z` .*inout\("x"\) says so$') as seen:
        assert f(x, out=(y, x))[1] is x
    assert [w.filename for w in seen] == [__file__]
    assert np.array_equal(f(x, out=(y, x))[1], before)  # a warning once
    for wrong in [(y, y), (x, x)]:
        with pytest.raises(ValueError, match="out= gives one array for `y` and for `z`; each output needs an array"):
            f(x, out=wrong)


# ------------------------------------------------------------------ outputs that are only updated


@ct.kernel
def counts(x: ct.Array["N"], y, WAY: ct.Constant[int] = 0):
    if WAY == 1:
        ct.store(y, 0, 0)
    if WAY == 2:
        ct.atomic_xchg(y, 0, 5)
    ct.atomic_add(y, 0, ct.sum(ct.load(x, 0, 4).astype(ct.int32)))


@shows("JIT-7.updated")
def test_an_output_that_begins_undetermined():
    x, _ = x_and_copy()
    f = ct.jit(counts, grid=(1,), out=ct.Out("1", ct.int32))
    for _ in range(2):
        with pytest.raises(ct.TileTypeError, match=r"^atomic_add\(\) updates `y`, an output of counts, whose elements "
                                                   r"are undetermined before") as e:
            f(x)
        assert "ct.atomic_add" in e.value.loc.source_line() and "fill=0" in e.value.help
    assert f(x, out=np.array([3], np.int32)) == 9
    assert f(x, WAY=1) == 6 and f(x, WAY=2) == 11
    assert ct.jit(counts, grid=(1,), out=ct.Out("1", ct.int32, fill=1))(x) == 7

"""ct.launch: what the host passes [LAUNCH-*]."""

import numpy as np
import pytest

import cutile as ct


@ct.kernel
def mark(x):
    i = ct.bid(0) + ct.num_blocks(0) * (ct.bid(1) + ct.num_blocks(1) * ct.bid(2))
    ct.scatter(x, i, ct.gather(x, i) + 1)


@ct.kernel
def nothing():
    pass


@pytest.mark.parametrize("grid", [(), (1,), (5,), (2, 3), (2, 3, 4), (1, 1, 7), (np.int64(3),), (0,), (3, 0, 2)])
def test_grids(grid):  # LAUNCH-3, MACH-3, D-75
    x = np.zeros(32, np.int32)
    ct.launch(None, grid, mark, (x,))
    n = int(np.prod(grid)) if grid else 1
    assert x.tolist() == [1] * n + [0] * (32 - n)


@pytest.mark.parametrize(
    "grid,cls,says",
    [
        (5, TypeError, "write (5,)"),
        ([5], TypeError, "got list"),
        (None, TypeError, "tuple of at most three ints"),
        ((1, 1, 1, 1), ValueError, "at most three dimensions, got 4"),
        ((1.0,), TypeError, "ct.cdiv"),
        ((True,), TypeError, "must be ints"),
        (("1",), TypeError, "must be ints"),
        ((-1,), OverflowError, "must not be negative, got -1"),
        ((2, -3), OverflowError, "-3"),
        ((2**24,), ValueError, "at most 16777215"),
    ],
)
def test_wrong_grids(grid, cls, says):  # LAUNCH-3
    with pytest.raises(cls) as e:
        ct.launch(None, grid, nothing, ())
    assert type(e.value) is cls and says in str(e.value)


def plain(x):
    pass


@pytest.mark.parametrize(
    "kernel,args,says",
    [
        (plain, (), "plain is a plain function, not a kernel: decorate it with @ct.kernel"),
        (3, (), "must be a kernel, got int"),
        (nothing, [], "kernel_args must be a tuple, got list"),
        (nothing, 3, "a tuple of one argument is written (x,)"),
        (nothing, (1,), "expects 0 argument(s) (), got 1"),
        (mark, (), "expects 1 argument(s) (x), got 0"),
    ],
)
def test_wrong_kernels_and_arguments(kernel, args, says):  # LAUNCH-4
    with pytest.raises(TypeError) as e:
        ct.launch(None, (1,), kernel, args)
    assert says in str(e.value)


def test_other_parameters():  # LAUNCH-1, LAUNCH-4
    for flag in (True, False):
        assert ct.launch(object(), (1,), nothing, (), programmatic_dependent_launch=flag) is None
    for flag in (1, None, "yes"):
        with pytest.raises(TypeError, match="must be a bool"):
            ct.launch(0, (1,), nothing, (), programmatic_dependent_launch=flag)
    with pytest.raises(TypeError):
        ct.launch(stream=None, grid=(1,), kernel=nothing, kernel_args=())


def test_errors_of_arguments_name_the_parameter():
    with pytest.raises(TypeError, match=r"Invalid kernel argument #0 \(`x`\)"):
        ct.launch(None, (1,), mark, ({},))


def test_read_only_arrays():
    x = np.zeros(4, np.int32)
    x.flags.writeable = False
    with pytest.raises(TypeError, match="`x`.*read-only"):
        ct.launch(None, (1,), mark, (x,))

    @ct.kernel
    def copy(x, y):
        ct.store(y, 0, ct.load(x, 0, (4,)))

    y = np.ones(4, np.int32)
    ct.launch(None, (1,), copy, (x, y))
    assert y.tolist() == [0] * 4


def test_compile_errors_come_out_of_launch():  # LAUNCH-6
    with pytest.raises(ct.TileTypeError, match="has no attribute `nope`"):
        ct.launch(None, (1,), ct.kernel(lambda x: x.nope), (np.zeros(1, np.int32),))


def test_empty_arrays_do_nothing():
    @ct.kernel
    def copy(x, y):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), (4,), padding_mode="ZERO"))

    ct.launch(None, (0,), copy, (np.zeros(0, np.float32), np.zeros(0, np.float32)))

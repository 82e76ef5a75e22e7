"""ct.launch: what the host passes [LAUNCH-*]."""

import inspect
import traceback
from pathlib import Path

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.runtime import launch
from cutile.runtime.launch import padded_grid

PACKAGE = Path(ct.__file__).parent


class Number:
    """What stands for an int, and can do nothing else."""

    def __init__(self, n: int):
        self.n = n

    def __index__(self) -> int:
        return self.n


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
        (lambda meta: (4,), TypeError, "got function; compute the tuple before the launch, such as (ct.cdiv(n, "),
        ((1, 1, 1, 1), ValueError, "at most three dimensions, got 4"),
        ((1.0,), TypeError, "ct.cdiv"),
        ((True,), TypeError, "must be ints"),
        (("1",), TypeError, "must be ints"),
        ((-1,), OverflowError, "must not be negative, got -1"),
        ((2, -3), OverflowError, "-3"),
        ((2**24,), ValueError, "at most 16777215"),
        ((np.array([2, 3]),), TypeError, "must be ints, got array([2, 3])"),
        ((np.float32(2),), TypeError, "must be ints"),
        ((Number(-1),), OverflowError, "must not be negative, got -1"),
        ((1, Number(2**24)), ValueError, "at most 16777215, got 16777216"),
    ],
)
def test_wrong_grids(grid, cls, says):  # LAUNCH-3
    with pytest.raises(cls) as e:
        ct.launch(None, grid, nothing, ())
    assert type(e.value) is cls and says in str(e.value)


@pytest.mark.parametrize("number", [np.int8(3), np.array(3), Number(3)])
def test_whatever_stands_for_an_int_may_be_in_a_grid(number):  # LAUNCH-3
    assert padded_grid((number,)) == (3, 1, 1) and padded_grid((2, number)) == (2, 3, 1)
    assert {type(n) for n in padded_grid((1, 2, number))} == {int}


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
    x = np.zeros(32, np.int32)
    for flag in (True, False):
        assert ct.launch(None, (1,), mark, (x,), programmatic_dependent_launch=flag) is None
    with pytest.raises(TypeError, match="an object of type object is no stream"):
        ct.launch(object(), (1,), mark, (x,))
    for flag in (1, None, "yes"):
        with pytest.raises(TypeError, match="must be a bool"):
            ct.launch(None, (1,), nothing, (), programmatic_dependent_launch=flag)
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


@ct.kernel
def untyped(x):
    ct.load(x, 0, 3)


@ct.kernel
def raising(x):
    ct.static_eval({}["key"])


@ct.kernel
def asserting(x):
    ct.assert_(ct.load(x, 0, 4) < 0, "no")


def own_frames(e):
    return [f for f in traceback.extract_tb(e.__traceback__) if Path(f.filename).is_relative_to(PACKAGE)]


@pytest.mark.parametrize("kernel", [untyped, raising, asserting], ids=lambda k: k.__name__)
@pytest.mark.parametrize("schedule", ["batch", "block"])
def test_a_traceback_shows_the_users_frames(kernel, schedule):
    def launch():
        with pytest.raises(ct.TileError) as found:
            ct.launch(None, (1,), kernel, (np.zeros(4, np.float32),))
        return found.value

    with settings.override(SCHEDULE=schedule):
        e = launch()
        assert [f.name for f in own_frames(e)] == ["launch"]
        assert e.__cause__ is None or not own_frames(e.__cause__)
        assert "launch" in [f.name for f in traceback.extract_tb(e.__traceback__) if f.filename == __file__]
        assert e.loc.function == kernel.__name__
        with settings.override(DEBUG=1):
            assert len(own_frames(launch())) > 1


def test_a_misspelt_setting_is_told_once(monkeypatch):
    monkeypatch.setenv("CUTILE_SHEDULE", "block")
    launch._warn_of_misspelt_settings.cache_clear()
    says = "CUTILE_SHEDULE is no setting of cutile; did you mean CUTILE_SCHEDULE?"
    with pytest.warns(UserWarning, match=says) as told:
        for _ in range(2):
            ct.launch(None, (1,), ct.kernel(nothing.function), ())
    assert len(told) == 1 and told[0].filename == __file__


@pytest.mark.parametrize("args, grid", [
    (([1.0],), (1,)), ((1, 2, 3), (1,)), ((np.zeros(4, complex),), (1,)), ((None,), (1,)), ((1 << 40,), (1,)),
    (([],), (1,)), ((np.broadcast_to(np.float32(1), 4),), (1,)), (((1,) * 3,), (1,)), ((np.zeros(4),), (1.5,)),
    ((np.zeros(4),), (-1,)), ((np.zeros(4),), [1]), ([np.zeros(4)], (1,))])
def test_a_traceback_of_what_is_refused_shows_the_users_frames(args, grid):
    @ct.kernel
    def k(x):
        ct.store(x, 0, 1)

    with pytest.raises((TypeError, ValueError, OverflowError, ct.TileError)) as found:
        ct.launch(None, grid, k, args)
    assert [f.name for f in own_frames(found.value)] == ["launch"]
    with settings.override(DEBUG=1), pytest.raises(Exception) as found:
        ct.launch(None, grid, k, args)
    assert own_frames(found.value)


def test_a_launch_without_a_stream():
    with pytest.raises(TypeError, match=r"launch\(\) takes the stream first.*ct\.launch\(None, grid, nothing"):
        ct.launch((1,), nothing, ())
    with pytest.raises(TypeError, match="takes four arguments"):
        ct.launch(None, (1,), nothing)
    assert all(p.default is p.empty for n, p in inspect.signature(ct.launch).parameters.items() if n == "kernel_args")

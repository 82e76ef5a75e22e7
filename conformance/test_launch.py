"""ct.launch."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, fails, impl, launch, named, needs, refuses, run


@ct.kernel
def mark(out):
    ct.store(out, (ct.bid(0), ct.bid(1), ct.bid(2)), 1)


@ct.kernel
def nothing():
    pass


@ct.kernel
def two(x, y):
    pass


def fresh():
    return np.zeros((3, 2, 2), np.int32)


@clause("LAUNCH-1.positional")
def test_positional_only():
    for name in ("stream", "grid", "kernel", "kernel_args"):
        given = {"stream": impl.stream(), "grid": (1,), "kernel": nothing, "kernel_args": ()}
        with pytest.raises((TypeError, RuntimeError)):
            ct.launch(**{name: given[name]})
    with pytest.raises((TypeError, RuntimeError)):
        ct.launch(impl.stream(), (1,), nothing, kernel_args=())


@clause("LAUNCH-1.none")
def test_nothing_is_returned():
    assert ct.launch(impl.stream(), (1,), nothing, ()) is None


@needs("cpu arrays")
@clause("LAUNCH-2.none")
def test_no_stream():
    out = fresh()
    ct.launch(None, (1,), mark, (out,))
    assert out.sum() == 1
    ct.launch(0, (3, 2), mark, (out,))
    assert out.sum() == 6


@pytest.mark.parametrize("grid, error", [
    pytest.param([1], TypeError, marks=clause("LAUNCH-3.tuple")),
    pytest.param(1, TypeError, marks=clause("LAUNCH-3.tuple")),
    pytest.param(None, TypeError, marks=clause("LAUNCH-3.tuple")),
    pytest.param((1, 1, 1, 1), ValueError, marks=clause("LAUNCH-3.many")),
    pytest.param((1.0,), TypeError, marks=clause("LAUNCH-3.int")),
    pytest.param((1, "2"), TypeError, marks=clause("LAUNCH-3.int")),
    pytest.param((None,), TypeError, marks=clause("LAUNCH-3.int")),
    pytest.param((-1,), OverflowError, marks=clause("LAUNCH-3.negative")),
    pytest.param((1, 1, -5), OverflowError, marks=clause("LAUNCH-3.negative")),
    pytest.param((1 << 24,), ValueError, marks=clause("LAUNCH-3.limit")),
    pytest.param((0, 1 << 24), ValueError, marks=clause("LAUNCH-3.limit"))], ids=named)
def test_grids_that_are_refused(grid, error):
    fails(error, nothing, grid=grid)


@clause("LAUNCH-3.limit")
def test_the_largest_grid():
    ct.launch(impl.stream(), (0, (1 << 24) - 1), nothing, ())


@clause("LAUNCH-3.zero")
@pytest.mark.parametrize("grid", [(0,), (3, 0), (0, 0, 0)], ids=named)
@needs("cpu arrays")
def test_empty_grids(grid):
    assert run(mark, fresh(), grid=grid).sum() == 0


@clause("LAUNCH-3.pad")
@pytest.mark.parametrize("grid, n", [((), 1), ((3,), 3), ((3, 2), 6), ((3, 2, 2), 12)], ids=named)
def test_grids(grid, n):
    out = run(mark, fresh(), grid=grid)
    full = (*grid, 1, 1, 1)[:3]
    assert out.sum() == n and out[:full[0], :full[1], :full[2]].all()


def plain(x):
    pass


@clause("LAUNCH-4.kernel")
@pytest.mark.parametrize("kernel", [plain, None, "k", 3, ct.function(plain)], ids=named)
def test_what_is_no_kernel(kernel):
    with pytest.raises(TypeError):
        ct.launch(impl.stream(), (1,), kernel, (1,))


@clause("LAUNCH-4.tuple")
@pytest.mark.parametrize("args", [[1, 2], 1, None, {"x": 1, "y": 2}], ids=named)
def test_arguments_that_are_no_tuple(args):
    with pytest.raises(TypeError):
        ct.launch(impl.stream(), (1,), two, args)


@clause("LAUNCH-4.few", "LAUNCH-4.many")
def test_wrong_number_of_arguments():
    fails(TypeError, two, 1)
    fails(TypeError, two)
    fails(TypeError, two, 1, 2, 3)
    fails(TypeError, nothing, 1)


@clause("LAUNCH-4.keyword", "LAUNCH-4.pdl")
def test_keywords():
    with pytest.raises((TypeError, RuntimeError)):
        ct.launch(impl.stream(), (1,), nothing, (), shared=3)
    for bad in (1, None, "yes"):
        with pytest.raises(TypeError):
            ct.launch(impl.stream(), (1,), nothing, (), programmatic_dependent_launch=bad)


@clause("LAUNCH-4.pdl.result")
@needs("cpu arrays")
@pytest.mark.parametrize("flag", [True, False])
def test_programmatic_dependent_launch(flag):
    out = fresh()
    ct.launch(None, (3, 2, 2), mark, (out,), programmatic_dependent_launch=flag)
    assert out.all()


@clause("LAUNCH-6.tile")
def test_errors_of_compilation():
    @ct.kernel
    def k(x):
        ct.exp(None)

    with pytest.raises(ct.TileTypeError):
        launch(k, 1)
    refuses("TileTypeError", k, 1)

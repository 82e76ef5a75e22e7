"""Block coordinates, tile counts, hints."""

import numpy as np
import pytest

from cutile import dtypes as d
from cutile.errors import TileTypeError
from cutile.ops import grid as g
from tests.ops.ruling import NONE, Bench, constant_of


class Blocks:
    """A running chunk of blocks, as schedules give it to meanings."""

    def bid(self, axis):
        return np.arange(3, dtype=np.int32).reshape(3, 1, 1) + np.int32(10 * axis)

    def num_blocks(self, axis):
        return np.int32(100 + axis)


class Memory:
    def __init__(self, *shape):
        self.shape = shape


@pytest.mark.parametrize("axis", [0, 1, 2, constant_of(2, d.uint8)])
def test_block_coordinates(axis):
    k = Bench(Blocks())
    r = k.call(g.bid, axis)
    n = getattr(axis, "value", axis)
    assert r.type.dtype is d.int32 and r.type.shape == ()
    assert k.value(r).reshape(-1).tolist() == [10 * n, 10 * n + 1, 10 * n + 2]
    assert k(g.num_blocks, axis=axis) == 100 + n


@pytest.mark.parametrize("axis", [3, -1, True, 1.0, None, "x", (0,)])
@pytest.mark.parametrize("op", [g.bid, g.num_blocks], ids=lambda o: o.name)
def test_axis_is_a_constant_from_0_to_2(op, axis):
    with pytest.raises(TileTypeError, match=f'"axis" of {op.name}'):
        Bench().call(op, axis)


def test_axis_must_be_constant():
    k = Bench()
    with pytest.raises(TileTypeError, match="not constant"):
        k.call(g.bid, k.tile(0, d.int32))


@pytest.mark.parametrize("axis, shape, order, want", [
    (0, (4, 8), "C", 3), (1, (4, 8), "C", 13), (-1, (4, 8), "C", 13), (0, (4, 8), "F", 25), (1, (4, 8), "F", 2),
    (0, (4, 8), (1, 0), 25), (0, (4, 8), (-1, -2), 25), (0, (), "C", 9), (1, (), "C", 100),
])
def test_num_tiles_rounds_up(axis, shape, order, want):
    k = Bench()
    x = k.array(Memory(np.int32(9), np.int32(100)), d.float32, 2)
    r = k.call(g.num_tiles, x, axis, shape, order)
    assert r.type.dtype is d.int32 and k.value(r) == want


def test_num_tiles_at_the_ends_of_the_range():
    k = Bench()
    for n, s, want in ((0, 4, 0), (1, 4, 1), (2**31 - 1, 2, 2**30), (2**31 - 1, 1, 2**31 - 1)):
        assert k(g.num_tiles, k.array(Memory(np.int32(n)), d.int8, 1), 0, s) == want
    assert k(g.num_tiles, k.array(Memory(np.int64(2**40)), d.int8, 1), 0, 2**20) == 2**20
    sizes = np.array([0, 1, 5], np.int32)
    assert k(g.num_tiles, k.array(Memory(sizes), d.int8, 1), 0, 4).tolist() == [0, 1, 2]


@pytest.mark.parametrize("args", [
    (2, (4, 8)), (-3, (4, 8)), (0, 4), (0, (4,)), (0, (3, 8)), (0, (4, 8), "X"), (0, (4, 8), (0, 0)), (0, (4, 8), (0,)),
    (0, (4, 8), None), (0.0, (4, 8)), (True, (4, 8)),
])
def test_num_tiles_refuses(args):
    k = Bench()
    with pytest.raises(TileTypeError, match="of num_tiles"):
        k.call(g.num_tiles, k.array(None, d.float32, 2), *args)


def test_num_tiles_wants_an_array():
    k = Bench()
    with pytest.raises(TileTypeError, match="rank 0"):
        k.call(g.num_tiles, k.array(None, d.float32, 0), 0, ())
    with pytest.raises(TileTypeError, match="expected an array"):
        k.call(g.num_tiles, k.tile([1], d.int32), 0, 1)


def test_assume_divisible_by():
    k = Bench()
    x = k.tile(32, d.int64)
    r = k.call(g.assume_divisible_by, x, divisor=16)
    assert r.type == x.type and k.value(r) == 32 and k.ops() == ["assume_divisible_by"]
    assert k.call(g.assume_divisible_by, x, 1) is x
    c = k.call(g.assume_divisible_by, 32, 16)
    assert c.value == 32 and c.loose


@pytest.mark.parametrize("x, divisor", [(33, 16), (True, 1), (1.0, 1), (None, 1),
    (32, 0), (32, -2), (32, 2.0), (32, True)])
def test_assume_divisible_by_refuses(x, divisor):
    with pytest.raises(TileTypeError, match="of assume_divisible_by"):
        Bench().call(g.assume_divisible_by, x, divisor)


@pytest.mark.parametrize("op", [g.grid_dependency_control_wait, g.grid_dependency_control_launch_dependents])
def test_grid_dependencies_give_none_and_stay_in_order(op):
    k = Bench()
    r = k.call(op)
    assert r.obj is NONE.obj and k.ops() == [op.name] and op.effect != "pure"
    k._run()

"""Block coordinates, numbers of blocks and tiles, assumptions, grid dependencies [GRID-*, NT-1, ASSUME-1, GDC-*]."""

from __future__ import annotations

import numpy as np

from cutile.dtypes import int32
from cutile.ir.build import Builder
from cutile.ir.terms import NONE, Const, Leaf, Static, Term, Tuple, is_scalar
from cutile.ops._arguments import array_arg, axis_arg, const_int, int_scalar_arg, invalid, items_arg, shape_arg
from cutile.ops._freedom import any_
from cutile.ops._op import HOST, op
from cutile.types import tile_type

# ------------------------------------------------------------------ typing rules


def block_rule(b: Builder, op, axis: Term) -> Term:
    """Rule of bid and num_blocks."""
    k = const_int(op, "axis", axis)
    if k not in (0, 1, 2):
        invalid(op, "axis", f"expected 0, 1 or 2, got {k}", help="a grid has three axes")
    return Leaf(b.op1(op, result=tile_type(int32), axis=k))


def order_arg(op, name: str, t: Term, rank: int) -> tuple[int, ...]:
    """The order of array dimensions, "C", "F" or a permutation, as a tuple of axes from 0 [LOAD-4]."""
    if isinstance(t, Static) and isinstance(t.obj, str):
        if t.obj not in ("C", "F"):
            invalid(op, name, f"expected 'C', 'F' or a permutation, got {t.obj!r}",
                    help="order=(1, 0) turns a tile of two axes, as 'F' does")
        return tuple(range(rank)) if t.obj == "C" else tuple(range(rank))[::-1]
    order = tuple(axis_arg(op, name, a, rank) for a in items_arg(op, name, t))
    if sorted(order) != list(range(rank)):
        invalid(op, name, f"expected each of the {rank} array dimensions exactly once, got {order}")
    return order


def num_tiles_rule(b: Builder, op, array: Term, axis: Term, shape: Term, order: Term) -> Term:
    """Rule of num_tiles."""
    array = array_arg(op, "array", array)
    rank = array.type.ndim
    if rank == 0:
        invalid(op, "array", "an array of rank 0 has no axes to count tiles along")
    k = axis_arg(op, "axis", axis, rank)
    if isinstance(shape, Tuple) and not shape.items:
        dims = (1,) * rank
    elif is_scalar(shape) and rank != 1:
        invalid(op, "shape", f"a single integer is the tile shape of an array of rank 1, but this one has rank {rank}",
                help="give a tuple of one size per dimension")
    else:
        dims = shape_arg(op, "shape", shape, rank=rank)
    return Leaf(b.op1(op, array.value, result=tile_type(int32), axis=k, shape=dims,
                      order=order_arg(op, "order", order, rank)))


def assume_rule(b: Builder, op, x: Term, divisor: Term) -> Term:
    """Rule of assume_divisible_by: a constant is checked at compile time."""
    x = int_scalar_arg(op, "x", x, signed=False)
    d = const_int(op, "divisor", divisor)
    if d < 1:
        invalid(op, "divisor", f"expected a positive integer, got {d}")
    if isinstance(x, Const) and x.value % d:
        invalid(op, "x", f"the constant {x.value} is not divisible by {d}")
    if isinstance(x, Const) or d == 1:
        return x
    return Leaf(b.op1(op, x.value, result=x.type, divisor=d))


def dependency_rule(b: Builder, op) -> Term:
    """Rule of the grid dependency ops."""
    b.op(op, results=())
    return NONE


# ------------------------------------------------------------------ meanings


@op(block_rule, exact=True)
def bid(axis, *, ctx):
    """Index of the running block along a grid axis.

    [GRID-1.dtype]  it is an int32 scalar
    [GRID-1.value.0]  bid(0) is the first coordinate of the block, from 0 to num_blocks(0) - 1
    [GRID-1.value.1]  bid(1) is the second
    [GRID-1.value.2]  bid(2) is the third
    [GRID-1.axis]  the axis is an integer constant of any integer dtype, and may be given by name
    [GRID-1.range]  an axis above 2 is refused (TileTypeError)
    [GRID-1.negative]  a negative axis is refused (TileTypeError)
    [GRID-1.bool]  a bool as axis is refused (TileTypeError)
    [GRID-1.float]  a float as axis is refused (TileTypeError)
    [GRID-1.constant]  a run-time axis is refused (TileTypeError)
    """
    return ctx.bid(axis)


@op(block_rule, exact=True)
def num_blocks(axis, *, ctx):
    """Number of blocks along a grid axis.

    [GRID-2.dtype]  it is an int32 scalar
    [GRID-2.value.0]  num_blocks(0) is the first extent of the grid
    [GRID-2.value.1]  num_blocks(1) is the second
    [GRID-2.value.2]  num_blocks(2) is the third
    [GRID-2.one]  extents that the launch does not give are 1
    [GRID-2.axis]  the axis is an integer constant of any integer dtype, and may be given by name
    [GRID-2.range]  an axis above 2 is refused (TileTypeError)
    [GRID-2.negative]  a negative axis is refused (TileTypeError)
    [GRID-2.bool]  a bool as axis is refused (TileTypeError)
    [GRID-2.float]  a float as axis is refused (TileTypeError)
    [GRID-2.constant]  a run-time axis is refused (TileTypeError)
    """
    return ctx.num_blocks(axis)


@op(num_tiles_rule, exact=True, freedom=any_("more than 2**31-1 tiles"))
def num_tiles(array, /, axis, shape, order="C"):
    """Number of tiles of `shape` along an axis of the tile space of an array.

    [NT-1.value]  the size of array dimension order[axis] divided by shape[axis], rounded up
    [NT-1.dtype]  it is an int32 scalar
    [NT-1.negative]  a negative axis counts from the end
    [NT-1.range]  an axis out of range is refused (TileTypeError)
    [NT-1.constant]  an axis that is no integer constant is refused (TileTypeError)
    [NT-1.int]  for rank 1 the shape may be a single integer constant
    [NT-1.int.rank]  for another rank it may not (TileTypeError)
    [NT-1.empty]  shape () is a shape of ones
    [NT-1.pow2]  a size that is no positive power of two is refused (TileTypeError)
    [NT-1.rank]  a shape of another rank than the array's is refused (TileTypeError)
    [NT-1.F]  with order "F", axis and shape count from the last dimension of the array
    [NT-1.order]  with a permutation, position k of shape and axis k mean array dimension order[k]
    [NT-1.order.bad]  an order that is no permutation is refused (TileTypeError)
    [NT-1.rank0]  an array of rank 0 is refused (TileTypeError)
    [NT-1.array]  `array` is positional only, the other parameters may be given by name
    """
    n = np.asarray(array.shape[order[axis]]).astype(np.int64)
    return ((n - 1) // shape[axis] + 1).astype(np.int32)


@op(assume_rule, operands="x", exact=True, freedom=any_("a false claim"))
def assume_divisible_by(x, divisor):
    """x, with the promise that it is a multiple of `divisor`.

    [ASSUME-1.value]  x comes back unchanged, its dtype included
    [ASSUME-1.bool]  a bool as x is refused (TileTypeError)
    [ASSUME-1.float]  a float as x is refused (TileTypeError)
    [ASSUME-1.rank]  a tile of rank 1 or more as x is refused (TileTypeError)
    [ASSUME-1.positive]  a divisor below 1 is refused (TileTypeError)
    [ASSUME-1.constant]  a divisor that is no integer constant is refused (TileTypeError)
    [ASSUME-1.const]  a constant x that is not divisible is refused (TileTypeError)
    [ASSUME-1.one]  divisor 1 says nothing, and x stays what it was, constants included
    [ASSUME-1.names]  both parameters may be given by name
    """
    return x


@op(dependency_rule, operands="", effect=HOST)
def grid_dependency_control_wait():
    """Wait until the grids that this launch depends on are done; all their memory is visible then.

    [GDC-1.none]  the result is None
    [GDC-1.cpu]  where launches run one after another there is nothing to wait for
    """


@op(dependency_rule, operands="", effect=HOST)
def grid_dependency_control_launch_dependents():
    """Permit the grids that depend on this launch to start.

    [GDC-2.none]  the result is None
    [GDC-2.cpu]  where launches run one after another it changes nothing
    """

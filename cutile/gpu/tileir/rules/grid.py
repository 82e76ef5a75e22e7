"""Lowering of block coordinates, numbers of tiles, assumptions, and dependencies between grids."""

from __future__ import annotations

from cutile.dtypes import info, int32
from cutile.gpu.facts import power_of_two
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import resized
from cutile.gpu.tileir.arrays import Array, Dim
from cutile.gpu.tileir.builder import DivBy, Value
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import grid


@rule(grid.bid)
def _bid(l, n):
    return l.op("get_tile_block_id")[n.attrs["axis"]]


@rule(grid.num_blocks)
def _num_blocks(l, n):
    return l.op("get_num_tile_blocks")[n.attrs["axis"]]


@rule(grid.num_tiles)
def _num_tiles(l, n):
    a: Array = l.array(n.operands[0])
    axis, order, shape = (n.attrs[name] for name in ("axis", "order", "shape"))
    size = a.sizes[order[axis]]
    view = next((v for t, v in a.tiles.items() if t.tile_shape == shape and t.dim_map == order), None)
    if view is None or isinstance(size, int) or a.type.index_dtype is not int32:
        return rounded_up(l, a, size, shape[axis])
    # the assembler knows that this is not negative, which it cannot infer for a division; loops over tiles get faster
    return l.op("get_index_space_shape", [view], result=[ty.tile(ty.i32)] * len(shape))[axis]


def rounded_up(l, a: Array, size: Dim, step: int) -> Value:
    """size / step rounded up, as an int32."""
    if isinstance(size, int):
        return l.b.constant(ty.tile(ty.i32), -(-size // step))
    signed = info(a.type.index_dtype).kind == "i"
    if step >= 2**31 and size.type.element.bits == 32:
        size = resized(l, size, ty.i64, signed=False)
    if step > 1:
        size = l.op("divi", [size, l.b.constant(size.type, step)], signedness="signed" if signed else "unsigned",
                    rounding="positive_inf")
    return resized(l, size, ty.i32, signed=signed)


@rule(grid.assume_divisible_by)
def _assumed(l, n):
    x, d = l.get(n.operands[0]), power_of_two(n.attrs["divisor"])
    return l.b.assume(x, DivBy(d)) if d > 1 else x


@rule(grid.grid_dependency_control_wait)
def _wait(l, n):
    l.needs("grid_dependency_control", "gdc_wait_tko")
    l.memory("gdc_wait_tko")


@rule(grid.grid_dependency_control_launch_dependents)
def _launch(l, n):
    l.needs("grid_dependency_control", "gdc_launch_dependents_tko")
    l.memory("gdc_launch_dependents_tko")

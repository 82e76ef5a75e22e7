"""Calls of combine functions, the user's functions of reductions and scans, by code that runs one block; and of element
functions, for debuggers.

To a combine function, the meaning of the op passes the operands in pairs: for n results, n left ones and then n right
ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutile.dtypes import info
from cutile.interp import debugger
from cutile.interp.exec.block_set import BlockSet
from cutile.interp.show import Tile
from cutile.types import TileType


def combine_elements(function: Callable, ctx: BlockSet, block: tuple, types: tuple[TileType, ...], captured: tuple,
                     args: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Call a combine function for each element, in row-major order, on scalars that a debugger can show."""
    n = len(args) // 2
    return map_elements(function, ctx, block, types, types[:n], captured, args)


def map_elements(function: Callable, ctx: BlockSet, block: tuple, types: tuple[TileType, ...],
                 results: tuple[TileType, ...], captured: tuple,
                 args: tuple[np.ndarray, ...], mask: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Call a function of elements for each element, in row-major order, on scalars that a debugger can show. Where not
    `mask`, the result is zero.
    """
    args = np.broadcast_arrays(*args)
    out = tuple(np.zeros(args[0].shape, info(t.dtype).carrier) for t in results)
    for at in np.ndindex(args[0].shape):
        if mask is not None and not np.broadcast_to(mask, args[0].shape)[at]:
            continue
        scalars = (Tile(carrier=np.asarray(a[at]), type=t) for a, t in zip(args, types, strict=True))
        y = function(ctx, block, *scalars, *captured)
        for o, x in zip(out, y if len(out) > 1 else (y,), strict=True):
            o[at] = x.carrier
    return out


def combine_at_once(function: Callable, ctx: BlockSet, block: tuple, types: tuple[TileType, ...], captured: tuple,
                    args: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Call a combine function, which has no branches, once for all elements, as the batch schedule does. If a debugger
    is attached, call it for each element, so that the debugger shows scalars.
    """
    if debugger.attached():
        return combine_elements(function, ctx, block, types, captured, args)
    y = function(ctx, block, *(Tile(carrier=a, type=t) for a, t in zip(args, types, strict=True)), *captured)
    return tuple(x.carrier for x in (y if len(args) > 2 else (y,)))

"""Sets of running blocks, values of theirs, and random ways to split them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from cutile.interp.exec.block_set import BlockGrid, BlockSet, Launch

EXTENTS = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3))


def grid(extent, origin=(0, 0, 0)) -> BlockGrid:
    return BlockGrid(Launch((9, 9, 9)), origin, extent)


def value(rng, ctx, core: tuple[int, ...]) -> np.ndarray:
    """A random value: the same for all blocks, or with some leading axes of length 1."""
    if rng.random() < 0.2:
        return rng.integers(0, 99, core)
    return rng.integers(0, 99, tuple(n if rng.random() < 0.6 else 1 for n in ctx.batch_shape) + core)


def per_block(ctx: BlockSet, x: np.ndarray, rank: int) -> dict:
    return dict(zip(ctx.blocks(), ctx.flat(x, rank), strict=True))


def random_subsets(rng, ctx):
    """Disjoint sets that came from splitting again and again."""
    mask = value(rng, ctx, ()) % 2 == 0
    if mask.all() or not mask.any():
        return [ctx]
    parts = list(ctx.split(mask))
    return [s for p in parts for s in (random_subsets(rng, p) if rng.random() < 0.5 else [p])]

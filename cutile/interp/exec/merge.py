"""Narrows and merges the values of blocks where sets of blocks split and meet."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from cutile.interp.exec.block_set import BlockGrid, BlockSet, block_list, selector
from cutile.interp.memory import per_block_array


class Kind(Enum):
    """The kinds of values that are no tiles."""

    ARRAY = "array"  # an array, which has `for_blocks`
    SHARED = "shared"  # the same for all blocks: a list of arrays, or an exit record


Rank = int | Kind  # for a value that holds tiles, their rank: its other axes are batch axes
Part = tuple[BlockSet, tuple]  # some blocks and their values


def narrow(outer: BlockSet, inner: BlockSet, values: Sequence, ranks: Sequence[Rank]) -> tuple:
    """The values of the inner blocks, given those of the outer ones."""
    if inner is outer or not values:
        return tuple(values)
    take = outer.narrowing(inner).take
    return tuple(x if rank is Kind.SHARED else x.for_blocks(take) if rank is Kind.ARRAY else take(x, rank)
                 for x, rank in zip(values, ranks, strict=True))


def fetched(ctx: BlockSet, environment: dict[int, tuple[BlockSet, Any]], keys: Sequence[int],
            ranks: Sequence[Rank]) -> tuple:
    """The values of these blocks, given an environment with those of more blocks."""
    return tuple(narrow(*entry[:1], ctx, entry[1:], (rank,))[0]
                 for entry, rank in zip(map(environment.__getitem__, keys), ranks, strict=True))


def merge(outer: BlockSet, parts: Sequence[Part], ranks: Sequence[Rank]) -> Part:
    """Join disjoint subsets of `outer`, each with its values, into one set with values."""
    if len(parts) == 1:
        return parts[0]
    target = _union(outer, [ctx for ctx, _ in parts])
    columns = zip(*(values for _, values in parts), strict=True)
    sets = [ctx for ctx, _ in parts]
    return target, tuple(_join(target, sets, column, rank) for column, rank in zip(columns, ranks, strict=True))


def _union(outer: BlockSet, sets: list[BlockSet]) -> BlockSet:
    if sum(s.count for s in sets) == outer.count:
        return outer
    k = _single_axis(sets)
    if k is not None:
        return sets[0].along(k, np.sort(np.concatenate([s.axes[k] for s in sets])))
    return block_list(outer, np.sort(np.concatenate([s.numbers() for s in sets])))


def _single_axis(sets: Sequence[BlockSet]) -> int | None:
    """The grid axis along which the sets differ. None if there are several, or a set is no BlockGrid."""
    if not all(isinstance(s, BlockGrid) for s in sets):
        return None
    first = sets[0]
    differing = [k for k in range(3) if any(not np.array_equal(s.axes[k], first.axes[k]) for s in sets[1:])]
    return differing[0] if len(differing) == 1 else None


def _join(target: BlockSet, sets: Sequence[BlockSet], column: Sequence[Any], rank: Rank):
    """Join the values that disjoint sets of blocks have into one value of the blocks of `target`."""
    first = column[0]
    if rank is Kind.ARRAY:
        return _join_arrays(target, sets, column)
    if all(x is first for x in column) and first.ndim == rank:
        return first
    tile_shape = first.shape[first.ndim - rank:]
    k = _single_axis(sets) if isinstance(target, BlockGrid) else None
    if k is not None:
        batch_shape = [max(x.shape[j] if x.ndim > rank else 1 for x in column) for j in range(3)]
        batch_shape[k] = target.batch_shape[k]
        out = np.empty((*batch_shape, *tile_shape), first.dtype)
        for s, x in zip(sets, column, strict=True):
            out[(slice(None),) * k + (selector(target.axes[k], s.axes[k]),)] = x
        return out
    out = np.empty((target.count, *tile_shape), first.dtype)
    numbers = target.numbers()
    for s, x in zip(sets, column, strict=True):
        out[selector(numbers, s.numbers())] = x if x.ndim == rank else s.flat(x, rank)
    return out.reshape(target.batch_shape + tile_shape)


def _join_arrays(target: BlockSet, sets: Sequence[BlockSet], column: Sequence[Any]):
    numbers = target.numbers()
    return per_block_array.join(target.batch_shape, [(selector(numbers, s.numbers()), x, s.flat)
                                                     for s, x in zip(sets, column, strict=True)])

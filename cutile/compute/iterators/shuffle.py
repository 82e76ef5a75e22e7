"""Permutations in no memory."""

from __future__ import annotations

from operator import index

import numpy as np

import cutile as ct
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.composed import ZipIterator
from cutile.compute.iterators.transform import TransformIterator
from cutile.compute.iterators.values import ConstantIterator, CountingIterator, bits_of


def ShuffleIterator(num_items: int, seed: int = 0) -> IteratorBase:
    """A permutation of 0, 1, … num_items - 1 as int64, which the number of items and the seed fix [ITR-9].

    Parameters
    ----------
    num_items : int
        How many items there are.
    seed : int, default 0
        Another one gives another order. All such iterators share compiled code.

    Returns
    -------
    iterator

    Raises
    ------
    ValueError
        If there are no items.
    TypeError
        If an argument is no int.

    Examples
    --------
    >>> out = np.zeros(5, int)
    >>> ct.compute.unary_transform(ct.compute.ShuffleIterator(5, seed=1), out, ct.compute.OpKind.IDENTITY, 5)
    >>> sorted(out.tolist())
    [0, 1, 2, 3, 4]
    """
    try:
        n, seed = index(num_items), index(seed)
    except TypeError:
        raise TypeError(f"ShuffleIterator takes a number of items and a seed, both ints, not {num_items!r:.100} and "
                        f"{seed!r:.100}") from None
    if n <= 0:
        raise ValueError(f"ShuffleIterator needs a positive number of items, got {n}")
    half = max(1, -(-(n - 1).bit_length() // 2))
    parts = CountingIterator(np.int64(0)), *(ConstantIterator(np.int64(bits_of(v % (1 << 64), ct.int64))) for v in (
        n, half, seed))
    return TransformIterator(ZipIterator(*parts), _shuffled)


def _shuffled(p):
    """A Feistel network permutes the numbers of 2 * half bits; it is applied until the number is below n."""
    i, n, half, seed = p[0], p[1], p[2], p[3]
    i = _mixed(i, half, seed)
    while i >= n:
        i = _mixed(i, half, seed)
    return i


def _mixed(i, half, seed):
    mask = (np.int64(1) << half) - 1
    left, right = i >> half, i & mask
    for turn in range(6):
        word = (right + seed * 0x1E3779B97F4A7C15 + turn) * 0x3F58476D1CE4E5B9
        word = (word ^ ((word >> 29) & 0x7FFFFFFFF)) * 0x14D049BB133111EB
        left, right = right, left ^ ((word >> 31) & mask)
    return (left << half) | right

"""select, three_way_partition and unique_by_key of one line of items, and what a plain Python loop gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cutile import compute

LEFT = 77  # what outputs hold where nothing is written


def selected(items: Sequence, cond: Callable) -> list:
    return [v for v in items if cond(v)]


def parted(items: Sequence, one: Callable, two: Callable) -> tuple[list, list, list]:
    found: tuple[list, list, list] = [], [], []
    for v in items:
        found[0 if one(v) else 1 if two(v) else 2].append(v)
    return found


def heads(keys: Sequence, equal: Callable) -> list[int]:
    return [k for k in range(len(keys)) if k == 0 or not equal(keys[k - 1], keys[k])]


def outputs(n: int, dtype: Any, many: int) -> list[np.ndarray]:
    return [np.full(n + 3, LEFT).astype(dtype) for _ in range(many)]


def run_select(d_in: Any, n: int, dtype: Any, cond: Callable) -> list:
    (out,), count = outputs(n, dtype, 1), np.full(2, -5, np.int64)
    compute.select(d_in, out, count, cond, n)
    assert count[1] == -5
    return front(out, int(count[0]))


def run_partition(d_in: Any, n: int, dtype: Any, one: Callable, two: Callable) -> tuple[list, list, list]:
    outs, counts = outputs(n, dtype, 3), np.full(3, -5, np.int32)
    compute.three_way_partition(d_in, *outs, counts, one, two, n)
    a, b, untouched = counts.tolist()
    assert untouched == -5
    return tuple(front(out, k) for out, k in zip(outs, (a, b, n - a - b), strict=True))


def run_unique(d_in: Any, n: int, dtype: Any, equal: Callable) -> tuple[list, list]:
    (keys,), count = outputs(n, dtype, 1), np.full(2, 5, np.uint32)
    numbers = np.zeros(n + 3, np.int64)
    compute.unique_by_key(d_in, compute.CountingIterator(0), keys, numbers, count, equal, n)
    assert count[1] == 5 and not numbers[count[0]:].any()
    return front(keys, int(count[0])), numbers[:count[0]].tolist()


def front(out: np.ndarray, k: int) -> list:
    """The first k items; those behind them must be untouched."""
    assert (out[k:] == np.array(LEFT).astype(out.dtype)).all()
    return out[:k].tolist()

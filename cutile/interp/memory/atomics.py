"""Atomic updates of elements by many blocks, and the value that each update found.

The results are those of a sequential run in row-major order of the blocks, then of the elements of their tiles. A
stable sort of the addresses groups the updates of each element; the groups are then computed side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from cutile.dtypes import bfloat16, float16, info
from cutile.ops import _numeric

Position = np.ndarray | tuple[np.ndarray, ...]  # in `Buffer.flat`, or one along each axis; () for a 0-d array

# Ufuncs, which have `at` and `accumulate`. On integers they are associative, so updates may be combined first.
UFUNCS = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
          "xor": np.bitwise_xor}


def kept(x: np.ndarray, shape: tuple[int, ...], keep: np.ndarray | None) -> np.ndarray:
    """The kept elements of a value, in row-major order; None keeps all."""
    if x.shape != shape:
        x = np.broadcast_to(x, shape)
    return x.reshape(-1) if keep is None else x[keep]


def chosen(buffer, keep: np.ndarray | None, coords: Sequence[np.ndarray], shape: tuple[int, ...]) -> Position:
    """Positions of the kept elements, in row-major order."""
    if not coords:
        return ()
    at = buffer.position(coords)
    return tuple(kept(c, shape, keep) for c in at) if isinstance(at, tuple) else kept(at, shape, keep)


def apply(buffer, kind: str, ok, mask, coords: Sequence[np.ndarray], operands: Sequence[np.ndarray],
          shape: tuple[int, ...], old: bool) -> tuple[np.ndarray, np.ndarray]:
    """Update a buffer; `shape` is that of running blocks and elements. Returns which updates took place, and the value
    that each found (0 where none took place, and everywhere without `old`).
    """
    keep = ok if mask is None else ok & mask
    whole = bool(keep) if keep.size == 1 else keep.all()
    keep = filled_with(True, np.dtype(bool), shape) if whole else np.broadcast_to(keep, shape)
    nothing = filled_with(0, buffer.carrier, shape)
    if not whole and not keep.any():
        return keep, nothing
    some = None if whole else keep
    at = chosen(buffer, some, coords, shape)
    if isinstance(at, tuple) and not at:
        flat, at = buffer.array.reshape(1), np.zeros(keep.size if some is None else np.count_nonzero(keep), np.int64)
    else:
        flat = buffer.array if isinstance(at, tuple) else buffer.flat
    if not old and ufunc_at_suffices(buffer.dtype, kind):
        x = operands[0]
        one = is_one_number(x)  # `at` is much faster with one number than with an array of equal ones
        x = buffer.store(np.asarray(x.reshape(-1)[0] if one else kept(x, shape, some)))[()]
        if one and may_count(buffer.dtype, kind, flat, at):
            add_counts(flat, at, x)
        else:
            UFUNCS[kind].at(flat, at, x)
        return keep, nothing
    before = _in_order(buffer, kind, flat, at, [kept(x, shape, some) for x in operands])
    if not old or whole:
        return keep, before.reshape(shape) if old else nothing
    seen = nothing.copy()
    seen[keep] = before
    return keep, seen


@functools.lru_cache(maxsize=256)
def filled_with(value: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """A read-only array of one value, which takes no memory."""
    return np.broadcast_to(np.asarray(value, dtype), shape)


@functools.lru_cache(maxsize=256)
def all_updated(dtype: np.dtype, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The result of `apply` if every update takes place and the old values are not asked for."""
    return filled_with(True, np.dtype(bool), shape), filled_with(0, dtype, shape)


def ufunc_at_suffices(dtype, kind: str) -> bool:
    """Whether `ufunc.at` computes this update, rounding after each one."""
    return kind in UFUNCS and dtype is not bfloat16


def is_one_number(x: np.ndarray) -> bool:
    """Whether all elements of a value are one number in memory."""
    return x.size == 1 or not any(x.strides)


def may_count(dtype, kind: str, flat: np.ndarray, at: Position) -> bool:
    """Whether to count the updates of each element and add count × x once, because that is faster. Integers wrap, so
    the result is the same. Never for floats.
    """
    return kind == "add" and info(dtype).integral and isinstance(at, np.ndarray) and flat.size <= at.size


def add_counts(flat: np.ndarray, at: np.ndarray, x: np.generic, exist: Callable = lambda part: True) -> bool:
    """Add x to each element as often as its position occurs. False, with nothing done, unless all positions exist:
    `exist(part)` says it of a part of them.
    """
    size, n = flat.size, max(1 << 15, 4 * flat.size)  # positions that stay in the cache with their 64-bit copies
    total = 0
    for part in [at[i:i + n] for i in range(0, at.size, n)] if at.size > n else [at]:
        if not exist(part):
            return False
        total += np.bincount(part, minlength=size)
    flat += total.astype(flat.dtype) * x
    return True


def _in_order(buffer, kind: str, flat: np.ndarray, at: Position, values: list[np.ndarray]) -> np.ndarray:
    """Make all updates in order. Returns the value that each found."""
    if values[0].size == 1:  # locks, tickets and flags
        before = buffer.convert(flat[at]) if not buffer.plain else flat[at]
        flat[at] = buffer.store(_once(buffer.dtype, kind, before, values))
        return before
    order, first = _groups(buffer, at)
    count = np.diff(np.append(first, len(order)))
    at = tuple(c[order] for c in at) if isinstance(at, tuple) else at[order]
    values = [v[order] for v in values]
    heads = tuple(c[first] for c in at) if isinstance(at, tuple) else at[first]
    start = buffer.convert(flat[heads]) if not buffer.plain else flat[heads]
    before, after = _run(buffer.dtype, kind, start, values, first, count)
    flat[heads] = buffer.store(after)
    out = np.empty_like(before)
    out[order] = before
    return out


def _groups(buffer, at: Position) -> tuple[np.ndarray, np.ndarray]:
    """A stable order in which updates of one address are neighbours, and the position in it where each address begins.
    """
    key = at
    if isinstance(at, tuple):
        key = sum(c * s for c, s in zip(at, buffer.array.strides, strict=True))
    least = key.min()
    if key.max() - least < 1 << 16:
        key = (key - least).astype(np.uint16)  # NumPy sorts these by radix
    order = np.argsort(key, kind="stable")
    key = key[order]
    return order, np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))


def _run(dtype, kind: str, start: np.ndarray, values: list[np.ndarray], first: np.ndarray, count: np.ndarray):
    """The value before each update, and for each group (updates of one address) the value after its last update."""
    if kind == "xchg":
        before = np.empty_like(values[0])
        before[1:] = values[0][:-1]
        before[first] = start
        return before, values[0][first + count - 1]
    if kind == "add" and info(dtype).integral:
        total = np.cumsum(values[0], dtype=values[0].dtype)  # wraps, so differences are exact
        ahead = total - values[0]
        before = ahead - np.repeat(ahead[first] - start, count)
        return before, before[first + count - 1] + values[0][first + count - 1]
    step = _steps(dtype, kind)
    most = int(count.max())
    if kind in UFUNCS and most > 8 * len(first) and dtype not in (float16, bfloat16):
        return _by_group(UFUNCS[kind], start, values[0], first, count)
    before, now = np.empty(len(values[0]), start.dtype), start.copy()
    groups = np.arange(len(first))
    for turn in range(most):  # the turn-th update of every group that has one
        if turn:
            groups = groups[count[groups] > turn]
        where = first[groups] + turn
        before[where] = now[groups]
        now[groups] = step(now[groups], *(v[where] for v in values))
    return before, now


def _once(dtype, kind: str, start: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    """One update of each element."""
    return values[0] if kind == "xchg" else _steps(dtype, kind)(start, *values)


def _by_group(ufunc: np.ufunc, start, values, first, count):
    """`_run` for few addresses with many updates each: one `accumulate`, which is sequential, for each address."""
    before, after = np.empty_like(values), start.copy()
    for g, (f, n) in enumerate(zip(first.tolist(), count.tolist(), strict=True)):
        run = ufunc.accumulate(np.concatenate((start[g:g + 1], values[f:f + n])))
        before[f:f + n], after[g] = run[:-1], run[-1]
    return before, after


def _steps(dtype, kind: str) -> Callable:
    """One update: (value in memory, operands) → new value."""
    if kind == "cas":
        def compare_and_swap(now, expected, desired):
            equal = now == expected if info(dtype).integral else \
                now.view(f"u{now.itemsize}") == np.ascontiguousarray(expected).view(f"u{now.itemsize}")
            return np.where(equal, desired, now)

        return compare_and_swap
    ufunc = UFUNCS[kind]
    if dtype in (float16, bfloat16):
        return lambda now, x: _numeric.round_to(dtype, ufunc(now, x))
    return ufunc

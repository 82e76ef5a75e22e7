"""Sorts in host memory: a launch makes the bits of keys (`pairs.Bits`), NumPy puts these in order, and moves keys and
values. Keys without values are sorted as they are where NumPy orders them in the same way: integers, and floats among
which there is no NaN and no -0.

Bits of up to 32 bits are put in order as words that have the position, too. All are different, so any sort is stable.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from cutile.compute.host_runs import move
from cutile.compute.host_segments import in_one_array, stored_once
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.operators import Operator, OpKind, operator
from cutile.compute.pairs import Bits, Items, temporary
from cutile.compute.plans import Plan
from cutile.compute.transform import UnaryTransform
from cutile.compute.value_types import Number
from cutile.dtypes import float32, float64, info, int64

SHORT = 32  # bits that a word has room for besides the position
POSITIONS = 1 << SHORT  # for so many items

Segments = Sequence[tuple[int, int]]


def sort(plan: Plan, source: Items, target: Items, bits: Bits, n: int, begin: int, end: int) -> None:
    """What sorts n items by the bits of their keys from `begin` to `end`; stable. The target may be the source."""
    whole = end - begin == bits.width
    plain = whole and _plain(source)

    def put(found: np.ndarray, items: tuple, out: tuple) -> None:
        if plain and _in_order_of_numpy(items[0]):
            out[0][:] = _sorted(items[0], bits)
            return
        if not whole:
            found = found >> found.dtype.type(begin) & found.dtype.type((1 << (end - begin)) - 1)
        move(items, _order(found, end - begin), out)

    if n:
        items, out = _stored(plan, source, n), _array_like(plan, target, n)
        plan.call(put, _bits(plan, items, bits, n, plain), _states(items, n), out.state(n))
        _copy(plan, out, target, n)


def top(plan: Plan, source: Items, target: Items, bits: Bits, n: int, k: int) -> None:
    """What finds the k items with the largest bits, in their order, the first ones of equal keys."""
    def put(found: np.ndarray, items: tuple, out: tuple) -> None:
        least = np.partition(found, n - k)[n - k]
        above = np.flatnonzero(found > least)
        places = np.concatenate([above, np.flatnonzero(found == least)[:k - len(above)]])
        move(items, places[_order(~found[places], found.itemsize * 8)], out)

    items, out = _stored(plan, source, n), _array_like(plan, target, k)
    plan.call(put, _bits(plan, items, bits, n, False), _states(items, n), out.state(k))
    _copy(plan, out, target, k)


def sort_segments(plan: Plan, source: Items, target: Items, bits: Bits, n: int, count: int, starts: IteratorBase,
                  ends: IteratorBase) -> None:
    """What sorts the items of each of `count` segments, of n items; other items stay. The target is in arrays."""
    plain = _plain(source)

    def put(start: np.ndarray, end: np.ndarray, found: np.ndarray, items: tuple, out: tuple) -> None:
        segments = _within(start, end, n)
        if plain and _in_order_of_numpy(items[0]):
            _sort_in_segments(items[0], segments, bits, out[0])
            return
        places, there = _order_in_segments(found, segments, bits.width), np.zeros(n, bool)
        for a, b in segments:
            there[a:b] = True
        _put(items, places[there], there, out)

    bounds = [in_one_array(plan, it, Number(int64), count) for it in (starts, ends)]
    items = _stored(plan, source, n)
    plan.call(put, *bounds, _bits(plan, items, bits, n, plain), _states(items, n), target.state(n))


# ------------------------------------------------------------------ plans


def _plain(source: Items) -> bool:
    """Whether equal keys cannot be told apart, and NumPy may order them in the same way."""
    t = source.keys.value_type
    return source.values is None and isinstance(t, Number) and (info(t.dtype).integral or t.dtype in (float32, float64))


def _stored(plan: Plan, source: Items, n: int) -> Items:
    return Items(*(stored_once(plan, part, part.value_type, n) for part in source.parts))


def _states(items: Items, n: int) -> tuple:
    return tuple(part.state(n) for part in items.parts)


def in_arrays(target: Items) -> bool:
    """Whether items are stored in arrays, in their order."""
    return all(isinstance(part, ArrayIterator) for part in target.parts)


def _array_like(plan: Plan, target: Items, n: int) -> Items:
    return target if in_arrays(target) else temporary(plan, n, target)


def _copy(plan: Plan, found: Items, target: Items, n: int) -> None:
    for one, other in zip(found.parts, target.parts, strict=True):
        if one is not other:
            UnaryTransform().launches(plan, one, other, operator(OpKind.IDENTITY), n)


def _bits(plan: Plan, items: Items, bits: Bits, n: int, plain: bool) -> Any:
    """The state of the bits of keys. Those of integers are not made where they are `plain`."""
    found = plan.values(n, Number(bits.wide))
    if not plain or bits.kind == "float":
        UnaryTransform().launches(plan, items.keys, found, _operator(bits), n)
    return found.state(n)


@functools.cache
def _operator(bits: Bits) -> Operator:
    return operator(lambda key: bits.of_many(key))


# ------------------------------------------------------------------ NumPy


def _in_order_of_numpy(keys: np.ndarray) -> bool:
    """Whether NumPy orders them as their bits are."""
    return keys.dtype.kind != "f" or not (np.isnan(keys).any() or ((keys == 0) & np.signbit(keys)).any())


def _sort_in_segments(keys: np.ndarray, segments: Segments, bits: Bits, out: np.ndarray) -> None:
    """Keys of segments in the order of NumPy."""
    if (length := _length_of_rows(segments)) is not None:
        low, high = segments[0][0], segments[-1][1]
        out[low:high] = _sorted(keys[low:high].reshape(-1, length), bits).reshape(-1)
    else:
        for a, b in segments:
            out[a:b] = _sorted(keys[a:b], bits)


def _sorted(keys: np.ndarray, bits: Bits) -> np.ndarray:
    """Keys in order, along the last axis."""
    found = np.sort(keys, axis=-1, kind="stable" if keys.itemsize <= 2 else None)  # which counts digits
    return found[..., ::-1] if bits.descending else found


def _words(found: np.ndarray) -> np.ndarray:
    """Bits in front of positions."""
    return (found.astype(np.uint64) << np.uint64(SHORT)) | np.arange(len(found), dtype=np.uint64)


def _positions(words: np.ndarray) -> np.ndarray:
    return (words & np.uint64(POSITIONS - 1)).view(np.int64)


def _order(found: np.ndarray, width: int) -> np.ndarray:
    """The positions of bits in their order; of equal ones in the order of positions."""
    if width > SHORT or len(found) > POSITIONS:
        return np.argsort(found, kind="stable")
    words = _words(found)
    words.sort()
    return _positions(words)


def _order_in_segments(found: np.ndarray, segments: Segments, width: int) -> np.ndarray:
    """The same within each segment. Undefined elsewhere."""
    if width > SHORT or len(found) > POSITIONS:
        places = np.empty(len(found), np.int64)
        for a, b in segments:
            places[a:b] = found[a:b].argsort(kind="stable")
            places[a:b] += a
        return places
    words = _words(found)
    if (length := _length_of_rows(segments)) is not None:
        words[segments[0][0]:segments[-1][1]].reshape(-1, length).sort(axis=1)
    else:
        for a, b in segments:
            words[a:b].sort()
    return _positions(words)


def _within(start: np.ndarray, end: np.ndarray, n: int) -> Segments:
    """The segments that have items, as far as they lie within the n items."""
    begin, stop = np.clip(start, 0, n), np.clip(end, 0, n)
    some = begin < stop
    return list(zip(begin[some].tolist(), stop[some].tolist(), strict=True))


def _length_of_rows(segments: Segments) -> int | None:
    """How many items each segment has, if they lie side by side and are of one length."""
    if not segments:
        return None
    at, length = segments[0][0], segments[0][1] - segments[0][0]
    for k, (a, b) in enumerate(segments):
        if a != at + k * length or b != a + length:
            return None
    return length


def _put(items: Any, places: np.ndarray, there: np.ndarray, to: Any) -> None:
    """Store the items at `places` where `there` is true. Structs are tuples of arrays."""
    if isinstance(to, tuple):
        for x, y in zip(items, to, strict=True):
            _put(x, places, there, y)
    else:
        to[there] = items[places]

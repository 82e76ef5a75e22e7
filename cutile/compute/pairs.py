"""Keys and values of sorts: what moves together, and the order of numbers by their bits."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

import numpy as np

import cutile as ct
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import Stored
from cutile.compute.lanes import FEW, Keys, columns, joined_values
from cutile.compute.overlaps import check_apart
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import DType, info


class SortOrder(enum.IntEnum):
    """The order of sorted keys [RDX-2].

    Attributes
    ----------
    ASCENDING, DESCENDING
        DESCENDING is the inverse; equal keys keep their order in both.

    Examples
    --------
    >>> keys, out = np.array([3, 1, 2]), np.zeros(3, int)
    >>> ct.compute.radix_sort(keys, out, None, None, 3, ct.compute.SortOrder.DESCENDING)
    >>> out
    array([3, 2, 1])
    """

    ASCENDING = 0
    DESCENDING = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        raise ValueError(f"argument `order`: {value!r:.100} is no SortOrder; pass SortOrder.ASCENDING or "
                         f"SortOrder.DESCENDING")


def order_of(value: Any) -> SortOrder:
    """The order that an argument is, by its number too. ValueError if it is none."""
    if isinstance(value, int | np.integer) and (isinstance(value, SortOrder) or not isinstance(value, enum.Enum)):
        return SortOrder(value)
    return SortOrder._missing_(value)


class DoubleBuffer:
    """Two buffers for a sort, which may overwrite both [RDX-5].

    Parameters
    ----------
    d_current : array
        Has the items before, so `selector` is 0.
    d_alternate : array
        Of the same type and number of items.

    Notes
    -----
    `d_buffers` are both. After a sort `selector` is the number of the one that has the sorted items, and `current()`
    is that one, `alternate()` the other.

    Examples
    --------
    >>> keys = ct.compute.DoubleBuffer(np.array([3, 1, 2]), np.zeros(3, int))
    >>> ct.compute.radix_sort(keys, None, None, None, 3, ct.compute.SortOrder.ASCENDING)
    >>> keys.current()
    array([1, 2, 3])
    """

    def __init__(self, d_current: Any, d_alternate: Any):
        self.d_buffers, self.selector = [d_current, d_alternate], 0

    def current(self) -> Any:
        """The buffer that has the items."""
        return self.d_buffers[self.selector]

    def alternate(self) -> Any:
        """The other one."""
        return self.d_buffers[1 - self.selector]


class Items(NamedTuple):
    """Keys, and the values that move with them, or None."""

    keys: IteratorBase
    values: IteratorBase | None = None

    @property
    def parts(self) -> tuple[IteratorBase, ...]:
        return (self.keys,) if self.values is None else (self.keys, self.values)

    @property
    def kind(self) -> tuple:
        return tuple(part.kind for part in self.parts)

    def state(self, n: int) -> tuple:
        return tuple(part.state(n) for part in self.parts)

    def annotation(self, wide: bool) -> Any:
        return tuple[tuple(part.annotation(wide) for part in self.parts)]

    def named(self, side: str) -> dict[str, IteratorBase]:
        """Its parts by the names of arguments."""
        return dict(zip((f"{side}_keys", f"{side}_values"), self.parts, strict=False))

    def sort(self, target: Items, keys: Keys) -> Any:
        """Tile code that sorts each FEW items at a place into `target`."""
        readers, writers, types = self._to(target)

        def sort_tile(state, target_state, place):
            read = tuple(columns(types[m], types[m].cast(readers[m].tile(state[m], place)), FEW)
                         for m in ct.static_iter(range(len(types))))
            there = place.n - ct.astype(place.i, place.n.dtype) * place.size
            there = there - ct.arange(ct.static_eval(place.size // FEW), dtype=place.n.dtype) * FEW
            rows = keys.in_order(_rows(read, FEW), types, tuple(there > k for k in ct.static_iter(range(FEW))))
            for m in ct.static_iter(range(len(types))):
                items = tuple(rows[k][m] for k in ct.static_iter(range(FEW)))
                writers[m].put(target_state[m], place, joined_values(types[m], items))
        return sort_tile

    def sort_at(self, target: Items, keys: Keys) -> Any:
        """Tile code that sorts FEW items of each lane, from a position on and before `stop`, into `target`."""
        readers, writers, types = self._to(target)

        def sort_few(state, target_state, index, stop):
            there = tuple(index + k < stop for k in ct.static_iter(range(FEW)))
            read = tuple(tuple(types[m].cast(readers[m].at(state[m], index + k, there[k]))
                               for k in ct.static_iter(range(FEW))) for m in ct.static_iter(range(len(types))))
            rows = keys.in_order(_rows(read, FEW), types, there)
            for k in ct.static_iter(range(FEW)):
                for m in ct.static_iter(range(len(types))):
                    writers[m].put_at(target_state[m], index + k, rows[k][m], there[k])
        return sort_few

    def _to(self, target: Items) -> tuple:
        """The readers, the writers of `target`, and the types of what they write."""
        return (tuple(part.reader() for part in self.parts), tuple(part.writer() for part in target.parts),
                tuple(part.value_type for part in target.parts))

    def put(self, target: Items) -> Any:
        """Tile code that stores keys, and the values that lay at `places`, in `target`."""
        writer = target.keys.writer()
        if self.values is None:
            def put_keys(state, target_state, place, keys, places):
                writer.put(target_state[0], place, keys)
            return put_keys
        reader, values_writer, t = self.values.reader(), target.values.writer(), target.values.value_type

        def put_both(state, target_state, place, keys, places):
            values = t.cast(reader.at(state[1], places, place.mask()))
            writer.put(target_state[0], place, keys)
            values_writer.put(target_state[1], place, values)
        return put_both


def _rows(read, count):
    """For each of `count` items of a lane, what was read of it."""
    return tuple(tuple(read[m][k] for m in ct.static_iter(range(len(read)))) for k in ct.static_iter(range(count)))


@dataclasses.dataclass(frozen=True)
class Bits:
    """The order of numbers as that of unsigned integers, whose dtype is `wide`, with `width` bits that count.

    `kind`: "unsigned", "signed" or "float", which has a sign. -0 and +0 have the same bits; NaN are ordered by theirs.
    """

    stored: DType
    wide: DType
    width: int
    kind: str
    descending: bool

    def of(self, keys):
        bits = ct.astype(ct.astype(keys, ct.uint8) if self.kind == "bool" else ct.bitcast(keys, self.stored), self.wide)
        sign = ct.astype(ct.static_eval(1 << (self.width - 1)), self.wide)
        every = ct.astype(ct.static_eval((1 << self.width) - 1), self.wide)
        if self.kind == "float":
            bits = ct.where(bits == sign, ct.astype(0, self.wide), bits)
            bits = ct.where((bits & sign) != 0, bits ^ every, bits | sign)
        if self.kind == "signed":
            bits = bits ^ sign
        if self.descending:
            bits = bits ^ every
        return bits

    def compared(self, keys):
        """Of 64 bits: numbers that compare as the keys do in ascending order, by few instructions."""
        if self.kind != "float":
            return keys
        bits = ct.bitcast(keys, ct.int64)
        negative = bits >> 63
        return (bits ^ negative & ct.int64(0x7FFF_FFFF_FFFF_FFFF)) - negative

    def of_many(self, keys):
        """The same without choices between negative and other keys, which take NumPy long."""
        if self.kind != "float":
            return self.of(keys)
        bits = ct.astype(ct.bitcast(keys, self.stored), self.wide)
        sign = ct.astype(ct.static_eval(1 << (self.width - 1)), self.wide)
        every = ct.astype(ct.static_eval((1 << self.width) - 1), self.wide)
        bits = ct.where(bits == sign, ct.astype(0, self.wide), bits)
        flips = (bits >> ct.static_eval(self.width - 1)) * every | sign
        return bits ^ (flips ^ every if self.descending else flips)


def bits_order(t: ValueType, order: SortOrder) -> Bits:
    """How keys of a type are ordered. TypeError for structs, and for numbers of less than a byte."""
    if not isinstance(t, Number) or t.dtype.bitwidth < 8 and t.dtype != ct.bool_ or t.dtype is ct.tfloat32:
        raise TypeError(f"argument `d_in_keys`: keys need to be numbers of one byte or more, not {t}; merge_sort takes "
                        f"others, with a comparison")
    d, found = t.dtype, info(t.dtype)
    width = found.storage.itemsize * 8
    kind = "bool" if d == ct.bool_ else ("float" if found.format.signed else "unsigned") if found.floating else (
        "signed" if found.storage.kind == "i" else "unsigned")
    stored = {8: ct.uint8, 16: ct.uint16, 32: ct.uint32, 64: ct.uint64}[width]
    return Bits(stored, ct.uint64 if width == 64 else ct.uint32, width, kind, SortOrder(order) == SortOrder.DESCENDING)


def check_pair(source: Items, target: Items) -> None:
    """ValueError for values on one side only; TypeError for outputs that are no arrays, or have other types."""
    if (source.values is None) != (target.values is None):
        name = "d_out_values" if target.values is None else "d_in_values"
        raise ValueError(f"argument `{name}` is None, but there are values on the other side")
    for name, ours, theirs in (("keys", source.keys, target.keys), ("values", source.values, target.values)):
        if theirs is None:
            continue
        if not _is_memory(theirs):
            raise TypeError(f"argument `d_out_{name}`: expected an array, which is read, too, got {theirs!r}")
        if ours.value_type.dtypes != theirs.value_type.dtypes:
            raise TypeError(f"argument `d_out_{name}`: expected {ours.value_type}, as in d_in_{name}, got "
                            f"{theirs.value_type}")


def _is_memory(it: IteratorBase) -> bool:
    """Whether what was written can be read again."""
    return it.reads and it.writes and (it.kind[0] in ("array", "packed array") or bool(it.children) and
                                       all(map(_is_memory, it.children)))


def temporary(plan: Plan, n: int, like: Items) -> Items:
    """Temporary storage for n items. Numbers lie there as in an array, so that both need one kernel only."""
    def values(t: ValueType) -> Stored:
        found = plan.values(n, t)
        if isinstance(t, Number):
            found.kind = ("array", t)
        return found
    return Items(*(values(part.value_type) for part in like.parts))


def check_memory(plan: Plan, n: int, source: Items, target: Items) -> None:
    """ValueError if an output shares memory with another operand, when the plan runs."""
    check_apart(plan, target.named("d_out"), source.named("d_in"), n)


def check_sizes(plan: Plan, n: int, source: Items, target: Items) -> None:
    """ValueError if an operand has fewer than n items, IndexError if a place of one is not there."""
    for side, items in (("d_in", source), ("d_out", target)):
        check_items(plan, "num_items", n, **items.named(side))


def in_arrays(in_keys: Any, in_values: Any) -> bool:
    """Whether neither is a DoubleBuffer."""
    return not isinstance(in_keys, DoubleBuffer) and not isinstance(in_values, DoubleBuffer)


def given_once(in_keys: Any, out_keys: Any, in_values: Any, out_values: Any) -> tuple[tuple, tuple[DoubleBuffer, ...]]:
    """Inputs and outputs of keys and values, with both buffers of a DoubleBuffer as input and output; and the
    DoubleBuffers. ValueError if keys are in one and values are not, or there are outputs besides.
    """
    if not isinstance(in_keys, DoubleBuffer):
        if isinstance(in_values, DoubleBuffer):
            raise ValueError("argument `d_in_values` is a DoubleBuffer, but `d_in_keys` is none")
        return (in_keys, out_keys, in_values, out_values), ()
    for name, given in (("keys", out_keys), ("values", out_values)):
        if given is not None:
            raise ValueError(f"argument `d_out_{name}`: with a DoubleBuffer there is no other output; pass None")
    if in_values is None:
        return (in_keys.current(), in_keys.alternate(), None, None), (in_keys,)
    if not isinstance(in_values, DoubleBuffer):
        raise ValueError("argument `d_in_values`: keys are in a DoubleBuffer, so values must be in one, too")
    return (in_keys.current(), in_keys.alternate(), in_values.current(), in_values.alternate()), (in_keys, in_values)

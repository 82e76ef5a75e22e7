"""Keys and values of sorts: what moves together, and where it is kept."""

from __future__ import annotations

from typing import Any, NamedTuple

from cutile.compute.algorithm import check_count
from cutile.compute.iterators import ArrayIterator, IteratorBase, Stored
from cutile.compute.plans import Plan
from cutile.compute.value_types import Number, ValueType


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
    return it.reads and it.writes and (isinstance(it, ArrayIterator) or bool(it.children) and
                                       all(map(_is_memory, it.children)))


def temporary(plan: Plan, n: int, like: Items) -> Items:
    """Temporary storage for n items. Numbers lie there as in an array, so that both need one kernel only."""
    def values(t: ValueType) -> Stored:
        found = plan.values(n, t)
        if isinstance(t, Number):
            found.kind = ("array", t)
        return found
    return Items(*(values(part.value_type) for part in like.parts))


def check_sizes(n: int, source: Items, target: Items) -> None:
    """ValueError if an operand has fewer than n items."""
    for side, items in (("d_in", source), ("d_out", target)):
        check_count("num_items", n, **{f"{side}_{name}": it for name, it in zip(("keys", "values"), items.parts)})

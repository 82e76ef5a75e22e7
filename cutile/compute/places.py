"""Where a PermutationIterator leads, in host memory: a plan checks before its launches that each place is there. On a
GPU kernels read zeros from places that are not, and store nothing there.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import cutile as ct
from cutile.compute.algorithm import check_count, is_wide, kernels_for, position, power_below
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.composed import PermutationIterator
from cutile.compute.iterators.memory import ARRAYS, ArrayIterator
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.errors import TileValueError

TILE = 1024


class Followed(NamedTuple):
    """The indices of a PermutationIterator in an argument, one for each item.

    size     how many items it permutes; None if there is no end
    indices  an array of them, as an operand
    """

    argument: str
    size: int | None
    indices: IteratorBase


def check_items(plan: Plan, name: str, n: int, **operands: IteratorBase) -> int:
    """The number of items. ValueError if it is negative, or more than an array has; in host memory, when the plan runs,
    IndexError if one of the first n items is at a place that is not there.
    """
    n = check_count(name, n, **operands)
    check_places(plan, n, **operands)
    return n


def check_places(plan: Plan, n: int, **operands: IteratorBase) -> None:
    """In host memory, a check that operands have places for their first n items."""
    found = [one for argument, it in operands.items() for one in follow(plan, argument, it, n)]
    if found:
        plan.call(_checking([(one.argument, one.size) for one in found]), *(one.indices.state(n) for one in found))


def follow(plan: Plan, argument: str, it: IteratorBase, n: int) -> list[Followed]:
    """In host memory, the indices of the first n items, which launches store where they are computed."""
    return list(_follow(plan, argument, it, n, None)) if plan.on_host and n else []


class Room:
    """A check that outputs have room for the items that a launch counts. It keeps no operand.

    sizes   of the outputs, by name
    states  of what else `check` gets
    """

    def __init__(self, plan: Plan, outs: dict[str, IteratorBase], n: int):
        """`n`: at most so many items go to each."""
        self.sizes = {name: it.size() for name, it in outs.items()}
        found = [(k, one) for k, (name, it) in enumerate(outs.items())
                 for one in follow(plan, name, it, n if it.size() is None else min(n, it.size()))]
        self.states = tuple(one.indices.state(n) for _, one in found)
        self._followed = [(k, one.argument, one.size) for k, one in found]

    def check(self, counts: Sequence[int], indices: Sequence[np.ndarray]) -> None:
        """`counts`: how many items go to each output. TileValueError, or IndexError, if one has no room for them."""
        for (name, size), least in zip(self.sizes.items(), counts, strict=True):
            check_size(name, size, least)
        for (k, argument, size), array in zip(self._followed, indices, strict=True):
            check_indices(argument, size, array[:counts[k]])


def check_size(argument: str, size: int | None, least: int) -> None:
    """TileValueError if an output has fewer items than are written to it."""
    if size is not None and size < least:
        raise TileValueError(f"argument `{argument}` has {size} items, and {least} are written")


def check_indices(argument: str, size: int | None, indices: np.ndarray, first: int = 0) -> None:
    """IndexError if one of the indices, from number `first` on, is no place among `size` items."""
    unsigned = indices[first:].view(np.dtype(f"u{indices.itemsize}"))  # negative ones are large
    limit = 1 << 8 * indices.itemsize - (indices.dtype.kind == "i")
    limit = limit if size is None else min(size, limit)
    if unsigned.size and unsigned.max() >= limit:
        place = first + int(np.argmax(unsigned >= limit))
        there = "is negative" if size is None else f"is out of range: there are {size} items"
        raise IndexError(f"argument `{argument}`: index {indices[place]} of a PermutationIterator, at place {place}, "
                         f"{there}")


def _follow(plan: Plan, argument: str, it: IteratorBase, n: int, at: IteratorBase | None) -> Iterator[Followed]:
    """`at`: the places of the items, an operand; None for the first ones."""
    if not isinstance(it, PermutationIterator):
        for c in it.children:
            yield from _follow(plan, argument, c, n, at)
        return
    values, indices = it.children
    yield from _follow(plan, argument, indices, n, at)
    chosen = _stored(plan, indices if at is None else PermutationIterator(indices, at), n)
    yield Followed(argument, values.size(), chosen)
    yield from _follow(plan, argument, values, n, chosen)


def unbounded(argument: str, it: IteratorBase, at: IteratorBase | None = None) -> Iterator[Followed]:
    """The indices of an operand's items, however many, for those who look at some of them. Nothing is launched."""
    if not isinstance(it, PermutationIterator):
        for c in it.children:
            yield from unbounded(argument, c, at)
        return
    values, indices = it.children
    yield from unbounded(argument, indices, at)
    chosen = indices if at is None else PermutationIterator(indices, at)
    yield Followed(argument, values.size(), chosen)
    yield from unbounded(argument, values, chosen)


def _stored(plan: Plan, indices: IteratorBase, n: int) -> IteratorBase:
    """The first n of them in an array."""
    if isinstance(indices, ArrayIterator):
        return indices
    found, wide = plan.values(n, indices.value_type), is_wide(n, indices)
    size = power_below(n, TILE)
    plan.launch(-(-n // size), kernels_for(("indices", indices.kind, wide), _kernel, indices, wide), indices.state(n),
                found.state(n), n, size, n % size == 0)
    return found


def _kernel(indices: IteratorBase, wide: bool) -> Any:
    reader = indices.reader()

    @ct.kernel
    def store_indices(source: indices.annotation(wide), target: ARRAYS[wide], n: position(wide), size: ct.Constant[int],
                      whole: ct.Constant[bool]):
        place = Place(ct.bid(0), size, n, whole)
        ct.store(target, (place.i,), reader.tile(source, place))

    return store_indices


def _checking(of: list[tuple[str, int | None]]) -> Callable:
    """A function of arrays of indices that checks each."""
    def check(*arrays: np.ndarray) -> None:
        for (argument, size), indices in zip(of, arrays, strict=True):
            check_indices(argument, size, indices)

    return check

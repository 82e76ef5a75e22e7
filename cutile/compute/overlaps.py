"""The steps of a plan that check where the arrays of a call lie: apart, or in one place."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cutile.compute.arrays import DeviceArray
from cutile.compute.iterators.base import IteratorBase, Reversed
from cutile.compute.iterators.memory import InMemory
from cutile.errors import TileUnsupportedFeatureError
from cutile.runtime import launch_cache

if TYPE_CHECKING:
    from cutile.compute.plans import Plan


def check_apart(plan: Plan, written: dict[str, IteratorBase], read: dict[str, IteratorBase], n: int) -> None:
    """Each call of a plan begins with a check that the first n items of operands that are written share no memory with
    another operand's.
    """
    plan.apart(*_named_lines(written, read, n))


def check_in_place(plan: Plan, written: dict[str, IteratorBase], read: dict[str, IteratorBase], n: int) -> None:
    """The same for algorithms that may write each item where it was read: item i of an output may be item i of an
    input.
    """
    plan.apart(*_named_lines(written, read, n), in_place=True)


def _named_lines(written: dict[str, IteratorBase], read: dict[str, IteratorBase], n: int) -> tuple[list[Line], int]:
    """Where operands lie, and how many of these lines are written, which come first."""
    lines = [line for group in (written, read) for name, it in group.items()
             for line in _lines(name, it, n, (), group is written)]
    lines.sort(key=lambda line: not line.written)
    return lines, sum(line.written for line in lines)


def _lines(argument: str, it: IteratorBase, n: int | None, order: tuple | None, written: bool) -> Iterator[Line]:
    """Where the first n items lie, or all that there are."""
    if isinstance(it, InMemory):
        size = it.size() if n is None else min(n, it.size())
        yield Line(argument, it.array, it.start * it.array.stride, size, order, written)
    if not it.in_order:
        n, order = None, (*order, it.start) if isinstance(it, Reversed) and order is not None else None
    for c in it.children:
        yield from _lines(argument, c, n, order, written and c in it.targets())


class Line(NamedTuple):
    """Items of an argument: `size` of them in an array, from byte `start` of it on.

    `order`: what says which of these is item i of the argument; () for the ith, None if nothing but the run does.
    """

    argument: str
    array: DeviceArray
    start: int
    size: int
    order: tuple | None
    written: bool

    def is_like(self, other: Line) -> bool:
        """Whether item i of both arguments is one item, if they begin at one address."""
        return (self.order is not None and self.order == other.order and self.array.stride == other.array.stride
                and self.array.itemsize == other.array.itemsize)


class Apart:
    """A check that lines of memory share none.

    pairs    two arguments, their roots, whether they may be in one place, and what `shared` gives
    how      in what way they may not share memory
    """

    __slots__ = ("_for_c", "_how", "_pairs")

    def __init__(self, pairs: list[tuple], how: str):
        self._pairs, self._how = pairs, how
        self._for_c = self.in_c(0)

    def in_c(self, alignment: int) -> bytes | None:
        """The pairs as C code takes them (`run_steps`); None where it cannot, as with numbers of more than 64 bits."""
        try:
            return b"".join(_PAIR.pack(*numbers) for _, _, *numbers in self._pairs)
        except struct.error:
            return None

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        if self._for_c is not None and (c := launch_cache.extension()) is not None and c.apart(self._for_c, roots):
            return
        for one, other, i, j, alike, moved, low, high, step, item, last in self._pairs:
            a, b = roots[i], roots[j]
            between = (b if type(b) is int else _address(b)) - (a if type(a) is int else _address(a)) + moved
            if low < between < high and not (step and item <= between % step <= last) and not (
                    alike and between == 0):
                raise ValueError(f"arguments `{one}` and `{other}` share memory{self._how}; pass another array as "
                                 f"`{one}`")


def _address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


_PAIR = struct.Struct("9q")


class Alike:
    """A check that two roots are one array: one that an operator captures which stands in two places."""

    __slots__ = ("_one", "_other")

    def __init__(self, one: int, other: int):
        self._one, self._other = one, other

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        if _layout_of(roots[self._one]) != _layout_of(roots[self._other]):
            raise TileUnsupportedFeatureError(
                "two operators of equal code capture different arrays, and equal operators share code",
                help="tell the functions apart, for example by a default argument: def f(x, which=1): …")


def _layout_of(root: Any) -> Any:
    return root if type(root) is int else layout(root)


def shared(a: Line, b: Line) -> tuple[int, int, int, int, int, int]:
    """When lines share memory, from how far apart the addresses of their arrays are. With what the first number adds,
    it is between the second and the third, and no multiple of `step` plus what leaves room for both items.
    """
    spans = [(min(0, (x.size - 1) * x.array.stride), max(0, (x.size - 1) * x.array.stride) + x.array.itemsize)
             for x in (a, b)]
    (first, end), (other, other_end) = spans
    step = gcd(a.array.stride, b.array.stride)
    return b.start - a.start, first - other_end, end - other, step, a.array.itemsize, step - b.array.itemsize


def layout(a: np.ndarray) -> tuple:
    return a.ctypes.data, a.dtype, a.shape, a.strides

"""The base of all iterators: what an operand of an algorithm is to a kernel, and to the plan of a call.

    kind          what compiled code depends on: equal kinds share code, whatever their state
    reader()      its tile code (readers.py)
    state(n)      the kernel's arguments for it: a piece of an array, a number, or a tuple of states
    annotation()  the annotation of that parameter
    slots()       the arrays and numbers that it is made of, which another operand of its kind may have others of
    places()      the positions in arrays where it stands

`value_type` is the type of its items. `it + k` is the iterator advanced by k items.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from operator import index
from typing import Annotated, Any

import cutile as ct
from cutile.compute import readers
from cutile.compute.arrays import DeviceArray, Held
from cutile.compute.value_types import ValueType
from cutile.front.context import Hidden
from cutile.runtime.annotations import ScalarAnnotation


class IteratorBase:
    """The base of all iterators.

    Attributes
    ----------
    value_type
        The type of the items.
    kind
        What compiled code depends on; it is shared by iterators of equal kinds.
    children
        The iterators that it is made of.
    reads, writes
        Whether it may be an input, and an output.
    in_order
        Whether item i is made of item i of each child.

    Examples
    --------
    >>> isinstance(ct.compute.CountingIterator(3), ct.compute.IteratorBase)
    True
    """

    value_type: ValueType
    kind: tuple
    children: tuple[IteratorBase, ...] = ()
    reads = writes = True
    in_order = True  # its item i is made of item i of each child
    _signature: tuple[tuple, list] | None = None

    def targets(self) -> tuple[IteratorBase, ...]:
        """The children that are written to where it is an output."""
        return self.children

    def signature(self) -> tuple[tuple, list]:
        """What launches depend on, and what differs between calls with equal ones: addresses, arrays and numbers."""
        found = self._signature
        if found is None:
            slots = list(self.slots())
            found = self._signature = ((self.kind, tuple(s.part for s in slots), self.places()),
                                       [s.root for s in slots])
        return found

    def reader(self) -> Any:
        raise NotImplementedError

    def writer(self) -> Any:
        return self.reader()

    def state(self, n: int | None) -> Any:
        """The kernel's arguments; where arrays lie in order, they are cut to `n` items, so that kernels need no masks.
        """
        return tuple(c.state(n) for c in self.children)

    def annotation(self, wide: bool) -> Any:
        """`wide`: positions are int64."""
        return tuple[tuple(c.annotation(wide) for c in self.children)]

    def reversed(self) -> IteratorBase:
        """The items backwards from the one where the iterator stands."""
        return Reversed(self, 0)

    def slots(self) -> Iterator[DeviceArray | Held]:
        for c in self.children:
            yield from c.slots()

    def places(self) -> tuple:
        return tuple(c.places() for c in self.children)

    def watched(self) -> bool:
        """Whether an operator in it captures something whose contents may change."""
        return any(c.watched() for c in self.children)

    def on_some_gpu(self, n: int) -> IteratorBase:
        """An iterator of this kind over arrays of n items that are nowhere: kernels can be compiled for it."""
        found = copy.copy(self)
        found._signature, found.children = None, tuple(c.on_some_gpu(n) for c in self.children)
        return found

    def captured(self) -> Iterator[tuple[Hidden, Any]]:
        """What stands for the arrays that operators in it capture, each with the state of the array."""
        for c in self.children:
            yield from c.captured()

    def arrays(self) -> Iterator[DeviceArray]:
        """The arrays that it is made of."""
        return (s for s in self.slots() if isinstance(s, DeviceArray))

    def written(self) -> Iterator[DeviceArray]:
        """The arrays that are written to where it is an output."""
        for c in self.children:
            yield from c.written()

    def outside(self) -> int:
        """How many items before those of an array it begins, as after an advance by a negative number."""
        return max((c.outside() for c in self.children), default=0)

    def size(self) -> int | None:
        """How many items there are; None if there is no end."""
        return min((s for c in self.children if (s := c.size()) is not None), default=None)

    def advanced(self, k: int) -> IteratorBase:
        """The iterator k items further on."""
        raise NotImplementedError

    def __add__(self, k: int) -> IteratorBase:
        try:
            return self.advanced(index(k))
        except TypeError:
            raise TypeError(f"an iterator is advanced by a number of items, an int, not by {k!r:.100}") from None

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.value_type}"


class Reversed(IteratorBase):
    """The items of an iterator from number `start` on, backwards."""

    in_order = False

    def __init__(self, inner: IteratorBase, start: int):
        self.children, self.start = (inner,), start
        self.value_type, self.reads, self.writes = inner.value_type, inner.reads, inner.writes
        self.kind = ("reversed", inner.kind)

    def reader(self) -> Any:
        return readers.Reversed(self.children[0].reader())

    def writer(self) -> Any:
        return readers.Reversed(self.children[0].writer())

    def state(self, n: int | None) -> Any:
        return self.children[0].state(None), self.start

    def places(self) -> tuple:
        return self.start, self.children[0].places()

    def annotation(self, wide: bool) -> Any:
        return tuple[self.children[0].annotation(wide), Annotated[int, ScalarAnnotation(
            ct.int64 if wide else ct.int32)]]

    def reversed(self) -> IteratorBase:
        return self.children[0] + self.start

    def on_some_gpu(self, n: int) -> IteratorBase:
        found = super().on_some_gpu(n)
        found.start = n - 1
        return found

    def size(self) -> int | None:
        return None

    def advanced(self, k: int) -> Reversed:
        return type(self)(self.children[0], self.start - k)

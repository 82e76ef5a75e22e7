"""Operators that capture arrays, which kernels take as hidden parameters [OPR-5]."""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from cutile.compute.arrays import DeviceArray, Held
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.operators import Operator, operator
from cutile.front.context import Hidden


class Capturing(Operator):
    """An operator with the arrays that a function captures."""

    def __init__(self, op: Operator, arrays: Iterable[Any]):
        super().__init__(op.function, op.watched, op.hidden)
        self._op, self.results = op, op.results
        self.arrays = tuple(map(ArrayIterator, arrays))

    @property
    def key(self) -> Operator:
        return self._op

    def slots(self) -> Iterator[DeviceArray | Held]:
        for a in self.arrays:
            yield a.array

    def captured(self) -> Iterator[tuple[Hidden, Any]]:
        """What stands for its arrays, each with the state of the array."""
        return zip(self.hidden, (a.state(None) for a in self.arrays), strict=True)

    def on_some_gpu(self, n: int) -> Capturing:
        """The operator with arrays that are nowhere."""
        found = Capturing(self._op, ())
        found.arrays = tuple(a.on_some_gpu(min(n, 16)) for a in self.arrays)  # code does not depend on their sizes
        return found


def capturing(op: Any, argument: str) -> Operator:
    """The operator that an argument stands for, with the arrays that it captures, if it captures any."""
    arrays: dict[int, Any] = {}
    found = operator(op, argument, arrays)
    if isinstance(op, types.FunctionType):
        found.given = weakref.ref(op)
    return Capturing(found, arrays.values()) if arrays else found

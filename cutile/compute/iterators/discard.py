"""The iterator that writes to no memory."""

from __future__ import annotations

from typing import Any

import cutile as ct
from cutile.compute import readers
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import as_iterator, nested
from cutile.compute.value_types import Number, ValueType


class DiscardIterator(IteratorBase):
    """An output whose items vanish; read, it gives nothing defined [ITR-8].

    Parameters
    ----------
    reference : array or iterator, optional
        Has the type of the items; without one they are uint8.

    Examples
    --------
    >>> x, kept, count = np.array([3, 0, 2]), np.zeros(3, int), np.zeros(1, int)
    >>> ct.compute.unique_by_key(x, x, kept, ct.compute.DiscardIterator(x), count, ct.compute.OpKind.EQUAL_TO, 3)
    >>> kept
    array([3, 0, 2])
    """

    def __init__(self, reference: Any = None):
        self.value_type = Number(ct.uint8) if reference is None else as_iterator(reference).value_type
        self.kind = ("discard", self.value_type)

    def reader(self) -> Any:
        def discarded(t: ValueType) -> Any:
            if isinstance(t, Number):
                return readers.Discarded(t.dtype)
            return readers.Fields(t.cls, tuple(map(discarded, t.parts)))
        return discarded(self.value_type)

    def state(self, n: int | None) -> Any:
        return nested(self.value_type, [()] * len(self.value_type.dtypes))

    def annotation(self, wide: bool) -> Any:
        return nested(self.value_type, [tuple[()]] * len(self.value_type.dtypes), tuple_class=True)

    def reversed(self) -> IteratorBase:
        return self

    def size(self) -> int | None:
        return None

    def advanced(self, k: int) -> DiscardIterator:
        return self

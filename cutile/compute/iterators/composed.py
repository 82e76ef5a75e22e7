"""Iterators that zip others, and that take the items of others in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cutile.compute import readers
from cutile.compute.arrays import DeviceArray
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import as_iterator
from cutile.compute.value_types import Number, tuple_of
from cutile.dtypes import info


class ZipIterator(IteratorBase):
    """Items of several iterators or arrays, or of one list of them, as structs with the fields field_0, field_1, …
    [ITR-5].

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> out = np.zeros(3, int)
    >>> pairs = ct.compute.ZipIterator(np.array([1, 2, 3]), np.array([10, 20, 30]))
    >>> ct.compute.unary_transform(pairs, out, lambda p: p[0] + p[1], 3)
    >>> out
    array([11, 22, 33])
    """

    def __init__(self, *iterators: Any):
        if len(iterators) == 1 and isinstance(iterators[0], list | tuple):
            iterators = tuple(iterators[0])
        if not iterators:
            raise ValueError("ZipIterator needs one iterator or array at least")
        self.children = tuple(map(as_iterator, iterators))
        self.value_type = tuple_of(tuple(c.value_type for c in self.children)).value_type
        self.kind = ("zip", *(c.kind for c in self.children))
        self.reads, self.writes = (all(getattr(c, way) for c in self.children) for way in ("reads", "writes"))

    def reader(self) -> Any:
        return readers.Fields(self.value_type.cls, tuple(c.reader() for c in self.children))

    def writer(self) -> Any:
        return readers.Fields(self.value_type.cls, tuple(c.writer() for c in self.children))

    def reversed(self) -> IteratorBase:
        return ZipIterator(*(c.reversed() for c in self.children))

    def advanced(self, k: int) -> ZipIterator:
        return ZipIterator(*(c + k for c in self.children))


class PermutationIterator(IteratorBase):
    """values[indices[i]] [ITR-6]. Advancing moves the indices; the values stay where they are.

    Parameters
    ----------
    values : array or iterator
        The items.
    indices : array or iterator
        Integers of any dtype.

    Raises
    ------
    TypeError
        If the indices are no integers.
    IndexError
        In a call on arrays in host memory, if an index that it uses is negative, or beyond the values. On a GPU such
        items are read as zeros, and not written.

    Examples
    --------
    >>> out = np.zeros(3, int)
    >>> items = ct.compute.PermutationIterator(np.array([10, 20, 30]), np.array([2, 0, 0]))
    >>> ct.compute.unary_transform(items, out, ct.compute.OpKind.IDENTITY, 3)
    >>> out
    array([30, 10, 10])
    """

    in_order = False

    def __init__(self, values: Any, indices: Any):
        self.children = as_iterator(values), as_iterator(indices)
        of_index = self.children[1].value_type
        if not isinstance(of_index, Number) or not info(of_index.dtype).integral:
            raise TypeError(f"the indices of PermutationIterator must be integers, not {of_index}")
        self.value_type = self.children[0].value_type
        self.kind = ("permutation", *(c.kind for c in self.children))
        self.reads, self.writes = self.children[0].reads, self.children[0].writes

    def targets(self) -> tuple[IteratorBase, ...]:
        return self.children[:1]

    def reader(self) -> Any:
        return readers.Permuted(self.children[0].reader(), self.children[1].reader())

    def writer(self) -> Any:
        return readers.Permuted(self.children[0].writer(), self.children[1].reader())

    def state(self, n: int | None) -> Any:
        return self.children[0].state(None), self.children[1].state(n)

    def reversed(self) -> IteratorBase:
        return PermutationIterator(self.children[0], self.children[1].reversed())

    def written(self) -> Iterator[DeviceArray]:
        return self.children[0].written()

    def size(self) -> int | None:
        return self.children[1].size()

    def advanced(self, k: int) -> PermutationIterator:
        return PermutationIterator(self.children[0], self.children[1] + k)


def ReverseIterator(underlying: Any) -> IteratorBase:
    """The items of an array from the last one on, backwards; of an iterator, from where it stands [ITR-7].

    Parameters
    ----------
    underlying : array or iterator
        The items.

    Returns
    -------
    iterator

    Examples
    --------
    >>> out = np.zeros(3, int)
    >>> items = ct.compute.ReverseIterator(np.array([1, 2, 3]))
    >>> ct.compute.unary_transform(items, out, ct.compute.OpKind.IDENTITY, 3)
    >>> out
    array([3, 2, 1])
    """
    it = as_iterator(underlying)
    if not isinstance(underlying, IteratorBase):
        it = it + (it.size() - 1)
    return it.reversed()

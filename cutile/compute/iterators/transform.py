"""Iterators that apply an operator to items as they are read, or before they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cutile.compute import readers
from cutile.compute.arrays import DeviceArray, Held
from cutile.compute.captured import Capturing, capturing
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import as_iterator
from cutile.compute.operators import Operator
from cutile.compute.results import result_of
from cutile.compute.value_types import ValueType, annotations_of, value_type
from cutile.front.context import Hidden


class TransformIterator(IteratorBase):
    """An operator of each item of another iterator or array [ITR-3].

    Parameters
    ----------
    underlying : array or iterator
        What is transformed.
    transform_op : callable or OpKind
        A function of one item; it may capture arrays.
    value_type : optional
        The type of the results; by default the return annotation of the operator, or what it gives.
    is_input : bool, default True
        False: an output, like TransformOutputIterator.

    Examples
    --------
    >>> out = np.zeros(3, int)
    >>> items = ct.compute.TransformIterator(np.arange(3), lambda v: v * v)
    >>> ct.compute.unary_transform(items, out, ct.compute.OpKind.IDENTITY, 3)
    >>> out
    array([0, 1, 4])
    """

    def __init__(self, underlying: Any, transform_op: Callable, value_type: Any = None, is_input: bool = True):
        inner, op = as_iterator(underlying), capturing(transform_op, "transform_op")
        annotated = annotations_of(transform_op).get("return")
        t = _given(value_type if value_type is not None else annotated)
        if t is None or is_input:
            found = result_of(op, inner.value_type, argument="transform_op", to=t)
            t = found.type if t is None else t
        self._set(inner, op, t)
        self.reads, self.writes = is_input, not is_input

    def _set(self, inner: IteratorBase, op: Operator, t: ValueType) -> None:
        self.children, self.op, self.value_type = (inner,), op, t
        self.kind = ("transform", inner.kind, op.key, t)

    def _like(self, inner: IteratorBase) -> TransformIterator:
        found = object.__new__(type(self))
        found._set(inner, self.op, self.value_type)
        found.reads, found.writes = self.reads, self.writes
        return found

    def reader(self) -> Any:
        return readers.Transformed(self.children[0].reader(), self.op.function, self.value_type)

    def writer(self) -> Any:
        return readers.TransformedOutput(self.children[0].writer(), self.op.function, self.value_type)

    def state(self, n: int | None) -> Any:
        return self.children[0].state(n)

    def annotation(self, wide: bool) -> Any:
        return self.children[0].annotation(wide)

    def watched(self) -> bool:
        return self.op.watched or self.children[0].watched()

    def slots(self) -> Iterator[DeviceArray | Held]:
        yield from super().slots()
        if isinstance(self.op, Capturing):
            yield from self.op.slots()

    def captured(self) -> Iterator[tuple[Hidden, Any]]:
        yield from super().captured()
        if isinstance(self.op, Capturing):
            yield from self.op.captured()

    def on_some_gpu(self, n: int) -> IteratorBase:
        found = super().on_some_gpu(n)
        if isinstance(self.op, Capturing):
            found.op = self.op.on_some_gpu(n)
        return found

    def reversed(self) -> IteratorBase:
        return self._like(self.children[0].reversed())

    def advanced(self, k: int) -> TransformIterator:
        return self._like(self.children[0] + k)


class TransformOutputIterator(TransformIterator):
    """An output that writes `transform_op(value)` to another one [ITR-4].

    Parameters
    ----------
    underlying : array or iterator
        Takes the results.
    transform_op : callable
        A function of one value.
    output_value_type : optional
        The type of the values that it takes; by default the annotation of the operator's parameter.

    Raises
    ------
    ValueError
        If neither says the type of the values.

    Examples
    --------
    >>> out = np.zeros(3)
    >>> halves = ct.compute.TransformOutputIterator(out, lambda v: v / 2, np.float64)
    >>> ct.compute.unary_transform(np.array([1.0, 2, 3]), halves, ct.compute.OpKind.IDENTITY, 3)
    >>> out
    array([0.5, 1. , 1.5])
    """

    def __init__(self, underlying: Any, transform_op: Callable, output_value_type: Any = None):
        annotations = {k: v for k, v in annotations_of(transform_op).items() if k != "return"}
        t = _given(output_value_type if output_value_type is not None else next(iter(annotations.values()), None))
        if t is None:
            raise ValueError("TransformOutputIterator needs the type of the values that it takes: annotate the "
                             "parameter of transform_op, or pass output_value_type=")
        inner, op = as_iterator(underlying), capturing(transform_op, "transform_op")
        result_of(op, t, argument="transform_op", to=inner.value_type)
        self._set(inner, op, t)
        self.reads = False


def _given(t: Any) -> ValueType | None:
    """The type that an annotation or argument says; None if it says none."""
    return None if t is None or isinstance(t, str) else value_type(t)

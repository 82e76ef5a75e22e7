"""Iterators: inputs and outputs of algorithms that are no arrays, or more than arrays [ITR-*].

Every operand of an algorithm is an `IteratorBase`; `as_iterator` wraps arrays. To a kernel an iterator is

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
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

import numpy as np

import cutile as ct
from cutile.compute import operators, readers
from cutile.compute.arrays import DeviceArray, Held, array_of
from cutile.compute.operators import Operator, operator
from cutile.compute.value_types import Number, Struct, ValueType, annotations_of, tuple_of, value_type
from cutile.dtypes import info
from cutile.front.context import Hidden
from cutile.runtime.annotations import ArrayAnnotation, ScalarAnnotation

INT64 = Annotated[int, ScalarAnnotation(ct.int64)]
ARRAYS = {wide: Annotated[Any, ArrayAnnotation(index_dtype=ct.int64 if wide else ct.int32)] for wide in (False, True)}


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
        return _Reversed(self, 0)

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

    def size(self) -> int | None:
        """How many items there are; None if there is no end."""
        return min((s for c in self.children if (s := c.size()) is not None), default=None)

    def __add__(self, k: int) -> IteratorBase:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.value_type}"


class ArrayIterator(IteratorBase):
    """An array, from an item on. Several dimensions are read in memory order."""

    def __init__(self, array: Any, start: int = 0):
        self._set(array if isinstance(array, DeviceArray) else array_of(array), start)
        self.value_type = self.array.value_type
        self.kind = ("array", self.value_type)

    def _set(self, array: DeviceArray, start: int) -> None:
        self.array, self.start, self._pieces = array, start, array.pieces()

    def reader(self) -> Any:
        return _reader_of(self.value_type)

    def state(self, n: int | None) -> Any:
        size = self.array.size
        stop = size if n is None else min(size, self.start + n)
        return _nested(self.value_type, [piece.cut(self.start, stop) for piece in self._pieces])

    def annotation(self, wide: bool) -> Any:
        return _nested(self.value_type, [ARRAYS[wide]] * len(self._pieces), tuple_class=True)

    def reversed(self) -> IteratorBase:
        return _Reversed(ArrayIterator(self.array), self.start)

    def on_some_gpu(self, n: int) -> IteratorBase:
        found = super().on_some_gpu(n)
        ArrayIterator._set(found, self.array.on_some_gpu(n), 0)
        return found

    def slots(self) -> Iterator[DeviceArray | Held]:
        yield self.array

    def places(self) -> tuple:
        return (self.start,)

    def size(self) -> int | None:
        return self.array.size - self.start

    def __add__(self, k: int) -> ArrayIterator:
        return ArrayIterator(self.array, self.start + k)


def _reader_of(t: ValueType) -> Any:
    if isinstance(t, Number):
        return readers.Elements(t.dtype)
    return readers.Fields(t.cls, tuple(map(_reader_of, t.parts)))


def _nested(t: ValueType, leaves: list, tuple_class: bool = False) -> Any:
    """Arrays, one for each number of an item, nested as its structs are."""
    if isinstance(t, Number):
        return leaves[0]
    parts = tuple(_nested(part, leaves[a:b], tuple_class)
                  for part, a, b in zip(t.parts, t.starts[:-1], t.starts[1:], strict=True))
    return tuple[parts] if tuple_class else parts


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


class Stored(IteratorBase):
    """Values in temporary storage: an array of its own for each number of a value."""

    def __init__(self, t: ValueType, arrays: list):
        self.value_type, self._arrays = t, arrays
        self.kind = ("stored", t)

    def reader(self) -> Any:
        return _reader_of(self.value_type)

    def state(self, n: int | None) -> Any:
        return _nested(self.value_type, self._arrays)

    def annotation(self, wide: bool) -> Any:
        return _nested(self.value_type, [ARRAYS[wide]] * len(self._arrays), tuple_class=True)

    def __add__(self, k: int) -> Stored:
        found = Stored(self.value_type, [a.advanced(k) for a in self._arrays])
        found.kind = self.kind
        return found


class _Value(IteratorBase):
    """What constant and counting iterators share: a value that travels in ints."""

    def __init__(self, value: Any, t: ValueType):
        self.value, self.value_type = value, t
        self.numbers = t.numbers(value)
        self._held = held(t, self.numbers)

    def slots(self) -> Iterator[DeviceArray | Held]:
        yield from self._held

    def state(self, n: int | None) -> Any:
        return self._held

    def annotation(self, wide: bool) -> Any:
        return tuple[(INT64,) * len(self.numbers)]


_AS_FLOAT, _AS_INT = struct.Struct("d"), struct.Struct("q")


def bits_of(x: bool | int | float, dtype: ct.DType) -> int:
    """A number as the int in which it travels."""
    if info(dtype).floating:
        return _AS_INT.unpack(_AS_FLOAT.pack(x))[0]
    return (int(x) + (1 << 63)) % (1 << 64) - (1 << 63)


def held(t: ValueType, numbers: tuple) -> tuple[Held, ...]:
    """The numbers in a value as kernels take them."""
    return tuple(Held(bits_of(x, d)) for x, d in zip(numbers, t.dtypes, strict=True))


def type_of_value(value: Any) -> ValueType:
    """The type of a value of the host, as NumPy types it."""
    if isinstance(found := getattr(type(value), "value_type", None), Struct):
        return found
    dtype = getattr(value, "dtype", None)
    return value_type(np.asarray(value).dtype if dtype is None else dtype)


def constant_reader(t: ValueType) -> readers.Constant:
    return readers.Constant(t, tuple(readers.Immediate(d, info(d).floating) for d in t.dtypes))


class ConstantIterator(_Value):
    """The same value everywhere [ITR-2].

    Parameters
    ----------
    value : number or struct
        The value, typed as by NumPy.

    Examples
    --------
    >>> out = np.zeros(3, int)
    >>> items = ct.compute.ConstantIterator(7)
    >>> ct.compute.unary_transform(items, out, ct.compute.OpKind.IDENTITY, 3)
    >>> out
    array([7, 7, 7])
    """

    writes = False

    def __init__(self, value: Any):
        super().__init__(value, type_of_value(value))
        self.kind = ("constant", self.value_type)

    def reader(self) -> Any:
        return constant_reader(self.value_type)

    def reversed(self) -> IteratorBase:
        return self

    def size(self) -> int | None:
        return None

    def __add__(self, k: int) -> ConstantIterator:
        return self


class CountingIterator(_Value):
    """start, start + 1, …, which wraps in start's dtype [ITR-1]. A Python int counts in int64.

    Parameters
    ----------
    start : number
        The first item.

    Examples
    --------
    >>> out = np.zeros(3, int)
    >>> items = ct.compute.CountingIterator(5)
    >>> ct.compute.unary_transform(items, out, ct.compute.OpKind.IDENTITY, 3)
    >>> out
    array([5, 6, 7])
    """

    writes = False

    def __init__(self, start: Any):
        super().__init__(start, type_of_value(start))
        if not isinstance(self.value_type, Number):
            raise TypeError(f"CountingIterator counts numbers, not {self.value_type}")
        self.kind = ("counting", self.value_type)

    def reader(self) -> Any:
        d = self.value_type.dtype
        return readers.Counting(readers.Immediate(d, info(d).floating))

    def state(self, n: int | None) -> Any:
        return self._held[0]

    def annotation(self, wide: bool) -> Any:
        return INT64

    def size(self) -> int | None:
        return None

    def __add__(self, k: int) -> CountingIterator:
        d = self.value_type.dtype
        start = self.numbers[0] + k
        if info(d).integral:
            start = np.array(start % (1 << d.bitwidth), f"u{d.bitwidth // 8}").view(info(d).storage)
        return CountingIterator(np.asarray(start, info(d).storage))


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
        inner, op = as_iterator(underlying), _capturing(transform_op)
        annotated = annotations_of(transform_op).get("return")
        t = _given(value_type if value_type is not None else annotated)
        if t is None:
            t = operators.result_of(op, inner.value_type).type
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

    def __add__(self, k: int) -> TransformIterator:
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
        self._set(as_iterator(underlying), _capturing(transform_op), t)
        self.reads = False


def _capturing(op: Any) -> Operator:
    arrays: dict[int, Any] = {}
    found = operator(op, "transform_op", arrays)
    return Capturing(found, arrays.values()) if arrays else found


def _given(t: Any) -> ValueType | None:
    """The type that an annotation or argument says; None if it says none."""
    return None if t is None or isinstance(t, str) else value_type(t)


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

    def __add__(self, k: int) -> ZipIterator:
        return ZipIterator(*(c + k for c in self.children))


class PermutationIterator(IteratorBase):
    """values[indices[i]] [ITR-6]. Advancing moves the indices; the values stay where they are.

    Parameters
    ----------
    values : array or iterator
        The items.
    indices : array or iterator
        Integers.

    Raises
    ------
    TypeError
        If the indices are no integers.

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

    def reader(self) -> Any:
        return readers.Permuted(self.children[0].reader(), self.children[1].reader())

    def writer(self) -> Any:
        return readers.Permuted(self.children[0].writer(), self.children[1].reader())

    def state(self, n: int | None) -> Any:
        return self.children[0].state(None), self.children[1].state(n)

    def reversed(self) -> IteratorBase:
        return PermutationIterator(self.children[0], self.children[1].reversed())

    def size(self) -> int | None:
        return self.children[1].size()

    def __add__(self, k: int) -> PermutationIterator:
        return PermutationIterator(self.children[0], self.children[1] + k)


class _Reversed(IteratorBase):
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
        return self.start + 1 if isinstance(self.children[0], ArrayIterator) else None

    def __add__(self, k: int) -> _Reversed:
        return _Reversed(self.children[0], self.start - k)


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
        return _nested(self.value_type, [()] * len(self.value_type.dtypes))

    def annotation(self, wide: bool) -> Any:
        return _nested(self.value_type, [tuple[()]] * len(self.value_type.dtypes), tuple_class=True)

    def reversed(self) -> IteratorBase:
        return self

    def size(self) -> int | None:
        return None

    def __add__(self, k: int) -> DiscardIterator:
        return self


def ShuffleIterator(num_items: int, seed: int = 0) -> IteratorBase:
    """A permutation of 0, 1, … num_items - 1 as int64, which the number of items and the seed fix [ITR-9].

    Parameters
    ----------
    num_items : int
        How many items there are.
    seed : int, default 0
        Another one gives another order. All such iterators share compiled code.

    Returns
    -------
    iterator

    Raises
    ------
    ValueError
        If there are no items.

    Examples
    --------
    >>> out = np.zeros(5, int)
    >>> ct.compute.unary_transform(ct.compute.ShuffleIterator(5, seed=1), out, ct.compute.OpKind.IDENTITY, 5)
    >>> sorted(out.tolist())
    [0, 1, 2, 3, 4]
    """
    n = int(num_items)
    if n <= 0:
        raise ValueError(f"ShuffleIterator needs a positive number of items, got {n}")
    half = max(1, -(-(n - 1).bit_length() // 2))
    parts = CountingIterator(np.int64(0)), *(ConstantIterator(np.int64(bits_of(v % (1 << 64), ct.int64))) for v in (
        n, half, int(seed)))
    return TransformIterator(ZipIterator(*parts), _shuffled)


def _shuffled(p):
    """A Feistel network permutes the numbers of 2 * half bits; it is applied until the number is below n."""
    i, n, half, seed = p[0], p[1], p[2], p[3]
    i = _mixed(i, half, seed)
    while i >= n:
        i = _mixed(i, half, seed)
    return i


def _mixed(i, half, seed):
    mask = (np.int64(1) << half) - 1
    left, right = i >> half, i & mask
    for turn in range(6):
        word = (right + seed * 0x1E3779B97F4A7C15 + turn) * 0x3F58476D1CE4E5B9
        word = (word ^ ((word >> 29) & 0x7FFFFFFFF)) * 0x14D049BB133111EB
        left, right = right, left ^ ((word >> 31) & mask)
    return (left << half) | right


class CacheModifiedInputIterator(ArrayIterator):
    """An array that is read with a hint about caches [ITR-10].

    Parameters
    ----------
    array : array
        Items of 1, 2, 4, 8 or 16 bytes.
    modifier : {"stream", "global", "volatile"}, default "stream"
        The hint. It changes nothing here.
    start : int, default 0
        The first item.

    Raises
    ------
    ValueError
        For another modifier, or other items.

    Examples
    --------
    >>> out = np.zeros(3, int)
    >>> items = ct.compute.CacheModifiedInputIterator(np.array([4, 5, 6]))
    >>> ct.compute.unary_transform(items, out, ct.compute.OpKind.IDENTITY, 3)
    >>> out
    array([4, 5, 6])
    """

    writes = False

    def __init__(self, array: Any, modifier: str = "stream", start: int = 0):
        super().__init__(array, start)
        if modifier not in ("stream", "global", "volatile"):
            raise ValueError(f"modifier must be 'stream', 'global' or 'volatile', not {modifier!r}")
        if (size := self.array.itemsize) not in (1, 2, 4, 8, 16):
            raise ValueError(f"CacheModifiedInputIterator reads items of 1, 2, 4, 8 or 16 bytes, not of {size}")
        self.modifier = modifier
        self.kind = ("cached", modifier, self.value_type)

    def __add__(self, k: int) -> CacheModifiedInputIterator:
        return CacheModifiedInputIterator(self.array, self.modifier, self.start + k)


def as_iterator(obj: Any, argument: str | None = None) -> IteratorBase:
    """The iterator that an argument is, or that wraps the array that it is. TypeError for anything else [ITR-11]."""
    if isinstance(obj, IteratorBase):
        return obj
    try:
        return ArrayIterator(obj)
    except TypeError as e:
        where = f"argument `{argument}`: " if argument else ""
        raise TypeError(f"{where}{e}") from None


def as_input(obj: Any, argument: str) -> IteratorBase:
    it = as_iterator(obj, argument)
    if not it.reads:
        raise ValueError(f"argument `{argument}`: This iterator does not support input operations")
    return it


def as_output(obj: Any, argument: str) -> IteratorBase:
    it = as_iterator(obj, argument)
    if not it.writes:
        raise ValueError(f"argument `{argument}`: This iterator does not support output operations")
    if any(not a.writable for a in _written(it)):
        raise TypeError(f"argument `{argument}` is written to, but the array is read-only")
    return it


def _written(it: IteratorBase) -> Iterator[DeviceArray]:
    """The arrays that an output writes to."""
    if isinstance(it, ArrayIterator):
        yield it.array
    for c in it.children[:1] if isinstance(it, PermutationIterator) else it.children:
        yield from _written(c)

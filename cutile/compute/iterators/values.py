"""Iterators without memory, whose items are made of a number or struct of the host, and how such values travel: each
number in an int.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

import cutile as ct
from cutile.compute import readers
from cutile.compute.arrays import DeviceArray, Held
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.value_types import Number, Struct, ValueType, value_type
from cutile.dtypes import info
from cutile.runtime.annotations import ScalarAnnotation

INT64 = Annotated[int, ScalarAnnotation(ct.int64)]


class _Value(IteratorBase):
    """What constant and counting iterators share: a value that travels in ints."""

    def __init__(self, value: Any):
        if getattr(value, "ndim", 0):
            raise TypeError(f"{type(self).__name__} takes one value, such as 5 or np.int32(5), not an array of shape "
                            f"{tuple(value.shape)}; pass one of its items, or the array in place of the iterator")
        try:
            self.value, self.value_type = value, type_of_value(value)
            self.numbers = self.value_type.numbers(value)
        except (TypeError, ValueError) as e:
            raise type(e)(f"{type(self).__name__}: {e}") from None
        self._held = held(self.value_type, self.numbers)

    def slots(self) -> Iterator[DeviceArray | Held]:
        yield from self._held

    def state(self, n: int | None) -> Any:
        return self._held

    def annotation(self, wide: bool) -> Any:
        return tuple[(INT64,) * len(self.numbers)]


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
        super().__init__(value)
        self.kind = ("constant", self.value_type)

    def reader(self) -> Any:
        return constant_reader(self.value_type)

    def reversed(self) -> IteratorBase:
        return self

    def size(self) -> int | None:
        return None

    def advanced(self, k: int) -> ConstantIterator:
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
        super().__init__(start)
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

    def advanced(self, k: int) -> CountingIterator:
        d = self.value_type.dtype
        start = self.numbers[0] + k
        if info(d).integral:
            start = np.array(start % (1 << d.bitwidth), f"u{d.bitwidth // 8}").view(info(d).storage)
        return CountingIterator(np.asarray(start, info(d).storage))


_AS_FLOAT, _AS_INT = struct.Struct("d"), struct.Struct("q")


def bits_of_float(x: Any) -> int:
    """A float as the int in which it travels: the bits of a float64."""
    return _AS_INT.unpack(_AS_FLOAT.pack(x))[0]


def float_of_bits(bits: int) -> float:
    """The reverse."""
    return _AS_FLOAT.unpack(_AS_INT.pack(bits))[0]


def bits_of_int(x: Any) -> int:
    """An integer as the int64 in which it travels."""
    if type(x) is int and -(1 << 63) <= x < 1 << 63:
        return x
    return (int(x) + (1 << 63)) % (1 << 64) - (1 << 63)


def bits_of(x: bool | int | float, dtype: ct.DType) -> int:
    """A number as the int in which it travels."""
    return bits_of_float(x) if info(dtype).floating else bits_of_int(x)


def held(t: ValueType, numbers: tuple) -> tuple[Held, ...]:
    """The numbers in a value as kernels take them."""
    return tuple(Held(bits_of(x, d)) for x, d in zip(numbers, t.dtypes, strict=True))


def type_of_value(value: Any) -> ValueType:
    """The type of a value of the host, as NumPy types it. TypeError for what is no number, and no struct."""
    if isinstance(value, type):
        raise TypeError(f"expected a value, got the class {value.__name__}")
    if isinstance(found := getattr(type(value), "value_type", None), Struct):
        return found
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return value_type(type(value))
    dtype = getattr(value, "dtype", None)
    dtype = np.asarray(value).dtype if dtype is None else dtype
    if type(value) is int and dtype.kind == "O":
        raise TypeError(f"an integer of {value.bit_length()} bits is too long, because items have 64 bits at most; "
                        f"pass a float")
    if isinstance(dtype, np.dtype) and dtype.kind in "OSUMm":
        raise TypeError(f"expected a number or a struct, got {value!r:.100}")
    return value_type(dtype)


def constant_reader(t: ValueType) -> readers.Constant:
    return readers.Constant(t, tuple(readers.Immediate(d, info(d).floating) for d in t.dtypes))

"""Roles of arguments: what an argument of an algorithm may be, and how a call reads it in a few microseconds."""

from __future__ import annotations

import enum
from collections.abc import Callable
from operator import index
from typing import Any, NamedTuple

import numpy as np

from cutile._support.lru import LruDict
from cutile.compute.arrays import KINDS, line_of, on_gpu, read_in_c
from cutile.compute.captured import capturing
from cutile.compute.initial import FromMemory, Initial, initial_value
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ArrayIterator, as_input, as_output
from cutile.compute.iterators.values import bits_of_float, bits_of_int, type_of_value
from cutile.compute.operators import KNOWN, OpKind, operator
from cutile.compute.structured import structured
from cutile.compute.value_types import Number, Struct, StructValue, ValueType
from cutile.dtypes import info
from cutile.runtime import launch_cache
from cutile.runtime.launch_key import find_reader


class Role(NamedTuple):
    """What an argument of an algorithm may be.

    read  appends to a key what a plan depends on, and to a list the roots (plans.py), quickly. Any exception means that
          the argument is not what it should be
    wrap  the operand that an argument stands for, with the same roots in its slots. It raises the error that names the
          argument
    writes  the argument is written to
    in_c    what C code reads in the same way, without `read`: some of ARRAY, WRITTEN, INT and NONE
    """

    read: Callable[[Any, list, list], None]
    wrap: Callable[[Any, str], Any]
    writes: bool = False
    in_c: int = 0


ARRAY, INT, NONE, WRITTEN = 1, 2, 4, 8  # arrays, ints, None, arrays that are written; as runtime/_launcher.h has them


def read_roles(how: bytes, readers: tuple[Callable, ...], first: Any, args: tuple) -> tuple[tuple, list]:
    """The key and the roots of a call: `readers` and `how` are the `read` and `in_c` of the role of each argument, and
    `first` is the first item of the key. Whatever a reader raises.
    """
    if (c := launch_cache.extension()) is not None:
        return c.read_roles(KINDS, how, readers, first, args)
    key, roots = [first], []
    for read, value in zip(readers, args, strict=True):
        read(value, key, roots)
    return tuple(key), roots


def _read_array(value: Any, key: list, roots: list) -> None:
    cls = type(value)
    if cls is np.ndarray:
        shape = value.shape
        key.append(("host", value.dtype, shape, value.strides))
        roots.append(value if len(shape) == 1 else line_of(value))
    elif (found := on_gpu(value)) is not None:
        part, root = found
        key.append(part)
        roots.append(root)
    elif isinstance(value, IteratorBase):
        seen, found = value.signature()
        key.append(seen)
        roots += found
    else:
        if (several := structured(value)) is not None:
            key.append(several.part)
            if several.host is not None:
                return roots.append(line_of(several.host))
            roots.append(several.pointer)
            return read_in_c(value)
        find_reader(cls)(value, key, roots)
        if isinstance(roots[-1], np.ndarray):
            roots[-1] = line_of(roots[-1])
        elif type(roots[-1]) is not int or type(key[-1]) is not tuple:
            raise TypeError  # a number, or an array that NumPy cannot hold
        else:
            read_in_c(value)


def _read_output(value: Any, key: list, roots: list) -> None:
    _read_array(value, key, roots)
    if type(value) is np.ndarray and not value.flags.writeable:
        raise TypeError  # `as_output` says it


def _read_operator(value: Any, key: list, roots: list) -> None:
    if type(value) is OpKind and (known := KNOWN.get(value._value_)) is not None:
        return key.append(known)
    arrays: dict[int, Any] = {}
    key.append(operator(value, arrays=arrays))
    for array in arrays.values():
        _read_array(array, key, roots)


def _read_count(value: Any, key: list, roots: list) -> None:
    key.append(value if type(value) is int else _integer(value))


def _integer(value: Any) -> int:
    """An enum or a truth value in the place of a count is a mistake, such as an order that an object has already."""
    if isinstance(value, enum.Enum | bool):
        raise TypeError
    return index(value)


def _count(value: Any, name: str) -> int:
    """TypeError for what is no int."""
    if value is None:
        raise TypeError(f"argument `{name}` is missing: it says how many items there are")
    try:
        return _integer(value)
    except TypeError:
        raise TypeError(f"argument `{name}` must be an int, got {value!r:.100}") from None


_CONVERSIONS: LruDict[Any, tuple] = LruDict(1000)  # by dtype or class of a host value: `_read_other_number`


_BITS: dict[Any, tuple[np.dtype, Callable[[Any], int]]] = {  # by classes of NumPy's numbers, and by their dtypes
    key: (np.dtype(t), bits) for types, bits in (
        ((np.float16, np.float32, np.float64), bits_of_float),
        ((np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64), bits_of_int))
    for t in types for key in (t, np.dtype(t))}


def _read_number(value: Any, key: list, roots: list) -> None:
    cls = type(value)
    if cls is np.ndarray:
        kind = value.dtype
        found = _BITS.get(kind)
        value = value.item() if value.size == 1 and (found or kind.names is None) else value.reshape(-1)[0]
    else:
        kind = cls
        found = _BITS.get(cls)
    if found is not None:
        key.append(found[0])
        roots.append(found[1](value))
    elif value is None:
        key.append(None)
    else:
        _read_other_number(value.dtype if isinstance(value, np.generic) else kind, value, key, roots)


def _read_other_number(kind: Any, value: Any, key: list, roots: list) -> None:
    found = _CONVERSIONS.get(kind)
    if found is None:
        t = type_of_value(value)
        found = t, tuple(bits_of_float if info(d).floating else bits_of_int for d in t.dtypes), _fields_of(t)
        if isinstance(kind, np.dtype) or kind in (int, float, bool, complex) or isinstance(value, StructValue):
            _CONVERSIONS.keep(kind, found)
        else:
            kind = t
    t, bits, fields = found
    key.append(kind)
    numbers = _numbers_of(value, fields) or t.numbers(value)
    roots += [as_bits(x) for x, as_bits in zip(numbers, bits, strict=True)]


def _numbers_of(value: Any, fields: tuple[str, ...] | None) -> list | None:
    """The numbers in the fields of a struct or complex number, where a quick look is enough; else None."""
    cls = type(value)
    if fields is None or cls is tuple or cls is np.ndarray:
        return None
    found = [value[f] for f in fields] if cls is np.void else [getattr(value, f) for f in fields]
    return found if _PLAIN.issuperset(map(type, found)) else None


_PLAIN = frozenset((int, float, bool, *(np.dtype(d).type for d in "?bhilqBHILQefd")))  # which convert as they are


def _fields_of(t: ValueType) -> tuple[str, ...] | None:
    """The names of a struct's fields, if all of them are numbers."""
    plain = isinstance(t, Struct) and all(isinstance(part, Number) for part in t.parts)
    return tuple(t.cls.__dataclass_fields__) if plain else None


def _read_number_or_array(value: Any, key: list, roots: list) -> None:
    (_read_array if _in_gpu_memory(value) else _read_number)(value, key, roots)


def _in_gpu_memory(value: Any) -> bool:
    return not (value is None or isinstance(value, np.ndarray | np.generic | int | float | tuple | StructValue)) \
        and hasattr(value, "__cuda_array_interface__")


def _read_value(value: Any, key: list, roots: list) -> None:
    hash(value)
    key.append(None if value is None else (type(value), value))


def _initial_or_array(value: Any, name: str) -> Initial | FromMemory | None:
    return FromMemory(ArrayIterator(value)) if _in_gpu_memory(value) else initial_value(value, name)


INPUT = Role(_read_array, as_input, in_c=ARRAY)
OUTPUT = Role(_read_output, as_output, True, ARRAY | WRITTEN)
OPERATOR = Role(_read_operator, capturing)
COUNT = Role(_read_count, _count, in_c=INT)
INITIAL = Role(_read_number, initial_value, in_c=NONE)  # a number or struct of the host, or None
INITIAL_OR_ARRAY = Role(_read_number_or_array, _initial_or_array, in_c=NONE)  # or an array of one item in GPU memory
VALUE = Role(_read_value, lambda value, name: value, in_c=NONE)  # hashable; a plan is for one value


def optional(role: Role) -> Role:
    """A role whose argument may be None."""

    def read(value: Any, key: list, roots: list) -> None:
        if value is None:
            key.append(None)
        else:
            role.read(value, key, roots)

    return role._replace(read=read, wrap=lambda value, name: None if value is None else role.wrap(value, name),
                         in_c=role.in_c | NONE)


def with_default(role: Role, default: Any) -> Role:
    """A role whose argument may be None, which means the default."""

    def read(value: Any, key: list, roots: list) -> None:
        role.read(default if value is None else value, key, roots)

    return Role(read, lambda value, name: role.wrap(default if value is None else value, name))

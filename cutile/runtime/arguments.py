"""Kernel arguments: the type of each in the kernel, and the key under which a kernel is specialised for them.

The key is the one definition of "the same specialisation" [SPEC-1]: two launches share a typed program exactly if
their keys are equal. It holds, per parameter, the kind and everything that the typed program may depend on.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cutile._support.structs import structure
from cutile.dtypes import DType, bool_, float32, from_foreign, int32, int64, int_range
from cutile.front.program import ArgType, Embedded
from cutile.ir.terms import digits, to_builtin
from cutile.runtime.annotations import ANY_ARRAY, ArrayAnnotation, ParameterSpec
from cutile.runtime.array_ref import ArrayRef, ref_of
from cutile.runtime.arrays import NoArrayError, reader_of, type_name
from cutile.runtime.launch_key import constant_key
from cutile.types import ArrayType, ListType, TileType

NESTING_LIMIT = 64  # of tuples [ARG-8]


def array_of(obj: Any) -> ArrayRef | None:
    """The description of the array that an object stands for; None if it is no array.

    TypeError if it is one that cannot be used, for example of a dtype that tile code does not have.
    """
    key: list = []
    values: list = []
    try:
        reader_of(type(obj))(obj, key, values)
    except NoArrayError:
        return None
    return ref_of(key[0], values[0])


@structure(frozen=True)
class Reading:
    """How arguments are read: the description of the array that an object stands for, and the key of a constant."""

    array: Callable[[Any], ArrayRef | None]
    constant: Callable[[Any], tuple]


FROM_OBJECTS = Reading(array_of, constant_key)


@structure(frozen=True)
class Argument:
    """One argument, understood: its type for the front end, its part of the key, and for a back end its flat arguments:
    ArrayRefs, numbers and lists of ArrayRefs, in the order of the kernel's IR parameters.
    """

    arg_type: ArgType
    key: tuple
    flat_args: tuple[Any, ...]


def classify(index: int, name: str, value: Any, spec: ParameterSpec, reading: Reading = FROM_OBJECTS) -> Argument:
    """Classify one kernel argument; TypeError, ValueError or OverflowError, naming the parameter, if it cannot
    be one.
    """
    return _classify(_Where(index, name, reading), value, spec, 0)


@structure(frozen=True)
class _Where:
    """The position of a value among the arguments, for errors, and how it is read."""

    index: int
    name: str
    reading: Reading

    def item(self, i: int) -> _Where:
        return _Where(self.index, f"{self.name}[{i}]", self.reading)

    def __str__(self) -> str:
        return f"Invalid kernel argument #{self.index} (`{self.name}`)"


def _classify(where: _Where, value: Any, spec: ParameterSpec, depth: int) -> Argument:
    if type(value) is tuple:
        return _tuple(where, value, spec, depth)
    if spec.constant:
        return _constant(where, value)
    if spec.is_tuple:
        raise TypeError(f"{where}: its annotation asks for a tuple, got {type_name(value)}")
    if issubclass(type(value), int | float):  # np.float64 is a float, and so an argument [ARG-6]
        return _scalar(where, value, spec)
    if type(value) is list:
        return _list(where, value, spec)
    array = _found(where, value, where.reading.array)
    if array is not None:
        return _array(where, array, spec)
    raise TypeError(
        f"{where}: {type_name(value)} cannot be passed to a kernel; arguments are arrays, bool, int, float, lists of "
        f"arrays and tuples of these{_constant_hint(value)}"
    )


def _found(where: _Where, value: Any, find: Callable[[Any], ArrayRef | None]) -> ArrayRef | None:
    try:
        return find(value)
    except TypeError as e:
        raise TypeError(f"{where}: {e}") from None


def _constant_hint(value: Any) -> str:
    if value is None:
        return ("; for an array that may be missing, pass any array in its place and a flag beside it, such as "
                "has_bias: ct.Constant[bool]")
    if isinstance(value, np.bool_ | np.integer | np.floating):
        plain = {"b": "bool", "f": "float"}.get(value.dtype.kind, "int")
        return f"; pass {plain}(x), or annotate the parameter with ct.Constant to pass this one as a constant"
    if isinstance(value, str | enum.Enum | np.generic) or from_foreign(value) is not None:
        return "; annotate the parameter with ct.Constant to pass this one as a constant"
    if callable(value):
        return "; a function can be used in a kernel by naming it there"
    if hasattr(type(value), "__array__"):
        return "; np.asarray(x) makes an array of it"
    return "; np.frombuffer(x, dtype) makes an array of its bytes" if _has_buffer(value) else ""


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except (TypeError, ValueError, BufferError):
        return False
    return True


# ------------------------------------------------------------------ scalars and constants


def _scalar(where: _Where, value: Any, spec: ParameterSpec) -> Argument:
    if spec.array or spec.list:
        raise TypeError(
            f"{where}: its annotation asks for {'an array' if spec.array else 'a list'}, got {type_name(value)}"
        )
    value = to_builtin(value)
    if isinstance(value, bool):
        dtype: DType = bool_
    elif isinstance(value, int):
        dtype = spec.scalar.dtype if spec.scalar else int32
        lo, hi = int_range(dtype)
        if not lo <= value <= hi:
            hint = "" if dtype is int64 else "; annotate the parameter with ct.ScalarInt64"
            raise OverflowError(f"{where}: {digits(value)} does not fit {dtype.name}{hint}")
    else:
        dtype = float32
    if spec.scalar and dtype in (bool_, float32):
        raise TypeError(f"{where}: its annotation asks for an int, got {type_name(value)}")
    return Argument(TileType(dtype), ("scalar", dtype), (value,))


def _constant(where: _Where, value: Any) -> Argument:
    if not issubclass(type(value), np.generic | enum.Enum):
        value = to_builtin(value)
    if not (value is None or isinstance(value, bool | int | float | str | enum.Enum | np.generic)
            or from_foreign(value) is not None):
        if type(value) is list or _found(where, value, array_of) is not None:
            raise TypeError(f"{where}: it is annotated ct.Constant, so it cannot be {type_name(value)}; parameters "
                            f"that are arrays need no annotation")
        raise TypeError(f"{where}: {type_name(value)} cannot be a constant; constants are bool, int, float, str, None, "
                        f"dtypes, enum members, NumPy scalars and tuples of these")
    return Argument(Embedded(value), ("constant", where.reading.constant(value)), ())


def _tuple(where: _Where, value: tuple, spec: ParameterSpec, depth: int) -> Argument:
    if depth >= NESTING_LIMIT:
        raise RecursionError(f"{where}: tuples are nested more than {NESTING_LIMIT} deep")
    if spec.scalar or spec.array or spec.list:
        raise TypeError(f"{where}: its annotation does not ask for a tuple, got one")
    if spec.listed is not None and len(spec.listed) != len(value):
        raise TypeError(f"{where}: its annotation asks for a tuple of {len(spec.listed)} items, got {len(value)}")
    items = [_classify(where.item(i), v, s, depth + 1)
             for i, (v, s) in enumerate(zip(value, spec.items, strict=False))]
    return Argument(tuple(i.arg_type for i in items), ("tuple", *(i.key for i in items)),
                    tuple(x for i in items for x in i.flat_args))


# ------------------------------------------------------------------ arrays


def _array(where: _Where, array: ArrayRef, spec: ParameterSpec) -> Argument:
    if spec.scalar or spec.list:
        raise TypeError(f"{where}: its annotation asks for {'an int' if spec.scalar else 'a list'}, got an array")
    t = _array_type(where, array, spec.array or ANY_ARRAY)
    return Argument(t, ("array", t), (array,))


def _array_type(where: _Where, array: ArrayRef, annotation: ArrayAnnotation) -> ArrayType:
    limit = int_range(annotation.index_dtype)[1]
    for what, values in (("size", array.shape), ("stride", array.strides)):
        if any(abs(v) > limit for v in values) and array.size:
            raise OverflowError(f"{where}: a {what} of {values} does not fit {annotation.index_dtype.name}; "
                                f"annotate the parameter with ct.IndexedWithInt64")
    return ArrayType(array.dtype, array.ndim, annotation.index_dtype,
                     _static(where, array.ndim, annotation.static_shape_dims, array.shape),
                     _static(where, array.ndim, annotation.static_stride_dims, array.strides))


def _static(where: _Where, ndim: int, dims: tuple[int, ...], values: Sequence[int]) -> tuple[int | None, ...]:
    for d in dims:
        if not -ndim <= d < ndim:
            raise ValueError(f"{where}: static dim {d} is out of range for an array of rank {ndim}")
    listed = {d % ndim for d in dims} if ndim else set()
    if len(listed) < len(dims):
        raise ValueError(f"{where}: static dims {dims} name a dim of an array of rank {ndim} twice")
    return tuple(v if i in listed else None for i, v in enumerate(values))


def _list(where: _Where, value: list, spec: ParameterSpec) -> Argument:
    if spec.scalar or spec.array:
        raise TypeError(f"{where}: its annotation does not ask for a list, got one")
    if not value:
        raise TypeError(f"{where}: an empty list of arrays has no dtype and rank")
    found = [_found(where, v, where.reading.array) for v in value]
    if any(f is None for f in found):
        i = found.index(None)
        raise TypeError(f"{where}: item {i} of the list is no array but {type_name(value[i])}; "
                        f"np.asarray(x) makes an array of numbers")
    annotation = spec.list.element if spec.list else ANY_ARRAY
    kinds = [_array_type(where, a, annotation) for a in found]
    for t in kinds:
        if (t.dtype, t.ndim) != (kinds[0].dtype, kinds[0].ndim):
            raise TypeError(f"{where}: the arrays of a list must have one dtype and rank, got {kinds[0].describe()} "
                            f"and {t.describe()}")
        if t != kinds[0]:
            raise ValueError(f"{where}: the arrays of the list differ in a static dim")
    return Argument(ListType(kinds[0]), ("list", kinds[0]), (found,))


def host_values(arguments: Sequence[Argument]) -> list[Any]:
    """The flat arguments, in which each array in CPU memory replaces its ArrayRef."""
    return [_in_memory(x) for a in arguments for x in a.flat_args]


def _in_memory(x: Any) -> Any:
    if isinstance(x, list):
        return list(map(_in_memory, x))
    return x.owner if isinstance(x, ArrayRef) and x.owner is not None else x


def classify_all(names: Sequence[str], specs: Sequence[ParameterSpec], values: Sequence[Any], kernel: str,
                   defaults: bool = False) -> list[Argument]:
    """Classify the arguments of a kernel. TypeError if there are too many or too few.

    defaults  whether the kernel declares defaults, for the message
    """
    if len(values) != len(names):
        hint = "; defaults of a kernel's parameters do not count" if defaults and len(values) < len(names) else (
            "; kernels in classes take no self" if names[0:1] == ["self"] else "")
        raise TypeError(f"kernel {kernel} expects {len(names)} argument(s) ({', '.join(names)}), got {len(values)}"
                        f"{hint}")
    return [classify(i, n, v, s) for i, (n, v, s) in enumerate(zip(names, values, specs, strict=True))]


def classify_read(names: Sequence[str], specs: Sequence[ParameterSpec], values: Sequence[Any], key: Iterable[Any],
                    launch_values: Iterable[Any]) -> list[Argument]:
    """Classify arguments that launch_key.read has read into this key and these launch values. Any exception means that
    one of them is not what it should be; `classify_all` says which, and why.
    """
    arrays, constants = map(iter, _read_parts(key, launch_values))
    reading = Reading(lambda value: ref_of(*next(arrays)), lambda value: next(constants))
    return [classify(i, n, v, s, reading) for i, (n, v, s) in enumerate(zip(names, values, specs, strict=True))]


def _read_parts(key: Iterable[Any], launch_values: Iterable[Any]) -> tuple[list[tuple[Any, Any]], list[tuple]]:
    """What launch_key.read appended for each array, also in lists: its part of the key and its launch value. And for
    each constant: its part of the key.
    """
    parts, values, arrays, constants = iter(key), iter(launch_values), [], []
    for part in parts:
        if type(part) is not tuple:  # of a number
            next(values)
        elif part[0] is list:
            arrays += [(next(parts), item) for item in next(values)]
        elif type(part[0]) is str:
            arrays.append((part, next(values)))
        elif part[0] is not tuple:
            constants.append(part)
    return arrays, constants

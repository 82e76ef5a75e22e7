"""Kernel arguments: what each becomes in the kernel, and the key under which a kernel is specialised for them.

The key is the one definition of "the same specialisation" [SPEC-1]: two launches share a compiled kernel exactly if
their keys are equal. It holds, per parameter, the kind and everything that the typed program may depend on.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from cutile._support.structs import structure
from cutile.dtypes import DType, bool_, float32, from_foreign, int32, int64, int_range
from cutile.front.program import Blueprint, Embedded
from cutile.ir.terms import digits, plain
from cutile.runtime.annotations import PLAIN, ArrayAnnotation, ParameterSpec
from cutile.runtime.arrays import Array, find_array, kind, layout
from cutile.types import ArrayType, ListType, TileType

NESTING_LIMIT = 64  # of tuples [ARG-8]


@structure(frozen=True)
class Argument:
    """One argument, understood: its blueprint for the front end, its part of the key, its leaves for a back end.

    A leaf is an array (NumPy's, a PackedArray or a DeviceArray), a number, or a list of arrays, in the order of the
    kernel's IR parameters.
    """

    blueprint: Blueprint
    key: tuple
    leaves: tuple[Any, ...]


def understand(index: int, name: str, value: Any, spec: ParameterSpec) -> Argument:
    """Classify one kernel argument; TypeError, ValueError or OverflowError naming the parameter if it cannot be one."""
    return _understand(_Where(index, name), value, spec, 0)


@structure(frozen=True)
class _Where:
    index: int
    name: str

    def item(self, i: int) -> _Where:
        return _Where(self.index, f"{self.name}[{i}]")

    def __str__(self) -> str:
        return f"Invalid kernel argument #{self.index} (`{self.name}`)"


def _understand(where: _Where, value: Any, spec: ParameterSpec, depth: int) -> Argument:
    if type(value) is tuple:
        return _tuple(where, value, spec, depth)
    if spec.constant:
        return _constant(where, value)
    if spec.items is not None:
        raise TypeError(f"{where}: its annotation asks for a tuple, got {kind(value)}")
    if issubclass(type(value), int | float):  # np.float64 is a float, and so an argument [ARG-6]
        return _scalar(where, value, spec)
    if type(value) is list:
        return _list(where, value, spec)
    array = _found(where, value)
    if array is not None:
        return _array(where, *array, spec)
    raise TypeError(
        f"{where}: {kind(value)} cannot be passed to a kernel; arguments are arrays, bool, int, float, lists of "
        f"arrays and tuples of these{_constant_hint(value)}"
    )


def _found(where: _Where, value: Any) -> tuple[Array, DType] | None:
    try:
        return find_array(value)
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
    return ""


# ------------------------------------------------------------------ scalars and constants


def _scalar(where: _Where, value: Any, spec: ParameterSpec) -> Argument:
    if spec.array or spec.list:
        raise TypeError(
            f"{where}: its annotation asks for {'an array' if spec.array else 'a list'}, got {kind(value)}"
        )
    value = plain(value)
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
        raise TypeError(f"{where}: its annotation asks for an int, got {kind(value)}")
    return Argument(TileType(dtype), ("scalar", dtype), (value,))


def _constant(where: _Where, value: Any) -> Argument:
    value = _plain_constant(value)
    if type(value) is list or not isinstance(value, bool | int | float | str | np.generic) \
            and _found(where, value) is not None:
        raise TypeError(f"{where}: it is annotated ct.Constant, so it cannot be {kind(value)}; parameters that are "
                        f"arrays need no annotation")
    if not (value is None or isinstance(value, bool | int | float | str | enum.Enum | np.generic)
            or from_foreign(value) is not None):
        raise TypeError(f"{where}: {kind(value)} cannot be a constant; constants are bool, int, float, str, None, "
                        f"dtypes, enum members, NumPy scalars and tuples of these")
    return Argument(Embedded(value), ("constant", constant_key(value)), ())


def _plain_constant(value: Any) -> Any:
    """What else a subclass of int, float or str has is no part of a constant; NumPy scalars and enum members stay."""
    return value if issubclass(type(value), np.generic | enum.Enum) else plain(value)


def constant_key(value: Any) -> tuple:
    """Equal for the same constant: 1, True and 1.0 differ, 0.0 and -0.0 differ, NaN equals itself [SPEC-1]."""
    if type(value) is int:  # most are
        return (int, value)
    value = _plain_constant(value)
    if isinstance(value, np.generic):
        return (type(value), value.tobytes())
    if isinstance(value, float):
        return (type(value), struct.pack("<d", value))
    if isinstance(value, enum.Enum) and value._name_ is not None:  # whatever it says that it equals
        return (type(value), value._name_)
    return (type(value), value)


def _tuple(where: _Where, value: tuple, spec: ParameterSpec, depth: int) -> Argument:
    if depth >= NESTING_LIMIT:
        raise RecursionError(f"{where}: tuples are nested more than {NESTING_LIMIT} deep")
    if spec.scalar or spec.array or spec.list:
        raise TypeError(f"{where}: its annotation does not ask for a tuple, got one")
    if spec.items is not None and not spec.repeat and len(spec.items) != len(value):
        raise TypeError(f"{where}: its annotation asks for a tuple of {len(spec.items)} items, got {len(value)}")
    items = [_understand(where.item(i), v, spec.item(i), depth + 1) for i, v in enumerate(value)]
    return Argument(tuple(i.blueprint for i in items), ("tuple", *(i.key for i in items)),
                    tuple(leaf for i in items for leaf in i.leaves))


# ------------------------------------------------------------------ arrays


def _array(where: _Where, array: Array, dtype: DType, spec: ParameterSpec) -> Argument:
    if spec.scalar or spec.list:
        raise TypeError(f"{where}: its annotation asks for {'an int' if spec.scalar else 'a list'}, got an array")
    t = _array_type(where, array, dtype, spec.array or ArrayAnnotation())
    return Argument(t, ("array", t), (array,))


def _array_type(where: _Where, array: Array, dtype: DType, annotation: ArrayAnnotation) -> ArrayType:
    limit = int_range(annotation.index_dtype)[1]
    _, shape, strides, _ = layout(array)
    for what, values in (("size", shape), ("stride", strides)):
        if any(abs(v) > limit for v in values) and array.size:
            raise OverflowError(f"{where}: a {what} of {values} does not fit {annotation.index_dtype.name}; "
                                f"annotate the parameter with ct.IndexedWithInt64")
    return ArrayType(dtype, array.ndim, annotation.index_dtype,
                     _static(where, array.ndim, annotation.static_shape_dims, shape),
                     _static(where, array.ndim, annotation.static_stride_dims, strides))


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
    found = [_found(where, v) for v in value]
    if any(f is None for f in found):
        i = found.index(None)
        raise TypeError(f"{where}: item {i} of the list is no array but {kind(value[i])}; "
                        f"np.asarray(x) makes an array of numbers")
    annotation = spec.list.element if spec.list else ArrayAnnotation()
    kinds = [_array_type(where, a, d, annotation) for a, d in found]
    for t in kinds:
        if (t.dtype, t.ndim) != (kinds[0].dtype, kinds[0].ndim):
            raise TypeError(f"{where}: the arrays of a list must have one dtype and rank, got {kinds[0].describe()} "
                            f"and {t.describe()}")
        if t != kinds[0]:
            raise ValueError(f"{where}: the arrays of the list differ in a static dim")
    return Argument(ListType(kinds[0]), ("list", kinds[0]), ([a for a, _ in found],))


def key_of(arguments: Sequence[Argument]) -> tuple:
    """The specialisation key of a launch [SPEC-1]."""
    return tuple(a.key for a in arguments)


def understand_all(names: Sequence[str], specs: dict[str, ParameterSpec], values: Sequence[Any],
                   kernel: str, defaults: bool = False) -> list[Argument]:
    if len(values) != len(names):
        hint = "; defaults of a kernel's parameters do not count" if defaults and len(values) < len(names) else (
            "; kernels in classes take no self" if names[0:1] == ["self"] else "")
        raise TypeError(f"kernel {kernel} expects {len(names)} argument(s) ({', '.join(names)}), got {len(values)}"
                        f"{hint}")
    return [understand(i, n, v, specs.get(n, PLAIN)) for i, (n, v) in enumerate(zip(names, values, strict=True))]

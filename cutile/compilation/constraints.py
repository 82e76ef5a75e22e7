"""What a signature says about each kernel parameter [SIG-4…12]."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cutile._support.structs import structure
from cutile.compilation.fields import (
    MAX_RANK,
    base_divisor,
    check_constants,
    check_fit,
    check_reach,
    divisors,
    flag,
    groups,
    listed,
    need_numeric,
    number,
    per_dim,
    unless,
)
from cutile.dtypes import DType, int32, int64, int_range, uint32
from cutile.ir.terms import to_builtin

ConstantValue = bool | int | float
NESTING_LIMIT = 64  # of tuples, as of arguments [ARG-8]


@structure(frozen=True)
class ScalarConstraint:
    """A parameter that is a number.

    Parameters
    ----------
    dtype : DType
        A numeric dtype.

    Attributes
    ----------
    dtype : DType
        The dtype.

    Raises
    ------
    TypeError
        It is no numeric dtype.

    Notes
    -----
    [SIG-4]

    Examples
    --------
    >>> cutile.compilation.ScalarConstraint(ct.int32).dtype
    <DType 'int32'>
    """

    dtype: DType

    def __init__(self, dtype: DType):
        need_numeric(dtype, "ScalarConstraint")
        object.__setattr__(self, "dtype", dtype)


@structure(frozen=True, eq=False)
class ConstantConstraint:
    """A parameter whose value is known when the kernel is compiled.

    1, True and 1.0 differ, 0.0 and -0.0 too; a NaN equals itself.

    Parameters
    ----------
    value : bool, int or float
        The value.

    Attributes
    ----------
    value : bool, int or float
        The value.

    Raises
    ------
    TypeError
        A value of another kind.

    Notes
    -----
    [SIG-11]

    Examples
    --------
    >>> cutile.compilation.ConstantConstraint(1) == cutile.compilation.ConstantConstraint(True)
    False
    """

    value: ConstantValue
    __hash__ = None

    def __init__(self, value: ConstantValue):
        if not issubclass(type(value), int | float):
            raise TypeError(f"a constant constraint is a bool, an int or a float, not {value!r:.200}")
        object.__setattr__(self, "value", to_builtin(value))

    def _key(self) -> tuple:
        bits = struct.pack(">d", self.value) if isinstance(self.value, float) else self.value
        return type(self.value), bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantConstraint) and self._key() == other._key()


@structure(frozen=True)
class ArrayConstraint:
    """A parameter that is an array, and what may be assumed of it.

    What is said per axis is a tuple; a single value holds for all axes. A constant size or stride makes what else is
    said of that axis redundant: it must agree, and is dropped. Strides and divisors count elements.

    Parameters
    ----------
    dtype : DType
        The dtype of the elements.
    ndim : int
        The number of axes.
    index_dtype : DType
        int32, uint32 or int64: sizes and strides fit it.
    stride_lower_bound_incl : int, None, or tuple of them
        The least stride of each axis; None: any stride.
    alias_groups : sequence of str
        Names of groups; arrays that share a group may overlap.
    may_alias_internally : bool
        Whether two elements of the array may have one address.
    stride_constant : int, None, or tuple of them, optional
        The stride of each axis, where it is known.
    shape_constant : int, None, or tuple of them, optional
        The size of each axis, where it is known.
    stride_divisible_by : int or tuple of int, default 1
        What the stride of each axis is divisible by.
    shape_divisible_by : int or tuple of int, default 1
        What the size of each axis is divisible by.
    base_addr_divisible_by : int, default 1
        What the address of the first element is divisible by, in bytes.

    Attributes
    ----------
    dtype, ndim, index_dtype, alias_groups, may_alias_internally, base_addr_divisible_by
        As above.
    stride_lower_bound_incl, stride_constant, stride_divisible_by, shape_constant, shape_divisible_by
        As above: a tuple with a value for each axis.

    Raises
    ------
    TypeError, ValueError
        What cannot hold.

    Notes
    -----
    [SIG-5…9]

    Examples
    --------
    >>> a = cutile.compilation.ArrayConstraint(ct.float32, 2, index_dtype=ct.int32, stride_lower_bound_incl=0,
    ...                                        alias_groups=(), may_alias_internally=False,
    ...                                        stride_constant=(None, 1), base_addr_divisible_by=16)
    >>> a.stride_constant
    (None, 1)
    """

    dtype: DType
    ndim: int
    index_dtype: DType
    stride_lower_bound_incl: tuple[int | None, ...]
    alias_groups: tuple[str, ...]
    may_alias_internally: bool
    stride_constant: tuple[int | None, ...]
    shape_constant: tuple[int | None, ...]
    stride_divisible_by: tuple[int, ...]
    shape_divisible_by: tuple[int, ...]
    base_addr_divisible_by: int

    def __init__(self, dtype: DType, ndim: int, *, index_dtype: DType,
                 stride_lower_bound_incl: Sequence[int | None] | int | None, alias_groups: Sequence[str],
                 may_alias_internally: bool, stride_constant: Sequence[int | None] | None = None,
                 shape_constant: Sequence[int | None] | None = None, stride_divisible_by: Sequence[int] | int = 1,
                 shape_divisible_by: Sequence[int] | int = 1, base_addr_divisible_by: int = 1):
        need_numeric(dtype, "ArrayConstraint")
        if not isinstance(ndim, int) or isinstance(ndim, bool) or not 0 <= ndim <= MAX_RANK:
            raise ValueError(f"ndim must be an int from 0 to {MAX_RANK}, not {number(ndim)}")
        if index_dtype not in (int32, int64, uint32):
            raise ValueError(f"index_dtype must be int32, uint32 or int64, not {index_dtype!r}")
        lowest, highest = int_range(index_dtype)
        vacuous = -(1 << index_dtype.bitwidth - 1)  # the least bound that may be given, even if unsigned
        base_addr_divisible_by = base_divisor(base_addr_divisible_by)
        shape = per_dim("shape_constant", shape_constant, ndim)
        stride = per_dim("stride_constant", stride_constant, ndim)
        low = per_dim("stride_lower_bound_incl", stride_lower_bound_incl, ndim)
        if any(s is not None and s < 0 for s in shape):
            raise ValueError("shape_constant must not be negative")
        check_fit("shape_constant", shape, 0, highest, index_dtype)
        check_fit("stride_constant", stride, lowest, highest, index_dtype)
        check_fit("stride_lower_bound_incl", low, vacuous, highest, index_dtype)
        check_reach(stride, dtype)
        shape_div = divisors("shape_divisible_by", shape_divisible_by, ndim, index_dtype)
        stride_div = divisors("stride_divisible_by", stride_divisible_by, ndim, index_dtype)
        check_constants("shape", shape, shape_div, (None,) * ndim)
        check_constants("stride", stride, stride_div, low)
        values = (dtype, ndim, index_dtype, unless(stride, low, None), groups(alias_groups),
                  flag("may_alias_internally", may_alias_internally), stride, shape, unless(stride, stride_div, 1),
                  unless(shape, shape_div, 1), base_addr_divisible_by)
        for name, value in zip(self.__match_args__, values, strict=True):
            object.__setattr__(self, name, value)


@structure(frozen=True)
class ListConstraint:
    """A parameter that is a list of arrays.

    Parameters
    ----------
    element : ArrayConstraint
        What may be assumed of each array.
    alias_groups : sequence of str
        Names of groups; lists that share a group may share the memory of their tables of arrays.
    elements_may_alias : bool
        Whether two arrays of the list may overlap.

    Attributes
    ----------
    element, alias_groups, elements_may_alias
        As above.

    Raises
    ------
    TypeError
        The element is no ArrayConstraint.

    Notes
    -----
    [SIG-10]

    Examples
    --------
    >>> C = cutile.compilation
    >>> a = C.ArrayConstraint(ct.float32, 1, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
    ...                       may_alias_internally=False)
    >>> C.ListConstraint(a, alias_groups=(), elements_may_alias=False).element.ndim
    1
    """

    element: ArrayConstraint
    alias_groups: tuple[str, ...]
    elements_may_alias: bool

    def __init__(self, element: ArrayConstraint, *, alias_groups: Sequence[str], elements_may_alias: bool):
        if not isinstance(element, ArrayConstraint):
            raise TypeError(f"the element of a list constraint is an ArrayConstraint, not {element!r}")
        object.__setattr__(self, "element", element)
        object.__setattr__(self, "alias_groups", groups(alias_groups))
        object.__setattr__(self, "elements_may_alias", flag("elements_may_alias", elements_may_alias))


@structure(frozen=True)
class TupleConstraint:
    """A parameter that is a tuple.

    Parameters
    ----------
    items : sequence
        A constraint for each item. A plain bool, int, float or tuple stands for its constraint.

    Attributes
    ----------
    items : tuple
        The constraints.

    Raises
    ------
    TypeError
        An item of another kind.
    ValueError
        Tuples that are nested more than 64 deep.

    Notes
    -----
    [SIG-12]

    Examples
    --------
    >>> C = cutile.compilation
    >>> C.TupleConstraint((C.ScalarConstraint(ct.float32), 4)).items[1].value
    4
    """

    items: tuple[ParameterConstraint, ...]

    def __init__(self, items: Sequence[Any]):
        given = listed("the items of a tuple constraint", "constraints", items)
        object.__setattr__(self, "items", tuple(map(normalise, _shallow(given))))


def _shallow(items: tuple) -> tuple:
    """The items of a tuple, nested no deeper than the limit."""
    level, depth = [items], 0
    while level:
        depth += 1
        if depth > NESTING_LIMIT:
            raise ValueError(f"tuples are nested more than {NESTING_LIMIT} deep")
        inner = [i.items if isinstance(i, TupleConstraint) else i for t in level for i in t]
        level = [i for i in inner if type(i) is tuple]
    return items


ParameterConstraint = ScalarConstraint | ArrayConstraint | ListConstraint | TupleConstraint | ConstantConstraint
_CLASSES = (ScalarConstraint, ArrayConstraint, ListConstraint, TupleConstraint, ConstantConstraint)


def normalise(p: Any) -> ParameterConstraint:
    """A constraint, also from a plain constant or tuple [SIG-1]; TypeError for anything else."""
    if isinstance(p, _CLASSES):
        return p
    if type(p) is tuple:
        return TupleConstraint(p)
    if isinstance(p, bool | int | float):
        return ConstantConstraint(p)
    raise TypeError(f"a parameter constraint, a bool, an int, a float or a tuple is needed, not {p!r:.200}"
                    f"{_instead(p)}")


def _instead(p: Any) -> str:
    """What to write in the place of what is no constraint."""
    if isinstance(p, DType):
        return f"; write ScalarConstraint(ct.{p.name})"
    if isinstance(p, list):
        return "; write a tuple, or a ListConstraint for a list of arrays"
    if isinstance(p, np.generic) and isinstance(p.item(), ConstantValue):
        return f"; write {p.item()!r}"
    if hasattr(type(p), "shape") and hasattr(type(p), "dtype") or type(p).__name__ == "ArraySpec":
        return "; KernelSignature.from_kernel_args makes a signature of samples"
    return ""


def walk(parameters: Sequence[ParameterConstraint]) -> Iterator[ParameterConstraint]:
    """Constraints in order, with those of the items in the place of a tuple."""
    for p in parameters:
        if isinstance(p, TupleConstraint):
            yield from walk(p.items)
        else:
            yield p

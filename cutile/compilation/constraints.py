"""What a signature says about each kernel parameter [SIG-4…12]."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from cutile._support.structs import structure
from cutile.dtypes import INFO, DType, int32, int64, int_range, uint32
from cutile.ir.terms import to_builtin

ConstantValue = bool | int | float
MAX_RANK = 64  # as NumPy and PyTorch have it
NESTING_LIMIT = 64  # of tuples, as of arguments [ARG-8]
ADDRESS_LIMIT = 1 << 63  # bytes; no memory reaches further


def need_numeric(dtype: Any, what: str) -> None:
    if not isinstance(dtype, DType) or INFO[dtype].kind == "p":
        raise TypeError(f"{what} needs a numeric dtype such as cutile.float32, not {dtype!r}")


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
            raise TypeError(f"a constant constraint is a bool, an int or a float, not {value!r}")
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
            raise ValueError(f"ndim must be an int from 0 to {MAX_RANK}, not {_number(ndim)}")
        if index_dtype not in (int32, int64, uint32):
            raise ValueError(f"index_dtype must be int32, uint32 or int64, not {index_dtype!r}")
        lowest, highest = int_range(index_dtype)
        vacuous = -(1 << index_dtype.bitwidth - 1)  # the least bound that may be given, even if unsigned
        base_addr_divisible_by = _base_divisor(base_addr_divisible_by)
        shape = _per_dim("shape_constant", shape_constant, ndim)
        stride = _per_dim("stride_constant", stride_constant, ndim)
        low = _per_dim("stride_lower_bound_incl", stride_lower_bound_incl, ndim)
        if any(s is not None and s < 0 for s in shape):
            raise ValueError("shape_constant must not be negative")
        _check_fit("shape_constant", shape, 0, highest, index_dtype)
        _check_fit("stride_constant", stride, lowest, highest, index_dtype)
        _check_fit("stride_lower_bound_incl", low, vacuous, highest, index_dtype)
        _check_reach(stride, dtype)
        shape_div = _divisors("shape_divisible_by", shape_divisible_by, ndim, index_dtype)
        stride_div = _divisors("stride_divisible_by", stride_divisible_by, ndim, index_dtype)
        _check_constants("shape", shape, shape_div, (None,) * ndim)
        _check_constants("stride", stride, stride_div, low)
        values = (dtype, ndim, index_dtype, _unless(stride, low, None), check_groups(alias_groups),
                  bool(may_alias_internally), stride, shape, _unless(stride, stride_div, 1),
                  _unless(shape, shape_div, 1), base_addr_divisible_by)
        for name, value in zip(self.__match_args__, values, strict=True):
            object.__setattr__(self, name, value)


def _number(value: Any) -> str:
    """A number of any size, as messages show it."""
    long = isinstance(value, int) and value.bit_length() > 256
    return f"a number of {value.bit_length()} bits" if long else repr(value)


def _base_divisor(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"base_addr_divisible_by is a positive int, not {value!r}")
    if not 1 <= value < ADDRESS_LIMIT:
        raise ValueError(f"base_addr_divisible_by must be positive and less than 2**63, not {_number(value)}")
    return int(value)


def _check_fit(name: str, values: tuple[int | None, ...], low: int, high: int, index_dtype: DType) -> None:
    for k, v in enumerate(values):
        if v is not None and not low <= v <= high:
            raise ValueError(f"{name} {_number(v)} of dimension {k} does not fit index_dtype {index_dtype.name}")


def _check_reach(strides: tuple[int | None, ...], dtype: DType) -> None:
    for k, v in enumerate(strides):
        if v is not None and abs(v) * dtype.bitwidth // 8 >= ADDRESS_LIMIT:
            raise ValueError(f"stride_constant {v} of dimension {k} is more than 2**63 bytes of {dtype.name}")


def _per_dim(name: str, value: Any, ndim: int) -> tuple[int | None, ...]:
    if value is None or isinstance(value, int) and not isinstance(value, bool):
        return (value,) * ndim
    values = tuple(value)
    if len(values) != ndim:
        raise ValueError(f"{name} needs {ndim} entries, got {len(values)}")
    for v in values:
        if v is not None and (isinstance(v, bool) or not isinstance(v, int)):
            raise TypeError(f"{name} holds ints and None, not {v!r}")
    return values


def _divisors(name: str, value: Any, ndim: int, index_dtype: DType) -> tuple[int, ...]:
    values = _per_dim(name, value, ndim)
    for v in values:
        if v is None or v < 1:
            raise TypeError(f"{name} holds positive ints, not {v!r}")
    _check_fit(name, values, 1, int_range(index_dtype)[1], index_dtype)
    return values


def _check_constants(what: str, constants: tuple, divisors: tuple, low: tuple) -> None:
    for k, (c, d, bound) in enumerate(zip(constants, divisors, low, strict=True)):
        if c is not None and (c % d or bound is not None and c < bound):
            raise ValueError(f"{what}_constant {c} of dimension {k} contradicts its divisibility or lower bound")


def _unless(constants: tuple, values: tuple, default: Any) -> tuple:
    """The values of a predicate, without those that a constant makes redundant."""
    return tuple(v if c is None else default for c, v in zip(constants, values, strict=True))


def check_groups(groups: Any) -> tuple[str, ...]:
    if isinstance(groups, str):
        raise TypeError(f"alias_groups is a sequence of strings, not the string {groups!r}")
    groups = tuple(groups)
    if any(not isinstance(g, str) for g in groups):
        raise TypeError(f"alias groups are strings: {groups!r}")
    if len(set(groups)) != len(groups):
        raise ValueError(f"an alias group is named twice: {str(groups):.200}")
    return groups


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
        object.__setattr__(self, "alias_groups", check_groups(alias_groups))
        object.__setattr__(self, "elements_may_alias", bool(elements_may_alias))


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
        object.__setattr__(self, "items", tuple(map(normalise, _shallow(tuple(items)))))


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
    raise TypeError(f"a parameter constraint, a bool, an int, a float or a tuple is needed, not {p!r}")


def walk(parameters: Sequence[ParameterConstraint]) -> Iterator[ParameterConstraint]:
    """Constraints in order, with those of the items in the place of a tuple."""
    for p in parameters:
        if isinstance(p, TupleConstraint):
            yield from walk(p.items)
        else:
            yield p

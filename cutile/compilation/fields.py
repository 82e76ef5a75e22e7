"""The values of the fields of constraints [SIG-5…9]: what they may be, and errors that name the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

from cutile.dtypes import INFO, DType, from_foreign, int_range
from cutile.front.sizes import instead_of_dtype

MAX_RANK = 64  # as NumPy and PyTorch have it
ADDRESS_LIMIT = 1 << 63  # bytes; no memory reaches further


def need_numeric(dtype: Any, what: str) -> None:
    if isinstance(dtype, DType) and INFO[dtype].kind != "p":
        return
    known = None if isinstance(dtype, DType) else from_foreign(dtype)
    instead = f"; write ct.{known.name}" if known is not None else instead_of_dtype(dtype)
    raise TypeError(f"{what} needs a numeric dtype such as cutile.float32, not {dtype!r:.100}{instead}")


def flag(name: str, value: Any) -> bool:
    """A promise that is made or not; 0 and 1 count."""
    if isinstance(value, bool | np.bool_) or type(value) is int and value in (0, 1):
        return bool(value)
    raise TypeError(f"{name} is True or False, not {value!r:.100}")


def listed(name: str, of: str, value: Any) -> tuple:
    """The items of a sequence, in its order. Text is none, nor what has no order of its own."""
    if isinstance(value, str | bytes | bytearray | Mapping | Set) or not isinstance(value, Iterable):
        raise TypeError(f"{name}: a sequence of {of} is needed, such as a tuple, not {value!r:.100}")
    if getattr(value, "shape", None) == ():
        raise TypeError(f"{name}: a sequence of {of} is needed, not {value!r:.100} without an axis")
    return tuple(value)


def number(value: Any) -> str:
    """A number of any size, as messages show it."""
    long = isinstance(value, int) and value.bit_length() > 256
    return f"a number of {value.bit_length()} bits" if long else repr(value)


def base_divisor(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"base_addr_divisible_by is a positive int, not {value!r:.100}")
    if not 1 <= value < ADDRESS_LIMIT:
        raise ValueError(f"base_addr_divisible_by must be positive and less than 2**63, not {number(value)}")
    return int(value)


def check_fit(name: str, values: tuple[int | None, ...], low: int, high: int, index_dtype: DType) -> None:
    for k, v in enumerate(values):
        if v is not None and not low <= v <= high:
            raise ValueError(f"{name} {number(v)} of dimension {k} does not fit index_dtype {index_dtype.name}")


def check_reach(strides: tuple[int | None, ...], dtype: DType) -> None:
    for k, v in enumerate(strides):
        if v is not None and abs(v) * dtype.bitwidth // 8 >= ADDRESS_LIMIT:
            raise ValueError(f"stride_constant {v} of dimension {k} is more than 2**63 bytes of {dtype.name}")


def per_dim(name: str, value: Any, ndim: int) -> tuple[int | None, ...]:
    if value is None or isinstance(value, int) and not isinstance(value, bool):
        return (value,) * ndim
    values = listed(name, "ints, or one int for all axes,", value)
    if len(values) != ndim:
        raise ValueError(f"{name} needs {ndim} entries, got {len(values)}")
    for v in values:
        if v is not None and (isinstance(v, bool) or not isinstance(v, int)):
            instead = f"; write {int(v)}" if isinstance(v, np.integer) else ""
            raise TypeError(f"{name} holds ints and None, not {v!r:.100}{instead}")
    return values


def divisors(name: str, value: Any, ndim: int, index_dtype: DType) -> tuple[int, ...]:
    values = per_dim(name, value, ndim)
    for v in values:
        if v is None or v < 1:
            raise TypeError(f"{name} holds positive ints, not {number(v)}")
    check_fit(name, values, 1, int_range(index_dtype)[1], index_dtype)
    return values


def check_constants(what: str, constants: tuple, divisors: tuple, low: tuple) -> None:
    for k, (c, d, bound) in enumerate(zip(constants, divisors, low, strict=True)):
        if c is not None and c % d:
            raise ValueError(f"{what}_constant {c} of dimension {k} is not divisible by its {what}_divisible_by, {d}")
        if c is not None and bound is not None and c < bound:
            raise ValueError(f"{what}_constant {c} of dimension {k} is less than its {what}_lower_bound_incl, {bound}")


def unless(constants: tuple, values: tuple, default: Any) -> tuple:
    """The values of a predicate, without those that a constant makes redundant."""
    return tuple(v if c is None else default for c, v in zip(constants, values, strict=True))


def groups(given: Any) -> tuple[str, ...]:
    """The names of alias groups. Of a set they are sorted, so that the same set gives the same symbol."""
    if isinstance(given, str):
        raise TypeError(f"alias_groups is a sequence of strings, not the string {given!r:.100}")
    if isinstance(given, Set) and all(isinstance(g, str) for g in given):
        given = sorted(given)
    found = listed("alias_groups", "strings", given)
    if any(not isinstance(g, str) for g in found):
        raise TypeError(f"alias groups are strings: {found!r:.200}")
    if len(set(found)) != len(found):
        raise ValueError(f"an alias group is named twice: {str(found):.200}")
    return found

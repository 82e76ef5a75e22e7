"""The well-known operators, `OpKind`, as functions of items [OPR-2, OPR-3]."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import cutile as ct
from cutile.dtypes import info


class OpKind(enum.IntEnum):
    """Operators that everyone knows, with the meaning of C++ on the type of the items [OPR-3].

    Integers are divided towards zero, and MODULUS has the sign of the dividend. MINIMUM and MAXIMUM pass over NaN. On
    floats of eight bits they compute in float32, with truth values in int32: PLUS of two is 2, and true where it is
    stored as a truth value.

    Attributes
    ----------
    STATELESS, STATEFUL
        Kinds of functions; no operators of their own (ValueError).
    PLUS, MINUS, MULTIPLIES, DIVIDES, MODULUS, NEGATE, IDENTITY, MINIMUM, MAXIMUM
        Arithmetic.
    EQUAL_TO, NOT_EQUAL_TO, GREATER, LESS, GREATER_EQUAL, LESS_EQUAL, LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT
        Truth values.
    BIT_AND, BIT_OR, BIT_XOR, BIT_NOT
        Of integers.

    Examples
    --------
    >>> x, out = np.array([7, -7]), np.zeros(2, int)
    >>> ct.compute.binary_transform(x, np.array([2, 2]), out, ct.compute.OpKind.DIVIDES, 2)
    >>> out
    array([ 3, -3])
    """

    STATELESS = 0
    STATEFUL = 1
    PLUS = 2
    MINUS = 3
    MULTIPLIES = 4
    DIVIDES = 5
    MODULUS = 6
    EQUAL_TO = 7
    NOT_EQUAL_TO = 8
    GREATER = 9
    LESS = 10
    GREATER_EQUAL = 11
    LESS_EQUAL = 12
    LOGICAL_AND = 13
    LOGICAL_OR = 14
    LOGICAL_NOT = 15
    BIT_AND = 16
    BIT_OR = 17
    BIT_XOR = 18
    BIT_NOT = 19
    IDENTITY = 20
    NEGATE = 21
    MINIMUM = 22
    MAXIMUM = 23


def divides(x, y):
    """C++'s quotient: integers truncate towards zero."""
    if ct.static_eval(_is_integral(x)):
        q = x // y
        return q + 1 if q * y != x and (x < 0) != (y < 0) else q
    return x / y


def modulus(x, y):
    """C++'s remainder, with the sign of the dividend."""
    rest = x % y
    return rest - y if rest != 0 and (x < 0) != (y < 0) else rest


def _is_integral(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)  # of a struct's class it is NumPy's
    return isinstance(dtype, ct.DType) and info(dtype).integral


def wide(x):
    """A float that has no arithmetic, as those of eight bits, in float32; all other numbers as they are."""
    return ct.astype(x, ct.float32) if ct.static_eval(_is_restricted(x)) else x


def number(x):
    """What C++ computes with: the truth values are the integers 0 and 1."""
    return ct.astype(x, ct.int32) if ct.static_eval(getattr(x, "dtype", None) == ct.bool_) else wide(x)


def _is_restricted(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return isinstance(dtype, ct.DType) and info(dtype).floating and not info(dtype).arithmetic


FUNCTIONS: dict[OpKind, Callable] = {
    OpKind.PLUS: lambda x, y: number(x) + number(y),
    OpKind.MINUS: lambda x, y: number(x) - number(y),
    OpKind.MULTIPLIES: lambda x, y: number(x) * number(y),
    OpKind.DIVIDES: lambda x, y: divides(number(x), number(y)),
    OpKind.MODULUS: lambda x, y: modulus(number(x), number(y)),
    OpKind.EQUAL_TO: lambda x, y: wide(x) == wide(y),
    OpKind.NOT_EQUAL_TO: lambda x, y: wide(x) != wide(y),
    OpKind.GREATER: lambda x, y: wide(x) > wide(y),
    OpKind.LESS: lambda x, y: wide(x) < wide(y),
    OpKind.GREATER_EQUAL: lambda x, y: wide(x) >= wide(y),
    OpKind.LESS_EQUAL: lambda x, y: wide(x) <= wide(y),
    OpKind.LOGICAL_AND: lambda x, y: wide(x) != 0 and wide(y) != 0,
    OpKind.LOGICAL_OR: lambda x, y: wide(x) != 0 or wide(y) != 0,
    OpKind.LOGICAL_NOT: lambda x: wide(x) == 0,
    OpKind.BIT_AND: lambda x, y: x & y,
    OpKind.BIT_OR: lambda x, y: x | y,
    OpKind.BIT_XOR: lambda x, y: x ^ y,
    OpKind.BIT_NOT: lambda x: ~x,
    OpKind.IDENTITY: lambda x: x,
    OpKind.NEGATE: lambda x: -wide(x),
    OpKind.MINIMUM: lambda x, y: ct.minimum(number(x), number(y)),
    OpKind.MAXIMUM: lambda x, y: ct.maximum(number(x), number(y)),
}

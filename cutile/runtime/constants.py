"""Constant arguments: the value that is embedded in the kernel, and the key that tells two of them apart [SPEC-1]."""

from __future__ import annotations

import enum
import struct
from typing import Any

import numpy as np

from cutile.ir.terms import to_builtin


def plain_constant(value: Any) -> Any:
    """A constant without what a subclass of int, float or str adds to it. NumPy scalars and enum members stay."""
    return value if issubclass(type(value), np.generic | enum.Enum) else to_builtin(value)


def constant_key(value: Any) -> tuple:
    """Equal for the same constant: 1, True and 1.0 differ, 0.0 and -0.0 differ, NaN equals itself [SPEC-1]."""
    if type(value) is int:  # the usual case
        return (int, value)
    value = plain_constant(value)
    if isinstance(value, np.generic):
        return (type(value), value.tobytes())
    if isinstance(value, float):
        return (type(value), struct.pack("<d", value))
    if isinstance(value, enum.Enum) and value._name_ is not None:  # its own __eq__ does not count
        return (type(value), value._name_)
    return (type(value), value)

"""Calling conventions [CC-1…8]."""

from __future__ import annotations

from typing import Any


class CallingConvention:
    """How a compiled kernel takes its arguments, and how its symbol is named.

    v1 has scalars, arrays, lists and constants; v2 adds tuples and constant sizes.
    """

    __slots__ = ("name", "code", "version")
    __hash__ = None

    def __init__(self, *args, **kwargs):
        raise TypeError("use CallingConvention.cutile_python_v1() or cutile_python_v2()")

    @staticmethod
    def cutile_python_v1() -> CallingConvention:
        """The convention of scalars, arrays, lists and constants."""
        return _V1

    @staticmethod
    def cutile_python_v2() -> CallingConvention:
        """v1, and tuples and constant sizes."""
        return _V2

    @staticmethod
    def from_code(code: str) -> CallingConvention:
        """The convention with a code: t1 or t2. ValueError for any other."""
        for c in (_V1, _V2):
            if c.code == code:
                return c
        raise ValueError(f"there is no calling convention {code!r}; there are t1 and t2")

    def __setattr__(self, name: str, *value: Any):
        raise AttributeError("calling conventions are immutable")

    __delattr__ = __setattr__

    def __reduce__(self) -> tuple:
        return CallingConvention.from_code, (self.code,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallingConvention) and self.code == other.code

    def __repr__(self) -> str:
        return f"CallingConvention({self.name!r}, {self.code!r})"


def _convention(version: int) -> CallingConvention:
    c = object.__new__(CallingConvention)
    for name, value in zip(c.__slots__, (f"cutile_python_v{version}", f"t{version}", version), strict=True):
        object.__setattr__(c, name, value)
    return c


_V1, _V2 = _convention(1), _convention(2)

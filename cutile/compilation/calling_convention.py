"""Calling conventions [CC-1…8]."""

from __future__ import annotations

from typing import Any


class CallingConvention:
    """How a compiled kernel takes its arguments, and how its symbol is named.

    Version 1 has scalars, arrays, lists and constants; version 2 adds tuples and constant sizes.

    Attributes
    ----------
    name : str
        Such as "cutile_python_v1".
    code : str
        How symbols spell it: "t1" or "t2".
    version : int
        1 or 2.

    Notes
    -----
    [CC-1…8]

    Examples
    --------
    >>> cutile.compilation.CallingConvention.cutile_python_v1().code
    't1'
    """

    __slots__ = ("name", "code", "version")
    __hash__ = None

    def __init__(self, *args, **kwargs):
        raise TypeError("use CallingConvention.cutile_python_v1() or cutile_python_v2()")

    @staticmethod
    def cutile_python_v1() -> CallingConvention:
        """Give the convention of scalars, arrays, lists and constants.

        Returns
        -------
        CallingConvention
        """
        return _V1

    @staticmethod
    def cutile_python_v2() -> CallingConvention:
        """Give the convention that also has tuples and constant sizes.

        Returns
        -------
        CallingConvention
        """
        return _V2

    @staticmethod
    def from_code(code: str) -> CallingConvention:
        """Give the convention with a code.

        Parameters
        ----------
        code : str
            "t1" or "t2".

        Returns
        -------
        CallingConvention

        Raises
        ------
        ValueError
            Any other code.
        """
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

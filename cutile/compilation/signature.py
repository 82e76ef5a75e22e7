"""Kernel signatures and calling conventions [SIG-1…3, CC-1…8]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutile._support.structs import structure
from cutile.compilation.constraints import (
    ArrayConstraint,
    ListConstraint,
    ParameterConstraint,
    TupleConstraint,
    normalise,
    walk,
)


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


@structure(frozen=True)
class KernelSignature:
    """The parameters of a compiled kernel, its calling convention and its symbol (None: the mangled name)."""

    parameters: tuple[ParameterConstraint, ...]
    calling_convention: CallingConvention
    symbol: str | None

    def __init__(self, parameters: Sequence[ParameterConstraint | bool | int | float | tuple],
                 calling_convention: CallingConvention, symbol: str | None = None):
        if not isinstance(calling_convention, CallingConvention):
            raise TypeError(f"calling_convention must be a CallingConvention, not {calling_convention!r}")
        if symbol is not None and not isinstance(symbol, str):
            raise TypeError(f"symbol must be a string or None, not {symbol!r}")
        normal = tuple(map(normalise, parameters))
        _check_convention(normal, calling_convention)
        _check_aliases(normal)
        for name, value in zip(self.__match_args__, (normal, calling_convention, symbol), strict=True):
            object.__setattr__(self, name, value)

    def with_symbol(self, symbol: str | None) -> KernelSignature:
        """A copy with another symbol."""
        return KernelSignature(self.parameters, self.calling_convention, symbol)

    def with_mangled_symbol(self, function_name: str) -> KernelSignature:
        """A copy whose symbol is mangled from a function's name."""
        from cutile.compilation.mangling import mangle_kernel_name

        return self.with_symbol(mangle_kernel_name(function_name, self))

    @staticmethod
    def from_kernel_args(kernel: Any, kernel_args: Sequence[Any], calling_convention: CallingConvention, *,
                         symbol: str | None = None) -> KernelSignature:
        """The signature that launching with these arguments would compile for; the symbol is mangled if None [SIG-3].

        Accidents of the examples become promises (an address that happens to be divisible by 16): for tests only.
        """
        from cutile.compilation.derive import derive
        from cutile.compilation.mangling import symbol_of

        signature = KernelSignature(derive(kernel, tuple(kernel_args), calling_convention), calling_convention, symbol)
        return signature if symbol is not None else signature.with_mangled_symbol(symbol_of(kernel.__name__))


def _check_convention(parameters: tuple[ParameterConstraint, ...], convention: CallingConvention) -> None:
    if convention.version > 1:
        return
    if any(isinstance(p, TupleConstraint) for p in parameters):
        raise ValueError(f"{convention.name} has no tuples; use cutile_python_v2")
    for p in parameters:
        array = p.element if isinstance(p, ListConstraint) else p
        if isinstance(array, ArrayConstraint) and any(s is not None for s in array.shape_constant):
            raise ValueError(f"{convention.name} has no constant sizes; use cutile_python_v2")


def _check_aliases(parameters: tuple[ParameterConstraint, ...]) -> None:
    """A group joins at least two parameters of one kind: arrays, or tables of lists [SIG-9]."""
    users: dict[str, list[str]] = {}
    for p in walk(parameters):
        if isinstance(p, ListConstraint):
            for g in p.alias_groups:
                users.setdefault(g, []).append("table")
        array = p.element if isinstance(p, ListConstraint) else p
        for g in getattr(array, "alias_groups", ()):
            users.setdefault(g, []).append("array")
    for group, kinds in users.items():
        if len(kinds) < 2:
            raise ValueError(f"alias group {group!r} names only one parameter")
        if len(set(kinds)) > 1:
            raise ValueError(f"alias group {group!r} joins an array and the table of a list")

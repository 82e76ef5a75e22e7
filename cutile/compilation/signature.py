"""Kernel signatures [SIG-1…3]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutile._support.structs import structure
from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.constraints import (
    ArrayConstraint,
    ListConstraint,
    ParameterConstraint,
    TupleConstraint,
    normalise,
    walk,
)
from cutile.compilation.mangling import mangle_kernel_name, symbol_of


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
        return self.with_symbol(mangle_kernel_name(function_name, self))

    @staticmethod
    def from_kernel_args(kernel: Any, kernel_args: Sequence[Any], calling_convention: CallingConvention, *,
                         symbol: str | None = None) -> KernelSignature:
        """The signature that launching with these arguments would compile for; the symbol is mangled if None [SIG-3].

        Chance properties of these arguments become promises (an address divisible by 16): for tests only.
        """
        from cutile.compilation.derive import derive  # which signatures written by hand do without

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

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
from cutile.compilation.fields import listed
from cutile.compilation.mangling import mangle_kernel_name, symbol_of


@structure(frozen=True)
class KernelSignature:
    """What a kernel is compiled for: its parameters, its calling convention, and its symbol.

    Parameters
    ----------
    parameters : sequence
        A constraint for each parameter. A plain bool, int, float or tuple stands for its constraint.
    calling_convention : CallingConvention
        How arguments are passed.
    symbol : str or None, default None
        The symbol; None: it is made of the kernel's name and this signature.

    Attributes
    ----------
    parameters, calling_convention, symbol
        As above.

    Raises
    ------
    TypeError
        A value of another kind.
    ValueError
        The calling convention lacks what a parameter needs, or a group of aliases has one member.

    Notes
    -----
    [SIG-1…3]

    Examples
    --------
    >>> C = cutile.compilation
    >>> s = C.KernelSignature([C.ScalarConstraint(ct.int32), 4], C.CallingConvention.cutile_python_v1())
    >>> s.with_mangled_symbol("f").symbol
    'f_Kt1_Si32_I4'
    """

    parameters: tuple[ParameterConstraint, ...]
    calling_convention: CallingConvention
    symbol: str | None

    def __init__(self, parameters: Sequence[ParameterConstraint | bool | int | float | tuple],
                 calling_convention: CallingConvention, symbol: str | None = None):
        if not isinstance(calling_convention, CallingConvention):
            raise TypeError(f"calling_convention must be a CallingConvention, not {calling_convention!r:.100}")
        if symbol is not None and not isinstance(symbol, str):
            raise TypeError(f"symbol must be a string or None, not {symbol!r}")
        normal = tuple(map(normalise, listed("the parameters of a KernelSignature", "constraints", parameters)))
        _check_convention(normal, calling_convention)
        _check_aliases(normal)
        for name, value in zip(self.__match_args__, (normal, calling_convention, symbol), strict=True):
            object.__setattr__(self, name, value)

    def with_symbol(self, symbol: str | None) -> KernelSignature:
        """Give a copy with another symbol.

        Parameters
        ----------
        symbol : str or None
            The symbol.

        Returns
        -------
        KernelSignature
        """
        return KernelSignature(self.parameters, self.calling_convention, symbol)

    def with_mangled_symbol(self, function_name: str) -> KernelSignature:
        """Give a copy whose symbol is made of a function's name and this signature.

        Parameters
        ----------
        function_name : str
            The name.

        Returns
        -------
        KernelSignature
        """
        return self.with_symbol(mangle_kernel_name(function_name, self))

    @staticmethod
    def from_kernel_args(kernel: Any, kernel_args: Sequence[Any], calling_convention: CallingConvention, *,
                         symbol: str | None = None) -> KernelSignature:
        """Give the signature that launching with these arguments would compile for.

        What happens to hold for these arguments becomes a promise, such as an address that is divisible by 16: use it
        in tests only, or with `ct.ArraySpec`.

        Parameters
        ----------
        kernel : kernel or function
            As for `ct.launch`, or made by `ct.jit`.
        kernel_args : sequence
            As for `ct.launch`, or for a call of the function, which adds its outputs. A `ct.ArraySpec` may stand for an
            array, and a dtype for a number.
        calling_convention : CallingConvention
            How arguments are passed.
        symbol : str or None, default None
            The symbol; None: it is made of the kernel's name and the signature.

        Returns
        -------
        KernelSignature

        Notes
        -----
        [SIG-3]
        """
        from cutile.compilation.derive import derive, of_function  # which signatures written by hand do without

        if not isinstance(calling_convention, CallingConvention):
            raise TypeError(f"calling_convention must be a CallingConvention, not {calling_convention!r:.100}")
        given = listed("kernel_args", "arguments", kernel_args)
        kernel, (kernel_args,) = of_function(kernel, [given])
        if not hasattr(kernel, "classify"):
            raise TypeError(f"the first argument of from_kernel_args() must be a kernel, not {kernel!r:.100}; a "
                            f"function becomes one by @ct.kernel")
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

"""The constraints and the symbol that a launch compiles for, from its arguments [SPEC-5, D-4]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.constraints import ListConstraint, ParameterConstraint, TupleConstraint
from cutile.compilation.derive import constraints_of
from cutile.compilation.mangling import symbol_of
from cutile.compilation.signature import KernelSignature
from cutile.front.program import Embedded
from cutile.runtime.arguments import Argument


def of_launch(kernel: Any, arguments: Sequence[Argument]) -> tuple[list[ParameterConstraint], str]:
    """A constraint for each parameter that is passed on, and the symbol.

    If no signature can express a constant or dtype, the symbol is the kernel's name.
    """
    arg_types = [a.arg_type for a in arguments]
    name = symbol_of(kernel.__name__)
    try:
        constraints = constraints_of(kernel, arg_types, arguments, CallingConvention.cutile_python_v2())
        signature = KernelSignature(constraints, _oldest(constraints)).with_mangled_symbol(name)
    except (TypeError, ValueError):
        passed = list(map(_without_constants, arg_types))
        return constraints_of(kernel, passed, arguments, CallingConvention.cutile_python_v2()), name
    return constraints, signature.symbol


def _oldest(constraints: Sequence[ParameterConstraint]) -> CallingConvention:
    """The oldest convention that can say all of these [SPEC-5]."""
    for c in constraints:
        array = c.element if isinstance(c, ListConstraint) else c
        if isinstance(c, TupleConstraint) or any(s is not None for s in getattr(array, "shape_constant", ())):
            return CallingConvention.cutile_python_v2()
    return CallingConvention.cutile_python_v1()


def _without_constants(arg_type: Any) -> Any:
    if isinstance(arg_type, Embedded):
        return ()
    return tuple(map(_without_constants, arg_type)) if isinstance(arg_type, tuple) else arg_type

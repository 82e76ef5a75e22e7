"""Compiling ahead of time: signatures, calling conventions, kernel names, export (conformance/spec/compilation.md).

In: a kernel and signatures, or the arguments of a launch. Out: bytecode, cubins, C headers; what a launch compiles for.
It may not know the interpreter.
"""

from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.constraints import (
    ArrayConstraint,
    ConstantConstraint,
    ConstantValue,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from cutile.compilation.demangling import demangle_kernel_name
from cutile.compilation.export import export_kernel
from cutile.compilation.mangling import mangle_kernel_name
from cutile.compilation.signature import KernelSignature

__all__ = [
    "ArrayConstraint",
    "CallingConvention",
    "ConstantConstraint",
    "ConstantValue",
    "KernelSignature",
    "ListConstraint",
    "ParameterConstraint",
    "ScalarConstraint",
    "TupleConstraint",
    "demangle_kernel_name",
    "export_kernel",
    "mangle_kernel_name",
]

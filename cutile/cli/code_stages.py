"""Stages of `cutile show` that need the GPU code of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutile.compilation.constraints import ArrayConstraint, ConstantConstraint, ParameterConstraint, ScalarConstraint
from cutile.compilation.derive import ALIGNMENT
from cutile.compilation.mangling import symbol_of
from cutile.dtypes import int32
from cutile.front.program import Embedded
from cutile.gpu.cubin import build
from cutile.gpu.resources import Resources, blocks_held, read
from cutile.gpu.target import Target
from cutile.ir import nodes
from cutile.passes.fma import fma
from cutile.runtime.options import Options
from cutile.types import ArrayType

SUPPOSED = f"arrays are contiguous, with addresses and sizes that are multiples of {ALIGNMENT}"


def resources(program: nodes.Kernel, arg_types: Sequence[Any], target: Target, options: Options) -> str:
    """What the code of a typed kernel takes, for arguments of these types. The errors of `gpu.cubin.build`."""
    symbol = symbol_of(program.name)
    taken = read(build(fma(program), list(map(constraint, arg_types)), target, options, symbol), symbol)
    return "\n".join([f"{program.name} for {target}, if {SUPPOSED}", *lines(taken, target)])


def lines(taken: Resources, target: Target) -> list[str]:
    """One line a resource."""
    held = blocks_held(taken, target)
    cluster = f" in clusters of {taken.ctas} blocks" if taken.ctas > 1 else ""
    return [f"threads a block          {taken.threads}{cluster}",
            f"registers a thread       {taken.registers}",
            f"stack a thread           {taken.stack} bytes",
            f"shared memory a block    {taken.shared} bytes",
            f"code                     {taken.code} bytes",
            f"blocks a multiprocessor  {held}, which is {held * taken.warps} warps"]


def constraint(arg_type: Any) -> ParameterConstraint:
    """What a launch with contiguous, aligned arrays whose sizes are multiples of ALIGNMENT knows of a parameter."""
    if isinstance(arg_type, Embedded):
        return ConstantConstraint(arg_type.value)
    if not isinstance(arg_type, ArrayType):
        return ScalarConstraint(arg_type.dtype)
    n, unit = arg_type.ndim, max(8 * ALIGNMENT // arg_type.dtype.bitwidth, 1)
    return ArrayConstraint(arg_type.dtype, n, index_dtype=int32, stride_lower_bound_incl=0, alias_groups=(),
                           may_alias_internally=False, stride_constant=(None,) * (n - 1) + (1,) * min(n, 1),
                           stride_divisible_by=(unit,) * (n - 1) + (1,) * min(n, 1), shape_divisible_by=ALIGNMENT,
                           base_addr_divisible_by=ALIGNMENT)

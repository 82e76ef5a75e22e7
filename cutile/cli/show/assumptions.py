"""Assumptions about arguments that are given by type only."""

from __future__ import annotations

from typing import Any

from cutile.compilation.constraints import ArrayConstraint, ConstantConstraint, ParameterConstraint, ScalarConstraint
from cutile.compilation.derive import ALIGNMENT
from cutile.dtypes import int32
from cutile.front.program import Embedded
from cutile.types import ArrayType

ASSUMED = f"arrays are contiguous, with addresses and sizes that are multiples of {ALIGNMENT}"


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

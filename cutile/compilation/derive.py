"""The signature that a launch compiles for, from its arguments [SPEC-2, SPEC-3, SIG-3]."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutile.annotations import ArrayAnnotation, ParameterSpec
from cutile.compilation.constraints import (
    ArrayConstraint,
    ConstantConstraint,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from cutile.compilation.signature import CallingConvention
from cutile.front.program import Embedded
from cutile.types import ArrayType, ListType, TileType

ALIGNMENT = 16  # bytes of an address or stride, elements of a size, whose divisibility is looked at
DETAILED_RANK = 5  # arrays of higher rank get only the facts about their address and themselves


def derive(kernel: Any, values: tuple, convention: CallingConvention) -> list[ParameterConstraint]:
    """One constraint per parameter; errors as launching with these arguments would give."""
    arguments = kernel.understand(values)
    return [_of(a.blueprint, iter(a.leaves), spec, convention)
            for a, spec in zip(arguments, kernel.parameters.values(), strict=True)]


def _of(blueprint: Any, leaves, spec: ParameterSpec, convention: CallingConvention) -> ParameterConstraint:
    match blueprint:
        case Embedded():
            return ConstantConstraint(blueprint.value)
        case tuple():
            return TupleConstraint([_of(b, leaves, spec.item(i), convention) for i, b in enumerate(blueprint)])
        case TileType():
            next(leaves)
            return ScalarConstraint(blueprint.dtype)
        case ArrayType():
            return array_constraint(blueprint, [next(leaves)], spec.array or ArrayAnnotation(), convention)
        case ListType():
            annotation = spec.list.element if spec.list else ArrayAnnotation()
            element = array_constraint(blueprint.element, next(leaves), annotation, convention)
            return ListConstraint(element, alias_groups=(), elements_may_alias=True)
    raise TypeError(f"no constraint for {blueprint!r}")


def array_constraint(t: ArrayType, arrays: list[np.ndarray], annotation: ArrayAnnotation,
                     convention: CallingConvention) -> ArrayConstraint:
    """What holds for all of these arrays (one for a parameter, all elements for a list)."""
    n, item = t.ndim, arrays[0].itemsize
    strides = [[s // item for s in a.strides] for a in arrays]
    detailed = n <= DETAILED_RANK
    unit = max(ALIGNMENT // item, 1)

    def every(values, test) -> bool:
        return detailed and all(map(test, values))

    shape_constant, stride_constant = list(t.static_shape), list(t.static_strides)
    shape_div, stride_div = [1] * n, [1] * n
    for k in range(n):
        sizes, steps = [a.shape[k] for a in arrays], [s[k] for s in strides]
        if not annotation.static_shape_dims and convention.version > 1 and every(sizes, lambda v: v == 1):
            shape_constant[k] = 1
        if not annotation.static_stride_dims and every(steps, lambda v: v == 1):
            stride_constant[k] = 1
        if shape_constant[k] is None and every(sizes, lambda v: v % ALIGNMENT == 0):
            shape_div[k] = ALIGNMENT
        if stride_constant[k] is None and every(steps, lambda v: v * item % ALIGNMENT == 0):
            stride_div[k] = unit
    aligned = all(a.__array_interface__["data"][0] % ALIGNMENT == 0 for a in arrays)
    return ArrayConstraint(
        t.dtype, n, index_dtype=t.index_dtype, stride_lower_bound_incl=0, alias_groups=(),
        may_alias_internally=not all(map(distinct_elements, arrays)), stride_constant=stride_constant,
        shape_constant=shape_constant, stride_divisible_by=stride_div, shape_divisible_by=shape_div,
        base_addr_divisible_by=ALIGNMENT if aligned else 1)


def distinct_elements(a: np.ndarray) -> bool:
    """No two elements share memory, by the check of sorted positive strides."""
    reach = 0
    for stride, size in sorted(zip(a.strides, a.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += stride * (size - 1)
    return True

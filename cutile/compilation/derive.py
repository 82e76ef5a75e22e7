"""The signature that a launch compiles for, from its arguments [SPEC-2, SPEC-3, SIG-3]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutile.compilation.constraints import (
    ArrayConstraint,
    ConstantConstraint,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from cutile.compilation.mangling import symbol_of
from cutile.compilation.signature import CallingConvention, KernelSignature
from cutile.front.program import Embedded
from cutile.runtime.annotations import ArrayAnnotation, ParameterSpec
from cutile.runtime.arguments import Argument
from cutile.runtime.arrays import layout
from cutile.types import ArrayType, ListType, TileType

ALIGNMENT = 16  # bytes of an address or stride, elements of a size, whose divisibility is looked at
DETAILED_RANK = 5  # arrays of higher rank get only the facts about their address and themselves


def derive(kernel: Any, values: tuple, convention: CallingConvention) -> list[ParameterConstraint]:
    """One constraint per parameter; errors as launching with these arguments would give."""
    arguments = kernel.understand(values)
    return _constraints(kernel, [a.blueprint for a in arguments], arguments, convention)


def of_launch(kernel: Any, arguments: Sequence[Argument]) -> tuple[list[ParameterConstraint], str]:
    """What a launch compiles for: a constraint for each parameter that is passed on, and the symbol.

    Launches take constants and dtypes that no signature can say: then the symbol is the kernel's name alone.
    """
    blueprints = [a.blueprint for a in arguments]
    name = symbol_of(kernel.__name__)
    try:
        constraints = _constraints(kernel, blueprints, arguments, CallingConvention.cutile_python_v2())
        signature = KernelSignature(constraints, _oldest(constraints)).with_mangled_symbol(name)
    except (TypeError, ValueError):
        passed = list(map(_without_constants, blueprints))
        return _constraints(kernel, passed, arguments, CallingConvention.cutile_python_v2()), name
    return constraints, signature.symbol


def _oldest(constraints: Sequence[ParameterConstraint]) -> CallingConvention:
    """The oldest convention that can say all of these [SPEC-5]."""
    for c in constraints:
        array = c.element if isinstance(c, ListConstraint) else c
        if isinstance(c, TupleConstraint) or any(s is not None for s in getattr(array, "shape_constant", ())):
            return CallingConvention.cutile_python_v2()
    return CallingConvention.cutile_python_v1()


def _without_constants(blueprint: Any) -> Any:
    if isinstance(blueprint, Embedded):
        return ()
    return tuple(map(_without_constants, blueprint)) if isinstance(blueprint, tuple) else blueprint


def _constraints(kernel: Any, blueprints: Sequence[Any], arguments: Sequence[Argument],
                 convention: CallingConvention) -> list[ParameterConstraint]:
    return [_of(b, iter(a.leaves), spec, convention)
            for b, a, spec in zip(blueprints, arguments, kernel.parameters.values(), strict=True)]


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


def array_constraint(t: ArrayType, arrays: list[Any], annotation: ArrayAnnotation,
                     convention: CallingConvention) -> ArrayConstraint:
    """What holds for all of these arrays (one for a parameter, all elements for a list).

    A negative stride is promised to nobody: its dimension loses the lower bound 0, unlike SPEC-3.
    """
    layouts = list(map(layout, arrays))
    n, packed = t.ndim, t.dtype.bitwidth < 8  # in CPU memory, such elements may have a byte each
    bits = t.dtype.bitwidth if packed else 8 * layouts[0][3]
    detailed = n <= DETAILED_RANK
    unit = max(8 * ALIGNMENT // bits, 1)

    def every(values, test) -> bool:
        return detailed and all(map(test, values))

    shape_constant, stride_constant = list(t.static_shape), list(t.static_strides)
    shape_div, stride_div, low = [1] * n, [1] * n, [0] * n
    for k in range(n):
        sizes, steps = [shape[k] for _, shape, _, _ in layouts], [strides[k] for _, _, strides, _ in layouts]
        if not annotation.static_shape_dims and convention.version > 1 and every(sizes, lambda v: v == 1):
            shape_constant[k] = 1
        if not annotation.static_stride_dims and every(steps, lambda v: v == 1):
            stride_constant[k] = 1
        if shape_constant[k] is None and every(sizes, lambda v: v % ALIGNMENT == 0):
            shape_div[k] = ALIGNMENT
        if stride_constant[k] is None and every(steps, lambda v: v * bits % (8 * ALIGNMENT) == 0):
            stride_div[k] = unit
        if any(v < 0 for v in steps):
            low[k] = None
    aligned = not packed and all(pointer % ALIGNMENT == 0 for pointer, *_ in layouts)
    return ArrayConstraint(
        t.dtype, n, index_dtype=t.index_dtype, stride_lower_bound_incl=low, alias_groups=(),
        may_alias_internally=not all(distinct_elements(shape, strides) for _, shape, strides, _ in layouts),
        stride_constant=stride_constant, shape_constant=shape_constant, stride_divisible_by=stride_div,
        shape_divisible_by=shape_div, base_addr_divisible_by=ALIGNMENT if aligned else 1)


def distinct_elements(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """No two elements share memory, by the check of sorted positive strides."""
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += stride * (size - 1)
    return True

"""What holds for the arguments of a launch, as constraints [SPEC-2, SPEC-3, SIG-3]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cutile.compilation.array_spec import samples
from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.constraints import (
    ArrayConstraint,
    ConstantConstraint,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from cutile.dtypes import INFO
from cutile.front.program import Embedded
from cutile.runtime.annotations import ANY_ARRAY, ArrayAnnotation, ParameterSpec
from cutile.runtime.arguments import Argument
from cutile.runtime.array_ref import ArrayRef
from cutile.runtime.kernel import Kernel
from cutile.types import ArrayType, ListType, TileType

ALIGNMENT = 16  # bytes of an address or stride, elements of a size, whose divisibility is looked at
DETAILED_RANK = 5  # above this rank, only facts about address and aliasing are derived


def derive(kernel: Any, values: tuple, convention: CallingConvention) -> list[ParameterConstraint]:
    """One constraint per parameter; raises the errors of a launch with these arguments."""
    arguments = kernel.classify(samples(values, kernel.specs))
    return constraints_of(kernel, [a.arg_type for a in arguments], arguments, convention)


def of_function(kernel: Any, calls: Any) -> tuple[Any, Any]:
    """The kernel of a function by ct.jit, and for the arguments of a call those of the kernel, outputs too."""
    complete = getattr(kernel, "_arguments_of_kernel", None)
    if complete is None or isinstance(kernel, Kernel):
        return kernel, calls
    if isinstance(calls, Iterable) and not isinstance(calls, tuple):
        calls = [complete(c) if isinstance(c, tuple) else c for c in calls]
    return kernel.launched, calls


def constraints_of(kernel: Any, arg_types: Sequence[Any], arguments: Sequence[Argument],
                   convention: CallingConvention) -> list[ParameterConstraint]:
    """One constraint per parameter, for arguments of these types."""
    return [_of(name, t, iter(a.flat_args), spec, convention)
            for name, t, a, spec in zip(kernel.names, arg_types, arguments, kernel.specs, strict=True)]


def _of(name: str, arg_type: Any, flat_args, spec: ParameterSpec,
        convention: CallingConvention) -> ParameterConstraint:
    match arg_type:
        case Embedded():
            if not isinstance(arg_type.value, bool | int | float):
                raise TypeError(f"parameter `{name}` is a constant, and signatures hold constants that are a bool, an "
                                f"int or a float, not {arg_type.value!r:.100}; give its value, such as 128")
            return ConstantConstraint(arg_type.value)
        case tuple():
            return TupleConstraint([_of(f"{name}[{k}]", t, flat_args, s, convention)
                                    for k, (t, s) in enumerate(zip(arg_type, spec.items, strict=False))])
        case TileType():
            next(flat_args)
            return ScalarConstraint(arg_type.dtype)
        case ArrayType():
            return array_constraint(arg_type, [next(flat_args)], spec.array or ANY_ARRAY, convention)
        case ListType():
            annotation = spec.list.element if spec.list else ANY_ARRAY
            element = array_constraint(arg_type.element, next(flat_args), annotation, convention)
            return ListConstraint(element, alias_groups=(), elements_may_alias=True)
    raise TypeError(f"no constraint for {arg_type!r}")


def array_constraint(t: ArrayType, arrays: Sequence[ArrayRef], annotation: ArrayAnnotation,
                     convention: CallingConvention) -> ArrayConstraint:
    """What holds for all of these arrays (one for a parameter, all elements for a list).

    A dimension with a negative stride gets no lower bound; SPEC-3 would give 0.
    """
    n, packed = t.ndim, t.dtype.bitwidth < 8  # packed on a GPU; in CPU memory, such elements may have a byte each
    bits = t.dtype.bitwidth if packed else 8 * INFO[t.dtype].storage.itemsize
    detailed = n <= DETAILED_RANK
    unit = max(8 * ALIGNMENT // bits, 1)

    def every(values, test) -> bool:
        return detailed and all(map(test, values))

    shape_constant, stride_constant = list(t.static_shape), list(t.static_strides)
    shape_div, stride_div, low = [1] * n, [1] * n, [0] * n
    for k in range(n):
        sizes, steps = [a.shape[k] for a in arrays], [a.strides[k] for a in arrays]
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
    aligned = not packed and all(a.pointer % ALIGNMENT == 0 for a in arrays)
    return ArrayConstraint(
        t.dtype, n, index_dtype=t.index_dtype, stride_lower_bound_incl=low, alias_groups=(),
        may_alias_internally=not all(distinct_elements(a.shape, a.strides) for a in arrays),
        stride_constant=stride_constant, shape_constant=shape_constant, stride_divisible_by=stride_div,
        shape_divisible_by=shape_div, base_addr_divisible_by=ALIGNMENT if aligned else 1)


def distinct_elements(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether no two elements share memory, by a check of sorted positive strides; False may be wrong."""
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += stride * (size - 1)
    return True

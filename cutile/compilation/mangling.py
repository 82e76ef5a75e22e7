"""Symbols of kernels: a signature as a name [MNG-1…24]."""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from typing import TYPE_CHECKING

from cutile.compilation.constraints import (
    ArrayConstraint,
    ConstantConstraint,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
    walk,
)
from cutile.dtypes import (
    DType,
    bfloat16,
    bool_,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    tfloat32,
    uint8,
    uint16,
    uint32,
    uint64,
)

if TYPE_CHECKING:
    from cutile.compilation.signature import KernelSignature


def symbol_of(name: str) -> str:
    """A Python name as a symbol: `_` replaces all but ASCII letters and digits, as the brackets of `<lambda>`."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


CODES: dict[DType, str] = {
    bool_: "b8", uint8: "u8", uint16: "u16", uint32: "u32", uint64: "u64", int8: "i8", int16: "i16", int32: "i32",
    int64: "i64", float16: "f16", float32: "f32", float64: "f64", bfloat16: "bf16", tfloat32: "tf32",
    float8_e4m3fn: "f8m3fn", float8_e5m2: "f8m2", float8_e8m0fnu: "f8m0fnu",
}
INDEX = {int32: "", uint32: "u", int64: "w"}

# The predicates of a dimension in the order in which they are written: field, letter, default, which is not written.
PREDICATES = (("shape_constant", "s", None), ("shape_divisible_by", "i", 1), ("stride_constant", "t", None),
              ("stride_divisible_by", "v", 1), ("stride_lower_bound_incl", "l", None))


def mangle_kernel_name(function_name: str, kernel_signature: KernelSignature) -> str:
    """Give the symbol of a function compiled for a signature.

    Parameters
    ----------
    function_name : str
        The name of the function.
    kernel_signature : KernelSignature
        The signature; its own symbol plays no part.

    Returns
    -------
    str

    Raises
    ------
    TypeError
        The name is no string, or the signature none.
    ValueError
        A dtype that has no code [MNG-6].

    Notes
    -----
    [MNG-1…24]

    Examples
    --------
    >>> C = cutile.compilation
    >>> signature = C.KernelSignature([C.ScalarConstraint(ct.int32)], C.CallingConvention.cutile_python_v1())
    >>> C.mangle_kernel_name("f", signature)
    'f_Kt1_Si32'
    """
    if not isinstance(function_name, str):
        raise TypeError(f"the name of a function is a string, not {function_name!r:.100}")
    if not hasattr(type(kernel_signature), "with_mangled_symbol"):  # KernelSignature, which imports this file
        raise TypeError(f"the second argument of mangle_kernel_name() is a KernelSignature, not "
                        f"{kernel_signature!r:.100}")
    groups = _group_numbers(kernel_signature.parameters)
    parts = [_mangle(p, groups) for p in kernel_signature.parameters]
    return "_".join([f"{function_name}_K{kernel_signature.calling_convention.code}", *parts])


def _group_numbers(parameters: tuple[ParameterConstraint, ...]) -> dict[str, int]:
    """The number of each alias group, by first appearance; a list's table comes before its element [MNG-5]."""
    groups: dict[str, int] = {}
    for p in walk(parameters):
        for names in ([p.alias_groups, p.element.alias_groups] if isinstance(p, ListConstraint)
                      else [getattr(p, "alias_groups", ())]):
            for g in names:
                groups.setdefault(g, len(groups))
    return groups


def _mangle(p: ParameterConstraint, groups: dict[str, int]) -> str:
    match p:
        case ScalarConstraint():
            return "S" + _code(p.dtype)
        case ConstantConstraint():
            return _constant(p.value)
        case TupleConstraint():
            return f"T{len(p.items)}" + "".join(_mangle(i, groups) for i in p.items)
        case ListConstraint():
            alias = "i" if p.elements_may_alias else ""
            return "L" + _groups(p.alias_groups, groups) + alias + _mangle(p.element, groups)
        case ArrayConstraint():
            return _array(p, groups)


def _code(d: DType) -> str:
    if d not in CODES:
        raise ValueError(f"Unexpected dtype {d.name}: it has no code in kernel names; pass such data in uint8 arrays")
    return CODES[d]


def _constant(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return f"B{int(value)}"
    if isinstance(value, int):
        return "I" + _int(value)
    return "F" + struct.pack(">d", value).hex()


def _int(n: int) -> str:
    return f"_{-n}" if n < 0 else str(n)


def _groups(names: tuple[str, ...], groups: dict[str, int]) -> str:
    return "".join(f"g{n:x}" for n in sorted(groups[g] for g in names))


def _array(p: ArrayConstraint, groups: dict[str, int]) -> str:
    by_mask: dict[int, str] = defaultdict(str)
    for field, letter, default in PREDICATES:
        masks: dict[int, int] = defaultdict(int)
        for k, v in enumerate(getattr(p, field)):
            if v != default:
                masks[v] |= 1 << k
        for v, mask in masks.items():
            by_mask[mask] += letter + _int(v)
    extras = f"p{p.base_addr_divisible_by}" if p.base_addr_divisible_by != 1 else ""
    extras += _groups(p.alias_groups, groups) + ("i" if p.may_alias_internally else "") + INDEX[p.index_dtype]
    parts = [f"A{p.ndim}{_code(p.dtype)}", *(f"{mask:x}{by_mask[mask]}" for mask in sorted(by_mask))]
    return "_".join([*parts, extras] if extras else parts)

"""What operators give: the types of their results, and what else algorithms ask of them, on items of some types."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import cutile as ct
from cutile.compute.extremes import extreme
from cutile.compute.operator_errors import check_parameters, check_result, of_operator
from cutile.compute.value_types import Number, Struct, ValueType, tuple_of
from cutile.dtypes import info
from cutile.errors import TileError
from cutile.front.program import type_kernel
from cutile.ir.nodes import For, Kernel, Op, Region, While
from cutile.ir.text import anonymous_text
from cutile.ir.walk import only_op, walk
from cutile.types import TileType

if TYPE_CHECKING:
    from cutile.compute.operators import Operator


class Result(NamedTuple):
    """What an operator gives for operands of some types.

    type    of its results
    loops   whether it has a loop, or reads an array, and so cannot stand in ct.reduce or ct.scan
    kernel  IR of a kernel that applies it
    single  the name of the op of the language that it is, of two items one of _COMMUTATIVE, of one item one of _UNARY;
            "" if it is none, or may be another one at the next call
    picks   "maximum" or "minimum" if it compares two numbers and gives the larger or smaller one; "" if it does not.
            NaN, and equal numbers that differ, may come out otherwise than of that op
    """

    type: ValueType
    loops: bool
    kernel: Kernel
    single: str
    picks: str

    def digest(self) -> str:
        """A digest of what it computes."""
        return hashlib.sha256(anonymous_text(self.kernel).encode()).hexdigest()


def result_of(op: Operator, *operands: ValueType, argument: str = "op", to: ValueType | None = None) -> Result:
    """The result of an operator on items of these types. Raises the operator's errors, which name the argument that it
    is; if the result does not convert to the type `to`, that is one.
    """
    found = op.results.get(operands)
    if found is None:
        found = op.results.setdefault(operands, _checked(op, operands, argument))
    if to is not None:
        check_result(found.type, to, argument, operands, op.shown())
    return found


def _checked(op: Operator, operands: tuple[ValueType, ...], argument: str) -> Result:
    check_parameters(op.shown(), operands, argument)
    try:
        return _result(op, operands, op.function)
    except TileError:
        pass
    try:
        return _result(op, operands, op.shown())  # the errors, with the lines of the user's function
    except TileError as e:
        raise of_operator(e, op.shown(), operands, argument) from e.__cause__


def _result(op: Operator, operands: tuple[ValueType, ...], function: Callable) -> Result:
    seen: list[ValueType] = []

    def note(result: Any) -> None:
        seen.append(_type_of(result))

    def probe(numbers):
        values = tuple(operands[k].nest(numbers[k]) for k in ct.static_iter(range(len(operands))))
        result = ct.elementwise(function)(*values)
        ct.static_eval(note(result))

    numbers = tuple(tuple(TileType(d, (2,)) for d in t.dtypes) for t in operands)
    kernel = type_kernel(probe, [numbers, *(h.type for h in op.hidden)], op.hidden).kernel
    loops = any(isinstance(n, For | While) for n in walk(kernel.body) if not isinstance(n, Op))
    region = elementwise_region(kernel)
    single, picks = ("", "") if region is None or op.watched else (_single(region), extreme(region))
    if picks and all(info(p.type.dtype).integral for p in region.params):
        single = picks
    return Result(seen[0], loops or bool(op.hidden), kernel, single, picks)


def elementwise_region(kernel: Kernel) -> Region | None:
    """The operator in the IR of a kernel that applies it; None if it stands there without a region, as tile code."""
    return next((n.region for n in walk(kernel.body) if isinstance(n, Op) and n.region is not None), None)


_COMMUTATIVE = ("add", "mul", "minimum", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor")


_UNARY = ("negative", "bitwise_not")


def _single(region: Region) -> str:
    n = only_op(region)
    if n is None:
        return ""
    names = _COMMUTATIVE if len(region.params) == 2 else _UNARY
    if n.op.name not in names or n.attrs.get("flush_to_zero") or n.attrs.get("propagate_nan") \
            or n.results[0].type != n.operands[0].type:
        return ""
    return n.op.name if list(n.operands) in (list(region.params), list(region.params)[::-1]) else ""


def _type_of(result: Any) -> ValueType:
    if isinstance(result, tuple):
        return tuple_of(tuple(map(_type_of, result))).value_type
    if isinstance(found := getattr(type(result), "value_type", None), Struct):
        return found
    if dataclasses.is_dataclass(result):
        return tuple_of(tuple(_type_of(getattr(result, f.name)) for f in dataclasses.fields(result))).value_type
    return Number(result.dtype)

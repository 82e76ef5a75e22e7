"""Transforms of arrays in host memory by one call of NumPy, where the operator is one op of the language on integers,
perhaps with a constant, changes no more than the sign of floats of 16 bits, or is one operation on complex numbers. A
launch takes longer than NumPy adds two arrays of a million bytes, and goes over complex numbers part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cutile import settings
from cutile.compute.extremes import extreme_with
from cutile.compute.function_key import debugged
from cutile.compute.host_complex import ufunc_of
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.operators import Operator
from cutile.compute.results import Result, elementwise_region, result_of
from cutile.compute.value_types import Number, Struct
from cutile.dtypes import DType, bfloat16, bool_, float16, info
from cutile.ir.nodes import Op, Value
from cutile.ir.walk import only_ops

UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "minimum": np.minimum, "maximum": np.maximum,
          "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
          "negative": np.negative, "bitwise_not": np.invert, "abs": np.abs}
SIGNS = {"abs": (np.bitwise_and, 0x7FFF), "negative": (np.bitwise_xor, 0x8000)}
SHIFTS = {"bitwise_lshift": np.left_shift, "bitwise_rshift": np.right_shift}  # by less than an item has bits


class OneCall(NamedTuple):
    """A call of NumPy. `operands`: numbers of inputs, and constants without axes, read in less time than numbers."""

    ufunc: Callable  # takes `out`
    operands: tuple[int | np.ndarray, ...]


def call_of(inputs: Sequence[IteratorBase], out: IteratorBase, op: Operator) -> OneCall | None:
    """What gives the results of an operator in one call, if something does."""
    t = out.value_type
    if debugged() or op.watched or not all(isinstance(it, ArrayIterator) and it.value_type == t
                                           for it in (*inputs, out)):
        return None
    if isinstance(t, Struct):
        return _of_complex(inputs, out, op)
    if t.dtype in (float16, bfloat16):
        return _of_sign(result_of(op, *(it.value_type for it in inputs)), t)
    if t.dtype == bool_ or not info(t.dtype).integral:
        return None
    result = result_of(op, *(it.value_type for it in inputs))
    if result.single:
        return OneCall(UFUNCS[result.single], tuple(range(len(inputs))))
    return _with_constants(result, t.dtype)


def _of_sign(result: Result, t: Number) -> OneCall | None:
    """An operator that changes no more than the sign of a float of 16 bits, which other ops take as float32."""
    region = elementwise_region(result.kernel)
    if region is None or len(region.params) != 1 or result.type != t:
        return None
    ops, given = only_ops(region)
    if not ops and given == list(region.params):
        return OneCall(_of_bits(np.bitwise_or, 0), (0,))
    if len(ops) == 1 and ops[0].op.name in SIGNS and ops[0].operands == region.params and given == list(ops[0].results):
        return OneCall(_of_bits(*SIGNS[ops[0].op.name]), (0,))
    return None


def _of_bits(ufunc: np.ufunc, mask: int) -> Callable:
    number = np.array(mask, np.uint16)
    return lambda x, out: ufunc(x.view(np.uint16), number, out=out.view(np.uint16))


def _of_complex(inputs: Sequence[IteratorBase], out: IteratorBase, op: Operator) -> OneCall | None:
    if not all(isinstance(it, ArrayIterator) and it.array.layout.kind == "c" for it in (*inputs, out)):
        return None
    result = result_of(op, *(it.value_type for it in inputs))
    region = elementwise_region(result.kernel)
    found = None if region is None or result.loops or result.type != out.value_type else ufunc_of(region)
    if found is None:
        return None
    ufunc, operands = found
    return OneCall(ufunc, tuple(x if type(x) is int else np.array(x, out.array.layout) for x in operands))


def states(its: Sequence[IteratorBase], n: int) -> list[Any]:
    """The operands as a call of NumPy takes them: whole items, also where kernels take parts."""
    return [it.whole(n) if isinstance(it.value_type, Struct) else it.state(n) for it in its]


def _with_constants(result: Result, dtype: DType) -> OneCall | None:
    region = elementwise_region(result.kernel)
    if region is not None and (found := extreme_with(region)) is not None and result.type == Number(dtype):
        return OneCall(UFUNCS[found[0]], (0, np.array(found[1], info(dtype).storage)))
    ops, given = ([], None) if region is None else only_ops(region)
    numbers: dict[Value, Any] = {n.results[0]: n.attrs["value"] for n in ops if n.op.name == "constant"}
    others = [n for n in ops if n.op.name != "constant"]
    if region is None or len(others) != 1 or given != list(others[0].results):
        return None
    n, = others
    ufunc, t = _ufunc(n, numbers, dtype.bitwidth), region.params[0].type
    if ufunc is None or any(v.type != t for v in (*n.operands, *n.results)):
        return None
    if any(v not in numbers and v not in region.params for v in n.operands):
        return None
    given = n.operands[:1] * 2 if n.op.name == "pow" else n.operands
    return OneCall(ufunc, tuple(np.array(numbers[v], info(dtype).storage) if v in numbers else region.params.index(v)
                                for v in given))


def _ufunc(n: Op, numbers: dict[Value, Any], width: int) -> np.ufunc | None:
    by = numbers.get(n.operands[-1], -1)
    if n.op.name in SHIFTS and by in range(width):
        return SHIFTS[n.op.name]
    if n.op.name == "floordiv" and by not in (0, -1):  # for which NumPy warns, or gives other numbers
        return np.floor_divide
    return np.multiply if n.op.name == "pow" and by == 2 else UFUNCS.get(n.op.name)


def calling(call: OneCall) -> Callable:
    """A function of the inputs and the output that makes a call, and is false where launches are checked."""
    ufunc, operands = call

    def apply(*arrays: np.ndarray) -> bool:
        if settings.get("SANITIZE"):
            return False
        with np.errstate(all="ignore"):
            ufunc(*[arrays[x] if type(x) is int else x for x in operands], out=arrays[-1])
        return True

    return apply

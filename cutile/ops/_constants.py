"""Constants, and the folding of ops on them [LOOSE-*, STRICT-*, ENC-*, GEN-7].

A *loosely typed* constant, as a literal, is a Python number that takes the dtype of the operand it meets; one with a
*strict* type, as ct.int16(3), keeps its dtype.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np

from cutile.dtypes import DType, bool_, float32, info, int32, int64, int_range, uint64
from cutile.errors import TileValueError
from cutile.ir.terms import Const, Static, Term, Tuple, digits, to_builtin
from cutile.ops import _numeric
from cutile.ops._arguments import refuse
from cutile.ops._op import OpDef, Sig
from cutile.types import tile_type

# ------------------------------------------------------------------ constants


def loose(value: bool | int | float) -> Const:
    """A loosely typed constant [LOOSE-1, LOOSE-2]."""
    if type(value) is int and -2**31 <= value < 2**31:  # most are
        return Const(value, int32, True)
    member = value if isinstance(value, enum.Enum) else None
    value = to_builtin(value)
    if isinstance(value, bool):
        return Const(value, bool_, True)
    if isinstance(value, int):
        for d in (int32, int64, uint64):
            lo, hi = int_range(d)
            if lo <= value <= hi:
                return Const(value, d, True, member)
        refuse(f"the integer constant {digits(value)} fits neither int64 nor uint64", cls=TileValueError)
    if isinstance(value, float):
        return Const(value, float32, True)
    refuse(f"a constant expression gave {value!r} ({type(value).__name__}), which is no tile-code number")


def strict(value: bool | int | float, dtype: DType) -> Const:
    """A strictly typed constant: `value` converted to `dtype` [STRICT-2, ENC-1…3]."""
    return Const(encode(value, dtype), dtype, False)


def encode(value: bool | int | float, dtype: DType) -> bool | int | float:
    """`value` as a constant of `dtype`; a value that the format cannot express is refused [ENC-2]."""
    try:
        return _numeric.encode(value, dtype)
    except ValueError as e:
        refuse(f"the constant {value!r} cannot be converted to {dtype.name}: {e}", cls=TileValueError)


def const_term(value) -> Term:
    """The term of a Python object known at compile time: a loose constant, a tuple, or the object itself."""
    if isinstance(value, enum.Enum) and not isinstance(value, int):
        return Static(value)
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        return loose(value)
    if isinstance(value, tuple) and type(value) is tuple:
        return Tuple(tuple(const_term(v) for v in value))
    return Static(value)


def is_const(*terms: Term) -> bool:
    for t in terms:  # a loop is faster than all()
        if not isinstance(t, Const):
            return False
    return True


# ------------------------------------------------------------------ folding


def fold(op: OpDef, terms: Sequence[Const], dtype: DType | None = None, *, in_dtype: DType | None = None,
         **attrs) -> Const:
    """Fold an op on constant scalars [GEN-7].

    All loose: Python arithmetic, by the op's `loose=` function, which every op needs whose rule folds; the result is
    loose. Otherwise the operands are converted to `in_dtype` (default: `dtype`) and go through the meaning; the result
    is a strict `dtype` constant.
    """
    if all(t.loose for t in terms):
        assert op.loose is not None, f"{op.name} has no loose=, which its rule needs to fold constants"
        values = [t.value for t in terms]
        try:
            result = op.loose(*values)
        except ZeroDivisionError:
            refuse(f"division by zero in the constant expression {_text(op, values)}", cls=TileValueError)
        except OverflowError:
            refuse(f"the constant expression {_text(op, values)} overflows", cls=TileValueError)
        except ValueError as e:
            refuse(f"the constant expression {_text(op, values)} has no value: {e}", cls=TileValueError)
        except TypeError:
            refuse(f"the constant expression {_text(op, values)} is not defined for these operands")
        if isinstance(result, complex):
            refuse(f"the constant expression {_text(op, values)} is a complex number")
        return loose(result)
    assert dtype is not None
    in_dtype = in_dtype or dtype
    sig = Sig((tile_type(in_dtype),) * len(terms), (tile_type(dtype),))
    operands = [carry(encode(t.value, in_dtype), in_dtype) for t in terms]
    return uncarry(evaluate(op, sig, operands, attrs), dtype)


def _text(op: OpDef, values: Sequence) -> str:
    return f"{op.name}({', '.join(map(repr, values))})"


def carry(value: bool | int | float, dtype: DType) -> np.ndarray:
    """An encoded constant as a carrier of shape ()."""
    return np.asarray(value, dtype=info(dtype).carrier)


def uncarry(x: np.ndarray, dtype: DType) -> Const:
    kind = info(dtype).kind
    value = bool(x) if kind == "b" else int(x) if kind in "iu" else float(x)
    return Const(value, dtype, False)


def evaluate(op: OpDef, sig: Sig, operands: Sequence, attrs: dict, **given):
    """Run the meaning of an op once and round its results, as folding and all schedules do."""
    with np.errstate(all="ignore"):
        return compute(op, sig, operands, attrs, **given)


def compute(op: OpDef, sig: Sig, operands: Sequence, attrs: dict, **given):
    """Like `evaluate`, where NumPy already warns of nothing."""
    extra = {"sig": sig, **given}
    return finish(op, sig, op.meaning(*operands, **attrs, **{g: extra[g] for g in op.given}))


def finish(op: OpDef, sig: Sig, y):
    """Round what a meaning returned to the dtypes of the results."""
    if op.exact or y is None:
        return y
    if len(sig.results) == 1:
        return _numeric.round_to(sig.results[0].dtype, y)
    return tuple(_numeric.round_to(t.dtype, v) for t, v in zip(sig.results, y, strict=True))


def integer_power(base: int, exponent: int):
    """Python's **, refused if the result would be too large."""
    if exponent > 0 and abs(base) > 1 and exponent * math.log2(abs(base)) > 64:
        raise OverflowError
    return base**exponent

"""The rounding_mode and flush_to_zero arguments that float ops of several families share [RM-*, FTZ-1].

A mode is checked against the dtype of the result only where a run-time op is emitted; folding ignores it [LOOSE-6].
"""

from __future__ import annotations

from cutile.dtypes import DType, bfloat16, float16, float32, float64
from cutile.ir.terms import Term
from cutile.ops._arguments import const_bool, enum_arg, invalid
from cutile.ops._op import OpDef
from cutile.types import RoundingMode

RN, RZ, RM, RP = RoundingMode.RN, RoundingMode.RZ, RoundingMode.RM, RoundingMode.RP
FULL, APPROX = RoundingMode.FULL, RoundingMode.APPROX

IEEE_MODES = (RN, RZ, RM, RP)  # add, sub, mul, sums and products [RM-1]

# Templates of clauses.
IEEE_CLAUSES = """
[RM-1.{name}.RN]  RN, which None means: to nearest, ties to even
[RM-1.{name}.RZ]  RZ: toward zero
[RM-1.{name}.RM]  RM: toward minus infinity
[RM-1.{name}.RP]  RP: toward plus infinity
"""
OTHER_MODES = """
[RM-1.{name}.other]  any other rounding mode: TileTypeError
"""
FLUSHING = """
[FTZ-1.{name}.dtype]  flush_to_zero with a result other than float32: TileTypeError
"""


def rounding_arg(op: OpDef, t: Term) -> RoundingMode | None:
    """The argument as given: None, a member, or the name of one."""
    return enum_arg(op, "rounding_mode", t, RoundingMode, optional=True)


def check_rounding(op: OpDef, mode: RoundingMode | None, dtype: DType) -> None:
    """Refuse a mode that `op` does not have, or not for results of `dtype` [RM-1, RM-2]."""
    if mode is None:
        return
    if mode not in op.modes:
        invalid(op, "rounding_mode", f"RoundingMode.{mode.name} is not supported here",
                help="one of " + ", ".join(f"ct.RoundingMode.{m.name}" for m in op.modes) + ", or None for the default")
    if dtype not in (float16, bfloat16, float32, float64):
        invalid(op, "rounding_mode", f"a rounding mode needs a float16, bfloat16, float32 or float64 result, "
                                     f"but the result is {dtype.name}", help="leave rounding_mode out")
    if mode in (FULL, APPROX) and dtype is not float32:
        invalid(op, "rounding_mode", f"RoundingMode.{mode.name} needs a float32 result, but the result is {dtype.name}",
                help="leave rounding_mode out, or convert the operands with .astype(ct.float32)")


def flush_arg(op: OpDef, t: Term) -> bool:
    return const_bool(op, "flush_to_zero", t)


def check_flush(op: OpDef, flush: bool, dtype: DType) -> None:
    """flush_to_zero=True needs a float32 result [FTZ-1]."""
    if flush and dtype is not float32:
        invalid(op, "flush_to_zero", f"flushing needs a float32 result, but the result is {dtype.name}",
                help="leave flush_to_zero out, or convert the operands with .astype(ct.float32)")


def float_options(op: OpDef, dtype: DType, rounding_mode: RoundingMode | None, flush_to_zero: bool) -> None:
    """Check both options, the rounding mode first."""
    check_rounding(op, rounding_mode, dtype)
    check_flush(op, flush_to_zero, dtype)

"""What element-wise ops share: the rule of those that are one operation of Tile IR, by the `tileir=` data of the op.

The data is a name, or the names of the integer and of the float operation; which attributes the operation takes says
the table of operations.
"""

from __future__ import annotations

from cutile.dtypes import info
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.opcodes import OPS
from cutile.ir import nodes
from cutile.types import RoundingMode

# Modes that came later than the operation, by operation and mode: the name of the feature in target.FEATURE_SINCE.
_LATER = {("exp", RoundingMode.APPROX): "exp approx", ("tanh", RoundingMode.APPROX): "tanh approx"}


def signedness(v: nodes.Value) -> str:
    """How Tile IR is to read an integer; bool counts as unsigned."""
    return "signed" if info(v.type.dtype).kind == "i" else "unsigned"


def is_float(v: nodes.Value) -> bool:
    return info(v.type.dtype).floating


def options(l, n: nodes.Op, name: str) -> dict:
    """The attributes of a node that an operation takes."""
    taken = {a.name for a in OPS[name].attrs}
    out: dict = {k: n.attrs[k] for k in ("flush_to_zero", "propagate_nan") if k in taken and k in n.attrs}
    mode = n.attrs.get("rounding_mode")
    if mode is not None and "rounding_mode" in taken:
        if (name, mode) in _LATER:
            l.check(_LATER[name, mode])
        out["rounding_mode"] = mode.value
    if "signedness" in taken:
        out["signedness"] = signedness(n.operands[0])
    return out


def elementwise(l, n: nodes.Op) -> Value:
    """One operation on all operands."""
    name = n.op.tileir
    if not isinstance(name, str):
        name = name[is_float(n.operands[0])]
    return l.op(name, [l.get(v) for v in n.operands], **options(l, n, name))


# ------------------------------------------------------------------ comparisons


def compare(l, predicate: str, x: Value, y: Value, *, floating: bool, sign: str = "signed") -> Value:
    """x predicate y. A NaN differs from everything, and otherwise compares as false."""
    if floating:
        ordering = "unordered" if predicate == "not_equal" else "ordered"
        return l.op("cmpf", [x, y], comparison_predicate=predicate, comparison_ordering=ordering)
    return l.op("cmpi", [x, y], comparison_predicate=predicate, signedness=sign)


def negated(l, x: Value) -> Value:
    """A mask or an integer with every bit flipped."""
    return l.op("xori", [x, l.b.constant(x.type, -1 if x.type.element.bits > 1 else True)])

"""What rules of elementwise ops share, and the rule of the ops that are one operation of Tile IR.

Their `tileir=` names the operation, or a pair: that of integers and that of floats. The table of operations
(operations.py) says which attributes it takes, and since which version it and they exist.
"""

from __future__ import annotations

from cutile.dtypes import info
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.operations import OPS
from cutile.gpu.tileir.rules._rule import RULES, Rule
from cutile.ir import nodes
from cutile.ops._op import OpDef


def signedness(v: nodes.Value) -> str:
    """How Tile IR is to read an integer; bool counts as unsigned."""
    return "signed" if info(v.type.dtype).kind == "i" else "unsigned"


def is_float(v: nodes.Value) -> bool:
    return info(v.type.dtype).floating


def options(l, n: nodes.Op, name: str) -> dict:
    """Those attributes of a node that the operation takes."""
    taken = {a.name: a for a in OPS[name].attrs}
    out: dict = {k: n.attrs[k] for k in ("flush_to_zero", "propagate_nan") if k in taken and k in n.attrs}
    mode = n.attrs.get("rounding_mode")
    if mode is not None and "rounding_mode" in taken:
        if mode.value != taken["rounding_mode"].default:
            l.needs(f"{n.op.name} {mode.value}", name, "rounding_mode")
        out["rounding_mode"] = mode.value
    if "signedness" in taken:
        out["signedness"] = signedness(n.operands[0])
    return out


def elementwise(l, n: nodes.Op) -> Value:
    """One operation on all operands."""
    name = n.op.tileir
    if not isinstance(name, str):
        name = name[is_float(n.operands[0])]
    l.needs(n.op.name, name)
    return l.op(name, [l.get(v) for v in n.operands], **options(l, n, name))


def lowering_rule(op: OpDef) -> Rule | None:
    """The lowering rule of an op, None if it has none."""
    return RULES.get(op, elementwise if op.elementwise and op.tileir is not None else None)


# ------------------------------------------------------------------ comparisons


def compare(l, predicate: str, x: Value, y: Value, *, floating: bool, sign: str = "signed") -> Value:
    """x predicate y. False where either is NaN, except for `not_equal`, which is True there."""
    if floating:
        ordering = "unordered" if predicate == "not_equal" else "ordered"
        return l.op("cmpf", [x, y], comparison_predicate=predicate, comparison_ordering=ordering)
    return l.op("cmpi", [x, y], comparison_predicate=predicate, signedness=sign)


def negated(l, x: Value) -> Value:
    """A mask or an integer with every bit flipped."""
    return l.op("xori", [x, l.b.constant(x.type, -1 if x.type.element.bits > 1 else True)])

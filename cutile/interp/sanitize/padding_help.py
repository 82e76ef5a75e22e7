"""Which padding a load needs, by what the program does with what it loads: the help of the check `undetermined`."""

from __future__ import annotations

from collections.abc import Collection

from cutile.dtypes import DType, info, int_range
from cutile.interp.sanitize.taint import tainted
from cutile.ir.nodes import Kernel, Op
from cutile.ir.walk import walk
from cutile.ops import arithmetic, math
from cutile.ops._op import OFFSETS, PURE

SAY = "say what elements outside read as: "
_MODE = "padding_mode=ct.PaddingMode."
_ADDITIVE = (f"{SAY}{_MODE}ZERO, which adds nothing. A number that is multiplied by 0 may be infinite, so other loads "
             f"of the operation need it too")
_EXTREME = {"max": ("NEG_INF", "largest", "negative"), "min": ("POS_INF", "smallest", "positive")}
_EXPONENTIALS = {math.exp, math.exp2}


def help_of(kernel: Kernel, source: Op) -> str:
    """What to write at a load. `source`: the load, of the kernel as the user wrote it."""
    if source.op.accesses.unit == OFFSETS:
        return f"{SAY}the padding_value of {source.op.spelling}()"
    combined = _combining(kernel, source, through=_EXPONENTIALS)
    direct = _combining(kernel, source, through=())
    extremes = [name for name in _EXTREME if name in combined]
    dtype = source.results[0].type.dtype
    if len(extremes) == 1 and not direct - set(extremes):
        return _extreme(extremes[0], bool(combined - direct), dtype)
    if extremes:
        calls = " and ".join(f"{n}()" for n in sorted(direct | set(extremes)))
        return f"{SAY}{calls} need padding of their own; load once for each, each with the padding_mode that it needs"
    if "prod" in combined:
        return f"{SAY}prod() needs 1, which no padding mode is; replace them by ct.where(inside, tile, 1)"
    if combined:
        return _ADDITIVE
    return f"{SAY}{_MODE}ZERO, or another that the operation needs: NEG_INF for max(), POS_INF for min()"


def _extreme(name: str, exponential: bool, dtype: DType) -> str:
    """The help for loads whose elements max() or min() compares."""
    mode, chosen, sign = _EXTREME[name]
    if not info(dtype).floating and name == "max" and int_range(dtype)[0] == 0:
        return f"{SAY}{_MODE}ZERO, which is never larger than other elements"
    zero = f"ZERO would be the {chosen} of numbers that are all {sign}"
    if not info(dtype).floating:
        needed = "lowest" if name == "max" else "highest"
        return (f"{SAY}{name}() needs the {needed} integer, which no padding mode is; replace them by "
                f"ct.where(inside, tile, …). {zero}")
    added = ", and its exponential adds nothing to a sum" if exponential else ""
    return f"{SAY}{_MODE}{mode}, which is never the {chosen}{added}; {zero}"


def _combining(kernel: Kernel, source: Op, through: Collection[object]) -> set[str]:
    """How elements that a load gives are combined with others for the first time: "max", "min", "prod", or the name of
    another reduction, scan or product. Of exponentials, only those in `through` are followed.
    """
    def passes_on(n: Op) -> bool:
        return n.op.effect == PURE and n.op.accumulates is None and (n.op not in _EXPONENTIALS or n.op in through)

    values = tainted(kernel, [source.results[0]], passes_on).values
    return {_kind(n) for n in walk(kernel.body)
            if isinstance(n, Op) and n.op.accumulates is not None and not values.isdisjoint(n.operands)}


def _kind(n: Op) -> str:
    inside = set() if n.region is None else {i.op for i in walk(n.region) if isinstance(i, Op)}
    for name, of_two in (("max", arithmetic.maximum), ("min", arithmetic.minimum)):
        if n.op.tileir == name or inside == {of_two}:
            return name
    return "prod" if n.op.tileir == "mul" else n.op.spelling

"""What the elements of a tile of integers are: one number, or numbers that memory holds.

`source` is the node that defines each value (`ir.walk.definitions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cutile.dtypes import DType, bool_, info
from cutile.ir.nodes import For, If, Node, Op, Value, While, Yield
from cutile.ops import convert, create
from cutile.types import TileType

Source = Mapping[Value, Node]


def number_of(source: Source, v: Value) -> int | None:
    """The integer that all elements of a tile are; None if that is not known."""
    casts: list[DType] = []
    n = source.get(v)
    while isinstance(n, Op) and len(n.operands) == 1 and (n.op.moves_data or n.op is convert.astype):
        casts.append(n.result.type.dtype)
        n = source.get(n.operand)
    if not (isinstance(n, Op) and n.op is create.constant):
        return None
    number = n.attrs["value"]
    for d in (n.result.type.dtype, *reversed(casts)):
        if d is bool_ or not info(d).integral:
            return None
        number = _wrapped(int(number), d)
    return number


def _wrapped(number: int, dtype: DType) -> int:
    number %= 1 << dtype.bitwidth
    return number - (1 << dtype.bitwidth) if info(dtype).kind == "i" and number >> dtype.bitwidth - 1 else number


def differs_by_memory(source: Source, v: Value) -> bool:
    """Whether neighbouring elements of a tile differ by what memory or a reduction holds, and not by their places
    alone, as those of an index mostly do. False where it is not known.
    """
    seen: set[Value] = set()
    pending = [v]
    while pending:
        v = pending.pop()
        if v in seen or not isinstance(v.type, TileType) or v.type.size == 1:
            continue
        seen.add(v)
        match source.get(v):
            case For() | While() as n:
                pending += _before(n, v)
            case If() as n:
                pending += (last.operands[n.results.index(v)] for last in (n.then.nodes[-1], n.orelse.nodes[-1])
                            if isinstance(last, Yield))
            case Op() as n if n.op.elementwise or n.op.moves_data:
                pending += n.operands
            case Op() as n if n.op is not create.iota:
                return True
    return False


def _before(n: For | While, v: Value) -> Iterable[Value]:
    """What a value that a loop carries is before the loop; nothing for others that its breaks give."""
    k = (n.params if v in n.params else n.results).index(v)
    return n.inits[k:k + 1]

"""Rewrites a kernel so that it records every tile that it assigns to a variable, to compare back ends.

After each assignment it inserts a call of `_record`, tile code that is typed for the tile's type. A record holds the
value and its number among all records of its block. The numbers show which difference came first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from cutile import dtypes
from cutile.dtypes import DType, float32, info, int32
from cutile.front.program import Embedded, type_kernel
from cutile.ir.nodes import Bind, Frame, Kernel, Node, Op, Region, Value
from cutile.ir.walk import named_tiles, rewrite, substitute, walk, with_regions
from cutile.ops.convert import astype
from cutile.ops.grid import bid, num_blocks
from cutile.ops.memory import load, store
from cutile.ops.shape import reshape
from cutile.types import ArrayType, TileType

LIMIT = 8  # executions of an assignment that are recorded; one more record is kept for the last execution
NOT_STORABLE = (dtypes.tfloat32, dtypes.float8_e5m3fnu, dtypes.float4_e2m1fn)  # recorded as float32, exactly


@dataclass(frozen=True)
class Recorded:
    """An assignment that is recorded.

    log    index of the added parameter that holds its values
    when   index of the added parameter that holds their numbers
    """

    variable: str
    type: TileType
    span: object
    function: str
    log: int
    when: int


def _record(log, when, count, clock, value, size, dtype):
    b = (bid(0) * num_blocks(1) + bid(1)) * num_blocks(2) + bid(2)
    n = load(count, (b,), ())
    c = load(clock, (b,), ())
    at = min(n, LIMIT)
    store(log, (b, at, 0), reshape(astype(value, dtype), (1, 1, size)))
    store(when, (b, at), c)
    store(count, (b,), n + 1)
    store(clock, (b,), c + 1)


def recorded(kernel: Kernel, grid: Sequence[int]) -> tuple[Kernel, list[Recorded], Callable[[], list[np.ndarray]]]:
    """The kernel with records, what it records, and a function that makes the arrays for the added parameters."""
    blocks = prod(grid)
    inner = {id(n) for op in walk(kernel.body) if isinstance(op, Op) and op.region for n in walk(op.region)}
    clock = Value(ArrayType(int32, 1), "clock")
    params: list[Value] = [clock]
    made: list[tuple[tuple[int, ...], DType]] = [((blocks,), int32)]
    records: list[Recorded] = []

    def change(old: Node, n: Node) -> list[Node] | None:
        if not isinstance(n, Bind) or not n.name or n.free or id(old) in inner:
            return None
        out: list[Node] = [n]
        for name, v in named_tiles(n.name, n.template):
            if info(v.type.dtype).kind == "p":
                continue
            kept = float32 if v.type.dtype in NOT_STORABLE else v.type.dtype
            arrays = [Value(ArrayType(kept, 3)), Value(ArrayType(int32, 2)), Value(ArrayType(int32, 1))]
            records.append(Recorded(name, v.type, n.span, n.span.function, len(params), len(params) + 1))
            params.extend(arrays)
            made.extend((((blocks, LIMIT + 1, v.type.size), kept), ((blocks, LIMIT + 1), int32), ((blocks,), int32)))
            out.append(_call(n, [*arrays, clock, v], kept))
        return out

    body = rewrite(kernel, change).body
    names = tuple(f"record {i}" for i in range(len(params)))
    whole = replace(kernel, params=(*kernel.params, *params), param_names=(*kernel.param_names, *names), body=body)
    return whole, records, lambda: [np.zeros(shape, info(d).storage) for shape, d in made]


def _call(n: Bind, operands: list[Value], kept: DType) -> Frame:
    """A call of `_record`, typed for these operands."""
    size = operands[-1].type.size
    typed = type_kernel(_record, [*(v.type for v in operands), Embedded(size), Embedded(kept)]).kernel
    new = dict(zip(typed.params, operands, strict=True))
    return Frame("record", typed.span, _substituted(typed.body, new), (), n.span)


def _substituted(b: Region, new: dict[Value, Value]) -> Region:
    """A straight-line body with other values, and without Binds."""
    nodes = [substitute(n, new) for n in b.nodes if not isinstance(n, Bind)]
    return Region([with_regions(n, [_substituted(i, new) for i in (n.region,)]) if isinstance(n, Op) and n.region else n
                  for n in nodes], b.params)

"""Reduce a short axis by parts: the first half of it is combined with the second, until one element is left.

    r = sum(x, axis)    →    y = extract(x, first half) + extract(x, second half)       and so on
                             r = reshape(y)

The assembler reduces an axis whose elements lie in different threads by exchanges between lanes of a warp, which leave
the result in all of them, and through shared memory, where a tile of the result's form is then made element by element.
Parts of a tile go there in wide words. On an H200, sums and maxima of pairs and fours of rows run at four times the
speed, pooling at twice (docs/hints.md).

A reduction stays if its result goes back to the elements, as in a normalisation or a sorting network: then each lane
has it where it is needed. So does one whose elements lie APART in one warp. Maxima, minima and integer sums have the
same bits either way; the order of floating-point sums and products is open [RED-5]. CUTILE_HINTS=0 turns this off.
"""

from __future__ import annotations

from math import prod

from cutile import settings
from cutile.dtypes import int32
from cutile.ir.build import Builder
from cutile.ir.nodes import Kernel, Node, Op, Value
from cutile.ir.walk import rewrite, uses, walk
from cutile.ops import arithmetic, create, reduce, shape
from cutile.types import TileType

STEPS = {reduce.sum: arithmetic.add, reduce.prod: arithmetic.mul, reduce.max: arithmetic.maximum,
         reduce.min: arithmetic.minimum}
SHORT = (2, 4)
APART = range(2, 32)


def short_reduction(kernel: Kernel) -> Kernel:
    """The kernel with such reductions replaced. It has no frames."""
    if not settings.get("HINTS") or not any(map(_is_short, walk(kernel.body))):
        return kernel
    users = uses(kernel.body)
    return rewrite(kernel, lambda old, n: _by_parts(n) if _is_short(n) and not _goes_back(old.result, users)
                   else None)


def _is_short(n: Node) -> bool:
    if not isinstance(n, Op) or n.op not in STEPS:
        return False
    dims, axis = n.operand.type.shape, n.attrs["axis"]
    return dims[axis] in SHORT and prod(dims[axis:][1:]) not in APART


def _goes_back(v: Value, users: dict[Value, list[Node]]) -> bool:
    """Whether a value, or what is computed from it element by element, is spread over a larger tile."""
    seen, pending = {v}, [v]
    while pending:
        for n in users.get(pending.pop(), ()):
            if not isinstance(n, Op):
                continue
            if n.op is shape.broadcast_to:
                return True
            if n.op.elementwise or n.op is shape.reshape:
                pending += [r for r in n.results if r not in seen]
                seen.update(n.results)
    return False


def _by_parts(n: Op) -> list[Node]:
    b, x, step = Builder(n.span), n.operand, STEPS[n.op]
    dims, axis = x.type.shape, n.attrs["axis"] % len(x.type.shape)
    options = {k: v for k, v in n.attrs.items() if k != "axis"}
    while dims[axis] > 1:
        dims = (*dims[:axis], dims[axis] // 2, *dims[axis + 1:])
        t = TileType(x.type.dtype, dims)
        x = b.op1(step, *(_half(b, x, axis, k, t) for k in (0, 1)), result=t, **options)
    b.append(Op(shape.reshape, (x,), {"shape": n.result.type.shape}, n.results, n.span))
    return b.region.nodes


def _half(b: Builder, x: Value, axis: int, which: int, t: TileType) -> Value:
    index = [b.op1(create.constant, result=TileType(int32), value=which if k == axis else 0)
             for k in range(len(t.shape))]
    return b.op1(shape.extract, x, index, result=t, shape=t.shape)

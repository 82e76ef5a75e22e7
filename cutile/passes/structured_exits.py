"""Take Returns out of loops: the loop ends by Break, and a Return follows it.

A flag among the results of the loop says whether to return, and further results carry what to return. A loop that can
only end by Return needs no flag. Afterwards every Return is at the end of its function's body or of a branch of an If
in it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from cutile._support.structs import replace
from cutile.dtypes import bool_, info
from cutile.errors import TileUnsupportedFeatureError
from cutile.ir.nodes import TERMINATORS, Break, Continue, For, If, Kernel, Node, Op, Region, Return, Value, While, Yield
from cutile.ir.walk import holders, mapped, run_recursive, walk
from cutile.ops import create
from cutile.ops._constants import encode
from cutile.spans import Span
from cutile.types import LeafType, TileType

FLAG = TileType(bool_)


def structured_exits(kernel: Kernel) -> Kernel:
    """The kernel without Returns inside loops. Frames are not looked into: flatten them first."""
    body = out_of_loops(kernel.body, ())
    return kernel if body is kernel.body else replace(kernel, body=body)


def out_of_loops(body: Region, types: tuple[LeafType, ...]) -> Region:
    """A function's body without Returns inside loops. `types` are those of what it returns."""
    holding = holders(body, Return)
    if not any(isinstance(n, For | While) for n in holding):
        return body
    return run_recursive(_out_of_loops(body, types, holding))


def _out_of_loops(body: Region, types: tuple[LeafType, ...], holding: set[Node]) -> Generator[Any, Any, Region]:
    nodes: list[Node] = []
    for n in body.nodes:
        if n not in holding:
            nodes.append(n)
        elif isinstance(n, If):
            then = yield _out_of_loops(n.then, types, holding)
            orelse = yield _out_of_loops(n.orelse, types, holding)
            nodes.append(replace(n, then=then, orelse=orelse))
        else:
            inner = yield _out_of_loops(n.body, types, holding)
            nodes += _loop(replace(n, body=inner), types)
        if isinstance(nodes[-1], TERMINATORS):
            break
    return replace(body, nodes=nodes)


def _loop(n: For | While, types: tuple[LeafType, ...]) -> list[Node]:
    """The loop with each Return in it turned into a Break, and a Return after the loop."""
    endless = isinstance(n, While) and n.cond is None
    returned = tuple(Value(t) for t in types)
    if endless and not has_break(n.body):
        body = mapped(n.body, lambda e: Break(e.operands, e.span) if isinstance(e, Return) else e)
        return [replace(n, body=body, results=returned), Return(returned, n.span)]
    before: list[Node] = []
    rest = tuple(_nothing(before, t, n.span) for t in types)
    extra = (_constant(before, FLAG, False, n.span), *rest)
    yes = _constant(before, FLAG, True, n.span)
    carried = () if endless else tuple(Value(v.type) for v in extra)
    fill = (*n.params, *(_nothing(before, v.type, n.span) for v in n.results[len(n.params):]))

    def change(e: Node) -> Node:
        if isinstance(e, Return):
            return Break((*fill, yes, *e.operands), e.span)
        if isinstance(e, Break):
            return replace(e, operands=(*e.operands, *extra))
        return replace(e, operands=(*e.operands, *carried)) if isinstance(e, Continue) else e

    flag = Value(FLAG)
    body = mapped(n.body, change)
    if not endless:
        n = replace(n, inits=(*n.inits, *extra), params=(*n.params, *carried))
    loop = replace(n, body=body, results=(*n.results, flag, *returned))
    leave = If(flag, Region([Return(returned, n.span)]), Region([Yield((), n.span)]), (), n.span)
    return [*before, loop, leave]


def has_break(region: Region) -> bool:
    """Whether this loop body has a Break of its loop."""
    return any(isinstance(n, Break) for n in walk(region, lambda n: isinstance(n, If)))


def _constant(nodes: list[Node], t: TileType, value, span: Span) -> Value:
    v = Value(t)
    nodes.append(Op(create.constant, (), {"value": value}, (v,), span))
    return v


def _nothing(nodes: list[Node], t: LeafType, span: Span) -> Value:
    """A dummy value of the type, which is never read."""
    if not isinstance(t, TileType) or info(t.dtype).kind == "p":
        raise TileUnsupportedFeatureError(
            f"{t.describe()} is handed out of a loop that can also end otherwise, which GPU code cannot express", span,
            help="take the array before or after the loop, and return an index from the loop")
    scalar = _constant(nodes, TileType(t.dtype), encode(False if info(t.dtype).kind == "b" else 0, t.dtype), span)
    if not t.shape:
        return scalar
    v = Value(t)
    nodes.append(Op(create.full, (scalar,), {"shape": t.shape}, (v,), span))
    return v

"""Take Returns out of loops: a loop that a function returns from ends by Break, and the Return follows it.

A flag among the results of the loop says whether to return, and what is returned goes with it; where the loop can end
in no other way, neither is needed. Afterwards every Return stands at the end of its function's body or of branches of
Ifs in it.
"""

from __future__ import annotations

from cutile.dtypes import bool_, info
from cutile.errors import Span, TileUnsupportedFeatureError
from cutile.ir.nodes import (
    TERMINATORS,
    Block,
    Break,
    Continue,
    For,
    Frame,
    If,
    Kernel,
    Node,
    Op,
    Return,
    Value,
    While,
    Yield,
    blocks_of,
)
from cutile.ir.walk import with_blocks
from cutile.ops import create
from cutile.ops._types import encode
from cutile.structs import replace
from cutile.types import LeafType, TileType

FLAG = TileType(bool_)


def structured_exits(kernel: Kernel) -> Kernel:
    """The kernel without Returns inside loops; its frames are not looked into, so flatten them first."""
    body = out_of_loops(kernel.body, ())
    return kernel if body is kernel.body else replace(kernel, body=body)


def out_of_loops(body: Block, types: tuple[LeafType, ...]) -> Block:
    """A function's body without Returns inside loops. `types` are those of what it returns."""
    if not _returns_in_loops(body):
        return body
    nodes: list[Node] = []
    for n in body.nodes:
        nodes += _node(n, types)
        if isinstance(nodes[-1], TERMINATORS):
            break
    return replace(body, nodes=nodes)


def _returns_in_loops(block: Block) -> bool:
    return any(has_return(n) if isinstance(n, For | While) else
               isinstance(n, If) and any(_returns_in_loops(b) for b in blocks_of(n)) for n in block.nodes)


def has_return(n: Node) -> bool:
    """Whether a node holds a Return of the function it stands in, or is one."""
    if isinstance(n, Return):
        return True
    return not isinstance(n, Frame | Op) and any(has_return(inner) for b in blocks_of(n) for inner in b.nodes)


def _node(n: Node, types: tuple[LeafType, ...]) -> list[Node]:
    if isinstance(n, If):
        return [with_blocks(n, [out_of_loops(b, types) for b in blocks_of(n)])]
    if isinstance(n, For | While) and has_return(n):
        return _loop(replace(n, body=out_of_loops(n.body, types)), types)
    return [n]


def _loop(n: For | While, types: tuple[LeafType, ...]) -> list[Node]:
    """The loop with each Return in it a Break, and the Return behind it."""
    endless = isinstance(n, While) and n.cond is None
    returned = tuple(Value(t) for t in types)
    if endless and not has_break(n.body):
        body = _exits(n.body, lambda e: Break(e.operands, e.span) if isinstance(e, Return) else e)
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
    body = _exits(n.body, change)
    if not endless:
        n = replace(n, inits=(*n.inits, *extra), params=(*n.params, *carried))
    loop = replace(n, body=body, results=(*n.results, flag, *returned))
    leave = If(flag, Block([Return(returned, n.span)]), Block([Yield((), n.span)]), (), n.span)
    return [*before, loop, leave]


def has_break(block: Block) -> bool:
    """A Break of the loop whose body this is."""
    return any(isinstance(n, Break) or isinstance(n, If) and any(map(has_break, blocks_of(n))) for n in block.nodes)


def _exits(block: Block, change) -> Block:
    """The body of a loop with each exit of it changed; loops inside have no Returns any more."""
    nodes = [with_blocks(n, [_exits(b, change) for b in blocks_of(n)]) if isinstance(n, If)
             else change(n) if isinstance(n, Return | Break | Continue) else n for n in block.nodes]
    return replace(block, nodes=nodes)


def _constant(nodes: list[Node], t: TileType, value, span: Span) -> Value:
    v = Value(t)
    nodes.append(Op(create.constant, (), {"value": value}, (v,), span))
    return v


def _nothing(nodes: list[Node], t: LeafType, span: Span) -> Value:
    """Some value of the type, for where nobody reads it."""
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

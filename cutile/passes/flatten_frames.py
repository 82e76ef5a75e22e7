"""Put the body of each call where the call stands, so that no Frame is left.

A Return at the end of the body hands its operands to whoever used the results of the frame. An early return in an If
sends the rest of the body into the branch that goes on; where both branches go on, the body becomes a loop that runs
once and ends by Break. Nodes that control cannot reach are dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from cutile.ir.check import falls_through
from cutile.ir.nodes import (
    TERMINATORS,
    Block,
    Break,
    Frame,
    If,
    Kernel,
    Node,
    Return,
    Value,
    While,
    Yield,
    blocks_of,
)
from cutile.ir.walk import rewrite, with_blocks
from cutile.passes.structured_exits import has_return, out_of_loops
from cutile.structs import replace


def flatten_frames(kernel: Kernel) -> Kernel:
    """The kernel without Frames."""
    new: dict[Value, Value] = {}
    flat = rewrite(kernel, lambda old, n: _frame(n, new) if isinstance(n, Frame) else _cut(n), new)
    body = reachable(flat.body)
    return flat if body is flat.body else replace(flat, body=body)


def _cut(n: Node) -> list[Node] | None:
    """The node with its blocks ending where control ends."""
    blocks = tuple(blocks_of(n))
    cut = [reachable(b) for b in blocks]
    return None if all(a is b for a, b in zip(blocks, cut, strict=True)) else [with_blocks(n, cut)]


def reachable(block: Block) -> Block:
    for i, n in enumerate(block.nodes[:-1]):
        if isinstance(n, TERMINATORS) or not falls_through(n):
            return replace(block, nodes=block.nodes[:i + 1])
    return block


def _frame(n: Frame, new: dict[Value, Value]) -> list[Node]:
    """What stands for a frame whose own calls are flattened already. `new` learns what its results are."""
    body = reachable(out_of_loops(reachable(n.body), tuple(v.type for v in n.results)))
    moved: dict[Value, Value] = {}
    try:
        nodes = _tail(list(body.nodes), n.results, moved)
    except _BothGoOn:
        return [While(None, (), (), _as_breaks(body), n.results, n.span)]
    if moved:
        nodes = substituted(nodes, moved)
    if nodes and isinstance(nodes[-1], Yield):
        new.update((r, v) for r, v in zip(n.results, nodes.pop().operands, strict=True))
    return nodes


class _BothGoOn(Exception):
    """Both branches of an If with an early return go on, so what follows it would be needed twice."""


def _tail(nodes: list[Node], results: tuple[Value, ...], moved: dict[Value, Value]) -> list[Node]:
    """The nodes of a body that returns, ending in a Yield of what it returns; `moved` says what became of Ifs' results.

    Nothing returns from inside a loop any more.
    """
    at = next((i for i, n in enumerate(nodes) if isinstance(n, If) and has_return(n)), None)
    if at is None:
        if nodes and isinstance(nodes[-1], Return):
            return [*nodes[:-1], Yield(nodes[-1].operands, nodes[-1].span)]
        return nodes
    n, rest = nodes[at], nodes[at + 1:]
    going_on = [b for b in blocks_of(n) if b.nodes and isinstance(b.nodes[-1], Yield)]
    if len(going_on) == 2:
        raise _BothGoOn
    branches = []
    for b in blocks_of(n):
        inner = list(b.nodes)
        if b in going_on:
            last = inner.pop()
            moved.update(zip(n.results, last.operands, strict=True))
            inner += rest
        branches.append(Block(_tail(inner, results, moved)))
    values = tuple(Value(v.type) for v in results)
    made = replace(n, then=branches[0], orelse=branches[1], results=values)
    yields = any(b.nodes and isinstance(b.nodes[-1], Yield) for b in branches)
    return [*nodes[:at], made, *([Yield(values, n.span)] if yields else [])]


def substituted(nodes: list[Node], new: dict[Value, Value]) -> list[Node]:
    """Nodes with other values at every depth."""

    def last(v: Value) -> Value:
        while v in new:
            v = new[v]
        return v

    final = {v: last(v) for v in new}
    holder = Kernel("", (), (), Block(nodes), nodes[0].span)
    return list(rewrite(holder, lambda old, n: None, final).body.nodes)


def _as_breaks(block: Block) -> Block:
    """A body without Returns in loops, for a loop that runs once."""
    return _mapped(block, lambda n: Break(n.operands, n.span) if isinstance(n, Return) else n)


def _mapped(block: Block, change: Callable[[Node], Node]) -> Block:
    return replace(block, nodes=[with_blocks(n, [_mapped(b, change) for b in blocks_of(n)]) if isinstance(n, If)
                                 else change(n) for n in block.nodes])

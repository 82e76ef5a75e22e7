"""The one walk over the IR, the one rewriting of it, and what follows from them: uses, definitions, free values.

Calls nest as deep as the language allows (1000 frames), so nothing here recurses on Python's stack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from cutile._support.structs import replace
from cutile.ir.nodes import (
    TERMINATORS,
    Bind,
    Block,
    For,
    Frame,
    Group,
    If,
    Kernel,
    Node,
    Op,
    Return,
    Template,
    Value,
    While,
    blocks_of,
    inner_of,
    results_of,
    uses_of,
)


def walk(block: Block, enter: Callable[[Node], bool] | None = None) -> Iterator[Node]:
    """Nodes in program order, each before the nodes nested in it, which are left out where `enter(node)` is false."""
    stack = [iter(block.nodes)]
    while stack:
        for n in stack[-1]:
            yield n
            inner = blocks_of(n)
            if inner and (enter is None or enter(n)):
                stack.extend(iter(b.nodes) for b in reversed(inner))
                break
        else:
            stack.pop()


def blocks(block: Block) -> Iterator[tuple[Block, Node | None]]:
    """This block and all nested ones, each with the node that holds it (None for this one)."""
    yield block, None
    for n in walk(block):
        for b in blocks_of(n):
            yield b, n


def depths(block: Block) -> dict[Block, int]:
    """This block and all nested ones, with the number of blocks that each stands in."""
    found, pending = {block: 0}, [block]
    for b in pending:
        inner = [i for n in b.nodes for i in blocks_of(n)]
        found.update(dict.fromkeys(inner, found[b] + 1))
        pending += inner
    return found


def free_values(block: Block) -> tuple[Value, ...]:
    """Values used inside a block, at any depth, but defined outside it; in order of first use.

    Binds are no uses: `shown_values` tells what they show.
    """
    free: dict[Value, None] = {}
    defined: set[Value] = set(block.params)
    for n in walk(block):
        free.update(dict.fromkeys(v for v in uses_of(n) if v not in defined))
        defined.update(results_of(n), inner_of(n))
    return tuple(free)


def uses(block: Block) -> dict[Value, list[Node]]:
    """The nodes that read each value, in program order; a node that reads a value twice is listed twice."""
    found: dict[Value, list[Node]] = defaultdict(list)
    for n in walk(block):
        for v in uses_of(n):
            found[v].append(n)
    return dict(found)


def definitions(block: Block) -> dict[Value, Node]:
    """The node that has each value as a result, or defines it for its nested blocks."""
    return {v: n for n in walk(block) for v in (*results_of(n), *inner_of(n))}


def homes(block: Block) -> dict[Value, Block]:
    """The block whose nodes give each value as a result. Parameters of loops and regions are not listed."""
    return {v: b for b, _ in blocks(block) for n in b.nodes for v in results_of(n)}


def shown_values(t: Template) -> tuple[Value, ...]:
    """The values in a Bind's template, in order."""
    if isinstance(t, Value):
        return (t,)
    found, pending = [], [t]
    while pending:
        t = pending.pop()
        if isinstance(t, Value):
            found.append(t)
        elif isinstance(t, Group):
            pending += reversed(t.items)
    return tuple(found)


def bound_values(block: Block) -> set[Value]:
    """Every value that some Bind shows."""
    return {v for n in walk(block) if isinstance(n, Bind) for v in shown_values(n.template)}


def returns(body: Block) -> list[Return]:
    """The Returns that leave this body of a frame or kernel, those of frames nested in it apart."""
    return [n for n in walk(body, lambda n: not isinstance(n, Frame)) if isinstance(n, Return)]


def holders(body: Block, *kinds: type[Node]) -> set[Node]:
    """The nodes of a body of a frame, loop or kernel that hold, at any depth, a node of these kinds.

    Those inside nested frames do not count.
    """
    found: set[Node] = set()
    outer = [(body, None), *((b, n) for n in walk(body, lambda n: not isinstance(n, Frame))
                             if not isinstance(n, Frame) for b in blocks_of(n))]
    for b, holder in reversed(outer):  # inner blocks first
        if holder is not None and any(isinstance(n, kinds) or n in found for n in b.nodes):
            found.add(holder)
    return found


# ------------------------------------------------------------------ rewriting


def substitute(n: Node, new: Mapping[Value, Value]) -> Node:
    """`n` with other values in place of those it reads or shows, nested blocks apart; `n` itself if none changes."""

    def sub(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(new.get(v, v) for v in values)

    if isinstance(n, Bind):
        changed = not new.keys().isdisjoint(shown_values(n.template))
        return replace(n, template=_sub_template(n.template, new)) if changed else n
    if new.keys().isdisjoint(uses_of(n)):
        return n
    match n:
        case If():
            return replace(n, cond=new.get(n.cond, n.cond))
        case For():
            start, stop, step = sub((n.start, n.stop, n.step))
            return replace(n, start=start, stop=stop, step=step, inits=sub(n.inits))
        case While():
            return replace(n, inits=sub(n.inits))
        case _:
            return replace(n, operands=sub(n.operands))


def _sub_template(t: Template, new: Mapping[Value, Value]) -> Template:
    if isinstance(t, Value):
        return new.get(t, t)
    return replace(t, items=tuple(_sub_template(i, new) for i in t.items)) if isinstance(t, Group) else t


def with_blocks(n: Node, new: Sequence[Block]) -> Node:
    """`n` with other nested blocks, in the order of `blocks_of`."""
    match n:
        case Op():
            return replace(n, region=new[0])
        case If():
            return replace(n, then=new[0], orelse=new[1])
        case For() | Frame():
            return replace(n, body=new[0])
        case While():
            return replace(n, cond=new[0] if n.cond is not None else None, body=new[-1])
        case _:
            raise TypeError(f"{type(n).__name__} has no nested blocks")


Change = Callable[[Node, Node], Sequence[Node] | None]


def rewrite(kernel: Kernel, change: Change, new: dict[Value, Value] | None = None) -> Kernel:
    """The kernel with some nodes replaced.

    `change(old, node)` is asked for each node in program order, after the nodes nested in it: `old` is the node as it
    stood, `node` the same with its values substituted and its blocks rewritten. It returns the nodes to put there, or
    None to put `node`. `new` maps values to what stands in their place from then on; `change` may add to it. Values
    keep their identity, and what does not change is shared with the given kernel, which stays as it is.
    """
    body = unrolled(_rewrite(kernel.body, change, {} if new is None else new))
    return kernel if body is kernel.body else replace(kernel, body=body)


def _rewrite(block: Block, change: Change, new: dict[Value, Value]) -> Generator[Any, Any, Block]:
    nodes: list[Node] = []
    for old in block.nodes:
        n = substitute(old, new)
        before, after = tuple(blocks_of(n)), []
        for b in before:
            after.append((yield _rewrite(b, change, new)))
        if any(a is not b for a, b in zip(after, before, strict=True)):
            n = with_blocks(n, after)
        replaced = change(old, n)
        nodes += (n,) if replaced is None else replaced
    same = len(nodes) == len(block.nodes) and all(a is b for a, b in zip(nodes, block.nodes, strict=True))
    return block if same else replace(block, nodes=nodes)


def mapped(block: Block, change: Callable[[Node], Node]) -> Block:
    """The block with each of its own terminators changed, those in branches of Ifs too, loops and frames apart."""
    return unrolled(_mapped(block, change))


def _mapped(block: Block, change: Callable[[Node], Node]) -> Generator[Any, Any, Block]:
    nodes: list[Node] = []
    for n in block.nodes:
        if isinstance(n, If):
            then = yield _mapped(n.then, change)
            orelse = yield _mapped(n.orelse, change)
            n = replace(n, then=then, orelse=orelse)
        nodes.append(change(n) if isinstance(n, TERMINATORS) else n)
    return replace(block, nodes=nodes)


def unrolled(function: Generator[Generator, Any, Any]) -> Any:
    """Run a recursive function without Python's stack: written as a generator, it calls itself by `yield f(x)`."""
    stack, result = [function], None
    while stack:
        try:
            call = stack[-1].send(result)
        except StopIteration as e:
            stack.pop()
            result = e.value
        else:
            stack.append(call)
            result = None
    return result

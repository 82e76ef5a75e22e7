"""The one walk over the IR, the one rewriting of it, and what follows from them: uses, definitions, free values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from cutile.ir.nodes import (
    Bind, Block, Break, Continue, For, Frame, Group, If, Kernel, Node, Op, Return, Template, Value, While, Yield,
    blocks_of, inner_of, results_of, uses_of,
)


def free_values(block: Block) -> tuple[Value, ...]:
    """Values used inside a block, at any depth, but defined outside it; in order of first use.

    Binds are no uses: ask `shown_values` for what they show.
    """
    free: dict[Value, None] = {}
    defined: set[Value] = set(block.params)
    for n in walk(block):
        free.update(dict.fromkeys(v for v in uses_of(n) if v not in defined))
        defined.update(results_of(n), inner_of(n))
    return tuple(v for v in free if v not in defined)


def walk(block: Block) -> Iterator[Node]:
    """Nodes in program order, each before the nodes nested in it."""
    stack = [iter(block.nodes)]
    while stack:
        n = next(stack[-1], None)
        if n is None:
            stack.pop()
            continue
        yield n
        stack.extend(iter(b.nodes) for b in reversed(tuple(blocks_of(n))))

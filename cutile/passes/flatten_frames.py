"""Replace each call by the body of the function, so that no Frame is left.

The operands of a Return at the end of the body replace the results of the frame. After an If with an early return, the
rest of the body moves into the branch that does not return. If both branches may fall through, the body is put in a
loop that runs once, and Returns become Breaks. Nodes that control cannot reach are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from cutile._support.structs import replace
from cutile.ir.check import falls_through
from cutile.ir.nodes import (
    TERMINATORS,
    Bind,
    Break,
    Frame,
    Kernel,
    Node,
    Region,
    Return,
    Value,
    While,
    Yield,
    regions_of,
    uses_of,
)
from cutile.ir.walk import holders, mapped, nodes_of, rewrite, run_recursive, shown_values, substitute, with_regions
from cutile.passes.structured_exits import out_of_loops


def flatten_frames(kernel: Kernel) -> Kernel:
    """The kernel without Frames."""
    new: dict[Value, Value] = {}
    ended = rewrite(kernel, lambda old, n: _frame(n, new) if isinstance(n, Frame) else _cut(n))
    body = run_recursive(_spliced(reachable(ended.body), new))
    return kernel if body is kernel.body else replace(kernel, body=body)


def flatten_some(kernel: Kernel, wanted: Callable[[Frame], bool]) -> Kernel:
    """The kernel without those Frames that are wanted and have no early return."""
    if not any(type(n) is Frame and wanted(n) for n in nodes_of(kernel)):  # most kernels have none
        return kernel
    body = run_recursive(_spliced(kernel.body, {}, lambda n: wanted(n) and isinstance(n.body.nodes[-1], Return)
                                  and not holders(n.body, Return)))
    return kernel if body is kernel.body else replace(kernel, body=body)


def _cut(n: Node) -> list[Node] | None:
    """The node without the nodes of its regions that control cannot reach; None if there are none."""
    regions = tuple(regions_of(n))
    cut = [reachable(region) for region in regions]
    return None if all(a is b for a, b in zip(regions, cut, strict=True)) else [with_regions(n, cut)]


def reachable(region: Region) -> Region:
    """The region up to the first node from which control does not go on to the next."""
    for i, n in enumerate(region.nodes[:-1]):
        if isinstance(n, TERMINATORS) or not falls_through(n):
            return replace(region, nodes=region.nodes[:i + 1])
    return region


# ------------------------------------------------------------------ one way out of each frame


def _frame(n: Frame, new: dict[Value, Value]) -> list[Node]:
    """The frame with its Returns merged into one at the end, or a loop in place of the frame.

    `new` receives the values that replace results of Ifs.
    """
    body = reachable(out_of_loops(reachable(n.body), tuple(v.type for v in n.results)))
    holding = holders(body, Return)
    if holding:
        moved: dict[Value, Value] = {}
        try:
            nodes = run_recursive(_with_rest(body.nodes, [], n.results, holding, moved))[::-1]
        except _BothFallThrough:
            broken = mapped(body, lambda e: Break(e.operands, e.span) if isinstance(e, Return) else e)
            return [While(None, (), (), broken, n.results, n.span)]
        new.update(moved)
        if nodes and isinstance(nodes[-1], Yield):
            nodes[-1] = Return(nodes[-1].operands, nodes[-1].span)
        body = replace(body, nodes=nodes)
    return [n if body is n.body else replace(n, body=body)]


class _BothFallThrough(Exception):
    """Both branches of an If with an early return may fall through, so the nodes after it would be needed twice."""


def _with_rest(nodes: Sequence[Node], rest: list[Node], results: tuple[Value, ...], holding: set[Node],
           moved: dict[Value, Value]) -> Generator[Any, Any, list[Node]]:
    """Nodes followed by `rest`, ending in a Yield of what the function returns. `rest` and the result are in reverse
    order, because nodes are put before others all the time, which lists do quickly only at their end. `moved`: values
    that replace results of Ifs.

    No loop among the nodes holds a Return.
    """
    out = rest
    for n in reversed(nodes):
        if isinstance(n, Return):
            out = [Yield(n.operands, n.span)]
        elif n not in holding:
            out.append(n)
        else:
            falling_through = [side for side in regions_of(n) if side.nodes and isinstance(side.nodes[-1], Yield)]
            if len(falling_through) == 2:
                raise _BothFallThrough
            branches = []
            for side in regions_of(n):
                inner, after = side.nodes, []
                if side in falling_through:
                    *inner, last = inner
                    moved.update(zip(n.results, last.operands, strict=True))
                    after = out
                branches.append(Region((yield _with_rest(inner, after, results, holding, moved))[::-1]))
            values = tuple(Value(v.type) for v in results)
            yields = any(side.nodes and isinstance(side.nodes[-1], Yield) for side in branches)
            made = replace(n, then=branches[0], orelse=branches[1], results=values)
            out = [Yield(values, n.span), made] if yields else [made]
    return out


# ------------------------------------------------------------------ bodies in place of frames


def _spliced(region: Region, new: dict[Value, Value],
             enters: Callable[[Frame], bool] = lambda n: True) -> Generator[Any, Any, Region]:
    """The region with each frame replaced by its body, or each that `enters` says. `new` maps values to their
    replacements.
    """
    out: list[Node] = []
    inside: list[tuple[Frame | None, Any]] = [(None, iter(region.nodes))]  # entered frames, each with its next nodes
    while inside:
        frame, nodes = inside[-1]
        n = next(nodes, None)
        if n is None:
            inside.pop()
        elif isinstance(n, Frame) and enters(n):
            inside.append((n, iter(n.body.nodes)))
        elif isinstance(n, Return) and frame is not None:
            new.update(zip(frame.results, n.operands, strict=True))
            inside.pop()
        else:
            n = _renamed(n, new)
            before, after = regions_of(n), []
            for inner in before:
                after.append((yield _spliced(inner, new, enters)))
            if any(a is not b for a, b in zip(after, before, strict=True)):
                n = with_regions(n, after)
            out.append(n)
    same = len(out) == len(region.nodes) and all(a is b for a, b in zip(out, region.nodes, strict=True))
    return region if same else replace(region, nodes=out)


def _renamed(n: Node, new: dict[Value, Value]) -> Node:
    """The node with each value replaced by its last replacement."""
    read = shown_values(n.template) if isinstance(n, Bind) else uses_of(n)
    final = {}
    for v in read:
        chain = []
        while v in new:
            chain.append(v)
            v = new[v]
        final.update(dict.fromkeys(chain, v))
    new.update(final)  # so that the next look-up takes one step
    return substitute(n, final) if final else n

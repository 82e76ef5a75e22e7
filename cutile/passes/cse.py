"""Compute once what is computed twice: an op without effect is replaced by the results of an equal op that is visible
at its place.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from typing import Any

from cutile._support.structs import replace
from cutile.ir.nodes import Frame, Kernel, Node, Op, Region, Value, regions_of
from cutile.ir.terms import number_key
from cutile.ir.walk import run_recursive, substitute, with_regions
from cutile.ops._op import PURE
from cutile.ops.debug import breakpoint as breakpoint_op

Seen = dict[Hashable, tuple[Value, ...]]


def cse(kernel: Kernel) -> Kernel:
    """The kernel without repeated ops. Binds show the earlier result."""
    body = run_recursive(_region(kernel.body, {}, {}))
    return kernel if body is kernel.body else replace(kernel, body=body)


def key_of(n: Op) -> Hashable | None:
    """A key that is equal for ops that compute the same; None for an op that cannot be merged. 1, 1.0 and True differ,
    and so do 0.0 and -0.0.
    """
    if n.op.effect != PURE or n.region is not None or n.op is breakpoint_op or "ctx" in n.op.given and n.operands:
        return None
    attrs = tuple((k, _exact(v)) for k, v in n.attrs.items())
    return n.op, n.operands, n.layout, attrs, tuple(v.type for v in n.results)


def _exact(value: Any) -> Hashable:
    if isinstance(value, tuple):
        return tuple(map(_exact, value))
    return number_key(value) if isinstance(value, bool | int | float) else value


def _region(region: Region, seen: Seen, new: dict[Value, Value]) -> Generator[Any, Any, Region]:
    nodes: list[Node] = []
    own: list[Hashable] = []  # keys that this region adds to `seen`, and that are removed at its end
    for old in region.nodes:
        n = substitute(old, new)
        if isinstance(n, Op) and (key := key_of(n)) is not None:
            if key in seen:
                new.update(zip(n.results, seen[key], strict=True))
                continue
            seen[key] = n.results
            own.append(key)
        before, after = tuple(regions_of(n)), []
        for inner in before:
            after.append((yield _region(inner, {} if isinstance(n, Op | Frame) else seen, new)))
        nodes.append(n if all(a is b for a, b in zip(after, before, strict=True)) else with_regions(n, after))
    for key in own:
        del seen[key]
    same = len(nodes) == len(region.nodes) and all(a is b for a, b in zip(nodes, region.nodes, strict=True))
    return region if same else replace(region, nodes=nodes)

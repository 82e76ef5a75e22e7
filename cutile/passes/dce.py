"""Drop pure ops whose results are unused, and all Binds.

Weak and relaxed loads are dropped like pure ops [LOAD-8].
"""

from __future__ import annotations

from cutile._support.structs import replace
from cutile.analysis.live import removable
from cutile.ir.nodes import Bind, Kernel, Node, Op, Region, Value, regions_of, uses_of
from cutile.ir.recursion import recursive
from cutile.ir.walk import walk, with_regions


def dce(kernel: Kernel) -> Kernel:
    """The kernel without dead ops and without Binds."""
    needed = _needed(kernel.body)
    body = _kept(kernel.body, needed)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _needed(body: Region) -> set[Value]:
    """The values that a kept node reads. Uses come after definitions, so one walk backwards finds all of them."""
    needed: set[Value] = set()
    for n in reversed(list(walk(body))):
        if isinstance(n, Op) and removable(n):
            if needed.isdisjoint(n.results):
                continue
            needed.update(v for inner in ([] if n.region is None else walk(n.region)) for v in uses_of(inner))
        needed.update(uses_of(n))
    return needed


@recursive
def _kept(region: Region, needed: set[Value]) -> Region:
    nodes: list[Node] = []
    for n in region.nodes:
        if isinstance(n, Bind) or removable(n) and needed.isdisjoint(n.results):
            continue
        before = tuple(regions_of(n))
        after = [_kept(inner, needed) for inner in before]
        nodes.append(n if all(a is b for a, b in zip(after, before, strict=True)) else with_regions(n, after))
    same = len(nodes) == len(region.nodes) and all(a is b for a, b in zip(nodes, region.nodes, strict=True))
    return region if same else replace(region, nodes=nodes)

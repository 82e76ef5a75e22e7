"""Which values of a program may depend on undetermined padding, by the flow of values through ops and control flow.

The answer is static and may include values that never do. Carried values and results of one loop are taken together,
since emitted code keeps them in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cutile._support.structs import structure
from cutile.ir.nodes import (
    Break,
    Continue,
    For,
    Frame,
    If,
    Kernel,
    Node,
    Op,
    Region,
    Return,
    Value,
    While,
    Yield,
    regions_of,
)
from cutile.ir.walk import free_values
from cutile.types import TileType


@structure(frozen=True, slots=True)
class Tainted:
    """The values that may depend on undetermined padding, and where terminators pass them on.

    values     tiles that may depend on undetermined padding
    receivers  for each terminator the values that take its operands, in order; empty for the Yield of a while condition
    carried    for a Break, how many of its receivers are carried values (they come first); for other terminators, the
               number of receivers
    """

    values: frozenset[Value]
    receivers: dict[Node, tuple[Value, ...]]
    carried: dict[Node, int]


def tainted(kernel: Kernel, sources: Iterable[Value], passes_on: Callable[[Op], bool]) -> Tainted:
    """What depends on `sources`, where ops for which `passes_on` is false give determined results."""
    flow: dict[Value, list[Value]] = {}
    receivers: dict[Node, tuple[Value, ...]] = {}

    def link(froms: Iterable[Value], tos: Iterable[Value]) -> None:
        for v, w in zip(froms, tos, strict=False):
            flow.setdefault(v, []).append(w)

    def all_to_all(froms: Iterable[Value], tos: Iterable[Value]) -> None:
        tos = tuple(tos)
        for v in froms:
            flow.setdefault(v, []).extend(tos)

    carried: dict[Node, int] = {}
    # With each region: the receivers of its Yield, of a Break and a Continue in it, and of a Return.
    pending: list[tuple[Region, tuple, tuple, tuple, tuple]] = [(kernel.body, (), (), (), ())]
    while pending:
        region, yields, breaks, continues, returns = pending.pop()
        for n in region.nodes:
            match n:
                case Op():
                    if passes_on(n):
                        all_to_all(n.operands, n.results)
                    if n.region is not None:
                        inside = (*n.region.params, *n.results)
                        all_to_all((*n.operands, *free_values(n.region)), inside)
                        all_to_all(inside, inside)
                        pending.append((n.region, n.results, (), (), ()))
                case If():
                    pending += ((b, n.results, breaks, continues, returns) for b in regions_of(n))
                case For() | While():
                    link(n.inits, n.params)
                    link(n.params, n.results)
                    link(n.results, n.params)
                    pending.append((n.body, (), n.results, n.params, returns))
                    if isinstance(n, While) and n.cond is not None:
                        pending.append((n.cond, (), (), (), ()))
                case Frame():
                    pending.append((n.body, (), (), (), n.results))
                case Yield() | Break() | Continue() | Return():
                    to = {Yield: yields, Break: breaks, Continue: continues, Return: returns}[type(n)]
                    receivers[n] = to
                    carried[n] = len(continues) if isinstance(n, Break) else len(to)
                    link(n.operands, to)
    return Tainted(_reached(flow, sources), receivers, carried)


def _reached(flow: dict[Value, list[Value]], sources: Iterable[Value]) -> frozenset[Value]:
    found: set[Value] = set()
    pending = list(sources)
    while pending:
        v = pending.pop()
        if v not in found and isinstance(v.type, TileType):
            found.add(v)
            pending += flow.get(v, ())
    return frozenset(found)

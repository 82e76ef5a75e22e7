"""Puts shadows into a program: beside each tile that may have one, in ops, branches, loops and calls.

What a shadow says, and how it passes through an op, the check decides that derives from `Shadowing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cutile._support.structs import replace
from cutile.interp.sanitize.shadows import NO_SHADOW, shadow_type
from cutile.interp.sanitize.taint import Tainted
from cutile.ir.nodes import TERMINATORS, For, Frame, If, Node, Op, Value, While, Yield


class Shadowing:
    """Rewrites a program node by node: `change` is for `ir.walk.rewrite`.

    found    the tiles that have a shadow
    shadows  of each of them the value of its shadow
    nodes    those that take the place of the current one
    """

    def __init__(self, found: Tainted):
        self.found = found
        self.shadows = {v: Value(shadow_type(v.type)) for v in found.values}
        self.nodes: list[Node] = []

    def op(self, old: Op, n: Op) -> None:
        """Add an op with its shadows and checks to `nodes`. `old`: the op before its operands were rewritten."""
        raise NotImplementedError

    def branch(self, values: Iterable[Value], n: Node, what: str) -> None:
        """Check scalars that decide where control goes."""

    def change(self, old: Node, n: Node) -> list[Node] | None:
        self.nodes = []
        if isinstance(n, Op):
            self.op(old, n)
        elif isinstance(n, If | For | While | Frame):
            self.structured(n)
        elif isinstance(n, TERMINATORS):
            self.terminator(old, n)
        return self.nodes or None

    def of(self, v: Value, n: Node) -> Value:
        """The shadow of a value, for use in a node."""
        if v in self.shadows:
            return self.shadows[v]
        none = Value(shadow_type(v.type))
        self.nodes.append(Op(NO_SHADOW, (), {}, (none,), n.span))
        return none

    def with_shadows(self, values: Sequence[Value], receivers: Sequence[Value], carried: int, n: Node) -> tuple:
        """Values followed by the shadows of those that a tainted receiver takes: first the carried ones of a loop, then
        the others.
        """
        out: list[Value] = []
        for part in (slice(None, carried), slice(carried, None)):
            out += values[part]
            out += (self.of(v, n) for v, to in zip(values[part], receivers[part], strict=True) if to in self.shadows)
        return tuple(out)

    def structured(self, n: If | For | While | Frame) -> None:
        if isinstance(n, If):
            self.branch([n.cond], n, "this branch")
        if isinstance(n, For):
            self.branch([n.start, n.stop, n.step], n, "the number of iterations")
        changed = {}
        carried = len(n.results)
        if isinstance(n, For | While):
            carried = len(n.params)
            changed = {"inits": self.with_shadows(n.inits, n.params, carried, n),
                       "params": self.with_shadows(n.params, n.params, carried, n)}
        results = self.with_shadows(n.results, n.results, carried, n)
        self.nodes.append(replace(n, results=results, **changed))

    def terminator(self, old: Node, n: Node) -> None:
        receivers = self.found.receivers[old]
        if isinstance(n, Yield) and not receivers:  # the condition of a While
            self.branch(n.operands, n, "the number of iterations")
        else:
            n = replace(n, operands=self.with_shadows(n.operands, receivers, self.found.carried[old], n)) \
                if n.operands else n
        self.nodes.append(n)

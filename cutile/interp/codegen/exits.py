"""How control leaves the regions of a kernel, for the batch emitter: a region that blocks may leave early gets a record
of them.
"""

from __future__ import annotations

from cutile._support.structs import structure
from cutile.errors import Span
from cutile.ir import nodes as ir
from cutile.ir.nodes import TERMINATORS, Node, Op, Region, regions_of
from cutile.ir.walk import regions

NO_EXITS: frozenset[str] = frozenset()


class Exits:
    """How control can leave each region other than by its end: "loop" (Break, Continue) and "frame" (Return)."""

    def __init__(self, root: Region):
        self._of: dict[Region, frozenset[str]] = {}
        self._tail: dict[Region, type] = {root: ir.Return}
        every = list(regions(root))
        for b, n in every:
            if n is not None:
                self._tail[b] = (ir.Continue if isinstance(n, ir.For | ir.While) and b is n.body else
                                 ir.Return if isinstance(n, ir.Frame) else ir.Yield)
        for b, _ in reversed(every):
            out: set[str] = set()
            for n in b.nodes:
                out |= self.node(n)
                if isinstance(n, TERMINATORS) and not isinstance(n, self._tail[b]):
                    out.add("frame" if isinstance(n, ir.Return) else "loop")
            self._of[b] = frozenset(out)

    def __getitem__(self, b: Region) -> frozenset[str]:
        return self._of[b]

    def node(self, n: Node) -> frozenset[str]:
        """How control can leave a node other than by its end."""
        if isinstance(n, (Op, ir.Bind, ir.Frame)):
            return NO_EXITS
        out = frozenset().union(*(self._of[b] for b in regions_of(n)))
        return out - {"loop"} if isinstance(n, ir.For | ir.While) else out


@structure(frozen=True)
class Scope:
    """The user's function that an emitted one belongs to, and the exit records of Break, Continue and Return."""

    name: str
    span: Span  # of the user's function
    returns: str | None = None
    breaks: str | None = None
    continues: str | None = None

    def records(self, exits: frozenset[str]) -> list[str]:
        """The exit records that a region needs if control leaves it by these exits."""
        loop = [self.breaks, self.continues] if "loop" in exits else []
        return loop + ([self.returns] if "frame" in exits and self.returns else [])

"""How control leaves the regions of a kernel, for the batch emitter. A loop or frame that blocks may leave early gets
an exit record, a list to which the blocks that leave are appended.
"""

from __future__ import annotations

from cutile._support.structs import structure
from cutile.ir import nodes as ir
from cutile.ir.nodes import TERMINATORS, Node, Op, Region, regions_of
from cutile.ir.walk import regions
from cutile.spans import Span

NO_EXITS: frozenset[str] = frozenset()
_WITHOUT_EXITS = (Op, ir.Bind, ir.Frame)


class Exits:
    """For each region, how control can jump out of it, before its end: "loop" (Break, Continue) and "frame" (Return).
    """

    def __init__(self, root: Region):
        self._of: dict[Region, frozenset[str]] = {}
        self._tail: dict[Region, type] = {root: ir.Return}
        every = list(regions(root))
        for region, n in every:
            if n is not None:
                self._tail[region] = (ir.Continue if isinstance(n, ir.LOOPS) and region is n.body else
                                      ir.Return if isinstance(n, ir.Frame) else ir.Yield)
        for region, _ in reversed(every):
            out: set[str] = set()
            for n in region.nodes:
                if type(n) in _WITHOUT_EXITS:
                    continue
                out |= self.node(n)
                if isinstance(n, TERMINATORS) and not isinstance(n, self._tail[region]):
                    out.add("frame" if isinstance(n, ir.Return) else "loop")
            self._of[region] = frozenset(out)

    def __getitem__(self, region: Region) -> frozenset[str]:
        return self._of[region]

    def node(self, n: Node) -> frozenset[str]:
        """How control can jump out of a node, before its end."""
        if type(n) in _WITHOUT_EXITS:
            return NO_EXITS
        out = frozenset().union(*(self._of[region] for region in regions_of(n)))
        return out - {"loop"} if isinstance(n, ir.LOOPS) else out


@structure(frozen=True)
class Enclosing:
    """What encloses a region: the user's function, and the exit records of the innermost loop and of the frame."""

    name: str
    span: Span  # of the user's function
    returns: str | None = None
    breaks: str | None = None
    continues: str | None = None

    def records(self, exits: frozenset[str]) -> list[str]:
        """The exit records to which a region appends if control leaves it by these exits."""
        loop = [self.breaks, self.continues] if "loop" in exits else []
        return loop + ([self.returns] if "frame" in exits and self.returns else [])

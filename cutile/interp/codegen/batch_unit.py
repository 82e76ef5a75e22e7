"""What the functions of one kernel share in the code of the batch schedule.

These are the facts about the kernel, the names of locals, and the functions that are still to be emitted.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable

from cutile.interp.codegen.batch_analysis import BatchFacts
from cutile.interp.codegen.emit import CTX, EmittedCode, Liveness
from cutile.interp.codegen.exits import Exits
from cutile.interp.codegen.py_ast import tuple_of
from cutile.interp.exec.block_set import BlockFunction
from cutile.interp.exec.divergence import RegionCode
from cutile.interp.exec.merge import Kind, Rank
from cutile.ir.nodes import Frame, Op, Region, Value
from cutile.ir.walk import depths
from cutile.types import ListType, TileType

LEVELS_PER_CHECK = 16  # every 16th nested function may continue in a new thread, when the stack is nearly full


def rank_of(v: Value) -> Rank:
    return v.type.ndim if isinstance(v.type, TileType) else Kind.SHARED if isinstance(v.type, ListType) else Kind.ARRAY


def ranks_of(values: Iterable[Value]) -> tuple[Rank, ...]:
    return tuple(map(rank_of, values))


class Unit:
    """What all functions of one kernel share. `queue`: calls that emit the functions not emitted yet."""

    def __init__(self, code: EmittedCode, liveness: Liveness, facts: BatchFacts, exits: Exits, root: Region):
        self.code, self.liveness, self.facts, self.exits, self.queue = code, liveness, facts, exits, deque()
        self.records = 0
        self.functions: dict[BlockFunction, BlockFunction] = {}  # functions of block indices, one object for equal ones
        self.depths = depths(root)
        self.same = self._same_frames(root)
        self.emitted: dict[int, RegionCode] = {}  # code that serves the frames with a number in `same`
        self.views: dict[Op, str] = {}  # locals of the kernel's function, and of the bodies of loops

    def assign_views(self, root: Region) -> None:
        """Give views to the regular ops of the kernel's own region, up to the first node that blocks may leave. After
        that node fewer blocks may run, for which the views would be too large.
        """
        regular = self.facts.regular
        for n in root.nodes:
            if n in regular:
                self.view(n)
            elif type(n) is not Op and self.exits.node(n):
                break

    def _same_frames(self, root: Region) -> dict[Frame, int]:
        """See same_frames.py. Code that checks values names each op, so that it serves one frame."""
        if self.code.check or not any(type(n) is Frame for region in self.depths for n in region.nodes):
            return {}
        from cutile.interp.codegen.same_frames import same_frames  # loaded when it is needed

        return same_frames(root, self.facts, self.liveness, self.may_begin_thread)

    def may_begin_thread(self, region: Region) -> bool:
        """Whether the function of a region continues in a new thread when the stack is nearly full."""
        return self.depths[region] % LEVELS_PER_CHECK == 0

    def view(self, n: Op) -> str:
        """The local that may hold the tile of an op as a view."""
        return self.views.setdefault(n, f".view{len(self.views)}")

    def record(self, kind: str) -> str:
        self.records += 1
        return f".{kind}{self.records}"

    def temps(self, values: Iterable[Value]) -> list[str]:
        return list(map(self.code.temp, values))

    def loads(self, values: Iterable[Value]) -> ast.expr:
        return tuple_of(map(self.code.value, values))

    def entries(self, values: Iterable[Value]) -> list[tuple[int, ast.expr]]:
        """Values as entries of an environment, each with the blocks that have it."""
        return [(self.liveness.links.key(v), tuple_of([self.code.load(CTX), self.code.value(v)])) for v in values]

    def ref(self, obj, hint: str) -> ast.expr:
        return self.code.ref(obj, hint)

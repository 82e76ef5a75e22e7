"""What of a kernel the batch schedule settles once, before it emits code that runs for every chunk of blocks.

* Constants, and what is made of nothing but constants by moving and converting, are computed here.
* What no one reads is left out; an atomic whose result no one reads need not return it.
* A block index that serves as a tile index stays what it is, a line, so that no one has to find out that it is one.
* With such indices only, a tile of a parameter lies where the layout of the array and the blocks say.
* An op whose result is only stored, next, may put it where it goes.
* An op may put its result into the memory of an operand that no one else sees or reads after it.
* What is repeated along axes only to meet a tile of the full shape in arithmetic is not: NumPy repeats it on its way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from cutile.dtypes import float32, info, tfloat32
from cutile.interp.exec import checking
from cutile.ir.nodes import Bind, For, Kernel, Node, Op, Region, Return, Value, regions_of, results_of, uses_of
from cutile.ir.walk import walk
from cutile.ops import convert, grid, shape
from cutile.ops._constants import evaluate
from cutile.ops._op import ATOMIC, PURE, READ, WRITE, Sig
from cutile.types import ArrayType, TileType

if TYPE_CHECKING:
    from cutile.interp.exec.block_set import BlockSet
    from cutile.interp.memory.array_view import ArrayView

FAMILIES = ("create", "shape", "convert", "arithmetic")  # whose results depend on no setting
LARGEST = 1 << 16  # bytes of a constant that is kept
COMPUTED = 1 << 24  # elements of a constant that is computed at all
INDEX = "*index"  # the operand that holds tile indices, in ops that have some


class BatchPlan:
    """`constants` by value; `axes`, the grid axis of each block index; `skipped` nodes, which need no code."""

    def __init__(self, kernel: Kernel, check: bool):
        self._check = check
        self.constants: dict[Value, np.ndarray] = {}
        self.axes: dict[Value, int] = {}
        self.skipped: set[Node] = set()
        self.direct: dict[Op, Op] = {}  # ops whose result goes to a store alone, and that store
        self.direct_from: dict[Op, Op] = {}  # the inverse
        self.buffers: dict[Op, Value] = {}  # ops, and the operand whose memory they may use
        self.spread: set[Op] = set()  # broadcasts that need not take place
        self.placed: set[Op] = set()  # ops on tiles that lie where the layout of an array and the blocks say
        self._params = frozenset(kernel.params)
        nodes = list(walk(kernel.body))
        for n in nodes:
            if isinstance(n, Op):
                self._constant(n)
                if n.op is grid.bid:
                    self.axes[n.results[0]] = n.attrs["axis"]
        self._reads = Counter(v for n in nodes for v in self.reads(n))
        self._leave_out(nodes)
        self.placed = {n for n in nodes if isinstance(n, Op) and n not in self.skipped and self._is_placed(n)}
        if not check:
            self._find_spread(nodes)
        for b in _regions(kernel.body, nodes):
            self._find_direct(b)
            self._find_buffers(b)

    def reads(self, n: Node) -> list[Value]:
        """The values that code for a node itself takes from locals."""
        if n in self.skipped:
            return []
        return [v for i, v in enumerate(uses_of(n))
                if v not in self.constants and not (v in self.axes and self.is_line(n, i))]

    def results(self, n: Node) -> tuple[Value, ...]:
        return () if n in self.skipped else results_of(n)

    def is_line(self, n: Node, i: int) -> bool:
        """Whether the operand, a block index, is a tile index of a parameter."""
        return isinstance(n, Op) and INDEX in n.op.operands and n.operands[0] in self._params \
            and 0 < i <= n.layout[n.op.operands.index(INDEX)]

    def place(self, n: Op, array: ArrayView, ctx: BlockSet) -> np.ndarray | None:
        """The tile of a placed op for all blocks as one view of the array, if it lies regularly inside."""
        indices = [ctx.line(self.axes[v]) if v in self.axes else self.constants[v] for v in self._indices(n)]
        sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
        return (n.op.view or n.op.target)(array, indices, sig=sig, ctx=ctx, **n.attrs)

    def series(self, loop: For) -> list[Op]:
        """The loads in its body whose tiles `LoopTiles` may give: at the loop's index, the others unchanged."""
        inner = {loop.iv, *loop.params, *(v for n in loop.body.nodes for v in results_of(n))}
        return [n for n in loop.body.nodes if isinstance(n, Op) and n not in self.skipped and n.op.view is not None
                and n.operands[0] in self._params and isinstance(n.operands[0].type, ArrayType)
                and inner.intersection(self._indices(n)) - self.constants.keys() - self.axes.keys() == {loop.iv}]

    def _indices(self, n: Op) -> tuple[Value, ...]:
        return n.operands[1:1 + n.layout[n.op.operands.index(INDEX)]]

    def _is_placed(self, n: Op) -> bool:
        if n.op.view is None and n.op.target is None or n.operands[0] not in self._params:
            return False
        t = n.operands[0].type
        return isinstance(t, ArrayType) and all(v in self.constants or v in self.axes for v in self._indices(n)) \
            and (n.op.view is not None or n.operands[-1].type.ndim == t.ndim > 0)

    def unread(self, n: Op) -> bool:
        """No one reads a result of the op."""
        return not any(self._reads[v] for v in n.results)

    def streams(self, root: Region) -> bool:
        """Whether every tile is part of an array, or computed straight into one: a chunk of blocks takes no memory."""
        return all(n in self.skipped or isinstance(n, Bind | Return) or isinstance(n, Op) and n.region is None
                   and (n.op.effect in (READ, WRITE) or n in self.direct or n.op.effect == ATOMIC and self.unread(n))
                   for n in root.nodes)

    def _constant(self, n: Op) -> None:
        o = n.op
        if o.effect != PURE or o.family not in FAMILIES or n.region is not None or "ctx" in o.given \
                or not all(v in self.constants for v in n.operands) or len(n.results) != 1:
            return
        t = n.results[0].type
        if not isinstance(t, TileType) or t.size > COMPUTED:
            return
        sig = Sig(tuple(v.type for v in n.operands), (t,))
        y = evaluate(o, sig, o.group([self.constants[v] for v in n.operands], n.layout), n.attrs)
        y = np.asarray(checking.finish(n, y) if self._check else y).view()
        if y.nbytes > LARGEST and 0 not in y.strides:
            return
        y.flags.writeable = False
        self.constants[n.results[0]] = y
        self.skipped.add(n)

    def _leave_out(self, nodes: list[Node]) -> None:
        for n in reversed(nodes):
            if isinstance(n, Op) and n.op.effect == PURE and n.region is None and n.results and self.unread(n) \
                    and n not in self.skipped and ("ctx" not in n.op.given or n.op is grid.bid):
                self._reads.subtract(self.reads(n))
                self.skipped.add(n)

    def _find_spread(self, nodes: list[Node]) -> None:
        made = {n.results[0]: n for n in nodes if isinstance(n, Op) and n.op is shape.broadcast_to
                and n not in self.skipped and n.operands[0].type.ndim == n.results[0].type.ndim}
        for n in nodes:
            for v in self.reads(n):
                if v in made and not (_is_arithmetic(n) and any(
                        w.type.shape == v.type.shape and w not in made for w in n.operands)):
                    del made[v]
        self.spread = set(made.values())

    def _find_direct(self, b: Region) -> None:
        nodes = [n for n in b.nodes if n not in self.skipped and not isinstance(n, Bind)]
        for n, following in zip(nodes, nodes[1:], strict=False):
            if isinstance(n, Op) and isinstance(following, Op) and self._goes_to(n, following):
                self.direct[n], self.direct_from[following] = following, n

    def _goes_to(self, n: Op, store: Op) -> bool:
        if not n.op.takes_out or store.op.target is None or len(n.results) != 1:
            return False
        (y,), array = n.results, store.operands[0]
        dtype = y.type.dtype
        return self._reads[y] == 1 and store.operands[-1] is y and array in self._params \
            and isinstance(array.type, ArrayType) and dtype is array.type.dtype \
            and info(dtype).carried_exactly and dtype is not tfloat32 and y.type.ndim == array.type.ndim > 0


    def _find_buffers(self, b: Region) -> None:
        made: set[Value] = set()  # in this region, as arrays of their own
        readers: defaultdict[Value, list[Node]] = defaultdict(list)
        for n in b.nodes:
            for v in self.reads(n):
                readers[v].append(n)
        for n in b.nodes:
            if n in self.skipped or not isinstance(n, Op) or n.op.effect != PURE or n in self.direct:
                continue
            if n.op.family == "mma":
                made.update(n.results)
            if not n.op.takes_out or _may_hand_on(n):
                continue
            (y,) = n.results
            spent = [v for v in n.operands if v in made and _fits(n, v) and readers[v][-1] is n
                     and len(readers[v]) == self._reads[v] and not any(map(_may_hand_on, readers[v]))]
            if spent and len(n.operands) <= 2:  # of more, some are still needed when the result is there
                self.buffers[n] = spent[0]
            made.add(y)


def _is_arithmetic(n: Node) -> bool:
    """Whether NumPy lets the operands meet, element by element."""
    return isinstance(n, Op) and n.op.family == "arithmetic" and n.op.takes_out


def _may_hand_on(n: Node) -> bool:
    """Whether a result may be a view of an operand, or the operand itself: a cast that leaves carriers as they are."""
    if not isinstance(n, Op) or n.region is not None:
        return True
    return not n.op.takes_out and n.op.family != "reduce" or \
        n.op is convert.astype and n.results[0].type.dtype is float32


def _fits(n: Op, v: Value) -> bool:
    """Whether the memory of an operand holds the result of an op: values of its type, or of another that are carried
    alike, where the op itself rounds.
    """
    t, u = n.results[0].type, v.type
    return t == u or n.op.exact and t.shape == u.shape and info(t.dtype).carrier == info(u.dtype).carrier


def _regions(root: Region, nodes: list[Node]) -> Iterator[Region]:
    yield root
    for n in nodes:
        yield from regions_of(n)

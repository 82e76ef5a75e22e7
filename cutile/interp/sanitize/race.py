"""The check `race`: two accesses to one element by different blocks, one of which writes, and nothing that orders them
[MEM-2, MEM-5]; and several writes to one element by one scatter [GS-8], any of whose values may remain.

Two atomic accesses never race, unless one has scope BLOCK. One access comes before another of a different block if a
chain connects them: a release after the first, an acquire that reads it, and so on to the second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cutile._support.structs import structure
from cutile.analysis.access import Access, accesses
from cutile.analysis.affine import BlockIndex
from cutile.analysis.aliasing import memory_classes
from cutile.interp.sanitize.race_ops import ACCESS, READ_ATOMIC, READ_PLAIN, UPDATE, WRITE_ATOMIC, WRITE_PLAIN
from cutile.interp.sanitize.sites import sites
from cutile.ir.nodes import Kernel, Node, Op, Value
from cutile.ir.walk import rewrite, walk
from cutile.ops import grid
from cutile.ops._op import ATOMIC, READ, TILES, WRITE
from cutile.types import ListType, MemoryOrder, MemoryScope

ACQUIRES, RELEASES = (MemoryOrder.ACQUIRE, MemoryOrder.ACQ_REL), (MemoryOrder.RELEASE, MemoryOrder.ACQ_REL)
WIDE = (MemoryScope.DEVICE, MemoryScope.SYS)


@structure(frozen=True, eq=False, slots=True)
class Memory:
    """Arrays that may be the same memory, and the kinds of accesses to them.

    own_tiles  for each tile dimension the block indices that its position depends on, if each block accesses one tile
               only; else None
    """

    kinds: frozenset[str]
    own_tiles: tuple[frozenset[BlockIndex], ...] | None

    def may_race(self) -> bool:
        return WRITE_PLAIN in self.kinds or READ_PLAIN in self.kinds and bool(self.kinds & {WRITE_ATOMIC, UPDATE})


@structure(frozen=True, eq=False, slots=True)
class Order:
    """What an access does for the order of blocks.

    acquires  what it reads may order its block after others
    releases  later acquires of what it writes are ordered after it
    stores    it is a plain store, which ends what was released there
    """

    acquires: bool
    releases: bool
    stores: bool


def instrument(kernel: Kernel, *_: object) -> Kernel:
    """The program with a check after each access that can race, and after each that orders blocks."""
    described = accesses(kernel)
    found, memory_of = memories(kernel, described)
    if not any(m.may_race() or _scatters(m) for m in found.values()):
        return kernel
    bids = frozenset(n.attrs["axis"] for n in walk(kernel.body) if isinstance(n, Op) and n.op is grid.bid)
    ordering = {memory_of(a.op.operands[0]) for a in described.values() if _orders(a)}
    site = sites(kernel)

    def change(old: Node, n: Node) -> list[Node] | None:
        access = described.get(old)
        if access is None:
            return None
        v = memory_of(old.operands[0])
        order = _order(access) if v in ordering else None
        if not found[v].may_race() and order is None and not _scatters(found[v]):
            return None
        attrs = {"site": site(old), "kind": kind_of(access), "memory": found[v], "order": order, "bids": bids}
        results = n.results if old.op.effect == ATOMIC else ()
        return [n, Op(ACCESS, (*n.operands, *results), attrs, (), n.span, (len(n.operands), len(results)))]

    return rewrite(kernel, change)


def kind_of(a: Access) -> str:
    """How an access counts between blocks: an atomic with scope BLOCK counts as a plain access."""
    atomic = a.memory_scope in WIDE or a.effect == ATOMIC and a.unit == TILES
    if a.effect == ATOMIC:
        return UPDATE if atomic else WRITE_PLAIN
    if a.effect == READ:
        return READ_ATOMIC if atomic else READ_PLAIN
    return WRITE_ATOMIC if atomic else WRITE_PLAIN


def _orders(a: Access) -> bool:
    return a.memory_scope in WIDE and a.memory_order in (*ACQUIRES, *RELEASES)


def _order(a: Access) -> Order | None:
    """None if the access neither acquires, releases nor stores. An update without a release keeps what was released."""
    wide = a.memory_scope in WIDE
    order = Order(wide and a.memory_order in ACQUIRES, wide and a.memory_order in RELEASES, a.effect == WRITE)
    return order if order.acquires or order.releases or order.stores else None


def _scatters(m: Memory) -> bool:
    return SCATTERED in m.kinds


SCATTERED = "scattered"  # besides the kinds of race_ops: a write to elements that may coincide


def memories(kernel: Kernel, described: dict[Op, Access]) -> tuple[dict[Value, Memory], object]:
    """For each class of arrays that may overlap (by one array of it) its Memory; and a function from an array to that
    one.
    """
    memory_of = memory_classes(kernel)
    by_memory: dict[Value, list[Access]] = defaultdict(list)
    for n, a in described.items():
        by_memory[memory_of(n.operands[0])].append(a)
    found = {}
    for v, group in by_memory.items():
        kinds = {kind_of(a) for a in group}
        kinds |= {SCATTERED for a in group if a.effect == WRITE and a.unit != TILES}
        found[v] = Memory(frozenset(kinds), _own_tiles(group))
    return found, memory_of


def _own_tiles(group: Sequence[Access]) -> tuple[frozenset[BlockIndex], ...] | None:
    """For each dimension of the tile the block indices that its index depends on, if all accesses of a block are to one
    tile of one parameter, and tiles do not overlap; else None.
    """
    first = group[0]
    same = all(a.unit == TILES and not a.array.steps and a.array == first.array and a.index == first.index
               and a.shape == first.shape and a.steps == first.steps and a.order == first.order for a in group)
    if not same or isinstance(first.array.root.type, ListType) \
            or any(step < n for n, step in zip(first.shape, first.steps, strict=True)) \
            or not all(isinstance(v, BlockIndex) for i in first.index for v in i.variables):
        return None
    return tuple(frozenset(i.variables) for i in first.index)

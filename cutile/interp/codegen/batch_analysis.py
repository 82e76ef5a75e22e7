"""Facts about a kernel that the batch emitter uses: constants, regular tiles, nodes that need no code, memory to reuse.

`batch_facts` finds each fact by one function and collects them in a `BatchFacts`, which is immutable.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from cutile._support.structs import replace, structure
from cutile.analysis.access import Access, accesses, tile_indices
from cutile.analysis.affine import AffineIndex, BlockIndex
from cutile.dtypes import float32, info, int32, tfloat32
from cutile.interp.codegen.chains import takes_bits
from cutile.interp.codegen.layout import ops_to_move
from cutile.interp.exec import checking
from cutile.ir.nodes import Bind, For, Kernel, Node, Op, Region, Return, Value, regions_of, results_of, uses_of
from cutile.ir.terms import number_key
from cutile.ir.walk import nodes_of
from cutile.ops import convert, grid, memory, shape
from cutile.ops._constants import compute
from cutile.ops._op import ATOMIC, PRODUCT, PURE, READ, REDUCTION, WRITE, OpDef, Sig
from cutile.types import ArrayType, TileType

if TYPE_CHECKING:
    from cutile.interp.exec.block_set import BlockFunction, BlockSet
    from cutile.interp.memory.array import Array

MAX_KEPT_BYTES = 1 << 16  # a larger constant is kept only if it repeats along an axis (stride 0)
MAX_COMPUTED = 1 << 24  # elements of a value that is computed to see whether it can be kept

Operand = tuple[Op, int]  # an op, and the number of one of its operands


@structure(frozen=True)
class BatchFacts:
    body: Region  # of the kernel, without nodes that need no code
    constants: Mapping[Value, np.ndarray]
    accesses: Mapping[Op, Access]
    indices: Mapping[Operand, AffineIndex]  # tile indices that emitted code keeps as functions of block indices
    skipped: frozenset[Node]  # nodes that need no code
    times_read: Mapping[Value, int]
    regular: frozenset[Op]  # ops of which only the layout of an array and block indices decide where tiles lie
    implicit: frozenset[Op]  # broadcasts that need no code, because NumPy broadcasts operands
    stored_by: Mapping[Op, Op]  # op → the store that directly follows it and alone reads its result
    stores: Mapping[Op, Op]  # the inverse: store → op
    reusable: Mapping[Op, Value]  # op → the operand whose memory may hold the result
    as_stored: frozenset[Op]  # accesses to short floats that are only moved, as bits
    moved: frozenset[Op]  # ops after which code copies the result to memory where the blocks lie last
    local: Mapping[Node, Sequence[Value]]  # node that needs code → what the code reads from locals

    def reads(self, n: Node) -> Sequence[Value]:
        """The values that the code of a node reads from locals, without its nested regions."""
        return self.local.get(n, ())

    def results(self, n: Node) -> tuple[Value, ...]:
        return () if n in self.skipped else n.results if type(n) is Op else results_of(n)

    def unread(self, n: Op) -> bool:
        """Whether nothing reads a result of the op."""
        return not any(self.times_read[v] for v in n.results)

    def streams(self, root: Region) -> bool:
        """Whether tiles are only moved, or computed straight into an array, so that none is worked on in memory."""
        return all(n in self.skipped or isinstance(n, (Bind, Return)) or isinstance(n, Op) and n.region is None
                   and (n.op.effect in (READ, WRITE) or n in self.stored_by or n.op in MOVES
                        or n.op.effect == ATOMIC and self.unread(n))
                   for n in root.nodes)

    def find_view(self, n: Op, array: Array, ctx: BlockSet) -> np.ndarray | None:
        """The tiles of a regular op for all blocks as one view of the array; None if a tile is not wholly inside the
        array.
        """
        indices = [ctx.index(block_function(self.indices[n, i])) if (n, i) in self.indices
                   else self.constants[n.operands[i]] for i in tile_indices(n)]
        sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
        return (n.op.view or n.op.target)(array, indices, sig=sig, ctx=ctx, **n.attrs)

    def loop_loads(self, loop: For) -> dict[Op, tuple[AffineIndex | None, ...]]:
        """The loads in a loop's body whose tiles can be located for all iterations at once, with their tile indices;
        None for an index that is the same in each iteration.
        """
        inner = {loop.iv, *loop.params, *(v for n in loop.body.nodes for v in results_of(n))}
        found = {}
        for n in loop.body.nodes:
            if isinstance(n, Op) and n not in self.skipped and n.op.view is not None and n in self.accesses \
                    and self._is_parameter(n):
                indices = self._in_loop(n, loop, inner)
                if indices is not None and any(i and i.coefficient(loop.iv) for i in indices):
                    found[n] = indices
        return found

    def _in_loop(self, n: Op, loop: For, inner: set[Value]) -> tuple[AffineIndex | None, ...] | None:
        out: list[AffineIndex | None] = []
        for i, index in zip(tile_indices(n), self.accesses[n].index, strict=True):
            if n.operands[i] not in inner or n.operands[i] in self.constants or (n, i) in self.indices:
                out.append(None)
            elif all(v is loop.iv or isinstance(v, BlockIndex) for v in index.variables):
                out.append(index)
            else:
                return None
        return tuple(out)

    def _is_parameter(self, n: Op) -> bool:
        return not self.accesses[n].array.steps and isinstance(n.operands[0].type, ArrayType)


def batch_facts(kernel: Kernel, check: bool) -> BatchFacts:
    """The facts about a kernel. With `check`, code checks the shape of each value, so that no broadcast is left to
    NumPy.
    """
    nodes = nodes_of(kernel)
    described, params = accesses(kernel), frozenset(kernel.params)
    constants = find_constants(nodes, check)
    indices = block_indices(described, params, constants)
    skipped, times_read, local = find_unneeded(nodes, constants, indices)
    body = without(kernel.body, skipped)
    live = [n for n in nodes if type(n) is not Bind and n not in skipped]
    in_memory = [n for n in described if n not in skipped]
    reads = local.__getitem__
    stored_by, reusable, moved = {}, {}, ops_to_move(kernel, skipped)
    for region in _regions(body, live):
        here = [n for n in region.nodes if type(n) is not Bind and n not in skipped]
        if not moved:  # computing into an array, whose blocks lie first, would be slow
            stored_by |= find_direct_stores(here, times_read, params)
        reusable |= find_reusable(here, times_read, reads, stored_by)
    return BatchFacts(body, constants, described, indices, skipped, times_read,
                     regular=find_regular(in_memory, params, constants, indices),
                     implicit=frozenset() if check else find_implicit_broadcasts(live, reads),
                     stored_by=stored_by, stores={store: n for n, store in stored_by.items()}, reusable=reusable,
                     as_stored=frozenset() if check else find_as_stored(in_memory, live, params), moved=moved,
                     local=local)


def _local_reads(nodes: Iterable[Node], constants: Mapping[Value, np.ndarray],
                 indices: Mapping[Operand, AffineIndex]) -> dict[Node, Sequence[Value]]:
    """What the code of each node reads from locals."""
    indexed = {n for n, _ in indices}
    found = {}
    for n in nodes:
        uses = n.operands if type(n) is Op else uses_of(n)
        if n in indexed:
            found[n] = [v for i, v in enumerate(uses) if v not in constants and (n, i) not in indices]
        elif constants.keys().isdisjoint(uses):
            found[n] = uses
        else:
            found[n] = [v for v in uses if v not in constants]
    return found


def _regions(root: Region, nodes: Iterable[Node]) -> Iterator[Region]:
    yield root
    for n in nodes:
        if type(n) is not Op or n.region is not None:
            yield from regions_of(n)


# ------------------------------------------------------------------ one function for each fact


def find_constants(nodes: Sequence[Node], check: bool) -> dict[Value, np.ndarray]:
    """The values that are constants, or are computed from constants alone. Equal computations share one array: unrolled
    loops repeat them.
    """
    found: dict[Value, np.ndarray] = {}
    computed: dict[tuple, Any] = {}
    with np.errstate(all="ignore"):
        for n in nodes:
            if type(n) is not Op:
                continue
            uses = n.operands
            if uses and (uses[0] not in found or len(uses) > 1 and not found.keys() >= {*uses}) \
                    or len(n.results) != 1 or n.region is not None or not _folds(n.op):
                continue
            t = n.results[0].type
            if not isinstance(t, TileType):
                continue
            operands = [found[v] for v in uses]
            key = (n.op, t.dtype, t.shape, n.layout, *map(id, operands))
            if n.attrs:
                key += (*n.attrs, *map(_same_value, n.attrs.values()))
            y = computed.get(key, _NEW)
            if y is _NEW:
                y = computed[key] = _computed(n, operands, check)
            if y is not None:
                found[n.results[0]] = y
    return found


_NEW = object()  # stands for what is not computed yet


def _same_value(value: Any) -> Any:
    """Equal for equal attributes. Numbers are equal if they have one type and the same bits."""
    return number_key(value) if isinstance(value, (int, float)) else value


def _computed(n: Op, operands: list[np.ndarray], check: bool) -> np.ndarray | None:
    """The result of an op on constants; None if it is too large to compute or to keep."""
    t = n.results[0].type
    if t.size > MAX_COMPUTED:
        return None
    sig = Sig(tuple(v.type for v in n.operands), (t,))
    y = compute(n.op, sig, n.op.group(operands, n.layout), n.attrs)
    y = np.asarray(checking.finish(n, y) if check else y).view()
    if y.nbytes > MAX_KEPT_BYTES and 0 not in y.strides:
        return None
    y.flags.writeable = False
    return y


@functools.cache
def _folds(o: OpDef) -> bool:
    """Whether an op depends on its operands alone, under all settings."""
    return o.effect == PURE and "ctx" not in o.given and (not o.operands or o.moves_data or o.elementwise)


def block_indices(described: Mapping[Op, Access], params: frozenset[Value],
                  constants: Mapping[Value, np.ndarray]) -> dict[Operand, AffineIndex]:
    """The tile indices of accesses to parameters that are affine functions of block indices. Code passes them on as
    functions of block indices, so they are never arrays.
    """
    return {(n, i): index for n, access in described.items() if n.operands[0] in params
            for i, index in zip(tile_indices(n), access.index, strict=False)
            if n.operands[i] not in constants and n.operands[i].type.dtype is int32
            and index.terms and all(isinstance(v, BlockIndex) for v in index.variables)}


def find_unneeded(nodes: Sequence[Node], constants: Mapping[Value, np.ndarray],
                  indices: Mapping[Operand, AffineIndex]
                  ) -> tuple[frozenset[Node], Counter[Value], dict[Node, Sequence[Value]]]:
    """The nodes whose results are constants or are never read, how often the other nodes read each value, and which
    values each of them reads from locals.
    """
    skipped = {n for n in nodes if type(n) is Op and n.results and n.results[0] in constants}
    local = _local_reads([n for n in nodes if n not in skipped], constants, indices)
    reads = Counter(chain.from_iterable(local.values()))
    for n in reversed(nodes):
        if type(n) is Op and n.op.effect == PURE and n.region is None and n.results and n not in skipped \
                and not any(reads[v] for v in n.results) and ("ctx" not in n.op.given or n.op is grid.bid):
            reads.subtract(local.pop(n))
            skipped.add(n)
    return frozenset(skipped), reads, local


def without(body: Region, skipped: Set[Node]) -> Region:
    """A region without these nodes. One remains for each line of the user that has no other: it gets a statement, so
    that coverage counts the line.
    """
    nodes, line = [], 0
    for n in body.nodes:
        if n not in skipped or n.span.line != line:
            nodes.append(n)
        line = n.span.line
    return replace(body, nodes=nodes) if len(nodes) < len(body.nodes) else body


def find_regular(ops: Iterable[Op], params: frozenset[Value], constants: Mapping[Value, np.ndarray],
                 indices: Mapping[Operand, AffineIndex]) -> frozenset[Op]:
    """The ops on tiles of a parameter whose tile indices are constants or affine functions of block indices."""
    return frozenset(
        n for n in ops if (n.op.view is not None or n.op.target is not None)
        and n.operands[0] in params and isinstance(n.operands[0].type, ArrayType)
        and all((n, i) in indices or n.operands[i] in constants for i in tile_indices(n))
        and (n.op.view is not None or n.operands[-1].type.ndim == n.operands[0].type.ndim > 0))


def find_implicit_broadcasts(nodes: Sequence[Node], reads: Callable[[Node], Sequence[Value]]) -> frozenset[Op]:
    """The broadcasts whose result is only read by elementwise ops that have an operand of the full shape too: NumPy
    broadcasts there itself.
    """
    made = {n.results[0]: n for n in nodes if type(n) is Op and n.op is shape.broadcast_to
            and n.operands[0].type.ndim == n.results[0].type.ndim}
    for n in nodes if made else ():
        for v in reads(n):
            if v in made and not (_is_arithmetic(n) and any(
                    w.type.shape == v.type.shape and w not in made for w in n.operands)):
                del made[v]
    return frozenset(made.values())


def _is_arithmetic(n: Node) -> bool:
    """Whether the node is an elementwise op whose operands NumPy broadcasts."""
    return isinstance(n, Op) and n.op.elementwise and n.op.takes_out and len(n.operands) > 1


def find_direct_stores(nodes: Sequence[Node], times_read: Mapping[Value, int],
                       params: frozenset[Value]) -> dict[Op, Op]:
    """The ops of a region whose result is only read by the next node, a store: they may compute it into the array.
    `nodes`: without Binds.
    """
    return {n: following for n, following in zip(nodes, nodes[1:], strict=False)
            if isinstance(n, Op) and isinstance(following, Op) and _goes_to(n, following, times_read, params)}


def _goes_to(n: Op, store: Op, times_read: Mapping[Value, int], params: frozenset[Value]) -> bool:
    if not n.op.takes_out or store.op.target is None or len(n.results) != 1:
        return False
    (y,), array = n.results, store.operands[0]
    dtype = y.type.dtype
    return times_read[y] == 1 and store.operands[-1] is y and array in params \
        and isinstance(array.type, ArrayType) and dtype is array.type.dtype \
        and info(dtype).carried_exactly and dtype is not tfloat32 and y.type.ndim == array.type.ndim > 0


def find_reusable(nodes: Sequence[Node], times_read: Mapping[Value, int], reads: Callable[[Node], Sequence[Value]],
               stored_by: Mapping[Op, Op]) -> dict[Op, Value]:
    """The ops of a region that may write their result to the memory of an operand: nothing reads the operand after
    them, and no other value is a view of this memory.
    """
    found: dict[Op, Value] = {}
    made: set[Value] = set()  # values of this region in memory of their own
    readers: defaultdict[Value, list[Node]] = defaultdict(list)
    for n in nodes:
        for v in reads(n):
            readers[v].append(n)
    for n in nodes:
        if not isinstance(n, Op) or n.op.effect != PURE or n in stored_by:
            continue
        if n.op.accumulates == PRODUCT:
            made.update(n.results)
        if not n.op.takes_out or _may_share_memory(n):
            continue
        (y,) = n.results
        reusable = [v for v in n.operands if v in made and _fits(n, v) and readers[v][-1] is n
                 and len(readers[v]) == times_read[v] and not any(map(_may_share_memory, readers[v]))]
        if reusable and len(n.operands) <= 2:  # an op on more operands still reads some when it writes the result
            found[n] = reusable[0]
        made.add(y)
    return found


def _may_share_memory(n: Node) -> bool:
    """Whether a result may share the memory of an operand: as a view, or by a cast that leaves carriers as they are."""
    if not isinstance(n, Op) or n.region is not None:
        return True
    return not n.op.takes_out and n.op.accumulates != REDUCTION or \
        n.op is convert.astype and n.results[0].type.dtype is float32


def _fits(n: Op, v: Value) -> bool:
    """Whether the memory of an operand can hold the result of an op: their types are equal or, if the result needs no
    rounding, have the same shape and carrier.
    """
    t, u = n.results[0].type, v.type
    return t is u or t == u or n.op.exact and t.shape == u.shape and info(t.dtype).carrier == info(u.dtype).carrier


def find_as_stored(accessing: Iterable[Op], nodes: Sequence[Node], params: frozenset[Value]) -> frozenset[Op]:
    """The loads of short floats whose tiles go to arrays of their dtype without a computation, and these stores: both
    may access bits.
    """
    loads = [n for n in accessing if (n.op.view is not None or n.op is memory.gather) and _of_short_floats(n, params)]
    readers: defaultdict[Value, list[Node]] = defaultdict(list)
    for n in nodes if loads else ():
        for v in uses_of(n):
            readers[v].append(n)
    found: set[Op] = set()
    stores = {n: _moved_to(n, readers, params) for n in loads}
    for n, stored in stores.items():
        if stored:
            found |= {n, *stored}
    return frozenset(found)


def _of_short_floats(n: Op, params: frozenset[Value]) -> bool:
    array = n.operands[0]
    if array not in params or not isinstance(array.type, ArrayType):
        return False
    i = info(array.type.dtype)
    return i.floating and i.storage != i.carrier and i.storage.itemsize * 8 == array.type.dtype.bitwidth


MOVES = (shape.reshape, shape.permute, shape.broadcast_to, shape.extract)  # ops that move the elements of one tile


def _moved_to(load: Op, readers: Mapping[Value, list[Node]], params: frozenset[Value]) -> list[Op]:
    """The stores to which all elements of a load go; none if another op reads one of them."""
    (first,) = load.results
    todo, stores = [first], []
    while todo:
        v = todo.pop()
        for n in readers[v]:
            if not isinstance(n, Op) or n.operands.count(v) > 1:
                return []
            if (n.op in MOVES or takes_bits(n)) and n.operands[0] is v:
                todo.append(n.results[0])
            elif n.op in (memory.store, memory.scatter) and _of_short_floats(n, params) \
                    and n.operands[0].type.dtype is v.type.dtype:
                stores.append(n)
            else:
                return []
    return stores


# ------------------------------------------------------------------ affine functions as code


def block_function(index: AffineIndex) -> BlockFunction:
    """A function of block indices alone, in the form that `BlockSet.index` takes."""
    found = [index.constant, 0, 0, 0]
    for variable, coefficient in index.terms:
        found[1 + variable.axis] = coefficient
    return tuple(found)

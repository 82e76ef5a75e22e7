"""Where the block axes of a program's values lie in memory: first, or last.

Block axes come first in the shape of a carrier, and by default in memory too. Then NumPy's inner loops run along the
last axes of tiles. In programs that work much on tiles whose last axes are short, these loops are longer if the blocks
lie last in memory: tiles are moved so when they are loaded, and NumPy's results have the layout of operands. Shapes do
not change. Nor do results: the order of evaluation never depends on the layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from math import prod

from cutile.dtypes import info
from cutile.ir.nodes import Bind, For, If, Kernel, Node, Op, Region, Value, While, inner_of, regions_of, results_of
from cutile.ops import reduce, shape
from cutile.ops._op import ATOMIC, HOST, PRODUCT, PURE, READ, REDUCTION, WRITE
from cutile.types import TileType

MOST_BYTES = 1 << 15  # of a tile: so that a chunk has many blocks
TRIPS = 8  # how many iterations a loop is assumed to make
# Nanoseconds on one CPU; only their ratios matter.
LOOP = 6.0  # to begin an inner loop of NumPy
REDUCE = 20.0  # to begin one of a reduction
LOAD, STORE = 2.0, 3.0  # to move an element to the other layout and back
_BRANCHES = (If, While)
FEW = 16  # inner loops of up to so many elements count as short


def ops_to_move(kernel: Kernel, skipped: Set[Node] = frozenset()) -> frozenset[Op]:
    """The ops after which code must copy the result to memory where the blocks lie last; none if they should lie
    first. `skipped`: nodes that do not run.
    """
    gain = cost = 0.0
    made: dict[Value, Op] = {}  # by broadcasts
    small: set[int] = set()  # ids of types: many values share one
    gains: dict[tuple[int, ...], float] = {}  # of elementwise ops, by the ids of their types
    for n, weight in _weighted(kernel.body):
        if type(n) is not Op:
            if isinstance(n, _BRANCHES):
                return frozenset()
            continue
        if n.op is shape.broadcast_to:
            made[n.results[0]] = n
        if n in skipped:
            continue
        if n.op.accumulates == PRODUCT or n.op.effect == HOST:
            return frozenset()
        for v in n.results:
            if id(v.type) not in small:
                if _bytes(v) > MOST_BYTES:
                    return frozenset()
                small.add(id(v.type))
        if n.op.elementwise:  # most are, and many have operands and results of the same types
            key = (*[id(v.type) for v in n.results], *[id(made[v].operands[0].type if v in made else v.type)
                                                       for v in n.operands])
            if (known := gains.get(key)) is None:
                known = gains[key] = _gain(n, made)
            gain += weight * known
        else:
            gain += weight * _gain(n, made)
        if n.op.effect != PURE:
            cost += weight * _cost(n)
    return frozenset(_sources(kernel, skipped)) if gain > cost else frozenset()


def _weighted(region: Region, weight: int = 1) -> Iterator[tuple[Node, int]]:
    """The nodes but for Binds, each with how often it is assumed to run."""
    todo = [(region, weight)]
    while todo:
        region, weight = todo.pop()
        for n in region.nodes:
            kind = type(n)
            if kind is Bind:
                continue
            yield n, weight
            if kind is not Op:
                todo += [(inner, weight * TRIPS if kind is For else weight) for inner in regions_of(n)]


def _bytes(v: Value) -> int:
    return v.type.size * info(v.type.dtype).carrier.itemsize if isinstance(v.type, TileType) else 0


# ------------------------------------------------------------------ what it brings, and what it costs


def _gain(n: Op, made: dict[Value, Op]) -> float:
    if n.op.accumulates == REDUCTION:
        x = n.operands[0].type
        k = x.ndim + n.attrs["axis"]
        if n.op in (reduce.argmax, reduce.argmin):  # NumPy moves the axis to the end of memory first
            return -x.size * LOAD
        behind = prod(x.shape[k + 1:])
        if behind == 1:
            return x.size * REDUCE / x.shape[k] if 8 < x.shape[k] <= 64 else 0.0
        return x.size * LOOP / behind if behind <= FEW else 0.0
    size = max([v.type.size for v in n.results if isinstance(v.type, TileType)], default=0)
    run = _run(n, made) if size > 1 else 1 << 30
    return size * LOOP / run if run <= FEW else 0.0


def _run(n: Op, made: dict[Value, Op]) -> int:
    """The length of NumPy's inner loop for one block; a large number if that loop runs over all of a tile."""
    whole = 1 << 30
    if n.op.elementwise and n.results:
        t = n.results[0].type
        own = [_own_shape(v, t.ndim, made) for v in n.operands]
        return _common_run(t.shape, [s for s in own if any(m > 1 for m in s)], whole)
    if n.op in (shape.extract, shape.insert):
        part = n.attrs["shape"] if n.op is shape.extract else n.operands[-1].type.shape
        return _common_run(n.operands[0].type.shape, [part or (1,) * n.operands[0].type.ndim], whole)
    if n.op is shape.cat:
        return prod(n.operands[0].type.shape[n.attrs["axis"]:])
    if n.op is shape.permute:
        axes = n.attrs["axes"]
        return whole if axes[-1] == len(axes) - 1 else n.results[0].type.shape[-1]
    return whole


def _own_shape(v: Value, rank: int, made: dict[Value, Op]) -> tuple[int, ...]:
    """The shape of an operand before it was broadcast."""
    if (n := made.get(v)) is not None:
        v = n.operands[0]
    own = v.type.shape
    return (1,) * (rank - len(own)) + own


def _common_run(shape: tuple[int, ...], parts: list[tuple[int, ...]], whole: int) -> int:
    """The product of the last axes over which each operand (of these `parts`) is either full on all of them, or 1 on
    all of them.
    """
    run, kinds = 1, None
    for k in range(len(shape) - 1, -1, -1):
        if shape[k] == 1:
            continue
        here = [p[k] == shape[k] for p in parts]
        if kinds is not None and here != kinds:
            return run
        if any(p[k] not in (1, shape[k]) for p in parts):
            return run * max(p[k] for p in parts)
        run, kinds = run * shape[k], here
    return whole if not kinds or all(kinds) else run


def _cost(n: Op) -> float:
    if n.op.effect == READ:
        return LOAD * sum(v.type.size for v in n.results if isinstance(v.type, TileType))
    if n.op.effect in (WRITE, ATOMIC):
        return STORE * max((v.type.size for v in n.operands if isinstance(v.type, TileType)), default=0)
    return 0.0


# ------------------------------------------------------------------ where values get their layout


def _sources(kernel: Kernel, skipped: Set[Node]) -> Iterator[Op]:
    """Ops whose results do not have the layout of an operand: reads, and elementwise ops without an operand that both
    has the shape of the result and differs between blocks.
    """
    tiles: set[Value] = set()  # that differ between blocks, as far as is known
    made: dict[Value, Op] = {}  # by broadcasts
    many: dict[int, bool] = {}  # by the id of a type whether it has more than one element
    for n, _ in _weighted(kernel.body):
        if type(n) is Op and n.op is shape.broadcast_to:
            made[n.results[0]] = n
        if n in skipped:
            continue
        results = n.results if type(n) is Op and n.region is None else (*results_of(n), *inner_of(n))
        for v in results:
            if id(v.type) not in many:
                many[id(v.type)] = type(v.type) is TileType and v.type.size > 1
        results = [v for v in results if many[id(v.type)]]
        if isinstance(n, Op):
            of_tiles = [v for v in n.operands if v in tiles]
            if not of_tiles and (n.op is shape.broadcast_to or not n.operands):
                continue
            if len(results) == len(n.results) == 1 and (
                    n.op.effect == READ or not of_tiles or n.op.elementwise
                    and all(_own_shape(v, len(s), made) != s for v in of_tiles for s in [results[0].type.shape])):
                yield n
        tiles.update(results)

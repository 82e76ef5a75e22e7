"""Every access to memory of a program, described once: which array, where in it, under which conditions.

`accesses` makes one plain record for each op that reads or writes an array. `where_tiles_lie` says whether its tiles
lie inside the array, for the sizes and tile indices that are known; inside.py asks it for programs and launches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from cutile._support.structs import structure
from cutile.analysis.affine import AffineIndex, affine_scalars
from cutile.dtypes import int_range
from cutile.ir.nodes import Kernel, Op, Value
from cutile.ir.walk import nodes_of
from cutile.ops import memory, views
from cutile.ops._op import TILES
from cutile.types import MemoryOrder, MemoryScope, PaddingMode

PARTS = (memory.list_item_op, views.slice_)  # ops whose result is a part of their operand
INSIDE, CLIPPED, UNKNOWN = "inside", "clipped", "unknown"


@structure(frozen=True, slots=True)
class Item:
    """A step from a list to one of its arrays."""

    index: AffineIndex


@structure(frozen=True, slots=True)
class Slice:
    """A step from an array to a part of it: elements start … stop-1 of an axis."""

    axis: int
    start: AffineIndex
    stop: AffineIndex


@structure(frozen=True, slots=True)
class ArrayPath:
    """How to come to an array: by `steps` from `root`, which is a parameter, or a value that comes from control flow
    or a foreign pointer.
    """

    root: Value
    steps: tuple[Item | Slice, ...] = ()


@structure(frozen=True, slots=True)
class Access:
    """One op that reads or writes an array.

    With unit TILES, dimension i of the tile has shape[i] elements and runs along array axis order[i], where it begins
    at element index[i]·steps[i]; a single element is a tile of shape (1, …). With any other unit the access is
    irregular: `shape` is that of the index tiles, and `index`, `order` and `steps` are empty.
    """

    op: Op
    array: ArrayPath
    unit: str  # TILES, ROWS, ELEMENTS, OFFSETS
    effect: str  # READ, WRITE, ATOMIC
    shape: tuple[int, ...]
    index: tuple[AffineIndex, ...] = ()
    order: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    mask: Value | None = None
    padding: PaddingMode | Value | None = None  # what a read returns for elements outside the array
    memory_order: MemoryOrder = MemoryOrder.WEAK
    memory_scope: MemoryScope = MemoryScope.NONE
    check_bounds: bool = True  # False: the program promises that the access lies inside the array


_known: WeakKeyDictionary[Kernel, Mapping[Op, Access]] = WeakKeyDictionary()


def accesses(kernel: Kernel) -> Mapping[Op, Access]:
    """The accesses of a kernel in program order. They are found once: every analysis and emitter asks for them."""
    found = _known.get(kernel)
    if found is None:
        found = _known[kernel] = _accesses(kernel)
    return found


def _accesses(kernel: Kernel) -> dict[Op, Access]:
    ops = [n for n in nodes_of(kernel) if type(n) is Op]
    found = [n for n in ops if n.op.accesses]
    if not found:
        return {}
    function = affine_scalars(ops)
    path = _paths(ops, function)
    return {n: _access(n, function, path) for n in found}


def array_paths(kernel: Kernel) -> Callable[[Value], ArrayPath]:
    """Returns a function from an array or list value of a kernel to its path."""
    ops = [n for n in nodes_of(kernel) if type(n) is Op]
    return _paths(ops, affine_scalars(ops))


def tile_indices(n: Op) -> range:
    """Which operands of an op are tile indices."""
    if n.op.accesses is None or n.op.accesses.unit != TILES:
        return range(0)
    first = 1  # after the array
    return range(first, first + n.layout[first])


def _access(n: Op, function: Callable[[Value], AffineIndex], path: Callable[[Value], ArrayPath]) -> Access:
    how, attrs, named = n.op.accesses, n.attrs, n.op.named(n.operands, n.layout)
    rank = n.operands[0].type.ndim
    shape = _shape(n, named)
    tiles = {}
    if how.unit == TILES:
        order = tuple(attrs.get("order", range(rank)))
        shape = shape or (1,) * rank
        tiles = {"index": tuple(map(function, named["index"])), "order": order,
                 "steps": tuple(attrs.get("steps") or shape)}
    return Access(n, path(n.operands[0]), how.unit, n.op.effect, shape,
                  mask=named.get(how.mask), padding=named.get(how.padding) or attrs.get("padding_mode"),
                  memory_order=attrs.get("memory_order", MemoryOrder.WEAK),
                  memory_scope=attrs.get("memory_scope", MemoryScope.NONE),
                  check_bounds=attrs.get("check_bounds", True), **tiles)


def _shape(n: Op, named: Mapping[str, Any]) -> tuple[int, ...]:
    if "shape" in n.attrs:
        return n.attrs["shape"]
    values = [named[name] for name in n.op.accesses.values]
    return (values[-1] if values else n.results[0]).type.shape


def _paths(ops: Sequence[Op], function: Callable[[Value], AffineIndex]) -> Callable[[Value], ArrayPath]:
    parts = {n.results[0]: n for n in ops if n.op in PARTS}

    def path(v: Value) -> ArrayPath:
        steps: list[Item | Slice] = []
        while (n := parts.get(v)) is not None:
            first, *others = map(function, n.operands[1:])
            steps.append(Slice(n.attrs["axis"], first, others[0]) if n.op is views.slice_ else Item(first))
            v = n.operands[0]
        return ArrayPath(v, tuple(reversed(steps)))

    return path


# ------------------------------------------------------------------ where a tile lies


def where_tiles_lie(access: Access, sizes: Sequence[int | None], indices: Sequence[tuple[int, int] | None]) -> str:
    """Where the tiles lie in an array of these sizes.

    INSIDE if all lie inside; CLIPPED if one reaches over an edge or lies outside; UNKNOWN if too little is known.

    sizes    along each array axis; None for one that is not known
    indices  the least and the greatest tile index along each dimension of the tile; None for one that is not known
    """
    if access.unit != TILES:
        return UNKNOWN
    found = [_where_along(access, i, sizes[k], indices[i]) for i, k in enumerate(access.order)]
    return CLIPPED if CLIPPED in found else UNKNOWN if UNKNOWN in found else INSIDE


def _where_along(access: Access, dim: int, size: int | None, extent: tuple[int, int] | None) -> str:
    if extent is None or size is None or not _fits(access, dim, *extent):
        return UNKNOWN
    first, last = extent
    return INSIDE if first >= 0 and last * access.steps[dim] + access.shape[dim] <= size else CLIPPED


def _fits(access: Access, dim: int, first: int, last: int) -> bool:
    """Whether the index takes these values without wrapping: they fit its dtype and the array's index dtype."""
    index = access.op.operands[tile_indices(access.op)[dim]]
    array = access.op.operands[0].type
    bounds = [int_range(t) for t in (index.type.dtype, array.index_dtype)]
    return all(low <= first and last <= high for low, high in bounds)

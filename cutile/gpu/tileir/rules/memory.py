"""Lowering of loads, stores, gather, scatter, advanced indexing; of sizes, strides and items of arrays and lists."""

from __future__ import annotations

from collections.abc import Sequence

from cutile.dtypes import float4_e2m1fn, info
from cutile.gpu.tileir import arrays
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import (
    PADDINGS,
    both,
    check_packed,
    element_pointers,
    from_memory,
    hints,
    in_bounds,
    is_signed,
    load_pointers,
    memory_attributes,
    reshaped,
    resized,
    store_pointers,
    tensor_view,
    tile_index,
    tile_view,
    to_memory,
)
from cutile.gpu.tileir.arrays import Array, List
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.rules._rule import rule
from cutile.gpu.tileir.rules.reduce import behind_a_barrier
from cutile.ops import memory, views
from cutile.types import PaddingMode

# ------------------------------------------------------------------ tiles


@rule(memory.load, views.view_load)
def _load(l, n):
    a: Array = l.array(n.operands[0])
    dtype, rank = a.type.dtype, a.type.ndim
    if not rank:
        return load_pointers(l, n, a.base, None, None, dtype)
    access = l.access(n)
    v = l.memory("load_view_tko", [tile_view(l, a, access), tile_index(l, a, n.operands[1:])],
                 optimization_hints=hints(l, n), **in_bounds(l, access), **memory_attributes(n))
    if _may_be_paired(a, access.shape):
        v = behind_a_barrier(l, v)
    return reshaped(l, from_memory(l, v, dtype), n.attrs["shape"])


# The assembler of release 13.5 may read adjacent elements instead of every second one, if such a tile is reshaped and
# multiplied (docs/assembler-bugs.md, 9).
SHORT = 8  # bytes of a row


def _may_be_paired(a: Array, shape: Sequence[int]) -> bool:
    """Whether a tile is a pair of short rows of 8- or 16-bit elements, from an array whose strides are all known."""
    item, dims = info(a.type.dtype).storage.itemsize, [n for n in shape if n > 1]
    return item <= 2 and a.type.dtype is not float4_e2m1fn and len(dims) > 1 and dims[0] == 2 \
        and dims[-1] * item <= SHORT and all(isinstance(s, int) for s in a.strides)


@rule(memory.store, views.view_store)
def _store(l, n):
    a: Array = l.array(n.operands[0])
    dtype, rank = a.type.dtype, a.type.ndim
    value = l.get(n.operands[-1])
    if not rank:
        return store_pointers(l, n, a.base, value, None, dtype)
    access = l.access(n)
    view = tile_view(l, a, access)
    stored = to_memory(l, reshaped(l, value, access.shape), dtype)
    l.memory("store_view_tko", [stored, view, tile_index(l, a, n.operands[1:-1])], optimization_hints=hints(l, n),
             **in_bounds(l, access), **memory_attributes(n))


# ------------------------------------------------------------------ positions along one axis


def _by_positions(l, n, padding=PaddingMode.UNDETERMINED) -> tuple[Value, list[Value]]:
    """The view of an access by positions along one axis, and its index: positions, and a start per other axis."""
    l.needs("advanced indexing", "make_gather_scatter_view")
    a: Array = l.array(n.operands[0])
    check_packed(l, a, n.attrs["axis"])
    view, axis, rank = tensor_view(l, a), n.attrs["axis"], a.type.ndim
    sparse = l.op("make_gather_scatter_view", [view],
                  result=ty.GatherScatterView(n.attrs["shape"], view.type, axis, PADDINGS[padding]))
    index = [_narrow(l, v) for v in n.operands[2:1 + rank]]
    index.insert(axis, _narrow(l, n.operands[1]))
    return sparse, index


def _narrow(l, v) -> Value:
    """A position as i32, read as unsigned; one that does not fit becomes 2**32-1, which is out of range."""
    x, dtype = l.get(v), v.type.dtype
    if dtype.bitwidth <= 32:
        return resized(l, x, ty.i32, signed=is_signed(dtype))
    far = l.b.constant(x.type, 2**32 - 1)
    return resized(l, l.op("mini", [x, far], signedness="unsigned"), ty.i32, signed=False)


@rule(memory.load_advanced_indexing)
def _load_by_positions(l, n):
    view, index = _by_positions(l, n, n.attrs["padding_mode"])
    v = l.memory("load_view_tko", [view, index], optimization_hints=hints(l, n), **memory_attributes(n))
    return from_memory(l, v, n.results[0].type.dtype)


@rule(memory.store_advanced_indexing)
def _store_by_positions(l, n):
    view, index = _by_positions(l, n)
    value = to_memory(l, l.get(n.operands[-1]), n.operands[-1].type.dtype)
    l.memory("store_view_tko", [value, view, index], optimization_hints=hints(l, n), **memory_attributes(n))


# ------------------------------------------------------------------ elements


@rule(memory.gather)
def _gather(l, n):
    array, index, mask, padding = n.op.group(n.operands, n.layout)
    a, t = l.array(array), n.results[0].type
    pointers, inside = element_pointers(l, a, index, t.shape, n.attrs["check_bounds"])
    return load_pointers(l, n, pointers, both(l, inside, mask and l.get(mask)), l.get(padding), t.dtype)


@rule(memory.scatter)
def _scatter(l, n):
    array, index, value, mask = n.op.group(n.operands, n.layout)
    a = l.array(array)
    pointers, inside = element_pointers(l, a, index, value.type.shape, n.attrs["check_bounds"])
    store_pointers(l, n, pointers, l.get(value), both(l, inside, mask and l.get(mask)), a.type.dtype)


# ------------------------------------------------------------------ arrays and lists themselves


@rule(memory.array_dim)
def _dim(l, n):
    a: Array = l.array(n.operands[0])
    return arrays.dim_value(l.b, (a.strides if n.attrs["stride"] else a.sizes)[n.attrs["dim"]], a.index)


@rule(memory.list_len_op)
def _len(l, n):
    return l.list(n.operands[0]).length


@rule(memory.list_item_op)
def _item(l, n):
    """Read an array from the table. Nothing writes to the table, so its words are loaded without a token."""
    x: List = l.list(n.operands[0])
    t = x.type.element
    i = resized(l, l.get(n.operands[1]), ty.i32, signed=is_signed(n.operands[1].type.dtype))
    first = l.op("muli", [resized(l, i, ty.i64, signed=True), l.b.constant(ty.tile(ty.i64), 1 + 2 * t.ndim)])
    words = [_word(l, x, first, k) for k in range(1 + 2 * t.ndim)]
    base = l.op("int_to_ptr", [words[0]], result=arrays.pointer_type(t))
    element = arrays.index_type(t).element
    dims = [resized(l, w, element, signed=info(t.index_dtype).kind == "i") for w in words[1:]]
    return arrays.assumed(l.b, t, base, dims[:t.ndim], dims[t.ndim:], x.facts)


def _word(l, x: List, first: Value, k: int) -> Value:
    at = first if k == 0 else l.op("addi", [first, l.b.constant(first.type, k)])
    return l.op("load_ptr_tko", [l.op("offset", [x.table, at])])[0]

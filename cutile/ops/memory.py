"""Loads and stores of tiles, gather and scatter, advanced indexing; sizes, strides and items of arrays and lists.

Meanings never access memory outside the bounds of an array. `check_bounds=False` is a promise that other back ends use;
here, an index that breaks it reads padding and writes nothing.
"""

from __future__ import annotations

import numpy as np

from cutile.dtypes import info, int32
from cutile.errors import TileValueError
from cutile.ir.build import Builder
from cutile.ir.terms import NONE, Const, IndexSlice, Leaf, Term, Tuple, describe, is_scalar, is_tile
from cutile.ops._access import (
    LOAD_ORDERS,
    STORE_ORDERS,
    element_indices,
    fill_of,
    hints,
    in_index_dtype,
    mask_arg,
    memory_arguments,
    padding_scalar_or_tile,
    stored,
    tile_index,
    tile_shape,
    with_rank,
)
from cutile.ops._access import padding_mode as mode_arg
from cutile.ops._arguments import array_arg, const_int, int_scalar_arg, invalid, refuse, tile_arg
from cutile.ops._op import ELEMENTS, READ, ROWS, TILES, WRITE, made_elsewhere, op
from cutile.ops._promotion import value_of
from cutile.ops.grid import order_arg
from cutile.types import MemoryOrder, MemoryScope, PaddingMode, is_power_of_two, tile_type

UNDETERMINED, WEAK, NO_SCOPE = PaddingMode.UNDETERMINED, MemoryOrder.WEAK, MemoryScope.NONE

# ------------------------------------------------------------------ typing rules


def _load(b: Builder, op, array, index, shape, order, padding_mode, check_bounds, latency, allow_tma, memory_order,
          memory_scope) -> Term:
    a = array_arg(op, "array", array)
    t = a.type
    dims = tile_shape(op, "shape", shape, t.ndim)
    i = tile_index(b, op, "index", index, t.ndim)
    attrs = hints(op, latency, allow_tma, check_bounds) | memory_arguments(op, LOAD_ORDERS, memory_order, memory_scope)
    order = order_arg(op, "order", order, t.ndim)
    return Leaf(b.op1(op, a.value, i, result=tile_type(t.dtype, dims), shape=dims, order=order,
                      padding_mode=mode_arg(op, padding_mode, t.dtype), **attrs))


def _store(b: Builder, op, array, index, tile, order, check_bounds, latency, allow_tma, memory_order,
           memory_scope) -> Term:
    a = array_arg(op, "array", array)
    t = a.type
    x = tile_arg(op, "tile", tile)
    shape = x.type.shape
    if shape and len(shape) != t.ndim:
        if len(shape) < t.ndim:
            full = (1,) * (t.ndim - len(shape)) + shape
            hint = f"give it one dimension per axis of the array: ct.reshape(tile, {full})"
        else:
            hint = "drop dimensions of size 1 with ct.reshape, or store parts of it"
        invalid(op, "tile", f"a tile of shape {shape} has rank {len(shape)}, but the array has rank {t.ndim}",
                help=hint)
    i = tile_index(b, op, "index", index, t.ndim)
    value = stored(b, op, "tile", x, t.dtype, None)
    attrs = hints(op, latency, allow_tma, check_bounds) | memory_arguments(op, STORE_ORDERS, memory_order, memory_scope)
    b.op(op, a.value, i, value, results=(), order=order_arg(op, "order", order, t.ndim), **attrs)
    return NONE


def _gather(b: Builder, op, array, indices, mask, padding_value, check_bounds, latency) -> Term:
    a = array_arg(op, "array", array)
    dtype = a.type.dtype
    i, shape = element_indices(b, op, indices, a.type.ndim)
    m = mask_arg(b, op, mask, shape)
    padding = padding_scalar_or_tile(b, op, padding_value, dtype, shape)
    attrs = hints(op, latency, None, check_bounds)
    return Leaf(b.op1(op, a.value, i, m, padding, result=tile_type(dtype, shape), **attrs))


def _scatter(b: Builder, op, array, indices, value, mask, check_bounds, latency) -> Term:
    a = array_arg(op, "array", array)
    i, shape = element_indices(b, op, indices, a.type.ndim)
    x = stored(b, op, "value", value, a.type.dtype, shape)
    m = mask_arg(b, op, mask, shape)
    b.op(op, a.value, i, x, m, results=(), **hints(op, latency, None, check_bounds))
    return NONE


def _index_slice(b: Builder, op, start, length) -> Term:
    for name, t in (("start", start), ("length", length)):
        int_scalar_arg(op, name, t)
    return IndexSlice(start, length)


def _advanced(b: Builder, op, array: Term, indices: Term):
    """The array, the axis indexed by positions, the positions, starts along the other axes, shape [ADV-1, ADV-2]."""
    a = array_arg(op, "array", array)
    rank = a.type.ndim
    if rank < 2:
        invalid(op, "array", f"expected an array of rank 2 or more, got {describe(a)}",
                help="use ct.gather or ct.scatter")
    if not isinstance(indices, Tuple) or len(indices.items) != rank:
        invalid(op, "indices", f"expected a tuple of {rank} entries, got {describe(indices)}",
                help="one 1-D integer tile, and a ct.Slice(start, length) for every other axis")
    axes, starts, shape = [], [], []
    for k, t in enumerate(indices.items):
        if isinstance(t, IndexSlice):
            starts.append(value_of(b, t.start))
            shape.append(_slice_length(op, k, t.length))
        elif is_tile(t) and len(t.type.shape) == 1 and info(t.type.dtype).integral:
            axes.append(k)
            shape.append(t.type.shape[0])
        else:
            hint = "write ct.Slice(start, length) for a range; a single position is ct.Slice(i, 1)" \
                if is_scalar(t) or not is_tile(t) else None
            invalid(op, "indices", f"expected a 1-D integer tile or a ct.Slice at position {k}, got {describe(t)}",
                    help=hint)
    if len(axes) != 1:
        invalid(op, "indices", f"expected exactly one 1-D integer tile, got {len(axes)}",
                help="use ct.Slice(start, length) for all other axes, or ct.gather for indices along several axes")
    return a, axes[0], indices.items[axes[0]].value, starts, tuple(shape)


def _slice_length(op, k: int, t: Term) -> int:
    n = const_int(op, f"length of the slice at position {k}", t)
    if n <= 0 or not is_power_of_two(n):
        invalid(op, "indices", f"the length of a ct.Slice must be a positive power of two, got {n} at position {k}")
    return n


def _load_advanced(b: Builder, op, array, indices, padding_mode, latency, allow_tma) -> Term:
    a, axis, sparse, starts, shape = _advanced(b, op, array, indices)
    return Leaf(b.op1(op, a.value, sparse, starts, result=tile_type(a.type.dtype, shape), axis=axis, shape=shape,
                      padding_mode=mode_arg(op, padding_mode, a.type.dtype), **hints(op, latency, allow_tma)))


def _store_advanced(b: Builder, op, array, indices, tile, latency, allow_tma) -> Term:
    a, axis, sparse, starts, shape = _advanced(b, op, array, indices)
    x = tile_arg(op, "tile", tile)
    if x.type.shape != shape:
        invalid(op, "tile", f"the indices name elements of shape {shape}, but the tile has shape {x.type.shape}",
                help=f"bring it to that shape: ct.broadcast_to(tile, {shape})")
    value = stored(b, op, "tile", x, a.type.dtype, None)
    b.op(op, a.value, sparse, starts, value, results=(), axis=axis, shape=shape, **hints(op, latency, allow_tma))
    return NONE


# ------------------------------------------------------------------ tiles


def _load_view(array, index, /, *, shape, order, sig, **_hints):
    dims = shape or (1,) * sig.x.ndim
    x = array.view(in_index_dtype(index, sig), dims, order)
    return x if shape or x is None else x.reshape(x.shape[:x.ndim - len(dims)])


@op(_load, operands="array *index", effect=READ, accesses=TILES, exact=True, view=_load_view,
    signature=lambda array, /, index, shape, *, order="C", padding_mode=UNDETERMINED, check_bounds=True, latency=None,
    allow_tma=None, memory_order=WEAK, memory_scope=NO_SCOPE: None)
def load(array, index, /, *, shape, order, padding_mode=UNDETERMINED, check_bounds=True, latency=None, allow_tma=None,
         memory_order=WEAK, memory_scope=NO_SCOPE, sig):
    """Tile of an array at a tile index.

    `shape`: a power of two per array axis (a single int for rank 1), or () for one element as a scalar. `index`: the
    position in units of tiles. `order`: "C", "F" or a permutation: tile dimension i runs along array axis order[i].
    Elements outside the array read as `padding_mode` says.

    [LOAD-1.element]  the tile element at x is the array element whose coordinate along axis order[i] is
        index[i] * shape[i] + x[i]
    [LOAD-1.type]  the result has the dtype of the array and shape `shape`
    [LOAD-2.scalar]  for rank 1 the index may be a single signed integer scalar
    [LOAD-2.tuple]  otherwise it is a tuple of as many as the array has axes (TileTypeError)
    [LOAD-2.width]  a signed integer of every width is an index
    [LOAD-2.bool]  a bool index is refused (TileTypeError)
    [LOAD-2.unsigned]  an unsigned index is refused (TileTypeError)
    [LOAD-2.float]  a float index is refused (TileTypeError)
    [LOAD-2.tile]  a tile as index, of one element too, is refused (TileTypeError)
    [LOAD-3.int]  for rank 1 the shape may be a single integer constant
    [LOAD-3.rank]  a shape of another rank than the array's is refused (TileTypeError)
    [LOAD-3.pow2]  a dimension that is no positive power of two is refused (TileTypeError)
    [LOAD-3.constant]  a dimension that is no integer constant is refused (TileTypeError)
    [LOAD-3.scalar]  shape () loads the one element at the index, as a scalar, for any rank
    [LOAD-3.rank0]  an array of rank 0 is loaded with index () and shape ()
    [LOAD-4.C]  order "C" is the identity, the default
    [LOAD-4.F]  order "F" reverses the axes
    [LOAD-4.permutation]  a tuple of constants permutes them
    [LOAD-4.negative]  negative axes are counted from the end
    [LOAD-4.repeated]  a repeated axis is refused (TileTypeError)
    [LOAD-4.length]  an order of a length other than the rank is refused (TileTypeError)
    [LOAD-4.string]  a string other than "C" and "F" is refused (TileTypeError)
    [LOAD-4.range]  an axis out of range is refused (TileTypeError)
    [LOAD-4.constant]  an axis that is no integer constant is refused (TileTypeError)
    [LOAD-5.edge]  elements beyond an edge of the array read as the padding value
    [LOAD-5.outside]  a tile wholly outside, or at a negative index, is undefined: it reads as padding here
    [LOAD-6]  special padding values on integer and bool arrays are refused (TileTypeError)
    [LOAD-7.array]  `array` is positional only (TileTypeError)
    [LOAD-7.names]  index and shape may be given by name
    [LOAD-7.options]  the other parameters are given by name only (TileTypeError)
    [LOAD-8]  a weak or relaxed load whose result is unused may be removed
    [IDX-2.wide]  an index wider than the index dtype of the array is truncated to it
    [IDX-2.narrow]  a narrower one keeps its value
    [PAD-1.UNDETERMINED]  unspecified: 0 here
    [PAD-1.ZERO]  0 or False, for every dtype
    [PAD-1.NEG_ZERO]  -0.0, for floats
    [PAD-1.NAN]  NaN, for floats
    [PAD-1.POS_INF]  +inf, for floats
    [PAD-1.NEG_INF]  -inf, for floats
    [PAD-2]  a float format without the value: unspecified; TileTypeError here
    """
    dims = shape or (1,) * sig.x.ndim
    origin = in_index_dtype(index, sig)
    x = array.view(origin, dims, order)
    if x is None:
        x = array.tile(origin, dims, order, fill_of(padding_mode, sig.x.dtype))
    return x if shape else x.reshape(x.shape[:x.ndim - len(dims)])


def _store_target(array, index, /, *, order, sig, ctx, **_hints):
    return array.target(in_index_dtype(index, sig), sig.operands[-1].shape, order, ctx.batch_shape)


@op(_store, operands="array *index tile", effect=WRITE, accesses=TILES, exact=True, target=_store_target,
    signature=lambda array, /, index, tile, *, order="C", check_bounds=True, latency=None, allow_tma=None,
    memory_order=WEAK, memory_scope=NO_SCOPE: None)
def store(array, index, tile, /, *, order, check_bounds=True, latency=None, allow_tma=None, memory_order=WEAK,
          memory_scope=NO_SCOPE, sig):
    """Write a tile to an array at a tile index; its own shape is the tile shape.

    [STORE-1.element]  the tile element at x goes to the array element whose coordinate along axis order[i] is
        index[i] * shape[i] + x[i]
    [STORE-1.edge]  elements beyond an edge of the array are dropped
    [STORE-1.outside]  a tile wholly outside, or at a negative index, is undefined: nothing is written here
    [STORE-2.scalar]  a scalar is stored as one element, for any rank
    [STORE-2.rank]  a tile whose rank is not the array's is refused (TileTypeError)
    [STORE-2.result]  the result is None
    [STORE-3.cast]  the tile is implicitly cast to the dtype of the array (IMPL-1, IMPL-2)
    [STORE-3.type]  a dtype that does not go into that of the array is refused (TileTypeError)
    [STORE-3.range]  a literal out of its range is refused (TileValueError)
    [STORE-3.none]  None as tile is refused (TileTypeError)
    [STORE-3.tuple]  a tuple as tile is refused (TileTypeError)
    [STORE-3.array]  an array as tile is refused (TileTypeError)
    [STORE-4.index]  the index as for load: signed scalars, one per axis (TileTypeError)
    [STORE-4.order]  the order as for load: "C", "F" or a permutation (TileTypeError)
    [STORE-4.padding]  there is no padding_mode (TileTypeError)
    [STORE-4.names]  index and tile may be given by name, the array may not (TileTypeError)
    [STORE-5.once]  elements of the tile go to elements of the array one to one
    [STORE-5.race]  where several blocks store to the same element, it keeps the value that one of them stored
    """
    rank, shape = sig.x.ndim, sig.operands[-1].shape
    array.put(in_index_dtype(index, sig), with_rank(tile, len(shape), rank), shape or (1,) * rank, order)


@op(_load_advanced, operands="array sparse *starts", effect=READ, accesses=ROWS, exact=True,
    signature=lambda array, indices, /, *, padding_mode=UNDETERMINED, latency=None, allow_tma=None: None)
def load_advanced_indexing(array, sparse, starts, /, *, axis, shape, padding_mode, latency, allow_tma, sig):
    """Tile of positions along one axis and ranges along the others.

    `indices`: one entry per array axis: exactly one 1-D integer tile of positions, and a ct.Slice(start, length) for
    every other axis.

    [ADV-1.rank]  the array has rank 2 or more (TileTypeError)
    [ADV-1.tuple]  indices is a tuple with an entry per axis (TileTypeError)
    [ADV-1.none]  no 1-D integer tile among the entries is refused (TileTypeError)
    [ADV-1.two]  more than one is refused (TileTypeError)
    [ADV-1.scalar]  a scalar as entry is refused (TileTypeError)
    [ADV-1.matrix]  a tile of rank 2 as entry is refused (TileTypeError)
    [ADV-1.float]  a float or bool tile as entry is refused (TileTypeError)
    [ADV-1.slice]  a Python slice as entry is refused (TileTypeError)
    [ADV-2.constant]  the length of each ct.Slice is an integer constant (TileTypeError)
    [ADV-2.positive]  a length of 0 or less is refused (TileTypeError)
    [ADV-2.pow2]  a length that is no power of two is refused (TileTypeError)
    [ADV-2.start]  its start may be a run-time value
    [ADV-3.shape]  a dimension of the result is the length of the sparse tile, or that of the slice
    [ADV-3.element]  positions and starts count elements, not tiles: element i is array[sparse[i_s], start_k + i_k]
    [ADV-4.padding]  positions and coordinates beyond an end read as the padding value
    [ADV-4.negative]  negative positions and coordinates are out of range, not counted from the end; so is a slice
        that starts below 0
    [ADV-5.sparse]  positions of every integer dtype keep their value
    [ADV-5.start]  starts of every signed width keep their value
    """
    return array.rows(axis, sparse, starts, shape, fill_of(padding_mode, sig.x.dtype))


@op(_store_advanced, operands="array sparse *starts tile", effect=WRITE, accesses=ROWS, exact=True,
    signature=lambda array, indices, tile, /, *, latency=None, allow_tma=None: None)
def store_advanced_indexing(array, sparse, starts, tile, /, *, axis, shape, latency, allow_tma):
    """Write a tile to positions along one axis and ranges along the others; `indices` as for load_advanced_indexing.

    [ADV-4.dropped]  elements whose position or coordinate is out of range are not written
    [ADV-6.shape]  a tile of another shape than the indices imply is refused, also one that broadcasts (TileTypeError)
    [ADV-6.scalar]  a scalar is refused (TileTypeError)
    [ADV-6.result]  the result is None
    [ADV-6.cast]  it is implicitly cast to the dtype of the array (IMPL-1, IMPL-2)
    [ADV-6.duplicates]  which of several writes to one element stays is unspecified: the last one here
    """
    array.put_rows(axis, sparse, starts, tile, shape)


@op(_index_slice, operands="")
def Slice(start, length, /):
    """Range of positions along an axis, for advanced indexing. It exists while a kernel is compiled only.

    [ADV-2.signed]  start and length are signed integer scalars, nothing unsigned, bool or float (TileTypeError)
    [ADV-2.positional]  both are positional only
    [ADV-2.opaque]  a slice has no readable attributes (TileTypeError)
    """


# ------------------------------------------------------------------ elements


@op(_gather, operands="array *indices mask? padding_value", effect=READ, accesses=ELEMENTS, exact=True,
    signature=lambda array, indices, /, *, mask=None, padding_value=0, check_bounds=True, latency=None: None)
def gather(array, indices, mask, padding_value, /, *, check_bounds, latency, sig, out=None):
    """Elements of an array at tiles of indices.

    `indices`: an integer tile per array axis, broadcast together (a single one for rank 1). Where an index is out of
    range or `mask` is False, the result is `padding_value`.

    [GS-1.kind]  indices are integer tiles or scalars of every integer dtype
    [GS-1.bool]  a bool index is refused (TileTypeError)
    [GS-1.float]  a float index is refused (TileTypeError)
    [GS-1.count]  there are as many as the array has axes (TileTypeError)
    [GS-1.single]  for rank 1 a single tile without a tuple will do
    [GS-1.rank0]  an array of rank 0 takes ()
    [GS-1.shapes]  they broadcast together (TileTypeError)
    [GS-2]  the result has the broadcast shape of the indices
    [GS-3.sign]  negative indices are out of range, never counted from the end
    [GS-3.wide]  an index counts with its whole value, whatever its dtype and the index dtype of the array
    [IDX-3]  ranges are tested and places computed with 64 bits, whatever the index dtype of the array
    [GS-4.bounds]  an element out of range reads as padding_value
    [GS-4.mask]  an element whose mask is False reads as padding_value
    [GS-5.none]  mask None masks nothing
    [GS-5.broadcast]  the mask broadcasts to the index shape
    [GS-5.shape]  a mask that does not broadcast to the index shape is refused (TileTypeError)
    [GS-5.dtype]  a mask of a dtype other than bool_ is refused, 1 included (TileTypeError)
    [GS-6.default]  padding_value is 0 where it is not given
    [GS-6.broadcast]  it may be a tile that broadcasts to the index shape
    [GS-6.cast]  it is implicitly cast to the dtype of the array, or refused (IMPL-1, IMPL-2)
    [GS-6.shape]  a shape that does not broadcast to the index shape is refused (TileTypeError)
    [GS-6.none]  padding_value None is refused (TileTypeError)
    [GS-7]  check_bounds=False with an index out of range and no mask is undefined: padding_value here
    [GS-9.dtype]  the result has the dtype of the array
    [GS-9.every]  every dtype can be gathered and scattered
    [GS-9.pure]  a gathered tile does not change when its elements are overwritten later
    """
    shape = sig.results[0].shape
    fill = with_rank(padding_value, len(sig.operands[-1].shape), len(shape))
    return array.gather(indices, mask, fill, shape, out)


@op(_scatter, operands="array *indices value mask?", effect=WRITE, accesses=ELEMENTS, exact=True,
    signature=lambda array, indices, value, /, *, mask=None, check_bounds=True, latency=None: None)
def scatter(array, indices, value, mask, /, *, check_bounds, latency, sig):
    """Write elements of an array at tiles of indices, which are as for gather.

    [GS-4.dropped]  an element out of range or whose mask is False is not written
    [GS-8.element]  each element of value goes to the array element at the indices of the same position
    [GS-8.broadcast]  value broadcasts to the index shape
    [GS-8.shape]  a value that does not broadcast to it is refused (TileTypeError)
    [GS-8.cast]  it is implicitly cast to the dtype of the array, or refused (IMPL-1, IMPL-2)
    [GS-8.result]  the result is None
    [GS-8.duplicates]  which of several writes to one element stays is unspecified: the last one in row-major order here
    """
    shape = sig.operands[-1].shape
    array.scatter(indices, value, mask, shape)


# ------------------------------------------------------------------ arrays and lists themselves


@op(made_elsewhere, operands="array", exact=True, public=False)
def array_dim(array, /, *, dim, stride):
    """Size of an array along an axis or, with stride=True, its stride in elements.

    [ARR-2.int32]  sizes and strides are int32 scalars
    [ARR-2.int64]  int64 scalars, if the parameter is annotated ct.IndexedWithInt64
    [ARR-3.dynamic]  they are run-time values unless the array's type holds them
    """
    return (array.strides if stride else array.shape)[dim]


def array_shape(b: Builder, a: Leaf) -> Tuple:
    """The value of `a.shape` [ARR-3]."""
    return _dims(b, a, a.type.static_shape, stride=False)


def array_strides(b: Builder, a: Leaf) -> Tuple:
    """The value of `a.strides` [ARR-3]."""
    return _dims(b, a, a.type.static_strides, stride=True)


def _dims(b: Builder, a: Leaf, static, stride: bool) -> Tuple:
    dtype = a.type.index_dtype
    scalar = tile_type(dtype)
    return Tuple(tuple(
        Const(n, dtype, loose=False) if n is not None else
        Leaf(b.op1(array_dim, a.value, result=scalar, dim=k, stride=stride))
        for k, n in enumerate(static)))


@op(made_elsewhere, operands="arrays", exact=True, public=False, name="list_len")
def list_len_op(arrays, /):
    """Number of arrays in a list.

    [LIST-1.len]  len(x) is an int32 scalar
    """
    return np.asarray(len(arrays), np.int32)


@op(made_elsewhere, operands="arrays index", exact=True, public=False, name="list_item")
def list_item_op(arrays, index, /):
    """Array of a list.

    [LIST-1.item]  x[i] is the i-th array
    [LIST-1.width]  i is an integer scalar of any width and sign, and counts as int32
    [LIST-1.refused]  a float, a bool, a slice or a tile as i is refused (TileTypeError)
    [LIST-1.negative]  a negative constant is refused: items are not counted from the end (TileValueError)
    [LIST-1.range]  an index that is negative or out of range is undefined: it reads as an empty array here
    """
    return arrays.pick(index.astype(np.int32))


def list_len(b: Builder, x: Leaf) -> Leaf:
    """The value of `len(x)` for a list of arrays."""
    return Leaf(b.op1(list_len_op, x.value, result=tile_type(int32)))


def list_item(b: Builder, x: Leaf, index: Term) -> Leaf:
    """The value of `x[index]` for a list of arrays."""
    if not is_scalar(index) or not info(index.type.dtype).integral:
        refuse(f"a list of arrays is indexed by an integer scalar, got {describe(index)}",
               help="write arrays[i]; slices and negative positions are not supported")
    if isinstance(index, Const) and index.value < 0:
        refuse(f"list index {index.value} is negative", cls=TileValueError,
               help="lists of arrays are not indexed from the end: write arrays[len(arrays) - 1]")
    return Leaf(b.op1(list_item_op, x.value, value_of(b, index), result=x.type.element))

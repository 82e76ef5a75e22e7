"""Other ways to see an array: slices, tiled views, raw memory, foreign pointers.

Tiled views and raw memory exist only while a kernel is compiled: nodes of the IR access the array, and have the tile
shape and steps of the view as attributes.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

import numpy as np

from cutile.dtypes import foreign_pointer_dtype, info, int32, int64
from cutile.ir.build import Builder
from cutile.ir.terms import NONE, Const, Leaf, RawMemory, Term, View, describe, is_scalar, is_tile
from cutile.ops._access import (
    fill_of,
    hints,
    in_index_dtype,
    mask_arg,
    padding_scalar_or_tile,
    stored,
    tile_index,
    with_rank,
)
from cutile.ops._access import padding_mode as mode_arg
from cutile.ops._access import tile_shape as shape_of_tile
from cutile.ops._arguments import (
    array_arg,
    axis_arg,
    int_scalar_arg,
    invalid,
    is_none,
    items_arg,
    refuse,
    shape_arg,
    tile_arg,
)
from cutile.ops._op import OFFSETS, READ, TILES, WRITE, op
from cutile.ops._promotion import value_of
from cutile.types import ArrayType, PaddingMode, tile_type

UNDETERMINED = PaddingMode.UNDETERMINED

# ------------------------------------------------------------------ slices


def _slice(b: Builder, op, array, axis, start, stop) -> Term:
    a = array_arg(op, "array", array)
    t = a.type
    if t.ndim == 0:
        invalid(op, "axis", "an array of rank 0 has no axes")
    k = axis_arg(op, "axis", axis, t.ndim)
    bounds = [int_scalar_arg(op, "start", start), int_scalar_arg(op, "stop", stop)]
    for name, x in zip(("start", "stop"), bounds, strict=True):
        if isinstance(x, Const) and x.value < 0:
            invalid(op, name, f"expected a position in the array, got {x.value}",
                    help="positions are not counted from the end: write array.shape[axis] - n")
    first, last = bounds
    size = None
    if isinstance(first, Const) and isinstance(last, Const):
        size = last.value - first.value
        if size < 0:
            invalid(op, "stop", f"stop {last.value} lies before start {first.value}")
    static = (*t.static_shape[:k], size, *t.static_shape[k + 1:])
    result = ArrayType(t.dtype, t.ndim, t.index_dtype, static, t.static_strides)
    return Leaf(b.op1(op, a.value, value_of(b, first), value_of(b, last), result=result, axis=k))


@op(_slice, name="slice", operands="array start stop", exact=True, public=False, method=("array", "slice"),
    signature=lambda array, /, axis, start, stop: None)
def slice_(array, start, stop, /, *, axis):
    """View of the elements start … stop-1 of one axis of an array. The memory is shared.

    [SLICE-1.base]  element i of the view is element start + i of the array along the axis
    [SLICE-1.size]  its size along the axis is stop - start; other sizes, and all strides, stay
    [SLICE-2.axis]  axis is an integer constant: a run-time one, a bool or a float is refused (TileTypeError)
    [SLICE-2.axis.negative]  a negative axis counts from the end
    [SLICE-2.axis.range]  an axis out of range is refused (TileTypeError)
    [SLICE-2.axis.rank0]  an array of rank 0 has no axis (TileTypeError)
    [SLICE-2.bounds]  start and stop are signed integer scalars of any width, constants or not
    [SLICE-2.bounds.unsigned]  unsigned ones are refused (TileTypeError)
    [SLICE-2.bounds.bool]  bools are refused (TileTypeError)
    [SLICE-2.bounds.float]  floats are refused (TileTypeError)
    [SLICE-2.bounds.tile]  tiles of rank 1 are refused (TileTypeError)
    [SLICE-3.start]  a negative constant start is refused (TileTypeError)
    [SLICE-3.stop]  a negative constant stop is refused (TileTypeError)
    [SLICE-3.order]  constant bounds with stop < start are refused (TileTypeError)
    [SLICE-3.runtime]  run-time bounds outside 0 <= start <= stop <= size are undefined: elements that the array does
        not have read as padding and are not written here
    [SLICE-3.beyond]  a constant stop beyond the size is no error when compiled
    [SLICE-4.static]  constant bounds make the size a constant
    [SLICE-4.runtime]  a run-time bound leaves it a run-time value
    [SLICE-4.others]  sizes and strides that are constants of the array stay constant
    [SLICE-4.cast]  the size is cast to the index dtype of the array
    [SLICE-5]  all three parameters may be given by name
    """
    return array.slice(axis, start, stop)


# ------------------------------------------------------------------ tiled views


def _tiled_view(b: Builder, op, array, tile_shape, padding_mode, traversal_steps) -> Term:
    a = array_arg(op, "array", array)
    rank = a.type.ndim
    shape = shape_of_tile(op, "tile_shape", tile_shape, rank)
    mode = mode_arg(op, padding_mode, a.type.dtype)
    if is_none(traversal_steps):
        return View(a, shape, shape or (1,) * rank, mode)
    steps = shape_arg(op, "traversal_steps", traversal_steps, rank=rank, pow2=False, what="tuple of steps")
    for s in steps:
        if s <= 0:
            invalid(op, "traversal_steps", f"steps are positive, got {s} in {steps}")
    return View(a, shape, steps, mode)


def view_arg(op, t: Term) -> View:
    if not isinstance(t, View):
        invalid(op, "view", f"expected a tiled view, got {describe(t)}",
                help="make one with array.tiled_view(tile_shape)")
    return t


def _view_load(b: Builder, op, view, index, check_bounds, latency, allow_tma) -> Term:
    v = view_arg(op, view)
    t = v.array.type
    i = tile_index(b, op, "index", index, t.ndim)
    return Leaf(b.op1(op, v.array.value, i, result=tile_type(t.dtype, v.tile_shape), shape=v.tile_shape, steps=v.steps,
                      padding_mode=v.padding_mode, **hints(op, latency, allow_tma, check_bounds)))


def _view_store(b: Builder, op, view, index, tile, check_bounds, latency, allow_tma) -> Term:
    v = view_arg(op, view)
    i = tile_index(b, op, "index", index, v.array.type.ndim)
    value = stored(b, op, "tile", tile, v.array.type.dtype, v.tile_shape, container="view")
    b.op(op, v.array.value, i, value, results=(), steps=v.steps, **hints(op, latency, allow_tma, check_bounds))
    return NONE


def _view_tiles(b: Builder, op, view, axis) -> Term:
    v = view_arg(op, view)
    if v.array.type.ndim == 0:
        invalid(op, "axis", "a view of an array of rank 0 has no axes")
    k = axis_arg(op, "axis", axis, v.array.type.ndim)
    return Leaf(b.op1(op, v.array.value, result=tile_type(int32), axis=k, step=v.steps[k]))


@op(_tiled_view, operands="", public=False, method=("array", "tiled_view"))
def tiled_view(array, /, tile_shape, *, padding_mode=UNDETERMINED, traversal_steps=None):
    """View of an array as a grid of tiles. It exists while a kernel is compiled only.

    [TV-1.shape]  tile_shape is a tuple of powers of two, else TileTypeError
    [TV-1.int]  or an int, for rank 1
    [TV-1.rank]  it has the rank of the array, else TileTypeError
    [TV-1.padding]  padding_mode is given by name, UNDETERMINED by default
    [TV-1.scalar]  tile_shape () stays (): tiles are single elements and load as scalars
    [TV-2.steps]  tile j begins at element j * step
    [TV-2.any]  steps are positive integers of any value; 0 and negative ones are refused (TileTypeError)
    [TV-2.int]  a single int will do for rank 1
    [TV-2.rank]  there are as many steps as the array has axes, else TileTypeError
    [TV-2.default]  None: the tile shape, or ones for tile_shape ()
    [TV-4.attributes]  dtype, tile_shape and traversal_steps are constants; shape, ndim and padding_mode are not there
    """


@op(_view_load, operands="array *index", effect=READ, accesses=TILES, exact=True, public=False, method=("view", "load"),
    signature=lambda view, /, index, *, check_bounds=True, latency=None, allow_tma=None: None)
def view_load(array, index, /, *, shape, steps, padding_mode, check_bounds, latency, allow_tma, sig):
    """Tile of a view at a tile index.

    [TVOP-1.type]  the result has the dtype of the array and shape tile_shape
    [TVOP-1.element]  element x of the tile is the array element at index * step + x
    [TVOP-1.padding]  elements outside the array read as the padding of the view
    [TVOP-1.index]  the index has as many entries as the array has axes (TileTypeError)
    [TVOP-1.kind]  they are signed integer scalars; for rank 1 a single one will do (TileTypeError)
    [TVOP-1.name]  index may be given by name
    [TVOP-1.options]  there is no order, shape or padding_mode here (TileTypeError)
    [TVOP-1.scalar]  with tile_shape () the result is a scalar
    """
    t = sig.x
    fill = fill_of(padding_mode, t.dtype)
    x = array.tile(in_index_dtype(index, sig), shape or (1,) * t.ndim, range(t.ndim), fill, steps)
    return x if shape else x.reshape(x.shape[:x.ndim - t.ndim])


@op(_view_store, operands="array *index tile", effect=WRITE, accesses=TILES, exact=True, public=False,
    method=("view", "store"),
    signature=lambda view, /, index, tile, *, check_bounds=True, latency=None, allow_tma=None: None)
def view_store(array, index, tile, /, *, steps, check_bounds, latency, allow_tma, sig):
    """Write a tile to a view at a tile index.

    [TVOP-2.element]  element x of the tile goes to the array element at index * step + x
    [TVOP-2.broadcast]  the tile broadcasts to the tile shape of the view
    [TVOP-2.shape]  a tile that does not broadcast to it is refused (TileTypeError)
    [TVOP-2.cast]  it is implicitly cast to the dtype of the array, or refused (IMPL-1, IMPL-2)
    [TVOP-2.index]  the index has as many entries as the array has axes (TileTypeError)
    [TVOP-2.result]  the result is None
    [TVOP-2.edge]  elements outside the array are dropped; the padding mode plays no part
    [TVOP-5.float]  a literal stays loosely typed: 1.0 goes into a float16 view
    [TVOP-5.int]  a literal stays loosely typed: 1 goes into a uint8 view
    [TVOP-6]  where steps are smaller than the tile, tiles overlap, and the store that comes later stays
    """
    rank, shape = sig.x.ndim, sig.operands[-1].shape
    array.put(in_index_dtype(index, sig), with_rank(tile, len(shape), rank), shape or (1,) * rank, range(rank), steps)


@op(_view_tiles, operands="array", exact=True, public=False, method=("view", "num_tiles"),
    signature=lambda view, /, axis: None)
def view_num_tiles(array, /, *, axis, step):
    """Number of tiles of a view along an axis.

    [TVOP-3.axis]  axis is an integer constant in range (TileTypeError)
    [TVOP-3.negative]  negative ones are counted from the end
    [TVOP-3.type]  the result is an int32 scalar
    [TV-3]  it is ceil(size / step)
    """
    size = array.shape[axis].astype(np.int64)
    return np.asarray(-(-size // step)).astype(np.int32)


# ------------------------------------------------------------------ raw memory


def _raw_memory(b: Builder, op, array) -> Term:
    return RawMemory(array_arg(op, "array", array))


def raw_arg(op, t: Term) -> Leaf:
    if not isinstance(t, RawMemory):
        invalid(op, "raw", f"expected raw memory, got {describe(t)}", help="get it with array.get_raw_memory()")
    return t.array


def offset_arg(op, t: Term) -> Const | Leaf:
    """Offsets count elements and are integers; bool and float are refused rather than cast in silence [RAW-1, D-9]."""
    if not is_tile(t) or not info(t.type.dtype).integral:
        invalid(op, "offset", f"expected an integer tile or scalar, got {describe(t)}",
                help="convert it: offset.astype(ct.int64)" if is_tile(t) and info(t.type.dtype).arithmetic else None)
    return t


def _load_offset(b: Builder, op, raw, offset, mask, padding_value, latency) -> Term:
    a, o = raw_arg(op, raw), offset_arg(op, offset)
    shape, dtype = o.type.shape, a.type.dtype
    m = mask_arg(b, op, mask, shape)
    padding = None if is_none(padding_value) else padding_scalar_or_tile(b, op, padding_value, dtype, shape)
    return Leaf(b.op1(op, a.value, value_of(b, o), m, padding, result=tile_type(dtype, shape), **hints(op, latency)))


def _store_offset(b: Builder, op, raw, offset, value, mask, latency) -> Term:
    a, o = raw_arg(op, raw), offset_arg(op, offset)
    x = stored(b, op, "value", value, a.type.dtype, o.type.shape, container="memory")
    b.op(op, a.value, value_of(b, o), x, mask_arg(b, op, mask, o.type.shape), results=(), **hints(op, latency))
    return NONE


@op(_raw_memory, operands="", public=False, method=("array", "get_raw_memory"))
def get_raw_memory(array, /):
    """The memory of an array, without its shape. It exists while a kernel is compiled only.

    [RAWMEM-1.attributes]  its only attribute is dtype
    """


@op(_load_offset, operands="array offset mask? padding_value?", effect=READ, accesses=OFFSETS, exact=True, public=False,
    method=("raw", "load_offset"), signature=lambda raw, offset, /, *, mask=None, padding_value=0, latency=None: None)
def load_offset(array, offset, mask, padding_value, /, *, latency, sig):
    """Elements at offsets from the first one of an array, counted in elements, without bounds.

    [RAW-1.element]  element i of the result is the element in memory offset[i] elements after the array's first
    [RAW-1.type]  the result has the dtype of the array and the shape of the offset
    [RAW-1.offset]  offset is a tile or scalar of any integer dtype
    [RAW-1.kind]  a bool or float offset and a tuple are refused (TileTypeError)
    [RAW-1.bounds]  sizes and strides of the array play no part
    [RAW-1.mask]  where the mask is False, the result is padding_value, 0 where it is not given
    [RAW-1.mask.type]  the mask is None or of dtype bool_, and broadcasts to the shape of the offset (TileTypeError)
    [RAW-1.padding]  padding_value broadcasts to that shape and is implicitly cast (TileTypeError)
    [RAW-1.none]  padding_value None leaves masked elements unspecified: they read as undetermined padding here
    [RAW-1.foreign]  memory that is not the argument's own is undefined: it reads as padding_value here
    [RAW-5.sign]  signed offsets keep their sign: negative ones lie below the first element
    [RAW-5.unsigned]  unsigned offsets of every width count with their whole value
    """
    shape = sig.result.shape
    if padding_value is None:
        fill = np.full((1,) * len(shape), fill_of(UNDETERMINED, sig.x.dtype))
    else:
        fill = with_rank(padding_value, sig.operands[-1].ndim, len(shape))
    return array.raw.gather((offset,), mask, fill, shape)


@op(_store_offset, operands="array offset value mask?", effect=WRITE, accesses=OFFSETS, exact=True, public=False,
    method=("raw", "store_offset"), signature=lambda raw, offset, value, /, *, mask=None, latency=None: None)
def store_offset(array, offset, value, mask, /, *, latency, sig):
    """Write elements at offsets from the first one of an array.

    [RAW-2.element]  element i of value goes to the element in memory offset[i] elements after the array's first
    [RAW-2.broadcast]  value broadcasts to the shape of the offset
    [RAW-2.shape]  a value that does not broadcast to it is refused (TileTypeError)
    [RAW-2.cast]  it is implicitly cast to the dtype of the array, or refused (IMPL-1, IMPL-2)
    [RAW-2.mask]  where the mask is False, nothing is written
    [RAW-2.result]  the result is None
    [RAW-2.foreign]  memory that is not the argument's own is undefined: it is not written here
    """
    array.raw.scatter((offset,), value, mask, sig.operands[1].shape)


# ------------------------------------------------------------------ foreign pointers

POINTER_BITS, POINTER_BIAS = 40, 1 << 39  # a pointer: the number of a memory, then the byte offset plus the bias

_memories: WeakValueDictionary[int, object] = WeakValueDictionary()  # by number, as long as a launch holds them
_numbers = iter(range(1, 1 << 24))


def _number_of(memory) -> int:
    """The number of a memory, which foreign pointers to it contain."""
    if memory.number is None:
        number = next(_numbers, None)
        if number is None:
            raise RuntimeError("this process has used up its foreign pointers")
        _memories[number] = memory
        memory.number = number
    return memory.number


def _encode(memory, offset: np.ndarray) -> np.ndarray:
    """The pointer to `offset` bytes from element (0, …) of a memory."""
    at = np.asarray(np.clip(offset, -POINTER_BIAS, POINTER_BIAS - 1) + POINTER_BIAS).astype(np.uint64)
    return np.asarray(at | np.uint64(_number_of(memory) << POINTER_BITS))


def _pointer(b: Builder, op, array) -> Term:
    a = array_arg(op, "array", array)
    return Leaf(b.op1(op, a.value, result=tile_type(foreign_pointer_dtype(a.type.dtype))))


def array_foreign_pointer(b: Builder, a: Leaf) -> Term:
    """The value of `a.foreign_pointer`."""
    return _pointer(b, foreign_pointer, a)


def _from_foreign(b: Builder, op, pointer, shape, strides) -> Term:
    p = tile_arg(op, "pointer", pointer)
    i = info(p.type.dtype)
    if i.kind != "p" or not is_scalar(p):
        invalid(op, "pointer", f"expected a foreign pointer scalar, got {describe(p)}",
                help="take array.foreign_pointer")
    sizes, steps = (_entries(op, n, t) for n, t in (("shape", shape), ("strides", strides)))
    if len(sizes) != len(steps):
        refuse(f"from_foreign(): a shape of {len(sizes)} and strides of {len(steps)} entries do not go together",
               help="give one size and one stride, counted in elements, per axis")
    index = int64 if any(t.type.dtype.bitwidth > 32 for t in (*sizes, *steps)) else int32
    static = [tuple(t.value if isinstance(t, Const) else None for t in group) for group in (sizes, steps)]
    result = ArrayType(i.pointee, len(sizes), index, *static)
    return Leaf(b.op1(op, p.value, [value_of(b, t) for t in sizes], [value_of(b, t) for t in steps], result=result))


def _entries(op, name: str, t: Term) -> list[Const | Leaf]:
    entries = [int_scalar_arg(op, name, x) for x in items_arg(op, name, t)]
    for x in entries:
        if isinstance(x, Const) and x.value < 0:
            invalid(op, name, f"constant entries are not negative, got {x.value}")
    return entries


@op(_pointer, operands="array", exact=True, public=False)
def foreign_pointer(array, /):
    """Pointer to the first element of an array.

    [FPTR-2.type]  array.foreign_pointer is a scalar of dtype foreign_pointer[array.dtype]
    [FPTR-2.uses]  it may be passed around and given to Array.from_foreign
    [FPTR-2.where]  where chooses between two of one dtype; between two dtypes: TileTypeError
    [FPTR-2.arithmetic]  arithmetic with it is refused (TileTypeError)
    [FPTR-2.comparison]  comparison is refused (TileTypeError)
    [FPTR-2.cast]  astype and bitcast are refused (TileTypeError)
    [FPTR-2.memory]  loads and stores of it are refused (TileTypeError)
    """
    return array.pointer(_encode)


@op(_from_foreign, operands="pointer *shape *strides", exact=True, public=False,
    signature=lambda pointer, shape, strides: None)
def from_foreign(pointer, shape, strides, /, *, sig):
    """Array at a foreign pointer, with sizes and strides (in elements) of its own.

    [FPTR-3.pointer]  pointer is a foreign pointer scalar (TileTypeError)
    [FPTR-3.element]  element (i_0, …) lies Σ stride_k·i_k elements after the one pointed at; reads outside the sizes
        are out of range
    [FPTR-3.entries]  shape and strides are tuples of signed integer scalars (TileTypeError)
    [FPTR-3.length]  they are of equal length (TileTypeError)
    [FPTR-3.negative]  a negative constant entry is refused (TileTypeError)
    [FPTR-3.constant]  constant entries become static sizes and strides
    [FPTR-3.runtime]  run-time entries stay run-time values
    [FPTR-3.index]  the index dtype is int64 if an entry is wider than 32 bits, else int32
    [FPTR-3.foreign]  elements that are not those of the argument pointed into are undefined: they read as padding and
        are not written here
    """
    number = pointer >> np.uint64(POINTER_BITS)
    at = (pointer & np.uint64((1 << POINTER_BITS) - 1)).astype(np.int64) - POINTER_BIAS
    numbers = np.unique(number).tolist()
    buffers = [_memories[n] for n in numbers]
    return buffers[0].at_pointer(buffers, np.searchsorted(numbers, number), at, shape, strides, sig.result.index_dtype)

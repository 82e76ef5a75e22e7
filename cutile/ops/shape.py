"""Operations that only move elements [SHAPE-*].

The IR has reshape, broadcast_to, permute, cat, extract and insert. The rules of expand_dims, transpose, item and
`x[:, None]` make nodes of these. Attributes number the axes of the tile from 0.
"""

from __future__ import annotations

from math import prod

import numpy as np

from cutile.dtypes import bool_
from cutile.ir.build import Builder
from cutile.ir.nodes import Value
from cutile.ir.terms import Const, Leaf, PySlice, Static, Term, Tuple, describe, is_array, is_scalar, is_tile
from cutile.ops import _layout
from cutile.ops._arguments import axis_arg, int_scalar_arg, invalid, is_none, items_arg, refuse, shape_arg, tile_arg
from cutile.ops._freedom import any_
from cutile.ops._op import op, typing_rule
from cutile.ops._promotion import broadcast, broadcastable_to, value_of
from cutile.types import tile_type

# ------------------------------------------------------------------ typing rules


def reshaped(b: Builder, t: Const | Leaf, shape: tuple[int, ...]) -> Const | Leaf:
    """`t` reshaped, or `t` itself if it has that shape [SHAPE-1]."""
    if t.type.shape == shape:
        return t
    return Leaf(b.op1(reshape, value_of(b, t), result=tile_type(t.type.dtype, shape), shape=shape))


def permuted(b: Builder, t: Const | Leaf, axes: tuple[int, ...]) -> Const | Leaf:
    if axes == tuple(range(len(axes))):
        return t
    shape = tuple(t.type.shape[a] for a in axes)
    return Leaf(b.op1(permute, value_of(b, t), result=tile_type(t.type.dtype, shape), axes=axes))


@typing_rule(moves_data=True)
def reshape_rule(b: Builder, op, x: Term, shape: Term) -> Term:
    x = tile_arg(op, "x", x)
    dims = shape_arg(op, "shape", shape, int_ok=False, pow2=False, what="shape")
    return reshaped(b, x, _completed(op, dims, x.type.size))


def _completed(op, dims: tuple[int, ...], size: int) -> tuple[int, ...]:
    """`dims`, where a -1 becomes the dimension with which the tile has `size` elements."""
    if any(d < -1 or d == 0 for d in dims):
        invalid(op, "shape", f"dimensions must be positive, or -1 once, got {dims}")
    if dims.count(-1) > 1:
        invalid(op, "shape", f"only one dimension may be -1, got {dims}")
    known = prod(d for d in dims if d != -1)
    if -1 in dims and size % known == 0:
        return tuple(size // known if d == -1 else d for d in dims)
    if -1 in dims or known != size:
        invalid(op, "shape", f"{size} elements cannot be reshaped to {dims}")
    return dims


@typing_rule(moves_data=True)
def broadcast_rule(b: Builder, op, x: Term, shape: Term) -> Term:
    x = tile_arg(op, "x", x)
    dims = shape_arg(op, "shape", shape, int_ok=False)
    if not broadcastable_to(x.type.shape, dims):
        invalid(op, "shape", f"a tile of shape {x.type.shape} cannot be broadcast to {dims}",
                help="dimensions, aligned at the end, must be equal or 1")
    return broadcast(b, x, dims)


@typing_rule(moves_data=True)
def expand_rule(b: Builder, op, x: Term, axis: Term) -> Term:
    x = tile_arg(op, "x", x)
    a = axis_arg(op, "axis", axis, x.type.ndim + 1)
    return reshaped(b, x, (*x.type.shape[:a], 1, *x.type.shape[a:]))


@typing_rule(moves_data=True)
def permute_rule(b: Builder, op, x: Term, axes: Term) -> Term:
    x = tile_arg(op, "x", x)
    n = x.type.ndim
    order = tuple(axis_arg(op, "axes", a, n) for a in items_arg(op, "axes", axes))
    if sorted(order) != list(range(n)):
        invalid(op, "axes", f"expected each of the {n} axes exactly once, got {order}")
    return permuted(b, x, order)


@typing_rule(moves_data=True)
def transpose_rule(b: Builder, op, x: Term, axis0: Term, axis1: Term) -> Term:
    x = tile_arg(op, "x", x)
    n = x.type.ndim
    if n < 2:
        invalid(op, "x", f"expected a tile of rank 2 or more, got {describe(x)}")
    if is_none(axis0) != is_none(axis1):
        invalid(op, "axis1" if is_none(axis1) else "axis0", "give both axes, or neither for a tile of rank 2")
    if is_none(axis0):
        if n != 2:
            invalid(op, "axis0", f"a tile of rank {n} needs both axes", help="x.transpose(-2, -1) swaps the last two")
        i, j = 0, 1
    else:
        i, j = axis_arg(op, "axis0", axis0, n), axis_arg(op, "axis1", axis1, n)
    axes = list(range(n))
    axes[i], axes[j] = j, i
    return permuted(b, x, tuple(axes))


@typing_rule(moves_data=True)
def cat_rule(b: Builder, op, tiles: Term, axis: Term) -> Term:
    items = [tile_arg(op, "tiles", t) for t in items_arg(op, "tiles", tiles)]
    if len(items) not in (1, 2):
        invalid(op, "tiles", f"expected one or two tiles, got {len(items)}",
                help="nest calls to join more: the dimensions of a tile are powers of two")
    first, last = items[0].type, items[-1].type
    for t in items:
        if t.type.ndim == 0:
            invalid(op, "tiles", f"expected tiles of rank 1 or more, got {describe(t)}",
                    help="ct.astile((a, b), dtype=...) makes a tile of scalars")
    if first.dtype is not last.dtype:
        invalid(op, "tiles", f"the tiles must have one dtype, got {first.dtype.name} and {last.dtype.name}",
                help="convert one with .astype(...)")
    if first.ndim != last.ndim:
        invalid(op, "tiles", f"the tiles must have the same rank, got shapes {first.shape} and {last.shape}")
    a = axis_arg(op, "axis", axis, first.ndim)
    if first.shape != last.shape:
        invalid(op, "tiles", f"the tiles must have equal shapes, got {first.shape} and {last.shape}",
                help="only two equal halves make a dimension that is a power of two")
    if len(items) == 1:
        return items[0]
    shape = (*first.shape[:a], 2 * first.shape[a], *first.shape[a + 1:])
    return Leaf(b.op1(cat, [value_of(b, t) for t in items], result=tile_type(first.dtype, shape), axis=a))


@typing_rule(moves_data=True)
def extract_rule(b: Builder, op, x: Term, index: Term, shape: Term) -> Term:
    x = tile_arg(op, "x", x)
    dims = shape_arg(op, "shape", shape)
    part = dims or (1,) * x.type.ndim
    _check_part(op, "shape", part, x.type.shape)
    at = _position(b, op, index, x.type.shape, part)
    return Leaf(b.op1(extract, value_of(b, x), at, result=tile_type(x.type.dtype, dims), shape=dims))


@typing_rule(moves_data=True)
def insert_rule(b: Builder, op, x: Term, index: Term, value: Term) -> Term:
    x, value = tile_arg(op, "x", x), tile_arg(op, "value", value)
    dx, dv = x.type.dtype, value.type.dtype
    if dx is not dv:
        invalid(op, "value", f"expected dtype {dx.name} as the tile has, got {describe(value)}",
                help=f"value.astype(ct.{dx.name}), or ct.{dx.name}(...) for a number")
    part = value.type.shape or (1,) * x.type.ndim
    _check_part(op, "value", part, x.type.shape)
    at = _position(b, op, index, x.type.shape, part)
    return Leaf(b.op1(insert, value_of(b, x), at, value_of(b, reshaped(b, value, part)), result=x.type))


def _check_part(op, name: str, part: tuple[int, ...], whole: tuple[int, ...]) -> None:
    if len(part) != len(whole):
        invalid(op, name, f"a part of shape {part} has not the rank of the tile of shape {whole}")
    if any(w % p for w, p in zip(whole, part, strict=True)):
        invalid(op, name, f"shape {part} does not divide the tile's shape {whole}")


def _position(b: Builder, op, index: Term, whole: tuple[int, ...], part: tuple[int, ...]) -> list[Value]:
    """The index of a part in the grid of parts; constants are checked [SHAPE-7]."""
    items = (index,) if is_scalar(index) else items_arg(op, "index", index)
    if len(items) != len(whole):
        invalid(op, "index", f"expected {len(whole)} indices, one for each axis of shape {whole}, got {len(items)}")
    values = []
    for k, t in enumerate(items):
        t = int_scalar_arg(op, "index", t)
        count = whole[k] // part[k]
        if isinstance(t, Const) and not 0 <= t.value < count:
            invalid(op, "index", f"index {t.value} on axis {k} is out of range: there are {count} parts of size "
                                 f"{part[k]} in {whole[k]}")
        values.append(value_of(b, t))
    return values


@typing_rule(moves_data=True)
def item_rule(b: Builder, op, x: Term) -> Term:
    x = tile_arg(op, "x", x)
    if x.type.size != 1:
        invalid(op, "x", f"expected exactly one element, got a {describe(x)}",
                help="take one element with ct.extract(x, index, ())")
    return reshaped(b, x, ())


def index_tile(b: Builder, x: Const | Leaf, key: Term) -> Const | Leaf:
    """`x[key]` of a tile: None inserts an axis of size 1, `:` keeps an axis, `...` keeps all others [SHAPE-10].

    The front end calls this for subscripts of tiles.
    """
    entries = key.items if isinstance(key, Tuple) else (key,)
    if not isinstance(key, Tuple) and not is_none(key):
        _not_a_key(key, x)
    for entry in entries:
        if not (is_none(entry) or _is_dots(entry) or _is_full_slice(entry)):
            _not_a_key(entry, x)
    kept, dots = sum(map(_is_full_slice, entries)), sum(map(_is_dots, entries))
    if dots > 1:
        refuse("a subscript of a tile may hold one `...` only")
    if kept > x.type.ndim:
        refuse(f"too many `:` in the subscript: {kept} for a tile of rank {x.type.ndim}")
    at = next((i for i, entry in enumerate(entries) if _is_dots(entry)), len(entries))
    dims = iter(x.type.shape)
    front = [1 if is_none(entry) else next(dims) for entry in entries[:at]]
    behind = sum(map(_is_full_slice, entries[at:]))
    rest = list(dims)
    split = len(rest) - behind
    dims = iter(rest[split:])
    back = [1 if is_none(entry) else next(dims) for entry in entries[at + 1:]]
    return reshaped(b, x, (*front, *rest[:split], *back))


def _is_dots(t: Term) -> bool:
    return isinstance(t, Static) and t.obj is Ellipsis


def _is_full_slice(t: Term) -> bool:
    return isinstance(t, PySlice) and is_none(t.start) and is_none(t.stop) and is_none(t.step)


def _not_a_key(entry: Term, x: Const | Leaf):
    hint = "None, `:` and `...` in a tuple insert axes, as in x[:, None]"
    if is_scalar(entry):
        hint = (f"a tile is not indexed by element: ct.extract(x, index, shape=()) takes one out of a {describe(x)}; "
                f"to read memory at an index, ct.load or ct.gather from the array")
    elif isinstance(entry, PySlice):
        hint = "a tile has no slices: ct.extract(x, index, shape) takes a part; x[:, None] inserts an axis"
    elif is_tile(entry) and entry.type.dtype is bool_:
        hint = "a tile keeps its shape: ct.where(mask, x, 0) keeps the elements where a mask holds"
    elif is_tile(entry) or is_array(entry):
        hint = "elements are looked up in memory: ct.gather(array, indices), with a tile of indices"
    refuse(f"a tile cannot be indexed with {describe(entry)}", help=hint)


# ------------------------------------------------------------------ meanings


def _split(x, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The batch shape and the tile shape of the carrier of a tile whose rank is `ndim`."""
    k = x.ndim - ndim
    return x.shape[:k], x.shape[k:]


def repeated(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A read-only view of x with axes of length 1 repeated. It equals np.broadcast_to(…), which takes longer."""
    if x.ndim != len(shape) or not x.flags.c_contiguous:
        return np.broadcast_to(x, shape)
    y = np.ndarray(shape, x.dtype, x, 0, [0 if n == 1 else s for s, n in zip(x.strides, x.shape, strict=True)])
    y.flags.writeable = False
    return y


@op(reshape_rule, method=("tile", "reshape"), exact=True)
def reshape(x, /, shape, *, sig):
    """The same elements in row-major order at another shape.

    [SHAPE-1.order]  row-major order is preserved
    [SHAPE-1.minus]  one dimension may be -1 and is computed
    [SHAPE-1.count]  another number of elements: TileTypeError
    [SHAPE-1.zero]  a dimension of 0: TileTypeError
    [SHAPE-1.two]  two dimensions of -1: TileTypeError
    [SHAPE-1.negative]  a dimension below -1: TileTypeError
    [SHAPE-1.int]  shape must be a tuple, also for rank 1
    [SHAPE-1.same]  the same shape gives back x, constants included
    [SHAPE-1.method]  x.reshape(shape) is the same
    """
    return _layout.reshaped(x, len(sig.operands[0].shape), shape)


@op(broadcast_rule, exact=True)
def broadcast_to(x, /, shape, *, sig):
    """x repeated along axes of size 1 and new axes in front.

    [SHAPE-2.shape]  shape: a tuple of constant powers of two; an int or another size: TileTypeError
    [SHAPE-2.value]  elements repeat along axes of size 1 and new axes in front
    [SHAPE-2.rank]  fewer axes than x has: TileTypeError
    [SHAPE-2.rule]  dimensions, aligned at the end, must be equal or 1; else TileTypeError
    """
    batch_shape, tile_shape = _split(x, sig.x.ndim)
    new = len(shape) - len(tile_shape)
    return repeated(x.reshape(batch_shape + (1,) * new + tile_shape) if new else x, batch_shape + shape)


@op(expand_rule)
def expand_dims(x, /, axis):
    """x with a new axis of size 1 at `axis`; in the IR it is a reshape.

    [SHAPE-10.insert]  x[key] with None and full slices: each None inserts an axis of size 1 at its place
    [SHAPE-10.dots]  one ... stands for the axes that are left; what follows it counts from the end
    [SHAPE-10.rest]  axes beyond the last : stay at the end
    [SHAPE-10.two]  two ... in a key: TileTypeError
    [SHAPE-10.many]  more : than axes: TileTypeError
    [SHAPE-10.other]  integers, tiles, partial slices, and : or ... outside a tuple: TileTypeError
    [SHAPE-3.axis]  axis: a constant from -(n+1) to n for rank n; anything else is a TileTypeError
    [SHAPE-3.place]  the new axis stands at `axis` of the result
    [SHAPE-3.const]  an axis that is no integer constant: TileTypeError
    """


@op(permute_rule, method=("tile", "permute"), exact=True)
def permute(x, /, axes, *, sig):
    """x with its axes in another order.

    [SHAPE-4.shape]  dimension i of the result is dimension axes[i] of x
    [SHAPE-4.axes]  axes: each axis once, negative ones counting from the end; anything else is a TileTypeError
    [SHAPE-4.repeat]  an axis given twice, in whatever sign: TileTypeError
    [SHAPE-4.length]  more or fewer axes than x has: TileTypeError
    [SHAPE-4.method]  x.permute(axes) is the same
    """
    n = x.ndim - sig.x.ndim
    return np.transpose(x, (*range(n), *(n + a for a in axes)))


@op(transpose_rule, method=("tile", "transpose"))
def transpose(x, /, axis0=None, axis1=None):
    """x with two axes swapped; in the IR it is a permute.

    [SHAPE-5.rank]  rank 0 and 1: TileTypeError
    [SHAPE-5.swap]  the two axes swap, negative ones counting from the end
    [SHAPE-5.range]  an axis out of range: TileTypeError
    [SHAPE-5.method]  x.transpose(axis0, axis1) is the same
    [SHAPE-5.default]  without axes, a tile of rank 2 is transposed; another rank is a TileTypeError
    [SHAPE-5.one]  exactly one axis: TileTypeError
    """


@op(cat_rule, operands="*tiles", exact=True)
def cat(tiles, /, axis, *, sig):
    """Two tiles of equal shape joined along an axis.

    [SHAPE-6.two]  the second follows the first
    [SHAPE-6.axis]  axis: a constant, negative counting from the end; out of range: TileTypeError
    [SHAPE-6.one]  one tile comes back as it is
    [SHAPE-6.count]  none, or more than two: TileTypeError
    [SHAPE-6.dtype]  different dtypes: TileTypeError, there is no promotion
    [SHAPE-6.shape]  different shapes: TileTypeError
    [SHAPE-6.rank]  different ranks: TileTypeError
    [SHAPE-6.scalar]  scalars: TileTypeError
    """
    n = sig.result.ndim
    batch_shape = np.broadcast_shapes(*(_split(t, n)[0] for t in tiles))
    return _layout.joined([np.broadcast_to(t, batch_shape + _split(t, n)[1]) for t in tiles], n, axis - n)


@op(extract_rule, method=("tile", "extract"), operands="x *index", exact=True,
    freedom=any_("a run-time index out of range"))
def extract(x, /, index, shape, *, sig):
    """The part at `index` in the grid of parts of `shape` that x is divided in.

    [SHAPE-7.grid]  element e of the result is element index * shape + e of x
    [SHAPE-7.scalar]  shape () gives the element at `index` as a scalar
    [SHAPE-7.divide]  a shape that does not divide x.shape: TileTypeError
    [SHAPE-7.rank]  a shape of another rank: TileTypeError
    [SHAPE-7.method]  x.extract(index, shape) is the same
    [SHAPE-7.index]  index: a tuple of signed integer scalars of any width, constant or run-time
    [SHAPE-7.single]  a single index stands for rank 1
    [SHAPE-7.length]  another number of indices than axes: TileTypeError
    [SHAPE-7.kind]  an unsigned, bool_, float or tile index: TileTypeError
    [SHAPE-7.range]  a constant index out of range: TileTypeError
    [SHAPE-7.undefined]  a run-time index out of range is undefined: any value
    """
    tile_shape = sig.x.shape
    part = shape or (1,) * len(tile_shape)
    starts = _starts(index, tile_shape, part)
    if _uniform(starts):
        y = x[(..., *(slice(s, s + p) for s, p in zip(starts, part, strict=True)))]
    else:
        batch_shape = np.broadcast_shapes(_split(x, len(tile_shape))[0], *(s.shape for s in starts))
        y = x[_coordinates(x.shape[:x.ndim - len(tile_shape)], starts, batch_shape, part)]
    return _layout.reshaped(y, len(tile_shape), shape)


@op(insert_rule, method=("tile", "insert"), operands="x *index value", exact=True,
    freedom=any_("a run-time index out of range"))
def insert(x, /, index, value, *, sig):
    """x with the part at `index` replaced by `value`.

    [SHAPE-8.grid]  the part is the one that extract(x, index, value.shape) takes
    [SHAPE-8.new]  x itself does not change
    [SHAPE-8.scalar]  a scalar value replaces one element
    [SHAPE-8.dtype]  a value of another dtype, literals counting as int32 and float32: TileTypeError
    [SHAPE-8.rank]  a value that is no scalar and has another rank: TileTypeError
    [SHAPE-8.divide]  a value whose shape does not divide x.shape: TileTypeError
    [SHAPE-8.range]  a constant index out of range: TileTypeError
    [SHAPE-8.index]  index as for extract, run-time scalars included
    [SHAPE-8.method]  x.insert(index, value) is the same
    [SHAPE-8.undefined]  a run-time index out of range is undefined: any value
    """
    tile_shape, part = sig.x.shape, sig.operands[-1].shape
    n = len(tile_shape)
    starts = _starts(index, tile_shape, part)
    uniform = _uniform(starts)
    differing = () if uniform else (s.shape for s in starts)
    batch_shape = np.broadcast_shapes(_split(x, n)[0], _split(value, n)[0], *differing)
    y = np.array(np.broadcast_to(x, batch_shape + tile_shape))
    if uniform:
        y[(..., *(slice(s, s + p) for s, p in zip(starts, part, strict=True)))] = value
    else:
        y[_coordinates(batch_shape, starts, batch_shape, part)] = value
    return y


def _starts(index: tuple, tile_shape: tuple[int, ...], part: tuple[int, ...]) -> list[int] | list[np.ndarray]:
    """Where the part begins along each axis, moved into the tile if it lies outside. These are numbers if all blocks
    take the same part, which a slice then selects; otherwise arrays over the blocks.
    """
    if all(i.size == 1 for i in index):
        return [min(max(i.item(), 0), c // p - 1) * p for i, c, p in zip(index, tile_shape, part, strict=True)]
    return [np.clip(np.asarray(i, dtype=np.int64), 0, c // p - 1) * p
            for i, c, p in zip(index, tile_shape, part, strict=True)]


def _uniform(starts: list[int] | list[np.ndarray]) -> bool:
    return not starts or isinstance(starts[0], int)


def _coordinates(own: tuple[int, ...], starts: list[np.ndarray], batch_shape: tuple[int, ...],
                 part: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Index arrays, one per axis of a carrier, that select the part of each block.

    `own`: the leading dimensions of the carrier, `batch_shape` or ().
    """
    rank = len(batch_shape) + len(part)

    def along(k: int, size: int) -> np.ndarray:
        return np.arange(size).reshape((1,) * k + (size,) + (1,) * (rank - k - 1))

    blocks = [along(k, size) for k, size in enumerate(own)]
    first = len(batch_shape)
    within = [np.reshape(s, (1,) * (first - np.ndim(s)) + np.shape(s) + (1,) * len(part)) + along(first + k, p)
              for k, (s, p) in enumerate(zip(starts, part, strict=True))]
    return (*blocks, *within)


@op(item_rule, public=False, method=("tile", "item"))
def item(x, /):
    """The only element of a tile, as a scalar; in the IR it is a reshape.

    [SHAPE-9.one]  a tile of one element, of any rank, gives a scalar
    [SHAPE-9.count]  any other number of elements: TileTypeError
    """

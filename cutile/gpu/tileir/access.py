"""Functions that the lowering rules of memory ops share: views, indices, pointers, bounds, hints, orders. In memory, a
bool is a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutile.analysis.access import Access
from cutile.dtypes import DType, bool_, float4_e2m1fn, info
from cutile.gpu.tileir import arrays
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.arrays import Array
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.checking import takes_hint
from cutile.ir import nodes
from cutile.ops._op import TILES
from cutile.types import MemoryOrder, MemoryScope, PaddingMode

if TYPE_CHECKING:
    from cutile.gpu.tileir.lower import Lowering

SCOPES = {MemoryScope.NONE: None, MemoryScope.BLOCK: "tl_blk", MemoryScope.DEVICE: "device", MemoryScope.SYS: "sys"}
PADDINGS = {m: None if m is PaddingMode.UNDETERMINED else m.value for m in PaddingMode}


def memory_attributes(n: nodes.Op) -> dict:
    """The order and scope of an access, for an operation that has them."""
    order, scope = n.attrs.get("memory_order", MemoryOrder.WEAK), n.attrs.get("memory_scope", MemoryScope.NONE)
    return {"memory_ordering_semantics": order.value, "memory_scope": SCOPES[scope]}


def hints(l: Lowering, n: nodes.Op) -> dict | None:
    """The hints latency and allow_tma, for the target or for all targets.

    None if the version has no hints for the target.
    """
    given = {k: n.attrs[k] for k in ("latency", "allow_tma") if n.attrs.get(k) is not None}
    architecture = "default" if l.target is None else l.target.tool_name
    return {architecture: given} if given and takes_hint(l.version, architecture) else None


# ------------------------------------------------------------------ numbers


def resized(l: Lowering, v: Value, element: ty.Scalar, *, signed: bool) -> Value:
    """An integer tile with elements of another width."""
    if v.type.element is element:
        return v
    t = ty.tile(element, v.type.shape)
    if v.type.element.bits > element.bits:
        return l.op("trunci", [v], result=t)
    return l.op("exti", [v], result=t, signedness="signed" if signed else "unsigned")


def is_signed(dtype: DType) -> bool:
    return info(dtype).kind == "i"


def scalar_as_tile(l: Lowering, v: Value, shape: tuple[int, ...]) -> Value:
    """A scalar as a tile of that shape."""
    if v.type.shape == shape:
        return v
    if len(v.type.shape) != len(shape):
        v = l.op("reshape", [v], result=ty.tile(v.type.element, (1,) * len(shape)))
    return v if v.type.shape == shape else l.op("broadcast", [v], result=ty.tile(v.type.element, shape))


def broadcast_to(l: Lowering, x: Value, dims: tuple[int, ...]) -> Value:
    """x broadcast to a shape: new axes in front, then axes of size 1 repeated."""
    x = reshaped(l, x, (1,) * (len(dims) - len(x.type.shape)) + x.type.shape)
    return x if x.type.shape == dims else l.op("broadcast", [x], result=ty.tile(x.type.element, dims))


def reshaped(l: Lowering, v: Value, shape: tuple[int, ...]) -> Value:
    return v if v.type.shape == shape else l.op("reshape", [v], result=ty.tile(v.type.element, shape))


# ------------------------------------------------------------------ bool in memory


def from_memory(l: Lowering, v: Value, dtype: DType) -> Value:
    if dtype is not bool_:
        return v
    zero = l.b.constant(v.type, 0)
    return l.op("cmpi", [v, zero], comparison_predicate="not_equal", signedness="unsigned")


def to_memory(l: Lowering, v: Value, dtype: DType) -> Value:
    return resized(l, v, ty.i8, signed=False) if dtype is bool_ else v


# ------------------------------------------------------------------ views


def tensor_view(l: Lowering, a: Array) -> Value:
    return a.view if a.view is not None else arrays.tensor_view(l.b, a)


def tile_view(l: Lowering, a: Array, access: Access) -> Value:
    """The array cut into the tiles of an access. If they overlap or leave gaps, version 13.3 is needed."""
    check_packed(l, a)
    view = tensor_view(l, a)
    t = _tiles_type(view, access)
    if isinstance(t, ty.StridedView):
        l.needs("traversal_steps", "make_strided_view")
        return l.op("make_strided_view", [view], result=t)
    return a.tiles[t] if t in a.tiles else l.op("make_partition_view", [view], result=t)


def check_packed(l: Lowering, a: Array, sparse: int | None = None) -> None:
    """Refuse accesses to float4_e2m1fn that would split a byte: it holds two neighbours along the axis of stride 1."""
    if a.type.dtype is not float4_e2m1fn:
        return
    if a.strides.count(1) != 1:
        l.unsupported("Tile IR accesses tiles of float4_e2m1fn only in arrays of which exactly one axis is known to "
                      "have stride 1", help="pass a contiguous array")
    if sparse is not None and a.strides[sparse] == 1:
        l.unsupported("Tile IR has no access to float4_e2m1fn by positions along the axis of stride 1",
                      help="take the positions along another axis, or convert to another dtype on the host")


def _tiles_type(view: Value, access: Access) -> ty.PartitionView | ty.StridedView:
    padding = PADDINGS[PaddingMode.UNDETERMINED if access.padding is None else access.padding]
    if access.steps == access.shape:
        return ty.PartitionView(access.shape, view.type, access.order, padding)
    return ty.StridedView(access.shape, access.steps, view.type, access.order, padding)


def make_views(l: Lowering, a: Array, accesses: Sequence[Access]) -> None:
    """Make the views that these accesses need where the array is defined, outside the loops that use them."""
    a.view = arrays.tensor_view(l.b, a)
    for access in accesses:
        if access.unit != TILES:  # positions along one axis: a view of its own
            continue
        t = _tiles_type(a.view, access)
        if isinstance(t, ty.PartitionView) and t not in a.tiles:
            a.tiles[t] = l.op("make_partition_view", [a.view], result=t)


def tile_index(l: Lowering, a: Array, index: Sequence[nodes.Value]) -> list[Value]:
    """A tile index in the index dtype of the array [IDX-2]."""
    element = a.index.element
    return [resized(l, l.get(v), element, signed=is_signed(v.type.dtype)) for v in index]


def in_bounds(l: Lowering, access: Access) -> dict:
    """The attribute `inbounds`, if check_bounds=False promises it."""
    if access.check_bounds:
        return {}
    l.needs("check_bounds=False", "load_view_tko", "inbounds")
    return {"inbounds": (True,) * len(access.shape)}


# ------------------------------------------------------------------ pointers


def element_pointers(l: Lowering, a: Array, index: Sequence[nodes.Value], shape: tuple[int, ...],
                     check: bool) -> tuple[Value, Value | None]:
    """Pointers to the elements at tiles of indices, and a mask of those in range, None if `check` is False [IDX-3]."""
    offset, mask = None, None
    for v, size, stride in zip(index, a.sizes, a.strides, strict=True):
        v = l.before_broadcast(v)
        i = resized(l, l.get(v), ty.i64, signed=is_signed(v.type.dtype))
        if check:
            limit = scalar_as_tile(l, arrays.wide_dim(l.b, a, size), i.type.shape)
            inside = l.op("cmpi", [i, limit], comparison_predicate="less_than", signedness="unsigned")
            inside = broadcast_to(l, inside, shape)
            mask = inside if mask is None else l.op("andi", [mask, inside])
        if stride != 1:
            i = l.op("muli", [i, scalar_as_tile(l, arrays.wide_dim(l.b, a, stride), i.type.shape)])
        i = broadcast_to(l, i, shape)
        offset = i if offset is None else l.op("addi", [offset, i])
    base = scalar_as_tile(l, a.base, shape)
    return base if offset is None else l.op("offset", [base, offset]), mask


def offset_pointers(l: Lowering, a: Array, offset: nodes.Value) -> Value:
    """Pointers at offsets from the first element, counted in elements [RAW-5]."""
    i = resized(l, l.get(offset), ty.i64, signed=is_signed(offset.type.dtype))
    return l.op("offset", [scalar_as_tile(l, a.base, offset.type.shape), i])


def both(l: Lowering, x: Value | None, y: Value | None) -> Value | None:
    """A mask that is True where x and y are. None stands for a mask that is True everywhere."""
    return l.op("andi", [x, y]) if x is not None and y is not None else x if y is None else y


def load_pointers(l: Lowering, n: nodes.Op, pointers: Value, mask: Value | None, padding: Value | None,
                  dtype: DType) -> Value:
    """Load the elements at pointers. Where the mask is False, the result is the padding."""
    if mask is None:
        padding = None
    elif padding is not None:
        padding = to_memory(l, scalar_as_tile(l, padding, pointers.type.shape), dtype)
    v = l.memory("load_ptr_tko", [pointers, mask, padding], optimization_hints=hints(l, n), **memory_attributes(n))
    return from_memory(l, v, dtype)


def store_pointers(l: Lowering, n: nodes.Op, pointers: Value, value: Value, mask: Value | None, dtype: DType) -> None:
    if dtype is float4_e2m1fn:
        l.unsupported("Tile IR stores no elements of float4_e2m1fn by positions or offsets",
                      help="store a whole tile with ct.store, or convert to another dtype first: x.astype(ct.float16)")
    value = to_memory(l, scalar_as_tile(l, value, pointers.type.shape), dtype)
    l.memory("store_ptr_tko", [pointers, value, mask], optimization_hints=hints(l, n), **memory_attributes(n))

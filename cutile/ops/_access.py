"""Arguments that ops on memory share: indices, tile shapes, padding, masks, stored values, hints, memory orders.

Typing rules read them with the functions of the first part; meanings use those of the last part.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from cutile import settings
from cutile.dtypes import DType, bool_, info, int32, int_range
from cutile.errors import TileValueError
from cutile.ir.build import Builder
from cutile.ir.nodes import Value
from cutile.ir.terms import Const, Leaf, Term, Tuple, call_help, describe, is_array, is_scalar, is_tile
from cutile.ops import _numeric
from cutile.ops._arguments import about, const_bool, const_int, enum_arg, invalid, is_none, shape_arg, tile_arg
from cutile.ops._op import OpDef, Sig
from cutile.ops._promotion import broadcast, broadcast_arg, common_shape, implicit_cast, value_of
from cutile.types import MemoryOrder, MemoryScope, PaddingMode

# ------------------------------------------------------------------ indices and shapes


def tile_index(b: Builder, op: OpDef, name: str, t: Term, rank: int) -> list[Value]:
    """A tile index: one signed integer scalar per array axis; for rank 1 also a single scalar [LOAD-2]."""
    if rank == 1 and is_scalar(t):
        items: tuple[Term, ...] = (t,)
    elif isinstance(t, Tuple):
        items = t.items
    else:
        want = "a signed integer scalar or a tuple of one" if rank == 1 else f"a tuple of {rank} signed integer scalars"
        hint = f"write {name}={_example(rank)}, one tile index per axis of the array"
        if is_tile(t) and t.type.shape:
            hint = f"{_AT_INDICES}; {hint}"
        invalid(op, name, f"expected {want}, got {describe(t)}", help=call_help(t) or hint)
    if len(items) != rank:
        invalid(op, name, f"{len(items)} ind{'ex' if len(items) == 1 else 'ices'} for an array of rank {rank}",
                help=f"write {name}={_example(rank)}, one tile index per axis of the array")
    return [value_of(b, _signed_scalar(op, name, k, i)) for k, i in enumerate(items)]


_AT_INDICES = ("elements at a tile of indices are read by ct.gather(array, indices) and written by "
               "ct.scatter(array, indices, value)")


def _signed_scalar(op: OpDef, name: str, k: int, t: Term) -> Const | Leaf:
    if is_scalar(t) and info(t.type.dtype).kind == "i":
        return t
    hint = None
    if is_tile(t) and t.type.shape:
        hint = f"{_AT_INDICES}; a one-element tile becomes a scalar with x.item()"
    elif is_scalar(t) and info(t.type.dtype).floating:
        hint = "divide integers with //, or convert it: x.astype(ct.int32)"
    elif is_scalar(t) and info(t.type.dtype).arithmetic:
        hint = "convert it: x.astype(ct.int32)"
    elif is_array(t):
        hint = "load the index from the array first"
    invalid(op, name, f"expected a signed integer scalar at position {k}, got {describe(t)}", help=hint)


def _example(rank: int) -> str:
    names = "ijklmn"[:rank] if rank <= 6 else "i" * rank
    return "(" + ", ".join(names) + ("," if rank == 1 else "") + ")"


def tile_shape(op: OpDef, name: str, t: Term, rank: int) -> tuple[int, ...]:
    """The shape of a tile of an array: as many powers of two as it has axes, or () for single elements [LOAD-3]."""
    if isinstance(t, Tuple) and not t.items:
        return ()
    if rank == 0:
        invalid(op, name, f"an array of rank 0 has no tiles but its one element, got {describe(t)}",
                help=f"write {name}=()")
    shape = shape_arg(op, name, t)
    if len(shape) != rank:
        full = (1,) * (rank - len(shape)) + shape
        hint = (f"give one size per axis, for example {name}={full}, and drop axes of size 1 from the tile with "
                f"ct.reshape(tile, {shape})" if len(shape) < rank else "give one size per axis of the array")
        invalid(op, name, f"tile shape {shape} has rank {len(shape)}, but the array has rank {rank}", help=hint)
    return shape


def element_indices(b: Builder, op: OpDef, t: Term, rank: int) -> tuple[list[Value], tuple[int, ...]]:
    """Index tiles, one per array axis, broadcast to their common shape; for rank 1 also a single tile [GS-1]."""
    name = "indices"
    items = (t,) if rank == 1 and is_tile(t) else t.items if isinstance(t, Tuple) else None
    if items is None or len(items) != rank:
        got = describe(t) if items is None else f"{len(items)} of them"
        what = "an integer tile, or a tuple of one" if rank == 1 else f"a tuple of {rank} integer tiles"
        invalid(op, name, f"an array of rank {rank} needs {what}, got {got}",
                help="give one index tile per axis of the array; their shapes are broadcast together")
    for k, i in enumerate(items):
        if not is_tile(i) or not info(i.type.dtype).integral:
            invalid(op, name, f"expected an integer tile or scalar at position {k}, got {describe(i)}",
                    help="convert it: x.astype(ct.int32)" if is_tile(i) and info(i.type.dtype).arithmetic else None)
    if not items:
        return [], ()
    shape = common_shape(f"the indices of {op.name}()", *items)
    return [value_of(b, broadcast(b, i, shape)) for i in items], shape


# ------------------------------------------------------------------ values, masks, padding


def stored(b: Builder, op: OpDef, name: str, t: Term, dtype: DType, shape: tuple[int, ...] | None,
           what: str = "store into", container: str = "array") -> Value:
    """A value to be written to memory: implicitly cast to the array's dtype, then broadcast to `shape` [IMPL-1]."""
    article = "an" if dtype.name.startswith("int") else "a"
    with about(name):
        t = implicit_cast(b, tile_arg(op, name, t), dtype, where=f"to {what} {article} {dtype.name} {container}")
    return value_of(b, t if shape is None else broadcast_arg(b, op, name, t, shape))


def mask_arg(b: Builder, op: OpDef, t: Term, shape: tuple[int, ...]) -> Value | None:
    """None, or a bool tile that broadcasts to the index shape [GS-5]."""
    if is_none(t):
        return None
    m = tile_arg(op, "mask", t)
    if m.type.dtype is not bool_:
        invalid(op, "mask", f"expected a bool_ tile or None, got {describe(t)}",
                help="write a comparison, for example mask != 0" if info(m.type.dtype).arithmetic else None)
    return value_of(b, broadcast_arg(b, op, "mask", m, shape))


def padding_scalar_or_tile(b: Builder, op: OpDef, t: Term, dtype: DType, shape: tuple[int, ...]) -> Value:
    """A padding value, cast to the array's dtype; a scalar stays a scalar [GS-6]."""
    if is_none(t):
        invalid(op, "padding_value", "expected a tile or scalar, got None", help="write padding_value=0")
    with about("padding_value"):
        t = implicit_cast(b, tile_arg(op, "padding_value", t), dtype, where=f"to pad a tile of {dtype.name}")
    if t.type.shape:
        t = broadcast_arg(b, op, "padding_value", t, shape)
    return value_of(b, t)


def padding_mode(op: OpDef, t: Term, dtype: DType) -> PaddingMode:
    """The padding mode; refused if the dtype cannot express its value [PAD-1, PAD-2]."""
    mode = enum_arg(op, "padding_mode", t, PaddingMode)
    if mode in (PaddingMode.UNDETERMINED, PaddingMode.ZERO):
        return mode
    if not info(dtype).floating:
        invalid(op, "padding_mode", f"PaddingMode.{mode.name} needs a float array, but this one holds {dtype.name}",
                help="use ct.PaddingMode.ZERO, or ct.gather with a padding_value")
    f = info(dtype).format
    what, has = {PaddingMode.NEG_ZERO: ("negative zero", f.signed), PaddingMode.NAN: ("NaN", f.has_nan)}.get(
        mode, ("infinity", f.has_inf))
    if not has:
        lowest = f"{-f.max if f.signed else 0 if f.has_zero else 2.0**f.emin:g}"
        invalid(op, "padding_mode", f"{dtype.name} has no {what}, so an array of it has no PaddingMode.{mode.name}",
                help=f"use ct.PaddingMode.ZERO and put the value there with ct.where, after a cast to a dtype that has "
                     f"it; or use ct.gather with a padding_value from {lowest} to {f.max:g}")
    return mode


# ------------------------------------------------------------------ hints and memory arguments


def latency(op: OpDef, t: Term) -> int | None:
    """A hint from 1 to 10, or None [HINT-1]."""
    if is_none(t):
        return None
    n = const_int(op, "latency", t)
    if not 1 <= n <= 10:
        invalid(op, "latency", f"expected an integer from 1 to 10 or None, got {n}", cls=TileValueError)
    return n


def allow_tma(op: OpDef, t: Term) -> bool | None:
    return None if is_none(t) else const_bool(op, "allow_tma", t)


def hints(op: OpDef, latency_: Term, allow_tma_: Term | None = None, check_bounds: Term | None = None) -> dict:
    out = {} if check_bounds is None else {"check_bounds": const_bool(op, "check_bounds", check_bounds)}
    out["latency"] = latency(op, latency_)
    if allow_tma_ is not None:
        out["allow_tma"] = allow_tma(op, allow_tma_)
    return out


_O, _S = MemoryOrder, MemoryScope
LOAD_ORDERS = (_O.WEAK, _O.RELAXED, _O.ACQUIRE)
STORE_ORDERS = (_O.WEAK, _O.RELAXED, _O.RELEASE)
ATOMIC_ORDERS = (_O.RELAXED, _O.ACQUIRE, _O.RELEASE, _O.ACQ_REL)
SCOPES = (_S.BLOCK, _S.DEVICE, _S.SYS)


def memory_arguments(op: OpDef, allowed: Sequence[MemoryOrder], order: Term, scope: Term) -> dict:
    """memory_order and memory_scope [MEMARG-1…6, MEM-1]."""
    o = enum_arg(op, "memory_order", order, MemoryOrder)
    s = enum_arg(op, "memory_scope", scope, MemoryScope)
    if o not in allowed:
        invalid(op, "memory_order", f"MemoryOrder.{o.name} is not allowed here",
                help="one of " + ", ".join(f"ct.MemoryOrder.{x.name}" for x in allowed))
    if o is _O.WEAK and s is not _S.NONE:
        invalid(op, "memory_scope", f"a WEAK access has no scope, got MemoryScope.{s.name}",
                help="leave memory_scope out, or give memory_order=ct.MemoryOrder.RELAXED")
    if o is not _O.WEAK and s not in SCOPES:
        invalid(op, "memory_scope", f"MemoryOrder.{o.name} cannot go with MemoryScope.{s.name}",
                help="add memory_scope=ct.MemoryScope.DEVICE (or BLOCK, or SYS)")
    return {"memory_order": o, "memory_scope": s}


# ------------------------------------------------------------------ for meanings

_SPECIAL = {PaddingMode.ZERO: 0.0, PaddingMode.NEG_ZERO: -0.0, PaddingMode.NAN: float("nan"),
            PaddingMode.POS_INF: float("inf"), PaddingMode.NEG_INF: float("-inf")}


def fill_of(mode: PaddingMode, dtype: DType):
    """The value of elements outside an array, as a number that the carrier of `dtype` holds [PAD-1, PAD-2].

    ZERO reads as 2^-127 in float8_e8m0fnu, which has no zero. UNDETERMINED reads as ZERO; under the
    setting CUTILE_UNDETERMINED=poison, as NaN or the lowest value.
    """
    if mode is PaddingMode.UNDETERMINED:
        if settings.get("UNDETERMINED") == "poison":
            return _poison(dtype)
        mode = PaddingMode.ZERO
    return _fill(mode, dtype)


@functools.cache
def _fill(mode: PaddingMode, dtype: DType):
    i = info(dtype)
    if not i.floating:
        return i.carrier.type(0)
    return i.carrier.type(_numeric.encode(_SPECIAL[mode], dtype))


def _poison(dtype: DType):
    i = info(dtype)
    if i.kind == "b":
        return i.carrier.type(False)
    if i.floating:
        return i.carrier.type("nan" if i.format.has_nan else -i.format.max)
    return i.carrier.type(int_range(dtype)[0])


def in_index_dtype(index: Sequence[np.ndarray], sig: Sig) -> Sequence[np.ndarray]:
    """Tile indices; those wider than the index dtype of the array are cast to it [IDX-2]."""
    for i in index:
        if i.dtype.itemsize > _NARROWEST:
            limit = info(sig.x.index_dtype).carrier
            return [i if i.dtype.itemsize <= limit.itemsize else i.astype(limit) for i in index]
    return index


_NARROWEST = info(int32).carrier.itemsize  # bytes of an index


def with_rank(x: np.ndarray, rank: int, wanted: int) -> np.ndarray:
    """The carrier of a tile of rank `rank` as one of rank `wanted`, by axes of length 1 in front of the tile's axes."""
    if rank == wanted:
        return x
    batch = x.ndim - rank
    return x.reshape(x.shape[:batch] + (1,) * (wanted - rank) + x.shape[batch:])

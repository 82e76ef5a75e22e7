"""Atomic updates of array elements: by index, by raw offset, and by tile through a view.

An atomic acts once for each running block, even if all blocks give it the same operands.
"""

from __future__ import annotations

import numpy as np

from cutile._support.structs import structure
from cutile.dtypes import DType, bfloat16, float16, float32, float64, info, int32, int64, uint32, uint64
from cutile.ir.build import Builder
from cutile.ir.terms import NONE, Const, Leaf, Term, describe
from cutile.ops._access import (
    ATOMIC_ORDERS,
    element_indices,
    in_index_dtype,
    mask_arg,
    memory_arguments,
    stored,
    tile_index,
)
from cutile.ops._arguments import array_arg, const_bool, invalid, tile_arg
from cutile.ops._op import ATOMIC, ELEMENTS, OFFSETS, TILES, OpDef, op
from cutile.ops._promotion import value_of
from cutile.ops.views import offset_arg, raw_arg, view_arg
from cutile.types import MemoryOrder, MemoryScope, tile_type

ACQ_REL, DEVICE = MemoryOrder.ACQ_REL, MemoryScope.DEVICE
INTS: tuple[DType, ...] = (int32, uint32, int64, uint64)


@structure(frozen=True, slots=True)
class Kind:
    """A kind of update: what it does in words and as a formula, which array dtypes have it, and whether the update must
    have the dtype of the array."""

    text: str
    formula: str
    dtypes: tuple[DType, ...]
    same_dtype: bool = False


KINDS = {
    "xchg": Kind("replace each element by the update", "update", (*INTS, float32, float64)),
    "add": Kind("add the update to each element", "x + update", (*INTS, float32, float64, float16, bfloat16)),
    "max": Kind("replace each element by the larger of it and the update", "max(x, update)", INTS),
    "min": Kind("replace each element by the smaller of it and the update", "min(x, update)", INTS),
    "and": Kind("bitwise AND of each element with the update", "x & update", INTS, True),
    "or": Kind("bitwise OR of each element with the update", "x | update", INTS, True),
    "xor": Kind("bitwise exclusive OR of each element with the update", "x ^ update", INTS, True),
}
CAS = Kind("compare and swap", "desired where x == expected", (*INTS, float32, float64))

# ------------------------------------------------------------------ typing rules


def _check_dtype(op: OpDef, kind: Kind, dtype: DType) -> None:
    if dtype not in kind.dtypes:
        invalid(op, "array", f"Unsupported array dtype {dtype.name}",
                help="one of " + ", ".join(d.name for d in kind.dtypes))


def _update_value(b: Builder, op: OpDef, kind: Kind, name: str, t: Term, dtype: DType, shape: tuple[int, ...]):
    x = tile_arg(op, name, t)
    if kind.same_dtype and x.type.dtype is not dtype:
        hint = f"write ct.{dtype.name}({x.value})" if isinstance(x, Const) else f"convert it: x.astype(ct.{dtype.name})"
        invalid(op, name, f"expected dtype {dtype.name}, that of the array, got {describe(x)}"
                          f"{f' of dtype {x.type.dtype.name}' if isinstance(x, Const) else ''}", help=hint)
    return stored(b, op, name, x, dtype, shape, what="update")


def _index_rule(kind: Kind, *names: str):
    def rule(b: Builder, op, array, indices, check_bounds, memory_order, memory_scope, **updates) -> Term:
        a = array_arg(op, "array", array)
        dtype = a.type.dtype
        _check_dtype(op, kind, dtype)
        i, shape = element_indices(b, op, indices, a.type.ndim)
        values = [_update_value(b, op, kind, n, updates[n], dtype, shape) for n in names]
        attrs = memory_arguments(op, ATOMIC_ORDERS, memory_order, memory_scope)
        return Leaf(b.op1(op, a.value, i, *values, result=tile_type(dtype, shape),
                          check_bounds=const_bool(op, "check_bounds", check_bounds), want_old=True, **attrs))

    return rule


def _offset_rule(kind: Kind, *names: str):
    def rule(b: Builder, op, raw, offset, mask, memory_order, memory_scope, **updates) -> Term:
        a, o = raw_arg(op, raw), offset_arg(op, offset)
        dtype, shape = a.type.dtype, o.type.shape
        _check_dtype(op, kind, dtype)
        values = [_update_value(b, op, kind, n, updates[n], dtype, shape) for n in names]
        attrs = memory_arguments(op, ATOMIC_ORDERS, memory_order, memory_scope)
        return Leaf(b.op1(op, a.value, value_of(b, o), *values, mask_arg(b, op, mask, shape),
                          result=tile_type(dtype, shape), want_old=True, **attrs))

    return rule


def _tile_rule(kind: Kind):
    def rule(b: Builder, op, view, index, update) -> Term:
        v = view_arg(op, view)
        t = v.array.type
        _check_dtype(op, kind, t.dtype)
        i = tile_index(b, op, "index", index, t.ndim)
        shape = v.tile_shape or (1,) * t.ndim
        value = _update_value(b, op, kind, "update", update, t.dtype, shape)
        b.op(op, v.array.value, i, value, results=(), steps=v.steps)
        return NONE

    return rule


# ------------------------------------------------------------------ compare and swap


@op(_index_rule(CAS, "expected", "desired"), operands="array *indices expected desired", effect=ATOMIC,
    accesses=ELEMENTS, exact=True,
    signature=lambda array, indices, expected, desired, /, *, check_bounds=True, memory_order=ACQ_REL,
    memory_scope=DEVICE: None)
def atomic_cas(array, indices, expected, desired, /, *, check_bounds, memory_order, memory_scope, want_old, sig, ctx):
    """Replace each element by `desired` where it equals `expected`. Returns the values before.

    Indices are as for gather. Each element is updated atomically; the order of updates to one element is unspecified.

    [ATOM-1.cas.type]  the result has the dtype of the array and the shape of the indices
    [ATOM-1.cas.old]  it is what the elements were before
    [ATOM-1.cas.options]  there is no mask (TileTypeError)
    [ATOM-2.cas.i32]  int32: has it
    [ATOM-2.cas.u32]  uint32: has it
    [ATOM-2.cas.i64]  int64: has it
    [ATOM-2.cas.u64]  uint64: has it
    [ATOM-2.cas.f32]  float32: has it
    [ATOM-2.cas.f64]  float64: has it
    [ATOM-2.cas.f16]  float16: is refused (TileTypeError)
    [ATOM-2.cas.bf16]  bfloat16: is refused (TileTypeError)
    [ATOM-2.cas.others]  arrays of other dtypes are refused (TileTypeError)
    [ATOM-3.cas.broadcast]  expected and desired broadcast to the index shape, or are refused (TileTypeError)
    [ATOM-3.cas.cast]  they are implicitly cast to the dtype of the array, or refused (IMPL-1, IMPL-2)
    [ATOM-4.cas]  of several updates of one element, each sees what the one before left
    [MEM-3]  a tile-wide atomic is one independent update per element
    [ATOM-5.swap]  elements that equal `expected` become `desired`, others stay
    [ATOM-5.zero]  floats are compared by their bits: -0.0 is not +0.0
    [ATOM-5.nan]  floats are compared by their bits: a NaN equals an identical NaN
    [ATOM-5.old]  the result is the old value whether or not it matched
    [ATOM-6.cas]  where an index is out of range, nothing happens and the result is `expected`
    [ATOM-7.cas]  check_bounds=False with an index out of range is undefined: nothing happens here
    """
    shape = sig.result.shape
    done, old = array.update("cas", indices, (expected, desired), None, shape, ctx.batch_shape, want_old)
    return np.where(done, old, expected)


@op(_offset_rule(CAS, "expected", "desired"), operands="array offset expected desired mask?", effect=ATOMIC,
    accesses=OFFSETS, exact=True, public=False, method=("raw", "atomic_cas_offset"),
    signature=lambda raw, offset, expected, desired, /, *, mask=None, memory_order=ACQ_REL, memory_scope=DEVICE: None)
def atomic_cas_offset(array, offset, expected, desired, mask, /, *, memory_order, memory_scope, want_old, sig, ctx):
    """atomic_cas of the elements at offsets from the first one of an array.

    [RAW-3.element]  elements that equal `expected` become `desired`; the result is what they were before
    [RAW-3.offset]  offsets are as for load_offset
    [RAW-3.dtype]  dtypes, broadcasts and casts are those of atomic_cas (TileTypeError)
    [RAW-3.mask]  where the mask is False, nothing happens and the result is `expected`
    [RAW-3.mask.type]  the mask is None or of dtype bool_ (TileTypeError)
    [RAW-3.foreign]  memory that is not the argument's own is undefined: nothing happens here, the result is `expected`
    """
    shape = sig.result.shape
    done, old = array.raw.update("cas", (offset,), (expected, desired), mask, shape, ctx.batch_shape, want_old)
    return np.where(done, old, expected)


# ------------------------------------------------------------------ read, modify, write


def _dtype_clauses(kind: str) -> str:
    """One line per dtype that some update has."""
    has = KINDS[kind].dtypes
    return "\n    ".join(f"[ATOM-2.{kind}.{info(d).short}]  {d.name}: "
                         f"{'has it' if d in has else 'is refused (TileTypeError)'}" for d in KINDS["add"].dtypes)


def _clauses(kind: str) -> str:
    """The clauses of one kind of update about its result."""
    if kind == "add":
        return """
    [ATOM-4.int]  integers wrap
    [ATOM-4.float]  floats round to nearest even after each update
    [ATOM-4.f16]  float16 rounds to float16 after each update
    [ATOM-4.bf16]  bfloat16 rounds to bfloat16 after each update"""
    if kind in ("max", "min"):
        return f"""
    [ATOM-2.{kind}.sign]  integers compare as their dtype says, signed or unsigned"""
    if kind in ("and", "or", "xor"):
        return f"""
    [ATOM-3.{kind}.exact]  an update of another dtype than the array's is refused (TileTypeError)
    [ATOM-3.{kind}.literal]  a literal counts as int32 (TileTypeError)"""
    return ""


def _define(kind: str) -> tuple[OpDef, OpDef, OpDef | None]:
    """The ops of one kind: by index, by offset, and by tile of a view, which an exchange lacks."""
    row = KINDS[kind]
    names = ", ".join(d.name for d in row.dtypes)

    def by_index(array, indices, update, /, *, check_bounds, memory_order, memory_scope, want_old, sig, ctx):
        _, old = array.update(kind, indices, (update,), None, sig.result.shape, ctx.batch_shape, want_old)
        return old

    def by_offset(array, offset, update, mask, /, *, memory_order, memory_scope, want_old, sig, ctx):
        _, old = array.raw.update(kind, (offset,), (update,), mask, sig.result.shape, ctx.batch_shape, want_old)
        return old

    def by_tile(array, index, update, /, *, steps, sig, ctx):
        array.update_tile(kind, in_index_dtype(index, sig), update, sig.operands[-1].shape, steps, ctx.batch_shape)

    by_index.__doc__ = f"""Atomically {row.text}. Returns the values before.

    Indices are as for gather. The order of updates to one element is unspecified: row-major within a block here.

    [ATOM-1.{kind}.type]  the result has the dtype of the array and the shape of the indices
    [ATOM-1.{kind}.old]  it is what the elements were before
    [ATOM-1.{kind}.options]  there is no mask (TileTypeError)
    {_dtype_clauses(kind)}
    [ATOM-2.{kind}.others]  arrays of other dtypes are refused (TileTypeError)
    [ATOM-3.{kind}.broadcast]  the update broadcasts to the index shape, or is refused (TileTypeError)
    [ATOM-3.{kind}.cast]  it is implicitly cast to the dtype of the array, or refused (IMPL-1, IMPL-2)
    [ATOM-4.{kind}]  each element becomes: {row.formula}
    [ATOM-4.{kind}.order]  several updates of one element happen one after another, in any order{_clauses(kind)}
    [ATOM-6.{kind}]  where an index is out of range, nothing happens; the result there is unspecified: 0 here
    [ATOM-7.{kind}]  check_bounds=False with an index out of range is undefined: nothing happens here
    """
    by_offset.__doc__ = f"""Atomically {row.text}, at offsets from the first element of an array.

    Returns the values before.

    [RAW-4.{kind}.element]  elements become what atomic_{kind} makes of them; the result is what they were before
    [RAW-4.{kind}.offset]  offsets are as for load_offset
    [RAW-4.{kind}.dtype]  dtypes, broadcasts and casts are those of atomic_{kind} (TileTypeError)
    [RAW-4.{kind}.mask]  where the mask is False, nothing happens; the result there is unspecified: 0 here
    [RAW-4.{kind}.mask.type]  the mask is None or of dtype bool_ (TileTypeError)
    [RAW-4.{kind}.foreign]  memory that is not the argument's own is undefined: nothing happens here, the result is 0
    """
    by_tile.__doc__ = f"""Atomically {row.text}, for the tile of a view at a tile index; no result.

    [TVOP-4.{kind}]  each element is updated as by atomic_{kind}; elements outside the array are left out
    [TVOP-4.{kind}.dtype]  the array is of {names} (TileTypeError)
    [TVOP-4.{kind}.update]  the update broadcasts to the tile shape and is cast as by atomic_{kind} (TileTypeError)
    [TVOP-4.{kind}.result]  the result is None
    """
    options = {"effect": ATOMIC, "exact": True}
    indexed = op(_index_rule(row, "update"), name=f"atomic_{kind}", operands="array *indices update",
                 accesses=ELEMENTS, tileir=kind, **options,
                 signature=lambda array, indices, update, /, *, check_bounds=True, memory_order=ACQ_REL,
                 memory_scope=DEVICE: None)(by_index)
    offset = op(_offset_rule(row, "update"), name=f"atomic_{kind}_offset", operands="array offset update mask?",
                accesses=OFFSETS, tileir=kind, public=False, method=("raw", f"atomic_{kind}_offset"), **options,
                signature=lambda raw, offset, update, /, *, mask=None, memory_order=ACQ_REL,
                memory_scope=DEVICE: None)(by_offset)
    if kind == "xchg":
        return indexed, offset, None
    tiled = op(_tile_rule(row), name=f"view_atomic_store_{kind}", operands="array *index update", accesses=TILES,
               tileir=kind, public=False, method=("view", f"atomic_store_{kind}"), **options,
               signature=lambda view, index, update, /: None)(by_tile)
    return indexed, offset, tiled


_FORMS = {kind: _define(kind) for kind in KINDS}
BY_INDEX, BY_OFFSET = (tuple(forms[k] for forms in _FORMS.values()) for k in (0, 1))
BY_TILE = tuple(forms[2] for forms in _FORMS.values() if forms[2] is not None)

atomic_xchg, atomic_xchg_offset, _ = _FORMS["xchg"]
atomic_add, atomic_add_offset, view_atomic_store_add = _FORMS["add"]
atomic_max, atomic_max_offset, view_atomic_store_max = _FORMS["max"]
atomic_min, atomic_min_offset, view_atomic_store_min = _FORMS["min"]
atomic_and, atomic_and_offset, view_atomic_store_and = _FORMS["and"]
atomic_or, atomic_or_offset, view_atomic_store_or = _FORMS["or"]
atomic_xor, atomic_xor_offset, view_atomic_store_xor = _FORMS["xor"]

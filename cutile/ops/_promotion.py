"""How operands come to one dtype and shape: common dtypes, implicit casts, broadcasting [PROMO-*, IMPL-*, BCAST-*].

Casts, broadcasts and constants become nodes where they are needed. The families that define these ops (astype,
broadcast_to and constant) import this file, so it takes the ops from the registry.
"""

from __future__ import annotations

import functools

from cutile.dtypes import DType, info, int_range, promote
from cutile.errors import TileTypeError, TileValueError
from cutile.ir.build import Builder
from cutile.ir.nodes import Value
from cutile.ir.terms import Const, Leaf, phrase
from cutile.ops._arguments import invalid, refuse
from cutile.ops._constants import encode, strict
from cutile.ops._op import ATOMIC, ELEMENTS, OpDef, lookup
from cutile.types import TileType, tile_type


def value_of(b: Builder, t: Const | Leaf) -> Value:
    """The IR value of a tile, array or list term; a constant becomes a `constant` op."""
    if isinstance(t, Leaf):
        return t.value
    return b.op1(lookup("constant"), result=tile_type(t.dtype), value=encode(t.value, t.dtype))


# ------------------------------------------------------------------ promotion and casts

_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2}


def category(d: DType) -> int:
    return _CATEGORY[info(d).kind]


def common_dtype(x: Const | Leaf, y: Const | Leaf, *, check_range: bool = True, what: str = "operation") -> DType:
    """The dtype in which two operands meet [PROMO-3…5]; of two loose constants, that of the higher category."""
    dx, dy = x.type.dtype, y.type.dtype
    lx, ly = isinstance(x, Const) and x.loose, isinstance(y, Const) and y.loose
    if "p" in (info(dx).kind, info(dy).kind):
        if dx is dy:
            return dx
        refuse(f"no common dtype for {dx.name} and {dy.name}")
    if lx or ly:
        cx, cy = category(dx), category(dy)
        if cx != cy:
            d = dx if cx > cy else dy
        elif lx and ly:
            d = dx if dx.bitwidth >= dy.bitwidth else dy
        else:
            d = dy if lx else dx
        if check_range:
            for t, is_loose in ((x, lx), (y, ly)):
                if is_loose and info(d).integral:
                    check_fits(t, d)
        return d
    d = promote(dx, dy)
    if d is None:
        refuse(f"no implicit promotion between {dx.name} and {dy.name} in this {what}",
               help=f"convert one side: x.astype(ct.{dx.name}) or y.astype(ct.{dy.name})")
    return d


def check_fits(t: Const, d: DType) -> None:
    """A loose integer meeting an integer dtype must fit it [PROMO-3]."""
    lo, hi = int_range(d)
    if not lo <= t.value <= hi:
        refuse(f"the constant {t.value} does not fit {d.name} (range {lo} … {hi})", cls=TileValueError,
               help=f"convert the other operand to a wider dtype first, or write ct.{d.name}({t.value}) to wrap")


def cast(b: Builder, t: Const | Leaf, dtype: DType) -> Const | Leaf:
    """An operand converted to `dtype`, with default rounding [IMPL-3]; a constant becomes a strict constant [ENC-1]."""
    if t.type.dtype is dtype and not (isinstance(t, Const) and t.loose):
        return t
    if isinstance(t, Const):
        return strict(t.value, dtype)
    return Leaf(b.op1(lookup("astype"), t.value, result=t.type.with_dtype(dtype), rounding_mode=None))


def implicit_cast(b: Builder, t: Const | Leaf, dtype: DType, *, where: str) -> Const | Leaf:
    """The implicit cast of stores, atomics, padding and combine results [IMPL-1, IMPL-2].

    `where` completes the message: "to store into a float16 array".
    """
    if isinstance(t, Const) and t.loose:
        i = info(dtype)
        if i.kind == "b" and (isinstance(t.value, float) or t.value not in (0, 1)):
            refuse(
                f"the constant {t.value!r} cannot be converted implicitly to bool_ {where}", help="write True or False"
            )
        if i.integral:
            if isinstance(t.value, float):
                refuse(f"the float constant {t.value!r} cannot be converted implicitly to {dtype.name} {where}",
                       help=f"write an integer, or ct.{dtype.name}({t.value!r}) to truncate")
            check_fits(t, dtype)
        return cast(b, t, dtype)
    s = t.type.dtype
    if s is not dtype and promote(s, dtype) is not dtype:
        if info(s).floating and info(dtype).kind in "iu":
            bits = f". For its bits write ct.bitcast(value, ct.{dtype.name})" if s.bitwidth == dtype.bitwidth else ""
            error = TileTypeError(f"{phrase(t)} cannot be converted implicitly to {dtype.name} {where}",
                                  help=f"let what takes the value have dtype {s.name}: value.astype(ct.{dtype.name}) "
                                       f"would cut off fractions{bits}")
        else:
            error = TileTypeError(f"{phrase(t)} cannot be converted implicitly to {dtype.name} {where}",
                                  help=f"convert explicitly: value.astype(ct.{dtype.name})")
        error._conversion = s, dtype
        raise error
    return cast(b, t, dtype)


# ------------------------------------------------------------------ broadcasting


@functools.lru_cache(maxsize=1024)
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The common shape by NumPy's rule [BCAST-1]; None if there is none."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    out = []
    for dims in zip(*padded, strict=True):
        big = {d for d in dims if d != 1}
        if len(big) > 1:
            return None
        out.append(big.pop() if big else 1)
    return tuple(out)


def common_shape(what: str, *terms: Const | Leaf) -> tuple[int, ...]:
    shapes = [t.type.shape for t in terms]
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    shape = broadcast_shapes(*shapes)
    if shape is None:
        refuse(f"shapes {' and '.join(map(str, dict.fromkeys(shapes)))} cannot be broadcast together in {what}",
               help="dimensions, aligned at the end, must be equal or 1; insert an axis with x[:, None], "
                    "or change the shape with ct.reshape")
    return shape


@functools.lru_cache(maxsize=1024)  # asked at run time too
def broadcastable_to(src: tuple[int, ...], dst: tuple[int, ...]) -> bool:
    """One-directional broadcasting [BCAST-4]."""
    return len(src) <= len(dst) and all(s in (1, d) for s, d in zip(src[::-1], dst[::-1], strict=False))


def broadcast(b: Builder, t: Const | Leaf, shape: tuple[int, ...]) -> Const | Leaf:
    """`t` broadcast to `shape`, which must be possible."""
    if t.type.shape == shape:
        return t
    v = value_of(b, t)
    return Leaf(b.op1(lookup("broadcast_to"), v, result=tile_type(t.type.dtype, shape), shape=shape))


def broadcast_arg(b: Builder, op: OpDef, name: str, t: Const | Leaf, shape: tuple[int, ...]) -> Const | Leaf:
    """Broadcast an argument in one direction, or refuse it [BCAST-4]."""
    if not broadcastable_to(t.type.shape, shape):
        lower = len(t.type.shape) > len(shape) and (op.effect == ATOMIC or op.accesses.unit == ELEMENTS)
        invalid(op, name, f"shape {t.type.shape} cannot be broadcast to {shape}", help=lower and (
            "the indices are those of elements, one tile per axis: (rows[:, None], cols[None, :])") or None)
    return broadcast(b, t, shape)


def meet(b: Builder, dtype: DType, what: str, *terms: Const | Leaf) -> tuple[tuple[Value, ...], TileType]:
    """Operands cast to `dtype` and broadcast to their common shape, as values, with the type they now share."""
    shape = common_shape(what, *terms)
    result = tile_type(dtype, shape)
    values = []
    for t in terms:
        if type(t) is not Leaf or t.value.type is not result:
            t = broadcast(b, cast(b, t, dtype), shape)
        values.append(value_of(b, t))
    return tuple(values), result

"""The toolkit of typing rules: reading arguments, promotion, implicit casts, broadcasting, folding.

A rule is called as `rule(b, op, **terms)`, one term for each parameter of the op's signature, defaults included
(as terms), `*args` as a Tuple. It appends nodes through the builder `b` and returns the result's term. It raises
TileTypeError and its kin without a location; the caller adds the user's line. Poison never reaches a rule.

Rules used by one family stand in that family's file; what several families share stands here.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TypeVar

import numpy as np

from cutile.dtypes import (
    DType,
    bool_,
    float32,
    from_foreign,
    info,
    int32,
    int64,
    int_range,
    promote,
    uint64,
)
from cutile.errors import TileError, TileTypeError, TileValueError
from cutile.ir.build import Builder
from cutile.ir.nodes import Value
from cutile.ir.terms import (
    Const,
    FString,
    Leaf,
    Static,
    Term,
    Tuple,
    View,
    call_help,
    describe,
    digits,
    is_array,
    is_scalar,
    is_tile,
    phrase,
    plain,
)
from cutile.ops import _numeric
from cutile.ops._op import OpDef, Sig
from cutile.types import TileType, is_power_of_two

E = TypeVar("E", bound=enum.Enum)

# ------------------------------------------------------------------ refusing


def invalid(
    op: OpDef | str, name: str, why: str, *, help: str | None = None, cls: type[TileError] = TileTypeError
) -> NoReturn:
    """Refuse the argument `name` of an op [GEN-1, EXC-4]."""
    raise cls(
        f'Invalid argument "{name}" of {op if isinstance(op, str) else op.spelling}(): {why}', help=help, argument=name
    )


def refuse(message: str, *, help: str | None = None, cls: type[TileError] = TileTypeError) -> NoReturn:
    raise cls(message, help=help)


@contextmanager
def about(argument: str) -> Iterator[None]:
    """What is refused inside is the argument for this parameter of the op: an error points at it."""
    try:
        yield
    except TileError as e:
        e.argument = e.argument or argument
        raise


# ------------------------------------------------------------------ reading arguments


def tile_arg(op: OpDef, name: str, t: Term) -> Const | Leaf:
    """A tile or scalar; anything else is refused."""
    if is_tile(t):
        return t
    hint = None
    if is_array(t):
        hint = load_first(t)
    elif isinstance(t, Tuple):
        hint = ("the index comes before the tile" if name == "tile" else
                "a tuple of scalars becomes a tile with ct.astile(values, dtype=...)")
    else:
        hint = call_help(t)
    invalid(op, name, f"expected a tile or scalar, got {describe(t)}", help=hint)


def load_first(array: Leaf) -> str:
    """What to write where an array stands for its elements."""
    zeros = ", ".join(["0"] * array.type.ndim) + ("," if array.type.ndim == 1 else "")
    return (f"an array is memory, not a value: load a tile from it first, for example "
            f"ct.load(array, index=({zeros}), shape=...)")


def array_arg(op: OpDef, name: str, t: Term) -> Leaf:
    if is_array(t):
        return t
    hint = "pass the array itself, not a tile loaded from it" if is_tile(t) else (
        "write view.load(index), view.store(index, tile)" if isinstance(t, View) else call_help(t))
    invalid(op, name, f"expected an array, got {describe(t)}", help=hint)


def scalar_arg(op: OpDef, name: str, t: Term) -> Const | Leaf:
    t = tile_arg(op, name, t)
    if t.type.shape != ():
        invalid(op, name, f"expected a scalar, got {describe(t)}")
    return t


def int_scalar_arg(op: OpDef, name: str, t: Term, *, signed: bool = True) -> Const | Leaf:
    """A signed (or, with signed=False, any) integer scalar; bool is none."""
    what = "signed integer scalar" if signed else "integer scalar"
    if not is_scalar(t):
        invalid(op, name, f"expected a {what}, got {describe(t)}", help=call_help(t))
    i = info(t.type.dtype)
    if not i.integral or signed and i.kind != "i":
        # A loose literal beyond int64 counts as uint64.
        invalid(op, name, f"expected a {what}, got {describe(t)}",
                help="divide integers with //" if i.floating else None)
    return t


def items_arg(op: OpDef, name: str, t: Term) -> tuple[Term, ...]:
    if not isinstance(t, Tuple):
        invalid(op, name, f"expected a tuple, got {describe(t)}",
                help=call_help(t) or f"write it as a tuple: {name}=(…, …)")
    return t.items


def const_int(op: OpDef, name: str, t: Term) -> int:
    """An integer constant of any integer dtype [CONST-3]."""
    if isinstance(t, Const) and info(t.dtype).integral:
        return t.value
    _not_constant(op, name, "an integer constant", t)


def const_bool(op: OpDef, name: str, t: Term) -> bool:
    if isinstance(t, Const) and t.dtype is bool_:
        return t.value
    _not_constant(op, name, "a bool constant (True or False)", t)


def const_str(op: OpDef, name: str, t: Term) -> str:
    if isinstance(t, Static) and isinstance(t.obj, str):
        return str.__str__(t.obj)  # of a string enum's member, its value
    invalid(op, name, f"expected a string constant, got {describe(t)}",
            help="write a plain string; print and ct.printf show values" if isinstance(t, FString) else None)


def _not_constant(op: OpDef, name: str, want: str, t: Term) -> NoReturn:
    if isinstance(t, Leaf) and is_tile(t):
        invalid(
            op,
            name,
            f"expected {want}, but the given value is not constant ({describe(t)})",
            help="constants are literals, captured globals, tile shapes, kernel parameters annotated "
                 "ct.Constant[int], and the variable of `for k in ct.static_iter(range(…))`",
        )
    invalid(op, name, f"expected {want}, got {describe(t)}")


def is_none(t: Term) -> bool:
    return isinstance(t, Static) and t.obj is None


def dtype_arg(op: OpDef, name: str, t: Term) -> DType:
    """A dtype, ours or a foreign one [DT-8]."""
    d = from_foreign(t.obj) if isinstance(t, Static) else None
    if d is None:
        hint = None
        if isinstance(t, Static) and t.obj in (int, float, bool):
            hint = {int: "ct.int32", float: "ct.float32", bool: "ct.bool_"}[t.obj]
        elif isinstance(t, Static) and isinstance(t.obj, str):
            hint = f"ct.{t.obj}, without quotes"
        invalid(op, name, f"expected a dtype, got {describe(t)}", help=hint and f"write {hint}")
    return d


def numeric_dtype_arg(op: OpDef, name: str, t: Term) -> DType:
    d = dtype_arg(op, name, t)
    if info(d).kind == "p":
        invalid(op, name, f"expected a numeric dtype, got {d.name}")
    return d


def enum_arg(op: OpDef, name: str, t: Term, cls: type[E], *, optional: bool = False) -> E | None:
    """A member of `cls`, or the name of one as a string [CV-4]; with optional=True also None."""
    obj = t.obj if isinstance(t, Static) else t
    if isinstance(obj, cls) or optional and obj is None:
        return obj
    if isinstance(obj, str):
        if obj in cls.__members__:
            return cls[obj]
        invalid(op, name, f"{obj!r} is no member name of ct.{cls.__name__}",
                help="one of " + ", ".join(repr(n) for n in cls.__members__))
    invalid(op, name, f"expected a member of ct.{cls.__name__}, got {describe(t)}",
            help="one of " + ", ".join(f"ct.{cls.__name__}.{n}" for n in cls.__members__))


def axis_arg(op: OpDef, name: str, t: Term, ndim: int) -> int:
    """An axis constant, normalised to 0 … ndim-1."""
    if op.name in ("max", "min") and is_tile(t) and (t.type.shape or info(t.type.dtype).floating):
        invalid(op, name, f"expected an integer constant, got {describe(t)}",
                help=f"the {'larger' if op.name == 'max' else 'smaller'} of two is ct.{op.name}imum(x, y)")
    axis = const_int(op, name, t)
    if not -ndim <= axis < ndim:
        invalid(op, name, f"axis {axis} is out of range for rank {ndim}")
    return axis % ndim


def shape_arg(op: OpDef, name: str, t: Term, *, rank: int | None = None, int_ok: bool = True, pow2: bool = True,
              what: str = "tile shape") -> tuple[int, ...]:
    """A shape: a tuple of constants, or a single one for rank 1; each a power of two [TILE-8]."""
    if is_tile(t) and int_ok:
        items: tuple[Term, ...] = (t,)
    elif isinstance(t, Tuple):
        items = t.items
    else:
        invalid(op, name, f"expected a {what}: a tuple of integer constants{' or a single one' if int_ok else ''}, "
                          f"got {describe(t)}",
                help=f"write {name}=({t.value},)" if isinstance(t, Const) and not int_ok else call_help(t))
    shape = tuple(const_int(op, name, i) for i in items)
    if rank is not None and len(shape) != rank:
        invalid(op, name, f"{what} {shape} has rank {len(shape)}, expected rank {rank}")
    if pow2:
        for d in shape:
            check_dim(op, name, d, shape)
    return shape


def check_dim(op: OpDef, name: str, d: int, shape: tuple[int, ...]) -> None:
    if is_power_of_two(d):
        return
    hint = None
    if d > 0:
        up = 1 << (d - 1).bit_length()
        hint = (f"use {up} (or {up // 2}): beyond an array's end stores write nothing, and loads read what "
                f"padding_mode says, for example padding_mode=ct.PaddingMode.ZERO")
    invalid(op, name, f"every dimension of a tile must be a positive power of two, got {d} in {shape}", help=hint)


# ------------------------------------------------------------------ constants


def loose(value: bool | int | float) -> Const:
    """A loosely typed constant [LOOSE-1, LOOSE-2]."""
    value = plain(value)
    if isinstance(value, bool):
        return Const(value, bool_, True)
    if isinstance(value, int):
        for d in (int32, int64, uint64):
            lo, hi = int_range(d)
            if lo <= value <= hi:
                return Const(value, d, True)
        refuse(f"the integer constant {digits(value)} fits neither int64 nor uint64", cls=TileValueError)
    if isinstance(value, float):
        return Const(value, float32, True)
    refuse(f"a constant expression gave {value!r} ({type(value).__name__}), which is no tile-code number")


def strict(value: bool | int | float, dtype: DType) -> Const:
    """A strictly typed constant: `value` converted to `dtype` [STRICT-2, ENC-1…3]."""
    return Const(encode(value, dtype), dtype, False)


def encode(value: bool | int | float, dtype: DType) -> bool | int | float:
    """`value` as a constant of `dtype`; a value that the format cannot express is refused [ENC-2]."""
    try:
        return _numeric.encode(value, dtype)
    except ValueError as e:
        refuse(f"the constant {value!r} cannot be converted to {dtype.name}: {e}", cls=TileValueError)


def const_term(value) -> Term:
    """The term of a compile-time Python object: a loose constant, a tuple, or the object itself."""
    if isinstance(value, enum.Enum) and not isinstance(value, int):
        return Static(value)
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        return loose(value)
    if isinstance(value, tuple) and type(value) is tuple:
        return Tuple(tuple(const_term(v) for v in value))
    return Static(value)


def value_of(b: Builder, t: Const | Leaf) -> Value:
    """The IR value of a tile, array or list term; a constant becomes a `constant` op."""
    if isinstance(t, Leaf):
        return t.value
    return b.op1(_ops().constant, result=TileType(t.dtype), value=encode(t.value, t.dtype))


def _ops():
    from cutile.ops import create  # the few ops that rules themselves make

    return create


# ------------------------------------------------------------------ promotion and casts

_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2}
_CATEGORY_NAMES = ("boolean", "integral", "float")


def category(d: DType) -> int:
    return _CATEGORY[info(d).kind]


def common_dtype(x: Const | Leaf, y: Const | Leaf, *, check_range: bool = True, what: str = "operation") -> DType:
    """The dtype in which two operands meet [PROMO-3…5]. Loose ⊕ loose meets in the higher category's own dtype."""
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
    """Plain conversion with default rounding [IMPL-3]; constants convert as constants [ENC-1]."""
    if t.type.dtype is dtype and not (isinstance(t, Const) and t.loose):
        return t
    if isinstance(t, Const):
        return strict(t.value, dtype)
    from cutile.ops import convert

    return Leaf(b.op1(convert.astype, t.value, result=t.type.with_dtype(dtype), rounding_mode=None))


def implicit_cast(b: Builder, t: Const | Leaf, dtype: DType, *, where: str) -> Const | Leaf:
    """Convert where the language converts silently: stores, atomics, padding, combine results [IMPL-1, IMPL-2].

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
        bits = info(s).floating and info(dtype).integral and s.bitwidth == dtype.bitwidth
        refuse(f"{phrase(t)} cannot be converted implicitly to {dtype.name} {where}",
               help=f"convert explicitly: value.astype(ct.{dtype.name})"
                    + (f", or, for its bits, ct.bitcast(value, ct.{dtype.name})" if bits else ""))
    return cast(b, t, dtype)


# ------------------------------------------------------------------ broadcasting


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The common shape by NumPy's rule [BCAST-1], or None."""
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
    """`t` at `shape`, which it must be broadcastable to."""
    if t.type.shape == shape:
        return t
    from cutile.ops import shape as shape_ops

    v = value_of(b, t)
    return Leaf(b.op1(shape_ops.broadcast_to, v, result=TileType(t.type.dtype, shape), shape=shape))


def broadcast_arg(b: Builder, op: OpDef, name: str, t: Const | Leaf, shape: tuple[int, ...]) -> Const | Leaf:
    """Broadcast an argument in one direction, or refuse it [BCAST-4]."""
    if not broadcastable_to(t.type.shape, shape):
        lower = len(t.type.shape) > len(shape) and op.family in ("memory", "atomics")
        invalid(op, name, f"shape {t.type.shape} cannot be broadcast to {shape}", help=lower and (
            "the indices are those of elements, one tile per axis: (rows[:, None], cols[None, :])") or None)
    return broadcast(b, t, shape)


def meet(b: Builder, dtype: DType, what: str, *terms: Const | Leaf) -> tuple[tuple[Value, ...], TileType]:
    """Operands cast to `dtype` and broadcast to their common shape, as values, with the type they now share."""
    shape = common_shape(what, *terms)
    values = tuple(value_of(b, broadcast(b, cast(b, t, dtype), shape)) for t in terms)
    return values, TileType(dtype, shape)


# ------------------------------------------------------------------ folding


def fold(op: OpDef, terms: Sequence[Const], dtype: DType | None = None, *, in_dtype: DType | None = None,
         **attrs) -> Const:
    """Fold an op on constant scalars [GEN-7].

    All loose: Python arithmetic, by the op's `loose=` function; the result is loose. Otherwise the operands are
    converted to `in_dtype` (default: `dtype`) and go through the meaning; the result is a strict `dtype` constant.
    """
    if all(t.loose for t in terms):
        assert op.loose is not None, f"{op.name} has no loose= rule"
        values = [t.value for t in terms]
        text = f"{op.name}({', '.join(map(repr, values))})"
        try:
            result = op.loose(*values)
        except ZeroDivisionError:
            refuse(f"division by zero in the constant expression {text}", cls=TileValueError)
        except OverflowError:
            refuse(f"the constant expression {text} overflows", cls=TileValueError)
        except ValueError as e:
            refuse(f"the constant expression {text} has no value: {e}", cls=TileValueError)
        except TypeError:
            refuse(f"the constant expression {text} is not defined for these operands")
        if isinstance(result, complex):
            refuse(f"the constant expression {text} is a complex number")
        return loose(result)
    assert dtype is not None
    in_dtype = in_dtype or dtype
    sig = Sig((TileType(in_dtype),) * len(terms), (TileType(dtype),))
    operands = [carry(encode(t.value, in_dtype), in_dtype) for t in terms]
    return uncarry(evaluate(op, sig, operands, attrs), dtype)


def carry(value: bool | int | float, dtype: DType) -> np.ndarray:
    """An encoded constant as a carrier of shape ()."""
    return np.asarray(value, dtype=info(dtype).carrier)


def uncarry(x: np.ndarray, dtype: DType) -> Const:
    kind = info(dtype).kind
    value = bool(x) if kind == "b" else int(x) if kind in "iu" else float(x)
    return Const(value, dtype, False)


def evaluate(op: OpDef, sig: Sig, operands: Sequence, attrs: dict, **given):
    """Run the meaning of an op once and round its results: what folding and both schedules do."""
    extra = {"sig": sig, **given}
    with np.errstate(all="ignore"):
        y = op.meaning(*operands, **attrs, **{g: extra[g] for g in op.given})
        return finish(op, sig, y)


def finish(op: OpDef, sig: Sig, y):
    """Round what a meaning returned to the dtypes of the results."""
    if op.exact or y is None:
        return y
    if len(sig.results) == 1:
        return _numeric.round_to(sig.results[0].dtype, y)
    return tuple(_numeric.round_to(t.dtype, v) for t, v in zip(sig.results, y, strict=True))


def made_elsewhere(b: Builder, op: OpDef, **terms: Term) -> Term:
    """Rule of ops that no kernel calls: other rules and passes build their nodes."""
    raise AssertionError(f"{op.name} is made by other rules or by a pass")


def is_const(*terms: Term) -> bool:
    return all(isinstance(t, Const) for t in terms)


def integer_power(base: int, exponent: int):
    """Python's **, refused where it would not end in reasonable time or size."""
    if exponent > 0 and abs(base) > 1 and exponent * math.log2(abs(base)) > 64:
        raise OverflowError
    return base**exponent

"""Reads the arguments of an op (tiles, arrays, scalars, constants, dtypes, shapes, axes), or refuses them.

A typing rule is called as `rule(b, op, **terms)`, with one term for each parameter of the op's signature, defaults
included (as terms), `*args` as a Tuple. It appends nodes through the builder `b` and returns the term of the result. It
raises TileTypeError and its kin without a location; the caller adds the user's line. Poison never reaches a rule.

Rules of one family are in that family's file. What several families share is here, in `_constants` (constants and
folding) and in `_promotion` (common dtypes and shapes).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from cutile.dtypes import DType, bool_, from_foreign, info
from cutile.errors import TileError, TileTypeError
from cutile.ir.nodes import Frame, Region
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
    is_array,
    is_scalar,
    is_tile,
)
from cutile.ops._op import OpDef
from cutile.types import is_power_of_two

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
def about_the_function(region: Region) -> Iterator[None]:
    """Errors raised within the `with` block show where the function is defined whose call stands in this region."""
    try:
        yield
    except TileError as e:
        e.notes += tuple(("this is the function", n.def_span) for n in region.nodes[:1] if isinstance(n, Frame))
        raise


@contextmanager
def about(argument: str) -> Iterator[None]:
    """Errors raised within the `with` block name this argument of the op."""
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
    """The help text for an array where a tile is expected."""
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
    """A signed (with signed=False, any) integer scalar; a bool is refused."""
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
        return str.__str__(t.obj)  # a member of a string enum gives its value
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
    axis = const_int(op, name, t)
    if not -ndim <= axis < ndim:
        invalid(op, name, f"axis {axis} is out of range for rank {ndim}")
    return axis % ndim


def shape_arg(op: OpDef, name: str, t: Term, *, rank: int | None = None, int_ok: bool = True, pow2: bool = True,
              what: str = "tile shape") -> tuple[int, ...]:
    """A shape: a tuple of constants, or a single int for rank 1; each a power of two [TILE-8]."""
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
                f"padding_mode says, such as ct.PaddingMode.ZERO for sums and NEG_INF for max() and softmax")
    invalid(op, name, f"every dimension of a tile must be a positive power of two, got {d} in {shape}", help=hint)

"""Making tiles from constants and scalars [FACT-*]."""

from __future__ import annotations

import numpy as np

from cutile.dtypes import DType, bool_, info, int32
from cutile.errors import TileValueError
from cutile.ir.build import Builder
from cutile.ir.nodes import Value
from cutile.ir.terms import Const, Leaf, Static, Term, Tuple, describe, is_tile
from cutile.ops import arithmetic
from cutile.ops._arguments import (
    check_dim,
    const_int,
    invalid,
    numeric_dtype_arg,
    refuse,
    scalar_arg,
    shape_arg,
    tile_arg,
)
from cutile.ops._constants import carry, loose, strict
from cutile.ops._op import made_elsewhere, op, typing_rule
from cutile.ops._promotion import cast, value_of
from cutile.ops.convert import check_cast
from cutile.ops.shape import repeated
from cutile.types import is_power_of_two, tile_type

# ------------------------------------------------------------------ typing rules


def _number_arg(op, name: str, t: Term) -> Const | Leaf:
    """A numeric scalar."""
    t = scalar_arg(op, name, t)
    if info(t.type.dtype).kind == "p":
        invalid(op, name, f"expected a numeric scalar, got {describe(t)}")
    return t


@typing_rule(moves_data=True)
def full_rule(b: Builder, op, shape: Term, fill_value: Term, dtype: Term) -> Term:
    """Rule of full: a constant fill converts as a constant, a run-time one is cast [FACT-1]."""
    dims = shape_arg(op, "shape", shape)
    fill = _number_arg(op, "fill_value", fill_value)
    return _fill(b, dims, _converted(b, op, fill, numeric_dtype_arg(op, "dtype", dtype)))


def _converted(b: Builder, op, x: Const | Leaf, dtype: DType) -> Const | Leaf:
    """x converted to `dtype`: a constant stays a constant, a run-time value is cast as the language allows [CAST-1]."""
    if isinstance(x, Leaf):
        check_cast(op.name, x.type.dtype, dtype, None)
    return cast(b, x, dtype)


def _fill(b: Builder, dims: tuple[int, ...], fill: Const | Leaf) -> Const | Leaf:
    if not dims:
        return fill
    return Leaf(b.op1(full, value_of(b, fill), result=tile_type(fill.type.dtype, dims), shape=dims))


def filled_with_rule(number: int):
    """Rule of zeros and ones [FACT-2]."""

    def rule(b: Builder, op, shape: Term, dtype: Term) -> Term:
        dims = shape_arg(op, "shape", shape)
        return _fill(b, dims, strict(number, numeric_dtype_arg(op, "dtype", dtype)))

    return rule


def arange_rule(b: Builder, op, size: Term, dtype: Term, start: Term, step: Term) -> Term:
    """Rule of arange: iota, times step unless it is 1, plus start unless it is 0 [FACT-3]."""
    n, d = const_int(op, "size", size), numeric_dtype_arg(op, "dtype", dtype)
    check_dim(op, "size", n, (n,))
    start, step = _number_tile(op, "start", start), _number_tile(op, "step", step)
    if d is bool_ or info(d).restricted:
        if not (_is_loose(start, 0) and _is_loose(step, 1)):
            refuse(f"arange() of {d.name} takes no start and step, for {d.name} has no arithmetic",
                   help=f"compute in an arithmetic dtype, then convert: "
                        f"ct.arange({n}, dtype=ct.int32, start=..., step=...).astype(ct.{d.name})")
        start, step = loose(0), loose(1)
    else:
        start, step = cast(b, start, d), cast(b, step, d)
    x = _iota(b, op, n, d)
    if not (isinstance(step, Const) and step.value == 1):
        x = _arithmetic(b, arithmetic.mul, x, step)
    if not (isinstance(start, Const) and start.value == 0):
        x = _arithmetic(b, arithmetic.add, x, start)
    return x


def _number_tile(op, name: str, t: Term) -> Const | Leaf:
    t = tile_arg(op, name, t)
    if info(t.type.dtype).kind == "p":
        invalid(op, name, f"expected a number or a numeric tile, got {describe(t)}")
    return t


def _is_loose(t: Term, value: int) -> bool:
    return isinstance(t, Const) and t.loose and t.value == value


def _iota(b: Builder, op, n: int, d: DType) -> Const | Leaf:
    counter = d if info(d).integral else int32
    if n > 1 << counter.bitwidth:
        invalid(op, "size", f"{n} elements are more than {d.name} can express", cls=TileValueError,
                help="use a wider dtype")
    return _converted(b, op, Leaf(b.op1(iota, result=tile_type(counter, (n,)))), d)


def _arithmetic(b: Builder, op, x: Term, y: Term) -> Term:
    return op.rule(b, op, x=x, y=y, rounding_mode=Static(None), flush_to_zero=loose(False))


@typing_rule(moves_data=True)
def astile_rule(b: Builder, op, value: Term, dtype: Term) -> Term:
    """Rule of astile: a scalar is cast; a nested tuple of scalars becomes a tile, row by row [FACT-4]."""
    d = numeric_dtype_arg(op, "dtype", dtype)
    if is_tile(value):
        return _converted(b, op, _number_arg(op, "value", value), d)
    shape: list[int] = []
    level = value
    while isinstance(level, Tuple):
        if not is_power_of_two(len(level.items)):
            invalid(op, "value", f"the length of a tuple must be a power of two, got {len(level.items)}",
                    help="the dimensions of a tile are powers of two; add elements up to the next one")
        shape.append(len(level.items))
        level = level.items[0]
    items = _elements(b, op, value, tuple(shape), d)
    return Leaf(b.op1(stack_scalars, items, result=tile_type(d, tuple(shape)), shape=tuple(shape)))


def _elements(b: Builder, op, t: Term, shape: tuple[int, ...], d: DType) -> list[Value]:
    if not shape:
        if isinstance(t, Tuple):
            invalid(op, "value", "the tuples are nested to different depths")
        return [value_of(b, _converted(b, op, _number_arg(op, "value", t), d))]
    if not isinstance(t, Tuple):
        invalid(op, "value", f"expected a tuple of length {shape[0]} here as elsewhere, got {describe(t)}")
    if len(t.items) != shape[0]:
        invalid(op, "value", f"the tuples have different lengths, {shape[0]} and {len(t.items)}")
    return [v for item in t.items for v in _elements(b, op, item, shape[1:], d)]


# ------------------------------------------------------------------ meanings


@op(made_elsewhere, public=False, operands="", exact=True, scalar=True)
def constant(value, *, sig):
    """A constant scalar; `value` is encoded in its dtype.

    [STRICT-2.constant]  the value of a constant operand is the constant converted to the operand's dtype
    """
    return carry(value, sig.result.dtype)


@op(full_rule, signature=lambda shape, fill_value, dtype: None, operands="fill_value", exact=True)
def full(fill_value, /, *, shape):
    """A tile of one value: `full(shape, fill_value, dtype)`.

    [FACT-1.shape]  shape: a tuple of constant powers of two
    [FACT-1.shape.int]  a single integer stands for rank 1
    [FACT-1.shape.power]  a dimension that is no positive power of two: TileTypeError
    [FACT-1.shape.const]  a run-time or non-integer dimension: TileTypeError
    [FACT-1.scalar]  shape () gives a scalar, a strict constant if the value is one
    [FACT-1.fill]  fill_value: a numeric scalar; a tile, a string, a tuple: TileTypeError
    [FACT-1.dtype]  dtype: a numeric dtype; anything else is a TileTypeError
    [FACT-1.float]  a constant rounds to nearest; beyond the range it is infinite, or NaN, or float4's largest
    [FACT-1.bool]  for bool_ any constant but zero is True
    [FACT-1.negative]  a negative constant for an unsigned float format: TileValueError
    [FACT-1.wrap]  a constant integer wraps into the dtype, without an error
    [FACT-1.trunc]  a constant float truncates toward zero for an integer dtype
    [FACT-1.nan]  NaN or inf for an integer dtype: TileValueError
    [FACT-1.cast]  a run-time value is cast
    [FACT-1.nocast]  a run-time value that astype without a mode would refuse, to float8_e8m0fnu: TileTypeError
    """
    dims = np.shape(fill_value)
    return repeated(np.reshape(fill_value, dims + (1,) * len(shape)), dims + shape)


@op(filled_with_rule(1))
def ones(shape, dtype):
    """A tile of ones; in the IR it is full(shape, 1, dtype).

    [FACT-2.ones]  every element is 1 converted to the dtype
    [FACT-2.ones.shape]  shape as for full; () gives a strict constant
    [FACT-2.ones.required]  both parameters are required: TileTypeError
    """


@op(filled_with_rule(0))
def zeros(shape, dtype):
    """A tile of zeros; in the IR it is full(shape, 0, dtype).

    [FACT-2.zeros]  every element is 0 converted to the dtype
    [FACT-2.zeros.shape]  shape as for full; () gives a strict constant
    [FACT-2.zeros.required]  both parameters are required: TileTypeError
    [FACT-2.zeros.e8m0]  float8_e8m0fnu, which has no zero, gives 2**-127
    """


@op(arange_rule)
def arange(size, /, *, dtype, start=0, step=1):
    """start + i * step for i = 0 … size-1; in the IR it is iota, mul, add and casts.

    [FACT-3.size]  size: a constant power of two; anything else is a TileTypeError
    [FACT-3.start]  element i is start + i * step
    [FACT-3.int]  integer dtypes count in the dtype itself, modulo 2**width
    [FACT-3.other]  other dtypes count in int32 and are cast then
    [FACT-3.bool]  bool_ gives False, True, True, …
    [FACT-3.convert]  start and step are converted to the dtype, constants as constants: start=1.5 with int32 is 1
    [FACT-3.runtime]  start and step may be run-time scalars
    [FACT-3.tile]  or tiles that broadcast with shape (size,); else TileTypeError
    [FACT-3.order]  step multiplies first, then start is added, in the arithmetic of the dtype
    [FACT-3.fused]  in floats the two are one fused multiply-add
    [FACT-3.plain]  bool_ or a restricted float with a start or step: TileTypeError
    [FACT-3.range]  more than 2**width elements in an integer dtype: TileValueError
    """


@op(astile_rule)
def astile(value, /, *, dtype):
    """A tile of the scalars in a nested tuple; in the IR it is stack_scalars and casts.

    [FACT-4.scalar]  a scalar is cast to the dtype; a constant stays constant
    [FACT-4.tuple]  a tuple of scalars gives a tile of rank 1, tuples in it further axes
    [FACT-4.cast]  elements are cast to the dtype, constants as constants
    [FACT-4.length]  a tuple whose length is no power of two: TileTypeError
    [FACT-4.uniform]  tuples of different lengths or depths: TileTypeError
    [FACT-4.element]  an element that is no scalar: TileTypeError
    """


@op(made_elsewhere, public=False, operands="", exact=True)
def iota(*, sig):
    """0, 1, 2, … in an integer dtype.

    [FACT-3.iota]  element i is i modulo 2**width
    """
    return np.arange(sig.result.shape[0]).astype(info(sig.result.dtype).carrier)


@op(astile_rule, public=False, signature=lambda value, /, *, dtype: None, operands="*items", exact=True)
def stack_scalars(items, /, *, shape):
    """Scalars of one dtype as a tile, in row-major order.

    [FACT-4.order]  the innermost tuple runs along the last axis
    """
    flat = np.stack(np.broadcast_arrays(*items), axis=-1)
    return flat.reshape(flat.shape[:-1] + shape)

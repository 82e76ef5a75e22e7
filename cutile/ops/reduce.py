"""Reductions along axes of a tile: sum, prod, max, min, argmax, argmin, and reduce with the user's own function.

In the IR a reduction works on one axis, given as a negative number, and drops it. Several axes are several nodes, in
increasing order of axis [RED-5], and keepdims is a reshape after the last one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from cutile import settings
from cutile.dtypes import DType, info, int32
from cutile.ir.build import Builder
from cutile.ir.terms import POISON, Const, Leaf, Poison, Term, Tuple, describe, is_tile
from cutile.ops import _numeric
from cutile.ops._arguments import axis_arg, const_bool, invalid, is_none
from cutile.ops._combine import (
    InOneCall,
    combine_args,
    combine_region,
    combined,
    compiled_along,
    cut,
    numeric_arg,
    of_carriers,
    step,
    widen_bool,
)
from cutile.ops._constants import is_const
from cutile.ops._freedom import order
from cutile.ops._op import REDUCTION, OpDef, Sig, op, typing_rule
from cutile.ops._options import IEEE_CLAUSES, IEEE_MODES, check_flush, float_options, flush_arg, rounding_arg
from cutile.ops._promotion import value_of
from cutile.ops.shape import reshaped
from cutile.types import RoundingMode, TileType, tile_type

# ------------------------------------------------------------------ typing rules


_REDUCTION = """
[RED-1.{name}.restricted]  a restricted float dtype is a TileTypeError
[RED-3.{name}.keepdims]  keepdims=True keeps reduced axes with size 1
[RED-7.{name}.ftz.dtype]  flush_to_zero with a dtype other than float32: TileTypeError
"""


def _axes(op: OpDef, axis: Term, ndim: int) -> tuple[int, ...]:
    """The axes to reduce, in increasing order [RED-2]."""
    if is_none(axis):
        return tuple(range(ndim))
    items = axis.items if isinstance(axis, Tuple) else (axis,)
    axes = [_axis(op, a, ndim) for a in items]
    if len(set(axes)) != len(axes):
        invalid(op, "axis", f"axis {next(a for a in axes if axes.count(a) > 1)} is given twice")
    return tuple(sorted(axes))


def _axis(op: OpDef, t: Term, ndim: int) -> int:
    """An axis. A tile is refused with a hint at maximum or minimum, which may be meant."""
    if op in NAME_OF_TWO and is_tile(t) and (t.type.shape or info(t.type.dtype).floating):
        invalid(op, "axis", f"expected an integer constant, got {describe(t)}",
                help=f"the {NAME_OF_TWO[op]} of two is ct.{op.name}imum(x, y)")
    return axis_arg(op, "axis", t, ndim)


def _without(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape of a result [RED-3]."""
    return tuple(1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes)


def _reduced(b: Builder, op: OpDef, x: Term, axis: Term, keepdims: Term, attrs: dict) -> Term:
    axes = _axes(op, axis, x.type.ndim)
    keep = const_bool(op, "keepdims", keepdims)
    x = widen_bool(b, x)
    if not axes:
        return x
    shape = x.type.shape
    for k in axes:  # negative numbers of axes stay right while earlier axes are removed
        x = _along(b, op, x, k - len(shape), x.type.dtype, attrs)
    return reshaped(b, x, _without(shape, axes, keep))


def _along(b: Builder, op: OpDef, x: Const | Leaf, axis: int, dtype: DType, attrs: dict) -> Leaf:
    """Append one node that reduces an axis, a negative number, and removes it."""
    shape = _without(x.type.shape, (x.type.ndim + axis,), False)
    return Leaf(b.op1(op, value_of(b, x), result=tile_type(dtype, shape), axis=axis, **attrs))


@typing_rule(accumulates=REDUCTION, modes=IEEE_MODES, clauses=f"""
{_REDUCTION}
{IEEE_CLAUSES.replace("RM-1", "RED-7")}
[RED-7.{{name}}.mode]  any other rounding mode, or one with a dtype that is no float: TileTypeError
[RED-7.{{name}}.ftz]  flush_to_zero makes subnormal elements and results zeros
""")
def _sum_rule(b, op, x, axis, keepdims, rounding_mode, flush_to_zero):
    x = numeric_arg(op, x)
    mode, flush = rounding_arg(op, rounding_mode), flush_arg(op, flush_to_zero)
    if not is_const(x):
        float_options(op, x.type.dtype, mode, flush)
    return _reduced(b, op, x, axis, keepdims, {"rounding_mode": mode, "flush_to_zero": flush})


@typing_rule(accumulates=REDUCTION, clauses=f"""
{_REDUCTION}
[RED-2.{{name}}.axis]  axis is None, an integer constant, or a tuple of them; () gives x
[RED-2.{{name}}.kind]  axes as for sum, or TileTypeError
[RED-4.{{name}}.dtype]  the result has the dtype of x
[RED-4.{{name}}.bool]  bool_ gives int32
[RED-6.{{name}}.nan]  all NaN gives NaN
[RED-7.{{name}}.nan]  NaN elements among others are passed over by default
[RED-7.{{name}}.propagate]  propagate_nan=True gives NaN if any element is NaN
[RED-7.{{name}}.zero]  -0 is smaller than +0
[RED-7.{{name}}.ftz]  flush_to_zero makes subnormal elements zeros
""")
def _max_rule(b, op, x, axis, keepdims, flush_to_zero, propagate_nan):
    x = numeric_arg(op, x)
    flush, nan = flush_arg(op, flush_to_zero), const_bool(op, "propagate_nan", propagate_nan)
    if not is_const(x):
        check_flush(op, flush, x.type.dtype)
    return _reduced(b, op, x, axis, keepdims, {"flush_to_zero": flush, "propagate_nan": nan})


@typing_rule(accumulates=REDUCTION, clauses="""
[RED-4.{name}.dtype]  the result is int32
[RED-8.{name}.flat]  axis=None gives the row-major index into the flattened tile
[RED-8.{name}.axis]  axis is a single integer constant; a tuple is a TileTypeError
[RED-8.{name}.kind]  a bool, float or run-time axis, or one out of range: TileTypeError
[RED-8.{name}.tie]  of equal elements the one with the smallest index counts; -0 and +0 are equal
[RED-8.{name}.allnan]  all NaN gives 0
[RED-8.{name}.propagate]  propagate_nan=True: the first NaN wins
[RED-8.{name}.keepdims]  keepdims=True keeps the reduced axis with size 1; with axis=None all axes
[RED-8.{name}.restricted]  a restricted float dtype is a TileTypeError
[RED-8.{name}.scalar]  axis=None on a scalar gives 0
""")
def _argmax_rule(b, op, x, axis, keepdims, propagate_nan):
    x = widen_bool(b, numeric_arg(op, x))
    nan, keep = const_bool(op, "propagate_nan", propagate_nan), const_bool(op, "keepdims", keepdims)
    shape = x.type.shape
    if is_none(axis):
        axes, away, x = tuple(range(len(shape))), -1, reshaped(b, x, (x.type.size,))
    else:
        axes = (axis_arg(op, "axis", axis, len(shape)),)
        away = axes[0] - len(shape)
    return reshaped(b, _along(b, op, x, away, int32, {"propagate_nan": nan}), _without(shape, axes, keep))


@typing_rule(accumulates=REDUCTION)
def _reduce_rule(b, op, x, axis, func, identity, keepdims):
    keep = const_bool(op, "keepdims", keepdims)
    values, types, axis, many, identities = combine_args(b, op, x, axis, func, identity)
    region = combine_region(b, op, func, types, many)
    if isinstance(region, Poison):
        return POISON
    shape = types[0].shape
    axes = (axis + len(shape),)
    results = b.op(op, values, results=[tile_type(t.dtype, _without(shape, axes, False)) for t in types], region=region,
                   axis=axis, identity=identities)
    results = [reshaped(b, Leaf(r), _without(shape, axes, keep)) for r in results]
    return Tuple(tuple(results)) if many else results[0]


# ------------------------------------------------------------------ order of evaluation


def _halving(f: Callable, x: np.ndarray, axis: int) -> np.ndarray:
    """f(x[i], x[i + n/2]) for the halves of the axis, again and again, until the axis is gone.

    A result depends on its own n elements and their order only, whatever the other axes and the memory layout are.
    """
    n = x.shape[axis]
    if n == 1:
        return x.squeeze(axis).copy()
    while n > 1:
        n //= 2
        x = f(cut(x, axis, 0, n), cut(x, axis, n, 2 * n))
    return cut(x, axis, 0, 1).squeeze(axis)


def _fold(name: str, x: np.ndarray, t: TileType, axis: int, mode: RoundingMode | None, flush: bool) -> np.ndarray:
    """A sum ("add") or product ("mul") along an axis of a tile of type `t`."""
    dtype, exactly = t.dtype, info(t.dtype).carried_exactly
    plain = mode in (None, RoundingMode.RN) and not flush
    rows = name == "add" and plain and exactly and info(dtype).floating \
        and math.prod(t.shape[t.ndim + axis + 1:]) == 1 and not settings.get("PORTABLE")
    kind = "sum" if rows else f"{name} halves"
    if plain and (y := compiled_along(f"{kind} {dtype.name}", x, axis)) is not None:
        return y.squeeze(axis)
    if info(dtype).integral:
        return _reduced_by(np.add if name == "add" else np.multiply, x, axis)
    if rows:
        x = x.reshape(x.shape[:x.ndim + axis + 1])
        return _sum_of_rows(x).reshape(x.shape[:-1] + (1,) * (-axis - 1))
    return _halving(step(name, dtype, mode, flush), _numeric.flush(x) if flush else x, axis)


def _sum_of_rows(x: np.ndarray) -> np.ndarray:
    """numpy.add.reduce along the last axis, packed. The memory order of the other axes is kept.

    NumPy starts from `initial`, by default 0.0; only -0.0 changes no sum [D-14].
    """
    n = x.shape[-1]
    if n <= SHORT or n <= STEPWISE and _is_strided(x):
        return _sum_by_elements(x)
    order, back = _orders(x.strides)
    rows = x.transpose(order)
    if rows.flags.c_contiguous:
        return np.add.reduce(rows, axis=-1, initial=-0.0).transpose(back)
    return np.add.reduce(np.ascontiguousarray(x), axis=-1, initial=-0.0)


SHORT = 8  # elements: NumPy takes longer to reduce so few than to combine them one by one for all rows [measured]
STEPWISE = 1024  # most elements that are combined one by one where the rows' own elements lie apart
LONG = 32  # elements beside each other that are enough for an inner loop


def _is_strided(x: np.ndarray) -> bool:
    """Whether the elements of a row lie apart, and many elements of other rows beside each other."""
    *others, last = zip(x.strides, x.shape, strict=True)
    return any(n >= LONG and 0 < s < last[0] for s, n in others)


def _sum_by_elements(x: np.ndarray) -> np.ndarray:
    """The additions of numpy.add.reduce along the last axis, in its order, each for all rows at once. The length is a
    power of two.
    """
    n = x.shape[-1]
    if n < 8:
        y = x[..., 0] if n > 1 else x[..., 0].copy()
        for i in range(1, n):
            y = y + x[..., i]
        return y
    if n > 128:
        return _sum_by_elements(x[..., :n // 2]) + _sum_by_elements(x[..., n // 2:])
    y = x[..., :8]
    for i in range(8, n, 8):
        y = y + x[..., i:i + 8]
    for _ in range(3):
        y = y[..., 0::2] + y[..., 1::2]
    return y[..., 0]


@functools.lru_cache(maxsize=256)
def _orders(strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """An order of axes by falling stride, the last axis last, and the inverse order of all but the last."""
    order = sorted(range(len(strides) - 1), key=strides.__getitem__, reverse=True)
    return (*order, len(order)), tuple(map(order.index, range(len(order))))


# ------------------------------------------------------------------ the ops


@op(_sum_rule, operands="x", exact=True, freedom=order("sum"), tileir="add",
    signature=lambda x, /, axis=None, *, keepdims=False, rounding_mode=None, flush_to_zero=False: None)
def sum(x, /, *, axis, rounding_mode, flush_to_zero, sig):
    """Sum of the elements along one axis, several, or all.

    `axis` is None for all axes, an integer constant or a tuple of them. Reduced axes are dropped, or kept with size 1
    if `keepdims`. The result has the dtype of x; nothing is widened, except that booleans are counted in int32.

    Order: integers wrap, so theirs does not matter. float32 and float64 sums along the last axis, ignoring axes of size
    1, go in the order of numpy.add.reduce over a packed row, which depends on nothing but the length of the row: eight
    running sums, joined in pairs, over pieces of at most 128. All other float sums, and under CUTILE_PORTABLE=1 all,
    are a halving tree: x[i] + x[i + n/2], again and again, rounded to the dtype at each level.

    [RED-1.sum.arg]  x is a tile: an array or a tuple is a TileTypeError
    [RED-2.sum.none]  axis=None sums all elements
    [RED-2.sum.int]  axis is an integer constant, negative ones counting from the end
    [RED-2.sum.tuple]  axis is a tuple of integer constants, summed over together
    [RED-2.sum.empty]  axis=() reduces nothing and gives x
    [RED-2.sum.range]  an axis out of range is a TileTypeError
    [RED-2.sum.repeat]  an axis given twice, after normalisation, is a TileTypeError
    [RED-2.sum.kind]  a bool, float or run-time axis is a TileTypeError
    [RED-3.sum.drop]  reduced axes are removed
    [RED-3.sum.scalar]  axis=None on a scalar gives the scalar
    [RED-4.sum.dtype]  the result has the dtype of x: integers wrap, float16 sums are float16
    [RED-4.sum.bool]  bool_ gives int32: the number of True elements
    [RED-5.sum.order]  the order is unspecified: within n * 2**-p of the sum of magnitudes
    [RED-5.sum.same]  equal inputs give equal results
    [RED-5.sum.zero]  nothing is added to the elements: a sum of nothing but -0.0 is -0.0
    [RED-5.sum.axes]  several axes are reduced one by one, in increasing order
    """
    return _fold("add", x, sig.x, axis, rounding_mode, flush_to_zero)


@op(_sum_rule, operands="x", exact=True, freedom=order("sum"), tileir="mul",
    signature=lambda x, /, axis=None, *, keepdims=False, rounding_mode=None, flush_to_zero=False: None)
def prod(x, /, *, axis, rounding_mode, flush_to_zero, sig):
    """Product of the elements along one axis, several, or all.

    Arguments as for `sum`. Order: a halving tree, x[i] * x[i + n/2], again and again, rounded to the dtype each time.

    [RED-2.prod.axis]  axis is None, an integer constant, or a tuple of them; () gives x
    [RED-2.prod.kind]  axes as for sum, or TileTypeError
    [RED-4.prod.dtype]  the result has the dtype of x: integers wrap
    [RED-4.prod.bool]  bool_ gives int32
    [RED-5.prod.order]  the order is unspecified: within n * 2**-p of the exact product
    """
    return _fold("mul", x, sig.x, axis, rounding_mode, flush_to_zero)


def _reduced_by(f: np.ufunc, x: np.ndarray, axis: int, initial: float | None = None) -> np.ndarray:
    """f.reduce along an axis, for an f whose order does not matter. The result has the dtype of x."""
    n = x.shape[axis]
    if not 1 < n <= SHORT:
        more = {} if initial is None else {"initial": initial}
        return f.reduce(x, axis=axis, dtype=x.dtype, **more)
    y = cut(x, axis, 0, 1)
    for i in range(1, n):
        y = f(y, cut(x, axis, i, i + 1))
    return y.squeeze(axis)


def _extreme(x: np.ndarray, dtype: DType, axis: int, sign: int, flush: bool, propagate_nan: bool) -> np.ndarray:
    """The largest (sign 1) or smallest (sign -1) element along an axis."""
    pick = np.maximum if sign > 0 else np.minimum
    x = _numeric.flush(x) if flush else x
    if (y := compiled_along(_name("max" if sign > 0 else "min", dtype, propagate_nan), x, axis)) is not None:
        return y.squeeze(axis)
    if not info(dtype).floating:
        return _reduced_by(pick, x, axis)
    # `initial` is given because without one NumPy is up to three times slower on short rows [measured]. The result is
    # NaN where there is one.
    r = _reduced_by(pick, x, axis, -sign * np.inf)
    if np.abs(r).min() > 0:  # no zero and no NaN: the usual case
        return r
    if not propagate_nan and np.isnan(r).any():
        nan = np.isnan(x)  # np.fmax sometimes takes signalling NaNs for numbers
        r = pick.reduce(np.where(nan, x.dtype.type(-sign * np.inf), x), axis=axis)
        r = np.where(nan.all(axis=axis), x.dtype.type(np.nan), r)
    zero, nan = r == 0, np.isnan(r)
    if zero.any():  # NumPy takes either zero; here -0 < +0 [ARITH-9]
        wanted = (x == 0) & (np.signbit(x) != (sign > 0))
        r = np.where(zero, np.where(wanted.any(axis=axis), x.dtype.type(sign) * 0, x.dtype.type(-sign) * 0), r)
    return np.where(nan, x.dtype.type(np.nan), r) if nan.any() else r


@functools.cache
def _name(kind: str, dtype: DType, propagate_nan: bool) -> str:
    """The name of the compiled form of an extremum or its place."""
    return of_carriers(f"{kind} or nan" if propagate_nan and info(dtype).floating else kind, dtype)


@op(_max_rule, operands="x", exact=True, tileir="max",
    signature=lambda x, /, axis=None, *, keepdims=False, flush_to_zero=False, propagate_nan=False: None)
def max(x, /, *, axis, flush_to_zero, propagate_nan, sig):
    """Largest element along one axis, several, or all.

    Arguments as for `sum`. By default NaN elements are passed over, and only NaNs give NaN.

    [RED-4.max.value]  it is the largest, by the signedness of the dtype
    """
    return _extreme(x, sig.x.dtype, axis, 1, flush_to_zero, propagate_nan)


@op(_max_rule, operands="x", exact=True, tileir="min",
    signature=lambda x, /, axis=None, *, keepdims=False, flush_to_zero=False, propagate_nan=False: None)
def min(x, /, *, axis, flush_to_zero, propagate_nan, sig):
    """Smallest element along one axis, several, or all.

    Arguments as for `sum`. By default NaN elements are passed over, and only NaNs give NaN.

    [RED-4.min.value]  it is the smallest, by the signedness of the dtype
    """
    return _extreme(x, sig.x.dtype, axis, -1, flush_to_zero, propagate_nan)


def _arg(x: np.ndarray, dtype: DType, axis: int, pick: Callable, worst: float, propagate_nan: bool) -> np.ndarray:
    """Index of the best element. NumPy's pick takes the first NaN if there is one, as propagate_nan wants."""
    if (y := compiled_along(_name(pick.__name__, dtype, propagate_nan), x, axis)) is not None:
        return y.squeeze(axis)
    nan = None if propagate_nan or x.dtype.kind != "f" else np.isnan(x)
    if nan is None or not nan.any():
        return pick(x, axis=axis).astype(np.int32)
    clean = np.where(nan, x.dtype.type(worst), x)
    i = pick(clean, axis=axis)
    # If the best is ±inf, which also replaced NaN, take the first element that is not NaN.
    best = np.take_along_axis(clean, np.expand_dims(i, axis), axis).squeeze(axis)
    return np.where(best == worst, np.argmin(nan, axis=axis), i).astype(np.int32)


@op(_argmax_rule, operands="x", exact=True, tileir="max",
    signature=lambda x, /, axis=None, *, keepdims=False, propagate_nan=False: None)
def argmax(x, /, *, axis, propagate_nan, sig):
    """Index of the largest element along an axis, or in the flattened tile, as int32.

    [RED-8.argmax.value]  it is the index of the largest element
    [RED-8.argmax.nan]  NaN is worse than any number, -inf included
    """
    return _arg(x, sig.x.dtype, axis, np.argmax, -np.inf, propagate_nan)


@op(_argmax_rule, operands="x", exact=True, tileir="min",
    signature=lambda x, /, axis=None, *, keepdims=False, propagate_nan=False: None)
def argmin(x, /, *, axis, propagate_nan, sig):
    """Index of the smallest element along an axis, or in the flattened tile, as int32.

    [RED-8.argmin.value]  it is the index of the smallest element
    [RED-8.argmin.nan]  NaN is worse than any number, +inf included
    """
    return _arg(x, sig.x.dtype, axis, np.argmin, np.inf, propagate_nan)


@op(_reduce_rule, operands="*xs", exact=True, freedom=order("reduce"),
    signature=lambda x, /, axis, func, identity, *, keepdims=False: None)
def reduce(xs, /, *, axis, identity, combine, sig: Sig):
    """Combine the elements along an axis with a function of two elements.

    `x` is a tile, or a tuple of tiles that are broadcast together and reduced side by side; `func` is called with
    scalars (a, b), or (a0, …, b0, …), and returns a scalar, or a tuple. It must be associative and commutative.
    `identity` is a constant, or one per tile, that leaves the other argument of func as it is.

    Order: a halving tree, f(x[i], x[i + n/2]), again and again. The identity is not folded in.

    [RED-9.x]  x is a tile or a tuple of tiles, broadcast to a common shape; else TileTypeError
    [RED-9.empty]  an empty tuple is a TileTypeError
    [RED-9.axis]  axis is a single integer constant; None or a tuple is a TileTypeError
    [RED-9.func]  func is anything callable: a lambda, a function, operator.add, an op; else TileTypeError
    [RED-9.identity]  identity is a constant scalar, or a tuple of as many as there are tiles; else TileTypeError
    [RED-10.args]  func gets scalars (a, b) or (a0, …, b0, …)
    [RED-10.result]  func returns one scalar, or a tuple of as many as there are tiles; else TileTypeError
    [RED-10.arity]  a function that cannot be called so: TileTypeError
    [RED-10.cast]  each result is converted implicitly to the dtype of its tile; a narrowing one is a TileTypeError
    [RED-12.int]  the identity is converted silently to the dtype of the tile
    [RED-12.bool]  for bool_ an identity is true if it is not zero
    [RED-11.memory]  memory operations, print and assert_ in func: TileSyntaxError
    [RED-11.branch]  if, and, or with a run-time condition in func: TileSyntaxError
    [RED-11.loop]  a loop in func: TileSyntaxError
    [RED-11.nested]  a reduction or scan in func: TileSyntaxError
    [RED-11.outer]  func may use variables around it, ct.bid, tuples and constant conditions
    [RED-13.two]  two elements give f(x0, x1)
    [RED-13.four]  four elements give f(f(x0, x2), f(x1, x3))
    [RED-13.value]  an associative and commutative function gives the combination of all elements
    [RED-14.restricted]  restricted floats may be reduced by a function that only moves them
    [RED-14.rank]  a scalar has no axis to reduce: TileTypeError
    [RED-3.reduce.keepdims]  keepdims=True keeps the reduced axis with size 1
    """
    if isinstance(combine, InOneCall):
        if not info(sig.x.dtype).floating:
            return _reduced_by(combine.ufunc, xs[0], axis)
        return _extreme(xs[0], sig.x.dtype, axis, 1 if combine.ufunc is np.maximum else -1, False, False)
    n = sig.x.shape[axis]
    while n > 1:
        n //= 2
        xs = combined(combine, [cut(x, axis, 0, n) for x in xs], [cut(x, axis, n, 2 * n) for x in xs])
    xs = tuple(cut(x, axis, 0, 1).squeeze(axis) for x in xs)
    return xs if len(xs) > 1 else xs[0]


NAME_OF_TWO = {max: "larger", min: "smaller"}  # what max and min of two numbers are called, for a hint

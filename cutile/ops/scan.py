"""Inclusive prefixes along an axis of a tile: cumsum, cumprod, and scan with the user's own function.

All go element by element from the first one (or from the last, if reversed). So equal rows have equal prefixes,
whatever the other rows hold.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutile.dtypes import info
from cutile.ir.terms import POISON, Leaf, Poison, Tuple
from cutile.ops import _numeric
from cutile.ops._arguments import axis_arg, const_bool
from cutile.ops._combine import (
    InOneCall,
    combine_args,
    combine_region,
    combined,
    compiled_along,
    numeric_arg,
    step,
    widen_bool,
)
from cutile.ops._freedom import order
from cutile.ops._op import SCAN, Sig, op, typing_rule
from cutile.ops._options import IEEE_CLAUSES, IEEE_MODES, OTHER_MODES, float_options, flush_arg, rounding_arg
from cutile.ops._promotion import value_of
from cutile.types import RoundingMode

# ------------------------------------------------------------------ typing rules


@typing_rule(accumulates=SCAN, modes=IEEE_MODES, clauses=f"""
[SCAN-2.{{name}}.axis]  axis is an integer constant, negative ones counting from the end; else TileTypeError
[SCAN-2.{{name}}.rank]  a scalar has no axis to scan: TileTypeError
[SCAN-2.{{name}}.const]  reverse is a bool constant; else TileTypeError
[SCAN-3.{{name}}.bool]  bool_ gives int32
[SCAN-3.{{name}}.restricted]  a restricted float dtype is a TileTypeError
[SCAN-5.{{name}}.order]  the order inside a prefix is unspecified
{IEEE_CLAUSES}{OTHER_MODES}
[RM-2.{{name}}.int]  a rounding mode with a dtype that is no float: TileTypeError
[FTZ-1.{{name}}]  flush_to_zero makes subnormal elements and results zeros
[FTZ-1.{{name}}.dtype]  flush_to_zero with a dtype other than float32: TileTypeError
""")
def _cumsum_rule(b, op, x, axis, reverse, rounding_mode, flush_to_zero):
    x = numeric_arg(op, x)
    k = axis_arg(op, "axis", axis, x.type.ndim)
    mode, flush = rounding_arg(op, rounding_mode), flush_arg(op, flush_to_zero)
    float_options(op, x.type.dtype, mode, flush)
    reverse = const_bool(op, "reverse", reverse)
    v = value_of(b, widen_bool(b, x))
    return Leaf(b.op1(op, v, result=v.type, axis=k - v.type.ndim, reverse=reverse, rounding_mode=mode,
                      flush_to_zero=flush))


@typing_rule(accumulates=SCAN)
def _scan_rule(b, op, x, axis, func, identity, reverse):
    reverse = const_bool(op, "reverse", reverse)
    values, types, axis, many, identities = combine_args(b, op, x, axis, func, identity)
    region = combine_region(b, op, func, types, many)
    if isinstance(region, Poison):
        return POISON
    results = b.op(op, values, results=types, region=region, axis=axis, identity=identities, reverse=reverse)
    return Tuple(tuple(map(Leaf, results))) if many else Leaf(results[0])


# ------------------------------------------------------------------ the ops

# Up to so many elements, one of all rows after the other is faster than np.add.accumulate, if there are many rows. The
# number of rows does not decide: which of two NaNs a sum is must not depend on how many blocks run at once.
SHORT = 32


def _prefix(f: Callable, x: np.ndarray, axis: int) -> np.ndarray:
    """f(result[j-1], x[j]) for each j after the first."""
    x = np.ascontiguousarray(np.moveaxis(x, axis, 0))
    out = np.empty(x.shape, x.dtype)
    out[0] = x[0]
    for j in range(1, len(x)):
        out[j] = f(out[j - 1], x[j])
    return np.moveaxis(out, 0, axis)


def _stepwise(f: np.ufunc, x: np.ndarray, axis: int) -> np.ndarray:
    """f.accumulate, one element of all rows after the other."""
    out = np.empty_like(x)
    at = (slice(None),) * (axis % x.ndim)
    out[(*at, 0)] = x[(*at, 0)]
    for j in range(1, x.shape[axis]):
        f(out[(*at, j - 1)], x[(*at, j)], out=out[(*at, j, ...)])
    return out


def _accumulate(f: Callable, x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    """f of what was accumulated and of the next element, one after the other."""
    x = np.flip(x, axis) if reverse else x
    if not isinstance(f, np.ufunc):
        y = _prefix(f, x, axis)
    elif x.shape[axis] <= SHORT:
        y = _stepwise(f, x, axis)
    else:
        y = f.accumulate(x, axis=axis, dtype=x.dtype)
    return np.flip(y, axis) if reverse else y


def _extremes(f: np.ufunc, x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    """Maxima or minima of floats: those of integers of the same order, in which no number comes after a NaN."""
    word = np.dtype(f"i{x.dtype.itemsize}")
    worst = np.iinfo(word).min if f is np.maximum else np.iinfo(word).max
    order = _ordered(x.view(word))
    order[np.isnan(x)] = worst
    order = _accumulate(f, order, axis, reverse)
    found = _ordered(order).view(x.dtype)
    nan = order == worst  # there was no number yet: the first NaN stays
    return np.where(nan, np.take(x, [-1 if reverse else 0], axis), found) if nan.any() else found


def _ordered(bits: np.ndarray) -> np.ndarray:
    """Bits of floats as integers of the same order, and back."""
    return bits ^ ((bits >> (8 * bits.itemsize - 1)) & np.iinfo(bits.dtype).max)


def _accumulated(name: str, x: np.ndarray, sig: Sig, axis: int, reverse: bool, mode: RoundingMode | None, flush: bool):
    ufunc = {"add": np.add, "mul": np.multiply}[name]
    f = step(name, sig.x.dtype, mode, flush) if info(sig.x.dtype).floating else ufunc
    x = _numeric.flush(x) if flush else x
    if mode in (None, RoundingMode.RN) and not flush:
        y = compiled_along(f"{name} prefixes {sig.x.dtype.name}", x, axis, reverse)
        if y is not None:
            return y
    return _accumulate(f, x, axis, reverse)


@op(_cumsum_rule, operands="x", exact=True, freedom=order("sum"), tileir="add",
    signature=lambda x, /, axis=0, *, reverse=False, rounding_mode=None, flush_to_zero=False: None)
def cumsum(x, /, *, axis, reverse, rounding_mode, flush_to_zero, sig):
    """Sums of the elements up to each one, itself included, along an axis.

    Order: one element after the other, from the first, or from the last with reverse=True, rounded to the dtype at
    each step.

    [SCAN-1.cumsum.first]  result[0] is x[0], and result[j] is result[j-1] + x[j]; of -0.0 only it is -0.0
    [SCAN-1.cumsum.reverse]  reverse=True: result[n-1] is x[n-1], and result[j] is result[j+1] + x[j]
    [SCAN-3.cumsum.dtype]  the result has the dtype of x: integers wrap, float16 sums are float16
    """
    return _accumulated("add", x, sig, axis, reverse, rounding_mode, flush_to_zero)


@op(_cumsum_rule, operands="x", exact=True, freedom=order("sum"), tileir="mul",
    signature=lambda x, /, axis=0, *, reverse=False, rounding_mode=None, flush_to_zero=False: None)
def cumprod(x, /, *, axis, reverse, rounding_mode, flush_to_zero, sig):
    """Products of the elements up to each one, itself included, along an axis.

    Arguments and order as for `cumsum`.

    [SCAN-1.cumprod.first]  result[0] is x[0], and result[j] is result[j-1] * x[j]
    [SCAN-1.cumprod.reverse]  reverse=True: result[n-1] is x[n-1], and result[j] is result[j+1] * x[j]
    [SCAN-3.cumprod.dtype]  the result has the dtype of x: integers wrap
    """
    return _accumulated("mul", x, sig, axis, reverse, rounding_mode, flush_to_zero)


@op(_scan_rule, operands="*xs", exact=True, freedom=order("scan"),
    signature=lambda x, /, axis, func, identity, *, reverse=False: None)
def scan(xs, /, *, axis, identity, reverse, combine, sig: Sig):
    """Combine the elements up to each one, itself included, along an axis with a function of two elements.

    Arguments as for `reduce`. `func` must be associative; it gets what was combined so far first, and the next element
    last. The identity is not folded in.

    [SCAN-1.first]  result[0] is x[0]; the identity is not visible
    [SCAN-1.order]  result[j] is f(result[j-1], x[j]): what was accumulated comes first
    [SCAN-1.reverse]  reverse=True: result[n-1] is x[n-1], and result[j] is f(result[j+1], x[j])
    [SCAN-2.axis]  axis is a single integer constant; None or a tuple is a TileTypeError
    [SCAN-2.rank]  a scalar has no axis to scan: TileTypeError
    [SCAN-2.const]  reverse is a bool constant; else TileTypeError
    [SCAN-4.tuple]  a tuple of tiles is scanned side by side, with a function that returns a tuple
    [SCAN-4.func]  func is anything callable; else TileTypeError
    [SCAN-4.identity]  identity is a constant scalar, or a tuple of as many as there are tiles; else TileTypeError
    [SCAN-4.cast]  each result is converted implicitly to the dtype of its tile; a narrowing one is a TileTypeError
    [SCAN-4.body]  func is restricted as that of reduce: memory, branches, loops: TileSyntaxError
    [SCAN-4.result]  func returns one scalar, or a tuple of as many as there are tiles; else TileTypeError
    """
    if isinstance(combine, InOneCall):
        return (_extremes if xs[0].dtype.kind == "f" else _accumulate)(combine.ufunc, xs[0], axis, reverse)
    steps = list(zip(*(_first(x, axis) for x in xs), strict=True))
    if reverse:
        steps.reverse()
    done = [steps[0]]
    for new in steps[1:]:
        done.append(combined(combine, done[-1], new))
    if reverse:
        done.reverse()
    out = tuple(_join(parts, axis) for parts in zip(*done, strict=True))
    return out if len(out) > 1 else out[0]


def _first(x: np.ndarray, axis: int) -> np.ndarray:
    """The axis moved to the front, so that each step reads packed memory; at its old position the length is 1."""
    return np.ascontiguousarray(np.moveaxis(np.expand_dims(x, axis), axis - 1, 0))


def _join(parts: tuple[np.ndarray, ...], axis: int) -> np.ndarray:
    """The parts joined along the axis, broadcast: a captured value may make some parts differ between blocks."""
    shape = np.broadcast_shapes(*(p.shape for p in parts))
    out = np.empty((len(parts), *shape), parts[0].dtype)
    for o, p in zip(out, parts, strict=True):
        o[...] = p
    return np.moveaxis(out, 0, axis - 1).squeeze(axis)

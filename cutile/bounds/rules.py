"""How far an op's result may be off, given operands with errors.

An error is an absolute distance. How far the exact result may move follows from what an op declares (its `error_bound`,
or that it moves data), or from its rule here. Rounding to the dtype, and what the op itself leaves open (its
`freedom`), are added at the end. Integers and booleans are either right (0) or unknown (inf). If an op declares nothing
and has no rule, each result element that an inexact operand reaches is unknown.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutile.dtypes import DType, float8_e4m3fn, float8_e5m2, info
from cutile.ir.nodes import Op, Region
from cutile.ir.walk import walk
from cutile.ops import arithmetic, convert, math, mma, reduce, scan, select
from cutile.ops._freedom import Order, ulp_of
from cutile.ops._op import REDUCTION, OpDef, Sig
from cutile.types import TileType

Error = np.ndarray | None
INF = np.inf
F8_ACCUMULATION = 2.0**-12  # relative rounding of Hopper's tensor cores while they sum products of float8 [MEAS-15]

# Ops whose results are never rounded, besides those that move data: each result is an operand's element, perhaps
# negated or rounded to an integer.
UNROUNDED = {arithmetic.minimum, arithmetic.maximum, arithmetic.negative, arithmetic.positive, arithmetic.abs,
             math.floor, math.ceil, select.where, reduce.max, reduce.min}


def spacing(x: np.ndarray, dtype: DType) -> np.ndarray:
    """One unit in the last place of numbers of the size of x, as float64."""
    f = info(dtype).format
    x = np.abs(np.asarray(x, np.float64))
    _, e = np.frexp(np.where(np.isfinite(x) & (x > 0), x, 2.0**f.emin))
    return np.ldexp(1.0, np.maximum(e - 1, f.emin) - f.mantissa)


ROUNDED = ("arithmetic", "math", "reduce", "scan", "mma", "convert")  # families of ops whose float results are rounded


def rounded_too(n: Op, ys: tuple, errors: list[Error]) -> list[Error]:
    """Errors, with half a unit in the last place of float results that had none: their distance from real numbers."""
    if n.op.family not in ROUNDED or n.op.moves_data or n.op in UNROUNDED:
        return errors
    return [e if not isinstance(v.type, TileType) or not info(v.type.dtype).floating else
            _or_half_ulp(y, v.type.dtype, e) for v, y, e in zip(n.results, ys, errors, strict=True)]


def _or_half_ulp(y: np.ndarray, dtype: DType, e: Error) -> np.ndarray:
    half = np.where(np.isfinite(np.asarray(y, np.float64)), spacing(y, dtype) / 2, 0.0)
    return half if e is None else np.where(np.asarray(e) == 0, half, e)


def errors(n: Op, xs: list, es: list[Error], ys: tuple, contraction: bool) -> list[Error]:
    """The errors of an op's results."""
    free = own_freedom(n, xs, ys)
    fused = contraction and n.op is arithmetic.fma
    if free is None and not fused and all(e is None for e in es):
        return [None] * len(ys)
    zero = [np.zeros(np.shape(x)) if e is None else e for x, e in zip(xs, es, strict=True)]
    moved = any(e is not None for e in es)
    with np.errstate(all="ignore"):
        out = error_rule(n.op)(n, xs, zero, ys) if moved else [np.zeros(np.shape(y)) for y in ys]
        if fused:
            out = [out[0] + spacing(xs[0] * xs[1], n.results[0].type.dtype) + spacing(ys[0], n.results[0].type.dtype)]
        return [with_rounding(n, v.type.dtype, np.asarray(y), np.broadcast_to(e, np.shape(y)), free)
                for v, y, e in zip(n.results, ys, out, strict=True)]


def with_rounding(n: Op, dtype: DType, y: np.ndarray, e: np.ndarray, free: Error) -> Error:
    """Add rounding and the op's freedom. Where an integer, overflow or NaN is uncertain, the error is inf."""
    e = np.where(np.isnan(e), INF, e)  # 0 times unknown
    if not info(dtype).floating:
        e = np.where(e > 0, INF, 0.0) if free is None else np.where(e + free > 0, INF, 0.0)
        return e if e.any() else None
    if not n.op.moves_data and n.op not in UNROUNDED:
        size = np.abs(np.asarray(y, np.float64)) + np.where(np.isfinite(e), e, 0)
        e = np.where(e > 0, e + spacing(size, dtype), 0.0)
    e = e if free is None else e + free
    largest = info(dtype).format.max
    over = (e > 0) & ~(np.abs(np.asarray(y, np.float64)) + e <= largest)
    e = np.where(over, INF, e)
    return e if e.any() else None


def own_freedom(n: Op, xs: list, ys: tuple) -> Error:
    """What the op leaves open by itself, for exact operands."""
    dtype = getattr(n.results[0].type, "dtype", None) if n.results else None
    if dtype is None or not info(dtype).floating:
        return None
    ulp = ulp_of(n.op.freedom, n.attrs.get("rounding_mode"))
    if ulp is not None and dtype in ulp.limit:
        y = np.asarray(ys[0], np.float64)
        exact = ~np.isfinite(y) | (ulp.exact_at_zero & (np.asarray(xs[0], np.float64) == 0))
        return np.where(exact, 0.0, (ulp.limit[dtype] + 1) * spacing(y, dtype))
    if any(isinstance(f, Order) for f in n.op.freedom):
        return ORDER.get(n.op, _any_order)(n, xs, ys, dtype)
    return None


# ------------------------------------------------------------------ order of sums and products


def unit_roundoff(dtype: DType) -> float:
    """Half a unit in the last place of 1: the relative error of one rounding."""
    return 2.0 ** -(info(dtype).format.mantissa + 1)


def _any_order(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    """The bound of an op whose order is free: nothing is known of its result."""
    return np.full(np.shape(ys[0]), INF)


def _count(n: Op) -> int:
    """How many elements go into one result."""
    axis = n.attrs["axis"]
    return n.operands[0].type.shape[axis] if axis is not None else n.operands[0].type.size


def _sum(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    total = np.add.reduce(np.abs(np.asarray(xs[0], np.float64)), axis=n.attrs["axis"])
    return _zero_if_one(n, 2 * (_count(n) - 1) * unit_roundoff(dtype) * total)


def _prod(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    tiny = spacing(np.zeros(()), dtype)
    return _zero_if_one(n, 2 * _count(n) * (unit_roundoff(dtype) * np.abs(np.asarray(ys[0], np.float64)) + tiny))


def _cumsum(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    return _zero_if_one(n, 2 * (_count(n) - 1) * unit_roundoff(dtype) * _accumulate(np.add, np.abs(xs[0]), n))


def _zero_if_one(n: Op, e: np.ndarray) -> Error:
    return None if _count(n) == 1 else e


def _accumulate(f: np.ufunc, x: np.ndarray, n: Op) -> np.ndarray:
    axis, back = n.attrs["axis"], n.attrs["reverse"]
    x = np.asarray(x, np.float64)
    x = np.flip(x, axis) if back else x
    y = f.accumulate(x, axis=axis)
    return np.flip(y, axis) if back else y


def _mma(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    x, y, acc = (np.abs(np.asarray(v, np.float64)) for v in _factors(n, xs))
    u = unit_roundoff(dtype)
    if n.operands[0].type.dtype in (float8_e4m3fn, float8_e5m2):
        u = max(u, F8_ACCUMULATION)
    return 2 * (x.shape[-1] + 1) * u * (np.matmul(x, y) + acc)


def _factors(n: Op, xs: list) -> tuple:
    """x, y and acc, with the scales of a scaled product in x and y."""
    if n.op is not mma.mma_scaled:
        return tuple(xs)
    x, sx, y, sy, acc = (np.asarray(v, np.float64) for v in xs)
    return (x * np.repeat(sx, x.shape[-1] // sx.shape[-1], -1), y * np.repeat(sy, y.shape[-2] // sy.shape[-2], -2), acc)


def _combined(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    """Order of a user's combine function: known for one float sum or product, none if nothing rounds, else unknown."""
    if _count(n) <= 2 and n.op.accumulates == REDUCTION:
        return None
    rounded = _rounded(n.region)
    if not rounded:
        return None
    if len(xs) == 1 and rounded == [arithmetic.add]:
        return (_sum if n.op.accumulates == REDUCTION else _cumsum)(n, xs, ys, dtype)
    if len(xs) == 1 and rounded == [arithmetic.mul]:
        return _prod(n, xs, ys, dtype)
    return _any_order(n, xs, ys, dtype)


def _rounded(region: Region) -> list[OpDef]:
    """The ops of a combine function whose results are rounded."""
    return [m.op for m in walk(region) if isinstance(m, Op) and not m.op.exact
            and any(info(v.type.dtype).floating for v in m.results)]


ORDER: dict[OpDef, Callable] = {
    reduce.sum: _sum, reduce.prod: _prod, scan.cumsum: _cumsum, scan.cumprod: _prod, mma.mma: _mma,
    mma.mma_scaled: _mma, reduce.reduce: _combined, scan.scan: _combined,
}

# ------------------------------------------------------------------ what is lost


def why_unknown(n: Op) -> tuple[str, str]:
    """Why an op whose operands have finite errors has a result of which nothing is known, and what helps."""
    floats = [v.type.dtype for v in (*n.operands, *n.results)
              if isinstance(v.type, TileType) and info(v.type.dtype).floating]
    narrow = [d for d in floats if d.bitwidth < 32]
    help = f"compute in float32 (.astype(ct.float32) after the load), as {narrow[0].name} is coarse" if narrow else ""
    result = n.results[0].type.dtype
    if not info(result).floating:
        return f"a result of dtype {result.name} follows from a rounded number", ""
    if n.op is arithmetic.truediv:
        return "the divisor may be 0, since what was rounded before may be off by as much as itself", help
    if n.op.error_bound is None and error_rule(n.op) is unknown:
        return f"no rule says how an error passes through {n.op.spelling}()", ""
    if any(isinstance(f, Order) for f in n.op.freedom) and ORDER.get(n.op, _any_order) in (_any_order, _combined):
        return "the order of the steps is free, and each rounds", ""
    return (f"what was rounded before may take {n.op.spelling}() out of its domain, or its result out of the range of "
            f"{result.name}"), help


# ------------------------------------------------------------------ operands with errors


def unknown(n: Op, xs: list, es: list, ys: tuple) -> list[np.ndarray]:
    """Each result element that an inexact operand may reach is unknown: the one at its position, or all."""
    out = []
    for y in ys:
        reached = np.zeros(np.shape(y), bool)
        for e in es:
            try:
                reached = reached | np.broadcast_to(e > 0, np.shape(y))
            except ValueError:
                reached = reached | bool(np.any(e))
        out.append(np.where(reached, INF, 0.0))
    return out


def moves(n: Op, xs: list, es: list, ys: tuple) -> list[np.ndarray]:
    """Errors move with their elements: the meaning runs on them. Operands called index are passed as they are."""
    names = n.op.flat_names(n.layout)
    grouped = n.op.group([x if name == "index" else e for name, x, e in zip(names, xs, es, strict=True)], n.layout)
    keywords = dict(n.attrs)
    if "sig" in n.op.given:
        keywords["sig"] = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
    return [np.asarray(n.op.meaning(*grouped, **keywords), np.float64)]


def declared(n: Op, xs: list, es: list, ys: tuple) -> list[np.ndarray]:
    """Applies the error bound that the op declares."""
    return [n.op.error_bound(*(np.asarray(x, np.float64) for x in xs), *es, np.asarray(ys[0], np.float64))]


def _astype(n, xs, es, ys):
    a, b = n.operands[0].type.dtype, n.results[0].type.dtype
    x, e = np.asarray(xs[0], np.float64), es[0]
    if not info(b).floating:
        cut = (lambda v: v != 0) if info(b).kind == "b" else np.trunc
        same = (cut(x - e) == cut(x + e)) & np.isfinite(e)
        same &= ~((x - e < 0) & (x + e > 0)) if info(b).kind == "b" else True
        return [np.where((e > 0) & ~same, INF, 0)]
    return [e if info(a).floating else np.where(e > 0, INF, 0)]


def _summed(n, xs, es, ys):
    return [np.add.reduce(es[0], axis=n.attrs["axis"])]


def _multiplied(n, xs, es, ys):
    x = np.abs(np.asarray(xs[0], np.float64))
    return [np.multiply.reduce(x + es[0], axis=n.attrs["axis"]) - np.multiply.reduce(x, axis=n.attrs["axis"])]


def _running_sum(n, xs, es, ys):
    return [_accumulate(np.add, es[0], n)]


def _running_product(n, xs, es, ys):
    x = np.abs(np.asarray(xs[0], np.float64))
    return [_accumulate(np.multiply, x + es[0], n) - _accumulate(np.multiply, x, n)]


def _greatest(n, xs, es, ys):
    return [np.maximum.reduce(es[0], axis=n.attrs["axis"])]


def _index(sign: int) -> Callable:
    """argmax or argmin: unknown where another element may be the best."""

    def rule(n, xs, es, ys):
        axis = n.attrs["axis"]
        x, e = sign * np.asarray(xs[0], np.float64), es[0]
        at = np.expand_dims(np.asarray(ys[0], np.int64), axis)
        top, over = np.take_along_axis(x, at, axis), np.take_along_axis(e, at, axis)
        rival = (x + e >= top - over) & (e + over > 0) & (np.arange(x.shape[axis]).reshape(
            [-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]) != at)
        return [np.where(rival.any(axis), INF, 0)]

    return rule


def _matrix(n, xs, es, ys):
    scaled = n.op is mma.mma_scaled
    if scaled and (es[1].any() or es[3].any()):
        return [np.full(np.shape(ys[0]), INF)]
    x, y, _ = (np.abs(np.asarray(v, np.float64)) for v in _factors(n, xs))
    at = (0, 2, 4) if scaled else (0, 1, 2)
    ex, ey, eacc = _factors(n, [es[i] if i in at else xs[i] for i in range(len(xs))])
    return [np.matmul(x, ey) + np.matmul(ex, y) + np.matmul(ex, ey) + eacc]


def _function(n, xs, es, ys):
    """The bound of a user's function: known if it only picks elements or is one sum, else unknown."""
    reduces = n.op.accumulates == REDUCTION
    if len(xs) == 1 and not _rounded(n.region) and info(n.results[0].type.dtype).floating:
        ops = {m.op for m in walk(n.region) if isinstance(m, Op)}
        if ops <= {arithmetic.minimum, arithmetic.maximum}:
            return _greatest(n, xs, es, ys) if reduces else [_accumulate(np.maximum, es[0], n)]
    if len(xs) == 1 and _rounded(n.region) == [arithmetic.add]:
        return _summed(n, xs, es, ys) if reduces else _running_sum(n, xs, es, ys)
    return [np.full(np.shape(y), INF) for y in ys]


def _powi(n, xs, es, ys):
    x, k, e, ek = np.asarray(xs[0], np.float64), np.asarray(xs[1], np.float64), es[0], es[1]
    y = np.abs(np.asarray(ys[0], np.float64))
    relative = np.abs(k) * e / np.where(np.abs(x) > 2 * e, np.abs(x) - e, np.nan)
    moved = y * np.expm1(relative) + 4 * np.abs(k) * unit_roundoff(n.results[0].type.dtype) * y
    grown = np.abs(x) + e
    low = np.where(k > 0, np.power(grown, np.maximum(k, 0)) + y, INF)  # near zero only positive powers are known
    moved = np.where(np.isnan(relative), low, moved)
    return [np.where(ek > 0, INF, np.where((e == 0) | (k == 0), 0, moved))]


RULES: dict[OpDef, Callable] = {
    convert.astype: _astype, math.powi: _powi,
    reduce.sum: _summed, reduce.prod: _multiplied, scan.cumsum: _running_sum, scan.cumprod: _running_product,
    reduce.max: _greatest, reduce.min: _greatest, reduce.argmax: _index(1), reduce.argmin: _index(-1),
    mma.mma: _matrix, mma.mma_scaled: _matrix, reduce.reduce: _function, scan.scan: _function,
}


def error_rule(op: OpDef) -> Callable:
    if op.error_bound is not None:
        return declared
    return RULES.get(op, moves if op.moves_data else unknown)

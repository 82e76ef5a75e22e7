"""How errors pass through an op: given operands with errors, how far may its result be from the interpreter's?

An error is an absolute distance. A rule gives the distance that the exact result may move; rounding to the dtype, and
what the op itself leaves open, are added at the end. Integers and booleans are either right (0) or unknown (inf).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutile.dtypes import DType, float8_e4m3fn, float8_e5m2, info
from cutile.ir.nodes import Op, Region
from cutile.ir.walk import walk
from cutile.ops._op import Sig
from cutile.types import RoundingMode

Error = np.ndarray | None
INF = np.inf
OPTIONS = {  # ulp under an option, in place of the op's own [docs/freedoms.md]
    ("truediv", RoundingMode.FULL): 2, ("truediv", RoundingMode.APPROX): 2, ("exp", RoundingMode.APPROX): 62,
    ("tanh", RoundingMode.APPROX): 129, ("sqrt", RoundingMode.APPROX): 1,
}
F8_ACCUMULATION = 2.0**-12  # what the tensor cores of Hopper keep while they sum products of float8 [MEAS-15]


def spacing(x: np.ndarray, dtype: DType) -> np.ndarray:
    """One unit in the last place of numbers of that size, as float64."""
    f = info(dtype).format
    x = np.abs(np.asarray(x, np.float64))
    _, e = np.frexp(np.where(np.isfinite(x) & (x > 0), x, 2.0**f.emin))
    return np.ldexp(1.0, np.maximum(e - 1, f.emin) - f.mantissa)


def errors(n: Op, xs: list, es: list[Error], ys: tuple, contraction: bool) -> list[Error]:
    """The errors of an op's results."""
    free = own(n, xs, ys)
    fused = contraction and n.op.name == "fma"
    if free is None and not fused and all(e is None for e in es):
        return [None] * len(ys)
    zero = [np.zeros(np.shape(x)) if e is None else e for x, e in zip(xs, es, strict=True)]
    moved = any(e is not None for e in es)
    with np.errstate(all="ignore"):
        out = RULES.get(n.op.name, unknown)(n, xs, zero, ys) if moved else [np.zeros(np.shape(y)) for y in ys]
        if fused:
            out = [out[0] + spacing(xs[0] * xs[1], n.results[0].type.dtype) + spacing(ys[0], n.results[0].type.dtype)]
        return [finished(n, v.type.dtype, np.asarray(y), np.broadcast_to(e, np.shape(y)), free)
                for v, y, e in zip(n.results, ys, out, strict=True)]


def finished(n: Op, dtype: DType, y: np.ndarray, e: np.ndarray, free: Error) -> Error:
    """The error with rounding and the op's own freedom; unknown integers, overflow and NaN become inf."""
    e = np.where(np.isnan(e), INF, e)  # as of 0 times what is unknown
    if not info(dtype).floating:
        e = np.where(e > 0, INF, 0.0) if free is None else np.where(e + free > 0, INF, 0.0)
        return e if e.any() else None
    if n.op.name not in MOVES:
        size = np.abs(np.asarray(y, np.float64)) + np.where(np.isfinite(e), e, 0)
        e = np.where(e > 0, e + spacing(size, dtype), 0.0)
    e = e if free is None else e + free
    largest = info(dtype).format.max
    over = (e > 0) & ~(np.abs(np.asarray(y, np.float64)) + e <= largest)
    e = np.where(over, INF, e)
    return e if e.any() else None


def own(n: Op, xs: list, ys: tuple) -> Error:
    """What the op leaves open by itself, for exact operands."""
    dtype = getattr(n.results[0].type, "dtype", None) if n.results else None
    if dtype is None or not info(dtype).floating:
        return None
    ulp = OPTIONS.get((n.op.name, n.attrs.get("rounding_mode")))
    if ulp is None and isinstance(n.op.ulp, dict):
        ulp = n.op.ulp.get(dtype)
    if ulp is not None:
        y = np.asarray(ys[0], np.float64)
        settled = ~np.isfinite(y) | trivial(n.op.name, xs)
        return np.where(settled, 0.0, (ulp + 1) * spacing(y, dtype))
    rule = ORDER.get(n.op.name)
    return None if rule is None else rule(n, xs, ys, dtype)


def trivial(name: str, xs: list) -> np.ndarray | bool:
    """Where a function of the list has a result that every implementation gets right: at zeros and ones."""
    x = np.asarray(xs[0], np.float64)
    return x == 0 if name in ("sin", "tan", "sinh", "tanh", "sqrt") else False


# ------------------------------------------------------------------ order of sums and products


def unit(dtype: DType) -> float:
    """Half a unit in the last place of 1: the relative error of one rounding."""
    return 2.0 ** -(info(dtype).format.mantissa + 1)


def _count(n: Op) -> int:
    """How many elements go into one result."""
    axis = n.attrs["axis"]
    return n.operands[0].type.shape[axis] if axis is not None else n.operands[0].type.size


def _sum(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    total = np.add.reduce(np.abs(np.asarray(xs[0], np.float64)), axis=n.attrs["axis"])
    return _zero_if_one(n, 2 * (_count(n) - 1) * unit(dtype) * total)


def _prod(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    tiny = spacing(np.zeros(()), dtype)
    return _zero_if_one(n, 2 * _count(n) * (unit(dtype) * np.abs(np.asarray(ys[0], np.float64)) + tiny))


def _cumsum(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    return _zero_if_one(n, 2 * (_count(n) - 1) * unit(dtype) * _accumulate(np.add, np.abs(xs[0]), n))


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
    u = unit(dtype)
    if n.operands[0].type.dtype in (float8_e4m3fn, float8_e5m2):
        u = max(u, F8_ACCUMULATION)
    return 2 * (x.shape[-1] + 1) * u * (np.matmul(x, y) + acc)


def _factors(n: Op, xs: list) -> tuple:
    """x, y and acc, with the scales of a scaled product in x and y."""
    if n.op.name != "mma_scaled":
        return tuple(xs)
    x, sx, y, sy, acc = (np.asarray(v, np.float64) for v in xs)
    return (x * np.repeat(sx, x.shape[-1] // sx.shape[-1], -1), y * np.repeat(sy, y.shape[-2] // sy.shape[-2], -2), acc)


def _combined(n: Op, xs: list, ys: tuple, dtype: DType) -> Error:
    """A user's function: one float sum or product is known, one that does not round is exact, others are unknown."""
    if _count(n) <= 2 and n.op.name == "reduce":
        return None
    names = _rounding(n.region)
    if not names:
        return None
    if len(xs) == 1 and names in (["add"], ["mul"]):
        scan = n.op.name == "scan"
        return {("add", False): _sum, ("add", True): _cumsum, ("mul", False): _prod, ("mul", True): _prod}[
            names[0], scan](n, xs, ys, dtype)
    return np.full(np.shape(ys[0]), INF)


def _rounding(region: Region) -> list[str]:
    """The ops of a combine function whose results are rounded."""
    return [m.op.name for m in walk(region) if isinstance(m, Op) and not m.op.exact
            and any(info(v.type.dtype).floating for v in m.results)]


ORDER: dict[str, Callable] = {
    "sum": _sum, "prod": _prod, "cumsum": _cumsum, "cumprod": _prod, "mma": _mma, "mma_scaled": _mma,
    "reduce": _combined,
    "scan": _combined,
}

# ------------------------------------------------------------------ operands with errors


def unknown(n: Op, xs: list, es: list, ys: tuple) -> list[np.ndarray]:
    """Nothing is known of elements that an inexact operand may reach: by position, where shapes allow, else all."""
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
    """Elements change places; errors with them."""
    grouped = n.op.group(es[:1] + xs[1:] if n.op.name == "extract" else
                         [*es[:1], *xs[1:-1], es[-1]] if n.op.name == "insert" else es, n.layout)
    keywords = dict(n.attrs)
    if "sig" in n.op.given:
        keywords["sig"] = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
    return [np.asarray(n.op.meaning(*grouped, **keywords), np.float64)]


def _elementwise(f: Callable) -> Callable:
    return lambda n, xs, es, ys: [f(*(np.asarray(x, np.float64) for x in xs), *es, np.asarray(ys[0], np.float64))]


def _total(x, y, ex, ey, r):
    """Of a sum or difference; an infinity that is certain stays what it is, whatever finite is added."""
    certain = np.isinf(x) & (ex == 0) & np.isfinite(y) & np.isfinite(ey)
    certain |= np.isinf(y) & (ey == 0) & np.isfinite(x) & np.isfinite(ex)
    return np.where(certain, 0, ex + ey)


def _product(x, y, ex, ey, r):
    return np.where(ex > 0, np.abs(y) * ex, 0) + np.where(ey > 0, np.abs(x) * ey, 0) + np.where(
        (ex > 0) & (ey > 0), ex * ey, 0)


def _quotient(x, y, ex, ey, q):
    left = np.abs(y) - ey
    return np.where(left > 0, (ex + np.where(ey > 0, np.abs(q) * ey, 0)) / left, np.where((ex > 0) | (ey > 0), INF, 0))


def _fma(x, y, z, ex, ey, ez, r):
    return _product(x, y, ex, ey, r) + ez


def _ends(f: Callable, least: float = -INF) -> Callable:
    """A monotone function of one operand: looked at both ends of the interval."""

    def rule(n, xs, es, ys):
        x, e = np.asarray(xs[0], np.float64), es[0]
        y = f(x)
        moved = np.maximum(np.abs(f(x + e) - y), np.abs(f(x - e) - y))
        return [np.where(e == 0, 0, np.where((x - e < least) | ~np.isfinite(e), INF, moved))]

    return rule


def _corners(f: Callable, allowed: Callable) -> Callable:
    """A function of two operands that is monotone in each: looked at the corners."""

    def rule(n, xs, es, ys):
        (x, y), (ex, ey) = (np.asarray(v, np.float64) for v in xs), es
        r = f(x, y)
        moved = np.max([np.abs(f(x + a * ex, y + b * ey) - r) for a in (-1, 1) for b in (-1, 1)], axis=0)
        free = (ex == 0) & (ey == 0)
        return [np.where(free, 0, np.where(allowed(x, y, ex, ey), moved, INF))]

    return rule


def _tan(x, e, y):
    return np.where(np.abs(np.cos(x)) > 4 * e, 2 * e * (1 + y * y), np.where(e > 0, INF, 0))


def _cosh(x, e, y):
    return np.where(e > 0, np.cosh(np.abs(x) + e) - np.cosh(x), 0)


def _larger(*args):
    k = (len(args) - 1) // 2
    return np.maximum.reduce(np.broadcast_arrays(*args[k:2 * k]))


def _where(c, x, y, ec, ex, ey, r):
    return np.where(ec > 0, np.where((x == y) & (ex == 0) & (ey == 0), 0, INF), np.where(c != 0, ex, ey))


def _compared(x, y, ex, ey, r):
    """Unknown where the sides may change places."""
    return np.where((ex + ey > 0) & ~(np.abs(x - y) > ex + ey), INF, 0)


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
    if n.op.name == "mma_scaled" and (es[1].any() or es[3].any()):
        return [np.full(np.shape(ys[0]), INF)]
    x, y, _ = (np.abs(np.asarray(v, np.float64)) for v in _factors(n, xs))
    at = (0, 2, 4) if n.op.name == "mma_scaled" else (0, 1, 2)
    ex, ey, eacc = _factors(n, [es[i] if i in at else xs[i] for i in range(len(xs))])
    return [np.matmul(x, ey) + np.matmul(ex, y) + np.matmul(ex, ey) + eacc]


def _function(n, xs, es, ys):
    """A reduction or scan whose function only picks elements passes errors on; any other is unknown."""
    if len(xs) == 1 and not _rounding(n.region) and info(n.results[0].type.dtype).floating:
        names = {m.op.name for m in walk(n.region) if isinstance(m, Op)}
        if names <= {"minimum", "maximum"}:
            return _greatest(n, xs, es, ys) if n.op.name == "reduce" else [_accumulate(np.maximum, es[0], n)]
    if len(xs) == 1 and _rounding(n.region) == ["add"]:
        return _summed(n, xs, es, ys) if n.op.name == "reduce" else _running_sum(n, xs, es, ys)
    return [np.full(np.shape(y), INF) for y in ys]


def _powi(n, xs, es, ys):
    x, k, e, ek = np.asarray(xs[0], np.float64), np.asarray(xs[1], np.float64), es[0], es[1]
    y = np.abs(np.asarray(ys[0], np.float64))
    relative = np.abs(k) * e / np.where(np.abs(x) > 2 * e, np.abs(x) - e, np.nan)
    moved = y * np.expm1(relative) + 4 * np.abs(k) * unit(n.results[0].type.dtype) * y
    grown = np.abs(x) + e
    low = np.where(k > 0, np.power(grown, np.maximum(k, 0)) + y, INF)  # near zero only positive powers are known
    moved = np.where(np.isnan(relative), low, moved)
    return [np.where(ek > 0, INF, np.where((e == 0) | (k == 0), 0, moved))]


MOVES = ("reshape", "broadcast_to", "permute", "cat", "extract", "insert", "where", "negative", "abs", "minimum",
         "maximum",
         "max", "min", "positive", "floor", "ceil")
RULES: dict[str, Callable] = {
    **dict.fromkeys(("reshape", "broadcast_to", "permute", "cat", "extract", "insert", "stack_scalars"), moves),
    **dict.fromkeys(("add", "sub"), _elementwise(_total)),
    "mul": _elementwise(_product), "fma": _elementwise(_fma), "truediv": _elementwise(_quotient),
    **dict.fromkeys(("negative", "abs", "positive"), _elementwise(lambda x, e, r: e)),
    **dict.fromkeys(("minimum", "maximum"), _elementwise(_larger)), "where": _elementwise(_where),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), _elementwise(_compared)),
    "isnan": _elementwise(lambda x, e, r: np.where(np.isfinite(e), 0, INF)), "astype": _astype,
    "full": _elementwise(lambda x, e, r: np.broadcast_to(e, np.shape(r))),
    "exp": _ends(np.exp), "exp2": _ends(np.exp2), "log": _ends(np.log, 0), "log2": _ends(np.log2, 0),
    "sinh": _ends(np.sinh), "tanh": _ends(np.tanh), "sqrt": _ends(np.sqrt, 0),
    "rsqrt": _ends(lambda x: 1 / np.sqrt(x), np.nextafter(0, 1)), "floor": _ends(np.floor), "ceil": _ends(np.ceil),
    **dict.fromkeys(("sin", "cos"), _elementwise(lambda x, e, r: np.minimum(e, 2))), "tan": _elementwise(_tan),
    "cosh": _elementwise(_cosh),
    "pow": _corners(np.power, lambda x, y, ex, ey: x - ex > 0),
    "atan2": _corners(np.arctan2, lambda y, x, ey, ex: (x - ex > 0) | (np.abs(y) > ey)), "powi": _powi,
    "sum": _summed, "prod": _multiplied, "cumsum": _running_sum, "cumprod": _running_product,
    "max": _greatest, "min": _greatest, "argmax": _index(1), "argmin": _index(-1),
    "mma": _matrix, "mma_scaled": _matrix, "reduce": _function, "scan": _function,
}

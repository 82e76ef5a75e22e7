"""What ops mean, in NumPy, on one block's values. Written from the specification; nothing is shared with cutile.

A value is a NumPy array of the dtype's `host` dtype, of the tile's shape. Float ops on narrow formats are computed
wider and rounded once; what the language leaves open (transcendentals, order of sums) is computed as exactly as NumPy
can and rounded once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from conformance.generate.dtypes import DTYPES, D, span, to_float

WIDE = np.longdouble


def convert(x: np.ndarray, a: D, b: D, mode: str = "RN") -> np.ndarray:
    """The cast from dtype a to dtype b [CAST-2…CAST-7]. A float must be in range of an integer target."""
    if a is b:
        return x
    if b.kind == "b":
        return (x.astype(np.float64) if a.kind == "f" else x) != 0
    if a.kind == "f" and b.kind in "iu":
        low, high = span(b.short)
        y = np.trunc(x.astype(WIDE))
        y = np.where((y >= low) & (y <= high), y, 0)  # out of range is undefined: programs avoid it
        return np.array([int(v) for v in y.reshape(-1)], object).reshape(y.shape).astype(b.host)
    if b.kind == "f":
        return to_float(x.astype(WIDE) if a.host.kind != "V" else x.astype(np.float64), b, mode)
    return x.astype(b.host)


def in_float(d: D, f: Callable, *xs: np.ndarray, mode: str = "RN") -> np.ndarray:
    """A float op computed exactly enough and rounded once: in 64 bits of precision, 11 more than float64 has."""
    return to_float(f(*(np.asarray(x.astype(np.float64) if x.dtype.kind == "V" else x, WIDE) for x in xs)), d, mode)


def flush(x: np.ndarray) -> np.ndarray:
    """Subnormal float32 numbers as zeros of their sign."""
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


# ------------------------------------------------------------------ arithmetic

NATIVE = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv}


def arithmetic(name: str, d: D, mode: str | None = None, ftz: bool = False) -> Callable:
    """add, sub, mul or truediv of operands of one dtype."""
    f = NATIVE[name]
    if d.kind == "f" and (mode in ("RZ", "RM", "RP") or d.host.kind == "V"):
        def plain(x, y):
            return _signed_zero(in_float(d, f, x, y, mode=mode or "RN"), f, x, y, mode)
    else:
        def plain(x, y):
            return f(x, y)
    if not ftz:
        return plain
    return lambda x, y: flush(plain(flush(x), flush(y)))


def _signed_zero(r: np.ndarray, f: Callable, x: np.ndarray, y: np.ndarray, mode: str | None) -> np.ndarray:
    """x - x is -0 when rounding down, unless both are zeros of one sign."""
    if mode != "RM" or f not in (operator.add, operator.sub):
        return r
    both = np.signbit(x) == np.signbit(f(np.zeros_like(y), y)) if f is operator.add else np.signbit(x) != np.signbit(y)
    return np.where((r == 0) & ~both, np.copysign(np.zeros_like(r), np.full_like(r, -1)), r)


def floordiv(d: D) -> Callable:
    if d.kind != "f":
        return lambda x, y: x // y
    return lambda x, y: np.floor(arithmetic("truediv", d)(x, y).astype(np.float64)).astype(d.host)


def cdiv(d: D) -> Callable:
    if d.kind == "f":
        return lambda x, y: np.ceil(arithmetic("truediv", d)(x, y).astype(np.float64)).astype(d.host)
    return lambda x, y: x // y + (x % y != 0).astype(d.host)


def mod(d: D) -> Callable:
    if d.kind != "f":
        return lambda x, y: x % y

    def f(x, y):
        r = np.fmod(x, y)
        return np.where((r != 0) & (np.signbit(r) != np.signbit(y)), r + y, r)

    return lambda x, y: in_float(d, f, x, y)


def extreme(d: D, sign: int, propagate: bool = False, ftz: bool = False) -> Callable:
    """maximum (sign 1) or minimum (sign -1) [ARITH-9]."""
    if d.kind != "f":
        return np.maximum if sign > 0 else np.minimum

    def f(x, y):
        if ftz:
            x, y = flush(x), flush(y)
        a, b = x.astype(np.float64), y.astype(np.float64)
        first = np.where(a == b, np.signbit(a) != (sign > 0), a > b if sign > 0 else a < b)
        r = np.where(first, x, y)
        r = np.where(np.isnan(b), y if propagate else x, r)
        return np.where(np.isnan(a), x if propagate else y, r).astype(d.host)

    return f


def integer_power(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """x**n for n >= 0, wrapping."""
    r = np.ones(np.broadcast_shapes(x.shape, n.shape), x.dtype)
    for i in range(int(n.max(initial=0))):
        r = np.where(n > i, r * x, r)
    return r


def repeated_power(d: D) -> Callable:
    """A float to an integer power, by repeated squaring in the dtype of x, or in float32 if x is narrower [POW-1]."""
    if d.bits < 32:
        wide = repeated_power(DTYPES["f32"])
        return lambda x, n: to_float(wide(x.astype(np.float32), n), d)
    mul = arithmetic("mul", d)

    def f(x, n):
        x, n = np.broadcast_arrays(x, n)
        e = np.abs(n.astype(np.int64))
        r, e = np.where(e & 1, x, np.ones_like(x)), e >> 1
        while e.any():
            x = mul(x, x)
            r, e = np.where(e & 1, mul(x, r), r), e >> 1
        return np.where(n < 0, arithmetic("truediv", d)(np.ones_like(r), r), r)

    return f


def power(x, y):
    return np.power(x, y)


def unary(exact: Callable, d: D, mode: str = "RN") -> Callable:
    """A function of longdouble, rounded once."""
    return lambda x: in_float(d, exact, x, mode=mode)


# ------------------------------------------------------------------ comparison, bits, bytes

COMPARE = {"equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
           "greater": operator.gt, "greater_equal": operator.ge}


def compare(name: str, d: D) -> Callable:
    f = COMPARE[name]
    return lambda x, y: f(_plain(x), _plain(y))


def _plain(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype.kind == "V" else x


def truth(x: np.ndarray) -> np.ndarray:
    """A condition: not zero, NaN included."""
    return _plain(x) != 0


def bitcast(a: D, b: D) -> Callable:
    """The same bits as another dtype. tf32 has the bits of a float32."""
    return lambda x: np.ascontiguousarray(x).reshape(-1).view(b.host).reshape(x.shape)


def to_bytes(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def from_bytes(b: D) -> Callable:
    return lambda x: np.ascontiguousarray(x).reshape(-1).view(b.host)


# ------------------------------------------------------------------ reductions, scans, products


def along(f: Callable, axis: int | None, keepdims: bool) -> Callable:
    """A reduction of one axis, from a function of (values, axis); None reduces the flattened tile."""

    def g(x):
        if axis is None:
            r = f(x.reshape(-1), 0)
            return r.reshape((1,) * x.ndim) if keepdims else r
        r = f(x, axis)
        return np.expand_dims(r, axis) if keepdims else r

    return g


def total(name: str, d: D) -> Callable:
    """sum or prod."""
    ufunc = np.add if name in ("sum", "cumsum") else np.multiply
    if d.kind != "f":
        return lambda x, axis: ufunc.reduce(x, axis=axis, dtype=d.host)
    return lambda x, axis: in_float(d, lambda v: ufunc.reduce(v, axis=axis), x)


def running(name: str, d: D, axis: int, reverse: bool) -> Callable:
    """cumsum or cumprod."""
    ufunc = np.add if name == "cumsum" else np.multiply

    def f(x):
        x = np.flip(x, axis) if reverse else x
        if d.kind != "f":
            r = ufunc.accumulate(x, axis=axis, dtype=d.host)
        else:
            r = in_float(d, lambda v: ufunc.accumulate(v, axis=axis), x)
        return np.flip(r, axis) if reverse else r

    return f


def best(sign: int, d: D, propagate: bool) -> Callable:
    """The greatest or least element along an axis."""
    f = extreme(d, sign, propagate)

    def g(x, axis):
        x = np.moveaxis(x, axis, 0)
        r = x[0]
        for y in x[1:]:
            r = f(r, y)
        return r

    return g


def best_index(sign: int, d: D, propagate: bool) -> Callable:
    """argmax or argmin: the first of equal ones; NaN is worst, or wins."""

    def f(x, axis):
        v = _plain(x)
        if d.kind != "f":
            return (np.argmax if sign > 0 else np.argmin)(v, axis).astype(np.int32)
        nan = np.isnan(v)
        key = np.where(nan, -np.inf, sign * v.astype(np.float64))
        top = (key == key.max(axis, keepdims=True)) & ~nan
        top = np.where(top.any(axis, keepdims=True), top, nan)
        if propagate:
            top = np.where(nan.any(axis, keepdims=True), nan, top)
        return np.argmax(top, axis).astype(np.int32)

    return f


def tree(f: Callable, axis: int, keepdims: bool) -> Callable:
    """ct.reduce over a tuple of tiles: f takes and gives tuples. Any order will do: f is associative, commutative."""

    def g(*xs):
        parts = [np.moveaxis(x, axis, 0) for x in xs]
        acc = tuple(p[0] for p in parts)
        for i in range(1, len(parts[0])):
            acc = f(acc, tuple(p[i] for p in parts))
        acc = tuple(np.expand_dims(a, axis) if keepdims else a for a in acc)
        return acc if len(xs) > 1 else acc[0]

    return g


def prefix(f: Callable, axis: int, reverse: bool) -> Callable:
    """ct.scan over a tuple of tiles."""

    def g(*xs):
        parts = [np.moveaxis(x, axis, 0) for x in xs]
        order = range(len(parts[0]))[::-1] if reverse else range(len(parts[0]))
        acc, out = None, [np.empty_like(p) for p in parts]
        for i in order:
            here = tuple(p[i] for p in parts)
            acc = here if acc is None else f(acc, here)
            for o, a in zip(out, acc, strict=True):
                o[i] = a
        out = tuple(np.moveaxis(o, 0, axis) for o in out)
        return out if len(xs) > 1 else out[0]

    return g


def product(x: np.ndarray, y: np.ndarray, acc: np.ndarray | None, d: D) -> np.ndarray:
    """A matrix product plus acc, of dtype d."""
    if d.kind != "f":
        r = np.matmul(x.astype(np.int64), y.astype(np.int64))
        return (r if acc is None else r + acc).astype(np.int32)
    r = np.matmul(x.astype(np.float64), y.astype(np.float64))
    return to_float(r if acc is None else r + acc.astype(np.float64), d)


def dtype(short: str) -> D:
    return DTYPES[short]

"""Floating-point arithmetic, functions and comparisons, and conversions to and from floats.

Every operation rounds once. Functions are computed in float64, those of f64 in the machine's long double; the
evaluator does not say how far a GPU may be from that. Approximate modes (approx, full) are computed exactly.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from cutile import dtypes
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.module import Operation
from cutile.ops import _numeric
from cutile.types import RoundingMode
from tests.tileir_eval import formats
from tests.tileir_eval.integers import PREDICATES
from tests.tileir_eval.registry import pure, require

NEAR = ("nearest_even", "approx", "full")  # computed as nearest
COMPUTED = (ty.f16, ty.bf16, ty.f32, ty.f64)


def _element(o: Operation) -> ty.Scalar:
    element = o.operands[0].type.element
    require(element in COMPUTED, f"Tile IR does not compute with {element}", o)
    return element


def _flushing(o: Operation, element: ty.Scalar, fn: Callable) -> Callable:
    """With flush_to_zero, subnormal operands and results are zeros of their sign."""
    if not o.attrs.get("flush_to_zero"):
        return fn
    require(element is ty.f32, f"flush_to_zero is for f32 only, not {element}", o)
    return lambda *xs: _numeric.flush(fn(*map(_numeric.flush, xs)))


# ------------------------------------------------------------------ arithmetic


def _rounded(element: ty.Scalar, fn: Callable) -> Callable:
    """To nearest. In f32 a sum, product, quotient or root of narrower floats is as good as exact."""
    return fn if element in (ty.f32, ty.f64) else lambda *xs: formats.nearest(fn(*xs), element)


def _arithmetic(name: str, fn: Callable, directed: str) -> None:
    @pure(name, elementwise=True)
    def make(o: Operation):
        element, mode = _element(o), o.attrs["rounding_mode"]
        if mode in NEAR:
            return _flushing(o, element, _rounded(element, fn))
        rounding = RoundingMode(mode)
        return _flushing(o, element, lambda *xs: _numeric.directed(directed, rounding, formats.FLOATS[element], *xs))


_arithmetic("addf", operator.add, "add")
_arithmetic("subf", operator.sub, "sub")
_arithmetic("mulf", operator.mul, "mul")
_arithmetic("divf", np.true_divide, "truediv")
_arithmetic("sqrt", np.sqrt, "sqrt")


@pure("fma", elementwise=True)
def _fma(o):
    element, mode = _element(o), o.attrs["rounding_mode"]
    dtype = formats.FLOATS[element]
    if mode in NEAR:
        return _flushing(o, element, lambda x, y, z: _numeric.fma(np.asarray(x), np.asarray(y), np.asarray(z), dtype))
    rounding = RoundingMode(mode)
    if element is ty.f64:
        return _fma64_directed(rounding)

    def directed(x, y, z):  # the product is exact in float64
        product = np.multiply(x, y, dtype=np.float64)
        return _numeric.directed("add", rounding, dtype, product, np.asarray(z, np.float64))

    return _flushing(o, element, directed)


def _fma64_directed(mode: RoundingMode) -> Callable:
    """Element by element, in fractions."""

    def one(x: float, y: float, z: float) -> float:
        if not all(map(math.isfinite, (x, y, z))):
            return z if math.isinf(z) and math.isfinite(x) and math.isfinite(y) else x * y + z
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if not exact:
            same = x * y == 0 and math.copysign(1, x) * math.copysign(1, y) == math.copysign(1, z)
            return z if same else -0.0 if mode is RoundingMode.RM else 0.0
        down = mode is RoundingMode.RM or mode is RoundingMode.RZ and exact > 0
        return _at_most(exact) if down else -_at_most(-exact)

    return np.vectorize(one, otypes=[np.float64])


def _at_most(q: Fraction) -> float:
    """The largest float64 that is not greater."""
    largest = float(np.finfo(np.float64).max)
    if abs(q) > Fraction(largest):
        return largest if q > 0 else -math.inf
    y = q.numerator / q.denominator
    return math.nextafter(y, -math.inf) if Fraction(y) > q else y


for _name, _pick in (("maxf", _numeric.maximum), ("minf", _numeric.minimum)):
    @pure(_name, elementwise=True)
    def _extreme(o, pick=_pick):
        nan = o.attrs["propagate_nan"]
        return _flushing(o, _element(o), lambda x, y: pick(x, y, nan))


pure("remf", elementwise=True)(lambda o: _rounded(_element(o), np.fmod))
pure("absf", elementwise=True)(lambda o: np.abs)
pure("negf", elementwise=True)(lambda o: np.negative)
pure("ceil", elementwise=True)(lambda o: np.ceil)
pure("floor", elementwise=True)(lambda o: np.floor)


# ------------------------------------------------------------------ functions


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each element has an exponent of its own in memory: for a shared one NumPy takes shortcuts, a root for 0.5."""
    x, y = np.broadcast_arrays(x, y)
    return np.power(x.ravel(), y.ravel()).reshape(x.shape)


FUNCTIONS: dict[str, Callable] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "atan2": np.arctan2, "pow": _power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}

for _name, _function in FUNCTIONS.items():
    @pure(_name, elementwise=True)
    def _transcendental(o, fn=_function):
        element = _element(o)
        wide = np.longdouble if element is ty.f64 else np.float64

        def compute(*xs):
            y = fn(*(np.asarray(x, wide) for x in xs))
            return y.astype(np.float64) if element is ty.f64 else formats.nearest(y, element)

        return _flushing(o, element, compute)


@pure("fpowi", elementwise=True)
def _fpowi(o):
    dtype = formats.FLOATS[_element(o)]
    return lambda x, n: _numeric.pow_by_squaring(x, n, dtype)


# ------------------------------------------------------------------ comparisons


@pure("cmpf", elementwise=True)
def _cmpf(o):
    """With a NaN an ordered comparison is false, an unordered one true."""
    compare, ordered = PREDICATES[o.attrs["comparison_predicate"]], o.attrs["comparison_ordering"] == "ordered"
    if ordered == (o.attrs["comparison_predicate"] != "not_equal"):
        return compare
    if ordered:
        return lambda x, y: compare(x, y) & (x == x) & (y == y)
    return lambda x, y: compare(x, y) | (x != x) | (y != y)


# ------------------------------------------------------------------ conversions


@pure("ftof", elementwise=True)
def _ftof(o):
    src, dst, mode = o.operands[0].type.element, o.results[0].type.element, RoundingMode(o.attrs["rounding_mode"])
    require(src is not dst, f"from {src} to itself", o)
    return lambda x: _numeric.convert(np.asarray(x), formats.FLOATS[src], formats.FLOATS[dst], mode)


@pure("itof", elementwise=True)
def _itof(o):
    src, dst, sign = o.operands[0].type.element, o.results[0].type.element, o.attrs["signedness"]
    require(o.attrs["rounding_mode"] == "nearest_even", "only nearest_even is evaluated", o)
    require(dst in (*COMPUTED, ty.tf32), f"a conversion of integers to {dst} is not evaluated", o)
    given = (dtypes.int8 if sign == "signed" else dtypes.uint8) if src is ty.i1 else formats.INT_DTYPES[
        src, sign == "signed"]
    return lambda x: _numeric.convert(formats.numbers(x, src, sign), given, formats.FLOATS[dst])


@pure("ftoi", elementwise=True)
def _ftoi(o):
    """Toward zero. What does not fit saturates where that is asked for, and else is what `_numeric` has."""
    src, dst, sign = _element(o), o.results[0].type.element, o.attrs["signedness"]
    require(dst is not ty.i1, "a float becomes no i1", o)
    given, integer = formats.FLOATS[src], formats.INT_DTYPES[dst, sign == "signed"]
    if not o.attrs["saturating"]:
        return lambda x: _numeric.convert(np.asarray(x), given, integer).view(formats.SIGNED[dst])

    def saturated(x):
        limits = np.iinfo(dtypes.info(integer).carrier)
        x = np.trunc(np.where(np.isnan(x), 0, np.asarray(x, np.float64)))
        inside = np.clip(x, float(limits.min), np.nextafter(float(limits.max) + 1, 0))
        y = inside.astype(limits.dtype)
        y = np.where(x >= float(limits.max) + 1, limits.dtype.type(limits.max), y)
        return y.view(formats.SIGNED[dst])

    return saturated

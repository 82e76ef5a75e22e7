"""Integer arithmetic, comparisons, bits and conversions between widths.

Promises of the bytecode (that an operation does not wrap) are checked. Division by zero and the like, which Tile IR
leaves undefined, give what `_numeric` gives.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.module import Operation
from cutile.ops import _numeric
from tests.tileir_eval import formats
from tests.tileir_eval.registry import pure, require

SIGNED = "signed"


# ------------------------------------------------------------------ sums and products


def _exact(fn: Callable, xs, element: ty.Scalar, signedness: str) -> np.ndarray:
    """The result in Python's integers."""
    return np.asarray(fn(*(np.asarray(formats.numbers(x, element, signedness)).astype(object) for x in xs)))


def check_wrap(o: Operation, fn: Callable, xs, element: ty.Scalar, result: ty.Scalar) -> None:
    """The promise of the attribute `overflow`."""
    for word, signedness in (("signed", "signed"), ("unsigned", "unsigned")):
        if o.attrs["overflow"] not in (f"no_{word}_wrap", "no_wrap"):
            continue
        low, high = (-1 << result.bits - 1, 1 << result.bits - 1) if signedness == SIGNED else (0, 1 << result.bits)
        r = _exact(fn, xs, element, signedness)
        require(bool(np.all((r >= low) & (r < high))), f"wraps, though {o.attrs['overflow']} says that it does not", o)


def _wrapping(name: str, fn: Callable, of_bits: Callable) -> None:
    @pure(name, elementwise=True)
    def make(o: Operation):
        element = o.results[0].type.element
        compute = of_bits if element is ty.i1 else fn
        if o.attrs["overflow"] == "none":
            return compute

        def checked(*xs):
            check_wrap(o, fn, xs, element, element)
            return compute(*xs)

        return checked


_wrapping("addi", operator.add, np.logical_xor)
_wrapping("subi", operator.sub, np.logical_xor)
_wrapping("muli", operator.mul, np.logical_and)
_wrapping("negi", operator.neg, np.positive)


@pure("shli", elementwise=True)
def _shift_left(o):
    element = o.results[0].type.element

    def shift(x, y):
        if o.attrs["overflow"] != "none":
            amount = formats.unsigned(y, element)
            check_wrap(o, lambda v: v << amount.astype(object), [x], element, element)
        if element is ty.i1:
            return x & ~y
        return _numeric.shift_left(x, y)

    return shift


@pure("shri", elementwise=True)
def _shift_right(o):
    element, sign = o.results[0].type.element, o.attrs["signedness"]
    if element is ty.i1:
        return (lambda x, y: x) if sign == SIGNED else (lambda x, y: x & ~y)
    return lambda x, y: _numeric.shift_right(formats.numbers(x, element, sign), y).view(formats.SIGNED[element])


@pure("absi", elementwise=True)
def _absi(o):
    return np.positive if o.results[0].type.element is ty.i1 else np.abs


@pure("mulhii", elementwise=True)
def _mulhii(o):
    element = o.results[0].type.element
    if element is ty.i1:
        return lambda x, y: np.zeros_like(np.logical_and(x, y))
    bits = element.bits

    def high(x, y):
        x, y = (formats.unsigned(v, element).astype(np.uint64) for v in (x, y))
        product = _high64(x, y) if bits == 64 else x * y >> np.uint64(bits)
        return product.astype(formats.UNSIGNED[element]).view(formats.SIGNED[element])

    return high


def _high64(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The upper half of a product of 64-bit numbers, from four products of their halves."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x1, x0, y1, y0 = x >> half, x & low, y >> half, y & low
    middle = x1 * y0 + (x0 * y0 >> half)
    other = x0 * y1 + (middle & low)
    return x1 * y1 + (middle >> half) + (other >> half)


# ------------------------------------------------------------------ quotients


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rounded toward zero."""
    down = _numeric.floordiv(x, y)
    if x.dtype.kind == "u":
        return down
    exact = np.where(y == 0, 0, np.remainder(x, np.where(y == 0, 1, y)))
    return down + ((exact != 0) & ((x < 0) != (y < 0))).astype(down.dtype)


_ROUNDED = {"zero": _quotient, "negative_inf": _numeric.floordiv, "positive_inf": _numeric.cdiv}


@pure("divi", elementwise=True)
def _divi(o):
    element, sign, divide = o.results[0].type.element, o.attrs["signedness"], _ROUNDED[o.attrs["rounding"]]
    require(sign == SIGNED or o.attrs["rounding"] != "negative_inf", "unsigned and negative_inf do not go together", o)
    return lambda x, y: formats.wrapped(
        divide(formats.numbers(x, element, sign), formats.numbers(y, element, sign)), element)


@pure("remi", elementwise=True)
def _remi(o):
    """The sign of the dividend. By zero all bits are set, as `_numeric.mod` has it."""
    element, sign = o.results[0].type.element, o.attrs["signedness"]

    def remainder(x, y):
        x, y = formats.numbers(x, element, sign), formats.numbers(y, element, sign)
        zero = y == 0
        r = np.fmod(x, np.where(zero, y.dtype.type(1), y))
        return formats.wrapped(np.where(zero, np.array(-1).astype(r.dtype), r), element)

    return remainder


# ------------------------------------------------------------------ order and bits


for _name, _pick in (("maxi", np.maximum), ("mini", np.minimum)):
    @pure(_name, elementwise=True)
    def _extreme(o, pick=_pick):
        element, sign = o.results[0].type.element, o.attrs["signedness"]
        if sign == SIGNED and element is not ty.i1:
            return pick
        return lambda x, y: formats.wrapped(
            pick(formats.numbers(x, element, sign), formats.numbers(y, element, sign)), element)


PREDICATES = {"equal": np.equal, "not_equal": np.not_equal, "less_than": np.less, "less_than_or_equal": np.less_equal,
              "greater_than": np.greater, "greater_than_or_equal": np.greater_equal}


@pure("cmpi", elementwise=True)
def _cmpi(o):
    element, sign = o.operands[0].type.element, o.attrs["signedness"]
    compare = PREDICATES[o.attrs["comparison_predicate"]]
    if sign == SIGNED and element is not ty.i1:
        return compare
    return lambda x, y: compare(formats.numbers(x, element, sign), formats.numbers(y, element, sign))


for _name, _bitwise in (("andi", np.bitwise_and), ("ori", np.bitwise_or), ("xori", np.bitwise_xor)):
    pure(_name, elementwise=True)(lambda o, f=_bitwise: f)


# ------------------------------------------------------------------ widths


@pure("exti", elementwise=True)
def _exti(o):
    src, dst, sign = o.operands[0].type.element, o.results[0].type.element, o.attrs["signedness"]
    return lambda x: formats.numbers(x, src, sign).astype(formats.SIGNED[dst])


@pure("trunci", elementwise=True)
def _trunci(o):
    src, dst = o.operands[0].type.element, o.results[0].type.element

    def truncate(x):
        check_wrap(o, operator.pos, [x], src, dst)
        return formats.wrapped(x, dst)

    return truncate

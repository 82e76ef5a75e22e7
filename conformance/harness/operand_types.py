"""Ways to state what an expression's type is, whether it is refused, and whether it is a constant.

Operands have names: "int8" is a run-time tile of shape (4,), "int8 ()" a run-time scalar, "float32 (2, 4)" a tile.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.harness.api import accepts, ct, refuses


def operand(p, d, s):
    """In tile code: a run-time tile of dtype `d` and shape `s`, made from the run-time scalar `p`."""
    if d == ct.float8_e8m0fnu:
        return ct.bitcast(ct.full(s, p, ct.uint8), d)
    return ct.full(s, p, d)


def _spec(text: str) -> tuple:
    name, _, shape = text.partition(" ")
    return getattr(ct, name), eval(shape) if shape else (4,)


def _kernel(fn: Callable, check: Callable, operands: tuple[str, ...]) -> object:
    n = len(operands)
    (da, sa), (db, sb), (dc, sc) = [*map(_spec, operands), *[(None, None)] * (3 - n)]

    @ct.kernel
    def k(p, array):
        if n == 0:
            check(fn())
        elif n == 1:
            check(fn(operand(p, da, sa)))
        elif n == 2:
            check(fn(operand(p, da, sa), operand(p, db, sb)))
        else:
            check(fn(operand(p, da, sa), operand(p, db, sb), operand(p, dc, sc)))

    return k


def _args() -> tuple:
    return 1, np.zeros(4, np.float32)


def typed(fn: Callable, *operands: str, dtype: str, shape: tuple[int, ...] = (4,)) -> None:
    """Assert that `fn` of the operands compiles, with this dtype and shape."""
    d = getattr(ct, dtype)

    def check(y):
        right_dtype = y.dtype == d
        right_shape = y.shape == shape
        ct.static_assert(right_dtype)
        ct.static_assert(right_shape)

    accepts(_kernel(fn, check, operands), *_args())


def refused(fn: Callable, *operands: str, error: str | tuple[str, ...] = "TileTypeError") -> None:
    """Assert that `fn` of the operands does not compile."""
    refuses(error, _kernel(fn, lambda y: None, operands), *_args())


def folds(fn: Callable, value: object, dtype: str | None = None) -> None:
    """Assert that `fn()` is a compile-time constant of this value and dtype."""
    d = None if dtype is None else getattr(ct, dtype)

    def check(y):
        ct.static_assert(y == value)
        if d is not None:
            right_dtype = y.dtype == d
            ct.static_assert(right_dtype)

    accepts(_kernel(fn, check, ()), *_args())


def strict(fn: Callable, dtype: str, value: object) -> None:
    """Assert that `fn()` is a strictly typed constant: adding a value beyond its dtype is refused."""
    folds(fn, value, dtype)
    if dtype in ("int8", "int16", "int32", "uint8", "uint16", "uint32"):
        refused(lambda: fn() + (1 << 62), error="TileValueError")


def varies(fn: Callable, *operands: str) -> None:
    """Assert that `fn` of the operands compiles, and is not a compile-time constant."""
    accepts(_kernel(fn, lambda y: None, operands), *_args())

    def check(y):
        ct.sum(ct.zeros(4, ct.int32), keepdims=y == y)  # a parameter that must be constant

    refuses("TileTypeError", _kernel(fn, check, operands), *_args())

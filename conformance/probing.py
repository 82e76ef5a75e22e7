"""Short kernels that ask what the compiler makes of an expression: its dtype, its shape, whether it is a constant.

Names of dtypes are short here, as in clause ids: b1, i8, u16, f32, e4m3.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from conformance.api import accepts, ct, impl, refuses

NAMES = {
    "b1": "bool_", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "tf32": "tfloat32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e8m0": "float8_e8m0fnu",
    "e5m3": "float8_e5m3fnu", "e2m1": "float4_e2m1fn",
}
DTYPES = {short: getattr(ct, name) for short, name in NAMES.items()}
BOOL, SIGNED, UNSIGNED = ("b1",), ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
FLOATS, RESTRICTED = ("f16", "bf16", "f32", "f64"), ("tf32", "e4m3", "e5m2", "e8m0", "e5m3", "e2m1")
INTEGERS = SIGNED + UNSIGNED
ARITHMETIC = BOOL + INTEGERS + FLOATS
NEWER = {"e8m0", "e5m3", "e2m1"}  # formats that only newer GPUs have

NUMPY: dict[str, Any] = {
    "b1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
    "f64": np.float64, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu, "e2m1": ml_dtypes.float4_e2m1fn,
}


@contextmanager
def on_target(*shorts: str):
    """A target without one of these formats may say so; a host implementation that has them all may not."""
    try:
        yield
    except ct.TileUnsupportedFeatureError as e:
        if not NEWER.intersection(shorts) or "float4 arrays" in impl.features:
            raise
        pytest.skip(f"not applicable: {e}")


def look(*functions: Callable[[], Any]) -> list[tuple[Any, Any]]:
    """What the compiler knows of the results of functions run in tile code: (value, dtype) of each.

    The value is a Python number for a constant, a `ct.Tile` for what is known at run time only.
    """
    seen: list[tuple[Any, Any]] = []

    @ct.kernel
    def k():
        for f in ct.static_iter(functions):
            v = f()
            d = v.dtype
            ct.static_eval(seen.append((v, d)))

    accepts(k)
    return seen[-len(functions):]


def constant(f: Callable[[], Any]) -> tuple[Any, Any]:
    """(value, dtype) of a constant expression; fails if it is not constant."""
    [(value, dtype)] = look(f)
    assert not isinstance(value, ct.Tile), f"{value!r} is not a constant"
    return value, dtype


def is_constant(value: Any) -> bool:
    return not isinstance(value, ct.Tile)


def same_number(got: Any, want: Any) -> None:
    """The same Python type and value; NaN is NaN, and zeros have signs."""
    assert type(got) is type(want) and repr(got) == repr(want), f"got {got!r}, wanted {want!r}"


def static(f: Callable[[], Any]) -> Any:
    """The compile-time value of a result that has no dtype: a string, a tuple, None."""
    seen: list[Any] = []

    @ct.kernel
    def k():
        v = f()
        ct.static_eval(seen.append(v))

    accepts(k)
    return seen[-1]


def refused(error: str | tuple[str, ...], f: Callable[[], Any], *, match: str | None = None) -> None:
    """A function that tile code may not contain."""
    @ct.kernel
    def k():
        f()

    refuses(error, k, match=match)


def unary(f: Callable[[Any], Any], a: str, want: str | None, *, error: str = "TileTypeError") -> None:
    """f of a tile of dtype `a` has dtype `want`; None: it is refused."""
    x, expected = DTYPES[a], want and DTYPES[want]

    @ct.kernel
    def k():
        d = f(ct.ones((2,), x)).dtype
        ct.static_assert(d == expected)

    _judge(k, want, error, a)


def unaries(a: str, want: str, *functions: Callable[[Any], Any]) -> None:
    """Each of the functions gives a tile of dtype `want` for one of dtype `a`."""
    x, expected = DTYPES[a], DTYPES[want]

    @ct.kernel
    def k():
        for f in ct.static_iter(functions):
            d = f(ct.ones((2,), x)).dtype
            ct.static_assert(d == expected)

    with on_target(a, want):
        accepts(k)


def binary(f: Callable[[Any, Any], Any], a: str, b: str, want: str | None, *, error: str = "TileTypeError") -> None:
    """f of two tiles has dtype `want`; None: it is refused."""
    x, y, expected = DTYPES[a], DTYPES[b], want and DTYPES[want]

    @ct.kernel
    def k():
        d = f(ct.ones((2,), x), ct.ones((2,), y)).dtype
        ct.static_assert(d == expected)

    _judge(k, want, error, a, b)


def _judge(k: Any, want: str | None, error: str, *shorts: str) -> None:
    if want is None:
        refuses(error, k)
    else:
        with on_target(*shorts):
            accepts(k)

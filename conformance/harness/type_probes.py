"""Short kernels that ask what the compiler knows about an expression: its dtype, its shape, whether it is a constant.

Expressions are functions, dtypes go by their short names. Where operands have shapes, see operand_types.py.
"""

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from conformance.harness.api import accepts, ct, impl, refuses, run
from conformance.harness.dtype_names import DTYPES, NEWER


@contextmanager
def on_target(*shorts: str):
    """Skip the test if the target lacks one of these formats; an implementation on the host must have them all."""
    try:
        yield
    except ct.TileUnsupportedFeatureError as e:
        if not NEWER.intersection(shorts) or "float4 arrays" in impl.features:
            raise
        pytest.skip(f"not applicable: {e}")


def look(*functions: Callable[[], Any]) -> list[tuple[Any, Any]]:
    """What the compiler knows about the results of functions called in tile code: (value, dtype) of each.

    The value is a Python number for a constant, and a `ct.Tile` for a run-time value.
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
    """(value, dtype) of a constant expression. Fails if it is not constant."""
    [(value, dtype)] = look(f)
    assert not isinstance(value, ct.Tile), f"{value!r} is not a constant"
    return value, dtype


def is_constant(value: Any) -> bool:
    """Whether a value that static code has seen is a constant."""
    return not isinstance(value, ct.Tile)


def same_number(got: Any, want: Any) -> None:
    """Assert the same Python type and value; NaN equals NaN, and zeros have signs."""
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
    """Assert that tile code may not call this function."""
    @ct.kernel
    def k():
        f()

    refuses(error, k, match=match)


def constant_is(f: Callable[[], Any], value: Any, dtype: str) -> None:
    """Assert that a constant expression has this value, Python type and dtype."""
    got, d = constant(f)
    same_number(got, value)
    assert d.name == dtype, f"got {d.name}, wanted {dtype}"


def unary(f: Callable[[Any], Any], a: str, want: str | None, *, error: str = "TileTypeError") -> None:
    """Assert that f of a tile of dtype `a` has dtype `want`, or, for None, is refused."""
    x, expected = DTYPES[a], want and DTYPES[want]

    @ct.kernel
    def k():
        d = f(ct.ones((2,), x)).dtype
        ct.static_assert(d == expected)

    _judge(k, want, error, a)


def unaries(a: str, want: str, *functions: Callable[[Any], Any]) -> None:
    """Assert that each function gives a tile of dtype `want` for one of dtype `a`."""
    x, expected = DTYPES[a], DTYPES[want]

    @ct.kernel
    def k():
        for f in ct.static_iter(functions):
            d = f(ct.ones((2,), x)).dtype
            ct.static_assert(d == expected)

    with on_target(a, want):
        accepts(k)


def binary(f: Callable[[Any, Any], Any], a: str, b: str, want: str | None, *, error: str = "TileTypeError") -> None:
    """Assert that f of two tiles has dtype `want`, or, for None, is refused."""
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


# ------------------------------------------------------------------ arrays


def counting(*shape, dtype=np.float32):
    """An array of 0, 1, 2, … in row-major order."""
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def taken(f, *args, want=np.int64):
    """The scalars of the tuple f(array) at run time, as int64 numbers."""
    out = np.full(8, -1, want)

    @ct.kernel
    def k(x, out):
        values = f(x)
        for i, v in ct.static_iter(enumerate(values)):
            ct.store(out, i, v)

    return run(k, *args, out).tolist()


def inspect(f, x, annotation=object):
    """For each item of the tuple f(array): (constant value or None, name of its dtype)."""
    seen = []

    @ct.kernel
    def k(x: annotation):
        values = f(x)
        for i in ct.static_iter(range(len(values))):
            v = values[i]
            d = v.dtype
            ct.static_eval(seen.append((v, d.name)))

    accepts(k, x)
    return [(v if is_constant(v) else None, d) for v, d in seen]

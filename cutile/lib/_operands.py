"""What functions of floats take: they compute in float32, or in float64 for float64, and round once at the end."""

from __future__ import annotations

import cutile as ct

FLOATS = (ct.float16, ct.bfloat16, ct.float32, ct.float64)
INTEGERS = (ct.bool_, ct.int8, ct.int16, ct.int32, ct.int64, ct.uint8, ct.uint16, ct.uint32, ct.uint64)


def widened(x, name):
    """A tile in the dtype that functions compute in. `name` is the function's, for errors."""
    ct.static_assert(refusal(x) is None, f"{name}(): {refusal(x)}")
    if ct.static_eval(x.dtype == ct.float64):
        return x
    return x.astype(ct.float32)


def rounded(y, x):
    """A result computed for the operand `x`, in its dtype: integers give float32."""
    return y.astype(ct.static_eval(x.dtype if x.dtype in FLOATS else ct.float32))


def float_tile(x, name):
    """`x`, a tile of floats: for functions that do nothing to integers."""
    ct.static_assert(refusal(x) is None, f"{name}(): {refusal(x)}")
    ct.static_assert(x.dtype in FLOATS,
                     f"{name}(): expected a tile of floats, got {kind(x)}; it changes no integer, so leave it out")
    return x


def integer_tile(x, name):
    """`x`, a tile of integers."""
    ct.static_assert(not isinstance(x, ct.Array) and not is_number(x) and x.dtype in INTEGERS,
                     f"{name}(): expected a tile of integers, got {kind(x)}")
    return x


# What follows runs while a kernel is compiled.


def is_number(x) -> bool:
    return isinstance(x, int | float)


def kind(x) -> str:
    """What an argument is, for errors."""
    if is_number(x):
        return f"the number {x}"
    if isinstance(x, ct.Array):
        return f"an array of {x.dtype.name}"
    return f"{x.dtype.name} of shape {x.shape}" if hasattr(x, "dtype") else type(x).__name__


def refusal(x) -> str | None:
    """Why `x` is no operand of arithmetic, and what to write instead; None if it is one."""
    if is_number(x):
        return f"expected a tile, got {kind(x)}; compute with constants in Python, inside ct.static_eval(…)"
    if isinstance(x, ct.Array):
        return f"got {kind(x)}; load a tile of it first: ct.load(x, index, shape)"
    if not hasattr(x, "dtype"):
        return f"expected a tile, got {kind(x)}"
    if x.dtype in FLOATS or x.dtype in INTEGERS:
        return None
    return f"{x.dtype.name} has no arithmetic; convert it first: x.astype(ct.float32)"

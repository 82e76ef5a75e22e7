"""Kernels that apply a function of tiles to codes.

They convert codes to dtypes by `ct.bitcast`, so that every format can be tested on every implementation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.harness.api import ct, run
from conformance.harness.number_formats import FORMATS, values, width


def dtype(name: str):
    """The implementation's dtype of a name."""
    return getattr(ct, name)


def word(name: str):
    """The unsigned dtype that holds the codes of a dtype."""
    return getattr(ct, f"uint{width(name)}")


def read(a, n, d):
    """In tile code: the block's `n` elements of dtype `d`, from an array of codes."""
    if d == ct.bool_:
        return ct.load(a, ct.bid(0), n)
    if d == ct.float4_e2m1fn:
        x = ct.load(a, ct.bid(0), n).astype(ct.uint8)
        pairs = ct.reshape(x, (n // 2, 2))
        low = ct.reshape(ct.extract(pairs, (0, 0), (n // 2, 1)), (n // 2,))
        high = ct.reshape(ct.extract(pairs, (0, 1), (n // 2, 1)), (n // 2,))
        return ct.unpack_from_bytes((low & 15) | (high << 4), ct.float4_e2m1fn)
    return ct.bitcast(ct.load(a, ct.bid(0), n), d)


def write(out, y, n, d):
    """In tile code: the codes of `y`, which has dtype `d`."""
    if d == ct.bool_:
        ct.store(out, ct.bid(0), y)
    elif d == ct.float4_e2m1fn:
        b = ct.reshape(ct.pack_to_bytes(y), (n // 2, 1))
        ct.store(out, ct.bid(0), ct.reshape(ct.cat((b & 15, b >> 4), 1), (n,)))
    else:
        ct.store(out, ct.bid(0), ct.bitcast(y, WORDS[ct.static_eval(d.bitwidth)]))


WORDS = (
    (None,) * 8 + (ct.uint8,) + (None,) * 7 + (ct.uint16,) + (None,) * 15 + (ct.uint32,) + (None,) * 31 + (ct.uint64,)
)


def _plain(*names: str) -> bool:
    """Whether arrays of all these dtypes hold codes as they are."""
    return not {"bool_", "float4_e2m1fn"} & set(names)


def unary(fn: Callable, src: str, dst: str) -> object:
    """The kernel out = fn(a), codes in and out; `fn` must give dtype `dst`."""
    d, o, w = dtype(src), dtype(dst), word(dst)

    @ct.kernel
    def plain(a, out, n: ct.Constant):
        ct.store(out, ct.bid(0), ct.bitcast(fn(ct.bitcast(ct.load(a, ct.bid(0), n), d)), w))

    @ct.kernel
    def k(a, out, n: ct.Constant):
        write(out, fn(read(a, n, d)), n, o)

    return plain if _plain(src, dst) else k


def binary(fn: Callable, left: str, right: str, dst: str) -> object:
    """The kernel out = fn(a, b)."""
    d, e, o, w = dtype(left), dtype(right), dtype(dst), word(dst)

    @ct.kernel
    def plain(a, b, out, n: ct.Constant):
        i = ct.bid(0)
        ct.store(out, i, ct.bitcast(fn(ct.bitcast(ct.load(a, i, n), d), ct.bitcast(ct.load(b, i, n), e)), w))

    @ct.kernel
    def k(a, b, out, n: ct.Constant):
        write(out, fn(read(a, n, d), read(b, n, e)), n, o)

    return plain if _plain(left, right, dst) else k


def ternary(fn: Callable, name: str) -> object:
    """The kernel out = fn(a, b, c), all of one dtype."""
    d = dtype(name)

    @ct.kernel
    def k(a, b, c, out, n: ct.Constant):
        write(out, fn(read(a, n, d), read(b, n, d), read(c, n, d)), n, d)

    return k


def apply(kernel: object, dst: str, *inputs: np.ndarray) -> np.ndarray:
    """Run one of these kernels over any number of codes. Gives the codes of the results."""
    inputs = tuple(np.ravel(a) for a in np.broadcast_arrays(*inputs))
    size = inputs[0].size
    n = min(1024, 1 << max(size - 1, 1).bit_length())
    total = -(-size // n) * n
    padded = [np.concatenate([a, np.broadcast_to(a[-1:], total - size)]) for a in inputs]
    out = np.zeros(total, np.bool_ if dst == "bool_" else f"u{width(dst) // 8}")
    return run(kernel, *padded, out, n, grid=(total // n,))[:size]


def numbers_of(name: str, c: np.ndarray) -> np.ndarray:
    """The numbers behind codes of any dtype: doubles, integers or bools."""
    if name in FORMATS:
        return values(name, c)
    return c if name == "bool_" else c.view(name)


def nullary(fn: Callable, dst: str) -> object:
    """The kernel out = fn()."""
    o = dtype(dst)

    @ct.kernel
    def k(out, n: ct.Constant):
        write(out, fn(), n, o)

    return k


def made(fn: Callable, dst: str, n: int) -> np.ndarray:
    """The numbers of the tile of `n` elements and dtype `dst` that `fn()` makes."""
    return numbers_of(dst, apply_nullary(nullary(fn, dst), dst, n))


def apply_nullary(kernel: object, dst: str, n: int) -> np.ndarray:
    """Run a kernel of `nullary`. Gives the codes of `n` results."""
    return run(kernel, np.zeros(n, np.bool_ if dst == "bool_" else f"u{width(dst) // 8}"), n)

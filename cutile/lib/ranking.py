"""The largest elements: of a prefix, and of a row."""

from __future__ import annotations

import math

import cutile as ct
from cutile.lib._operands import FLOATS, kind, refusal


def cummax(x, axis=0, *, reverse=False):
    """The largest of the elements up to each one, along an axis.

    Parameters
    ----------
    x : tile of any dtype with arithmetic; bool_ gives int32
    axis : an integer constant
    reverse : whether to go from the last element to the first

    Returns
    -------
    tile of the shape and dtype of x

    Raises
    ------
    TileStaticAssertionError
        x is no tile
    TileTypeError
        the axis is out of range, or no constant

    Notes
    -----
    Exact. From the first NaN on, all is NaN. -0.0 counts as smaller than 0.0.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.cummax(ct.load(x, 0, (4,))))
    >>> x, y = np.array([1, 3, 2, 5], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([1., 3., 3., 5.], dtype=float32)
    """
    x = _tile(x, "cummax")
    return ct.scan(x, axis, _larger, ct.static_eval(_least(x.dtype)), reverse=reverse)


def cummin(x, axis=0, *, reverse=False):
    """The smallest of the elements up to each one, along an axis.

    Parameters
    ----------
    x : tile of any dtype with arithmetic; bool_ gives int32
    axis : an integer constant
    reverse : whether to go from the last element to the first

    Returns
    -------
    tile of the shape and dtype of x

    Raises
    ------
    TileStaticAssertionError
        x is no tile
    TileTypeError
        the axis is out of range, or no constant

    Notes
    -----
    Exact. From the first NaN on, all is NaN. -0.0 counts as smaller than 0.0.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.cummin(ct.load(x, 0, (4,))))
    >>> x, y = np.array([4, 2, 3, 1], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([4., 2., 2., 1.], dtype=float32)
    """
    x = _tile(x, "cummin")
    return ct.scan(x, axis, _smaller, ct.static_eval(_most(x.dtype)), reverse=reverse)


def _larger(a, b):
    if ct.static_eval(a.dtype in FLOATS):
        return ct.maximum(a, b, propagate_nan=True)
    return ct.maximum(a, b)


def _smaller(a, b):
    if ct.static_eval(a.dtype in FLOATS):
        return ct.minimum(a, b, propagate_nan=True)
    return ct.minimum(a, b)


def topk(x, k):
    """The k largest elements of each row, largest first, and where they are.

    Parameters
    ----------
    x : tile of rank 1 or more, of any dtype with arithmetic; rows lie along the last axis
    k : a constant power of two, at most the size of a row

    Returns
    -------
    values : tile of the dtype of x, with k in the place of the last axis
    indices : tile of int32, of the same shape: the positions of the values in their rows

    Raises
    ------
    TileStaticAssertionError
        x is no tile, or k no such number

    Notes
    -----
    Exact. NaN counts as larger than all numbers, as in PyTorch; 0.0 and -0.0 are equal; of equal elements the first
    comes first. Each of the k passes over a row takes out one element: meant for a k that is small beside the row.
    Where a tile reaches beyond an array, load with padding_mode=ct.PaddingMode.NEG_INF.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     values, indices = ct.lib.topk(ct.load(x, 0, (4,)), 2)
    ...     ct.store(y, 0, ct.cat((values, indices.astype(ct.float32)), 0))
    >>> x, y = np.array([1, 7, 3, 5], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([7., 5., 1., 3.], dtype=float32)
    """
    x = _tile(x, "topk")
    ct.static_assert(len(x.shape) > 0 and type(k) is int and 0 < k <= x.shape[-1] and k & (k - 1) == 0,
                     f"topk(): k must be a constant power of two, at most the size {x.shape[-1:]} of a row, got "
                     f"{kind(k)}; ask for the next power of two and use what you need of it")
    n = ct.static_eval(x.shape[-1])
    shape = ct.static_eval((*x.shape[:-1], k))
    places = ct.broadcast_to(ct.arange(n, dtype=ct.int32), x.shape)  # n for an element that was taken out
    ranks = ct.broadcast_to(ct.arange(k, dtype=ct.int32), shape)
    values, indices = ct.zeros(shape, x.dtype), ct.zeros(shape, ct.int32)
    for rank in range(k):
        value, index = ct.reduce((x, places), -1, _better(n), (0, n), keepdims=True)
        values = ct.where(ranks == rank, value, values)
        indices = ct.where(ranks == rank, index, indices)
        places = ct.where(places == index, n, places)
    return values, indices


def _better(n):
    """The function that picks the better of two elements with their places."""
    def better(a, i, b, j):
        first = (j == n) | ((i < n) & (_above(a, b) | (~_above(b, a) & (i < j))))
        return ct.where(first, a, b), ct.where(first, i, j)
    return better


def _above(a, b):
    """Whether a comes before b for their values."""
    if ct.static_eval(a.dtype in FLOATS):
        return (a > b) | (ct.isnan(a) & ~ct.isnan(b))
    return a > b


def _tile(x, name):
    ct.static_assert(refusal(x) is None, f"{name}(): {refusal(x)}")
    if ct.static_eval(x.dtype == ct.bool_):
        return x.astype(ct.int32)
    return x


# What follows runs while a kernel is compiled.


def _least(dtype):
    if dtype in FLOATS:
        return -math.inf
    return -(1 << dtype.bitwidth - 1) if dtype.name.startswith("int") else 0


def _most(dtype):
    if dtype in FLOATS:
        return math.inf
    return (1 << dtype.bitwidth - dtype.name.startswith("int")) - 1

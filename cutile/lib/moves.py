"""Elements in other places: flip, roll, one_hot.

No op moves the elements of a tile freely. flip and roll exchange the halves of blocks of 2, 4, 8, … elements: as many
exchanges as the size of the axis has bits, whatever the distance.
"""

from __future__ import annotations

import math

import cutile as ct
from cutile.lib._operands import integer_tile, is_number, kind


def flip(x, axis=None):
    """The elements in reverse order along an axis.

    Parameters
    ----------
    x : tile of any dtype
    axis : None for all axes, an integer constant, or a tuple of them

    Returns
    -------
    tile of the shape and dtype of x

    Raises
    ------
    TileStaticAssertionError
        x is no tile, or an axis is out of range

    Notes
    -----
    Elements keep their bits. Reading an array in reverse order is cheaper: ct.gather(array, n - 1 - i).

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.flip(ct.load(x, 0, (4,))))
    >>> x, y = np.array([1, 2, 3, 4], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([4., 3., 2., 1.], dtype=float32)
    """
    axes = _checked_axes("flip", x, axis)
    shape = x.shape
    for a in ct.static_iter(axes):
        for size in ct.static_iter(_block_sizes(shape[a])):
            x = _exchanged(x, ct.static_eval(size // 2 * math.prod(shape[a + 1:])))
    return x


def roll(x, shift, axis=None):
    """The elements moved along an axis by `shift` places; those that leave it at one end come in at the other.

    Parameters
    ----------
    x : tile of any dtype
    shift : integer, a constant or a scalar of the kernel; negative ones move towards the front
    axis : an integer constant, or None to roll the flattened tile

    Returns
    -------
    tile of the shape and dtype of x

    Raises
    ------
    TileStaticAssertionError
        x is no tile, the axis is out of range, or the shift is no integer scalar

    Notes
    -----
    Elements keep their bits. Reading an array in that order is cheaper: ct.gather(array, (i - shift) % n).

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.roll(ct.load(x, 0, (4,)), 1))
    >>> x, y = np.array([1, 2, 3, 4], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([4., 1., 2., 3.], dtype=float32)
    """
    ct.static_assert(_is_shift(shift), f"roll(): shift must be an integer, got {kind(shift)}")
    axes = _checked_axes("roll", x, axis)
    if ct.static_eval(axis is None):
        return ct.reshape(_rolled(ct.reshape(x, (-1,)), shift, 0), x.shape)
    ct.static_assert(len(axes) == 1, f"roll(): axis must be one integer or None, got {axis}")
    return _rolled(x, shift, ct.static_eval(axes[0]))


def _rolled(x, shift, axis):
    """Blocks of 2, 4, 8, … elements are rolled in turn: the halves of each are rolled already, so that an element is in
    its place, or in the same place of the other half.
    """
    if ct.static_eval(not is_number(shift)):  # sizes are powers of two, so that a shift that wraps means the same
        shift = shift.astype(ct.static_eval(ct.int32 if shift.dtype.bitwidth <= 32 else ct.int64))
    shape = x.shape
    inner = ct.static_eval(math.prod(shape[axis + 1:]))
    for size in ct.static_iter(_block_sizes(shape[axis])):
        half = ct.static_eval(size // 2)
        i = ct.static_eval(half - 1) & ct.arange(ct.static_eval(shape[axis]), dtype=ct.int32)
        i = ct.reshape(i, ct.static_eval((shape[axis],) + (1,) * (len(shape) - axis - 1)))
        moved = shift % size
        crosses = (i < moved % half) != (moved >= half)
        x = ct.where(crosses, _exchanged(x, ct.static_eval(half * inner)), x)
    return x


def _exchanged(x, half):
    """In each block of 2 * half elements of the flattened tile, the halves exchanged."""
    blocks = ct.static_eval(math.prod(x.shape) // (2 * half))
    y = ct.reshape(x, (blocks, 2, half))
    first = ct.extract(y, (0, 0, 0), (blocks, 1, half))
    second = ct.extract(y, (0, 1, 0), (blocks, 1, half))
    return ct.reshape(ct.cat((second, first), 1), x.shape)


def one_hot(x, n, dtype=ct.float32):
    """Ones at the indices of a tile, on a new last axis, and zeros elsewhere.

    Parameters
    ----------
    x : tile of integers, the indices
    n : size of the new axis, a constant power of two
    dtype : dtype of the result

    Returns
    -------
    tile of shape (*x.shape, n)

    Raises
    ------
    TileStaticAssertionError
        x is no tile of integers, or n no positive power of two

    Notes
    -----
    Exact. An index outside 0 … n - 1 gives zeros only.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     i = ct.load(x, 0, (2,)).astype(ct.int32)
    ...     ct.store(y, (0, 0), ct.lib.one_hot(i, 4))
    >>> x, y = np.array([2, 0], np.float32), np.zeros((2, 4), np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([[0., 0., 1., 0.],
           [1., 0., 0., 0.]], dtype=float32)
    """
    x = integer_tile(x, "one_hot")
    ct.static_assert(type(n) is int and n > 0 and n & (n - 1) == 0,
                     f"one_hot(): n must be a constant power of two, as sizes of tiles are, got {kind(n)}")
    wide = ct.static_eval(x.dtype if x.dtype.bitwidth >= 32 else ct.int32)
    places = ct.arange(n, dtype=wide)
    return (ct.expand_dims(x.astype(wide), -1) == places).astype(dtype)


# What follows runs while a kernel is compiled.


def _checked_axes(name, x, axis):
    ct.static_assert(isinstance(x, ct.Tile), f"{name}(): expected a tile, got {kind(x)}")
    ct.static_assert(_axes(x.shape, axis) is not None,
                     f"{name}(): axis {axis} is out of range for rank {len(x.shape)}, or no integer constant")
    return ct.static_eval(_axes(x.shape, axis))


def _axes(shape, axis):
    """The axes meant, from 0; None if they do not fit."""
    given = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if all(type(a) is int and -len(shape) <= a < len(shape) for a in given):
        return tuple(a % len(shape) for a in given)
    return None


def _block_sizes(n):
    return tuple(2 << k for k in range(n.bit_length() - 1))


def _is_shift(shift):
    if is_number(shift):
        return isinstance(shift, int)
    return hasattr(shift, "shape") and shift.shape == () and not shift.dtype.name.startswith("float")

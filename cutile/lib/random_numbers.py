"""Random numbers from counters: Philox 4x32-10, and from its bits uniform and normal numbers.

A number depends on a seed and an index only, so kernels need no state, blocks need not agree on an order, and a
backward kernel can make the same numbers again. All functions use integer arithmetic and operations of IEEE 754 whose
rounding the language fixes, no exp, log or cos: every implementation gives equal bits.

Philox is from Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

import cutile as ct
from cutile.lib._operands import INTEGERS, integer_tile, is_number, kind
from cutile.lib.elementwise import polynomial

_MULTIPLIERS, _WEYL, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10

# log(1 + f) / f; the normal quantile over 1 - 2 p, in powers of w - 2.5 and of sqrt(w) - 3, for w = -log(4 p (1 - p)).
# Fitted with mpmath to the smallest largest error, highest powers first.
_LOG = (0.089706406, -0.144879565, 0.149157301, -0.165426388, 0.199584708, -0.250030071, 0.333341599, -0.499999762, 1.0)
_CENTRE = (-1.24325137e-08, 3.2855386e-08, 6.59265368e-07, -4.89699823e-06, -7.01924409e-06, 0.000308785646,
           -0.00177164446, -0.00590771716, 0.34880203, 2.12331343)
_TAIL = (-2.9956962e-05, -0.000157421222, 0.00162325241, -0.00484854588, 0.00822877791, -0.0108962022, 0.0133301234,
         1.41659069, 4.00643492)


def philox(counter, key):
    """Philox 4x32-10: four words of random bits from a counter of four words and a key of two.

    Parameters
    ----------
    counter : tuple of four tiles of uint32, which broadcast, or constants from 0 to 2**32 - 1
    key : tuple of two of them

    Returns
    -------
    tuple of four tiles of uint32

    Raises
    ------
    TileStaticAssertionError
        counter or key is no such tuple

    Notes
    -----
    The words are those of Random123, bit by bit. Different counters under one key give independent words.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(y):
    ...     words = ct.lib.philox((ct.arange(4, dtype=ct.uint32), 0, 0, 0), (17, 0))
    ...     ct.store(y, 0, ct.lib.to_uniform(words[3]))
    >>> y = np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (y,))
    >>> y
    array([0.02682132, 0.2651652 , 0.38193387, 0.5513653 ], dtype=float32)
    """
    ct.static_assert(_are_words(counter, 4), "philox(): counter must be a tuple of four tiles of uint32 or constants")
    ct.static_assert(_are_words(key, 2), "philox(): key must be a tuple of two tiles of uint32 or constants")
    a, b, c, d = tuple(ct.astype(w, ct.uint32) for w in ct.static_iter(counter))
    first, second = key
    for _ in ct.static_iter(range(_ROUNDS)):
        p = a.astype(ct.uint64) * ct.static_eval(_MULTIPLIERS[0])
        q = c.astype(ct.uint64) * ct.static_eval(_MULTIPLIERS[1])
        a, c = (q >> 32).astype(ct.uint32) ^ b ^ first, (p >> 32).astype(ct.uint32) ^ d ^ second
        b, d = q.astype(ct.uint32), p.astype(ct.uint32)
        first, second = _next(first, ct.static_eval(_WEYL[0])), _next(second, ct.static_eval(_WEYL[1]))
    return a, b, c, d


def _next(word, step):
    """The next word of a key."""
    if ct.static_eval(is_number(word)):
        return ct.static_eval(word + step & 0xFFFFFFFF)
    return word + step


def random_bits(seed, index):
    """32 random bits for each index: the first word of `philox` with the index as counter and the seed as key.

    Parameters
    ----------
    seed : integer, a constant or a scalar of the kernel; 64 bits of it count
    index : tile of integers of up to 64 bits; equal indices give equal bits

    Returns
    -------
    tile of uint32, of the shape of index

    Raises
    ------
    TileStaticAssertionError
        seed is no integer scalar, or index no tile of integers

    Notes
    -----
    Number the elements of the whole array: `ct.bid(0) * N + ct.arange(N, dtype=ct.int32)`. Where four numbers are
    needed for each index, `philox` gives them at the price of one.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(y):
    ...     bits = ct.lib.random_bits(0, ct.arange(4, dtype=ct.int32))
    ...     ct.store(y, 0, (bits >> 31).astype(ct.float32))
    >>> y = np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (y,))
    >>> y
    array([0., 1., 0., 1.], dtype=float32)
    """
    ct.static_assert(_is_seed(seed), f"random_bits(): seed must be an integer scalar, got {kind(seed)}")
    index = integer_tile(index, "random_bits")
    words = philox((*_halves(index), 0, 0), _halves(seed))
    return words[0]


def _halves(x):
    """The low and the high word of integers, as if they had 64 bits."""
    if ct.static_eval(is_number(x)):
        return ct.static_eval((x & 0xFFFFFFFF, x >> 32 & 0xFFFFFFFF))
    wide = x.astype(ct.int64) if ct.static_eval(x.dtype.name.startswith("int")) else x
    wide = wide.astype(ct.uint64)
    return wide.astype(ct.uint32), (wide >> 32).astype(ct.uint32)


def uniform(seed, index):
    """A number for each index, uniform in [0, 1).

    Parameters
    ----------
    seed : integer, a constant or a scalar of the kernel; 64 bits of it count
    index : tile of integers of up to 64 bits; equal indices give equal numbers

    Returns
    -------
    tile of float32, of the shape of index

    Raises
    ------
    TileStaticAssertionError
        seed is no integer scalar, or index no tile of integers

    Notes
    -----
    `to_uniform(random_bits(seed, index))`: multiples of 2**-24, each equally likely. Equal bits on every back end.

    Examples
    --------
    >>> @ct.kernel
    ... def dropout(x, y, seed):
    ...     t, i = ct.load(x, 0, (4,)), ct.arange(4, dtype=ct.int32)
    ...     ct.store(y, 0, ct.where(ct.lib.uniform(seed, i) < 0.5, 2 * t, 0))
    >>> x, y = np.array([1, 2, 3, 4], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), dropout, (x, y, 17))
    >>> y
    array([2., 0., 6., 8.], dtype=float32)
    """
    return to_uniform(random_bits(seed, index))


def normal(seed, index):
    """A number for each index, of the normal distribution with mean 0 and variance 1.

    Parameters
    ----------
    seed : integer, a constant or a scalar of the kernel; 64 bits of it count
    index : tile of integers of up to 64 bits; equal indices give equal numbers

    Returns
    -------
    tile of float32, of the shape of index

    Raises
    ------
    TileStaticAssertionError
        seed is no integer scalar, or index no tile of integers

    Notes
    -----
    `to_normal(random_bits(seed, index))`. Equal bits on every back end.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(y):
    ...     ct.store(y, 0, ct.lib.normal(0, ct.arange(4, dtype=ct.int32)))
    >>> y = np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (y,))
    >>> y
    array([-0.8433253 ,  0.03479751, -2.3368032 , -0.26973027], dtype=float32)
    """
    return to_normal(random_bits(seed, index))


def to_uniform(bits):
    """The uniform number in [0, 1) that 32 random bits make.

    Parameters
    ----------
    bits : tile of uint32

    Returns
    -------
    tile of float32, of the shape of bits

    Raises
    ------
    TileStaticAssertionError
        bits is no tile of uint32

    Notes
    -----
    The upper 24 bits times 2**-24, exactly.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(y):
    ...     bits = ct.arange(4, dtype=ct.uint32) << 30
    ...     ct.store(y, 0, ct.lib.to_uniform(bits))
    >>> y = np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (y,))
    >>> y
    array([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    ct.static_assert(_are_words((bits,), 1), "to_uniform(): bits must be a tile of uint32")
    return (bits >> 8).astype(ct.float32) * 2.0**-24


def to_normal(bits):
    """The normal number that 32 random bits make.

    Parameters
    ----------
    bits : tile of uint32

    Returns
    -------
    tile of float32, of the shape of bits

    Raises
    ------
    TileStaticAssertionError
        bits is no tile of uint32

    Notes
    -----
    The lowest bit is the sign. The others are p in (0, 0.5), of which the result is the quantile: within 2e-6 of it,
    relatively, and at most 6.34. Only operations that the language rounds correctly take part.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(y):
    ...     bits = ct.arange(4, dtype=ct.uint32) << 29
    ...     ct.store(y, 0, ct.lib.to_normal(bits))
    >>> y = np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (y,))
    >>> y
    array([6.337956 , 1.5341204, 1.1503493, 0.8871466], dtype=float32)
    """
    ct.static_assert(_are_words((bits,), 1), "to_normal(): bits must be a tile of uint32")
    n = bits >> 1
    p = (n.astype(ct.float32) + 0.5) * 2.0**-32
    rest = ((0x7FFFFFFF - n).astype(ct.float32) + 0.5) * 2.0**-31  # 1 - 2 p, with the digits that p has lost near 0.5
    w = -_log((4 * p) * (1 - p))
    centre = polynomial(w - 2.5, _CENTRE)
    tail = polynomial(ct.sqrt(ct.maximum(w, 5.0)) - 3.0, _TAIL)
    z = rest * ct.where(w < 5, centre, tail)
    return ct.where((bits & 1) == 1, -z, z)


def _log(x):
    """log(x) of normal positive float32 numbers, to about 2e-7, without the op that may round differently."""
    i = ct.bitcast(x, ct.int32)
    exponent = (i - 0x3F3504F3) >> 23  # of two, so that the rest is within sqrt(0.5) … sqrt(2)
    f = ct.bitcast(i - (exponent << 23), ct.float32) - 1
    return exponent.astype(ct.float32) * 0.6931471805599453 + f * polynomial(f, _LOG)


# What follows runs while a kernel is compiled.


def _are_words(words, n):
    return isinstance(words, tuple) and len(words) == n and all(map(_is_word, words))


def _is_word(w):
    if is_number(w):
        return isinstance(w, int) and 0 <= w < 2**32
    return getattr(w, "dtype", None) == ct.uint32


def _is_seed(seed):
    if is_number(seed):
        return isinstance(seed, int)
    return hasattr(seed, "shape") and seed.shape == () and seed.dtype in INTEGERS

"""Functions of single elements: erf, log1p, expm1, and rounding to integers.

The polynomials of erf were fitted with mpmath, to the smallest largest error on their intervals.
"""

from __future__ import annotations

import cutile as ct
from cutile.lib._operands import float_tile, rounded, widened

# erf(x) / x - 1 in powers of x * x, for |x| < 1; -log(1 - erf(x)) in powers of x, from 1 to where erf rounds to 1.
# Highest powers first.
_ERF_NEAR = {
    32: (7.8890429e-05, -0.000802081835, 0.00518953288, -0.0268544424, 0.112836003, -0.37612626, 0.128379166),
    64: (5.960666976863101e-11, -1.137494378176842e-09, 1.4660325312740282e-08, -1.6350395663066532e-07,
         1.6461008419395658e-06, -1.4925595768144867e-05, 0.00012055331132769042, -0.0008548326981419795,
         0.0052239776248283135, -0.026866170645077857, 0.11283791670954885, -0.3761263890318375, 0.1283791670955126)}
_ERF_FAR = {
    32: (2.16863791e-05, -0.000441331562, 0.0042045461, -0.0252082478, 0.108418636, 0.633219779, 1.12957859,
         -0.000188074351),
    64: (-1.0349122457318377e-12, 4.734703000044489e-11, -1.0137942979852798e-09, 1.3483741580098475e-08,
         -1.245152850911387e-07, 8.432887655167699e-07, -4.2930170858982076e-06, 1.6390032388416206e-05,
         -4.468068269276611e-05, 6.954878002314184e-05, 4.631977747046503e-05, -0.0006433564828079564,
         0.0017715192819009423, -0.00028275478273460713, -0.019076599749021275, 0.10274646565082549,
         0.6366287648044326, 1.128377269345522, 1.8568528783189858e-07)}
_ERF_IS_ONE = {32: 4.0, 64: 6.0}


def polynomial(x, coefficients):
    """A polynomial of a tile, highest power first."""
    value = ct.full(x.shape, ct.static_eval(coefficients[0]), x.dtype)
    for c in ct.static_iter(coefficients[1:]):
        value = value * x + c
    return value


def erf(x):
    """Error function.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64, or of integers, which are converted to float32

    Returns
    -------
    tile of the shape and dtype of x; integers give float32

    Raises
    ------
    TileStaticAssertionError
        x is an array, or of a dtype without arithmetic

    Notes
    -----
    float32 and float64 are within 2 ulp of the exact value, float16 and bfloat16 within 1. erf(-0.0) is -0.0,
    erf(±inf) is ±1, erf(nan) is NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.erf(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-0.5, 0, 1e-8, 3], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([-5.2049989e-01,  0.0000000e+00,  1.1283792e-08,  9.9997789e-01],
          dtype=float32)
    """
    v = widened(x, "erf")
    width = ct.static_eval(v.dtype.bitwidth)
    a = ct.abs(v)
    near = polynomial(v * v, ct.static_eval(_ERF_NEAR[width])) * v + v
    end = ct.static_eval(_ERF_IS_ONE[width])
    far = 1 - ct.exp(-polynomial(ct.minimum(a, end), ct.static_eval(_ERF_FAR[width])))
    far = ct.where(v < 0, -far, far)
    return rounded(ct.where(a < 1, near, ct.where(ct.isnan(v), v, far)), x)


def log1p(x):
    """log(1 + x), with all digits also where x is small.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64, or of integers, which are converted to float32

    Returns
    -------
    tile of the shape and dtype of x; integers give float32

    Raises
    ------
    TileStaticAssertionError
        x is an array, or of a dtype without arithmetic

    Notes
    -----
    float32 and float64 are within 4 ulp of the exact value, float16 and bfloat16 within 1. log1p(-1) is -inf, of less
    NaN; log1p(-0.0) is -0.0, log1p(inf) is inf, log1p(nan) is NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.log1p(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-1, 0, 1e-8, 1], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([        -inf, 0.000000e+00, 1.000000e-08, 6.931472e-01],
          dtype=float32)
    """
    v = widened(x, "log1p")
    u = v + 1  # what rounding lost of v, the quotient puts back
    y = ct.log(u) * (v / (u - 1))
    return rounded(ct.where(u == 1, v, ct.where(v == float("inf"), v, y)), x)


def expm1(x):
    """exp(x) - 1, with all digits also where the result is small.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64, or of integers, which are converted to float32

    Returns
    -------
    tile of the shape and dtype of x; integers give float32

    Raises
    ------
    TileStaticAssertionError
        x is an array, or of a dtype without arithmetic

    Notes
    -----
    float32 and float64 are within 6 ulp of the exact value, float16 and bfloat16 within 1. expm1(-inf) is -1,
    expm1(inf) is inf, expm1(-0.0) is -0.0, expm1(nan) is NaN; beyond the range of the dtype it is inf.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.expm1(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-100, 0, 1e-8, 1], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([-1.0000000e+00,  0.0000000e+00,  9.9999999e-09,  1.7182817e+00],
          dtype=float32)
    """
    v = widened(x, "expm1")
    e = ct.exp(v)
    small = (e - 1) * (v / ct.log(e))  # log(e) is the number of which e is the exact power, so e's rounding cancels
    return rounded(ct.where(e == 1, v, ct.where(ct.abs(v) < 1, small, e - 1)), x)


def rint(x):
    """The nearest integer, the even one if two are equally near, as a float.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64

    Returns
    -------
    tile of the shape and dtype of x

    Raises
    ------
    TileStaticAssertionError
        x is no tile of floats

    Notes
    -----
    Exact. The sign of x stays: rint(-0.3) is -0.0. Infinities and NaN stay as they are.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.rint(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-0.3, 0.5, 1.5, 2.6], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([-0.,  0.,  2.,  3.], dtype=float32)
    """
    v = widened(float_tile(x, "rint"), "rint")
    a = ct.abs(v)
    units = ct.static_eval(2.0**52 if v.dtype == ct.float64 else 2.0**23)  # from here on floats are integers
    r = (a + units) - units  # the addition rounds to an integer, ties to even
    return rounded(ct.where((a > 0) & (a < units), ct.where(v < 0, -r, r), v), x)


def trunc(x):
    """The integer that is left without the fraction, as a float: rounding towards zero.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64

    Returns
    -------
    tile of the shape and dtype of x

    Raises
    ------
    TileStaticAssertionError
        x is no tile of floats

    Notes
    -----
    Exact. The sign of x stays: trunc(-0.3) is -0.0. Infinities and NaN stay as they are.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.trunc(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-2.7, -0.3, 0.9, 3], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([-2., -0.,  0.,  3.], dtype=float32)
    """
    v = float_tile(x, "trunc")
    return ct.where(v < 0, ct.ceil(v), ct.floor(v))

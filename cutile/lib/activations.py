"""Activation functions of neural networks: sigmoid, SiLU, GELU in both forms, softplus."""

from __future__ import annotations

import cutile as ct
from cutile.lib._operands import rounded, widened
from cutile.lib.elementwise import erf, log1p


def sigmoid(x):
    """The logistic function, 1 / (1 + exp(-x)).

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
    float32 and float64 are within 4 ulp of the exact value, also where it is tiny; float16 and bfloat16 within 1.
    sigmoid(-inf) is 0, sigmoid(inf) is 1, sigmoid(nan) is NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.sigmoid(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-100, 0, 1, 100], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([3.783506e-44, 5.000000e-01, 7.310586e-01, 1.000000e+00],
          dtype=float32)
    """
    return rounded(_sigmoid(widened(x, "sigmoid")), x)


def _sigmoid(v):
    e = ct.exp(-ct.abs(v))  # it cannot overflow
    return ct.where(v < 0, e, 1) / (1 + e)


def silu(x):
    """The sigmoid linear unit, also called swish: x * sigmoid(x).

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
    float32 and float64 are within 5 ulp of the exact value, or within 2 * abs(x) times the smallest subnormal number,
    which is more only where the result is nearly subnormal (x below -86, in float64 -700). float16 and bfloat16 are
    within 1 ulp. silu(-inf) is -0.0, the limit, where x / (1 + exp(-x)) gives NaN; silu(inf) is inf, silu(nan) is NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.silu(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-10, -1, 0, 1], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([-4.5397869e-04, -2.6894143e-01,  0.0000000e+00,  7.3105860e-01],
          dtype=float32)
    """
    v = widened(x, "silu")
    return rounded(_times(v, _sigmoid(v)), x)


def _times(v, weight):
    """v times a weight that vanishes faster than v grows: -inf gives -0.0."""
    return ct.maximum(v, -1e30, propagate_nan=True) * weight


def gelu(x):
    """The Gaussian error linear unit, x times the normal distribution function of x, with erf.

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
    0.5 * x * (1 + erf(x / sqrt(2))). The error is at most 2**-22 * abs(x) in float32 and 2**-51 * abs(x) in float64, as
    that of other libraries: far to the left, where the result is tiny beside x, its relative error is large. float16
    and bfloat16 are computed in float32 and rounded once. gelu(-inf) is -0.0, gelu(inf) is inf, gelu(nan) is NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.gelu(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-3, -1, 0, 1], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([-0.00404969, -0.15865526,  0.        ,  0.8413447 ], dtype=float32)
    """
    v = widened(x, "gelu")
    return rounded(_times(v, 0.5 + 0.5 * erf(v * 0.7071067811865476)), x)


def gelu_tanh(x):
    """The Gaussian error linear unit in the form with tanh, which differs from `gelu` by up to 5e-4.

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
    0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))). The error is at most 2**-22 * abs(x) in float32 and
    2**-51 * abs(x) in float64. float16 and bfloat16 are computed in float32 and rounded once. gelu_tanh(-inf) is -0.0,
    gelu_tanh(inf) is inf, gelu_tanh(nan) is NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.gelu_tanh(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-3, -1, 0, 1], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([-0.00363739, -0.158808  ,  0.        ,  0.841192  ], dtype=float32)
    """
    v = widened(x, "gelu_tanh")
    inner = 1.5957691216057308 * (v + 0.044715 * v * v * v)  # (1 + tanh(u)) / 2 is sigmoid(2 * u)
    return rounded(_times(v, _sigmoid(inner)), x)


def softplus(x):
    """log(1 + exp(x)), a smooth max(x, 0).

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
    float32 and float64 are within 6 ulp of the exact value, also where it is tiny; float16 and bfloat16 within 1.
    softplus(-inf) is 0, softplus(inf) is inf, softplus(nan) is NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.softplus(ct.load(x, 0, (4,))))
    >>> x, y = np.array([-20, 0, 1, 1000], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([2.0611537e-09, 6.9314718e-01, 1.3132617e+00, 1.0000000e+03],
          dtype=float32)
    """
    v = widened(x, "softplus")
    return rounded(ct.maximum(v, 0) + log1p(ct.exp(-ct.abs(v))), x)

"""Values of many elements: mean, var, std, norm, logsumexp, softmax. An axis is given as to ct.sum."""

from __future__ import annotations

import math

import cutile as ct
from cutile.lib._operands import rounded, widened


def mean(x, axis=None, *, keepdims=False, where=None):
    """Arithmetic mean of the elements along one axis, several, or all.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64, or of integers, which are converted to float32
    axis : None for all axes, an integer constant, or a tuple of them
    keepdims : whether reduced axes stay, with size 1
    where : mask that broadcasts to the shape of x, of the elements that count; without it all do. A tile that reaches
        beyond an array needs it, because its padding would count

    Returns
    -------
    tile of the dtype of x; integers give float32

    Raises
    ------
    TileStaticAssertionError
        x is an array, or of a dtype without arithmetic
    TileTypeError
        an axis is out of range, or no constant

    Notes
    -----
    The error is at most (n + 2) * 2**-24 times the mean of the magnitudes of n elements, in float64 2**-53. float16
    and bfloat16 are summed in float32 and rounded once. The sum must not overflow. NaN where no element counts.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     t = ct.load(x, 0, (4,))
    ...     ct.store(y, 0, ct.lib.mean(t, where=ct.arange(4, dtype=ct.int32) < 3))
    >>> x, y = np.array([1, 2, 6, 1000], np.float32), np.zeros(1, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([3.], dtype=float32)
    """
    v = widened(x, "mean")
    v, n = _counted(v, axis, keepdims, where)
    return rounded(ct.sum(v, axis, keepdims=keepdims) / n, x)


def _counted(v, axis, keepdims, where):
    """The tile with zeros for elements that do not count, and how many count for each result."""
    if ct.static_eval(where is None):
        result = ct.sum(v, axis)
        return v, ct.static_eval(float(math.prod(v.shape) // math.prod(result.shape)))
    counts = ct.broadcast_to(where, v.shape)
    return ct.where(counts, v, 0), ct.sum(counts.astype(v.dtype), axis, keepdims=keepdims)


def var(x, axis=None, *, ddof=0, keepdims=False, where=None):
    """Variance of the elements along one axis, several, or all: the mean square of what they differ from their mean.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64, or of integers, which are converted to float32
    axis : None for all axes, an integer constant, or a tuple of them
    ddof : number, subtracted from n in the divisor. 0 as in NumPy and layer norms; 1 is what torch.var means
    keepdims : whether reduced axes stay, with size 1
    where : mask that broadcasts to the shape of x, of the elements that count; without it all do. A tile that reaches
        beyond an array needs it, because its padding would count

    Returns
    -------
    tile of the dtype of x; integers give float32

    Raises
    ------
    TileStaticAssertionError
        x is an array, or of a dtype without arithmetic
    TileTypeError
        an axis is out of range, or no constant

    Notes
    -----
    In two passes, so that a large mean costs no digits beyond those of the differences: the error is at most
    (n + 8) * 2**-24 times the variance plus ((n + 4) * 2**-24 times the mean magnitude) squared, for n elements; in
    float64 2**-53. float16 and bfloat16 are computed in float32 and rounded once.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.var(ct.load(x, 0, (4,)), ddof=1))
    >>> x, y = np.array([1, 2, 3, 4], np.float32), np.zeros(1, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([1.6666666], dtype=float32)
    """
    return rounded(_var(widened(x, "var"), axis, ddof, keepdims, where), x)


def _var(v, axis, ddof, keepdims, where):
    difference = v - mean(v, axis, keepdims=True, where=where)
    difference, n = _counted(difference, axis, keepdims, where)
    return ct.sum(difference * difference, axis, keepdims=keepdims) / (n - ddof)


def std(x, axis=None, *, ddof=0, keepdims=False, where=None):
    """Standard deviation: the square root of `var`, which explains the parameters.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64, or of integers, which are converted to float32
    axis, ddof, keepdims, where : as for `var`

    Returns
    -------
    tile of the dtype of x; integers give float32

    Raises
    ------
    TileStaticAssertionError, TileTypeError
        as for `var`

    Notes
    -----
    Its relative error is half that of the variance, and one rounding.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.std(ct.load(x, 0, (4,))))
    >>> x, y = np.array([2, 4, 4, 6], np.float32), np.zeros(1, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([1.4142135], dtype=float32)
    """
    return rounded(ct.sqrt(_var(widened(x, "std"), axis, ddof, keepdims, where)), x)


def norm(x, axis=None, *, keepdims=False):
    """Euclidean norm along one axis, several, or all: the square root of the sum of squares.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64, or of integers, which are converted to float32
    axis : None for all axes, an integer constant, or a tuple of them
    keepdims : whether reduced axes stay, with size 1

    Returns
    -------
    tile of the dtype of x; integers give float32

    Raises
    ------
    TileStaticAssertionError
        x is an array, or of a dtype without arithmetic
    TileTypeError
        an axis is out of range, or no constant

    Notes
    -----
    Elements are divided by the largest magnitude first, so that no square overflows or vanishes. The relative error is
    at most (n / 2 + 4) * 2**-24 for n elements, in float64 2**-53. Padding of zeros adds nothing. An infinite
    element gives inf, a NaN gives NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.norm(ct.load(x, 0, (4,))))
    >>> x, y = np.array([3e30, 4e30, 0, 0], np.float32), np.zeros(1, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([5.e+30], dtype=float32)
    """
    v = widened(x, "norm")
    most = ct.max(ct.abs(v), axis, keepdims=True)
    scale = ct.where((most > 0) & (most < float("inf")), most, 1)
    y = v / scale
    length = scale * ct.sqrt(ct.sum(y * y, axis, keepdims=True))
    return rounded(_dropped(length, v, axis, keepdims), x)


def _dropped(kept, v, axis, keepdims):
    """A result with its reduced axes of size 1, or without them."""
    if ct.static_eval(keepdims):
        return kept
    return ct.reshape(kept, ct.static_eval(_without(v.shape, axis)))


def _without(shape: tuple[int, ...], axis) -> tuple[int, ...]:
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(n for k, n in enumerate(shape) if k not in {a % len(shape) for a in axes})


def logsumexp(x, axis=None, *, keepdims=False):
    """log(sum(exp(x))) along one axis, several, or all, where exp alone would overflow.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64, or of integers, which are converted to float32
    axis : None for all axes, an integer constant, or a tuple of them
    keepdims : whether reduced axes stay, with size 1

    Returns
    -------
    tile of the dtype of x; integers give float32

    Raises
    ------
    TileStaticAssertionError
        x is an array, or of a dtype without arithmetic
    TileTypeError
        an axis is out of range, or no constant

    Notes
    -----
    The error is at most (n + 8) * 2**-24 + 2**-23 * abs(m) for n elements with the maximum m; in float64 2**-53 and
    2**-52. Elements of -inf add nothing: load with padding_mode=ct.PaddingMode.NEG_INF where a tile reaches beyond an
    array. If all are -inf, the result is -inf; a NaN gives NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.logsumexp(ct.load(x, 0, (4,))))
    >>> x, y = np.array([1000, 1000, 0, 0], np.float32), np.zeros(1, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([1000.6932], dtype=float32)
    """
    v = widened(x, "logsumexp")
    most = ct.max(v, axis, keepdims=True)
    shift = ct.where(ct.abs(most) < float("inf"), most, 0)
    y = shift + ct.log(ct.sum(ct.exp(v - shift), axis, keepdims=True))
    return rounded(_dropped(y, v, axis, keepdims), x)


def softmax(x, axis=-1):
    """exp(x) / sum(exp(x)) along an axis: positive numbers whose sum is 1.

    Parameters
    ----------
    x : tile of float16, bfloat16, float32 or float64, or of integers, which are converted to float32
    axis : an integer constant, a tuple of them, or None for all axes

    Returns
    -------
    tile of the shape and dtype of x; integers give float32

    Raises
    ------
    TileStaticAssertionError
        x is an array, or of a dtype without arithmetic
    TileTypeError
        an axis is out of range, or no constant

    Notes
    -----
    The relative error is at most (n + 8 + abs(x - m)) * 2**-24 for n elements with the maximum m, in float64 2**-53,
    where the result is a normal number. Elements of -inf become 0: load with padding_mode=ct.PaddingMode.NEG_INF where
    a tile reaches beyond an array. Where all are -inf, one is inf, or one is NaN, the whole row is NaN.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, y):
    ...     ct.store(y, 0, ct.lib.softmax(ct.load(x, 0, (4,))))
    >>> x, y = np.array([1000, 1000, 999, -np.inf], np.float32), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, y))
    >>> y
    array([0.42231882, 0.42231882, 0.15536241, 0.        ], dtype=float32)
    """
    v = widened(x, "softmax")
    e = ct.exp(v - ct.max(v, axis, keepdims=True))
    return rounded(e / ct.sum(e, axis, keepdims=True), x)

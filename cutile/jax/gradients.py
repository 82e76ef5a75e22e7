"""Derivatives of functions by `ct.jit` in JAX, by a backward function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cutile.runtime import gradients


def custom_vjp(function: Callable, backward: Callable) -> Callable:
    """Give a function by `ct.jit` a derivative in JAX.

    Parameters
    ----------
    function : a function by `ct.jit` that declares outputs
    backward : a function by `ct.jit`, or another one. Its parameters are named after those of `function`, after its
        outputs, and grad_<output>; the outputs of a tile function are named grad_<input>. Another function returns a
        dictionary with a gradient for each array of floats among the inputs, or None for 0. What custom_vjp returned
        may be a backward, too, for derivatives of gradients

    Returns
    -------
    a function that is called like `function`, for jax.grad, jax.vjp, jax.jit and jax.vmap

    Raises
    ------
    TypeError
        the function is none by ct.jit or declares no outputs, or backward asks for a name that is neither parameter,
        output nor gradient. While JAX differentiates: backward returns no dictionary, one with other keys, or one
        that lacks an input

    Notes
    -----
    [JC-10] Arrays of NumPy become arrays of JAX. Numbers and other arguments that are no arrays count as constants. A
    gradient is converted to the dtype of its input. Gradients can be differentiated if backward can be.

    Examples
    --------
    >>> @ct.jit(grid="cdiv(N, 4)", out=ct.Out("N"))
    ... @ct.kernel
    ... def square(x: ct.Array["N"], y):
    ...     t = ct.load(x, ct.bid(0), 4)
    ...     ct.store(y, ct.bid(0), t * t)
    >>> squared = cutile.jax.custom_vjp(square, lambda x, grad_y: {"x": 2 * x * grad_y})
    >>> print(jax.grad(lambda x: squared(x).sum())(jax.numpy.arange(4.0)))
    [0. 2. 4. 6.]
    """
    if not getattr(function, "outputs", ()):
        raise TypeError(f"custom_vjp() takes a function made by ct.jit that declares outputs, not {function!r:.100}; "
                        f"jax.custom_vjp gives others a derivative")
    asked = gradients.asked(function, backward)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        import jax

        from cutile.jax.primitive import all_varying

        given = signature.bind(*args, **kwargs).arguments
        arrays = {n: jax.numpy.asarray(v) for n, v in given.items() if isinstance(v, jax.Array | np.ndarray)}
        others = {n: v for n, v in given.items() if n not in arrays}
        # Here and not in the function, so that under shard_map JAX adds up the gradients of what all devices share.
        arrays = dict(zip(arrays, all_varying(list(arrays.values())), strict=True))
        return _differentiable(function, backward, asked, arrays, others)(arrays)

    signature = inspect.signature(function).replace(parameters=list(function.parameters.values()))
    return wrapped


def _differentiable(function: Callable, backward: Callable, asked: Sequence[str], arrays: Mapping[str, Any],
                    others: Mapping[str, Any]) -> Callable:
    """The function of a dictionary of such arrays, with a derivative; all other arguments are given."""
    import jax

    outputs = [o.name for o in function.outputs]
    dtypes = {n: a.dtype for n, a in arrays.items()}

    def forward(arrays: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        found = f(arrays)  # so that derivatives of gradients find the derivative of an output, too
        values = {**arrays, **dict(zip(outputs, found if isinstance(found, tuple) else (found,), strict=True))}
        return found, {n: values[n] for n in asked if n in values}

    def backwards(kept: dict[str, Any], given: Any) -> tuple[dict[str, Any]]:
        given = given if isinstance(given, tuple) else (given,)
        values = {**others, **kept, **{f"grad_{o}": _array(g) for o, g in zip(outputs, given, strict=True)}}
        found = backward(**{n: values[n] for n in asked if n in values})
        floating = [n for n, dtype in dtypes.items() if jax.numpy.issubdtype(dtype, np.inexact)]
        found = gradients.by_input(function, backward, found, floating)
        gradients.check_dtypes(function.__name__, backward, found, dtypes)
        return ({n: _converted(found.get(n), dtype) for n, dtype in dtypes.items()},)

    f = jax.custom_vjp(lambda arrays: function(**arrays, **others))
    f.defvjp(forward, backwards)
    return f


def _array(gradient: Any) -> Any:
    """The gradient of an output as an array of JAX. That of integers, whose dtype has no numbers, is 0."""
    import jax

    if gradient.dtype == jax.dtypes.float0:
        return jax.numpy.zeros(gradient.shape, np.float32)
    return jax.numpy.asarray(gradient)


def _converted(gradient: Any, dtype: Any) -> Any:
    """The gradient of an input, which has the input's dtype."""
    import jax

    same = gradient is None or getattr(gradient, "dtype", None) == dtype
    return gradient if same else jax.numpy.asarray(gradient, dtype)

"""Derivatives of functions by `ct.jit` in JAX, by a backward function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cutile.errors import refusal
from cutile.runtime import gradients
from cutile.tracebacks import for_callers


def custom_vjp(function: Callable, backward: Callable, *, non_differentiable: Sequence[str] = ()) -> Callable:
    """Give a function by `ct.jit` a derivative in JAX.

    Parameters
    ----------
    function : a function by `ct.jit` that declares outputs
    backward : a function by `ct.jit`, or another one. Its parameters are named after those of `function`, after its
        outputs, and grad_<output>; the outputs of a tile function are named grad_<input>. Another function returns a
        dictionary with a gradient for each array of floats among the inputs, or None for 0. What custom_vjp returned
        may be a backward, too, for derivatives of gradients
    non_differentiable : names of outputs that count as constants, such as one that only `backward` needs

    Returns
    -------
    a function that is called like `function`, for jax.grad, jax.vjp, jax.jit and jax.vmap

    Raises
    ------
    TypeError
        the function is none by ct.jit or declares no outputs, or backward asks for a name that is neither parameter,
        output nor gradient. While JAX differentiates: backward returns no dictionary, one with other keys or a
        gradient of another shape than its input, or one that lacks an input; or a gradient comes to an output whose
        grad_<output> backward does not take
    ValueError
        non_differentiable names what is no output

    Notes
    -----
    [JC-10] Arrays of NumPy become arrays of JAX. Numbers and other arguments that are no arrays count as constants. A
    gradient is converted to the dtype of its input. Gradients can be differentiated if backward can be. Where it reads
    an output, the derivative of the gradient goes through that output, too, and needs its grad_<output>, also if
    non_differentiable names it.

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
        how = ("it is a factory: give what its calls return" if hasattr(function, "cache_info") else
               "jax.custom_vjp gives others a derivative")
        raise refusal(TypeError(f"custom_vjp() takes a function made by ct.jit that declares outputs, not "
                                f"{function!r:.100}; {how}"))
    asked = gradients.asked(function, backward)
    constant = gradients.names_of(non_differentiable, "non_differentiable", [o.name for o in function.outputs],
                                  "no output", function)
    read = [n for n in asked if n in function.parameters and n not in getattr(backward, "computed", ())]

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        import jax

        from cutile.jax.primitive import all_varying

        hints = {n: kwargs.pop(n) for n in hint_names if n in kwargs and n not in function.parameters}
        given = {**_given(function, args, kwargs), **hints}
        if any(n not in given for n in read):  # the backward function reads what the caller left out
            given = {**_tile_function(function)._filled(given, read), **given}
        arrays = {n: jax.numpy.asarray(v) for n, v in given.items() if isinstance(v, jax.Array | np.ndarray)}
        others = {n: v for n, v in given.items() if n not in arrays}
        # Here and not in the function, so that under shard_map JAX adds up the gradients of what all devices share.
        arrays = dict(zip(arrays, all_varying(list(arrays.values())), strict=True))
        found = _differentiable(function, backward, asked, constant, arrays, others)(arrays)
        if not isinstance(found, tuple):
            return jax.lax.stop_gradient(found) if constant else found
        return tuple(jax.lax.stop_gradient(a) if o.name in constant else a
                     for o, a in zip(function.outputs, found, strict=True))

    hint_names = getattr(function, "hint_names", ())  # of a tuned function, whose calls may say them
    for n in ("compile", "compile_all", "profile"):
        setattr(wrapped, n, getattr(function, n))
    tile = wrapped.function = _tile_function(function)  # type: ignore[attr-defined]
    wrapped.resolved = lambda args, named: (tile, None, {})  # type: ignore[attr-defined]  # as operators of PyTorch
    return for_callers(wrapped)


def _tile_function(function: Any) -> Any:
    """The function by ct.jit behind a tuned one, or one that custom_vjp has made."""
    while not hasattr(function, "_named"):
        function = getattr(function, "function", None) or function.__wrapped__
    return function


def _given(function: Any, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name. TypeError as for the function by ct.jit itself, and for `out` and `stream`."""
    name = function.__name__
    reasons = {"out": "arrays of JAX cannot be written to", "stream": "JAX's programs have streams of their own"}
    for n, why in reasons.items():
        if kwargs.get(n) is not None:
            raise refusal(TypeError(f"{name}() takes no {n}= here: {why}"))
    given = _tile_function(function)._named(args, {n: v for n, v in kwargs.items() if n not in ("out", "stream")})
    return {n: v for n, v in given.items() if v is not function.missing}


def _differentiable(function: Callable, backward: Callable, asked: Sequence[str], constant: Sequence[str],
                    arrays: Mapping[str, Any], others: Mapping[str, Any]) -> Callable:
    """The function of a dictionary of such arrays, with a derivative; all other arguments are given.

    The outputs that `constant` names have a derivative like others: the caller makes them constants. So the values of
    them that `backward` reads stay results of the arrays, and a derivative of the gradient is not lost.
    """
    import jax
    from jax.custom_derivatives import SymbolicZero

    outputs = [o.name for o in function.outputs]

    def forward(arrays: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        arrays = {n: a.value for n, a in arrays.items()}
        found = call(arrays)  # so that derivatives of gradients find the derivative of an output, too
        values = {**arrays, **dict(zip(outputs, found if isinstance(found, tuple) else (found,), strict=True))}
        return found, {n: values[n] for n in asked if n in values}

    def backwards(kept: dict[str, Any], given: Any) -> tuple[dict[str, Any]]:
        given = dict(zip(outputs, given if isinstance(given, tuple) else (given,), strict=True))
        for o, g in given.items():
            if f"grad_{o}" not in asked and not isinstance(g, SymbolicZero) and g.dtype != jax.dtypes.float0:
                raise gradients.lost(function, backward, o, o in asked, o in constant, "cutile.jax.custom_vjp")
        values = {**others, **kept, **{f"grad_{o}": _array(g, list(kept.values())) for o, g in given.items()
                                       if f"grad_{o}" in asked}}
        found = backward(**{n: values[n] for n in asked if n in values})
        floating = [n for n, a in arrays.items() if jax.numpy.issubdtype(a.dtype, np.inexact)]
        found = gradients.by_input(function, backward, found, floating)
        gradients.check(function, backward, found, arrays)
        return ({n: _converted(found.get(n), a.dtype) for n, a in arrays.items()},)

    def run(arrays: dict[str, Any]) -> Any:
        return function(**arrays, **others)

    run.__name__ = run.__qualname__ = function.__name__  # which JAX shows
    f = jax.custom_vjp(run)
    f.defvjp(forward, backwards, symbolic_zeros=True)

    def call(arrays: dict[str, Any]) -> Any:
        try:
            return f(arrays)
        except NotImplementedError as e:
            if "shard_map" not in str(e):
                raise
            return jax.jit(f)(arrays)  # outside of jit, shard_map takes no derivative with symbolic zeros

    return call


def _array(gradient: Any, beside: Sequence[Any]) -> Any:
    """The gradient of an output as an array of JAX, which varies as the values `beside` do. That of integers, whose
    dtype has no numbers, is 0."""
    import jax
    from jax.custom_derivatives import SymbolicZero

    from cutile.jax.primitive import all_varying

    dtype = np.float32 if gradient.dtype == jax.dtypes.float0 else gradient.dtype
    if isinstance(gradient, SymbolicZero) or dtype != gradient.dtype:
        return all_varying([jax.numpy.zeros(gradient.shape, dtype), *beside])[0]
    return jax.numpy.asarray(gradient)


def _converted(gradient: Any, dtype: Any) -> Any:
    """The gradient of an input, which has the input's dtype."""
    import jax

    same = gradient is None or getattr(gradient, "dtype", None) == dtype
    return gradient if same else jax.numpy.asarray(gradient, dtype)

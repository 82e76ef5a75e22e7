"""Derivatives of functions by `ct.jit` in JAX, by a backward function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cutile.errors import refusal
from cutile.runtime import gradients


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
        raise TypeError(f"custom_vjp() takes a function made by ct.jit that declares outputs, not {function!r:.100}; "
                        f"jax.custom_vjp gives others a derivative")
    asked = gradients.asked(function, backward)
    constant = _outputs(function, non_differentiable)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        import jax

        from cutile.jax.primitive import all_varying

        hints = {n: kwargs.pop(n) for n in hint_names if n in kwargs and n not in function.parameters}
        try:
            given = {**signature.bind(*args, **kwargs).arguments, **hints}
        except TypeError as e:
            raise refusal(TypeError(f"{function.__name__}(): {e}")) from None
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
    signature = inspect.signature(function).replace(parameters=list(function.parameters.values()))
    return wrapped


def _outputs(function: Callable, names: Sequence[str]) -> Sequence[str]:
    """ValueError for a name that is no output."""
    known = [o.name for o in function.outputs]
    if isinstance(names, str):
        raise TypeError(f"non_differentiable is a tuple of names, such as ({names!r},), not {names!r}")
    for n in names:
        if n not in known:
            raise ValueError(f"non_differentiable names {n!r:.100}, which is no output of {function.__name__}; there "
                             f"are {', '.join(known)}")
    return names


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
                raise _lost(function, backward, o, o in asked, o in constant)
        values = {**others, **kept, **{f"grad_{o}": _array(g, list(kept.values())) for o, g in given.items()
                                       if f"grad_{o}" in asked}}
        found = backward(**{n: values[n] for n in asked if n in values})
        floating = [n for n, a in arrays.items() if jax.numpy.issubdtype(a.dtype, np.inexact)]
        found = gradients.by_input(function, backward, found, floating)
        gradients.check(function, backward, found, arrays)
        return ({n: _converted(found.get(n), a.dtype) for n, a in arrays.items()},)

    f = jax.custom_vjp(lambda arrays: function(**arrays, **others))
    f.defvjp(forward, backwards, symbolic_zeros=True)

    def call(arrays: dict[str, Any]) -> Any:
        try:
            return f(arrays)
        except NotImplementedError as e:
            if "shard_map" not in str(e):
                raise
            return jax.jit(f)(arrays)  # outside of jit, shard_map takes no derivative with symbolic zeros

    return call


def _lost(function: Callable, backward: Callable, output: str, read: bool, constant: bool) -> TypeError:
    """A gradient that backward does not take. read: it reads the output;  constant: non_differentiable names that."""
    who = getattr(backward, "__name__", "backward")
    ways = [f"take grad_{output} in {who}"]
    if read:
        ways.append(f"for a derivative of a gradient, compute `{output}` in {who} from the inputs")
    if not constant:
        ways.append(f"say by non_differentiable=({output!r},) of cutile.jax.custom_vjp that callers use `{output}` as "
                    f"a constant")
    return refusal(TypeError(f"a gradient comes to output `{output}` of {function.__name__}, but {who}, its backward "
                             f"function, takes no grad_{output}: {', or '.join(ways)}"))


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

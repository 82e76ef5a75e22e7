"""Derivatives of functions by `ct.jit` in JAX, by a backward function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def custom_vjp(function: Callable, backward: Callable) -> Callable:
    """Give a function by `ct.jit` a derivative in JAX.

    Parameters
    ----------
    function : a function by `ct.jit` that declares outputs
    backward : a function by `ct.jit`, or another one. Its parameters are named after those of `function`, after its
        outputs, and grad_<output>; the outputs of a tile function are named grad_<input>. Another function returns a
        dictionary of gradients by input; inputs that it does not name have gradient zero

    Returns
    -------
    a function that is called like `function`, for jax.grad, jax.vjp, jax.jit and jax.vmap

    Raises
    ------
    TypeError
        the function is none by ct.jit or declares no outputs, or backward asks for a name that is neither parameter,
        output nor gradient

    Notes
    -----
    [JC-10] Arrays of NumPy become arrays of JAX. Numbers and other arguments that are no arrays count as constants.

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
    outputs = [o.name for o in getattr(function, "outputs", ())]
    if not outputs:
        raise TypeError(f"custom_vjp() takes a function made by ct.jit that declares outputs, not {function!r:.100}; "
                        f"jax.custom_vjp gives others a derivative")
    inputs = list(function.parameters)
    asked = _asked(backward, inputs, outputs)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        import jax

        from cutile.jax.primitive import all_varying

        given = signature.bind(*args, **kwargs).arguments
        arrays = {n: jax.numpy.asarray(v) for n, v in given.items() if isinstance(v, jax.Array | np.ndarray)}
        others = {n: v for n, v in given.items() if n not in arrays}
        # Here and not in the function, so that under shard_map JAX adds up the gradients of what all devices share.
        arrays = dict(zip(arrays, all_varying(list(arrays.values())), strict=True))
        return _differentiable(function, backward, outputs, asked, others)(arrays)

    signature = inspect.signature(function).replace(parameters=list(function.parameters.values()))
    return wrapped


def _asked(backward: Callable, inputs: list[str], outputs: list[str]) -> list[str]:
    """The parameters of a backward function, all of which are known."""
    known = [*inputs, *outputs, *(f"grad_{o}" for o in outputs)]
    own = getattr(backward, "parameters", None) or inspect.signature(backward).parameters
    asked = [n for n in own if n in known or n not in getattr(backward, "computed", ())]
    for n in asked:
        if n not in known:
            raise TypeError(f"backward takes {n}, which is no parameter, output or gradient; there are "
                            f"{', '.join(known)}")
    for o in getattr(backward, "outputs", ()):
        if o.name.removeprefix("grad_") not in inputs or not o.name.startswith("grad_"):
            raise TypeError(f"output {o.name} of backward is no gradient; those are named "
                            f"{', '.join(f'grad_{n}' for n in inputs)}")
    return asked


def _differentiable(function: Callable, backward: Callable, outputs: list[str], asked: list[str],
                    others: Mapping[str, Any]) -> Callable:
    """The function of a dictionary of arrays, with a derivative; all other arguments are given."""
    import jax

    def forward(arrays: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        found = function(**arrays, **others)
        values = {**arrays, **dict(zip(outputs, found if isinstance(found, tuple) else (found,), strict=True))}
        kept = {n: values[n] for n in asked if n in values}
        return found, (kept, {n: jax.ShapeDtypeStruct(v.shape, v.dtype) for n, v in arrays.items()})

    def gradients(saved: Any, given: Any) -> tuple[dict[str, Any]]:
        kept, arrays = saved
        given = given if isinstance(given, tuple) else (given,)
        grads = {f"grad_{o}": jax.numpy.asarray(g) for o, g in zip(outputs, given, strict=True)}
        values = {**others, **kept, **grads}
        found = backward(**{n: values[n] for n in asked if n in values})
        if not isinstance(found, Mapping):
            names = [o.name.removeprefix("grad_") for o in backward.outputs]
            found = dict(zip(names, found if isinstance(found, tuple) else (found,), strict=True))
        return ({n: found.get(n) for n in arrays},)

    f = jax.custom_vjp(lambda arrays: function(**arrays, **others))
    f.defvjp(forward, gradients)
    return f

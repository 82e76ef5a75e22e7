"""`cutile_call` [JAX-1…9]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cutile.errors import TileError, refusal
from cutile.jax.description import Call, Reading, check_outputs, typed
from cutile.jax.targets import register
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch import no_kernel, padded_grid
from cutile.tracebacks import for_callers, for_users


@for_callers
def cutile_call(grid: tuple[int, ...], kernel: Kernel, args: tuple[Any, ...]) -> Any:
    """Call a kernel from JAX, inside of jax.jit or outside.

    Parameters
    ----------
    grid : tuple of int
        The number of blocks along up to three axes. No block runs if one of them is 0.
    kernel : kernel
        A function decorated with `ct.kernel`.
    args : tuple
        One argument for each parameter: an array of JAX or NumPy (an input, which the kernel must not store to),
        OutputPlaceholder or jax.ShapeDtypeStruct, InputOutput, bool, int or float (a bool is passed as int32),
        anything for a Constant parameter, or a tuple.

    Returns
    -------
    the output array, or a tuple of them in the order of the arguments. Arrays are packed, with the last axis fastest.

    Raises
    ------
    TypeError, ValueError, OverflowError
        Wrong arguments.
    TileError
        The kernel cannot be compiled. All of these come while JAX traces, or where it lowers for a GPU.
    NotImplementedError
        A symbolic dimension.
    ImportError
        JAX is not installed.

    Notes
    -----
    [JAX-1…9] It runs where its inputs are; without inputs, on JAX's default device. `jax.vmap` repeats the launch for
    each item of the batch, in one call. A derivative is given by `custom_vjp`. Under `shard_map` every device runs the
    kernel on its shard; a sharded array that reaches a call otherwise is gathered on every device.

    Examples
    --------
    >>> @ct.kernel
    ... def scale(x, y, factor):
    ...     i = ct.bid(0)
    ...     ct.store(y, i, factor * ct.load(x, i, 4))
    >>> @jax.jit
    ... def f(x):
    ...     return 1 + cutile.jax.cutile_call((2,), scale, (x, cutile.jax.OutputPlaceholder(x.shape, x.dtype), 3.0))
    >>> print(f(jax.numpy.arange(8.0)))
    [ 1.  4.  7. 10. 13. 16. 19. 22.]
    """
    return call(grid, kernel, args)


def call(grid: tuple[int, ...], kernel: Kernel, args: tuple[Any, ...], target: str | None = None,
         returned: Callable[[str], str] | None = None) -> Any:
    """`cutile_call`, for GPU architectures that are named. `returned` is what `typed` takes."""
    register()
    import jax

    from cutile.jax import callback, primitive  # which import JAX

    if not isinstance(kernel, Kernel):
        raise refusal(TypeError(no_kernel(kernel, "second argument of cutile_call()")))
    if isinstance(grid, tuple) and any(isinstance(n, jax.core.Tracer) for n in grid):
        raise refusal(TypeError("the grid depends on the value of an array, but programs have a fixed one; compute it "
                                "from shapes, or name what it depends on in static_argnames of jax.jit"))
    reading = Reading()
    values = reading.values(kernel, args)
    try:
        made = Call(kernel, padded_grid(grid), values, typed(kernel, values, returned), tuple(reading.outputs),
                    tuple(reading.aliases), target, batched=((),) * len(reading.inputs))
        if returned is None:
            check_outputs(made)
    except TileError as e:
        raise for_users(e) from e.__cause__
    results = (primitive.bind if made.outputs else callback.run)(made, reading.inputs)
    return results[0] if len(results) == 1 else tuple(results)

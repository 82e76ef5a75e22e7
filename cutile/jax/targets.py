"""The custom call target of kernels, and its handlers, as XLA knows them."""

from __future__ import annotations

import functools
import importlib
from typing import Any

TARGET = "cutile_launch_v1"
OLDEST = "cutile.jax needs JAX 0.7 or newer"


def handlers() -> Any:
    """The module with the handlers in C; None where it was not built."""
    try:
        return importlib.import_module("cutile.jax._handlers")
    except ImportError:
        return None


@functools.cache
def register() -> None:
    """Make kernels known to XLA. Importing cutile.jax does it; calling it again does nothing.

    Raises
    ------
    ImportError
        JAX is not installed, or too old.
    RuntimeError
        JAX does not take the handlers: its interface is none that cutile knows.

    Examples
    --------
    >>> cutile.jax.register()
    """
    try:
        import jax
        from jax.ffi import register_ffi_target
    except ImportError as e:
        raise ImportError(f"{OLDEST} ({e}); pip install jax") from None
    c = handlers()
    if c is None:
        return
    from cutile.jax import ending, host

    c.set_interpreter(host.run)
    ending.watch(c)
    try:
        register_ffi_target(TARGET, c.run_on_cpu, platform="cpu")
        stages = {"initialize": c.launch_on_gpu, "execute": c.launch_on_gpu}
        register_ffi_target(TARGET, stages, platform="CUDA")
    except Exception as e:
        raise RuntimeError(f"JAX {jax.__version__} does not take cutile's handlers: {e}") from None


def disabled_checks() -> list:
    """What jax.export needs to export a program that calls kernels.

    Returns
    -------
    list
        For the argument `disabled_checks` of `jax.export.export`.

    Notes
    -----
    JAX exports calls of targets only if somebody guarantees that they stay. cutile keeps cutile_launch_v1 as it is.
    The process that runs the program imports cutile.jax before.

    Examples
    --------
    >>> @ct.kernel
    ... def double(x, y):
    ...     ct.store(y, 0, 2 * ct.load(x, 0, 4))
    >>> f = jax.jit(lambda x: cutile.jax.cutile_call((1,), double, (x, cutile.jax.OutputPlaceholder((4,), "float32"))))
    >>> x = jax.numpy.arange(4.0)
    >>> data = jax.export.export(f, disabled_checks=cutile.jax.disabled_checks())(x).serialize()
    >>> print(jax.export.deserialize(data).call(x))
    [0. 2. 4. 6.]
    """
    import jax.export

    return [jax.export.DisabledSafetyCheck.custom_call(TARGET)]

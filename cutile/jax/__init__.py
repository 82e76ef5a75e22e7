"""cutile.jax: kernels inside programs of JAX, on GPUs on XLA's stream and on CPUs in the interpreter.

The only room that imports jax. `description` says what a call is, `primitive` is what JAX traces, batches and lowers,
and `attributes` packs what the compiled program keeps of it. XLA then calls C code (_handlers.c): on a GPU that
launches the kernel without any Python, on a CPU it hands the buffers to `host`. Importing this makes the target known
to XLA, so that exported programs of other processes run.
"""

from cutile.jax.calls import cutile_call
from cutile.jax.description import InputOutput, OutputPlaceholder
from cutile.jax.gradients import custom_vjp
from cutile.jax.targets import disabled_checks, register

__all__ = ["InputOutput", "OutputPlaceholder", "custom_vjp", "cutile_call", "disabled_checks", "register"]

try:
    register()
except ImportError:  # without JAX: what is called says so
    pass
else:
    from cutile.jax import primitive  # noqa: F401

"""Four CPU devices for JAX, which must be known before it starts."""

import importlib.util

if importlib.util.find_spec("jax") is not None:
    import jax

    jax.config.update("jax_num_cpu_devices", 4)

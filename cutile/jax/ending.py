"""The end of the process, while kernels on a CPU run in XLA's threads.

A thread that waits for the GIL when the interpreter ends is ended or stopped by Python, and XLA waits for its threads
for ever. So, before the interpreter ends, results that the program holds are waited for, further calls are refused, and
those that run are waited for.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from typing import Any

from cutile.jax import host

PAUSE = 1e-3  # seconds between looks


def watch(handlers: Any) -> None:
    """End well, with this module of handlers. Functions for atexit that are registered later run before."""
    atexit.register(_end, handlers, os.getpid())


def _end(handlers: Any, process: int) -> None:
    if os.getpid() != process:  # a fork has none of the threads
        return
    # An interrupt ends the waiting for results, and then what runs.
    with contextlib.suppress(KeyboardInterrupt):
        if host.used():
            _finish()
    while handlers.close():
        try:
            time.sleep(PAUSE)
        except KeyboardInterrupt:
            host.stop()


def _finish() -> None:
    """Wait for what the program holds, and for effects. Errors are not shown: nobody asked for these results."""
    import jax

    with contextlib.suppress(RuntimeError):  # JAX may have no CPU devices
        while any(_pending(x) for x in jax.live_arrays("cpu") if x.is_fully_addressable):
            time.sleep(PAUSE)
    with contextlib.suppress(Exception):
        jax.effects_barrier()


def _pending(x: Any) -> bool:
    try:
        return not x.is_ready()
    except RuntimeError:  # it was deleted
        return False

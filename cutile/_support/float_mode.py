"""The floating-point mode of a thread. Launches always run in the usual one, which is the default of IEEE 754.

Libraries built with -ffast-math, XLA's threads and `torch.set_flush_denormal(True)` make a processor flush subnormal
numbers to zero, and some libraries leave another direction of rounding behind. The mode belongs to a thread. A launch
sets the usual mode, through C's <fenv.h> where that is available, and restores the old mode afterwards.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

# Mode                            TINY * MORE   TINY * LESS
# usual                           TINY          0
# no subnormals, rounding down    0             0
# rounding up                     TINY          TINY
# They are variables, so that Python does not fold products.
TINY, MORE, LESS = 5e-324, 0.75, 0.25
_ONE = 1.0
_SIZE = 64  # bytes, more than fenv_t has on any platform


def usual() -> bool:
    """Whether this thread is in the usual mode. True also where the mode cannot be read or changed."""
    return _is_usual() or _environment() is None


def _is_usual() -> bool:
    return TINY * MORE != 0.0 == TINY * LESS


def run(function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function in the usual mode. The old mode is restored in any case, also after an interrupt."""
    get, put, default = _environment()
    import ctypes

    before = ctypes.create_string_buffer(_SIZE)
    get(before)
    try:
        put(default)
        return function(*args, **kwargs)
    finally:
        put(before)


def in_usual_mode(function: Callable) -> Callable:
    """Decorates a function that computes: it runs in the usual mode."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if usual() else run(function, *args, **kwargs)

    return wrapped


def describe() -> tuple[str, str]:
    """The mode of this thread, and what it means for launches."""
    if not _is_usual():
        found = "flushes subnormal numbers" if TINY * _ONE == 0.0 else "does not round to nearest"
        return found, "launches run in the usual mode" if _environment() else "nothing here changes it: so do launches"
    return "usual", "rounds to nearest, keeps subnormal numbers" + (
        "" if _environment() else "; where another library changes it, launches cannot change it back")


@functools.cache
def _environment() -> tuple[Callable, Callable, Any] | None:
    """fegetenv, fesetenv and the default environment; None where these do not exist or do not work."""
    import ctypes  # loaded only when needed

    for name in (None, "libm.so.6", "libm.so"):
        try:
            library = ctypes.PyDLL(name)
            get, put = library.fegetenv, library.fesetenv
            break
        except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library None
            continue
    else:
        return None
    get.argtypes = put.argtypes = [ctypes.c_void_p]
    default = ctypes.c_void_p(-1)
    if sys.platform == "darwin":
        default = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, "_FE_DFL_ENV")))
    before = ctypes.create_string_buffer(_SIZE)
    get(before)
    try:
        put(default)
        works = _is_usual()
    finally:
        put(before)
    return (get, put, default) if works else None

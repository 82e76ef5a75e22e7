"""Compiled forms: in C, what takes NumPy many passes.

In: arrays. Out: the bits that an operation's NumPy form gives. The NumPy form is the definition; it runs where there
was no C compiler, where the CPU lacks an instruction, and under CUTILE_COMPILED=0. A form knows shapes, strides and
formats of numbers; it may not know ops, tiles or blocks. The C files say what each form does; `tests/compiled` compares
both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from cutile import settings

DOUBTFUL = 0x7FA00D0B  # these bits mark an element that the NumPy form must compute


def form(name: str | None) -> Callable | None:
    """The compiled form of that name, as `fma float32`; None where there is none or it is not wanted."""
    return _loaded().get(name) if settings.get("COMPILED") else None


@functools.cache
def _loaded() -> Mapping[str | None, Callable]:
    try:
        from cutile.compiled._forms import FORMS  # loaded by the first launch that computes something
    except ImportError:
        return {}
    return FORMS

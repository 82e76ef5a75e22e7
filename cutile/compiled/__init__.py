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


def steps() -> Mapping[str, str]:
    """The forms of which chains can be made: of each the formats of its operands and of its result, by its name. None
    where they are not wanted.
    """
    return _chains()[0] if settings.get("COMPILED") else {}


def chain_of(types: str, made_of: tuple[tuple, ...]) -> Callable:
    """A form that computes several, one after another, over pieces that stay in the first cache.

    types    formats of the operands and of the result
    made_of  for each step its name, and the numbers of the arrays that it reads and of that which it writes: first the
             operands, then the result, then up to 8 that stand between steps
    """
    return _chains()[1](types, made_of)


@functools.cache
def _chains() -> tuple[Mapping[str, str], Callable]:
    try:
        from cutile.compiled._forms import STEPS, chain_of
    except ImportError:
        return {}, NotImplemented
    return STEPS, chain_of


@functools.cache
def _loaded() -> Mapping[str | None, Callable]:
    try:
        from cutile.compiled._forms import FORMS  # loaded by the first launch that computes something
    except ImportError:
        return {}
    return FORMS

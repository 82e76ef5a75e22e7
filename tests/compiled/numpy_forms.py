"""For each compiled form, the NumPy form that defines it."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from cutile import compiled
from cutile.dtypes import bfloat16, float16, float32, float64
from cutile.ops import _exact


def _fma(dtype) -> Callable:
    return lambda x, y, z: _exact._fma(x, y, z, dtype, None)


ELEMENTWISE = {f"fma {d.name}": _fma(d) for d in (float16, bfloat16, float32, float64)}
OPERANDS = {name: "ddd" if name == "fma float64" else "fff" for name in ELEMENTWISE}  # dtypes, as characters


@functools.cache
def built() -> dict[str, Callable]:
    """The forms; a test that asks for them is skipped where they were not built or the CPU has none."""
    forms = compiled._loaded()
    if not forms:
        pytest.skip("needs the compiled forms: a C compiler, and pip install -e .")
    return forms

"""For each compiled form, the NumPy form that defines it."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from cutile import compiled
from cutile.dtypes import INFO, bfloat16, float16, float32, float64
from cutile.ops import _exact, _rounding


def _fma(dtype) -> Callable:
    return lambda x, y, z: _exact._fma(x, y, z, dtype, None)


def _round(dtype) -> Callable:
    return lambda x: _rounding._round(dtype, x)


_ROUNDED = [d for d, i in INFO.items() if i.kind == "f" and d not in (float32, float64)]
ELEMENTWISE = {f"fma {d.name}": _fma(d) for d in (float16, bfloat16, float32, float64)} | {
    f"round {t} to {d.name}": _round(d) for d in _ROUNDED for t in "fd"}
OPERANDS = {name: "ddd" if name == "fma float64" else "fff" if name.startswith("fma") else name[6]
            for name in ELEMENTWISE}  # dtypes, as characters


@functools.cache
def built() -> dict[str, Callable]:
    """The forms; a test that asks for them is skipped where they were not built or the CPU has none."""
    forms = compiled._loaded()
    if not forms:
        pytest.skip("needs the compiled forms: a C compiler, and pip install -e .")
    return forms

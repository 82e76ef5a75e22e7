"""The arrays on which a search measures [TUN-4]."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from cutile.dtypes import INFO
from cutile.errors import refusal
from cutile.functions.reference import result_of
from cutile.runtime.arguments import array_of


def inputs_like(kind: Any, args: tuple, named: Mapping[str, Any], name: str = "it") -> tuple[tuple, dict[str, Any]]:
    """The arguments to measure with: those of a call, others of the same kind, or what a function makes of them."""
    if kind is None:
        return args, dict(named)
    if callable(kind):
        made = result_of(kind, name, args, named, "function for inputs")
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(args):
            raise refusal(TypeError(f"the function for inputs must return {len(args)} arguments, and returned "
                                    f"{len(made)}"))
        return made, dict(named)
    rng = np.random.default_rng(0)
    return tuple(_like(kind, a, rng) for a in args), {n: _like(kind, a, rng) for n, a in named.items()}


def _like(kind: str, value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, tuple | list):
        return type(value)([_like(kind, v, rng) for v in value])
    ref = None if value is None or isinstance(value, bool | int | float | str) else array_of(value)
    if ref is None:
        return value
    storage = INFO[ref.dtype].storage
    if kind == "zeros":
        numbers = np.zeros(ref.shape)
    elif kind == "normal" and INFO[ref.dtype].floating:
        numbers = rng.standard_normal(ref.shape)
    else:
        numbers = rng.integers(0, 5, ref.shape)
    return _of_library(value, numbers.astype(storage), ref)


def _of_library(value: Any, a: np.ndarray, ref: Any) -> Any:
    """A NumPy array as an array of the library of another, in its place."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        plain = a if a.dtype.isbuiltin == 1 else a.view({1: np.uint8, 2: np.int16}[a.itemsize])
        t = torch.from_numpy(plain.copy())
        return (t if plain is a else t.view(value.dtype)).to(value.device)
    if ref.owner is not None:
        return a
    if cupy is not None:
        with cupy.cuda.Device(ref.device or 0):
            return cupy.asarray(a)
    raise TypeError("arrays of this library cannot be made; give inputs= a function that makes them")

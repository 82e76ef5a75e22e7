"""Kernels inside jax.jit: the names are here, what they do needs the GPU back end [JAX-1…9]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cutile.errors import TileUnsupportedFeatureError

__all__ = ["InputOutput", "OutputPlaceholder", "cutile_call"]


@dataclass
class OutputPlaceholder:
    """An output buffer to allocate: its shape and dtype."""

    shape: tuple[int, ...]
    dtype: Any


@dataclass
class InputOutput:
    """An input array that is also an output."""

    array: Any


def cutile_call(grid, kernel, args):
    """Call a kernel under jax.jit. Not built yet: raises TileUnsupportedFeatureError."""
    raise TileUnsupportedFeatureError(
        "cutile_call() needs the GPU back end, which this version does not have",
        help="outside of jax.jit, ct.launch(None, grid, kernel, args) runs on the CPU with arrays from np.asarray(x)")

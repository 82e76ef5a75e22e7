"""Strides of arrays, in elements or in bytes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def check_strides(steps: tuple[int, ...], shape: tuple[int, ...], itemsize: int) -> None:
    """TypeError if strides, in bytes, are no multiples of the size of an element."""
    if any(s % itemsize for s, n in zip(steps, shape, strict=True) if n > 1):
        raise TypeError(f"an array whose strides {tuple(steps)} are no multiples of its {itemsize}-byte elements "
                        f"cannot be passed to a kernel; copy it first")


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of packed elements, the last axis fastest."""
    return tuple(prod(shape[k + 1:]) for k in range(len(shape)))


def without_repetition(x: np.ndarray) -> np.ndarray:
    """The array with each axis of stride 0, along which its elements repeat, cut to length 1."""
    return x[tuple([slice(0, 1) if s == 0 else slice(None) for s in x.strides])] if 0 in x.strides else x

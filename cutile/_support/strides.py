"""Strides of arrays, in elements or in bytes."""

from __future__ import annotations

from math import prod


def check_strides(steps: tuple[int, ...], shape: tuple[int, ...], itemsize: int) -> None:
    """TypeError if strides, in bytes, are no multiples of the size of an element."""
    if any(s % itemsize for s, n in zip(steps, shape, strict=True) if n > 1):
        raise TypeError(f"an array whose strides {tuple(steps)} are no multiples of its {itemsize}-byte elements "
                        f"cannot be passed to a kernel; copy it first")


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of packed elements, the last axis fastest."""
    return tuple(prod(shape[k + 1:]) for k in range(len(shape)))

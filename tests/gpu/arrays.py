"""Array objects that say they are in GPU memory, for tests with the driver that is none."""

from __future__ import annotations

from typing import Any

import numpy as np


class Cuda:
    """A NumPy array's memory as an object with the CUDA array interface."""

    def __init__(self, array: np.ndarray, read_only: bool = False):
        self.array = array  # kept alive
        self.dtype = array.dtype
        self.__cuda_array_interface__ = {
            "shape": array.shape, "strides": array.strides, "typestr": array.dtype.str.replace("=", "<"), "version": 3,
            "data": (array.ctypes.data if array.size else 0, read_only)}


def at(pointer: int, shape: tuple, strides: tuple | None = None, typestr: str = "<f4", **more: Any) -> Any:
    """An array at an address where nothing is."""
    a = Cuda(np.empty(0, np.float32))
    del a.dtype
    a.__cuda_array_interface__ = {"shape": shape, "strides": strides, "typestr": typestr, "version": 3,
                                  "data": (pointer, False)}
    a.__dict__.update(more)
    return a

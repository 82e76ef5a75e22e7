"""Moving arrays to a GPU with CuPy, for implementations that run there."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.adapter import Adapter


class View:
    """GPU memory as an object with the CUDA array interface: any strides, and dtypes that CuPy does not know."""

    def __init__(self, memory: Any, offset: int, array: np.ndarray):
        typestr = "<V2" if array.dtype.name == "bfloat16" else array.dtype.str
        self.memory, self.dtype = memory, array.dtype  # the interface has no names for fp8
        self.__cuda_array_interface__ = {
            "shape": array.shape, "strides": array.strides, "typestr": typestr.replace("=", "<"), "version": 3,
            "data": (memory.data.ptr + offset, not array.flags.writeable)}


class NoArray(Exception):
    """The array cannot be had in GPU memory."""


class Device(Adapter):
    """Keeps the strides of every array, so that views are views on the device too."""

    def __init__(self) -> None:
        super().__init__()
        import cupy

        self.cupy = cupy
        self.not_applicable = (self.error("TileUnsupportedFeatureError"), NoArray)

    def stream(self) -> Any:
        return self.cupy.cuda.get_current_stream()

    def launch(self, grid: tuple[int, ...], kernel: Any, args: Sequence[Any]) -> None:
        """Wait until it has run, and until what it prints has left the C library's buffer."""
        super().launch(grid, kernel, args)
        self.stream().synchronize()
        ctypes.CDLL(None).fflush(None)

    def to_device(self, array: np.ndarray) -> Any:
        if array.dtype.name == "float4_e2m1fn":
            raise NoArray("float4_e2m1fn has two elements a byte in GPU memory")
        low, high = np.lib.array_utils.byte_bounds(array)
        extent = _bytes(array, low, high)
        return View(self.cupy.asarray(extent), array.__array_interface__["data"][0] - low, array)

    def to_host(self, argument: Any, original: np.ndarray) -> None:
        if original.flags.writeable:
            low, high = np.lib.array_utils.byte_bounds(original)
            _bytes(original, low, high)[:] = self.cupy.asnumpy(argument.memory)


def _bytes(array: np.ndarray, low: int, high: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))

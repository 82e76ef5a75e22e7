"""Moving arrays to a GPU, for implementations that run there, with CuPy, or with PyTorch where there is no CuPy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.adapter import Adapter


class CuPy:
    """Memory, stream and facts of the current GPU, by CuPy."""

    def __init__(self) -> None:
        import cupy

        self.lib = cupy

    def upload(self, data: np.ndarray) -> Any:
        return self.lib.asarray(data)

    def address(self, memory: Any) -> int:
        return memory.data.ptr

    def download(self, memory: Any) -> np.ndarray:
        return self.lib.asnumpy(memory)

    def stream(self) -> Any:
        return self.lib.cuda.get_current_stream()

    def synchronize(self) -> None:
        self.lib.cuda.runtime.deviceSynchronize()

    def architecture(self) -> str:
        return f"sm_{self.lib.cuda.Device().compute_capability}"

    def device(self) -> int:
        return self.lib.cuda.Device().id

    def name(self) -> str:
        return self.lib.cuda.runtime.getDeviceProperties(self.lib.cuda.Device().id)["name"].decode()


class Torch:
    """Memory, stream and facts of the current GPU, by PyTorch."""

    def __init__(self) -> None:
        try:
            import torch
        except ImportError as e:
            raise ImportError("arrays on a GPU need CuPy (pip install cupy-cuda13x) or PyTorch") from e

        self.lib = torch

    def upload(self, data: np.ndarray) -> Any:
        return self.lib.from_numpy(data.copy()).cuda()

    def address(self, memory: Any) -> int:
        return memory.data_ptr()

    def download(self, memory: Any) -> np.ndarray:
        return memory.cpu().numpy()

    def stream(self) -> Any:
        return self.lib.cuda.current_stream()

    def synchronize(self) -> None:
        self.lib.cuda.synchronize()

    def architecture(self) -> str:
        return "sm_{}{}".format(*self.lib.cuda.get_device_capability())

    def device(self) -> int:
        return self.lib.cuda.current_device()

    def name(self) -> str:
        return self.lib.cuda.get_device_name()


class View:
    """GPU memory as an object with the CUDA array interface, with any strides, and with dtypes that have no name
    there.
    """

    def __init__(self, memory: Any, address: int, array: np.ndarray):
        typestr = "<V2" if array.dtype.name == "bfloat16" else array.dtype.str
        self.memory, self.dtype = memory, array.dtype  # the interface has no names for fp8
        self.__cuda_array_interface__ = {
            "shape": array.shape, "strides": array.strides, "typestr": typestr.replace("=", "<"), "version": 3,
            "data": (address, not array.flags.writeable)}


class NoArray(Exception):
    """The array cannot be put into GPU memory."""


class Device(Adapter):
    """An adapter that keeps the strides of every array, so that views are views on the device too."""

    limit = 60.0

    def __init__(self) -> None:
        super().__init__()
        try:
            self.memory: CuPy | Torch = CuPy()
        except ImportError:
            self.memory = Torch()
        self.not_applicable = (self.error("TileUnsupportedFeatureError"), NoArray)

    def stream(self) -> Any:
        return self.memory.stream()

    def launch(self, grid: tuple[int, ...], kernel: Any, args: Sequence[Any]) -> None:
        """Launch, and wait until the kernel has run and its prints have left the C library's buffer."""
        super().launch(grid, kernel, args)
        self.stream().synchronize()
        ctypes.CDLL(None).fflush(None)

    def to_device(self, array: np.ndarray) -> Any:
        if array.dtype.name == "float4_e2m1fn":
            raise NoArray("float4_e2m1fn has two elements a byte in GPU memory")
        low, high = np.lib.array_utils.byte_bounds(array)
        memory = self.memory.upload(_bytes(array, low, high))
        return View(memory, self.memory.address(memory) + array.__array_interface__["data"][0] - low, array)

    def to_host(self, argument: Any, original: np.ndarray) -> None:
        if original.flags.writeable:
            low, high = np.lib.array_utils.byte_bounds(original)
            _bytes(original, low, high)[:] = self.memory.download(argument.memory)

    def hardware(self) -> str:
        """The GPU, its driver, and the processor beside it."""
        return f"{self.memory.name()}, driver {driver_version()}; {super().hardware()}"

    def lost(self) -> str | None:
        """An illegal access or a failed assertion spoils the CUDA context: all later calls fail."""
        try:
            self.memory.synchronize()
        except Exception as e:
            return f"the GPU can be used no more from this process: {type(e).__name__}: {e}".split("\n")[0]
        return None


def _bytes(array: np.ndarray, low: int, high: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))


def driver_version() -> str:
    """The version of the NVIDIA driver, from NVML."""
    text = ctypes.create_string_buffer(80)
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        failed = nvml.nvmlInit_v2() or nvml.nvmlSystemGetDriverVersion(text, 80)
    except (OSError, AttributeError):
        return "unknown"
    return "unknown" if failed else text.value.decode()

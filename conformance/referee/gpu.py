"""A GPU without a compiler: it loads cubins and launches them on copies of arrays."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

ALIGNMENT = 256  # addresses in both memories have the same low bits


class GpuError(Exception):
    """The driver refused something, or a kernel failed."""


class NoArray(Exception):
    """An array cannot be put into GPU memory."""


class Gpu:
    """One GPU of this machine; processes share the GPUs out by their numbers. `api` is `cuda.bindings.driver`.

    SystemExit if there is no GPU. An error in a kernel sets `lost`: from then on the driver answers every call of the
    process with that error.
    """

    def __init__(self, api: Any = None):
        try:
            if api is None:
                from cuda.bindings import driver as api
            self.api, self.lost = api, False
            self.ask(api.cuInit(0))
            device = self.ask(api.cuDeviceGet(os.getpid() % self.ask(api.cuDeviceGetCount())))
            self.ask(api.cuCtxSetCurrent(self.ask(api.cuDevicePrimaryCtxRetain(device))))
        except Exception as e:  # the bindings raise many errors if there is no driver
            raise SystemExit(f"running exported programs needs a GPU, its driver and cuda-python: {e}") from None

    def ask(self, answer: tuple) -> Any:
        """The result of a call of the driver; GpuError with the driver's name of the error."""
        if answer[0]:
            name = self.api.cuGetErrorName(answer[0])[1]
            raise GpuError(name.decode() if name else str(answer[0]))
        return answer[1] if len(answer) > 1 else None

    def run(self, cubin: bytes, symbol: str, grid: Sequence[int], arrays: Sequence[np.ndarray],
            pack: Callable[[Callable, Callable], list[bytes]]) -> None:
        """Launch an entry on copies of the arrays, and bring them back.

        pack(address, table) gives the bytes of the parameters: see parameters.py.
        """
        with ExitStack() as stack:
            moved = {id(a): self._moved(stack, a) for a in arrays}
            module = self.ask(self.api.cuModuleLoadData(cubin))
            stack.callback(self.api.cuModuleUnload, module)
            words = pack(lambda a: moved[id(a)], lambda data: self._copied(stack, data))
            try:
                self._launch(self.ask(self.api.cuModuleGetFunction(module, symbol.encode())), grid, words)
            except GpuError:
                self.lost = True
                raise
            for a in arrays:
                self._back(a, moved[id(a)])

    def _launch(self, function: Any, grid: Sequence[int], words: list[bytes]) -> None:
        boxes = [ctypes.create_string_buffer(w, 8) for w in words]
        pointers = (ctypes.c_void_p * max(len(boxes), 1))(*map(ctypes.addressof, boxes))
        dims = (*grid, 1, 1)[:3]
        self.ask(self.api.cuLaunchKernel(function, *dims, 1, 1, 1, 0, 0, ctypes.addressof(pointers), 0))
        self.ask(self.api.cuCtxSynchronize())

    def _moved(self, stack: ExitStack, a: np.ndarray) -> int:
        """The address of an array's first element on the GPU, to which all memory that it spans is copied."""
        if a.dtype.name == "float4_e2m1fn":
            raise NoArray("float4_e2m1fn has two elements a byte in GPU memory")
        low, high = np.lib.array_utils.byte_bounds(a)
        memory = self._memory(stack, max(high - low, 0) + ALIGNMENT) + low % ALIGNMENT
        if high > low:
            self.ask(self.api.cuMemcpyHtoD(memory, low, high - low))
        return memory + _address(a) - low

    def _back(self, a: np.ndarray, address: int) -> None:
        low, high = np.lib.array_utils.byte_bounds(a)
        if high > low:
            self.ask(self.api.cuMemcpyDtoH(low, address - (_address(a) - low), high - low))

    def _copied(self, stack: ExitStack, data: bytes) -> int:
        memory, host = self._memory(stack, len(data) + 8), ctypes.create_string_buffer(data, len(data) + 1)
        self.ask(self.api.cuMemcpyHtoD(memory, ctypes.addressof(host), len(data)))
        return memory

    def _memory(self, stack: ExitStack, size: int) -> int:
        memory = self.ask(self.api.cuMemAlloc(size))
        stack.callback(self.api.cuMemFree, memory)
        return int(memory)


def _address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]

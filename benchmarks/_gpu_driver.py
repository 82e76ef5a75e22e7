"""The four calls of the CUDA driver that launch a cubin, through ctypes, so that all sides launch alike."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

_KINDS = {"pointer": ctypes.c_uint64, "int": ctypes.c_int32}


class Function:
    """The only kernel of a cubin, found by its symbol, with its arguments packed once."""

    _cuda: ctypes.CDLL | None = None

    def __init__(self, cubin: Path, symbol: str, arguments: Sequence[tuple[str, int]]):
        module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        self._image = cubin.read_bytes()
        self._call("cuModuleLoadData", ctypes.byref(module), self._image)
        self._call("cuModuleGetFunction", ctypes.byref(self._function), module, symbol.encode())
        self._values = [_KINDS[kind](v) for kind, v in arguments]
        self._pointers = (ctypes.c_void_p * len(self._values))(*map(ctypes.addressof, self._values))

    def __call__(self, grid: Sequence[int], stream: int) -> None:
        """Launch `grid` tile blocks; the cubin says how many threads each has."""
        self._call("cuLaunchKernel", self._function, *(*grid, 1, 1)[:3], 1, 1, 1, 0, ctypes.c_void_p(stream),
                   self._pointers, None)

    @classmethod
    def _call(cls, name: str, *arguments) -> None:
        if cls._cuda is None:
            cls._cuda = ctypes.CDLL("libcuda.so.1")
        status = getattr(cls._cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            cls._cuda.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'error').decode()} ({status})")

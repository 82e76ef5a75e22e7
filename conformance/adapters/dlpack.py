"""GPU memory as an object with `__dlpack__`, which has names for 8-bit floats; the CUDA array interface has none."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

CODES = {"float8_e4m3fn": 10, "float8_e5m2": 12, "float8_e8m0fnu": 14}  # DLDataTypeCode
CUDA = 2  # DLDeviceType


class _Tensor(ctypes.Structure):
    """DLManagedTensor with its DLTensor, DLDevice and DLDataType, field after field."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _keep(_: int) -> None:
    """Nothing to free: the memory belongs to its owner, which outlives the launch."""


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


class Exported:
    """An array at an address of the current GPU. `memory` owns it; `array` gives shape, strides and dtype."""

    def __init__(self, memory: Any, address: int, array: np.ndarray, device: int):
        self.memory, self.dtype, self.device = memory, array.dtype, device
        self.numbers = (ctypes.c_int64 * (2 * array.ndim))(*array.shape, *(s // array.itemsize for s in array.strides))
        shape = ctypes.addressof(self.numbers)
        self.tensor = _Tensor(
            data=address, device_type=CUDA, device_id=device, ndim=array.ndim, code=CODES[array.dtype.name],
            bits=8 * array.itemsize, lanes=1, shape=shape, strides=shape + 8 * array.ndim,
            deleter=ctypes.cast(_keep, ctypes.c_void_p))

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, **_: Any) -> Any:
        return _capsule(ctypes.addressof(self.tensor), b"dltensor", None)

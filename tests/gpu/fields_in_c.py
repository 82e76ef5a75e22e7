"""Types whose objects have room for fields of C, as those of Cython; and arrays like CuPy's that are made of them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_BASETYPE = 1 << 10  # of CPython's object.h
HEAD = object.__basicsize__
_kept: list[Any] = []  # types do not own what they are described by


class _Slot(ctypes.Structure):
    """PyType_Slot."""

    _fields_ = [("slot", ctypes.c_int), ("pfunc", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    """PyType_Spec."""

    _fields_ = [("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int),
                ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot))]


def with_room(name: str, size: int) -> Any:
    """A type whose instances have so many bytes behind the start of an object, which are 0."""
    slots = (_Slot * 1)()
    spec = _Spec(f"tests.{name}".encode(), HEAD + size, 0, _BASETYPE, slots)
    _kept.extend((slots, spec))
    new = ctypes.pythonapi.PyType_FromSpec
    new.restype, new.argtypes = ctypes.py_object, [ctypes.POINTER(_Spec)]
    return new(spec)


def put(o: Any, at: int, *values: int, of: Any = ctypes.c_size_t) -> None:
    """Write numbers into the room of an object."""
    (of * len(values)).from_address(id(o) + HEAD + at)[:] = values


class UnownedMemory:
    """A cupy.cuda.UnownedMemory that is none."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int):
        self.ptr, self.device_id = ptr, device_id


class MemoryPointer(with_room("Pointer", 24)):
    """A cupy.cuda.MemoryPointer that is none."""

    def __init__(self, memory: UnownedMemory, offset: int):
        self.ptr, self.device_id = memory.ptr + offset, memory.device_id
        put(self, 0, self.ptr)
        put(self, 8, self.device_id, of=ctypes.c_int)


class FieldsArray(with_room("Base", 80)):
    """A cupy.ndarray that is none."""

    def __init__(self, shape: tuple, dtype: Any, memptr: MemoryPointer, strides: tuple):
        self._numpy = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)
        self._is = {"shape": shape, "strides": strides, "dtype": self._numpy.dtype, "data": memptr}
        self._vectors = [(ctypes.c_int64 * max(len(n), 1))(*n) for n in (shape, strides)]
        put(self, 0, self._numpy.size)
        for at, v in zip((8, 32), self._vectors, strict=True):
            first = ctypes.addressof(v)
            put(self, at, first, first + 8 * len(shape), first + 8 * len(shape))
        put(self, 64, id(self.dtype), id(memptr))

    shape, strides, dtype, data = (property(lambda self, name=n: self._is[name])
                                   for n in ("shape", "strides", "dtype", "data"))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> FieldsArray:
        a = self._numpy[key]
        return type(self)(a.shape, self.dtype, self.data, a.strides)

    @property
    def __cuda_array_interface__(self) -> dict:
        return {"shape": self.shape, "strides": self.strides, "typestr": self.dtype.str, "version": 3,
                "data": (self.data.ptr, False)}


FieldsArray.__module__ = "cupy"  # by which it is known


def array(pointer: int, shape: tuple, strides: tuple, dtype: Any = "f4", device: int = 0,
          cls: Any = FieldsArray) -> Any:
    """An array somewhere; strides are given in elements."""
    dtype = np.dtype(dtype)
    return cls(shape, dtype, MemoryPointer(UnownedMemory(pointer, 1 << 20, None, device), 0),
               tuple(s * dtype.itemsize for s in strides))

"""Types with attributes that C functions compute, as those of Cython; and arrays like CuPy's that are made of them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tests.gpu.extension import CuPyArray

_Getter = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
_PY_TP_GETSET, _BASETYPE = 73, 1 << 10  # of CPython's typeslots.h and object.h
_kept: list[Any] = []  # types do not own what they are described by


class _GetSet(ctypes.Structure):
    """PyGetSetDef."""

    _fields_ = [("name", ctypes.c_char_p), ("get", ctypes.c_void_p), ("set", ctypes.c_void_p),
                ("doc", ctypes.c_char_p), ("closure", ctypes.c_void_p)]


class _Slot(ctypes.Structure):
    """PyType_Slot."""

    _fields_ = [("slot", ctypes.c_int), ("pfunc", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    """PyType_Spec."""

    _fields_ = [("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int),
                ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot))]


def with_attributes(name: str, *attributes: str, further: int = 0) -> Any:
    """A type whose instances have these attributes; what they are is in the dictionary `kept` of an instance.

    further   bytes behind the start of an object, which are 0
    """
    getters = [_Getter(lambda o, _, name=n: o.kept[name]) for n in attributes]
    table = (_GetSet * (len(attributes) + 1))(*(_GetSet(n.encode(), ctypes.cast(g, ctypes.c_void_p))
                                                for n, g in zip(attributes, getters, strict=True)))
    slots = (_Slot * 2)(_Slot(_PY_TP_GETSET, ctypes.cast(table, ctypes.c_void_p)))
    spec = _Spec(f"tests.{name}".encode(), object.__basicsize__ + further, 0, _BASETYPE, slots)
    _kept.extend((getters, table, slots, spec))
    new = ctypes.pythonapi.PyType_FromSpec
    new.restype, new.argtypes = ctypes.py_object, [ctypes.POINTER(_Spec)]
    return new(spec)


class MemoryPointer(with_attributes("Pointer", "ptr", "device_id")):
    """A cupy.cuda.MemoryPointer that is none."""

    def __init__(self, ptr: int, device_id: int):
        self.kept = {"ptr": ptr, "device_id": device_id}


class FieldsArray(with_attributes("Base", "data", "dtype", "size", "ndim", "shape", "strides", "_c_contiguous",
                                  "_shape", "_strides")):
    """A cupy.ndarray that is none; strides are given in elements."""

    def __init__(self, pointer: int, shape: tuple, strides: tuple, dtype: Any = "f4", device: int = 0):
        plain = CuPyArray(pointer, shape, strides, dtype, device)
        self._numpy = np.lib.stride_tricks.as_strided(np.empty(1, plain.dtype), plain.shape, plain.strides)
        self.kept = {"data": MemoryPointer(pointer, device), "dtype": plain.dtype, "size": self._numpy.size,
                     "ndim": len(shape), "shape": plain.shape, "strides": plain.strides, "_shape": list(plain.shape),
                     "_strides": list(plain.strides), "_c_contiguous": self._numpy.flags.c_contiguous}

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> FieldsArray:
        a = self._numpy[key]
        steps = tuple(s // self.dtype.itemsize for s in a.strides)
        return FieldsArray(self.data.ptr, a.shape, steps, self.dtype, self.data.device_id)

    @property
    def T(self) -> FieldsArray:
        return FieldsArray(self.data.ptr, self._numpy.T.shape, tuple(s // self.dtype.itemsize for s in
                           self._numpy.T.strides), self.dtype, self.data.device_id)

    @property
    def __cuda_array_interface__(self) -> dict:
        return {"shape": self.shape, "strides": self.strides, "typestr": self.dtype.str, "version": 3,
                "data": (self.data.ptr, False)}


FieldsArray.__module__ = "cupy"  # by which it is known

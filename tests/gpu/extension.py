"""The C code of cutile/runtime as a module, built for these tests; and stand-ins for the arrays that it reads."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.gpu.arrays import Tracked, autograd

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
DEFINED = ["-DPy_GIL_DISABLED=1"] if FREE_THREADED else []  # as setup.py has it
SOURCES = sorted((Path(__file__).parents[2] / "cutile" / "runtime").glob("*.c"))


@functools.cache
def built() -> Any:
    """The module; a test that asks for it is skipped where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    include = sysconfig.get_path("include")
    if compiler is None or not Path(include, "Python.h").exists():
        pytest.skip("needs a C compiler and Python's headers")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "_launcher.so")
        subprocess.run([compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
                        "-Wno-missing-field-initializers", *DEFINED, "-shared", "-fPIC", f"-I{include}", *SOURCES,
                        "-o", file], check=True)
        spec = importlib.util.spec_from_file_location("_launcher", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------ arrays


class CuPyArray:
    """A cupy.ndarray that is none; strides are given in elements."""

    def __init__(self, pointer: int, shape: tuple, strides: tuple, dtype: Any = "f4", device: int = 0):
        self.dtype = np.dtype(dtype)
        self.data = types.SimpleNamespace(ptr=pointer, device_id=device)
        self.shape, self.strides = shape, tuple(s * self.dtype.itemsize for s in strides)

    @property
    def __cuda_array_interface__(self) -> dict:
        return {"shape": self.shape, "strides": self.strides, "typestr": self.dtype.str, "version": 3,
                "data": (self.data.ptr, False)}


CuPyArray.__module__ = "cupy"  # by which it is known


class Tensor(Tracked):
    """A torch.Tensor that is none."""

    layout = "strided"

    def __init__(self, pointer: int, shape: tuple, strides: tuple, dtype: Any = "f4", device: int = 0,
                 cuda: bool = True, neg: bool = False):
        self._pointer, self.shape, self._strides, self._neg = pointer, shape, strides, neg
        self.dtype, self.is_cuda = np.dtype(dtype), cuda
        self.device = types.SimpleNamespace(type="cuda" if cuda else "xpu", index=device)

    def data_ptr(self) -> int:
        return self._pointer

    def stride(self) -> tuple:
        return self._strides

    def get_device(self) -> int:
        return self.device.index

    def is_neg(self) -> bool:
        return self._neg

    def is_conj(self) -> bool:
        return False

    def is_complex(self) -> bool:
        return self.dtype.kind == "c"


_DEVICES = {"cpu": 1, "cuda": 2, "xpu": 14}  # as DLPack numbers them


class _Struct(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_Struct))
def _lend(t: LentTensor, out: Any) -> int:
    if t.layout != "strided":
        return -1
    t.lent = [(ctypes.c_int64 * len(n))(*n) for n in (t.shape, t._strides)]  # the arrays live as long as the tensor
    out[0] = _Struct(t._pointer - 64, _DEVICES[t.device.type], t.get_device(), len(t.shape),
                     {"i": 0, "u": 1, "f": 2}[t.dtype.kind], 8 * t.dtype.itemsize, 1, *t.lent, 64)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def _stream_of(kind: int, ordinal: int, out: Any) -> int:
    """The current stream of GPU 1 is 401, and so on."""
    out[0] = 400 + ordinal
    return 0 if kind == _DEVICES["cuda"] else -1


class _Exchange(ctypes.Structure):
    """The start of DLPack's DLPackExchangeAPI."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("others", ctypes.c_void_p * 4),
                ("lend", ctypes.c_void_p), ("stream_of", ctypes.c_void_p)]


def exchange(major: int = 1) -> Any:
    """What torch.Tensor has as __dlpack_c_exchange_api__."""
    functions = (ctypes.cast(f, ctypes.c_void_p) for f in (_lend, _stream_of))
    table = _Exchange(major, 3, (ctypes.c_void_p * 4)(), *functions)
    _tables.append(table)
    return capsule(ctypes.addressof(table), b"dlpack_exchange_api")


def capsule(address: int, name: bytes) -> Any:
    """A capsule with an address and a name, both of which must stay."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, name, None)


_tables: list[_Exchange] = []  # capsules do not own them


class LentTensor(Tensor):
    """A torch.Tensor of a version that lends tensors to C code."""

    __dlpack_c_exchange_api__ = exchange()


def installed(monkeypatch: Any) -> None:
    """Put the stand-ins in the place of torch and CuPy."""
    from cutile.runtime import launch_key

    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(ndarray=CuPyArray))
    monkeypatch.setitem(sys.modules, "torch", autograd(types.SimpleNamespace(
        Tensor=Tensor, nn=types.SimpleNamespace(Parameter=LentTensor), strided="strided")))
    monkeypatch.setattr(launch_key, "READERS", dict(launch_key.READERS))

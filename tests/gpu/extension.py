"""cutile/gpu/_launcher.c as a module, built for these tests; and stand-ins for the arrays that it reads."""

from __future__ import annotations

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

SOURCE = Path(__file__).parents[2] / "cutile" / "gpu" / "_launcher.c"


@functools.cache
def built() -> Any:
    """The module; a test that asks for it is skipped where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    include = sysconfig.get_path("include")
    if compiler is None or not Path(include, "Python.h").exists() or sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("needs a C compiler and Python's headers")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "_launcher.abi3.so")
        subprocess.run([compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
                        "-Wno-missing-field-initializers", "-shared", "-fPIC", f"-I{include}", SOURCE, "-o", file],
                       check=True)
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


class Tensor:
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


def installed(monkeypatch: Any) -> None:
    """Put the stand-ins in the place of torch and CuPy."""
    from cutile import keys

    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(ndarray=CuPyArray))
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(
        Tensor=Tensor, nn=types.SimpleNamespace(Parameter=None), strided="strided"))
    monkeypatch.setattr(keys, "_READERS", dict(keys._READERS))

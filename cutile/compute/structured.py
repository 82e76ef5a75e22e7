"""Arrays of items that are several numbers each, complex numbers or structs, in the memory of libraries.

Launches take numbers alone, so these arrays are read here: by attributes of CuPy and PyTorch, because a call reads them
in a few microseconds, and by the interface of others. Structs in GPU memory say of their fields what
`__cuda_array_interface__` has as `descr`, unless the array has a structured `dtype` of its own.
"""

from __future__ import annotations

import sys
from math import prod
from typing import Any, NamedTuple

import numpy as np

from cutile.runtime.arrays import read_cupy, read_torch, read_torch_subclass
from cutile.runtime.launch_key import find_reader, gpu_of


class Structured(NamedTuple):
    """Such an array. `strides` are in bytes, and `device` is None for an array that is nowhere.

    host    in host memory the array of NumPy, else None
    tensor  whether it is one of PyTorch, whose autograd is told of what is written
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int
    device: int | None
    writable: bool
    host: np.ndarray | None = None
    tensor: bool = False

    @property
    def part(self) -> tuple:
        """What launches depend on."""
        where = "host" if self.host is not None else (self.device, self.pointer & 15, self.writable)
        return where, self.tensor, self.dtype, self.shape, self.strides

    def line(self) -> tuple[int, int] | None:
        """Its size and stride as a line of items, in memory order; None if it is none."""
        if len(self.shape) == 1:
            return self.shape[0], self.strides[0]
        axes = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        for order in (axes[::-1], axes):
            step = self.dtype.itemsize
            for n, s in order:
                if s != step:
                    break
                step *= n
            else:
                return prod(self.shape), self.dtype.itemsize
        return None


def structured(obj: Any) -> Structured | None:
    """An array of items that are several numbers each; None for anything else. TypeError for a tensor that is
    conjugated lazily.
    """
    if isinstance(obj, np.ndarray | np.generic | int | float | str | bytes | tuple | list | type(None)):
        return None
    reader = find_reader(type(obj))
    if reader is read_cupy:
        return _of_cupy(obj)
    if reader in (read_torch, read_torch_subclass):
        return _of_torch(obj) if obj.is_complex() else None
    given = getattr(obj, "__cuda_array_interface__", None)
    return None if given is None else _of_interface(obj, given)


def _of_cupy(a: Any) -> Structured | None:
    dtype = a.dtype
    if dtype.kind != "c" and dtype.names is None:
        return None
    memory = a.data
    return Structured(dtype, a.shape, a.strides, memory.ptr, memory.device_id, True)


def _of_torch(t: Any) -> Structured | None:
    torch = sys.modules["torch"]
    dtype = {torch.complex64: np.dtype(np.complex64), torch.complex128: np.dtype(np.complex128)}.get(t.dtype)
    if dtype is None or t.layout is not torch.strided or t.device.type not in ("cuda", "cpu"):
        return None
    if t.is_conj() or t.is_neg():
        raise TypeError("a torch tensor that is a lazily negated or conjugated view has other numbers in memory; "
                        "x.resolve_conj() or x.resolve_neg() makes one that can be passed")
    host = None if t.is_cuda else t.detach().numpy()
    return Structured(dtype, tuple(t.shape), tuple([s * dtype.itemsize for s in t.stride()]), t.data_ptr(),
                      t.get_device() if t.is_cuda else None, True, host, True)


def _of_interface(obj: Any, given: dict) -> Structured | None:
    dtype = _dtype_of(obj, given)
    if dtype is None:
        return None
    shape, (pointer, read_only), strides = tuple(given["shape"]), given["data"], given.get("strides")
    if strides is None:
        strides = [dtype.itemsize * prod(shape[k + 1:]) for k in range(len(shape))]
    return Structured(dtype, shape, tuple(strides), int(pointer or 0), gpu_of(pointer) if pointer else None,
                      not read_only)


def _dtype_of(obj: Any, given: dict) -> np.dtype | None:
    kind, own = given["typestr"][1], getattr(obj, "dtype", None)
    if kind == "c":
        return np.dtype(given["typestr"])
    if kind != "V":
        return None
    if isinstance(own, np.dtype) and own.names:
        return own
    found = np.lib.format.descr_to_dtype(given["descr"]) if len(given.get("descr", ())) > 1 else None
    return found if found is not None and found.names and found.itemsize == int(given["typestr"][2:]) else None

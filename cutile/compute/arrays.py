"""Arrays as operands of algorithms: lines of items in the memory of the host or of a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutile.compute.value_types import Number, ValueType, storage, value_type
from cutile.dtypes import info
from cutile.runtime.arguments import array_of as ref_of
from cutile.runtime.array_ref import ArrayRef


class DeviceArray:
    """A line of items: `size` of them, `stride` bytes apart, from an address on.

    In host memory `host` is a NumPy array of rank 1; in GPU memory it is None, and `owner` keeps the memory.
    """

    def __init__(self, t: ValueType, pointer: int, size: int, stride: int, device: int | None, writable: bool,
                 host: np.ndarray | None, owner: Any, layout: np.dtype | None = None):
        self.value_type, self.pointer, self.size, self.stride = t, pointer, size, stride
        self.device, self.writable, self.host, self.owner = device, writable, host, owner
        self.layout = storage(t) if layout is None else layout  # of an item in memory

    @property
    def itemsize(self) -> int:
        return self.layout.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.host is not None:
            raise AttributeError("this array is in host memory")
        return {"shape": (self.size,), "strides": (self.stride,), "typestr": storage(self.value_type).str,
                "data": (self.pointer, not self.writable), "version": 3}

    def cut(self, start: int, stop: int) -> Any:
        """Items `start` to `stop` as an argument of a kernel."""
        if self.host is not None:
            return self.host if (start, stop) == (0, self.size) else self.host[start:stop]
        if (start, stop) == (0, self.size) and self.owner is not None:
            return self.owner
        return DeviceArray(self.value_type, self.pointer + start * self.stride, stop - start, self.stride, self.device,
                           self.writable, None, self)

    def leaves(self) -> list[DeviceArray]:
        """An array for each number of an item."""
        if isinstance(self.value_type, Number):
            return [self]
        found = []
        for part, name in zip(self.value_type.parts, self.layout.names, strict=True):
            inner, offset = self.layout.fields[name][:2]
            size = max(inner[n].itemsize for n in inner.names) if inner.names else inner.itemsize
            if not inner.names and (self.stride % size or (self.pointer + offset) % size):
                raise TypeError(f"the fields `{name}` of a struct array lie {self.stride} bytes apart, which their "
                                f"{size} bytes do not divide; pass an aligned dtype: np.dtype(…, align=True)")
            host = None if self.host is None else self.host[name]
            found += DeviceArray(part, self.pointer + offset, self.size, self.stride, self.device, self.writable, host,
                                 None, inner).leaves()
        return found


def array_of(obj: Any) -> DeviceArray:
    """The line of items that an array is; TypeError for what is no array, ValueError for several strided axes."""
    if isinstance(obj, np.ndarray) and obj.dtype.names:
        line = _line(obj)
        return DeviceArray(value_type(obj.dtype), line.ctypes.data, line.size, line.strides[0], None,
                           line.flags.writeable, line, obj, obj.dtype)
    ref = ref_of(obj) if not isinstance(obj, int | float | str | bytes | tuple | list | type(None)) else None
    if ref is None:
        raise TypeError(f"Expected an iterator or a device array, got {type(obj).__name__}")
    if ref.owner is not None:
        line = _line(ref.owner)
        return DeviceArray(Number(ref.dtype), line.ctypes.data, line.size, line.strides[0] if line.size else
                           line.itemsize, None, line.flags.writeable, line, obj)
    size, stride = _flat(ref)
    return DeviceArray(Number(ref.dtype), ref.pointer, size, stride * info(ref.dtype).storage.itemsize, ref.device,
                       ref.writable, None, obj if len(ref.shape) == 1 else None)


def _line(a: np.ndarray) -> np.ndarray:
    """A NumPy array as a line of items, in memory order."""
    if a.ndim == 1:
        return a
    if a.flags.c_contiguous or a.flags.f_contiguous:
        return a.reshape(-1, order="C" if a.flags.c_contiguous else "F")
    raise _not_contiguous(a.shape, a.strides)


def _flat(ref: ArrayRef) -> tuple[int, int]:
    """Size and stride, in elements, of an array in GPU memory as a line of items."""
    if len(ref.shape) == 1:
        return ref.shape[0], ref.strides[0]
    for order in (range(len(ref.shape))[::-1], range(len(ref.shape))):
        step = 1
        for k in order:
            if ref.shape[k] != 1 and ref.strides[k] != step:
                break
            step *= ref.shape[k]
        else:
            return ref.size, 1
    raise _not_contiguous(ref.shape, ref.strides)


def _not_contiguous(shape: tuple, strides: tuple) -> ValueError:
    return ValueError(f"Non-contiguous arrays are not supported: an array of shape {shape} and strides {strides} is no "
                      f"line of items; pass a copy, or an array of rank 1, which may be strided")

"""Arrays as operands of algorithms: lines of items in the memory of the host or of a GPU."""

from __future__ import annotations

import sys
from itertools import count
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from cutile.compute.complex_numbers import fields_of
from cutile.compute.structured import structured
from cutile.compute.value_types import Number, ValueType, storage, value_type
from cutile.dtypes import DType, info, int32, int64, of_storage, uint8, uint16, uint32, uint64
from cutile.runtime import launch_cache
from cutile.runtime.array_ref import ArrayRef, ref_of
from cutile.runtime.arrays import NoArrayError, plain_array, read_cupy, read_torch
from cutile.runtime.launch_key import find_reader
from cutile.types import ArrayType

NOWHERE = 1 << 20  # the address of arrays that stand for others


KINDS: dict[Any, int] = {}  # how C code reads arrays in GPU memory, by their class; and numbers of dtypes of CuPy
_LEFT: set[type] = set()  # classes of known libraries that it does not read
_numbers = count()


def read_in_c(value: Any) -> None:
    """Have C code read arrays of the class of `value` from now on, with its dtype, if it can."""
    cls, reader = type(value), find_reader(type(value))
    if cls in _LEFT or reader not in (read_torch, read_cupy):
        return
    if (kind := KINDS.get(cls) or launch_cache.kind_on_gpu(value)) is None:
        _LEFT.add(cls)
        return
    if reader is read_cupy:
        KINDS.setdefault(value.dtype, next(_numbers))
    KINDS[cls] = kind


def reading() -> Any:
    """The module of C code, where it reads arrays of some class; else None."""
    return launch_cache.extension() if KINDS else None


def on_gpu(value: Any) -> Any:
    """What C code reads of an array in GPU memory: bytes that launches depend on, and the address. None if it does not
    read it.
    """
    if type(value) not in KINDS or (c := reading()) is None:
        return None
    found = c.array_on_gpu(KINDS, value)
    return None if found is NotImplemented else found


class Held:
    """A number that a call brings, as an int; kernels take it as int64. `root`: the number."""

    __slots__ = ("root",)
    part = None

    def __init__(self, root: int):
        self.root = root


class DeviceArray:
    """A line of items: `size` of them, `stride` bytes apart, from an address on.

    In host memory `host` is a NumPy array of rank 1; in GPU memory it is None. `owner`: what the user passed.
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
    def root(self) -> Any:
        """What differs between calls of one kind: the address, or the NumPy array."""
        return self.pointer if self.host is None else self.host

    @property
    def part(self) -> tuple:
        """What else kernels depend on."""
        where = "host" if self.host is not None else (self.device, self.pointer & 15, self.writable)
        return where, self.layout, self.size, self.stride, self.is_tensor

    @property
    def is_tensor(self) -> bool:
        """Whether the user passed a tensor of PyTorch, whose autograd is told of what is written."""
        return isinstance(self.owner, getattr(sys.modules.get("torch"), "Tensor", ()))

    def on_some_gpu(self, n: int) -> DeviceArray:
        """A contiguous array of n such items in GPU memory, where nothing is."""
        return DeviceArray(self.value_type, NOWHERE, n, self.itemsize, 0, True, None, None, self.layout)

    def pieces(self) -> list[Piece]:
        """An array for each number of an item."""
        return _pieces(self, self.value_type, self.layout, (), 0)

    def unit(self, at: int, size: int) -> int:
        """How many of the `size` bytes of a number, `at` bytes into an item, can be read at once: a power of two. In
        host memory NumPy reads at any address, but kernels count in such units how far apart items lie.
        """
        apart = (self.stride, self.itemsize) if self.layout.names else (self.stride,)
        return gcd(size, *apart, *(() if self.host is not None else (self.pointer + at,)))


def _pieces(array: DeviceArray, t: ValueType, layout: np.dtype, fields: tuple[str, ...], offset: int) -> list[Piece]:
    if isinstance(t, Number):
        unit = array.unit(offset, info(t.dtype).storage.itemsize)
        return [Piece(array, t.dtype, fields, offset, array.stride, 0, array.size, unit)]
    found, layout = [], fields_of(layout)
    for part, name in zip(t.parts, layout.names, strict=True):
        inner, at = layout.fields[name][:2]
        found += _pieces(array, part, fields_of(inner), (*fields, name), offset + at)
    return found


UNSIGNED = {1: uint8, 2: uint16, 4: uint32, 8: uint64}  # by bytes


class Piece(NamedTuple):
    """Some numbers of an array, as kernels take them: those of a field of items number `start` to `stop`.

    array   where they lie
    fields  the names that lead to the field; `offset`: of it in an item, in bytes
    unit    how many bytes of a number can be read at once
    raw     whether it has bytes of other numbers
    """

    array: Any
    dtype: DType
    fields: tuple[str, ...]
    offset: int
    stride: int
    start: int
    stop: int
    unit: int
    raw: bool = False

    @property
    def packed(self) -> bool:
        """Whether the numbers are read in several units."""
        return self.unit < info(self.dtype).storage.itemsize

    def is_whole(self) -> bool:
        """Whether they are all that the array holds."""
        return not self.fields and not self.raw and (self.start, self.stop) == (0, self.array.size)

    def units(self) -> tuple[Piece, ...]:
        """The units of the numbers, those with the lowest bits first."""
        return tuple(self._replace(dtype=UNSIGNED[self.unit], offset=self.offset + k, raw=True)
                     for k in range(0, info(self.dtype).storage.itemsize, self.unit))

    def cut(self, start: int, stop: int) -> Piece:
        return self._replace(start=start, stop=stop)

    @property
    def moved(self) -> int:
        """How many bytes behind the array's address it begins."""
        return self.offset + self.start * self.stride

    def on_host(self, root: np.ndarray) -> np.ndarray:
        """The numbers in host memory. `root`: the array."""
        if self.raw:
            root = root.getfield(info(self.dtype).storage, self.offset)
        for name in () if self.raw else self.fields:
            root = getattr(root, name) if root.dtype.kind == "c" else root[name]
        return root if (self.start, self.stop) == (0, len(root)) else root[self.start:self.stop]

    def on_gpu(self, root: int) -> OnGpu:
        """The numbers in GPU memory. `root`: the array's address."""
        return OnGpu(root + self.moved, self.stop - self.start, self.stride, self.dtype, self.array.device,
                     self.array.writable)


class Temporary(NamedTuple):
    """An array in temporary storage: `size` numbers, from byte `moved` on."""

    array: Any
    dtype: DType
    moved: int
    size: int

    def advanced(self, k: int) -> Temporary:
        """It without its first k numbers."""
        return self._replace(moved=self.moved + k * info(self.dtype).storage.itemsize, size=self.size - k)

    def on_host(self, root: np.ndarray) -> np.ndarray:
        dtype = info(self.dtype).storage
        return root[self.moved:self.moved + self.size * dtype.itemsize].view(dtype)

    def on_gpu(self, root: int) -> OnGpu:
        return OnGpu(root + self.moved, self.size, info(self.dtype).storage.itemsize, self.dtype, self.array.device,
                     True)


class OnGpu:
    """Numbers in GPU memory, as launches take them."""

    def __init__(self, pointer: int, size: int, stride: int, dtype: DType, device: int | None, writable: bool):
        self.dtype, self._device = dtype, device
        self.__cuda_array_interface__ = {"shape": (size,), "strides": (stride,), "typestr": info(dtype).storage.str,
                                         "data": (pointer, not writable), "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._device) if self._device is not None else (0, 0)  # an empty array may be anywhere


def array_of(obj: Any) -> DeviceArray:
    """The line of items that an array is; TypeError for what is no array, ValueError for several strided axes."""
    if isinstance(obj, np.ndarray) and (obj.dtype.names or obj.dtype.kind == "c" or _is_spread(obj)):
        line = line_of(plain_array(obj))
        return DeviceArray(value_type(obj.dtype), line.ctypes.data, line.size, line.strides[0], None,
                           line.flags.writeable, line, obj, obj.dtype)
    if (found := structured(obj)) is not None:
        if (at := found.line()) is None:
            raise _not_contiguous(found.shape, found.strides)
        line = None if found.host is None else line_of(found.host)
        return DeviceArray(value_type(found.dtype), found.pointer, *at, found.device, found.writable, line, obj,
                           found.dtype)
    ref = None if isinstance(obj, int | float | str | bytes | tuple | list | type(None)) else _read(obj)
    if ref is None:
        raise TypeError(f"Expected an iterator or a device array, got {type(obj).__name__}")
    if ref.owner is not None:
        line = line_of(ref.owner)
        return DeviceArray(Number(ref.dtype), line.ctypes.data, line.size, line.strides[0] if line.size else
                           line.itemsize, None, line.flags.writeable, line, obj)
    size, stride = _flat(ref)
    return DeviceArray(Number(ref.dtype), ref.pointer, size, stride * info(ref.dtype).storage.itemsize, ref.device,
                       ref.writable, None, obj)


def _is_spread(a: np.ndarray) -> bool:
    """Whether numbers lie where no multiple of their size leads, as a field of packed structs does."""
    return a.ndim == 1 and a.strides[0] % a.itemsize != 0 and of_storage(a.dtype) is not None


def is_array(obj: Any) -> bool:
    """Whether an object that a function captures is an array."""
    return not isinstance(obj, type) and any(
        hasattr(obj, name) for name in ("__array_interface__", "__cuda_array_interface__", "__dlpack__"))


def part_of_array(obj: Any) -> tuple:
    """What launches depend on of a captured array."""
    key: list = []
    find_reader(type(obj))(obj, key, [])
    return key[0]


def type_of_array(obj: Any) -> ArrayType:
    """The type of a captured array in kernels. TypeError for one that is no line of numbers."""
    array = array_of(obj)
    if not isinstance(array.value_type, Number):
        raise TypeError(f"a captured array holds numbers, and this one holds {array.value_type}")
    if (rank := len(_read(obj).shape)) != 1:
        raise TypeError(f"a captured array has one axis, and this one has {rank}; capture array.reshape(-1)")
    return ArrayType(array.value_type.dtype, 1, int64 if array.size * array.stride // array.itemsize >= 1 << 31
                     else int32)


def _read(obj: Any) -> ArrayRef | None:
    key: list = []
    values: list = []
    try:
        find_reader(type(obj))(obj, key, values)
    except NoArrayError:
        return None
    return ref_of(key[0], values[0])


def line_of(a: np.ndarray) -> np.ndarray:
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

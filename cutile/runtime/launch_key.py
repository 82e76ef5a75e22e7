"""A cheap key of launch arguments, under which a kernel remembers what it prepared.

It is finer than the specialisation key (arguments.py): it has whole shapes and strides, so that equal keys mean equal
types, equal facts and equal parameters but for addresses and numbers. What has no reader here is understood anew at
each launch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cutile.dtypes import DType
from cutile.ir.terms import plain
from cutile.runtime.annotations import PLAIN, ParameterSpec
from cutile.runtime.arguments import constant_key
from cutile.runtime.arrays import Array, DeviceArray, find_array, read_tensor


class NoKeyError(LookupError):
    """An argument that has no cheap key."""


def read(values: Sequence[Any], specs: Iterable[ParameterSpec], key: list, words: list) -> None:
    """Append the parts of the key, and for each leaf a word: the address of an array in GPU memory, another array
    itself, a number, a list of words. Any error means that the arguments have no cheap key; what is wrong with them, if
    something is, `arguments.understand` says.
    """
    for value, spec in zip(values, specs, strict=True):
        cls = type(value)
        if cls is np.ndarray and not spec.constant:  # here as well, which spares the most usual launches the calls
            key += cls, value.dtype, value.shape, value.strides
            words.append(value)
        elif spec.constant and cls is not tuple:
            key.append((cls, value) if cls is int else constant_key(value))
        else:
            (_READERS.get(cls) or _reader(cls))(value, spec, key, words)


def _bool(value: bool, spec: ParameterSpec, key: list, words: list) -> None:
    key.append(bool)
    words.append(value)


def _int(value: int, spec: ParameterSpec, key: list, words: list) -> None:
    if not -1 << 63 <= value < 1 << 63:
        raise NoKeyError
    key.append(32 if -1 << 31 <= value < 1 << 31 else 64)
    words.append(value)


def _float(value: float, spec: ParameterSpec, key: list, words: list) -> None:
    key.append(float)
    words.append(float.__float__(value))


def _number(value: int | float, spec: ParameterSpec, key: list, words: list) -> None:
    """A number of a class of the user's, none of whose code runs."""
    (_int if isinstance(value := plain(value), int) else _float)(value, spec, key, words)


def _tuple(value: tuple, spec: ParameterSpec, key: list, words: list) -> None:
    key.append((tuple, len(value)))
    read(value, map(spec.item, range(len(value))), key, words)


def _list(value: list, spec: ParameterSpec, key: list, words: list) -> None:
    key.append((list, len(value)))
    inner: list = []
    for item in value:
        cls = type(item)
        (_READERS.get(cls) or _reader(cls))(item, PLAIN, key, inner)
    words.append(inner)


def _numpy(a: np.ndarray, spec: ParameterSpec, key: list, words: list) -> None:
    key.append((np.ndarray, a.dtype, a.shape, a.strides))
    words.append(a)


def _torch(t: Any, spec: ParameterSpec, key: list, words: list) -> None:
    if not t.is_cuda:
        return _other_tensor(t, spec, key, words)
    pointer = t.data_ptr()
    key.append((t.dtype, t.shape, t.stride(), t.get_device(), pointer & 15, t.is_neg()))
    words.append(pointer)


def _cupy(a: Any, spec: ParameterSpec, key: list, words: list) -> None:
    memory = a.data
    pointer = memory.ptr
    key.append((a.dtype, a.shape, a.strides, memory.device_id, pointer & 15))
    words.append(pointer)


def _other(obj: Any, spec: ParameterSpec, key: list, words: list) -> None:
    """Whatever has one of the protocols."""
    try:
        found = find_array(obj)
    except TypeError:
        found = None
    if found is None:
        raise NoKeyError
    _array(*found, key, words)


def _other_tensor(t: Any, spec: ParameterSpec, key: list, words: list) -> None:
    """A tensor of PyTorch, which wants to know what is written (autograd.py), so its plan is for no other array."""
    key.append("torch")
    _array(*read_tensor(sys.modules["torch"], t), key, words)


def _array(a: Array, dtype: DType, key: list, words: list) -> None:
    if type(a) is np.ndarray:
        key.append((np.ndarray, dtype, a.shape, a.strides))
        words.append(a)
    elif isinstance(a, DeviceArray):
        key.append((DeviceArray, dtype, a.shape, a.strides, device_of(a), a.pointer & 15, a.writable))
        words.append(a.pointer)
    else:
        raise NoKeyError


def device_of(a: DeviceArray) -> int | None:
    """The GPU of an array; None for one without memory that does not say."""
    if a.device is None and a.pointer:
        from cutile.gpu.driver import driver

        return driver().device_of_pointer(a.pointer)
    return a.device


Reader = Callable[[Any, ParameterSpec, list, list], None]
_READERS: dict[type, Reader] = {bool: _bool, int: _int, float: _float, np.float64: _float, tuple: _tuple, list: _list,
                                np.ndarray: _numpy}


def _reader(cls: type) -> Reader:
    """The reader of a class met for the first time. Of other libraries' subclasses nothing is assumed."""
    if issubclass(cls, int | float):
        return _READERS.get(cls, _number)
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")  # which other threads may have imported by half
    tensor = getattr(torch, "Tensor", None)
    if cls in (tensor, getattr(getattr(torch, "nn", None), "Parameter", None)):
        _READERS[cls] = _torch
    elif tensor is not None and issubclass(cls, tensor):
        _READERS[cls] = _other_tensor
    elif cls is getattr(cupy, "ndarray", None):
        _READERS[cls] = _cupy
    return _READERS.get(cls, _other)

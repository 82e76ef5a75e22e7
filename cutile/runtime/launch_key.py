"""Reads each argument of a launch once, and quickly: into a part of the launch key, and launch values for a back end.

Under the key a kernel keeps launch plans. It is finer than the specialisation key (arguments.py), since it has all
sizes and strides. Equal keys mean equal types, facts and parameters; only addresses and numbers differ. Key and launch
values together say everything about the arguments: `arguments.classify_read` derives the argument types from both.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from cutile.ir.terms import to_builtin
from cutile.runtime.annotations import ParameterSpec
from cutile.runtime.array_ref import GPU, GPU_PARTS, NUMPY
from cutile.runtime.arrays import (
    Reader,
    read_cupy,
    read_numpy,
    read_other,
    read_torch,
    read_torch_subclass,
    reader_of,
)


def read(values: Sequence[Any], specs: Iterable[ParameterSpec], key: list, launch_values: list) -> None:
    """Append to the key a part for each argument, and for each flat argument a launch value: for an array in GPU
    memory its address, for one in CPU memory the array, else a number, or a list of these.

    Any exception means that an argument is not what it should be; `Kernel.classify` says which, and why.
    """
    for value, spec in zip(values, specs, strict=True):
        cls = type(value)
        if cls is np.ndarray and not spec.constant:  # inlined read_numpy: the call alone would cost a tenth
            key.append((NUMPY, value.dtype, value.shape, value.strides))
            launch_values.append(value)
        elif cls is tuple:
            key.append((tuple, len(value)))
            read(value, islice(spec.items, len(value)), key, launch_values)
        elif spec.constant:
            key.append((cls, value) if cls is int else constant_key(value))
        else:
            (READERS.get(cls) or find_reader(cls))(value, key, launch_values)


def constant_key(value: Any) -> tuple:
    """Equal for the same constant: 1, True and 1.0 differ, 0.0 and -0.0 differ, NaN equals itself [SPEC-1]."""
    cls = type(value)
    if issubclass(cls, np.generic):
        return (cls, value.tobytes())
    if issubclass(cls, enum.Enum) and value._name_ is not None:  # its own __eq__ does not count
        return (cls, value._name_)
    value = to_builtin(value)
    return (float, struct.pack("<d", value)) if type(value) is float else (type(value), value)


def read_bool(value: bool, key: list, launch_values: list) -> None:
    key.append(bool)
    launch_values.append(value)


def read_int(value: int, key: list, launch_values: list) -> None:
    if not -1 << 63 <= value < 1 << 63:
        raise OverflowError
    key.append(32 if -1 << 31 <= value < 1 << 31 else 64)
    launch_values.append(value)


def read_float(value: float, key: list, launch_values: list) -> None:
    key.append(float)
    launch_values.append(float.__float__(value))


def _read_number(value: int | float, key: list, launch_values: list) -> None:
    """A number of a class that the user wrote. No code of that class runs."""
    (read_int if isinstance(value := to_builtin(value), int) else read_float)(value, key, launch_values)


def _read_list(value: list, key: list, launch_values: list) -> None:
    key.append((list, len(value)))
    items: list = []
    for item in value:
        (READERS.get(type(item)) or find_reader(type(item)))(item, key, items)
    launch_values.append(items)


READERS: dict[type, Reader] = {bool: read_bool, int: read_int, float: read_float, np.float64: read_float,
                                list: _read_list, np.ndarray: read_numpy}


def find_reader(cls: type) -> Reader:
    """How arguments of a class are read. Readers of the classes of known libraries are remembered."""
    reader = READERS.get(cls)
    if reader is None:
        if issubclass(cls, int | float):
            return _read_number
        reader = reader_of(cls)
        if reader in (read_torch, read_torch_subclass, read_cupy):
            READERS[cls] = reader
        elif reader is read_other:
            return _read_on_its_gpu
    return reader


def _read_on_its_gpu(obj: Any, key: list, launch_values: list) -> None:
    """An array that is read by a protocol, with the GPU that it is on. If the array does not say which, the driver is
    asked.
    """
    read_other(obj, key, launch_values)
    if len(part := key[-1]) == GPU_PARTS and part[GPU] is None and (pointer := launch_values[-1]):
        key[-1] = (*part[:GPU], gpu_of(pointer), *part[GPU + 1:])


def gpu_of(pointer: int) -> int:
    """The GPU whose memory has an address."""
    from cutile.gpu.driver import driver

    return driver().device_of_pointer(pointer)

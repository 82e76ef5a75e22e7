"""What is wrong with what an object says of its memory by a protocol: messages, for what `arrays.py` could not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

CUDA = "__cuda_array_interface__"
HOST = "__array_interface__"


def of_cuda(obj: Any, given: Any) -> TypeError:
    """For a `__cuda_array_interface__`."""
    return TypeError(f"the {CUDA} of {_name(obj)} is malformed: {_malformed(given)}")


def of_host(obj: Any, e: Exception) -> TypeError:
    """For an `__array_interface__`, which NumPy reads: with what it says."""
    return TypeError(f"the {HOST} of {_name(obj)} cannot be read: {e}")


def of_device(obj: Any, where: Any) -> TypeError:
    """For a device of DLPack."""
    return TypeError(f"__dlpack_device__() of {_name(obj)} gives {where!r:.100}, and no pair of ints")


def _malformed(given: Any) -> str:
    if not isinstance(given, Mapping):
        return f"it is {given!r:.100}, and no dictionary"
    for field in ("typestr", "shape", "data"):
        if field not in given:
            return f"it has no {field!r}"
    typestr, shape, data, steps = given["typestr"], given["shape"], given["data"], given.get("strides")
    if not isinstance(typestr, str) or len(typestr) < 3 or not typestr[2:].isdecimal():
        return f"typestr is {typestr!r:.100}, and no text such as '<f4'"
    for field, value in (("shape", shape), ("strides", steps)):
        if value is not None and not _are_ints(value) or field == "shape" and value is None:
            return f"{field} is {value!r:.100}, and no tuple of ints"
    if any(n < 0 for n in shape):
        return f"shape is {shape}"
    if steps is not None and len(steps) != len(shape):
        return f"shape is {shape}, and strides are {steps}"
    return f"data is {data!r:.100}, and no pair of an address and whether it is read-only"


def _are_ints(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(n, int | np.integer) for n in value)


def _name(obj: Any) -> str:
    return f"an object of type {type(obj).__module__}.{type(obj).__qualname__}"

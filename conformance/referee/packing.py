"""Arguments as a compiled kernel takes them: calling convention v2, which all exported programs use [CC-2…8]."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes  # noqa: F401 - gives NumPy the names of its dtypes
import numpy as np

from cutile.compilation import (
    ArrayConstraint,
    ConstantConstraint,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
    TupleConstraint,
)

STORED = {"bool_": "int32", "tfloat32": "float32"}  # how scalars of these dtypes are passed


def pack(signature: KernelSignature, args: Sequence[Any], address: Callable[[np.ndarray], int],
         table: Callable[[bytes], int]) -> list[bytes]:
    """The bytes of each parameter of the entry, in order.

    address(array) is where the array's first element is on the device, table(bytes) puts a list's table there.
    """
    return [w for p, a in zip(signature.parameters, args, strict=True) for w in _words(p, a, address, table)]


def _words(p: Any, a: Any, address: Callable, table: Callable) -> Iterator[bytes]:
    match p:
        case ConstantConstraint():
            return
        case ScalarConstraint():
            yield np.asarray(a).astype(STORED.get(p.dtype.name, p.dtype.name)).tobytes()
        case ArrayConstraint():
            index = np.dtype(p.index_dtype.name)
            yield struct.pack("<Q", address(a))
            yield from (index.type(n).tobytes() for n in _dims(a))
        case ListConstraint():
            yield struct.pack("<Q", table(b"".join(
                struct.pack(f"<Q{2 * x.ndim}q", address(x), *_dims(x)) for x in a)))
            yield struct.pack("<i", len(a))
        case TupleConstraint():
            for q, x in zip(p.items, a, strict=True):
                yield from _words(q, x, address, table)
        case _:
            raise TypeError(f"no parameter for {p!r}")


def _dims(a: np.ndarray) -> list[int]:
    """Sizes and strides, in elements."""
    return [*a.shape, *(s // a.itemsize for s in a.strides)]

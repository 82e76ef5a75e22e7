"""How Tile IR stores numbers as bits."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np

from cutile import dtypes
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.module import Constant, Identity
from cutile.ops._encoding import to_bits

_NUMPY = {
    ty.i8: np.uint8, ty.i16: np.uint16, ty.i32: np.uint32, ty.i64: np.uint64,
    ty.f16: np.float16, ty.bf16: ml_dtypes.bfloat16, ty.f32: np.float32, ty.tf32: np.float32, ty.f64: np.float64,
    ty.e4m3: ml_dtypes.float8_e4m3fn, ty.e5m2: ml_dtypes.float8_e5m2, ty.e8m0: ml_dtypes.float8_e8m0fnu,
    ty.e2m1: ml_dtypes.float4_e2m1fn, ty.e5m3: np.uint8,
}


def constant(type: ty.Tile, data) -> Constant:
    """`data`: one number for all elements, or an array-like of the tile's shape.

    Integers wrap. Floats must be values of the type already, apart from NaN: the caller rounds.
    """
    element, values = type.element, np.asarray(data)
    if element is not ty.i1 and element not in _NUMPY:
        raise ValueError(f"a constant of type {type} cannot be written; make it of another type and convert it")
    if values.ndim and values.shape != type.shape:
        raise ValueError(f"a constant of type {type} cannot have data of shape {values.shape}")
    if element is ty.i1:
        return Constant(_booleans(values))
    if element is ty.tf32:
        return Constant(_tf32(values))
    return Constant(_as(element, values).tobytes())


def _as(element: ty.Scalar, values: np.ndarray) -> np.ndarray:
    """The elements as they are stored. Machines with GPUs are little-endian."""
    target = np.dtype(_NUMPY[element])
    if element.kind == "i" and values.dtype.kind not in "biu":
        mask = (1 << element.bits) - 1
        return np.vectorize(lambda x: operator.index(x) & mask, otypes=[target])(values)
    with np.errstate(all="ignore"):
        if element is ty.e5m3:
            return to_bits(values.astype(np.float32), dtypes.float8_e5m3fnu).astype(target)
        return values.astype(target)


def _booleans(values: np.ndarray) -> bytes:
    """One bit per element, lowest first; a single value for all is stored as 0x00 or 0xff."""
    values = values.astype(bool)
    if values.ndim == 0:
        return b"\xff" if values else b"\x00"
    return np.packbits(values.ravel(), bitorder="little").tobytes()


def _tf32(values: np.ndarray) -> bytes:
    """The upper 19 bits of an f32, in three bytes."""
    bits = np.ascontiguousarray(values.astype(np.float32)).view(np.uint32) >> np.uint32(13)
    return bits.astype("<u4").reshape(-1, 1).view(np.uint8)[:, :3].tobytes()


def bits_of(element: ty.Scalar, value: int | float) -> int:
    """The bits of one number in an element type, as an unsigned integer."""
    if element.kind == "i":
        return int(value) & ((1 << element.bits) - 1)
    bits = int.from_bytes(_as(element, np.asarray(value, np.float64)).tobytes(), "little")
    return bits >> 13 if element is ty.tf32 else bits


def identity(element: ty.Scalar, value: int | float) -> Identity:
    if element.kind == "i" and isinstance(value, float) and not value.is_integer():
        raise ValueError(f"{value!r} is no {element}")
    return Identity(element, bits_of(element, value))

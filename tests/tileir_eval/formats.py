"""Element types as NumPy arrays: integers as signed ones (i1 as bool), formats narrower than f32 as float32.

Rounding and encoding are `cutile.ops._numeric`, the only thing that the evaluator shares with the ops.
"""

from __future__ import annotations

import numpy as np

from cutile import dtypes
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.module import Constant
from cutile.ops import _numeric

FLOATS = {
    ty.f16: dtypes.float16, ty.bf16: dtypes.bfloat16, ty.f32: dtypes.float32, ty.tf32: dtypes.tfloat32,
    ty.f64: dtypes.float64, ty.e4m3: dtypes.float8_e4m3fn, ty.e5m2: dtypes.float8_e5m2,
    ty.e8m0: dtypes.float8_e8m0fnu, ty.e5m3: dtypes.float8_e5m3fnu, ty.e2m1: dtypes.float4_e2m1fn,
}
SIGNED = {ty.i1: np.dtype(np.bool_), ty.i8: np.dtype(np.int8), ty.i16: np.dtype(np.int16),
          ty.i32: np.dtype(np.int32), ty.i64: np.dtype(np.int64)}
UNSIGNED = {ty.i1: np.dtype(np.bool_), ty.i8: np.dtype(np.uint8), ty.i16: np.dtype(np.uint16),
            ty.i32: np.dtype(np.uint32), ty.i64: np.dtype(np.uint64)}
INT_DTYPES = {(ty.i8, True): dtypes.int8, (ty.i16, True): dtypes.int16, (ty.i32, True): dtypes.int32,
              (ty.i64, True): dtypes.int64, (ty.i8, False): dtypes.uint8, (ty.i16, False): dtypes.uint16,
              (ty.i32, False): dtypes.uint32, (ty.i64, False): dtypes.uint64}
ADDRESS = np.dtype(np.int64)


def carrier(element: ty.Scalar | ty.Pointer) -> np.dtype:
    """The NumPy dtype of the elements."""
    if isinstance(element, ty.Pointer):
        return ADDRESS
    if element in SIGNED:
        return SIGNED[element]
    if element not in FLOATS:
        raise NotImplementedError(f"elements of type {element} are not evaluated")
    return np.dtype(np.float64 if element is ty.f64 else np.float32)


def signed(x, element: ty.Scalar) -> np.ndarray:
    """An integer tile as signed numbers: i1 is 0 or -1."""
    x = np.asarray(x)
    return -x.astype(np.int8) if element is ty.i1 else x


def unsigned(x, element: ty.Scalar) -> np.ndarray:
    """An integer tile as unsigned numbers."""
    x = np.asarray(x)
    return x.astype(np.uint8) if element is ty.i1 else x.view(UNSIGNED[element])


def numbers(x, element: ty.Scalar, signedness: str) -> np.ndarray:
    return signed(x, element) if signedness == "signed" else unsigned(x, element)


def wrapped(x, element: ty.Scalar) -> np.ndarray:
    """Integers of any width, modulo 2 ** bits."""
    x = np.asarray(x)
    return (x & 1) != 0 if element is ty.i1 else x.astype(SIGNED[element])


def nearest(x, element: ty.Scalar) -> np.ndarray:
    """Floats of this element type from its carrier or float64, rounded to nearest even."""
    return _numeric.round_to(FLOATS[element], x)


# ------------------------------------------------------------------ bits


def word(element: ty.Scalar) -> np.dtype:
    """The unsigned integer that holds an element in memory; a byte for one of 4 bits."""
    bits = 32 if element is ty.tf32 else max(element.bits, 8)
    return np.dtype(f"u{bits // 8}")


def from_words(words: np.ndarray, element: ty.Scalar) -> np.ndarray:
    """Elements from what memory holds."""
    if element in FLOATS:
        return _numeric.from_bits(words, FLOATS[element])
    return words != 0 if element is ty.i1 else words.view(SIGNED[element])


def to_words(x, element: ty.Scalar) -> np.ndarray:
    """What memory holds for these elements."""
    x = np.asarray(x)
    if element in FLOATS:
        return _numeric.to_bits(x, FLOATS[element])
    return x.view(np.uint8) if element is ty.i1 else x.view(UNSIGNED[element])


def pattern(bits: int, element: ty.Scalar) -> np.ndarray:
    """One element from its bits."""
    if element is ty.i1:
        return np.asarray(bool(bits & 1))
    bits <<= 13 if element is ty.tf32 else 0
    return from_words(np.asarray(bits & ((1 << 8 * word(element).itemsize) - 1), word(element)), element)


def constant(c: Constant, t: ty.Tile) -> np.ndarray:
    """The tile that a constant of the bytecode stands for."""
    element, data = t.element, c.data
    if element is ty.i1:
        if len(data) * 8 < t.size:
            return np.full(t.shape, data[0] != 0)
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=t.size, bitorder="little")
        return bits.astype(np.bool_).reshape(t.shape)
    if element is ty.tf32:
        rows = np.frombuffer(data, np.uint8).reshape(-1, 3)
        words = (rows.astype(np.uint32) << np.array([13, 21, 29], np.uint32)).sum(axis=1, dtype=np.uint32)
    else:
        words = np.frombuffer(data, word(element))
    x = from_words(words.copy(), element)
    if x.size == 1:
        return np.full(t.shape, x[0])
    if x.size != t.size:
        raise ValueError(f"a constant of {x.size} elements for {t}")
    return x.reshape(t.shape)

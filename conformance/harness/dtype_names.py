"""Short names of dtypes, as in clause ids (b1, i8, u16, f32, e4m3), and tables of their kinds and of promotion."""

from typing import Any

import ml_dtypes
import numpy as np

from conformance.harness.api import ct

NAMES = {
    "b1": "bool_", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "tf32": "tfloat32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e8m0": "float8_e8m0fnu",
    "e5m3": "float8_e5m3fnu", "e2m1": "float4_e2m1fn",
}
DTYPES = {short: getattr(ct, name) for short, name in NAMES.items()}
BOOL, SIGNED, UNSIGNED = ("b1",), ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
FLOATS, RESTRICTED = ("f16", "bf16", "f32", "f64"), ("tf32", "e4m3", "e5m2", "e8m0", "e5m3", "e2m1")
INTEGERS = SIGNED + UNSIGNED
ARITHMETIC = BOOL + INTEGERS + FLOATS
NEWER = {"e8m0", "e5m3", "e2m1"}  # formats that only newer GPUs have
NUMPY: dict[str, Any] = {
    "b1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
    "f64": np.float64, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu, "e2m1": ml_dtypes.float4_e2m1fn,
}
# The promotion table: rows and columns are the dtypes of the operands.
_TABLE = """
     b1   i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64  tf32 e4m3 e5m2 e8m0 e5m3 e2m1
b1   b1   i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64  -    -    -    -    -    -
i8   i8   i8   i16  i32  i64  -    -    -    -    f16  bf16 f32  f64  -    -    -    -    -    -
i16  i16  i16  i16  i32  i64  -    -    -    -    f16  bf16 f32  f64  -    -    -    -    -    -
i32  i32  i32  i32  i32  i64  -    -    -    -    f16  bf16 f32  f64  -    -    -    -    -    -
i64  i64  i64  i64  i64  i64  -    -    -    -    f16  bf16 f32  f64  -    -    -    -    -    -
u8   u8   -    -    -    -    u8   u16  u32  u64  f16  bf16 f32  f64  -    -    -    -    -    -
u16  u16  -    -    -    -    u16  u16  u32  u64  f16  bf16 f32  f64  -    -    -    -    -    -
u32  u32  -    -    -    -    u32  u32  u32  u64  f16  bf16 f32  f64  -    -    -    -    -    -
u64  u64  -    -    -    -    u64  u64  u64  u64  f16  bf16 f32  f64  -    -    -    -    -    -
f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  -    f32  f64  -    -    -    -    -    -
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 -    bf16 f32  f64  -    -    -    -    -    -
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  -    -    -    -    -    -
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  -    -    -    -    -    -
tf32 -    -    -    -    -    -    -    -    -    -    -    -    -    tf32 -    -    -    -    -
e4m3 -    -    -    -    -    -    -    -    -    -    -    -    -    -    e4m3 -    -    -    -
e5m2 -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    e5m2 -    -    -
e8m0 -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    e8m0 -    -
e5m3 -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    e5m3 -
e2m1 -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    e2m1
"""
_head, *_rows = (line.split() for line in _TABLE.strip().splitlines())
PROMOTE = {(row[0], column): cell if cell != "-" else None
           for row in _rows for column, cell in zip(_head, row[1:], strict=True)}


def limits(short):
    """Smallest and largest value of an integer dtype."""
    width = int(short[1:])
    return (-(1 << width - 1), (1 << width - 1) - 1) if short[0] == "i" else (0, (1 << width) - 1)

"""Types of arguments as words of the command line: f32[2], i32, =5."""

from __future__ import annotations

import re
from typing import Any

from cutile.cli.failing import fail
from cutile.dtypes import BY_SHORT, DType, bool_, float32, int32, int64
from cutile.front.program import Embedded
from cutile.types import ArrayType, TileType

MAX_RANK = 64  # the highest rank of an array in NumPy and PyTorch
SCALARS = (bool_, int32, int64, float32)
_TYPE = re.compile(r"([a-z0-9]+)(?:\[([0-9]{1,2})\])?")


def arg_type(text: str) -> Any:
    """The type or constant that a word means. Ends the command if it means none."""
    if text.startswith("="):
        return Embedded(_literal(text[1:]))
    name, rank = _TYPE.fullmatch(text).groups() if _TYPE.fullmatch(text) else ("", None)
    dtype = BY_SHORT.get(name)
    if dtype is None or rank is not None and int(rank) > MAX_RANK:
        fail(f"{text!r} is no type: write f32[2] for an array of rank 2 (of {MAX_RANK} at most), i32 for a scalar, =5 "
             "for a constant")
    return _scalar(dtype) if rank is None else ArrayType(dtype, int(rank))


def _scalar(dtype: DType) -> TileType:
    if dtype not in SCALARS:
        fail(f"a scalar argument is b1, i32, i64 or f32, not {dtype.name}")
    return TileType(dtype)


def _literal(text: str) -> Any:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"True": True, "False": False, "None": None}.get(text, text)

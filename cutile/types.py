"""Types of IR values, and the enumerations that users write.

`TileType` is the type of every number in tile code (a scalar is a tile of shape ()); arrays and lists of arrays
come from kernel parameters. Everything else a user can hold is compile-time structure: see ir/terms.py.
"""

from __future__ import annotations

import enum
from math import prod

from cutile._support.structs import structure
from cutile.dtypes import INFO, DType, int32


class RoundingMode(enum.Enum):
    """How a result is rounded [data-model §9]. Only the modes that an op lists are accepted."""

    RN = "nearest_even"
    RZ = "zero"
    RM = "negative_inf"
    RP = "positive_inf"
    RA = "nearest_away"
    FULL = "full"
    APPROX = "approx"
    RZI = "nearest_int_to_zero"


class PaddingMode(enum.Enum):
    """What elements outside an array read as [PAD-1]."""

    UNDETERMINED = "undetermined"
    ZERO = "zero"
    NEG_ZERO = "neg_zero"
    NAN = "nan"
    POS_INF = "pos_inf"
    NEG_INF = "neg_inf"


class MemoryOrder(enum.Enum):
    """Ordering of a memory access [MEM-2]."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MemoryScope(enum.Enum):
    """Who takes part in the ordering of a memory access [MEM-2]."""

    NONE = "none"
    BLOCK = "block"
    CLUSTER = "cluster"
    DEVICE = "device"
    SYS = "sys"


@structure(frozen=True, slots=True)
class TileType:
    """A tile: element dtype and a shape of powers of two, both fixed at compile time [TILE-1]."""

    dtype: DType
    shape: tuple[int, ...] = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def with_dtype(self, dtype: DType) -> TileType:
        return TileType(dtype, self.shape)

    def __str__(self) -> str:
        return f"{INFO[self.dtype].short}[{','.join(map(str, self.shape))}]"

    def describe(self) -> str:
        """As error messages say it."""
        return f"{self.dtype.name} tile of shape {self.shape}" if self.shape else f"{self.dtype.name} scalar"


@structure(frozen=True, slots=True)
class ArrayType:
    """A global array. A static size or stride is a language-level constant [ARR-3]; None is a run-time value."""

    dtype: DType
    ndim: int
    index_dtype: DType = int32
    static_shape: tuple[int | None, ...] = ()
    static_strides: tuple[int | None, ...] = ()

    def __post_init__(self):
        for name in ("static_shape", "static_strides"):
            if not getattr(self, name):
                object.__setattr__(self, name, (None,) * self.ndim)

    def __str__(self) -> str:
        dims = ",".join("?" if d is None else str(d) for d in self.static_shape)
        strides = ""
        if any(s is not None for s in self.static_strides):
            strides = ":" + ",".join("?" if s is None else str(s) for s in self.static_strides)
        index = "" if self.index_dtype is int32 else ";" + INFO[self.index_dtype].short
        return f"array<{INFO[self.dtype].short}[{dims}{strides}{index}]>"

    def describe(self) -> str:
        parts = [f"{self.dtype.name} array of rank {self.ndim}"]
        for what, dims in (("sizes", self.static_shape), ("strides", self.static_strides)):
            if any(n is not None for n in dims):
                parts.append(f"static {what} ({', '.join('?' if n is None else str(n) for n in dims)})")
        if self.index_dtype is not int32:
            parts.append(f"{self.index_dtype.name} indices")
        return ", ".join(parts)


@structure(frozen=True, slots=True)
class ListType:
    """A list of arrays, which only a kernel parameter can be [ARG-7]."""

    element: ArrayType

    def __str__(self) -> str:
        return f"list<{self.element}>"

    def describe(self) -> str:
        return f"list of {self.element.dtype.name} arrays of rank {self.element.ndim}"


@structure(frozen=True, slots=True)
class TokenType:
    """Orders memory accesses; made by a pass, ignored by the interpreter."""

    def __str__(self) -> str:
        return "token"

    def describe(self) -> str:
        return "token"


LeafType = TileType | ArrayType | ListType | TokenType


def is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0

"""The types of IR values, and the enumerations that users write.

Every run-time number in tile code has a `TileType`; a scalar is a tile of shape (). Arrays and lists of arrays come
from kernel parameters. All other things that a variable can hold are compile-time structures (ir/terms.py).
"""

from __future__ import annotations

import enum
import functools
from math import prod

from cutile._support.structs import structure
from cutile.dtypes import INFO, DType, int32


class RoundingMode(enum.Enum):
    """How the result of an op is rounded. Each op says which modes it accepts.

    Attributes
    ----------
    RN : RoundingMode
        To the nearest value; ties to the one whose last bit is 0. Ops round so unless they are told otherwise.
    RZ : RoundingMode
        Toward zero.
    RM : RoundingMode
        Down, toward negative infinity.
    RP : RoundingMode
        Up, toward positive infinity.
    RA : RoundingMode
        To the nearest value; ties away from zero.
    FULL : RoundingMode
        Near the exact value: docs/freedoms.md gives the largest error.
    APPROX : RoundingMode
        Near the exact value, with a larger error than `FULL`.
    RZI : RoundingMode
        No op accepts it.

    Notes
    -----
    [ENUM-1] RN, RZ, RM and RP are modes of IEEE 754. Where a parameter takes a mode, its name does too: "RZ".

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, out):
    ...     ct.store(out, 0, ct.add(ct.load(x, 0, 1), 1e-9, rounding_mode=ct.RoundingMode.RP))
    >>> x, out = np.float32([1]), np.zeros(1, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, out))
    >>> print(out)
    [1.0000001]
    """

    RN = "nearest_even"
    RZ = "zero"
    RM = "negative_inf"
    RP = "positive_inf"
    RA = "nearest_away"
    FULL = "full"
    APPROX = "approx"
    RZI = "nearest_int_to_zero"


class PaddingMode(enum.Enum):
    """What a load gives for elements outside the array.

    Attributes
    ----------
    UNDETERMINED : PaddingMode
        Any value: zero on the CPU, anything on a GPU. The sanitizer reports where such a value matters.
    ZERO : PaddingMode
        0.
    NEG_ZERO : PaddingMode
        -0.0, of floats only.
    NAN : PaddingMode
        NaN, of floats only.
    POS_INF : PaddingMode
        Positive infinity, of floats only.
    NEG_INF : PaddingMode
        Negative infinity, of floats only.

    Notes
    -----
    [PAD-1] Where a parameter takes a mode, its name does too: "ZERO".

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, out):
    ...     ct.store(out, 0, ct.load(x, 0, 4, padding_mode=ct.PaddingMode.NEG_INF))
    >>> x, out = np.float32([1, 2, 3]), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, out))
    >>> print(out)
    [  1.   2.   3. -inf]
    """

    UNDETERMINED = "undetermined"
    ZERO = "zero"
    NEG_ZERO = "neg_zero"
    NAN = "nan"
    POS_INF = "pos_inf"
    NEG_INF = "neg_inf"


class MemoryOrder(enum.Enum):
    """How a memory access is ordered with other accesses.

    Attributes
    ----------
    WEAK : MemoryOrder
        Not at all: no other block may access the element at the same time, unless both only read it.
    RELAXED : MemoryOrder
        The access itself is atomic. It orders no other access.
    ACQUIRE : MemoryOrder
        Later accesses of this block see what the block wrote that released the value which this access reads.
    RELEASE : MemoryOrder
        What this block wrote before is seen by a block that acquires the value which this access writes.
    ACQ_REL : MemoryOrder
        ACQUIRE and RELEASE.

    Notes
    -----
    [MEM-2] docs/language/memory.md explains the memory model.

    Examples
    --------
    >>> @ct.kernel
    ... def count(total):
    ...     ct.atomic_add(total, 0, 1, memory_order=ct.MemoryOrder.RELAXED)
    >>> total = np.zeros(1, np.int32)
    >>> ct.launch(None, (100,), count, (total,))
    >>> print(total)
    [100]
    """

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MemoryScope(enum.Enum):
    """Among whom a memory access is ordered.

    Attributes
    ----------
    NONE : MemoryScope
        Among no others: for weak accesses.
    BLOCK : MemoryScope
        Within the block.
    CLUSTER : MemoryScope
        No op accepts it.
    DEVICE : MemoryScope
        Among all blocks on the GPU.
    SYS : MemoryScope
        Among all processors that reach the memory, the CPU too.

    Notes
    -----
    [MEM-2] docs/language/memory.md explains the memory model.

    Examples
    --------
    >>> @ct.kernel
    ... def count(total):
    ...     ct.atomic_add(total, 0, 1, memory_scope=ct.MemoryScope.SYS)
    >>> total = np.zeros(1, np.int32)
    >>> ct.launch(None, (100,), count, (total,))
    >>> print(total)
    [100]
    """

    NONE = "none"
    BLOCK = "block"
    CLUSTER = "cluster"
    DEVICE = "device"
    SYS = "sys"


@structure(frozen=True, slots=True)
class TileType:
    """The type of a tile: its dtype, and its shape of powers of two, known at compile time [TILE-1]."""

    dtype: DType
    shape: tuple[int, ...] = ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def with_dtype(self, dtype: DType) -> TileType:
        return tile_type(dtype, self.shape)

    def __str__(self) -> str:
        return f"{INFO[self.dtype].short}[{','.join(map(str, self.shape))}]"

    def describe(self) -> str:
        """The type in the words of error messages."""
        return f"{self.dtype.name} tile of shape {self.shape}" if self.shape else f"{self.dtype.name} scalar"


@functools.lru_cache(maxsize=1 << 12)
def tile_type(dtype: DType, shape: tuple[int, ...] = ()) -> TileType:
    """A TileType, which values of equal types share: what is known of one is then known of all."""
    return TileType(dtype, shape)


@structure(frozen=True, slots=True)
class ArrayType:
    """The type of a global array. Sizes and strides, in elements, are constants [ARR-3] or None: known at run time."""

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
    """The type of a list of arrays, which only a kernel parameter can have [ARG-7]."""

    element: ArrayType

    def __str__(self) -> str:
        return f"list<{self.element}>"

    def describe(self) -> str:
        return f"list of {self.element.dtype.name} arrays of rank {self.element.ndim}"


@structure(frozen=True, slots=True)
class TokenType:
    """The type of a token, which orders memory accesses. The GPU back end makes tokens; the interpreter has none."""

    def __str__(self) -> str:
        return "token"

    def describe(self) -> str:
        return "token"


LeafType = TileType | ArrayType | ListType | TokenType


def is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0

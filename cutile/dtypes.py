"""Dtypes: the types of elements, how they are stored and carried, and how they promote.

A dtype is a singleton: equality is identity [DT-1]. All that the package knows about a dtype stands in its row of the
table INFO.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from cutile._support.structs import structure

__all__ = ["DType", "Info", "info", "promote", "PROMOTION_ORDER", "from_foreign"]


class DType:
    """The type of the elements of an array, tile or scalar.

    There is one object for each dtype: `ct.float32`, `ct.int8` and so on. In tile code a dtype can be called:
    `ct.int16(5)` is a constant of that dtype, and `ct.int16(x)` converts a scalar. Where a parameter takes a dtype,
    dtypes of NumPy, ml_dtypes, JAX and PyTorch will do too.

    Attributes
    ----------
    name : str
        As in `ct.<name>`.
    bitwidth : int
        How many bits of memory an element takes.

    Notes
    -----
    [DT-1, STRICT-1]

        bool_                                          True and False
        int8, int16, int32, int64                      signed integers
        uint8, uint16, uint32, uint64                  unsigned integers
        float16, bfloat16, float32, float64            floats with arithmetic
        tfloat32                                       float32 with 10 bits of fraction, for matrix products
        float8_e4m3fn, float8_e5m2, float4_e2m1fn      narrow floats, for matrix products and for storage
        float8_e8m0fnu, float8_e5m3fnu                 scales of matrix products

    Examples
    --------
    >>> isinstance(ct.float16, ct.DType), ct.float16.name, ct.float16.bitwidth
    (True, 'float16', 16)
    >>> @ct.kernel
    ... def kernel(x, out):
    ...     ct.store(out, 0, ct.load(x, 0, 2).astype(ct.float16) + ct.float16(0.5))
    >>> x, out = np.float32([1, 2]), np.zeros(2, np.float16)
    >>> ct.launch(None, (1,), kernel, (x, out))
    >>> print(out)
    [1.5 2.5]
    """

    __slots__ = ("name", "bitwidth")
    name: str
    bitwidth: int

    def __init__(self, *args, **kwargs):
        raise TypeError("DType objects cannot be created; use cutile.float32, cutile.int32, …")

    def __setattr__(self, name, value):
        raise AttributeError(f"dtypes are immutable: cannot set {name!r} of {self.name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self.name}(...) makes a typed constant or converts a scalar in tile code only; "
            f"it cannot be called on the host"
        )

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<DType {self.name!r}>"

    def __str__(self) -> str:
        return self.name

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return (_by_name, (self.name,))


def _new(name: str, bitwidth: int) -> DType:
    d = object.__new__(DType)
    object.__setattr__(d, "name", name)
    object.__setattr__(d, "bitwidth", bitwidth)
    return d


@structure(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format."""

    mantissa: int  # explicit fraction bits
    emin: int  # exponent of the smallest normal number
    max: float  # the largest finite value
    signed: bool = True
    has_inf: bool = True
    has_nan: bool = True
    has_zero: bool = True


@structure(frozen=True, slots=True)
class Info:
    """All that is known about a dtype."""

    short: str  # its name in printed IR: f32, i8, bf16, e4m3
    kind: str  # "b" boolean, "i" signed, "u" unsigned, "f" float, "p" foreign pointer
    carrier: np.dtype  # the NumPy dtype in which the interpreter computes
    storage: np.dtype  # the NumPy dtype of an array of such elements
    restricted: bool = False  # whether it is a float without arithmetic [DT-4]
    format: FloatFormat | None = None  # of a float
    pointee: DType | None = None  # of a foreign pointer

    @property
    def integral(self) -> bool:
        return self.kind in "iu"

    @property
    def floating(self) -> bool:
        return self.kind == "f"

    @property
    def arithmetic(self) -> bool:
        return self.kind != "p" and not self.restricted

    @property
    def carried_exactly(self) -> bool:
        """Whether the carrier holds exactly the values of this dtype, so that results of ops need no rounding."""
        return self.kind != "f" or self.carrier == self.storage


_f32, _f64 = np.dtype(np.float32), np.dtype(np.float64)

bool_ = _new("bool_", 8)
int8, int16, int32, int64 = (_new(f"int{w}", w) for w in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_new(f"uint{w}", w) for w in (8, 16, 32, 64))
float16, bfloat16 = _new("float16", 16), _new("bfloat16", 16)
float32, float64 = _new("float32", 32), _new("float64", 64)
tfloat32 = _new("tfloat32", 32)
float8_e4m3fn, float8_e5m2 = _new("float8_e4m3fn", 8), _new("float8_e5m2", 8)
float8_e8m0fnu, float8_e5m3fnu = _new("float8_e8m0fnu", 8), _new("float8_e5m3fnu", 8)
float4_e2m1fn = _new("float4_e2m1fn", 4)


def _int(short: str, kind: str, np_type) -> Info:
    return Info(short, kind, np.dtype(np_type), np.dtype(np_type))


INFO: dict[DType, Info] = {
    bool_: _int("b1", "b", np.bool_),
    int8: _int("i8", "i", np.int8),
    int16: _int("i16", "i", np.int16),
    int32: _int("i32", "i", np.int32),
    int64: _int("i64", "i", np.int64),
    uint8: _int("u8", "u", np.uint8),
    uint16: _int("u16", "u", np.uint16),
    uint32: _int("u32", "u", np.uint32),
    uint64: _int("u64", "u", np.uint64),
    float16: Info("f16", "f", _f32, np.dtype(np.float16), format=FloatFormat(10, -14, 65504.0)),
    bfloat16: Info("bf16", "f", _f32, np.dtype(ml_dtypes.bfloat16),
                   format=FloatFormat(7, -126, float.fromhex("0x1.fep127"))),
    float32: Info("f32", "f", _f32, _f32, format=FloatFormat(23, -126, float.fromhex("0x1.fffffep127"))),
    float64: Info("f64", "f", _f64, _f64, format=FloatFormat(52, -1022, float.fromhex("0x1.fffffffffffffp1023"))),
    tfloat32: Info("tf32", "f", _f32, _f32, True, FloatFormat(10, -126, float.fromhex("0x1.ffcp127"))),
    float8_e4m3fn: Info("e4m3", "f", _f32, np.dtype(ml_dtypes.float8_e4m3fn), True,
                        FloatFormat(3, -6, 448.0, has_inf=False)),
    float8_e5m2: Info("e5m2", "f", _f32, np.dtype(ml_dtypes.float8_e5m2), True, FloatFormat(2, -14, 57344.0)),
    float8_e8m0fnu: Info("e8m0", "f", _f32, np.dtype(ml_dtypes.float8_e8m0fnu), True,
                         FloatFormat(0, -127, 2.0**127, signed=False, has_inf=False, has_zero=False)),
    # No NumPy extension has e5m3fnu: arrays of it are bytes, which ops/_numeric.py encodes and decodes.
    float8_e5m3fnu: Info("e5m3", "f", _f32, np.dtype(np.uint8), True,
                         FloatFormat(3, -14, 114688.0, signed=False, has_inf=False)),
    float4_e2m1fn: Info("e2m1", "f", _f32, np.dtype(ml_dtypes.float4_e2m1fn), True,
                        FloatFormat(1, 0, 6.0, has_inf=False, has_nan=False)),
}

NUMERIC: tuple[DType, ...] = tuple(INFO)
ARITHMETIC: tuple[DType, ...] = tuple(d for d, i in INFO.items() if i.arithmetic)
_BY_NAME: dict[str, DType] = {d.name: d for d in INFO}
BY_SHORT: dict[str, DType] = {i.short: d for d, i in INFO.items()}


def info(dtype: DType) -> Info:
    """What is known about a dtype."""
    return INFO[dtype]


def _by_name(name: str) -> DType:
    if name.startswith("foreign_pointer["):
        return foreign_pointer_dtype(_BY_NAME[name[len("foreign_pointer["):-1]])
    return _BY_NAME[name]


@functools.cache
def _foreign_pointer(pointee: DType) -> DType:
    d = _new(f"foreign_pointer[{pointee.name}]", 64)
    u64 = np.dtype(np.uint64)
    INFO[d] = Info(f"ptr<{INFO[pointee].short}>", "p", u64, u64, pointee=pointee)
    return d


def foreign_pointer_dtype(pointee_dtype: DType) -> DType:
    """The dtype of pointers to elements of a dtype: 64 bits wide, and without arithmetic.

    Parameters
    ----------
    pointee_dtype : DType
        The dtype of the elements.

    Returns
    -------
    DType
        One object for each `pointee_dtype`.

    Raises
    ------
    TypeError
        `pointee_dtype` is not a dtype, or is itself the dtype of a pointer.

    Notes
    -----
    [FPTR-1]

    Examples
    --------
    >>> print(ct.foreign_pointer_dtype(ct.float32))
    foreign_pointer[float32]
    """
    if not isinstance(pointee_dtype, DType) or INFO[pointee_dtype].kind == "p":
        raise TypeError(f"foreign_pointer_dtype() takes an element dtype such as cutile.float32, not {pointee_dtype!r}")
    return _foreign_pointer(pointee_dtype)


# The promotion table [PROMO-5]. Within a row the later dtype wins; floats beat integers.
PROMOTION_ORDER: dict[str, tuple[DType, ...]] = {
    "i": (int8, int16, int32, int64),
    "u": (uint8, uint16, uint32, uint64),
    "f": (float16, bfloat16, float32, float64),
}


def promote(a: DType, b: DType) -> DType | None:
    """The common dtype of two dtypes [PROMO-5], or None if they have none."""
    if a is b:
        return a
    ia, ib = INFO[a], INFO[b]
    if not (ia.arithmetic and ib.arithmetic):
        return None
    if ia.kind == "b":
        return b
    if ib.kind == "b":
        return a
    if ia.floating != ib.floating:
        return a if ia.floating else b
    if ia.kind != ib.kind or {a, b} == {float16, bfloat16}:
        return None
    order = PROMOTION_ORDER[ia.kind]
    return order[max(order.index(a), order.index(b))]


def int_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer dtype."""
    w, signed = dtype.bitwidth, INFO[dtype].kind == "i"
    return (-(1 << (w - 1)), (1 << (w - 1)) - 1) if signed else (0, (1 << w) - 1)


def lowest(dtype: DType) -> Any:
    """What uninitialised elements in CPU memory are: NaN, or where a dtype has none the lowest value [JIT-7]."""
    known = INFO[dtype]
    if known.kind == "b":
        return True
    if not known.floating:
        return int_range(dtype)[0] or int_range(dtype)[1]
    return np.nan if np.isnan(np.asarray(np.nan, known.storage).astype(np.float64)) else -np.inf


_FOREIGN_NAMES = {
    "bool": bool_, "bool_": bool_, "half": float16, "float": float32, "double": float64, "short": int16, "int": int32,
    "long": int64,
    **{d.name: d for d in INFO if d not in (tfloat32, float8_e5m3fnu, float4_e2m1fn)},
}


def from_foreign(obj) -> DType | None:
    """The dtype for a dtype object of NumPy, ml_dtypes, JAX or PyTorch; None for any other object [DT-8].

    PyTorch is not imported: its dtypes are recognised by module and name.
    """
    if isinstance(obj, DType):
        return obj
    cls = type(obj)
    if cls.__module__ == "torch" and cls.__name__ == "dtype":
        return _FOREIGN_NAMES.get(str(obj).removeprefix("torch."))
    if isinstance(obj, type) and issubclass(obj, np.generic):
        return _BY_NUMPY.get(np.dtype(obj))
    if isinstance(obj, np.dtype):
        return _BY_NUMPY.get(obj)
    if not isinstance(obj, type) and cls.__module__.startswith("jax.") and isinstance(
            getattr(obj, "dtype", None), np.dtype):
        return _BY_NUMPY.get(obj.dtype)  # jnp.bfloat16 and the like are callables with a dtype
    return None


_BY_NUMPY: dict[np.dtype, DType] = {
    i.storage: d for d, i in INFO.items() if d not in (tfloat32, float8_e5m3fnu)
}


def of_storage(dt: np.dtype) -> DType | None:
    """The dtype for an array of the NumPy dtype `dt`; None if there is none (complex, strings, other byte order)."""
    return _BY_NUMPY.get(dt)

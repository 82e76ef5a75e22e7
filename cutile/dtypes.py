"""Element types: what they are, how they are stored and carried, and how they promote.

A dtype is a singleton; equality is identity [DT-1]. Everything the rest of the package wants to
know about one stands in its row of the table below, reached through `info(dtype)`.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from cutile._support.structs import structure

__all__ = ["DType", "Info", "info", "promote", "PROMOTION_ORDER", "from_foreign"]


class DType:
    """The type of an element of an array, tile or scalar.

    Attributes: `name` (str) and `bitwidth` (int, bits of one element in memory). In tile code a dtype can also be
    called: `ct.int16(5)` is a strictly typed constant [STRICT-1].
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
    """A binary floating-point format. `emax`/`emin` are exponents of the largest and smallest normal number."""

    mantissa: int  # explicit fraction bits
    emin: int
    max: float  # the largest finite value
    signed: bool = True
    has_inf: bool = True
    has_nan: bool = True
    has_zero: bool = True


@structure(frozen=True, slots=True)
class Info:
    """What is known about a dtype."""

    short: str  # in printed IR: f32, i8, bf16, e4m3
    kind: str  # "b" boolean, "i" signed, "u" unsigned, "f" float, "p" foreign pointer
    carrier: np.dtype  # the NumPy dtype in which the interpreter computes
    storage: np.dtype  # the NumPy dtype of an array of such elements
    restricted: bool = False  # a float without arithmetic [DT-4]
    format: FloatFormat | None = None
    pointee: DType | None = None

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
        """The carrier holds exactly the values of this dtype, so no rounding is needed after an op."""
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
    # No NumPy extension knows e5m3fnu: arrays of it are bytes, and _numeric encodes and decodes them.
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
    """The dtype of a pointer to elements of `pointee_dtype`, 64 bits wide. TypeError for anything else. [FPTR-1]"""
    if not isinstance(pointee_dtype, DType) or INFO[pointee_dtype].kind == "p":
        raise TypeError(f"foreign_pointer_dtype() takes an element dtype such as cutile.float32, not {pointee_dtype!r}")
    return _foreign_pointer(pointee_dtype)


# The promotion table [PROMO-5]. Within a category the order is by width; floats absorb integers of every width.
PROMOTION_ORDER: dict[str, tuple[DType, ...]] = {
    "i": (int8, int16, int32, int64),
    "u": (uint8, uint16, uint32, uint64),
    "f": (float16, bfloat16, float32, float64),
}


def promote(a: DType, b: DType) -> DType | None:
    """The common dtype of two concrete dtypes [PROMO-5], or None where the table has none."""
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
    """Smallest and largest value of an integer dtype."""
    w, signed = dtype.bitwidth, INFO[dtype].kind == "i"
    return (-(1 << (w - 1)), (1 << (w - 1)) - 1) if signed else (0, (1 << w) - 1)


_FOREIGN_NAMES = {
    "bool": bool_, "bool_": bool_, "half": float16, "float": float32, "double": float64, "short": int16, "int": int32,
    "long": int64,
    **{d.name: d for d in INFO if d not in (tfloat32, float8_e5m3fnu, float4_e2m1fn)},
}


def from_foreign(obj) -> DType | None:
    """The dtype that a NumPy, ml_dtypes, JAX or torch dtype object stands for, or None [DT-8].

    torch is never imported: its dtypes are recognised by module and name.
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
        return _BY_NUMPY.get(obj.dtype)  # jnp.bfloat16 and its kin are callables with a dtype
    return None


_BY_NUMPY: dict[np.dtype, DType] = {
    i.storage: d for d, i in INFO.items() if d not in (tfloat32, float8_e5m3fnu)
}


def of_storage(dt: np.dtype) -> DType | None:
    """The dtype of an array whose NumPy dtype is `dt`; None if there is none (complex, strings, other byte order)."""
    return _BY_NUMPY.get(dt)

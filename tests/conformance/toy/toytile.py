"""A toy implementation of a small part of the language: kernels run as plain Python functions, block by block.

It is wrong on purpose, in four ways:

- quotients of negative integers are rounded towards zero, not down
- maximum gives NaN where one operand is NaN, not the other operand
- elements beyond the edge of an array read as the last element, not as zero
- an integer and a float16 or bfloat16 meet in float32, not in the float's dtype

It lacks most of the API and does not pretend otherwise. The built-ins `min` and `max` cannot work here, because
Python compares whole tiles for them.
"""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass

import ml_dtypes
import numpy as np

__version__ = "0.0"


class TileError(Exception):
    pass


class TileTypeError(TileError):
    pass


class TileValueError(TileError):
    pass


# ------------------------------------------------------------------ dtypes


@dataclass(frozen=True)
class DType:
    name: str
    bitwidth: int
    numpy: type

    @property
    def kind(self) -> str:
        """b, i, u or f."""
        return "f" if "float" in self.name else self.name[0]

    def __call__(self, number: object) -> Tile:
        return full((), number, self)


int8, int16, int32, int64 = (DType(f"int{w}", w, getattr(np, f"int{w}")) for w in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (DType(f"uint{w}", w, getattr(np, f"uint{w}")) for w in (8, 16, 32, 64))
float16, float32, float64 = (DType(f"float{w}", w, getattr(np, f"float{w}")) for w in (16, 32, 64))
bool_, bfloat16 = DType("bool_", 1, np.bool_), DType("bfloat16", 16, ml_dtypes.bfloat16)
_DTYPES = {np.dtype(d.numpy): d for d in list(globals().values()) if isinstance(d, DType)}


def _common(a: DType, b: DType) -> DType:
    if a == b or b.kind == "b":
        return a
    if a.kind == "b" or a.kind != "f" and b.kind == "f":
        return _common(b, a)
    if a.kind == "f" and b.kind != "f":
        return a if a.bitwidth > 16 else float32  # wrong: the float's dtype is right
    if a.kind != b.kind or a.kind == "f" and a.bitwidth == b.bitwidth:
        raise TileTypeError(f"{a.name} and {b.name} have no common dtype")
    return max(a, b, key=lambda d: d.bitwidth)


def _dtype_of(number: object, other: DType | None) -> DType:
    """The dtype of a number combined with a tile of dtype `other`; None for other objects."""
    if not isinstance(number, bool | int | float):
        raise TileTypeError(f"{type(number).__name__} is no operand")
    order = "biuf"
    kind = "b" if isinstance(number, bool) else "i" if isinstance(number, int) else "f"
    if other is not None and order.index(kind) <= order.index(other.kind):
        if kind == "i" and other.kind != "f":
            limits = np.iinfo(other.numpy)
            if not limits.min <= number <= limits.max:
                raise TileValueError(f"{number} is out of the range of {other.name}")
        return other
    return {"b": bool_, "i": int32 if kind == "i" and abs(number) < 1 << 31 else int64, "f": float32}[kind]


# ------------------------------------------------------------------ tiles


class Tile:
    """A value in a kernel."""

    def __init__(self, data: np.ndarray):
        self.data = np.asarray(data)
        self.dtype, self.shape = _DTYPES[self.data.dtype], self.data.shape

    def astype(self, dtype: DType) -> Tile:
        return Tile(self.data.astype(dtype.numpy))

    def reshape(self, shape: tuple[int, ...]) -> Tile:
        return Tile(self.data.reshape(shape))

    def __bool__(self) -> bool:
        if self.data.size > 1:
            raise TileTypeError("a tile of several elements has no truth value")
        return bool(self.data)

    def __getitem__(self, index: object) -> Tile:
        return Tile(self.data[index])

    def __hash__(self) -> int:
        return id(self)


def _operands(*xs: object) -> list[np.ndarray]:
    """Tiles and numbers as arrays of their common dtype and shape."""
    known = None
    for x in xs:
        if isinstance(x, Tile):
            known = x.dtype if known is None else _common(known, x.dtype)
    for x in xs:
        if not isinstance(x, Tile):
            known = _dtype_of(x, known)
    try:
        shape = np.broadcast_shapes(*(x.shape if isinstance(x, Tile) else () for x in xs))
    except ValueError as e:
        raise TileTypeError(str(e)) from None
    data = [x.data if isinstance(x, Tile) else x for x in xs]
    return [np.broadcast_to(np.asarray(v).astype(known.numpy), shape) for v in data]


def _elementwise(f, *, bools: bool = False):
    def op(x, y, /, **options):
        a, b = _operands(x, y)
        if a.dtype == bool and not bools:
            raise TileTypeError("bool_ has no arithmetic")
        with np.errstate(all="ignore"):
            return Tile(f(a, b, **options))

    return op


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quotient of integers; wrong where it is negative and not exact."""
    q = a // b
    return np.where((q < 0) & (q * b != a), q + 1, q).astype(a.dtype) if a.dtype.kind in "iu" else np.floor(a / b)


def _remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind in "iu":
        return np.mod(a, b)
    r = np.fmod(a, b)  # NumPy's own mod gives -0.0 another sign
    return np.where((r != 0) & (np.signbit(r) != np.signbit(b)), r + b, r).astype(a.dtype)


add, sub, mul = _elementwise(np.add), _elementwise(np.subtract), _elementwise(np.multiply)
mod, floordiv = _elementwise(_remainder), _elementwise(_quotient)
less, equal = _elementwise(np.less, bools=True), _elementwise(np.equal, bools=True)


@_elementwise
def maximum(a: np.ndarray, b: np.ndarray, *, propagate_nan: bool = False) -> np.ndarray:
    """Wrong: NaN always wins."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


@_elementwise
def minimum(a: np.ndarray, b: np.ndarray, *, propagate_nan: bool = False) -> np.ndarray:
    return np.where(a == b, np.where(np.signbit(a), a, b), (np.minimum if propagate_nan else np.fmin)(a, b))


for _name, _op in {"add": add, "sub": sub, "mul": mul, "mod": mod, "floordiv": floordiv}.items():
    setattr(Tile, f"__{_name}__", _op)
    setattr(Tile, f"__r{_name}__", lambda x, y, op=_op: op(y, x))
Tile.__lt__, Tile.__eq__ = less, equal
Tile.__gt__ = lambda x, y: less(y, x)
Tile.__neg__ = lambda x: sub(0, x)


def where(cond, x, y, /) -> Tile:
    a, b = _operands(x, y)
    if not isinstance(cond, Tile | bool | int | float):
        raise TileTypeError(f"{type(cond).__name__} is no condition")
    c = cond.data if isinstance(cond, Tile) else np.asarray(cond)
    try:
        c, a, b = np.broadcast_arrays(c, a, b)
    except ValueError as e:
        raise TileTypeError(str(e)) from None
    return Tile(np.where(c != 0, a, b))


def arange(size: int, /, *, dtype: DType) -> Tile:
    return Tile(np.arange(size).astype(dtype.numpy))


def full(shape, value, dtype: DType) -> Tile:
    data = value.data if isinstance(value, Tile) else value
    return Tile(np.full(shape, data).astype(dtype.numpy))


def zeros(shape, dtype: DType) -> Tile:
    return full(shape, 0, dtype)


def ones(shape, dtype: DType) -> Tile:
    return full(shape, 1, dtype)


def bitcast(x: Tile, dtype: DType, /) -> Tile:
    return Tile(np.ascontiguousarray(x.data).view(dtype.numpy).reshape(x.shape))


def static_assert(condition: object, message: str = "") -> None:
    if not condition:
        raise TileError(f"static assertion failed {message}")


# ------------------------------------------------------------------ memory, blocks


PaddingMode = enum.Enum("PaddingMode", "UNDETERMINED ZERO NEG_ZERO NAN POS_INF NEG_INF")


_block = [0, 0, 0]


def bid(axis: int) -> Tile:
    return Tile(np.int32(_block[axis]))


def _tuple(x: object) -> tuple[int, ...]:
    items = x if isinstance(x, tuple) else (x,)
    return tuple(int(v.data.astype(np.int32)) if isinstance(v, Tile) else v for v in items)


def _places(array: np.ndarray, index: object, shape: tuple[int, ...]) -> list[np.ndarray]:
    return [i * n + np.arange(n) for i, n in zip(_tuple(index), shape, strict=True)]


def load(array: np.ndarray, index: object, shape: object, *, order: object = "C",
         padding_mode: PaddingMode = PaddingMode.ZERO) -> Tile:
    """Wrong beyond the edge, where the last element is repeated."""
    if order != "C" or padding_mode not in (PaddingMode.ZERO, PaddingMode.UNDETERMINED):
        raise NotImplementedError("other orders and paddings are not implemented")
    places = _places(array, index, _tuple(shape))
    return Tile(array[np.ix_(*(np.clip(p, 0, n - 1) for p, n in zip(places, array.shape)))])


def store(array: np.ndarray, index: object, tile: object) -> None:
    tile = tile if isinstance(tile, Tile) else full((1,) * array.ndim, tile, _DTYPES[array.dtype])
    places = _places(array, index, tile.shape or (1,) * array.ndim)
    inside = [p[(p >= 0) & (p < n)] for p, n in zip(places, array.shape)]
    array[np.ix_(*inside)] = tile.data[tuple(slice(len(p)) for p in inside) if tile.shape else ()]


class Constant:
    def __class_getitem__(cls, item: object) -> type:
        return cls


def kernel(function):
    return function


def launch(stream: object, grid: tuple[int, ...], function, args: tuple) -> None:
    for _block[:] in itertools.product(*map(range, (*grid, 1, 1)[:3])):
        function(*args)

"""`ct.Tile` and `ct.Array`: how run-time values look to Python code in a static construct [SEVAL-2, SEVAL-3].

Inside `ct.static_eval(...)` real Python runs. A constant is there as a Python value; a run-time tile or array is one
of these objects, whose operators build the expression that the kernel will compute.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from cutile.dtypes import DType
from cutile.ir.terms import Leaf
from cutile.ops import arithmetic


class Evaluator:
    """What the running static construct offers to proxies: see front.static."""

    def binary(self, symbol: str, x: Any, y: Any) -> Any:
        raise NotImplementedError

    def unary(self, symbol: str, x: Any) -> Any:
        raise NotImplementedError

    def array_dims(self, leaf: Leaf, strides: bool) -> tuple:
        raise NotImplementedError


EVALUATOR: ContextVar[Evaluator | None] = ContextVar("cutile_static_evaluator", default=None)


class _Proxy:
    __slots__ = ("_leaf",)

    def __init__(self, *args, **kwargs):
        raise TypeError(f"ct.{type(self).__name__} objects exist only in tile code and inside ct.static_eval(...)")

    @property
    def dtype(self) -> DType:
        """The element dtype."""
        return self._leaf.type.dtype

    @property
    def ndim(self) -> int:
        """The rank."""
        return self._leaf.type.ndim

    def __bool__(self):
        raise ValueError(f"{self!r} is known only at run time and has no truth value in a static construct; "
                         f"decide on it in tile code")

    __int__ = __index__ = __float__ = __bool__

    def __repr__(self) -> str:
        return f"<run-time {self._leaf.type.describe()}>"


def _binary(symbol: str, reflected: bool = False) -> Callable:
    def method(self, other):
        x, y = (other, self) if reflected else (self, other)
        return EVALUATOR.get().binary(symbol, x, y)
    return method


def _unary(symbol: str) -> Callable:
    def method(self):
        return EVALUATOR.get().unary(symbol, self)
    return method


class Tile(_Proxy):
    """A tile: an immutable multidimensional collection of elements, of power-of-two shape [TILE-1].

    Attributes: `dtype`, `shape` (tuple of ints), `ndim`. Methods in tile code: item, extract, insert, reshape, permute,
    transpose, astype; each can also be called as `ct.Tile.reshape(tile, shape)`.
    """

    __slots__ = ()
    __hash__ = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._leaf.type.shape


for _name, _symbol in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
                       "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}.items():
    setattr(Tile, f"__{_name}__", _binary(_symbol))
    setattr(Tile, f"__r{_name}__", _binary(_symbol, reflected=True))
for _name, _symbol in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Tile, f"__{_name}__", _binary(_symbol))
for _name, _symbol in {"neg": "-", "pos": "+", "invert": "~"}.items():
    setattr(Tile, f"__{_name}__", _unary(_symbol))


Tile.__divmod__ = lambda self, other: arithmetic.divmod(self, other)
Tile.__rdivmod__ = lambda self, other: arithmetic.divmod(other, self)


class Array(_Proxy):
    """A global array: memory of one dtype with sizes and strides, counted in elements [ARR-1].

    Attributes: `dtype`, `ndim`, `shape`, `strides`. Methods in tile code: slice, tiled_view, get_raw_memory;
    `ct.Array.from_foreign(pointer, shape, strides)` makes one from a foreign pointer.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple:
        """The sizes: ints where static, else run-time scalars."""
        return EVALUATOR.get().array_dims(self._leaf, strides=False)

    @property
    def strides(self) -> tuple:
        """The strides in elements: ints where static, else run-time scalars."""
        return EVALUATOR.get().array_dims(self._leaf, strides=True)


class TiledView:
    """The tiles of an array [TV-1]. Attributes: `dtype`, `tile_shape`, `traversal_steps`.

    Methods in tile code: load, store, num_tiles, atomic_store_add, atomic_store_max, atomic_store_min,
    atomic_store_and, atomic_store_or, atomic_store_xor. Made by `array.tiled_view(tile_shape)`.
    """

    __slots__ = ()

    def __init__(self, *args, **kwargs):
        raise TypeError("ct.TiledView objects exist only in tile code")


Scalar = Tile | int | float  # in annotations of helper functions

# Which methods an unbound access such as ct.Tile.reshape finds.
RECEIVERS: dict[type, str] = {Tile: "tile", Array: "array", TiledView: "view"}


def proxy(leaf: Leaf, cls: type[_Proxy]) -> _Proxy:
    p = object.__new__(cls)
    p._leaf = leaf
    return p

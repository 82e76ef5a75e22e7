"""The objects that a debugger shows as variables of a running kernel: tiles, scalars, and compile-time values.

The class of tiles has no `__init__` written in Python, so that a debugger's step goes straight to the meaning of an op.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from cutile.dtypes import DType, info
from cutile.interp import tile_text
from cutile.ops import _numeric
from cutile.types import TileType


class Tile(SimpleNamespace):
    """A tile as a local of a running kernel: immutable, with the element type and shape that it has in the language.

    `numpy()` is a read-only view of its elements (floats narrower than float32 appear as float32, which holds them
    exactly). Everything else that NumPy arrays have, such as `tile.sum()` or `tile[0, :4]`, works on that view. A
    scalar converts and compares like a Python number. Arithmetic gives a tile of the same dtype: after `acc = acc * 2`
    in a debugger, the kernel goes on with the new value.
    """

    carrier: np.ndarray
    type: TileType

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    def numpy(self) -> np.ndarray:
        view = self.carrier.view()
        view.flags.writeable = False
        return view

    def like(self, x: Any) -> Tile:
        """A tile of this dtype and shape with the elements of `x`, broadcast to the shape: `acc = acc.like(0)`."""
        return tile_like(self.type, np.broadcast_to(np.asarray(_plain(x)), self.shape))

    def __array__(self, dtype=None, copy=None):
        return np.array(self.carrier, dtype=dtype, copy=True) if copy else np.asarray(self.numpy(), dtype=dtype)

    def __getattr__(self, name: str):
        if name.startswith("__") or name in ("carrier", "type"):
            raise AttributeError(name)
        return getattr(self.numpy(), name)

    def __repr__(self) -> str:
        return tile_text.text(self.type, self.carrier)

    def _repr_html_(self) -> str:
        return tile_text.picture(self.type, self.carrier)

    def __format__(self, spec: str) -> str:
        return format(self.carrier.item(), spec) if spec and self.shape == () else format(repr(self), spec)

    def __len__(self) -> int:
        return len(self.carrier)

    def __iter__(self):
        return iter(self.numpy())

    def __getitem__(self, key):
        return self.numpy()[key]

    def __hash__(self):
        return hash(self.carrier.item()) if self.shape == () else id(self)

    def __int__(self) -> int:
        return int(self.carrier)

    def __index__(self) -> int:
        return self.carrier.__index__()

    def __float__(self) -> float:
        return float(self.carrier)

    def __bool__(self) -> bool:
        return bool(self.carrier)


def _plain(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tile) else x


def _comparison(name: str):
    def compare(self, other):
        result = getattr(self.numpy(), name)(_plain(other))
        return bool(result) if np.ndim(result) == 0 and result is not NotImplemented else result

    compare.__name__ = name
    return compare


def _arithmetic(name: str):
    def compute(self, other):
        with np.errstate(all="ignore"):
            result = getattr(self.numpy(), name)(_plain(other))
        return result if result is NotImplemented else tile_like(self.type, result)

    compute.__name__ = name
    return compute


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tile, f"__{_name}__", _comparison(f"__{_name}__"))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    for _prefix in ("", "r"):
        setattr(Tile, f"__{_prefix}{_name}__", _arithmetic(f"__{_prefix}{_name}__"))
Tile.__neg__ = lambda self: tile_like(self.type, -self.numpy())
Tile.__invert__ = lambda self: tile_like(self.type, ~self.numpy())


def tile_like(type: TileType, x: Any) -> Tile | np.ndarray:
    """`x` rounded to the dtype of `type`, as a tile. If `x` has another shape, it is returned unchanged, as a NumPy
    array.
    """
    x = np.asarray(x)
    if x.shape != type.shape:
        return x
    carrier = info(type.dtype).carrier
    with np.errstate(all="ignore"):
        x = x.astype(carrier)
        return Tile(carrier=np.asarray(_numeric.round_to(type.dtype, x)), type=type)


class Shown:
    """A compile-time value without a run-time form: a function, a module, a view."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


@functools.lru_cache(maxsize=256)
def record_class(name: str) -> type:
    """A class for values of the user's dataclass `name`: fields by keyword, repr as `Point(x=…, y=…)`."""
    return type(name, (SimpleNamespace,), {"__module__": __name__, "__doc__": f"A {name}, as the debugger shows it."})

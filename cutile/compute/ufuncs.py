"""Operators that are a single op of the language, on numbers: in host memory a ufunc of NumPy reduces or scans a large
tile by them in one call.

Any other operator takes a call for each step. A debugger is to see the operator run, so beside one none is a ufunc.
"""

import dataclasses

import cutile as ct
from cutile.compute.blocks import Combined
from cutile.compute.function_key import debugged
from cutile.compute.operators import Operator
from cutile.compute.results import result_of
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import info

_FUNCTIONS = {"add": ct.add, "mul": ct.mul, "minimum": ct.minimum, "maximum": ct.maximum,
              "bitwise_and": ct.bitwise_and, "bitwise_or": ct.bitwise_or, "bitwise_xor": ct.bitwise_xor}
_EXTREMES = ("minimum", "maximum")  # which need no rounding
_SINGLE = (ct.float32, ct.float64)  # floats that NumPy rounds as the language does


@dataclasses.dataclass(frozen=True)
class Ufunc:
    """Tile code of an operator. `op`: the name of the op that it is."""

    combine: Combined
    op: str
    floating: bool

    def folded(self, tile):
        """The combination of the items of a tile."""
        if not self.floating:
            return self.combine.reduced(tile)
        if self.op == "add":
            return ct.sum(tile)
        return ct.max(tile) if self.op == "maximum" else ct.min(tile)

    def scanned(self, tile):
        """Each item of a tile combined with those before it."""
        if not self.floating:
            return self.combine.scanned(tile)
        if self.op in _EXTREMES:
            return self.combine.scanned(tile)
        return ct.cumsum(tile) if self.op == "add" else ct.cumprod(tile)

    def only(self, there, tile, total):
        """A tile with what changes no combination with `total` in the place of items that are not there."""
        if self.op == "add" or self.op == "bitwise_xor":
            return ct.where(there, tile, ct.astype(-0.0 if self.floating else 0, tile.dtype))
        return ct.where(there, tile, ct.astype(1, tile.dtype) if self.op == "mul" else total)


def ufunc_to_reduce(op: Operator, t: ValueType) -> Ufunc | None:
    """The operator on items of a type, if one call folds a tile."""
    return _ufunc(op, t, ("add", "minimum", "maximum"))


def ufunc_to_scan(op: Operator, t: ValueType) -> Ufunc | None:
    """The operator on items of a type, if one call scans a tile."""
    return _ufunc(op, t, ("add", "mul", *_EXTREMES))


def ufunc_of_numpy(op: Operator, t: ValueType) -> Ufunc | None:
    """The operator on items of a type, if NumPy's ufunc gives what the op gives."""
    return _ufunc(op, t, ("add", "mul"))


def _ufunc(op: Operator, t: ValueType, of_floats: tuple[str, ...]) -> Ufunc | None:
    single = result_of(op, t, t).single
    if not single or not isinstance(t, Number) or debugged():
        return None
    integral = info(t.dtype).integral
    if not integral and (single not in of_floats or t.dtype not in _SINGLE and single not in _EXTREMES):
        return None
    return Ufunc(Combined(_FUNCTIONS[single], t, False), single, not integral)

"""What reductions and scans share: their arguments, one step of a sum or product, and the user's combine function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from cutile.compiled import form
from cutile.dtypes import DType, bool_, info, int32
from cutile.ir.build import Builder
from cutile.ir.nodes import Region, Value, Yield
from cutile.ir.terms import (
    Bound,
    Closure,
    Const,
    Leaf,
    Manager,
    Poison,
    Static,
    Term,
    Tuple,
    describe,
    is_poisoned,
    is_scalar,
)
from cutile.ir.walk import only_op
from cutile.ops import _numeric, arithmetic, bits
from cutile.ops._arguments import about_the_function, axis_arg, invalid, refuse, tile_arg
from cutile.ops._constants import encode
from cutile.ops._op import OpDef
from cutile.ops._promotion import broadcast, cast, common_shape, implicit_cast, value_of
from cutile.types import RoundingMode, TileType, tile_type

# ------------------------------------------------------------------ arguments


def numeric_arg(op: OpDef, t: Term) -> Const | Leaf:
    """The tile of a built-in reduction or scan [RED-1, SCAN-3]."""
    x = tile_arg(op, "x", t)
    if not info(x.type.dtype).arithmetic:
        invalid(op, "x", f"{x.type.dtype.name} has no arithmetic",
                help="convert the tile first, for example x.astype(ct.float32)")
    return x


def widen_bool(b: Builder, x: Const | Leaf) -> Const | Leaf:
    """x; booleans become int32 first [RED-4]."""
    return cast(b, x, int32) if x.type.dtype is bool_ else x


# ------------------------------------------------------------------ one step of a sum or product


def step(name: str, dtype: DType, mode: RoundingMode | None, flush: bool) -> Callable:
    """Returns f(a, b), which adds or multiplies carriers of `dtype` and rounds the result to it by `mode`.

    `name` is "add" or "mul". If `flush`, f flushes the result; the caller flushes the inputs.
    """
    if mode in (None, RoundingMode.RN):
        ufunc = {"add": np.add, "mul": np.multiply}[name]
        if info(dtype).carried_exactly:
            f = ufunc
        else:
            def f(a, b):
                return _numeric.round_to(dtype, ufunc(a, b))
    else:
        def f(a, b):
            return _numeric.directed(name, mode, dtype, a, b)
    if not flush:
        return f
    return lambda a, b: _numeric.flush(f(a, b))


SHORTEST, LONGEST = 8, 128  # elements of a row, for compiled forms: NumPy takes fewer just as fast, many faster


def compiled_along(name: str, x: np.ndarray, axis: int, *backwards: bool) -> np.ndarray | None:
    """What a compiled form makes of the rows along an axis; it has length 1 there, unless it is a scan. None if there
    is no such form, or not for rows of this length, as those of arrays in host memory may have, or if a sum or product
    is NaN: NumPy may choose another NaN.
    """
    n = x.shape[axis]
    run = form(name) if SHORTEST <= n <= LONGEST and n & (n - 1) == 0 else None
    return run(x, axis, *backwards) if run else None


@functools.cache
def of_carriers(kind: str, dtype: DType) -> str:
    """The name of the compiled form of a kind that is the same for all dtypes with one carrier."""
    return f"{kind} {info(dtype).carrier.name}"


def cut(x: np.ndarray, axis: int, start: int, stop: int) -> np.ndarray:
    """x[start:stop] along a negative axis."""
    return x[(..., slice(start, stop)) + (slice(None),) * (-axis - 1)]


# ------------------------------------------------------------------ the user's function: typing


def combine_args(b: Builder, op: OpDef, x: Term, axis: Term, func: Term, identity: Term):
    """The arguments of reduce and scan: operand values, tile types, negative axis, whether x is a tuple, identities."""
    xs, shape = _operands(op, x)
    k = axis_arg(op, "axis", axis, len(shape))
    if isinstance(func, Static) and not callable(func.obj) or not isinstance(func, Static | Closure | Bound | Manager):
        invalid(op, "func", f"expected a function, got {describe(func)}",
                help="pass a function of two elements, for example lambda a, b: a + b, or ct.maximum")
    identities = _identities(op, x, [t.type.dtype for t in xs], identity)
    values = tuple(value_of(b, broadcast(b, cast(b, t, t.type.dtype), shape)) for t in xs)
    return values, [v.type for v in values], k - len(shape), isinstance(x, Tuple), identities


def _operands(op: OpDef, x: Term) -> tuple[list[Const | Leaf], tuple[int, ...]]:
    items = x.items if isinstance(x, Tuple) else (x,)
    if not items:
        invalid(op, "x", "expected a tile or a tuple of tiles, got an empty tuple")
    xs = [tile_arg(op, "x", t) for t in items]
    return xs, common_shape(f"{op.name}()", *xs)


def _identities(op: OpDef, x: Term, dtypes: Sequence[DType], identity: Term) -> tuple:
    """Identities, converted to the dtypes of the operands [RED-12]."""
    if isinstance(x, Tuple) != isinstance(identity, Tuple) or (
            isinstance(x, Tuple) and len(x.items) != len(identity.items)):
        want = f"a tuple of {len(x.items)} constant scalars" if isinstance(x, Tuple) else "a constant scalar"
        invalid(op, "identity", f"expected {want}, as x is {describe(x)}, got {describe(identity)}")
    items = identity.items if isinstance(identity, Tuple) else (identity,)
    for t in items:
        if not isinstance(t, Const):
            invalid(op, "identity", f"expected a constant scalar, got {describe(t)}")
    return tuple(encode(t.value, d) for t, d in zip(items, dtypes, strict=True))


def combine_region(b: Builder, op: OpDef, func: Term, types: Sequence[TileType], many: bool) -> Region | Poison:
    """The user's function as a region: parameters a…, b…, ending in Yield of one scalar per operand [RED-10]."""
    scalars = [tile_type(t.dtype) for t in types]
    with b.combine_body(op, scalars * 2) as region:
        result = b.call(func, [Leaf(p) for p in region.params])
        if is_poisoned(result):
            return Poison()
        with about_the_function(region):
            b.append(Yield(_results(b, op, result, scalars, many), b.span))
    return region


def _results(b: Builder, op: OpDef, result: Term, scalars: Sequence[TileType], many: bool) -> tuple[Value, ...]:
    n = len(scalars)
    items = result.items if many and isinstance(result, Tuple) else (result,)
    if len(items) != n or not all(map(is_scalar, items)):
        want = f"a tuple of {n} scalars" if many else "one scalar"
        refuse(f"the function given to {op.name}() must return {want}, one for each tile that it combines, "
               f"but it returned {describe(result)}")
    where = f"to combine {', '.join(s.dtype.name for s in scalars)} elements in {op.name}()"
    return tuple(value_of(b, implicit_cast(b, t, s.dtype, where=where)) for t, s in zip(items, scalars, strict=True))


# ------------------------------------------------------------------ the user's function: running


def combined(combine: Callable, old: Sequence[np.ndarray], new: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """f(old…, new…) element by element: for the function, tiles are scalars, and all axes of the carriers are batch
    axes.

    Its result may depend on fewer axes than its arguments (a constant), or on more (a captured value that varies by
    block).
    """
    results = combine((*old, *new))
    return tuple([r if np.shape(r) == a.shape == b.shape else
                  np.broadcast_to(r, np.broadcast_shapes(np.shape(r), a.shape, b.shape))
                  for r, a, b in zip(results, old, new, strict=True)])


class InOneCall:
    """A combine function of numbers that is an op, with the ufunc that the op is on integers: whatever the order, the
    result is the same. Of floats only extremes are such, for which -0 < +0, and which pass over NaN.
    """

    __slots__ = ("_combine", "ufunc")

    def __init__(self, combine: Callable, ufunc: np.ufunc):
        self._combine, self.ufunc = combine, ufunc

    def __call__(self, args: tuple) -> tuple:
        return self._combine(args)


_UFUNCS = {arithmetic.add: np.add, arithmetic.mul: np.multiply, arithmetic.minimum: np.minimum,
           arithmetic.maximum: np.maximum, bits.bitwise_and: np.bitwise_and, bits.bitwise_or: np.bitwise_or,
           bits.bitwise_xor: np.bitwise_xor}
_EXTREMES = (arithmetic.minimum, arithmetic.maximum)


def ufunc_of(region: Region) -> np.ufunc | None:
    """The ufunc that a combine function is, for `InOneCall`; None if it is none."""
    n = only_op(region)
    if n is None or len(region.params) != 2:
        return None
    if not info(region.params[0].type.dtype).integral and (
            n.op not in _EXTREMES or n.attrs.get("propagate_nan") or n.attrs.get("flush_to_zero")):
        return None
    return _UFUNCS.get(n.op) if list(n.operands) in (list(region.params), list(region.params)[::-1]) else None

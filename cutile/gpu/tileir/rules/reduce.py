"""Lowering of reductions.

A region of Tile IR has two arguments for each operand: the new element and the accumulated value. On GPUs the
accumulated value is the FIRST of them (measured); the specification says the second.
"""

from __future__ import annotations

import math

from cutile.dtypes import DType, float4_e2m1fn, info, int_range
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.access import broadcast_to, reshaped
from cutile.gpu.tileir.builder import OpenRegion, Value
from cutile.gpu.tileir.module import Identity
from cutile.gpu.tileir.number_bits import bits_of
from cutile.gpu.tileir.rules._regular import compare, is_float, options, signedness
from cutile.gpu.tileir.rules._rule import rule
from cutile.gpu.tileir.rules.convert import replacement, retyped
from cutile.ops import reduce

# The integer and the float operation, by the `tileir` of an op.
STEPS = {"add": ("addi", "addf"), "mul": ("muli", "mulf"), "max": ("maxi", "maxf"), "min": ("mini", "minf")}


def identity(kind: str, dtype: DType) -> int | float:
    """The initial value of a built-in reduction or scan: one that changes no result [RED-6, D-14]."""
    if kind == "mul":
        return 1
    if kind == "add":
        return -0.0 if info(dtype).floating else 0
    if info(dtype).floating:
        return -math.inf if kind == "max" else math.inf
    return int_range(dtype)[kind == "min"]


def axis_of(n) -> int:
    """The axis, counted from the front."""
    return n.operands[0].type.ndim + n.attrs["axis"]


def fold(l, n, region: OpenRegion, kind: str) -> Value:
    """Fill the region of a built-in reduction or scan.

    With the arguments in this order the assembler recognises the reduction, and overlaps more of an attention loop with
    it (docs/hints.md).
    """
    name = STEPS[kind][is_float(n.operands[0])]
    with region:
        l.op("yield", [[l.op(name, region.arguments, **options(l, n, name))]])
    return region.results[0]


def combine(l, n, region: OpenRegion) -> tuple[Value, ...]:
    """Fill the region of a user's reduction or scan. Its function gets the accumulated value first [RED-10]."""
    own = [ty.of_dtype(v.type.dtype) for v in n.operands]
    with region:
        given = [region.arguments[k::2] for k in (0, 1)]
        combined = l.region(n.region, [retyped(l, x, t) for half in given for x, t in zip(half, own, strict=True)])
        l.op("yield", [[retyped(l, x, replacement(t)) for x, t in zip(combined, own, strict=True)]])
    return tuple(retyped(l, x, t) for x, t in zip(region.results, own, strict=True))


def combined_operands(l, n) -> tuple[list[Value], list[Identity]]:
    """The operands of a user's reduction or scan and their identities, in element types that Tile IR combines."""
    values, identities = [], []
    for v, start in zip(n.operands, n.attrs["identity"], strict=True):
        if v.type.dtype is float4_e2m1fn:
            l.unsupported(f"{n.op.name}() of float4_e2m1fn, of which Tile IR has no single elements",
                          help="convert first: x.astype(ct.float16)")
        x = l.get(v)
        to = replacement(x.type.element)
        values.append(retyped(l, x, to))
        bits = bits_of(x.type.element, start)
        identities.append(Identity(to, bits << 13 if to is ty.f32 is not x.type.element else bits))
    return values, identities


def behind_a_barrier(l, x: Value) -> Value:
    """The same elements, each reduced alone over a new axis of size 1, across which the assembler does not optimise."""
    own, shape = x.type.element, x.type.shape
    x = reshaped(l, retyped(l, x, replacement(own)), (*shape, 1))
    floating = x.type.element.kind == "f"
    region = l.b.reduce([x], len(shape), [-math.inf if floating else 0])
    with region:  # of one element nothing is combined
        step = l.op("maxf", region.arguments, propagate_nan=True) if floating else l.op("ori", region.arguments)
        l.op("yield", [[step]])
    return retyped(l, region.results[0], own)


def flushed(l, x: Value) -> Value:
    """Subnormal elements as zeros, the others as they are."""
    return l.op("mulf", [x, l.b.constant(x.type, 1)], flush_to_zero=True)


@rule(reduce.sum, reduce.prod, reduce.max, reduce.min)
def _folded(l, n):
    v, axis = n.operands[0], axis_of(n)
    x, kind = l.get(v), n.op.tileir
    if n.attrs.get("flush_to_zero") and x.type.shape[axis] == 1:  # no step would flush a single element
        x = flushed(l, x)
    return fold(l, n, l.b.reduce([x], axis, [identity(kind, v.type.dtype)]), kind)


@rule(reduce.reduce)
def _reduced(l, n):
    values, identities = combined_operands(l, n)
    return combine(l, n, l.b.reduce(values, axis_of(n), identities))


# ------------------------------------------------------------------ positions of the largest and smallest


@rule(reduce.argmax, reduce.argmin)
def _arg(l, n):
    """Reduce elements together with their positions; the identity loses against any element."""
    v, k = n.operands[0], axis_of(n)
    x, kind = l.get(v), n.op.tileir
    shape = x.type.shape
    line = l.op("iota", result=ty.tile(ty.i32, (shape[k],)))
    line = l.op("reshape", [line], result=ty.tile(ty.i32, (shape[k], *(1,) * (len(shape) - k - 1))))
    worst = math.nan if is_float(v) and not n.attrs["propagate_nan"] else identity(kind, v.type.dtype)
    region = l.b.reduce([x, broadcast_to(l, line, shape)], k, [worst, 2**31 - 1])
    with region:
        element, best, position, best_position = region.arguments
        better = _is_better(l, n, kind, (element, position), (best, best_position))
        l.op("yield", [[l.op("select", [better, element, best]), l.op("select", [better, position, best_position])]])
    return region.results[1]


def _is_better(l, n, kind: str, new: tuple[Value, Value], old: tuple[Value, Value]) -> Value:
    """Whether the new element comes before the accumulated one: by value, then by position. NaN comes first with
    propagate_nan, else last [RED-8].
    """
    (x, i), (y, j) = new, old
    v = n.operands[0]
    floating, sign = is_float(v), signedness(v)
    wins = compare(l, f"{'greater' if kind == 'max' else 'less'}_than", x, y, floating=floating, sign=sign)
    ties = compare(l, "equal", x, y, floating=floating)
    if floating:
        nan = {u: compare(l, "not_equal", u, u, floating=True) for u in (x, y)}
        number = {u: compare(l, "equal", u, u, floating=True) for u in (x, y)}
        first, second = (x, y) if n.attrs["propagate_nan"] else (y, x)
        wins = l.op("ori", [wins, l.op("andi", [nan[first], number[second]])])
        ties = l.op("ori", [ties, l.op("andi", [nan[x], nan[y]])])
    earlier = compare(l, "less_than", i, j, floating=False)
    return l.op("ori", [wins, l.op("andi", [ties, earlier])])

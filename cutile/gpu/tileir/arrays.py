"""Arrays and lists while a kernel is lowered: a pointer with sizes and strides, a table with a length.

Order of entry arguments [CC-*]: the IR parameters in order. An array of rank n is a pointer, n sizes
and n strides, all 2n of them whatever is known about them; a list is a pointer to its table and an int32 length, and
its table has 1 + 2n words of 64 bits for each array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cutile._support.structs import field, structure
from cutile.dtypes import info
from cutile.gpu.facts import ArrayFacts, nothing_known, power_of_two
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import Bounded, Builder, DivBy, Value
from cutile.ir import nodes
from cutile.ops import memory
from cutile.types import ArrayType, ListType, TileType

FAR = 1 << 31  # the assembler multiplies constant strides by tile sizes, and crashes if that overflows
Dim = int | Value  # a size or stride: known now, or a scalar of the array's index dtype


@structure(eq=False, slots=True)
class Array:
    """An array value. `wide`: strides may be negative, so that views of it compute with 64 bits.

    `divisor`: the address in bytes is a multiple of it; `stride_divisors`: the same of each stride. `view` is the
    tensor view if it is made already, `tiles` are the partition views already made.
    """

    type: ArrayType
    base: Value
    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    wide: bool
    divisor: int = 1
    stride_divisors: tuple[int, ...] = ()
    view: Value | None = None
    tiles: dict[ty.PartitionView, Value] = field(default_factory=dict)

    @property
    def index(self) -> ty.Tile:
        return index_type(self.type)


@structure(eq=False, slots=True)
class List:
    type: ListType
    table: Value
    length: Value
    facts: ArrayFacts


Lowered = Value | Array | List


def index_type(t: ArrayType) -> ty.Tile:
    return ty.tile(ty.of_dtype(t.index_dtype))


def pointer_type(t: ArrayType) -> ty.Tile:
    return ty.tile(ty.ptr(ty.in_memory(t.dtype)))


def argument_types(t: TileType | ArrayType | ListType) -> list[ty.Tile]:
    """The entry arguments that a parameter of this type takes."""
    if isinstance(t, ArrayType):
        return [pointer_type(t), *[index_type(t)] * (2 * t.ndim)]
    if isinstance(t, ListType):
        return [ty.tile(ty.ptr(ty.i64)), ty.tile(ty.i32)]
    return [ty.tile(ty.of_dtype(t.dtype), t.shape)]


def parameter(b: Builder, t: TileType | ArrayType | ListType, arguments: Iterator[Value], facts: Any) -> Lowered:
    """The value of a parameter, taking its entry arguments from the iterator."""
    if isinstance(t, ArrayType):
        words = [next(arguments) for _ in range(1 + 2 * t.ndim)]
        return assumed(b, t, words[0], words[1:1 + t.ndim], words[1 + t.ndim:], facts or nothing_known(t))
    if isinstance(t, ListType):
        table, length = next(arguments), b.assume(next(arguments), Bounded(0))
        return List(t, b.assume(table, DivBy(8)), length, facts.element if facts else nothing_known(t.element))
    return next(arguments)


def assumed(b: Builder, t: ArrayType, base: Value, sizes: Sequence[Value], strides: Sequence[Value],
            facts: ArrayFacts) -> Array:
    """An array with what is known of it: known sizes and strides become ints, other facts become `assume`."""
    if (d := power_of_two(facts.base_addr_divisible_by)) > 1:
        base = b.assume(base, DivBy(d))
    dims = zip(sizes, t.static_shape, facts.shape_constant, facts.shape_divisible_by, strict=True)
    signed = info(t.index_dtype).kind == "i"  # `Bounded` reads numbers as signed, so unsigned ones get none
    known_sizes = tuple(_dim(b, v, _first(s, c), d, 0 if signed else None) for v, s, c, d in dims)
    rows = zip(strides, t.static_strides, facts.stride_constant, facts.stride_divisible_by,
               facts.stride_lower_bound_incl, strict=True)
    known_strides = tuple(_dim(b, v, _first(s, c), d, low if signed else None) for v, s, c, d, low in rows)
    wide = any(k < 0 if isinstance(k, int) else low is None or low < 0
               for k, low in zip(known_strides, facts.stride_lower_bound_incl, strict=True))
    divisors = tuple(power_of_two(k if isinstance(k, int) else d)
                     for k, d in zip(known_strides, facts.stride_divisible_by, strict=True))
    return Array(t, base, known_sizes, known_strides, wide, power_of_two(facts.base_addr_divisible_by), divisors)


def divisors_of(arrays_known: Mapping[nodes.Value, Any]) -> Callable[[nodes.Op], int]:
    """A function from nodes to divisors: that of the size or stride that a node reads, 1 for any other node."""

    def known(n: nodes.Op) -> int:
        facts = arrays_known.get(n.operands[0]) if n.op is memory.array_dim else None
        if facts is None:
            return 1
        dims = facts.stride_divisible_by if n.attrs["stride"] else facts.shape_divisible_by
        return power_of_two(dims[n.attrs["dim"]])

    return known


def _first(*values: int | None) -> int | None:
    return next((v for v in values if v is not None), None)


def _dim(b: Builder, v: Value, constant: int | None, divisor: int, low: int | None) -> Dim:
    if constant is not None:
        return constant
    if low is not None:
        v = b.assume(v, Bounded(low))
    d = power_of_two(divisor)
    return b.assume(v, DivBy(d)) if d > 1 else v


# ------------------------------------------------------------------ values that control flow carries


def carried_types(t: TileType | ArrayType | ListType) -> list[ty.Tile]:
    """The Tile IR types that carry a value of this type through branches and loops."""
    if isinstance(t, ArrayType):
        return [pointer_type(t), *[index_type(t)] * (t.static_shape.count(None) + t.static_strides.count(None))]
    return argument_types(t)


def carried(b: Builder, x: Lowered, t: TileType | ArrayType | ListType) -> list[Value]:
    """A value as Tile IR values of `carried_types(t)`."""
    if isinstance(x, Array):
        dims = [d for static, given in ((t.static_shape, x.sizes), (t.static_strides, x.strides))
                for s, d in zip(static, given, strict=True) if s is None]
        return [x.base, *(dim_value(b, d, x.index) for d in dims)]
    if isinstance(x, List):
        return [x.table, x.length]
    return [x]


def uncarried(t: TileType | ArrayType | ListType, values: Iterator[Value], like: Lowered | None = None) -> Lowered:
    """The inverse of `carried`. Of an array, only what its type says is still known."""
    if isinstance(t, ArrayType):
        base = next(values)
        sizes = tuple(next(values) if s is None else s for s in t.static_shape)
        strides = tuple(next(values) if s is None else s for s in t.static_strides)
        return Array(t, base, sizes, strides, wide=any(s is None or s < 0 for s in t.static_strides))
    if isinstance(t, ListType):
        table, length = next(values), next(values)
        return List(t, table, length, like.facts if isinstance(like, List) else nothing_known(t.element))
    return next(values)


# ------------------------------------------------------------------ numbers of an array


def dim_value(b: Builder, d: Dim, t: ty.Tile) -> Value:
    return b.constant(t, d) if isinstance(d, int) else d


def wide_dim(b: Builder, a: Array, d: Dim) -> Value:
    """A size or stride as an i64."""
    t = ty.tile(ty.i64)
    if isinstance(d, int):
        return b.constant(t, d)
    if d.type == t:
        return d
    return b.op("exti", [d], result=t, signedness="signed" if info(a.type.index_dtype).kind == "i" else "unsigned")


def tensor_view(b: Builder, a: Array) -> Value:
    """The tensor view of an array. Tile IR reads sizes and strides as unsigned, hence `wide`.

    Sizes are passed as values, known ones too: where tiles divide a size that is a constant of the view's type, the
    assembler checks no bounds (docs/assembler-bugs.md, 13). The type has no strides below 1 either, so these are passed
    as values, negative ones modulo 2**64.
    """
    strides = tuple(d if isinstance(d, int) and 0 < d < FAR else None for d in a.strides)

    def value(d: Dim) -> Value:
        return wide_dim(b, a, d) if a.wide else dim_value(b, d, a.index)

    view = ty.TensorView(ty.in_memory(a.type.dtype), (None,) * len(a.sizes), strides)
    return b.tensor_view(a.base, view, [value(d) for d in a.sizes],
                         [value(d) for d, known in zip(a.strides, strides, strict=True) if known is None])

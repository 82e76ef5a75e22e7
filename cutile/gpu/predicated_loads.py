"""Load checked tiles so that their loads overlap.

    load(x, (i, j), (1, N), padding_mode=…)    →    gather(x, (i, j·N + arange(N)), padding_value=…)

The assembler puts a branch around each word of a checked tile, and inside it, with the load, what is computed from the
word first: no two loads of a thread are on their way at the same time. Gathered elements are loaded under predicates,
without a branch, so that all are. Which loads:

- Those with a padding mode: it says that tiles reach over the edge, as rows of 3072 elements in tiles of 4096 do, and
  no launch of these can do without the checks.
- Those of small tiles, of which a thread loads one word. For larger ones the assembler makes a loop over the words,
  which is shorter; where all tiles lie inside, launches soon leave out the checks (unchecked.py).

It takes no more loads only if a word of 16 bytes lies inside as a whole or not at all, so the size of the array along
the axis must be a multiple of what a word holds. Tiles that may arrive by TMA stay. CUTILE_HINTS=0 turns this off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cutile import settings
from cutile.dtypes import DType, bool_, info, int64
from cutile.gpu.facts import WORD, ArrayFacts, elements_of_a_word
from cutile.gpu.tileir import types as ty
from cutile.ir.build import Builder
from cutile.ir.nodes import Kernel, Node, Op, Value
from cutile.ir.walk import rewrite
from cutile.ops import arithmetic, convert, create, memory, shape
from cutile.ops._access import fill_of
from cutile.types import ArrayType, MemoryOrder, PaddingMode, TileType

SMALL = 4 * 32 * WORD  # bytes of a tile of which each thread of four warps loads a word
_PLAIN = {"rounding_mode": None, "flush_to_zero": False}


def predicated_loads(kernel: Kernel, facts: Sequence[Any]) -> Kernel:
    """The kernel with such loads as gathers. `facts`: what is known of each parameter, as `tileir.lower` takes it."""
    if not settings.get("HINTS"):
        return kernel
    known = {p: f for p, f in zip(kernel.params, facts, strict=True) if isinstance(p.type, ArrayType) and f is not None}
    return rewrite(kernel, lambda old, n: _gathered(n) if isinstance(n, Op) and _is_better_gathered(n, known) else None)


def _is_better_gathered(n: Op, known: Mapping[Value, ArrayFacts]) -> bool:
    if n.op is not memory.load or not n.attrs["check_bounds"] or n.attrs["allow_tma"] is not False:
        return False
    facts, t, dims = known.get(n.operands[0]), n.results[0].type, n.attrs["shape"]
    if facts is None or not dims or t.dtype is bool_ or not info(t.dtype).arithmetic \
            or n.attrs["memory_order"] is not MemoryOrder.WEAK:
        return False
    bits = ty.in_memory(t.dtype).bits
    if n.attrs["padding_mode"] is PaddingMode.UNDETERMINED and t.size * bits > SMALL * 8:
        return False
    count = elements_of_a_word(facts, bits)
    size = facts.shape_divisible_by[-1] if facts.shape_constant[-1] is None else facts.shape_constant[-1]
    return facts.stride_constant[-1] == 1 and n.attrs["order"] == tuple(range(len(dims))) \
        and count > 1 and size % count == 0 and dims[-1] % count == 0


def _gathered(n: Op) -> list[Node]:
    """A load as a gather of the same elements."""
    b, array, dims = Builder(n.span), n.operands[0], n.attrs["shape"]
    indices = [_narrowed(b, index, array.type.index_dtype) for index in n.operands[1:]]
    places = [_places(b, index, dims, k) for k, index in enumerate(indices)]
    padding = b.op1(create.constant, result=TileType(array.type.dtype), value=_number(n.attrs["padding_mode"], array))
    operands, layout = memory.gather.flatten((array, places, None, padding))
    attrs = {"check_bounds": True, "latency": n.attrs["latency"]}
    b.append(Op(memory.gather, operands, attrs, n.results, n.span, layout))
    return b.region.nodes


def _number(mode: PaddingMode, array: Value) -> int | float:
    """The number that a mode stands for."""
    number = fill_of(mode, array.type.dtype)
    return float(number) if info(array.type.dtype).floating else int(number)


def _narrowed(b: Builder, index: Value, dtype: DType) -> Value:
    """The index of a tile as its array takes it: a wider one wraps [IDX-2]."""
    if index.type.dtype.bitwidth <= dtype.bitwidth:
        return index
    return b.op1(convert.astype, index, result=TileType(dtype), rounding_mode=None)


def _places(b: Builder, index: Value, dims: Sequence[int], k: int) -> Value:
    """The places along one axis of a tile's elements, index·extent + 0, 1, …, as a tile of its shape."""
    scalar, row = TileType(int64), TileType(int64, (dims[k],))
    wide = b.op1(convert.astype, index, result=scalar, rounding_mode=None)
    extent = b.op1(create.constant, result=scalar, value=dims[k])
    first = b.op1(arithmetic.mul, wide, extent, result=scalar, **_PLAIN)
    spread = b.op1(shape.broadcast_to, first, result=row, shape=row.shape)
    along = b.op1(arithmetic.add, spread, b.op1(create.iota, result=row), result=row, **_PLAIN)
    axis = tuple(d if i == k else 1 for i, d in enumerate(dims))
    along = b.op1(shape.reshape, along, result=TileType(int64, axis), shape=axis)
    return b.op1(shape.broadcast_to, along, result=TileType(int64, tuple(dims)), shape=tuple(dims))

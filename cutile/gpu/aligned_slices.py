"""Load and store tiles of a slice in wide words where the slice happens to begin at a multiple of 16 bytes.

    x.slice(axis, start, stop)    →    if start is a multiple of what 16 bytes hold:
                                           the access, through a slice that begins at such a multiple
                                       else:
                                           the access as it was

Where `start` is a number of the launch, nothing is known of it, and the assembler moves elements one by one. The branch
costs a block next to nothing, and all blocks of a launch take the same. Kernels that multiply matrices stay as they
are: a branch would keep their loads from being pipelined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cutile import settings
from cutile._support.structs import replace
from cutile.analysis.divisibility import divisibility
from cutile.analysis.float_ranges import constant_of
from cutile.dtypes import bool_
from cutile.gpu.facts import ArrayFacts, elements_of_a_word
from cutile.gpu.hints import PRODUCTS
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.arrays import divisors_of
from cutile.ir.build import Builder
from cutile.ir.nodes import If, Kernel, Node, Op, Region, Value, Yield
from cutile.ir.walk import definitions, rewrite, walk
from cutile.ops import bits, compare, create, grid, memory, views
from cutile.types import ArrayType, TileType


def aligned_slices(kernel: Kernel, facts: Sequence[Any]) -> Kernel:
    """The kernel with such branches. `facts`: what is known of each parameter, as `tileir.lower` takes it."""
    ops = [n for n in walk(kernel.body) if isinstance(n, Op)]
    if not settings.get("HINTS") or all(n.op is not views.slice_ for n in ops) or any(n.op in PRODUCTS for n in ops):
        return kernel
    known = {p: f for p, f in zip(kernel.params, facts, strict=True) if isinstance(p.type, ArrayType) and f is not None}
    find = _Slices(kernel, known)
    return rewrite(kernel, lambda old, n: find.replacement(n) if isinstance(n, Op) else None)


class _Slices:
    """What is known of the slices of a kernel."""

    def __init__(self, kernel: Kernel, known: Mapping[Value, ArrayFacts]):
        self.known, self.source = known, definitions(kernel.body)
        self.divisors = divisibility(kernel, divisors_of(known))

    def replacement(self, n: Op) -> Sequence[Node] | None:
        """The nodes that replace an access; None if it stays."""
        if n.op not in (memory.load, memory.store):
            return None
        chain = self._slices_of(n.operands[0])
        facts = self.known.get(chain[0].operands[0]) if chain else None
        if facts is None:
            return None
        axes = [k for k, stride in enumerate(facts.stride_constant) if stride == 1]
        count = elements_of_a_word(facts, ty.in_memory(n.operands[0].type.dtype).bits)
        if len(axes) != 1 or count < 2 or _extent(n, axes[0]) % count:
            return None
        unknown = [s for s in chain if s.attrs["axis"] == axes[0] and self.divisors.get(s.operands[1], 1) % count]
        if len(unknown) != 1 or constant_of(self.source, unknown[0].operands[1]) is not None:
            return None
        return _branch(n, chain, unknown[0], count)

    def _slices_of(self, v: Value) -> list[Op]:
        """The slices of which an array is the last result, the first of them in front."""
        found: list[Op] = []
        while isinstance(n := self.source.get(v), Op) and n.op is views.slice_:
            found.append(n)
            v = n.operands[0]
        return found[::-1]


def _extent(n: Op, axis: int) -> int:
    """The size of the tiles of an access along an axis of the array."""
    tile = n.results[0] if n.results else n.operands[-1]
    order = n.attrs["order"]
    return tile.type.shape[axis if order is None else order.index(axis)] if tile.type.shape else 1


def _branch(n: Op, chain: Sequence[Op], unknown: Op, count: int) -> list[Node]:
    """The access in two forms. In the first, `unknown` begins at a multiple of `count`, and so do slices of it."""
    b, start, truth = Builder(n.span), unknown.operands[1], TileType(bool_)
    low, zero = (b.op1(create.constant, result=start.type, value=v) for v in (count - 1, 0))
    rest = b.op1(bits.bitwise_and, start, low, result=start.type)
    aligned = b.op1(compare.equal, rest, zero, result=truth)
    wide, narrow = Region(), Region()
    with b.into(wide):
        at = b.op1(grid.assume_divisible_by, start, result=start.type, divisor=count)
        array = unknown.operands[0]
        for s in chain[chain.index(unknown):]:
            array = b.op1(views.slice_, array, at if s is unknown else s.operands[1], s.operands[2],
                          result=s.results[0].type, axis=s.attrs["axis"])
        _append(b, n, array)
    with b.into(narrow):
        _append(b, n, n.operands[0])
    b.append(If(aligned, wide, narrow, n.results, n.span))
    return b.region.nodes


def _append(b: Builder, n: Op, array: Value) -> None:
    """The access to an array, and the end of its branch."""
    results = tuple(Value(v.type, v.name) for v in n.results)
    b.append(replace(n, operands=(array, *n.operands[1:]), results=results))
    b.append(Yield(results, n.span))

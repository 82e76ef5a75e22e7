"""What ops cost: the arithmetic of one run of an op in one block, by what does it and in which dtype.

An elementwise op is one operation for each element, a fused multiply-add two. An m×k by k×n product is 2·m·n·k. A
reduction of n elements to one is n-1, a scan of n elements too; with a function of the user's, that many times what the
function does. An atomic is one for each element. Ops that move, convert, choose or create data are no arithmetic, and
neither are comparisons, logic on bools, and scalars of integers, which are mostly indices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from cutile.dtypes import DType, bool_, info
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.ops import arithmetic, math
from cutile.ops._op import ATOMIC, PRODUCT, REDUCTION, SCAN
from cutile.types import TileType

MATRIX, OTHER = "matrix", "other"  # which units of a GPU do it: those for products of matrices, or all others

ARITHMETIC = ("arithmetic", "math", "bits")  # the families of elementwise ops that are arithmetic
FREE = (arithmetic.positive, math.isnan)  # ops of these families that are not
TWICE = (arithmetic.fma,)


class Work(NamedTuple):
    """A kind of arithmetic: MATRIX or OTHER, and the dtype of its operands."""

    unit: str
    dtype: DType


def operations(n: Op, in_combine: bool = False) -> Mapping[Work, int]:
    """How many operations one run of an op is in one block. `in_combine`: in the user's function of a reduction or
    scan, where scalars are elements.
    """
    if n.op.accumulates == PRODUCT:
        x, y = n.operands[0].type, n.results[0].type
        return {Work(MATRIX, x.dtype): 2 * y.size * x.shape[-1]}
    if n.op.accumulates in (REDUCTION, SCAN):
        return _accumulation(n)
    if n.op.effect == ATOMIC:
        return {Work(OTHER, n.operands[0].type.dtype): prod(_elements(n))}
    if n.op.elementwise and n.op.family in ARITHMETIC and n.op not in FREE:
        t = n.results[0].type
        if t.dtype is not bool_ and (t.shape or in_combine or info(t.dtype).floating):
            return {Work(OTHER, t.dtype): t.size * (2 if n.op in TWICE else 1)}
    return {}


def _accumulation(n: Op) -> Mapping[Work, int]:
    x, y = n.operands[0].type, n.results[0].type
    lines = y.size if n.op.accumulates == REDUCTION else x.size // x.shape[n.attrs["axis"]]
    steps = x.size - lines
    if n.region is None:
        return {Work(OTHER, x.dtype): steps}
    total: Counter[Work] = Counter()
    for inner in walk(n.region):
        if isinstance(inner, Op):
            for work, count in operations(inner, True).items():
                total[work] += count * steps
    return total


def _elements(n: Op) -> tuple[int, ...]:
    """The shape of what an atomic updates."""
    how, named = n.op.accesses, n.op.named(n.operands, n.layout)
    t = named[how.values[-1]].type
    assert isinstance(t, TileType)
    return t.shape

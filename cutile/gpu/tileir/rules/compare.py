"""Lowering of comparisons: the `tileir` of an op is the name of its predicate."""

from __future__ import annotations

from cutile.gpu.tileir.rules import _regular
from cutile.gpu.tileir.rules._regular import is_float, signedness
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import compare


@rule(compare.equal, compare.not_equal, compare.less, compare.less_equal, compare.greater, compare.greater_equal)
def _compared(l, n):
    x, y = n.operands
    return _regular.compare(l, n.op.tileir, l.get(x), l.get(y), floating=is_float(x), sign=signedness(x))


@rule(compare.logical_not)
def _not(l, n):
    return _regular.negated(l, l.get(n.operands[0]))

"""Lowering of matrix products.

Tile IR does not broadcast batches, so operands are first repeated to the accumulator's batch.
"""

from __future__ import annotations

from cutile.gpu.tileir.access import broadcast_to
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.rules._regular import is_float, signedness
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import mma


def _batched(l, v, acc: Value) -> Value:
    """An operand, repeated to the batch of the accumulator."""
    x = l.get(v)
    return broadcast_to(l, x, acc.type.shape[:-2] + x.type.shape[-2:])


@rule(mma.mma)
def _mma(l, n):
    x, y, acc = n.operands
    operands = [_batched(l, x, l.get(acc)), _batched(l, y, l.get(acc)), l.get(acc)]
    if not is_float(x):
        return l.op("mmai", operands, signedness_lhs=signedness(x), signedness_rhs=signedness(y))
    if n.attrs["use_fast_acc"]:
        l.needs("use_fast_acc", "mmaf", "fast_acc")
    return l.op("mmaf", operands, fast_acc=n.attrs["use_fast_acc"])


@rule(mma.mma_scaled)
def _mma_scaled(l, n):
    l.needs("mma_scaled", "mmaf_scaled")
    x, x_scale, y, y_scale, acc = n.operands
    total = l.get(acc)
    x, y, x_scale, y_scale = (_batched(l, v, total) for v in (x, y, x_scale, y_scale))
    return l.op("mmaf_scaled", [x, y, total, x_scale, y_scale])

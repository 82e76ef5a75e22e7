"""Lowering of prefixes along an axis."""

from __future__ import annotations

from math import prod

from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.rules._rule import rule
from cutile.gpu.tileir.rules.reduce import (
    axis_of,
    behind_a_barrier,
    combine,
    combined_operands,
    flushed,
    fold,
    identity,
)
from cutile.ops import scan


@rule(scan.cumsum, scan.cumprod)
def _folded(l, n):
    v, kind = n.operands[0], n.op.tileir
    x = l.get(v)
    if n.attrs["flush_to_zero"]:  # no step touches the first element, so flush it here
        x = flushed(l, x)
    region = l.b.scan([x], axis_of(n), [identity(kind, v.type.dtype)], reverse=n.attrs["reverse"])
    return _protected(l, fold(l, n, region, kind))


@rule(scan.scan)
def _scanned(l, n):
    values, identities = combined_operands(l, n)
    results = combine(l, n, l.b.scan(values, axis_of(n), identities, reverse=n.attrs["reverse"]))
    return tuple(_protected(l, x) for x in results)


# The assembler of release 13.5 fails on reshapes of the result of a scan, also later in the kernel, if the tile has
# fewer elements than the block has threads, usually 128 or 256 (docs/assembler-bugs.md, 5).
FEW = 256


def _protected(l, x: Value) -> Value:
    """The result of a scan, behind a barrier if reshapes of it could fail."""
    return x if prod(x.type.shape) >= FEW else behind_a_barrier(l, x)

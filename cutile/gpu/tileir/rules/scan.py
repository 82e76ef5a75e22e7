"""Lowering of prefixes along an axis."""

from __future__ import annotations

from cutile.gpu.tileir.rules._rule import rule
from cutile.gpu.tileir.rules.reduce import axis_of, combine, combined_operands, flushed, fold, identity
from cutile.ops import scan


@rule(scan.cumsum, scan.cumprod)
def _folded(l, n):
    v, kind = n.operands[0], n.op.tileir.removeprefix("scan.")
    x = l.get(v)
    if n.attrs["flush_to_zero"]:  # no step need flush the first element
        x = flushed(l, x)
    region = l.b.scan([x], axis_of(n), [identity(kind, v.type.dtype)], reverse=n.attrs["reverse"])
    return fold(l, n, region, kind)


@rule(scan.scan)
def _scanned(l, n):
    values, identities = combined_operands(l, n)
    return combine(l, n, l.b.scan(values, axis_of(n), identities, reverse=n.attrs["reverse"]))

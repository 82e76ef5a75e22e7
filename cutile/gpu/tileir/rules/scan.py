"""Lowering of prefixes along an axis."""

from __future__ import annotations

from math import inf, prod

from cutile.gpu.tileir.access import reshaped
from cutile.gpu.tileir.builder import Value
from cutile.gpu.tileir.rules._rule import rule
from cutile.gpu.tileir.rules.convert import carried, carrier
from cutile.gpu.tileir.rules.reduce import axis_of, combine, combined_operands, flushed, fold, identity
from cutile.ops import scan


@rule(scan.cumsum, scan.cumprod)
def _folded(l, n):
    v, kind = n.operands[0], n.op.tileir.removeprefix("scan.")
    x = l.get(v)
    if n.attrs["flush_to_zero"]:  # no step need flush the first element
        x = flushed(l, x)
    region = l.b.scan([x], axis_of(n), [identity(kind, v.type.dtype)], reverse=n.attrs["reverse"])
    return _settled(l, fold(l, n, region, kind))


@rule(scan.scan)
def _scanned(l, n):
    values, identities = combined_operands(l, n)
    results = combine(l, n, l.b.scan(values, axis_of(n), identities, reverse=n.attrs["reverse"]))
    return tuple(_settled(l, x) for x in results)


# The assembler of release 13.5 fails on reshapes of what a scan made, at any distance, where the tile has fewer
# elements than the block has threads, usually 128 or 256 (docs/assembler-bugs.md).
FEW = 256


def _settled(l, x: Value) -> Value:
    """A few elements as they are, through a reduction of each alone, whose result the assembler can reshape."""
    shape, own = x.type.shape, x.type.element
    if prod(shape) >= FEW:
        return x
    x = carried(l, x, carrier(own))
    x, floating = reshaped(l, x, (*shape, 1)), x.type.element.kind == "f"
    region = l.b.reduce([x], len(shape), [-inf if floating else 0])
    with region:  # never run; it would change nothing
        step = l.op("maxf", region.arguments, propagate_nan=True) if floating else l.op("ori", region.arguments)
        l.op("yield", [[step]])
    return carried(l, region.results[0], own)

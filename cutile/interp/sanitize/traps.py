"""The traps, which run on request: elements at which a result goes wrong, each at the statement that makes it.

`nan`: NaN or infinity made of finite operands. `overflow`: integers that wrap around. `cast`: floats that do not fit
the integer dtype that they are converted to. `division`: division by zero. The language defines what most of these
give, so none is an error by itself.

Elements that come from beyond an array's end, or that a mask leaves out, are passed over: a kernel divides by padding
and drops the quotient. Shadows say which elements those are. Here an element has one if an operand's element at its
position does; a sum, a maximum or a product has one only if nothing else went into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cutile.dtypes import info
from cutile.interp.sanitize import trap_ops
from cutile.interp.sanitize.shadowing import Shadowing
from cutile.interp.sanitize.shadows import JOINED, PADDING, passed
from cutile.interp.sanitize.sites import Site, sites
from cutile.interp.sanitize.taint import Tainted, tainted
from cutile.ir.nodes import Kernel, Node, Op, Value
from cutile.ir.walk import rewrite, walk
from cutile.ops import convert
from cutile.ops._op import PRODUCT, PURE, READ, SCAN, registry
from cutile.types import TileType

WRAPPING = ("addi", "subi", "muli", "negi", "absi")  # operations of Tile IR whose integer results may not fit
SUMS = ("add", "mul")  # kinds of reductions and scans


def instrument(kernel: Kernel, wanted: Sequence[str]) -> Kernel:
    """The program with a check behind each op at which one of the wanted traps may go off."""
    known = registry()
    inside = frozenset(m for n in walk(kernel.body) if isinstance(n, Op) and n.region for m in walk(n.region))
    found: dict[Op, list[str]] = {}
    for n in walk(kernel.body):
        if isinstance(n, Op) and n not in inside and known.get(n.op.name) is n.op and n.op.effect == PURE:
            kinds = [k for k, may in MAY.items() if k in wanted and may(n)]
            if kinds:
                found[n] = kinds
    if not found:
        return kernel
    site = sites(kernel)
    sources = [n for n in walk(kernel.body) if isinstance(n, Op) and n.op.effect == READ and site(n).access is not None]

    def passes_on(n: Op) -> bool:
        return known.get(n.op.name) is n.op and n.op.effect in (PURE, READ)

    shadowed = tainted(kernel, [n.results[0] for n in sources], passes_on)
    return rewrite(kernel, _Traps(shadowed, found, frozenset(sources), inside, passes_on, site).change)


def _makes_nan(n: Op) -> bool:
    computes = n.op.elementwise and not n.op.selects or n.op.accumulates is not None
    return computes and n.op is not convert.bitcast and _dtype_is(n.results[0], "f") and bool(n.operands)


def _overflows(n: Op) -> bool:
    o = n.op
    of = o.tileir[0] if isinstance(o.tileir, tuple) else None
    wraps = of in WRAPPING or o.accumulates is not None and n.region is None and o.tileir in SUMS \
        or o.accumulates == PRODUCT or o.divides
    return wraps and all(_dtype_is(v, "iu") for v in (*n.operands, n.results[0]))


def _casts(n: Op) -> bool:
    return n.op is convert.astype and _dtype_is(n.operands[0], "f") and _dtype_is(n.results[0], "iu")


# For each trap whether it may go off at an op.
MAY: dict[str, Callable[[Op], bool]] = {
    "nan": _makes_nan, "overflow": _overflows, "cast": _casts, "division": lambda n: n.op.divides}


def _dtype_is(v: Value, kinds: str) -> bool:
    if not isinstance(v.type, TileType):
        return False
    i = info(v.type.dtype)
    return i.floating if kinds == "f" else i.kind in kinds


class _Traps(Shadowing):
    """Puts shadows and checks into a program, but not into functions that ops combine elements with."""

    def __init__(self, found: Tainted, traps: dict[Op, list[str]], sources: frozenset[Op], inside: frozenset[Node],
                 passes_on: Callable[[Op], bool], site: Callable[[Op], Site]):
        super().__init__(found)
        self.traps, self.sources, self.inside, self.passes_on, self.site = traps, sources, inside, passes_on, site

    def change(self, old: Node, n: Node) -> list[Node] | None:
        return None if old in self.inside else super().change(old, n)

    def op(self, old: Op, n: Op) -> None:
        self.nodes.append(n)
        if old in self.sources:
            self.source(old, n)
        elif self.passes_on(n) and not self.shadows.keys().isdisjoint(n.results):
            self.nodes += self.of_results(n)
        for kind in self.traps.get(old, ()):
            shadow = [self.shadows[n.results[0]]] if n.results[0] in self.shadows else []
            attrs = {"site": self.site(old), "kind": kind, "of": n}
            layout = (len(n.operands), len(n.results), 1 if shadow else None)
            self.nodes.append(Op(trap_ops.TRAP, (*n.operands, *n.results, *shadow), attrs, (), n.span, layout))

    def source(self, old: Op, n: Op) -> None:
        """The shadow of what is read: elements that are not in the array or masked, and those at positions that have a
        shadow.
        """
        result = n.results[0]
        at = [self.shadows[v] for v in n.operands
              if v in self.shadows and v.type.shape == result.type.shape and v.type.shape]
        found = Value(self.shadows[result].type) if at else self.shadows[result]
        attrs = {"access": self.site(old).access, "number": 1, "partly": False}
        self.nodes.append(Op(PADDING, n.operands, attrs, (found,), n.span, (len(n.operands),)))
        if at:
            self.nodes.append(Op(JOINED, (found, *at), {}, (self.shadows[result],), n.span, (1 + len(at),)))

    def of_results(self, n: Op) -> list[Op]:
        results = [self.shadows[r] for r in n.results if r in self.shadows]
        if n.op.accumulates == PRODUCT:
            named = n.op.named(n.operands, n.layout)
            operands = tuple(self.of(named[k], n) for k in ("x", "y", "acc"))
            return [Op(trap_ops.PRODUCT_SHADOW, operands, {}, tuple(results), n.span)]
        if n.op.accumulates is not None:
            o = trap_ops.SCAN_SHADOW if n.op.accumulates == SCAN else trap_ops.REDUCTION_SHADOW
            attrs = {"axis": n.attrs["axis"], "reverse": n.attrs.get("reverse", False)}
            return [Op(o, (self.of(n.operands[0], n),), attrs, (r,), n.span) for r in results]
        if n.op.elementwise and not n.op.selects:
            joined = tuple(self.shadows[v] for v in n.operands if v in self.shadows)
            return [Op(JOINED, joined, {}, (r,), n.span, (len(joined),)) for r in results]
        return passed(n, lambda v: self.of(v, n), lambda v: v not in self.shadows)

"""The traps, which run on request: elements at which a result goes wrong, each at the statement that makes it.

`nan`: NaN or infinity made of finite operands. `overflow`: integers that wrap around. `cast`: floats that do not fit
the integer dtype that they are converted to. `division`: division by zero. The language defines what most of these
give, so none is an error by itself.

Elements that come from beyond an array's end, or that a mask leaves out, are passed over: a kernel divides by padding
and drops the quotient. Shadows say which elements those are. Here an element has one if an operand's element at its
position does; a sum, a maximum or a product has one only if nothing else went into it.

Ops in the function of a reduce or scan are checked too. There a value has a shadow only if all elements along the axis
have one, since each goes into those that are not dropped. Of an element function, elements that do not run an op are
passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cutile._support.structs import replace
from cutile.dtypes import info
from cutile.interp.sanitize import trap_ops
from cutile.interp.sanitize.shadowing import Shadowing
from cutile.interp.sanitize.shadows import JOINED, PADDING, passed, shadow_type
from cutile.interp.sanitize.sites import Site, sites
from cutile.interp.sanitize.taint import Tainted, tainted
from cutile.ir.nodes import Kernel, Node, Op, Value, Yield
from cutile.ir.walk import rewrite, walk
from cutile.ops import convert
from cutile.ops._op import PRODUCT, PURE, READ, SCAN, registry
from cutile.passes.lift import Masks
from cutile.types import TileType

WRAPPING = ("addi", "subi", "muli", "negi", "absi")  # operations of Tile IR whose integer results may not fit
SUMS = ("add", "mul")  # kinds of reductions and scans


def instrument(kernel: Kernel, wanted: Sequence[str], masks: Masks) -> Kernel:
    """The program with a check behind each op at which one of the wanted traps may go off."""
    known = registry()
    inside = {m: n for n in walk(kernel.body) if isinstance(n, Op) and n.region for m in walk(n.region)}
    found: dict[Op, list[str]] = {}
    for n in walk(kernel.body):
        if isinstance(n, Op) and known.get(n.op.name) is n.op and n.op.effect == PURE:
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
    return rewrite(kernel, _Traps(shadowed, found, frozenset(sources), inside, masks.live, passes_on, site).change)


def _makes_nan(n: Op) -> bool:
    computes = n.op.elementwise and not n.op.selects or n.op.accumulates is not None and n.region is None
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
    """Puts shadows and checks into a program.

    inside  the nodes in a function of a reduce or scan, each with that op
    rows    for each such op whose elements have shadows, the shadow of all values in its function
    """

    def __init__(self, found: Tainted, traps: dict[Op, list[str]], sources: frozenset[Op], inside: dict[Node, Op],
                 live: dict[Value, Value], passes_on: Callable[[Op], bool], site: Callable[[Op], Site]):
        super().__init__(found)
        self.traps, self.sources, self.inside, self.live = traps, sources, inside, live
        self.passes_on, self.site = passes_on, site
        self.rows = {o: Value(shadow_type(o.region.params[0].type)) for o in inside.values()
                     if not self.shadows.keys().isdisjoint(o.operands)}

    def change(self, old: Node, n: Node) -> list[Node] | None:
        if old not in self.inside:
            return super().change(old, n)
        row = self.rows.get(self.inside[old])
        return [n, *self.checks(old, n, row, True)] if old in self.traps else None

    def op(self, old: Op, n: Op) -> None:
        self.nodes += self.combined(n, self.rows[old]) if old in self.rows else [n]
        if old in self.sources:
            self.source(old, n)
        elif self.passes_on(n) and not self.shadows.keys().isdisjoint(n.results):
            self.nodes += self.of_results(n)
        self.nodes += self.checks(old, n, self.shadows.get(n.results[0]) if n.results else None, False)

    def checks(self, old: Op, n: Op, shadow: Value | None, combining: bool) -> list[Op]:
        """The traps of an op. `combining`: it is in a function that combines elements."""
        more = [shadow, self.live.get(n.results[0])] if old in self.traps else []
        layout = (len(n.operands), len(n.results), *(None if v is None else 1 for v in more))
        operands = (*n.operands, *n.results, *(v for v in more if v is not None))
        attrs = {"site": self.site(old), "of": n, "combining": combining}
        return [Op(trap_ops.TRAP, operands, {**attrs, "kind": kind}, (), n.span, layout)
                for kind in self.traps.get(old, ())]

    def combined(self, n: Op, row: Value) -> list[Op]:
        """A reduce or scan whose function also gets the shadow of its row."""
        half, params, last = len(n.operands), n.region.params, n.region.terminator
        joined = tuple(self.shadows[v] for v in n.operands if v in self.shadows)
        elements, rows = (Value(shadow_type(n.operands[0].type)) for _ in range(2))
        region = replace(n.region, params=(*params[:half], row, *params[half:], Value(row.type)),
                         nodes=[*n.region.nodes[:-1], Yield((*last.operands, row), last.span)])
        unread = Value(shadow_type(n.results[0].type))
        return [Op(JOINED, joined, {}, (elements,), n.span, (len(joined),)),
                Op(trap_ops.ROW_SHADOW, (elements,), {"axis": n.attrs["axis"]}, (rows,), n.span),
                replace(n, operands=(*n.operands, rows), results=(*n.results, unread), region=region,
                        attrs={**n.attrs, "identity": (*n.attrs["identity"], 0)}, layout=(half + 1,))]

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

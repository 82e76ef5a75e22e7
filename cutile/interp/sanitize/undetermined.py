"""The check `undetermined`: padding that was left undetermined [PAD-1] and that matters.

It matters where it reaches memory, an index, a mask or a branch, and where max or min of partly determined
elements may choose it. Shadows (shadows.py) follow it there, element by element. Elements
outside the array, which stores skip, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from cutile._support.structs import replace
from cutile.interp.sanitize import undetermined_ops as checks
from cutile.interp.sanitize.padding_help import help_of
from cutile.interp.sanitize.shadowing import Shadowing
from cutile.interp.sanitize.shadows import MOST, PADDED, PADDING, WHOLE, passed
from cutile.interp.sanitize.sites import Site, sites
from cutile.interp.sanitize.taint import Tainted, tainted
from cutile.ir.nodes import Kernel, Node, Op, Value
from cutile.ir.walk import rewrite, walk
from cutile.ops import debug
from cutile.ops._op import ATOMIC, OFFSETS, PURE, READ, REDUCTION, WRITE
from cutile.passes.lift import Masks
from cutile.types import PaddingMode, TileType

EXTREMA = ("max", "min")  # the kinds, in Tile IR, of reductions that pick one element


def instrument(kernel: Kernel, wanted: Sequence[str], masks: Masks) -> Kernel:
    """The program with shadows, and with checks where undetermined elements would matter. With `extrema` alone, only
    max and min are checked. With `bounds`, tiles wholly outside are left to that check.

    How often an element function runs a loop for an element concerns no other element.
    """
    site = sites(kernel)
    sources = [n for n in walk(kernel.body) if isinstance(n, Op) and _is_source(n, site(n))]
    if not sources:
        return kernel

    def passes_on(n: Op) -> bool:
        return _passes_on(n) and masks.any.isdisjoint(n.results)

    found = tainted(kernel, [n.results[0] for n in sources], passes_on)
    described = tuple(checks.Source(site(n), partial(help_of, kernel, n)) for n in sources)
    return rewrite(kernel, _Undetermined(found, sources, described, site, wanted).change)


def _is_source(n: Op, site: Site) -> bool:
    """Whether a load gives undetermined elements: those outside the array, or masked elements of raw memory without
    padding.
    """
    access = site.access
    if access is None or n.op.effect != READ:
        return False
    if access.unit == OFFSETS:
        return access.mask is not None and access.padding is None
    return access.padding is PaddingMode.UNDETERMINED and access.check_bounds


def _passes_on(n: Op) -> bool:
    """Whether undetermined operands can make a result undetermined. An undetermined index is reported where it is
    used, and what is read there counts as determined.
    """
    return n.op.effect == PURE or n.op.effect == READ and n.op.accesses.padding is not None


def _is_extremum(n: Op) -> bool:
    return n.op.accumulates == REDUCTION and n.region is None and n.op.tileir in EXTREMA


class _Undetermined(Shadowing):
    """Puts shadows and checks into a program, node by node."""

    def __init__(self, found: Tainted, sources: Sequence[Op], described: Sequence[checks.Source],
                 site: Callable[[Op], Site], wanted: Sequence[str]):
        super().__init__(found)
        self.site = site
        self.extrema_only, self.partly = "undetermined" not in wanted, "bounds" in wanted
        self.numbers = {n: min(i, MOST) for i, n in enumerate(sources, 1)}
        self.sources = described

    # -------------------------------------------------------------- nodes

    def op(self, old: Op, n: Op) -> None:
        if old in self.numbers:
            attrs = {"access": self.site(old).access, "number": self.numbers[old], "partly": self.partly}
            self.nodes += (n, Op(PADDING, n.operands, attrs, (self.shadows[n.results[0]],), n.span,
                                 (len(n.operands),)))
            self.checks(old, n)
            return
        if self.shadows.keys().isdisjoint((*n.operands, *n.results)):
            return
        if n.region is not None:
            self.nodes.append(self.combined(n))
            return
        self.checks(old, n)
        self.nodes.append(n)
        if self.shadows.keys().isdisjoint(n.results):
            return
        if _is_extremum(n):
            (x,) = n.operands
            self.nodes.append(Op(WHOLE, (self.of(x, n),), {"axis": n.attrs["axis"]}, (self.shadows[n.results[0]],),
                                 n.span))
        elif n.op.effect == READ:
            self.nodes.append(self.padded(old, n))
        else:
            made = passed(n, lambda v: self.of(v, n), lambda v: v not in self.shadows)
            self.nodes += made

    def padded(self, old: Op, n: Op) -> Op:
        """The shadow of what is read with an undetermined mask or padding value."""
        access = self.site(old).access
        shadows = tuple(self.of(v, n) for v in (access.padding, *([] if access.mask is None else [access.mask])))
        return Op(PADDED, (*n.operands, *shadows), {"access": access}, (self.shadows[n.results[0]],), n.span,
                  (len(n.operands), len(shadows)))

    def combined(self, n: Op) -> Op:
        """A reduce or scan with the user's function, which combines shadows too."""
        half = len(n.operands)
        params = n.region.params
        doubled = [(*part, *(self.shadows[v] for v in part)) for part in (params[:half], params[half:])]
        attrs = {**n.attrs, "identity": (*n.attrs["identity"], *[0] * half)}
        return replace(n, operands=(*n.operands, *(self.of(v, n) for v in n.operands)), attrs=attrs,
                       results=(*n.results, *(self.shadows[v] for v in n.results)), layout=(2 * half,),
                       region=replace(n.region, params=(*doubled[0], *doubled[1])))

    # -------------------------------------------------------------- checks

    def check(self, o, operands: Iterable[Value], n: Node, layout=None, **attrs) -> None:
        self.nodes.append(Op(o, tuple(operands), {**attrs, "sources": self.sources}, (), n.span, layout))

    def branch(self, values: Iterable[Value], n: Node, what: str) -> None:
        """Check scalars that decide where control goes."""
        for v in dict.fromkeys(values):
            if v in self.shadows and not self.extrema_only:
                self.check(checks.SCALAR, [self.shadows[v]], n, site=Site(n.span, what))

    def checks(self, old: Op, n: Op) -> None:
        """Check the operands of an op for which undetermined elements matter."""
        site = self.site(old)
        if _is_extremum(n):
            self.check(checks.EXTREMUM, (*n.operands, self.shadows[n.operands[0]]), n, site=site, of=n)
        if self.extrema_only:
            return
        if n.op is debug.assert_:
            self.branch(n.operands, n, "assert_()")
        elif n.op.accesses is not None:
            self.access(site, n)
        elif n.results and not isinstance(n.results[0].type, TileType):  # a slice, an item of a list
            self.scalars(n.operands, n, site)
        elif n.op.moves_data:
            names = n.op.flat_names(n.layout)
            self.scalars([v for name, v in zip(names, n.operands, strict=True) if name == "index"], n, site)

    def scalars(self, values: Iterable[Value], n: Op, site: Site) -> None:
        for v in dict.fromkeys(values):
            if v in self.shadows:
                self.check(checks.SCALAR, [self.shadows[v]], n,
                           site=Site(site.span, f"an index of {site.call}()"))

    def access(self, site: Site, n: Op) -> None:
        """Check index, mask and stored values of an access."""
        how, named = n.op.accesses, n.op.named(n.operands, n.layout)
        mask = named.get(how.mask)
        for name in how.index:
            group = named[name]
            for v in group if isinstance(group, tuple) else (group,):
                if v in self.shadows:
                    selected = [] if mask is None or not v.type.shape else [mask]
                    self.check(checks.INDEX, (n.operands[0], self.shadows[v], *selected), n,
                               (1, 1, 1 if selected else None), site=site)
        if n.op.effect not in (WRITE, ATOMIC):
            return
        if mask in self.shadows:
            self.check(checks.INDEX, (n.operands[0], self.shadows[mask]), n, (1, 1, None), site=site, what="a mask")
        for name in how.values:
            v = named[name]
            if v in self.shadows:
                self.check(checks.STORED, (*n.operands, self.shadows[v]), n, (len(n.operands), 1), site=site)

"""The bench of `ruling`, with combine functions: Python functions `f(b, *terms)` that apply rules themselves."""

from __future__ import annotations

import numpy as np

from cutile.dtypes import info
from cutile.ir.build import Builder
from cutile.ir.nodes import Yield
from cutile.ir.terms import Static
from cutile.ops._constants import evaluate
from cutile.ops._op import OpDef, Sig
from tests.ops.ruling import SPAN, Bench, check_carrier, term


class Calling(Builder):
    """A builder that can call: functions get the builder and terms, ops get terms."""

    def call(self, func, args, kwargs=None):
        if isinstance(func.obj, OpDef):
            return apply(self, func.obj, *args)
        return term(func.obj(self, *args))

    def special_method(self, cls, name):
        return getattr(cls, name, None)

    def reach(self, obj):
        """Nothing is launched again."""


def apply(b: Builder, op: OpDef, *args, **kwargs):
    bound = op.__signature__.bind(*args, **kwargs)
    bound.apply_defaults()
    return op.rule(b, op, **{n: term(x) for n, x in bound.arguments.items()})


class CombineBench(Bench):
    """Runs regions too: over whole carriers, all of whose axes are batch axes."""

    def __init__(self, ctx=None):
        super().__init__(ctx)
        self.b = Calling(SPAN)
        self.combined = 0  # calls of combine functions

    def _run(self) -> None:
        for n in self.b.region.nodes[self.done:]:
            sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
            xs = n.op.group([self.known[v] for v in n.operands], n.layout)
            given = {"ctx": self.ctx}
            if n.region is not None:
                given["combine"] = self._combine(n.region, sig.x.ndim)
            y = evaluate(n.op, sig, xs, n.attrs, **given)
            for v, c in zip(n.results, y if len(n.results) > 1 else (y,), strict=False):
                check_carrier(n.op.name, v.type, c)
                self.known[v] = c
        self.done = len(self.b.region.nodes)

    def _combine(self, region, core: int):
        def combine(carriers):
            self.combined += 1
            known = dict(zip(region.params, carriers, strict=True))

            def value(v):  # the batch axes of a captured value stand in front of the axes of the tiles
                return known[v] if v in known else self.known[v].reshape(np.shape(self.known[v]) + (1,) * core)

            for n in region.nodes:
                if isinstance(n, Yield):
                    return tuple(value(v) for v in n.operands)
                sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
                y = evaluate(n.op, sig, n.op.group([value(v) for v in n.operands], n.layout), n.attrs)
                known[n.results[0]] = y
                assert y.dtype == info(n.results[0].type.dtype).carrier

        return combine


def function(f) -> Static:
    return Static(f)

"""Running typed IR on pairs (value, error), one block at a time, straight from the nodes.

The error of a tile is None if it is zero, else float64 of the tile's shape. The error of an array or pointer is a
second array or pointer, into memory that holds errors. So loads and stores move errors as they move values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cutile._support.structs import structure
from cutile.bounds import rules
from cutile.dtypes import DType, float64, info
from cutile.interp.exec.block_set import BlockSet
from cutile.ir import nodes as ir
from cutile.ir.nodes import Node, Op, Region, Value
from cutile.ir.recursion import recursive
from cutile.ops import _numeric, atomics
from cutile.ops._op import ATOMIC, HOST, READ, WRITE, Sig
from cutile.spans import Span
from cutile.types import PaddingMode, TileType

Pair = tuple[Any, Any]
ADDS = {atomics.atomic_add, atomics.atomic_add_offset, atomics.view_atomic_store_add}
EXCHANGES = {atomics.atomic_xchg, atomics.atomic_xchg_offset}
COMPARE_AND_SWAP = {atomics.atomic_cas, atomics.atomic_cas_offset}  # what these write depends on a comparison


class Inconclusive(Exception):
    """A decision that implementations may take differently."""

    def __init__(self, what: str, span: Span):
        super().__init__(f"{what} in line {span.line} depends on rounding that is free")
        self.span = span


@structure(frozen=True)
class Lost:
    """The op that first made an error unknown: why, and what to do, or "" if nothing helps."""

    span: Span
    why: str
    help: str


def unknown(errors: Sequence[Any]) -> bool:
    return any(isinstance(e, np.ndarray) and e.dtype == np.float64 and bool(np.isinf(e).any()) for e in errors)


class Walker:
    """Runs one block. `values_only` is set inside combine functions: the rule of the reduction has their errors.

    rounding   whether each rounding of a float result is an error too
    """

    def __init__(self, ctx: BlockSet, contraction: bool, rounding: bool = False):
        self.ctx, self.contraction, self.rounding = ctx, contraction, rounding
        self.env: dict[Value, Pair] = {}
        self.values_only = False
        self.lost: Lost | None = None

    def get(self, vs: Sequence[Value]) -> list[Pair]:
        return [self.env[v] for v in vs]

    def put(self, vs: Sequence[Value], pairs: Sequence[Pair]) -> None:
        self.env.update(zip(vs, pairs, strict=False))

    @recursive
    def region(self, region: Region) -> tuple[type, list[Pair]] | None:
        """Run a region. Returns the class of its terminator and the pairs it passes on, or None without one."""
        for n in region.nodes:
            if isinstance(n, ir.TERMINATORS):
                return type(n), self.get(n.operands)
            ended = RUN[type(n)](self, n)
            if ended is not None:
                return ended
        return None

    def decide(self, pair: Pair, what: str, n: Node) -> Any:
        """The value of a condition, index or the like; Inconclusive if it has an error."""
        value, error = pair
        if error is not None and np.any(error):
            raise Inconclusive(what, n.span)
        return value

    # -------------------------------------------------------------- structure

    def bind(self, n: ir.Bind) -> None:
        """A name for a value: nothing to do."""

    def if_(self, n: ir.If) -> tuple | None:
        ended = self.region(n.then if self.decide(self.env[n.cond], "the branch", n) else n.orelse)
        if ended is not None and ended[0] is ir.Yield:
            return self.put(n.results, ended[1])
        return ended

    def for_(self, n: ir.For) -> tuple | None:
        start, stop, step = (int(self.decide(p, "the loop", n)) for p in self.get((n.start, n.stop, n.step)))
        now, carrier = self.get(n.inits), info(n.iv.type.dtype).carrier
        for i in range(start, stop, max(step, 1)):
            self.put(n.params, now)
            self.env[n.iv] = (np.asarray(i, carrier), None)
            how, now = self.region(n.body)
            if how is ir.Return:
                return how, now
            if how is ir.Break:
                break
        return self.put(n.results, now)

    def while_(self, n: ir.While) -> tuple | None:
        now = self.get(n.inits)
        while True:
            self.put(n.params, now)
            if n.cond is not None and not self.decide(self.region(n.cond)[1][0], "the loop", n):
                break
            how, now = self.region(n.body)
            if how is ir.Return:
                return how, now
            if how is ir.Break:
                break
        return self.put(n.results, now)

    def frame(self, n: ir.Frame) -> tuple | None:
        ended = self.region(n.body)
        return self.put(n.results, ended[1]) if ended is not None and ended[0] is ir.Return else ended

    # -------------------------------------------------------------- ops

    def op(self, n: Op) -> None:
        if n.op.effect == HOST:
            return
        pairs = self.get(n.operands)
        xs, es = [p[0] for p in pairs], [p[1] for p in pairs]
        ys = self.apply(n, xs, Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results)))
        if self.values_only:
            return self.put(n.results, [(y, None) for y in ys])
        if n.op.effect in (READ, WRITE,
                           ATOMIC) or any(not isinstance(v.type, TileType) for v in (*n.operands, *n.results)):
            errors = self.through_memory(n, xs, es, ys)
        elif any(info(v.type.dtype).kind == "p" for v in n.results if isinstance(v.type, TileType)):
            errors = self.apply(n, [x if e is None else e for x, e in pairs], self.error_sig(n))
        else:
            errors = rules.errors(n, xs, es, ys, self.contraction)
            if self.rounding:
                errors = rules.rounded_too(n, ys, errors)
            if self.lost is None and unknown(errors) and not unknown(es):
                self.lost = Lost(n.span, *rules.why_unknown(n))
        self.put(n.results, list(zip(ys, errors, strict=True)))

    def apply(self, n: Op, xs: Sequence[Any], sig: Sig, **changed: Any) -> tuple:
        """The results of an op's meaning, rounded."""
        o, keywords = n.op, {**n.attrs, **changed}
        given = {"sig": sig, "ctx": self.ctx, "combine": lambda args: self.combine(n, args)}
        keywords |= {k: given[k] for k in o.given}
        y = o.meaning(*o.group(list(xs), n.layout), **keywords)
        if not n.results:
            return ()
        ys = y if len(n.results) > 1 else (y,)
        return tuple(_finish(t, y, o.exact) for t, y in zip(sig.results, ys, strict=True))

    def combine(self, n: Op, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The user's function, on scalars whose leading axes are elements."""
        before, self.values_only = self.values_only, True
        self.put(n.region.params, [(a, None) for a in args])
        _, results = self.region(n.region)
        self.values_only = before
        return [v for v, _ in results]

    # -------------------------------------------------------------- memory

    def error_sig(self, n: Op) -> Sig:
        """The Sig with which an op moves errors: float64 tiles where they are errors."""
        a = n.op.accesses
        moved = (*a.values, a.padding) if a is not None and n.op not in COMPARE_AND_SWAP else ()
        operands = tuple(_as_error(v.type) if name in moved else v.type
                         for name, v in zip(n.op.flat_names(n.layout), n.operands, strict=True))
        return Sig(operands, tuple(_as_error(v.type) for v in n.results))

    def through_memory(self, n: Op, xs: list, es: list, ys: tuple) -> list:
        """Errors of an op that reads or writes memory, or that makes one array of another."""
        sig = self.error_sig(n)
        moved = [t is not v.type for t, v in zip(sig.operands, n.operands, strict=True)]
        shadows = []
        for v, x, e, m in zip(n.operands, xs, es, moved, strict=True):
            if not isinstance(v.type, TileType) or info(v.type.dtype).kind == "p":
                shadows.append(e)
            elif m:
                shadows.append(np.zeros(v.type.shape) if e is None else e)
            else:
                shadows.append(self.decide((x, e), "an index or mask", n))
        if n.op.effect == ATOMIC:
            return self.atomic(n, shadows, es, ys, sig)
        if all(isinstance(v.type, TileType) and info(v.type.dtype).kind != "p" for v in n.results) and n.results \
                and n.op.effect != READ:
            return [None] * len(ys)  # a size, a number of tiles
        padding = {"padding_mode": PaddingMode.ZERO} if "padding_mode" in n.attrs else {}
        return [_or_none(y) for y in self.apply(n, shadows, sig, **padding)]

    def atomic(self, n: Op, shadows: list, es: list, ys: tuple, sig: Sig) -> list:
        """Errors of an atomic. Each addition of floats rounds once more. Which old value a block sees is free, so every
        old value is unknown."""
        inexact = any(e is not None and isinstance(v.type, TileType) and np.any(e)
                      for v, e in zip(n.operands, es, strict=True))
        floating = bool(ys) and info(n.results[0].type.dtype).floating
        if n.op in ADDS and floating:
            at = next(i for i, t in enumerate(sig.operands) if t is not n.operands[i].type)
            grown = [s + rules.spacing(np.abs(ys[0]) + np.abs(shadows[at]), n.results[0].type.dtype) if i == at else s
                     for i, s in enumerate(shadows)]
            self.apply(n, grown, sig)
        elif inexact:
            if n.op not in EXCHANGES:
                raise Inconclusive("what an atomic is given", n.span)
            self.apply(n, shadows, sig)
        return [np.full(np.shape(y), np.inf) for y in ys]


def _as_error(t: Any) -> Any:
    return TileType(float64, t.shape) if isinstance(t, TileType) and info(t.dtype).kind != "p" else t


def _or_none(e: Any) -> Any:
    return None if isinstance(e, np.ndarray) and e.dtype == np.float64 and not e.any() else e


def _finish(t: Any, y: Any, exact: bool) -> Any:
    if not isinstance(t, TileType):
        return y
    return np.asarray(y if exact else _round(t.dtype, y))


def _round(dtype: DType, y: Any) -> np.ndarray:
    return _numeric.round_to(dtype, y) if info(dtype).floating else y


RUN = {Op: Walker.op, ir.Bind: Walker.bind, ir.If: Walker.if_, ir.For: Walker.for_, ir.While: Walker.while_,
       ir.Frame: Walker.frame}

"""What the traps compute while a program runs, and how they report what they find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cutile.dtypes import DType, float64, info, int_range
from cutile.interp.exec.block_set import BlockSet, Widened
from cutile.interp.sanitize.findings import Report, at_block, index_words, per_block
from cutile.interp.sanitize.shadows import clean, in_rank, is_clean, shadow_op
from cutile.interp.sanitize.sites import Site, check_op
from cutile.ir.nodes import Op
from cutile.ops._op import PRODUCT, SCAN, Sig
from cutile.types import TileType


class Went(NamedTuple):
    """An op that has run: its operands and its first result. In a function that combines elements, scalars have `more`
    axes, for the pairs of elements that it combines at once.
    """

    op: Op
    operands: Sequence[np.ndarray]
    result: np.ndarray
    more: int = 0

    @property
    def dtype(self) -> DType:
        return self.op.results[0].type.dtype

    @property
    def rank(self) -> int:
        return self.op.results[0].type.ndim + self.more

    def rank_of(self, k: int) -> int:
        return self.op.operands[k].type.ndim + self.more

    def spread(self, k: int) -> np.ndarray:
        """Operand k of an elementwise op, with the rank of the result."""
        return in_rank(self.operands[k], self.rank_of(k), self.rank)


def _trap(operands: Sequence, results: Sequence, s: np.ndarray | None, live: np.ndarray | None, /, *, site: Site,
          kind: str, of: Op, combining: bool, sig: Sig, ctx: BlockSet) -> None:
    went = Went(of, operands, np.asarray(results[0]))
    if combining:
        more = ctx.extra if isinstance(ctx, Widened) else went.result.ndim  # the other sets here are of one block
        went = Went(of, [_with_axes(x, more) for x in operands], _with_axes(went.result, more), more)
    wrong = WRONG[kind](went)
    if wrong is None or not wrong.any():
        return
    if s is not None:
        wrong = wrong & (s == 0)
    if live is not None:
        wrong = wrong & (live if live.ndim == wrong.ndim else _any_of(live, sig.operands[-1], went))
    if not wrong.any():
        return
    rank = went.rank

    def describe(i: int) -> Report:
        here = at_block(wrong, rank, ctx, i)
        lane = tuple(map(int, np.unravel_index(int(here.argmax()), here.shape)))
        message, help_ = SAYS[kind](went, site, lambda x, n: _at(x, n, rank, lane, ctx, i)), HELP[kind]
        numbered = rank and not combining
        where = f", at element {index_words(lane)} of the tile" if numbered else ""
        return Report(message + where, "", lane if numbered else None, help_)

    ctx.launch.report(kind, site, ctx, per_block(wrong, rank), describe)


def _with_axes(x: np.ndarray, n: int) -> np.ndarray:
    """A scalar with n axes for pairs at least; one that is the same for all of them has none yet."""
    return np.asarray(x).reshape((1,) * n) if np.ndim(x) < n else x


def _any_of(live: np.ndarray, t: TileType, went: Went) -> np.ndarray:
    """For an op on scalars, whether any element runs it."""
    return per_block(live, t.ndim) if not went.rank else live


def _at(x: np.ndarray, ndim: int, rank: int, lane: tuple[int, ...], ctx: BlockSet, i: int) -> Any:
    """The element of a carrier at a lane, for the block at a position of the running ones; a scalar is at every lane.
    """
    here = at_block(np.asarray(x), ndim, ctx, i)
    lane = lane[rank - ndim:]
    x = here[tuple(min(k, n - 1) for k, n in zip(lane, here.shape, strict=True))]
    return x.item() if x == np.trunc(x) else x  # float32 shows eight digits of a large number, which may be another one


# ------------------------------------------------------------------ where a trap goes off


def _nan(w: Went) -> np.ndarray | None:
    wrong = ~np.isfinite(w.result)
    if not wrong.any():
        return None
    for k, v in enumerate(w.op.operands):
        if info(v.type.dtype).floating:
            wrong = wrong & _all_along(w, k, np.isfinite(w.operands[k]))
    return wrong


def _all_along(w: Went, k: int, finite: np.ndarray) -> np.ndarray:
    """For each element of the result whether all elements of operand k that go into it are finite."""
    o, ndim, rank = w.op.op, w.rank_of(k), w.rank
    if o.accumulates == PRODUCT:
        name = o.flat_names(w.op.layout)[k]
        axis = {"x": -1, "x_scale": -1, "y": -2, "y_scale": -2}.get(name)
        return in_rank(finite if axis is None else finite.all(axis=axis, keepdims=True), ndim, rank)
    if o.accumulates is None:
        return in_rank(finite, ndim, rank)
    axis = w.op.attrs["axis"]
    if o.accumulates != SCAN:
        return finite.all(axis=axis)
    back = slice(None, None, -1) if w.op.attrs.get("reverse") else slice(None)
    turned = np.moveaxis(finite, axis, -1)[..., back]
    return np.moveaxis(np.logical_and.accumulate(turned, axis=-1)[..., back], -1, axis)


def _overflow(w: Went) -> np.ndarray:
    """A result that wrapped differs from the exact one by a power of two that float64 cannot miss, though it rounds."""
    exact = _in_float64(w)
    wrong = np.abs(exact - w.result) >= 2.0 ** (w.dtype.bitwidth - 1)
    return wrong & (w.spread(1) != 0) if w.op.op.divides else wrong


def _in_float64(w: Went) -> np.ndarray:
    """The first result of the op's own meaning on the same numbers in float64."""
    o = w.op.op
    sig = Sig(*(tuple(TileType(float64, v.type.shape) for v in vs) for vs in (w.op.operands, w.op.results)))
    found = o.meaning(*(np.asarray(x, np.float64) for x in w.operands), **w.op.attrs,
                      **({"sig": sig} if "sig" in o.given else {}))
    return found[0] if isinstance(found, tuple) else found


def _cast(w: Went) -> np.ndarray:
    low, high = int_range(w.dtype)
    whole = np.trunc(w.operands[0].astype(np.float64))
    return ~((whole >= low) & (whole < float(high + 1)))  # also of NaN


def _division(w: Went) -> np.ndarray:
    zero = w.spread(1) == 0
    return np.broadcast_to(zero, np.broadcast_shapes(zero.shape, w.result.shape))


WRONG: dict[str, Callable[[Went], np.ndarray | None]] = {
    "nan": _nan, "overflow": _overflow, "cast": _cast, "division": _division}


# ------------------------------------------------------------------ in words


def _values(w: Went, at: Callable) -> str:
    """The operands' elements at a lane, of an elementwise op."""
    return " and ".join(str(at(x, w.rank_of(k))) for k, x in enumerate(w.operands))


def _from(w: Went, at: Callable) -> str:
    return _values(w, at) if w.op.op.accumulates is None else "finite elements"


def _says_nan(w: Went, site: Site, at: Callable) -> str:
    return f"{site.call}() makes {_NAMES.get(str(at(w.result, w.rank)))} from {_from(w, at)}"


def _says_overflow(w: Went, site: Site, at: Callable) -> str:
    of = "" if w.op.op.accumulates is not None else f" of {_values(w, at)}"
    return f"{site.call}(){of} does not fit {w.dtype.name} and wraps to {at(w.result, w.rank)}"


def _says_cast(w: Went, site: Site, at: Callable) -> str:
    return f"{site.call}(): {_values(w, at)} does not fit {w.dtype.name}, and becomes {at(w.result, w.rank)}"


def _says_division(w: Went, site: Site, at: Callable) -> str:
    return f"{site.call}() divides {at(w.operands[0], w.rank_of(0))} by zero"


_NAMES = {"nan": "NaN", "inf": "infinity", "-inf": "minus infinity"}
SAYS = {"nan": _says_nan, "overflow": _says_overflow, "cast": _says_cast, "division": _says_division}
HELP = {"nan": "keep the operands where the result is finite: subtract the maximum before exp(), add a small number "
               "before a division, log() or rsqrt()",
        "overflow": "compute in a wider dtype: x.astype(ct.int64)",
        "cast": "limit the floats before: ct.minimum(ct.maximum(x, low), high)",
        "division": "replace zeros in the divisor before: ct.where(y == 0, 1, y)"}


# ------------------------------------------------------------------ shadows


def _reduction_shadow(s: np.ndarray, /, *, axis: int, reverse: bool, sig: Sig) -> np.ndarray:
    """The shadow of a reduction: elements that were made of elements with a shadow only."""
    return clean(s.shape[:s.ndim - sig.x.ndim] + sig.result.shape) if is_clean(s) else s.min(axis=axis)


def _row_shadow(s: np.ndarray, /, *, axis: int) -> np.ndarray:
    """For each element the shadow of what all elements along the axis give."""
    return s if is_clean(s) else np.broadcast_to(s.min(axis=axis, keepdims=True), s.shape)


def _scan_shadow(s: np.ndarray, /, *, axis: int, reverse: bool, sig: Sig) -> np.ndarray:
    if is_clean(s):
        return s
    s = np.flip(s, axis) if reverse else s
    s = np.minimum.accumulate(s, axis=axis)
    return np.flip(s, axis) if reverse else s


def _product_shadow(x: np.ndarray, y: np.ndarray, acc: np.ndarray, /, *, sig: Sig) -> np.ndarray:
    """The shadow of a matrix product: elements in whose row of x, or column of y, all elements have a shadow."""
    tx, ty, _ = sig.operands
    rows = in_rank(x.min(axis=-1, keepdims=True), tx.ndim, sig.result.ndim)
    columns = in_rank(y.min(axis=-2, keepdims=True), ty.ndim, sig.result.ndim)
    return np.maximum(np.maximum(rows, columns), acc)


REDUCTION_SHADOW = shadow_op(_reduction_shadow, "s")
ROW_SHADOW = shadow_op(_row_shadow, "s")
SCAN_SHADOW = shadow_op(_scan_shadow, "s")
PRODUCT_SHADOW = shadow_op(_product_shadow, "x y acc")
TRAP = check_op(_trap, "*operands *results s? live?")

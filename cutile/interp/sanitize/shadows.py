"""Shadows: for each element of a tile the number of the load whose undetermined padding it depends on, or 0.

A shadow is a uint8 tile of the shape of its tile, and passes through the program beside it. How it passes through an
op follows from the traits of the op (ops/_op.py): an op that moves data moves shadows by its own meaning; an
elementwise op joins them; a selection takes the shadow of what it selects; a reduction, scan or product joins along its
axis. The user's function of a reduce or scan combines shadows as it combines elements.

While nothing is undetermined, a shadow is a view of one zero in memory, and joining shadows costs no work on elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cutile.analysis.access import Access
from cutile.dtypes import info, uint8
from cutile.interp.sanitize.reach import Place, of_value
from cutile.ir.nodes import Op, Value
from cutile.ops._op import PRODUCT, PURE, TILES, OpDef, Sig
from cutile.types import TileType

MOST = 255  # loads that have a number of their own


def shadow_type(t: TileType) -> TileType:
    return TileType(uint8, t.shape)


def shadow_op(meaning: Callable, operands: str, **traits: Any) -> OpDef:
    """An op on shadows; ops whose result nobody reads are dropped."""
    return OpDef(meaning, _made_here, name=meaning.__name__.strip("_"), operands=operands, effect=PURE, exact=True,
                 public=False, language=False, **traits)


def _made_here(*_: object) -> None:
    raise AssertionError("the sanitizer puts its ops into typed programs")


@functools.cache
def clean(shape: tuple[int, ...]) -> np.ndarray:
    """The shadow of a determined tile: one zero in memory."""
    return np.broadcast_to(np.zeros((), np.uint8), shape)


def is_clean(s: np.ndarray) -> bool:
    """Whether a shadow is known to be zero without looking at its elements."""
    return not any(s.strides) and not s.flat[0] if s.size else True


def in_rank(x: np.ndarray, ndim: int, rank: int) -> np.ndarray:
    """A carrier of a tile with `ndim` dimensions as one of a tile with `rank`: new ones of size 1 come first."""
    at = x.ndim - ndim
    return x if ndim == rank else x.reshape(x.shape[:at] + (1,) * (rank - ndim) + x.shape[at:])


# ------------------------------------------------------------------ how shadows pass through an op


def passed(n: Op, shadow: Callable[[Value], Value], determined: Callable[[Value], bool]) -> list[Op]:
    """The ops that compute the shadows of an op's results. `shadow(v)` is the value of a shadow; `determined(v)`: no
    element of v is undetermined, so its shadow is clean.
    """
    results = tuple(map(shadow, n.results))
    o = n.op
    if o.moves_data:
        data = [v if name == "index" else shadow(v)
                for name, v in zip(o.flat_names(n.layout), n.operands, strict=True)]
        return [Op(o, tuple(data), n.attrs, results, n.span, n.layout)]
    if o.selects:
        cond, x, y = n.operands
        if determined(cond):
            return [Op(o, (cond, shadow(x), shadow(y)), n.attrs, results, n.span, n.layout)]
        return [Op(_SELECTED, (*n.operands, *map(shadow, n.operands)), {}, results, n.span)]
    operands = [v for v in n.operands if isinstance(v.type, TileType)]
    if o.absorbing is not None and (value := o.absorbing(n.operands[0].type.dtype)) is not None:
        return [Op(_ABSORBED, (*operands, *map(shadow, operands)), {"value": value}, results, n.span)]
    if o.elementwise:
        joined = tuple(shadow(v) for v in operands if not determined(v))
        return [Op(JOINED, joined, {}, (r,), n.span, (len(joined),)) for r in results]
    if o.accumulates == PRODUCT and info(operands[0].type.dtype).integral:
        return [Op(_INTEGER_PRODUCT, (*operands, *map(shadow, operands)), {}, results, n.span)]
    if o.accumulates == PRODUCT:
        return [Op(_PRODUCT, tuple(map(shadow, operands)), {}, results, n.span, (len(operands),))]
    if o.accumulates is not None:
        attrs = {"axis": n.attrs["axis"], "reverse": n.attrs.get("reverse", False)}
        return [Op(_ALONG, (shadow(operands[0]),), attrs, results, n.span)]
    shadows = tuple(shadow(v) for v in operands if not determined(v))
    return [Op(_REGROUPED, shadows, {}, (r,), n.span, (len(shadows),)) for r in results]


def _joined(shadows: Sequence[np.ndarray], /, *, sig: Sig) -> np.ndarray:
    """The shadow of the result of an elementwise op: what any operand depends on. A scalar is at every position."""
    shape, rank = sig.result.shape, sig.result.ndim
    some = [s if t.shape or not rank else s.reshape(s.shape + (1,) * rank)
            for s, t in zip(shadows, sig.operands, strict=True) if not is_clean(s)]
    if not some:
        return clean(shape)
    s = functools.reduce(np.maximum, some)
    return s if s.shape[s.ndim - rank:] == shape else np.broadcast_to(s, s.shape[:s.ndim - rank] + shape)


def _selected(cond, x, y, of_cond, of_x, of_y, /) -> np.ndarray:
    """The shadow of a selection with an undetermined condition: clean where both sides are determined and equal."""
    s = np.where(cond, of_x, of_y)
    either = (of_x == 0) & (of_y == 0) & (x == y)
    return np.where((of_cond != 0) & ~either, of_cond, s)


def _absorbed(x, y, of_x, of_y, /, *, value, sig: Sig) -> np.ndarray:
    """The shadow of the result of an op for which one value of an operand decides the result."""
    if is_clean(of_x) and is_clean(of_y):
        return clean(sig.result.shape)
    decided = (x == value) & (of_x == 0) | (y == value) & (of_y == 0)
    return np.where(decided, np.uint8(0), np.maximum(of_x, of_y))


def _along(s: np.ndarray, /, *, axis: int, reverse: bool, sig: Sig) -> np.ndarray:
    """The shadow of a reduction or scan: what any element combined so far depends on."""
    if is_clean(s):
        return clean(s.shape[:s.ndim - sig.x.ndim] + sig.result.shape)
    if sig.result.ndim < sig.x.ndim:
        return s.max(axis=axis)
    s = np.flip(s, axis) if reverse else s
    s = np.maximum.accumulate(s, axis=axis)
    return np.flip(s, axis) if reverse else s


def _product(shadows: Sequence[np.ndarray], /, *, sig: Sig) -> np.ndarray:
    """The shadow of a matrix product: what any element of the row, the column or the accumulator depends on. Operands:
    x (and its scale), y (and its scale), the accumulator.
    """
    if all(map(is_clean, shadows)):
        return shadows[-1]
    *factors, acc = (in_rank(s, t.ndim, sig.result.ndim) for s, t in zip(shadows, sig.operands, strict=True))
    half = len(factors) // 2
    rows = functools.reduce(np.maximum, [s.max(axis=-1, keepdims=True) for s in factors[:half]])
    columns = functools.reduce(np.maximum, [s.max(axis=-2, keepdims=True) for s in factors[half:]])
    return np.maximum(np.maximum(rows, columns), acc)


def _integer_product(x, y, acc, of_x, of_y, of_acc, /, *, sig: Sig) -> np.ndarray:
    """The shadow of a matrix product of integers, where a factor of zero makes the other one irrelevant."""
    s = _product((of_x, of_y, of_acc), sig=Sig(sig.operands[3:], sig.results))
    if is_clean(of_x) and is_clean(of_y):
        return s
    x, y, _, of_x, of_y, _ = (in_rank(z, t.ndim, sig.result.ndim)
                              for z, t in zip((x, y, acc, of_x, of_y, of_acc), sig.operands, strict=True))
    matter = _any_product(of_x != 0, (y != 0) | (of_y != 0)) | _any_product((x != 0) | (of_x != 0), of_y != 0)
    return np.where(matter, s, of_acc)


def _any_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.matmul(x.astype(np.float32), y.astype(np.float32)) > 0


def _regrouped(shadows: Sequence[np.ndarray], /, *, sig: Sig) -> np.ndarray:
    """The shadow of the result of any other op. With one operand, k elements become one, or one becomes k, in row-major
    order, as when numbers are packed to bytes or unpacked. With several, any element may depend on any.
    """
    shape, size = sig.result.shape, sig.result.size
    flat = [s.reshape(*s.shape[:s.ndim - t.ndim], t.size) for s, t in zip(shadows, sig.operands, strict=True)]
    if all(map(is_clean, shadows)):
        return clean(shape)
    if len(flat) == 1 and size >= flat[0].shape[-1]:
        s = np.repeat(flat[0], size // flat[0].shape[-1], axis=-1)
    elif len(flat) == 1:
        s = flat[0].reshape(*flat[0].shape[:-1], size, -1).max(axis=-1)
    else:
        s = functools.reduce(np.maximum, [s.max(axis=-1, keepdims=True) for s in flat])
        s = np.broadcast_to(s, s.shape[:-1] + (size,))
    return s.reshape(*s.shape[:-1], *shape)


# ------------------------------------------------------------------ where shadows come from


def _padding(operands: Sequence, /, *, access: Access, number: int, partly: bool, sig: Sig) -> np.ndarray:
    """The shadow of a load: its number for the elements that it does not find in the array. With `partly`, a tile
    wholly outside stays clean. The first tile along an axis without elements is not outside, for the check `bounds`.
    """
    s = Place.of(access, operands).read(of_value(0), np.asarray(number, np.uint8))
    if partly and access.unit == TILES and not is_clean(s):
        rank = len(access.shape)
        empty = functools.reduce(np.logical_or, [n == 0 for n in operands[0].shape], np.False_)
        outside = s.all(axis=tuple(range(-rank, 0)), keepdims=True) & ~np.reshape(empty, np.shape(empty) + (1,) * rank)
        s = np.where(outside, np.uint8(0), s)
    return s if sig.result.shape else s.reshape(s.shape[:s.ndim - len(access.shape)])


def _padded(operands: Sequence, shadows: Sequence[np.ndarray], /, *, access: Access, sig: Sig) -> np.ndarray:
    """The shadow of a load with a padding value and perhaps a mask, whose shadows are given: the padding's shadow where
    nothing was read, joined with the mask's shadow everywhere.
    """
    if all(map(is_clean, shadows)):
        return clean(sig.result.shape)
    of_padding, *of_mask = shadows
    found = Place.of(access, operands).read(of_value(1), np.zeros((), np.uint8))
    rank = len(access.shape)
    t = access.padding.type
    of_padding = of_padding if t.shape or not rank else of_padding.reshape(of_padding.shape + (1,) * rank)
    return functools.reduce(np.maximum, of_mask, np.where(found != 0, np.uint8(0), of_padding))


def _whole(s: np.ndarray, /, *, axis: int, sig: Sig) -> np.ndarray:
    """The shadow of the largest or smallest of many: undetermined where all of them are. Where only some are, the check
    EXTREMUM reports those that may decide.
    """
    if is_clean(s):
        return clean(s.shape[:s.ndim - sig.x.ndim] + sig.result.shape)
    return np.where(s.min(axis=axis) > 0, s.max(axis=axis), np.uint8(0))


def _no_shadow(*, sig: Sig) -> np.ndarray:
    return clean(sig.result.shape)


JOINED = shadow_op(_joined, "*shadows", elementwise=True)
_SELECTED = shadow_op(_selected, "cond x y of_cond of_x of_y", elementwise=True)
_ABSORBED = shadow_op(_absorbed, "x y of_x of_y", elementwise=True)
_ALONG = shadow_op(_along, "s")
_PRODUCT = shadow_op(_product, "*shadows")
_INTEGER_PRODUCT = shadow_op(_integer_product, "x y acc of_x of_y of_acc")
_REGROUPED = shadow_op(_regrouped, "*shadows")
PADDING = shadow_op(_padding, "*operands")
PADDED = shadow_op(_padded, "*operands *shadows")
WHOLE = shadow_op(_whole, "s")
NO_SHADOW = shadow_op(_no_shadow, "")

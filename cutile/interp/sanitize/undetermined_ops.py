"""What the check `undetermined` asks of shadows while a program runs, and how it reports what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cutile._support.structs import structure
from cutile.dtypes import DType, info, int_range
from cutile.interp.exec.block_set import BlockSet
from cutile.interp.memory.array import Array
from cutile.interp.sanitize.findings import Report, at_block, index_words, per_block
from cutile.interp.sanitize.reach import Place, of_value
from cutile.interp.sanitize.shadows import is_clean
from cutile.interp.sanitize.sites import Site, check_op
from cutile.ir.nodes import Op
from cutile.ops._op import Sig

NAME = "undetermined"


@structure(frozen=True, eq=False)
class Source:
    """A load that gives undetermined elements: where it is, and what makes the help for it."""

    site: Site
    help: Callable[[], str]


def _report(ctx: BlockSet, site: Site, s: np.ndarray, wrong: np.ndarray, rank: int, sources: Sequence[Source],
            describe) -> None:
    """Report the elements of a shadow where `wrong` is True. `describe(i, lane)`: message, array and element for a lane
    of the i-th running block.
    """
    def report(i: int) -> Report:
        here = at_block(wrong, rank, ctx, i)
        lane = np.unravel_index(int(here.argmax()), here.shape)
        number = int(np.broadcast_to(at_block(s, rank, ctx, i), here.shape)[lane])
        source = sources[number - 1]
        load = source.site
        message, array, element = describe(i, tuple(map(int, lane)))
        padding = f"the padding is that of this {load.call}()" + (f" of `{load.name}`" if load.name else "")
        return Report(f"{message} depends on padding that was left undetermined", array or load.name, element,
                      source.help(), ((padding, load.span),))

    ctx.launch.report(NAME, site, ctx, per_block(wrong, rank), report)


def _scalar(s: np.ndarray, /, *, site: Site, sources: Sequence[Source], sig: Sig, ctx: BlockSet) -> None:
    if is_clean(s) or not s.any():
        return
    _report(ctx, site, s, s != 0, sig.x.ndim, sources, lambda i, lane: (site.call, "", None))


def _index(array: Array, s: np.ndarray, mask: np.ndarray | None, /, *, site: Site, sources: Sequence[Source],
           what: str = "an index", sig: Sig, ctx: BlockSet) -> None:
    if is_clean(s) or not s.any():
        return
    wrong = s != 0 if mask is None else (s != 0) & mask
    if wrong.any():
        def describe(i: int, lane: tuple) -> tuple:
            name, words = site.array(array, ctx, i)
            return f"{what} of {site.call}() of {words}", name, None

        _report(ctx, site, s, wrong, sig.operands[1].ndim, sources, describe)


def _stored(operands: Sequence, s: np.ndarray, /, *, site: Site, sources: Sequence[Source], sig: Sig,
            ctx: BlockSet) -> None:
    if is_clean(s) or not s.any():
        return
    access, place = site.access, Place.of(site.access, operands)
    rank = len(access.shape)
    s = s.reshape(s.shape[:s.ndim - sig.operands[-1].ndim] + (1,) * rank) if not sig.operands[-1].shape else s
    wrong = (place.read(of_value(1), np.zeros((), np.uint8)) != 0) & (s != 0)
    if wrong.any():
        def describe(i: int, lane: tuple) -> tuple:
            name, words = site.array(operands[0], ctx, i)
            element = place.element(ctx, i, lane)
            return f"what {site.call}() writes to element {index_words(element)} of {words}", name, element

        _report(ctx, site, s, wrong, rank, sources, describe)


def _extremum(x: np.ndarray, s: np.ndarray, /, *, site: Site, of: Op, sources: Sequence[Source], sig: Sig,
              ctx: BlockSet) -> None:
    """Report each reduced row where an undetermined element may decide the result."""
    if is_clean(s):
        return
    axis, some = of.attrs["axis"], s != 0
    mixed = some.any(axis=axis) & ~some.all(axis=axis)
    if not mixed.any():
        return
    wrong = mixed & _differ([_evaluated(of, np.where(some, value, x)) for value in _extremes(of)])
    if wrong.any():
        line = np.where(some, s, 0).max(axis=axis)
        _report(ctx, site, line, wrong, sig.x.ndim - 1, sources,
                lambda i, lane: (f"what {site.call}() chooses", "", None))


def _extremes(n: Op) -> list[np.generic]:
    """Values for undetermined elements: if all of these give the same result, every value does."""
    dtype: DType = n.operands[0].type.dtype
    i = info(dtype)
    if not i.floating:
        return [i.carrier.type(v) for v in ((False, True) if i.kind == "b" else int_range(dtype))]
    return [i.carrier.type(v) for v in (-np.inf, np.inf, *([np.nan] if n.attrs["propagate_nan"] else []))]


def _evaluated(n: Op, x: np.ndarray) -> np.ndarray:
    given = {"sig": Sig((n.operands[0].type,), (n.results[0].type,))} if "sig" in n.op.given else {}
    return np.asarray(n.op.meaning(x, **n.attrs, **given))


def _differ(ys: Sequence[np.ndarray]) -> np.ndarray:
    first = ys[0]
    return np.logical_or.reduce([~((y == first) | (y != y) & (first != first)) for y in ys[1:]])


SCALAR = check_op(_scalar, "s")
INDEX = check_op(_index, "array s mask?")
STORED = check_op(_stored, "*operands s")
EXTREMUM = check_op(_extremum, "x s")

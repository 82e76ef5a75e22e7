"""The check `bounds`: accesses outside an array, where the language leaves them undefined.

A tile wholly outside its array, or at a negative index [LOAD-5, STORE-1]; with check_bounds=False any element outside
[GS-7, ATOM-7]; raw memory that is no element of the argument [RAW-1]; slices and list items out of range [SLICE-3,
LIST-1]. For gathers and scatters that skip outside elements by default, a note is printed, and no error is raised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cutile.interp.exec.block_set import BlockSet
from cutile.interp.memory.array import Array, tile_elements
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.foreign_view import ForeignView
from cutile.interp.memory.per_block_array import PerBlockArray
from cutile.interp.sanitize.findings import Report, at_block, index_words, per_block
from cutile.interp.sanitize.sites import Site, check_op, names_keyword, sites
from cutile.ir.nodes import Kernel, Node, Op, Value
from cutile.ir.walk import rewrite
from cutile.ops import memory, views
from cutile.ops._access import in_index_dtype
from cutile.ops._op import ELEMENTS, OFFSETS, READ, TILES, Sig
from cutile.passes.lift import Masks

FAR = 1 << 60  # tile indices beyond it count as this, so that products with them do not overflow


def instrument(kernel: Kernel, wanted: object, masks: Masks) -> Kernel:
    """The program with a check before each access, slice and list item. Of an access in an element function the
    elements are checked that run it.
    """
    site = sites(kernel)

    def change(old: Node, n: Node) -> list[Node] | None:
        check = _check(old, n, site(old), masks) if isinstance(old, Op) else None
        return None if check is None else [check, n]

    return rewrite(kernel, change)


def _check(old: Op, n: Op, site: Site, masks: Masks) -> Op | None:
    if n.op in _PARTS:
        return Op(_PARTS[n.op], n.operands, {"site": site, **n.attrs}, (), n.span)
    how = n.op.accesses
    if how is None or how.unit not in _BY_UNIT:
        return None
    o = _BY_UNIT[how.unit]
    named = n.op.named(n.operands, n.layout)
    operands, layout = o.flatten([n.operands[0], named[how.index[0]],
                                  *([_mask(n, named.get(how.mask), masks)] if how.unit != TILES else [])])
    return Op(o, operands, {"site": site}, (), n.span, layout)


def _mask(n: Op, own: Value | None, masks: Masks) -> Value | None:
    return masks.live.get(n.results[0]) if own is None and n.results else own


# ------------------------------------------------------------------ tiles


def _tiles(array: Array, index: Sequence[np.ndarray], /, *, site: Site, sig: Sig, ctx: BlockSet) -> None:
    access = site.access
    index = in_index_dtype(index, sig)
    sizes, outside, over = array.shape, np.False_, np.False_
    for j, n, step, k in zip(index, access.shape, access.steps, access.order, strict=True):
        begin = np.clip(j.astype(np.int64), -1, FAR // step) * step
        outside = outside | (begin < 0) | (begin >= np.maximum(sizes[k], 1))  # an empty axis has one empty tile
        over = over | (begin + n > sizes[k])
    wrong = outside if access.check_bounds else outside | over
    if isinstance(array, PerBlockArray):
        wrong = wrong & array.present  # items out of range are reported where the list is indexed
    if wrong.any():
        ctx.launch.report("bounds", site, ctx, wrong,
                          lambda i: _tile_report(site, array, index, ctx, i))
    elif isinstance(array, ForeignView):
        _memory_of_tiles(array, index, sizes, site, ctx)


def _memory_of_tiles(array: ForeignView, index: Sequence[np.ndarray], sizes: Sequence[np.ndarray], site: Site,
                     ctx: BlockSet) -> None:
    """Elements of tiles inside an array at a pointer that are no elements of an argument [FPTR-3]."""
    access, rank = site.access, len(index)
    dims = [access.order.index(k) for k in range(rank)]
    indices = tile_elements([index[d] for d in dims], [access.shape[d] for d in dims], [access.steps[d] for d in dims])
    missing = ~array.exists(indices, rank)
    for i, n in zip(indices, sizes, strict=True):
        missing = missing & (i < n.reshape(n.shape + (1,) * rank))
    if missing.any():
        def describe(i: int) -> Report:
            at = _first(indices, missing, rank, ctx, i)
            return Report(f"{site.call}(): element {index_words(at)} of the array at a pointer is no element of an "
                          "argument", site.array(array, ctx, i)[0], at,
                          "give from_foreign() the shape and strides of memory that is there")

        ctx.launch.report("bounds", site, ctx, per_block(missing, rank), describe)


def _tile_report(site: Site, array: Array, indices: Sequence[np.ndarray], ctx: BlockSet, i: int) -> Report:
    access, (name, words) = site.access, site.array(array, ctx, i)
    index, size = ([at_block(x, 0, ctx, i).item() for x in group] for group in (indices, array.shape))
    begin, shape = [0] * len(size), [0] * len(size)
    for j, n, step, k in zip(index, access.shape, access.steps, access.order, strict=True):
        begin[k], shape[k] = j * step, n
    axes = [k for k, (b, n) in enumerate(zip(begin, size, strict=True)) if not 0 <= b < n]
    at = f"the tile at index {index_words(index)} of {words}"
    if any(j < 0 for j in index):
        return Report(f"{site.call}(): {at} has a negative index", name, tuple(begin),
                      "tile indices count from 0, and are not counted from the end; a border before element 0 is read "
                      "by ct.gather with padding_value, or from a copy of the array that has one")
    if axes:
        return Report(f"{site.call}(): {at} lies wholly outside: it begins at element {index_words(begin)}, and the "
                      f"array has shape {index_words(size)}{_inside_whole(array, begin)}", name, tuple(begin),
                      _tile_help(site, indices, index, size))
    end = [b + n for b, n in zip(begin, shape, strict=True)]
    first = tuple(n if e > n else b for b, e, n in zip(begin, end, size, strict=True))
    return Report(f"{site.call}() with check_bounds=False: {at} reaches beyond the array: it covers elements "
                  f"{index_words(begin)} to {index_words([e - 1 for e in end])}, and the array has shape "
                  f"{index_words(size)}", name, first,
                  "leave check_bounds out, or give the array a shape that is a multiple of the tile's")


def _tile_help(site: Site, indices: Sequence[np.ndarray], index: list[int], size: list[int]) -> str:
    access = site.access
    for d, (j, step, k) in enumerate(zip(index, access.steps, access.order, strict=True)):
        if j * step >= size[k] and step > 1 and _counts_elements(site, d, indices[d], j, step, size[k]):
            return (f"the index counts tiles, not elements: element {j} along axis {k} is in the tile at index "
                    f"{j // step}, since a tile has {step} there")
    return "let no block and no iteration go beyond the last tile: an axis of n elements has ct.cdiv(n, tile) tiles"


def _counts_elements(site: Site, dim: int, given: np.ndarray, j: int, step: int, size: int) -> bool:
    """Whether the user probably gave an element index where a tile index is wanted: it is inside the array, and it is a
    multiple of the tile, or runs through all elements. One that goes too far step by step is outside first just behind
    the last tile, at ceil(size / step).
    """
    if j >= size:
        return False
    if j % step == 0 and j > -(-size // step):
        return True
    function = site.access.index[dim]
    multiple = all(c % step == 0 for _, c in function.terms) and function.constant % step == 0
    return multiple if function.terms and multiple else int(given.max()) >= size - step or multiple


def _inside_whole(array: Array, index: Sequence[int]) -> str:
    """Words to add if an element is outside the slice but inside the argument."""
    if not isinstance(array, ArrayView) or not array.bounds.fixed:
        return ""
    at = [s + i for s, i in zip(array.start, index, strict=True)]
    if all(0 <= i < n for i, n in zip(at, array.buffer.array.shape, strict=True)):
        return f"; that is element {index_words(at)} of `{array.name}`, but outside the slice"
    return ""


# ------------------------------------------------------------------ elements


def _elements(array: Array, indices: Sequence[np.ndarray], mask: np.ndarray | None, /, *, site: Site, sig: Sig,
              ctx: BlockSet) -> None:
    rank = sig.operands[1].ndim if indices else 0
    outside = _missing(array, indices, mask, rank)
    if outside is None:
        return
    blocks = per_block(outside, rank)
    if not site.access.check_bounds:
        ctx.launch.report("bounds", site, ctx, blocks,
                          lambda i: _element_report(site, array, _first(indices, outside, rank, ctx, i), ctx, i))
    elif mask is None and site not in ctx.launch.noted \
            and not names_keyword(site.span, "check_bounds", "padding_value"):
        has_mask = site.access.op.op.accesses.mask is not None
        ctx.launch.note(site, ctx, blocks,
                        lambda i: _dropped(site, array, _first(indices, outside, rank, ctx, i), ctx, i),
                        f"if this is meant, say so by check_bounds=True{', or by a mask' * has_mask}")


def _missing(array: Array, indices: Sequence[np.ndarray], mask: np.ndarray | None, rank: int) -> np.ndarray | None:
    """Which elements do not exist, of those that the mask selects; None if all do."""
    exist = array.exists(indices, rank)
    if exist.all():
        return None
    missing = ~exist if mask is None else ~exist & mask
    return missing if missing.any() else None


def _first(indices: Sequence[np.ndarray], wrong: np.ndarray, rank: int, ctx: BlockSet, i: int) -> tuple[int, ...]:
    """The index of the first element of a block for which `wrong` holds."""
    # `wrong` and indices may have length 1 along axes on which they do not depend.
    here, *found = np.broadcast_arrays(*(at_block(x, rank, ctx, i) for x in (wrong, *indices)))
    lane = np.unravel_index(int(here.argmax()), here.shape)
    return tuple(int(x[lane]) for x in found)


def _where(site: Site, array: Array, index: tuple[int, ...], ctx: BlockSet, i: int) -> str:
    size = tuple(at_block(n, 0, ctx, i).item() for n in array.shape)
    _, words = site.array(array, ctx, i)
    return f"index {index_words(index)} of {words} is out of range for shape {index_words(size)}" \
           f"{_inside_whole(array, index)}"


def _element_report(site: Site, array: Array, index: tuple[int, ...], ctx: BlockSet, i: int) -> Report:
    return Report(f"{site.call}() with check_bounds=False: {_where(site, array, index, ctx, i)}",
                  site.array(array, ctx, i)[0], index, "leave check_bounds out, or give a mask that is False there")


def _dropped(site: Site, array: Array, index: tuple[int, ...], ctx: BlockSet, i: int) -> str:
    what = "reads padding_value there" if site.access.effect == READ else "changes nothing there"
    return f"{site.call}() {what}: {_where(site, array, index, ctx, i)}"


def _offsets(array: Array, offset: np.ndarray, mask: np.ndarray | None, /, *, site: Site, sig: Sig,
             ctx: BlockSet) -> None:
    rank = sig.operands[1].ndim
    outside = _missing(array.raw, (offset,), mask, rank)
    if outside is not None:
        ctx.launch.report("bounds", site, ctx, per_block(outside, rank),
                          lambda i: _offset_report(site, site.array(array, ctx, i),
                                                   _first((offset,), outside, rank, ctx, i)))


def _offset_report(site: Site, array: tuple[str, str], index: tuple[int, ...]) -> Report:
    name, words = array
    return Report(f"{site.call}(): no element of the argument lies {index[0]} elements after the first one of {words}",
                  name, index, "give a mask that is False there, or keep the offset inside the array")


# ------------------------------------------------------------------ parts of arrays and lists


def _slices(array: Array, start: np.ndarray, stop: np.ndarray, /, *, axis: int, site: Site, sig: Sig,
            ctx: BlockSet) -> None:
    size = array.shape[axis]
    wrong = (start < 0) | (stop < start) | (stop > size)
    if wrong.any():
        def describe(i: int) -> Report:
            a, z, n = (at_block(x, 0, ctx, i).item() for x in (start, stop, size))
            name, words = site.array(array, ctx, i)
            return Report(f"slice() from {a} to {z} along axis {axis} of {words}, which has {n} elements there",
                          name, None, "keep 0 <= start <= stop <= size")

        ctx.launch.report("bounds", site, ctx, wrong, describe)


def _items(arrays: Sequence, index: np.ndarray, /, *, site: Site, sig: Sig, ctx: BlockSet) -> None:
    wrong = (index < 0) | (index >= len(arrays))
    if wrong.any():
        ctx.launch.report("bounds", site, ctx, wrong, lambda i: Report(
            f"item {at_block(index, 0, ctx, i).item()} of the list `{site.name}`, which has {len(arrays)} arrays",
            site.name, None, f"keep the index from 0 to len({site.name}) - 1"))


_BY_UNIT = {TILES: check_op(_tiles, "array *index"), ELEMENTS: check_op(_elements, "array *indices mask?"),
            OFFSETS: check_op(_offsets, "array offset mask?")}
_PARTS = {views.slice_: check_op(_slices, "array start stop"), memory.list_item_op: check_op(_items, "arrays index")}

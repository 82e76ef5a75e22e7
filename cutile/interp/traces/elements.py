"""Which elements of which array an access reaches, for all running blocks."""

from __future__ import annotations

import numpy as np

from cutile.interp.exec.block_set import BlockSet
from cutile.interp.memory.foreign_view import ForeignView
from cutile.interp.sanitize.reach import Place, of_value
from cutile.ops._access import in_index_dtype
from cutile.ops._op import TILES

FAR = 1 << 60  # elements: tiles that begin farther away are taken to begin here, so that nothing overflows


def reached(place: Place, ctx: BlockSet) -> int:
    """How many elements of its array an access has reached, in all running blocks together: neither those outside the
    array nor those that a mask leaves out count; one that is reached twice counts twice.
    """
    if place.access.unit == TILES and not isinstance(place.array, ForeignView):
        found, rank = _inside(place), 0
    else:
        found, rank = place.read(of_value(1), np.asarray(0, np.uint8)), len(place.access.shape)
    return int(ctx.flat(np.asarray(found), rank).sum(dtype=np.int64))


def _inside(place: Place) -> np.ndarray:
    """How many elements of each block's tile lie inside the array."""
    access, total = place.access, np.asarray(1, np.int64)
    index, sizes = in_index_dtype(place.named["index"], place.sig), place.array.shape
    for j, n, step, k in zip(index, access.shape, access.steps, access.order, strict=True):
        begin = np.clip(np.asarray(j).astype(np.int64), -FAR // step, FAR // step) * step
        total = total * np.clip(np.minimum(begin + n, sizes[k]) - np.maximum(begin, 0), 0, None)
    return total

"""Lowering of atomics: by index, by offset, and by tile of a view."""

from __future__ import annotations

from cutile.dtypes import bfloat16, info
from cutile.gpu.tileir.access import (
    element_pointers,
    memory_attributes,
    offset_pointers,
    reshaped,
    scalar_as_tile,
    tile_index,
    tile_view,
)
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import atomics
from cutile.ops._op import ELEMENTS

BF16_ADD = "atomic addition of bfloat16"


def _mode(l, n) -> str:
    """Tile IR's mode for the kind of update, `tileir` of the op; floats and unsigned integers have their own modes."""
    kind, dtype = n.op.tileir, n.operands[0].type.dtype
    if kind == "add" and info(dtype).floating:
        if dtype is bfloat16:
            l.check(BF16_ADD)
        return "addf"
    return f"u{kind}" if kind in ("max", "min") and info(dtype).kind == "u" else kind


def _pointers_and_updates(l, n) -> tuple:
    """The pointers of an atomic, its mask, and a list of its updates."""
    if n.op.accesses.unit == ELEMENTS:
        array, index, *updates = n.op.group(n.operands, n.layout)
        pointers, mask = element_pointers(l, l.array(array), index, updates[0].type.shape, n.attrs["check_bounds"])
        return pointers, mask, [l.get(u) for u in updates]
    array, offset, *updates, given = n.op.group(n.operands, n.layout)
    return offset_pointers(l, l.array(array), offset), given and l.get(given), [l.get(u) for u in updates]


@rule(*atomics.BY_INDEX, *atomics.BY_OFFSET)
def _update(l, n):
    pointers, mask, (update,) = _pointers_and_updates(l, n)
    update = scalar_as_tile(l, update, pointers.type.shape)
    return l.memory("atomic_rmw_tko", [pointers, update, mask], mode=_mode(l, n), **memory_attributes(n))


@rule(atomics.atomic_cas, atomics.atomic_cas_offset)
def _cas(l, n):
    pointers, mask, updates = _pointers_and_updates(l, n)
    expected, desired = (scalar_as_tile(l, u, pointers.type.shape) for u in updates)
    old = l.memory("atomic_cas_tko", [pointers, expected, desired, mask], **memory_attributes(n))
    return old if mask is None else l.op("select", [mask, old, expected])  # [ATOM-6.cas]


@rule(*atomics.BY_TILE)
def _update_tile(l, n):
    l.needs("atomic_store of a tiled view", "atomic_red_view_tko")
    a, update, mode = l.array(n.operands[0]), l.get(n.operands[-1]), _mode(l, n)
    order = {"memory_ordering_semantics": "relaxed", "memory_scope": "device"}
    if not a.type.ndim:  # one element
        l.memory("atomic_rmw_tko", [a.base, update], mode=mode, **order)
        return
    access = l.access(n)
    index = tile_index(l, a, n.operands[1:-1])
    l.memory("atomic_red_view_tko", [tile_view(l, a, access), index, reshaped(l, update, access.shape)], mode=mode,
             **order)

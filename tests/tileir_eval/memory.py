"""Loads, stores and atomics, through pointers and through views of tensors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.module import Operation
from cutile.ops import _numeric
from tests.tileir_eval import formats
from tests.tileir_eval.ordering import ATOMIC, READ, WRITE
from tests.tileir_eval.registry import described, of_world, pure, require, where
from tests.tileir_eval.shapes import half_bytes

FAR = np.uint64(1 << 62)  # an address beyond the end of any tensor

# ------------------------------------------------------------------ views


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor view. `base` is its address, strides count half bytes."""

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@pure("make_tensor_view")
def _tensor_view(o):
    t, sort, width = o.results[0].type, where(o), half_bytes(o.results[0].type.element)
    index = [v.type.element for v in (*o.operands[1], *o.operands[2])]

    def make(*row):
        base, sizes, strides = sort(row)
        given = iter([int(formats.unsigned(v, e)) for v, e in zip((*sizes, *strides), index, strict=True)])
        shape = tuple(next(given) if d is None else d for d in t.shape)
        steps = tuple(next(given) if d is None else d for d in t.strides)
        return Tensor(int(base), shape, tuple(_as_signed(s) * width for s in steps))

    return make


def _as_signed(n: int) -> int:
    """A stride of 2**64 - 1 is one of -1: addresses wrap."""
    return n - (1 << 64) if n >> 63 else n


for _kind in ("partition", "strided", "gather_scatter"):
    pure(f"make_{_kind}_view")(lambda o: lambda tensor: tensor)


def _steps(t: ty.View) -> tuple[int, ...]:
    """By how many elements the tile moves for an index, for each of its dimensions.

    Of a gather/scatter view an index counts elements: the specification does not say so, but the tiles that NVIDIA's
    front end makes of a start and a length mean nothing else.
    """
    if isinstance(t, ty.GatherScatterView):
        return (1,) * len(t.tile_shape)
    return t.traversal_strides if isinstance(t, ty.StridedView) else t.tile_shape


def _dim_map(t: ty.View) -> tuple[int, ...]:
    return t.dim_map if not isinstance(t, ty.GatherScatterView) else tuple(range(len(t.tile_shape)))


@pure("get_tensor_shape")
def _tensor_shape(o):
    types = [r.type.element for r in o.results]
    return lambda tensor: _row(formats.wrapped(n, e) for n, e in zip(tensor.shape, types, strict=True))


@pure("get_index_space_shape")
def _index_space(o):
    t, types = o.operands[0].type, [r.type.element for r in o.results]
    rows = list(zip(_dim_map(t), _steps(t), types, strict=True))
    return lambda tensor: _row(formats.wrapped(-(-tensor.shape[d] // step), e) for d, step, e in rows)


def _row(values: Iterable) -> tuple | np.ndarray:
    """The results of an operation: the value itself where there is one."""
    out = tuple(values)
    return out[0] if len(out) == 1 else out


def _elements(o: Operation, t: ty.View, promised: tuple[bool, ...]):
    """A function of a tensor and an index: the addresses of a tile's elements and which lie in the tensor, None for
    all. Indices are unsigned. The assembler checks nothing along dimensions of a constant size that tiles divide.
    """
    rank, sparse = len(t.tile_shape), getattr(t, "sparse_dim", None)
    line = [np.arange(n, dtype=np.int64) for n in t.tile_shape]
    steps, dims = _steps(t), _dim_map(t)
    index = [v.type.element for v in o.operands[[x.name for x in o.spec.operands].index("index")]]
    sizes = [t.tensor_view.shape[d] for d in dims]
    unchecked = [s is not None and s % n == 0 for s, n in zip(sizes, t.tile_shape, strict=True)]

    def elements(tensor: Tensor, given) -> tuple[np.ndarray, np.ndarray | None]:
        offsets, inside = [], []
        for k in range(rank):
            at, size = formats.unsigned(given[k], index[k]), tensor.shape[dims[k]]
            if k == sparse:
                place = np.minimum(at.astype(np.uint64), FAR).astype(np.int64)
            else:
                place = line[k] + min(int(at) * steps[k], int(FAR))
            ok = place < size
            if not ok.all():
                require(not promised[k], f"leaves the tensor along dimension {k}, though inbounds says otherwise", o)
                require(not unchecked[k], f"leaves the tensor along dimension {k}, whose size is a constant", o)
                inside.append((k, ok))
                place = np.where(ok, place, 0)
            offsets.append(place * tensor.strides[dims[k]])
        addresses = reduce(np.add.outer, offsets, np.int64(tensor.base))
        mask = None
        for k, ok in inside:
            ok = ok.reshape(-1, *(1,) * (rank - 1 - k))
            mask = ok if mask is None else mask & ok
        return addresses, None if mask is None else np.broadcast_to(mask, addresses.shape)

    return elements


# ------------------------------------------------------------------ loads and stores


def _what(o: Operation, world):
    return lambda: f"{described(o)} of block {world.block}"


def _semantics(o):
    return o.attrs.get("memory_ordering_semantics", "weak")


def _fetch(world, o, addresses, mask, fill, element, token):
    """Elements at addresses, or `fill` where the mask is False; and the token."""
    if mask is None:
        after = world.touch(READ, _what(o, world), addresses, token, _semantics(o))
        return world.space.load(np.ravel(addresses), element).reshape(np.shape(addresses)), after
    chosen = np.asarray(addresses)[mask]
    after = world.touch(READ, _what(o, world), chosen, token, _semantics(o))
    out = np.array(np.broadcast_to(fill, np.shape(addresses)), formats.carrier(element))
    out[mask] = world.space.load(chosen, element)
    return out, after


def _put(world, o, addresses, x, mask, element, token):
    chosen, x = (np.ravel(addresses), np.ravel(x)) if mask is None else (np.asarray(addresses)[mask],
                                                                        np.asarray(x)[mask])
    after = world.touch(WRITE, _what(o, world), chosen, token, _semantics(o))
    world.space.store(chosen, x, element)
    return after


PADDING = {"zero": 0.0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf, "neg_inf": -np.inf}


def _padding(o: Operation, padding: str | None, element: ty.Scalar) -> np.ndarray:
    """As a constant of the element type; where there is none, zero."""
    if element not in formats.FLOATS:
        require(padding in (None, "zero"), f"no padding {padding} for {element}", o)
        return np.zeros((), formats.carrier(element))
    try:
        value = _numeric.encode(PADDING[padding or "zero"], formats.FLOATS[element])
    except ValueError:
        value = _numeric.encode(0.0, formats.FLOATS[element])
    return np.asarray(value, formats.carrier(element))


@of_world("load_view_tko")
def _load_view(o):
    t, sort = o.operands[0].type, where(o)
    element = t.tensor_view.element
    elements, fill = _elements(o, t, o.attrs["inbounds"]), _padding(o, t.padding, element)

    def load(world, *row):
        tensor, index, token = sort(row)
        addresses, mask = elements(tensor, index)
        rest = world.undetermined(element) if t.padding is None else fill
        return _fetch(world, o, addresses, mask, rest, element, token)

    return load


@of_world("store_view_tko")
def _store_view(o):
    t, sort = o.operands[1].type, where(o)
    elements = _elements(o, t, o.attrs["inbounds"])

    def store(world, *row):
        x, tensor, index, token = sort(row)
        addresses, mask = elements(tensor, index)
        return _put(world, o, addresses, x, mask, t.tensor_view.element, token)

    return store


@of_world("load_ptr_tko")
def _load(o):
    sort, element = where(o), o.results[0].type.element

    def load(world, *row):
        pointers, mask, fill, token = sort(row)
        return _fetch(world, o, pointers, mask, world.undetermined(element) if fill is None else fill, element, token)

    return load


@of_world("store_ptr_tko")
def _store(o):
    sort, element = where(o), o.operands[1].type.element

    def store(world, *row):
        pointers, x, mask, token = sort(row)
        return _put(world, o, pointers, x, mask, element, token)

    return store


# ------------------------------------------------------------------ atomics


def _sum(element: ty.Scalar):
    return lambda old, new: formats.nearest(old + new, element)


def _unsigned_pick(pick, element):
    return lambda old, new: pick(formats.unsigned(old, element), formats.unsigned(new, element)).view(
        formats.SIGNED[element])


def _modify(o: Operation, element: ty.Scalar):
    """The new value of an element."""
    mode = o.attrs["mode"]
    floating = element in formats.FLOATS
    require(floating == (mode == "addf") or mode == "xchg", f"no {mode} of {element}", o)
    return {
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "add": np.add, "max": np.maximum,
        "min": np.minimum, "xchg": lambda old, new: new, "addf": _sum(element) if floating else None,
        "umax": _unsigned_pick(np.maximum, element), "umin": _unsigned_pick(np.minimum, element),
    }[mode]


def _rounds(addresses: np.ndarray) -> list[np.ndarray]:
    """The positions of the first element at each address, of the second, and so on."""
    order = np.argsort(addresses, kind="stable")
    begins = np.flatnonzero(np.diff(addresses[order], prepend=-1))
    which = np.arange(order.size) - np.repeat(begins, np.diff(begins, append=order.size))
    return [order[which == k] for k in range(int(which.max(initial=-1)) + 1)]


def _update(world, o, addresses, news, mask, element, token, change):
    """Change elements one after another; what they were, zero where the mask is False."""
    old = np.zeros(np.shape(addresses), formats.carrier(element))
    chosen = np.ones(old.shape, np.bool_) if mask is None else np.asarray(mask)
    at, news = np.asarray(addresses)[chosen], [np.asarray(n)[chosen] for n in news]
    after = world.touch(ATOMIC, _what(o, world), at, token, _semantics(o))
    found = np.empty(at.size, old.dtype)
    for now in _rounds(at):
        found[now] = world.space.load(at[now], element)
        world.space.store(at[now], change(found[now], *(n[now] for n in news)), element)
    old[chosen] = found
    return old, after


@of_world("atomic_rmw_tko")
def _rmw(o):
    sort, element = where(o), o.results[0].type.element
    change = _modify(o, element)

    def update(world, *row):
        pointers, new, mask, token = sort(row)
        return _update(world, o, pointers, [new], mask, element, token, change)

    return update


@of_world("atomic_cas_tko")
def _cas(o):
    """Compares bits; where masked out the result is `cmp`."""
    sort, element = where(o), o.results[0].type.element

    def swap(old, wanted, new):
        same = formats.to_words(old, element) == formats.to_words(wanted, element)
        return np.where(same, new, old)

    def update(world, *row):
        pointers, wanted, new, mask, token = sort(row)
        old, after = _update(world, o, pointers, [wanted, new], mask, element, token, swap)
        return (old if mask is None else np.where(mask, old, wanted)), after

    return update


@of_world("atomic_red_view_tko")
def _red_view(o):
    t, sort = o.operands[0].type, where(o)
    require(isinstance(t, ty.PartitionView | ty.StridedView) and t.padding is None, f"not through {t}", o)
    element = t.tensor_view.element
    elements, change = _elements(o, t, (False,) * len(t.tile_shape)), _modify(o, element)

    def update(world, *row):
        tensor, index, new, token = sort(row)
        addresses, mask = elements(tensor, index)
        return _update(world, o, addresses, [new], mask, element, token, change)[1]

    return update


@of_world("alloca")
def _alloca(o):
    size, alignment = o.attrs["num_elem"], o.attrs["alignment"]
    width = half_bytes(o.results[0].type.element.pointee)
    return lambda world: np.int64(world.space.allocate(-(-size * width // 2), alignment))


@of_world("get_global")
def _global(o):
    return lambda world: np.int64(world.variables[o.attrs["name"]])

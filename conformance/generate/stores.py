"""Statements that write memory. Each block writes elements of its own; shared arrays see commuting atomics only."""

from __future__ import annotations

from math import prod

import numpy as np

from conformance.generate import meaning, reference
from conformance.generate.core import DTYPES, NP, Gen, T, shape_text
from conformance.generate.dtypes import ARITHMETIC, FLOATS, SM100, promote
from conformance.generate.loads import index_text, starts, tiles
from conformance.generate.tree import Do, Expr, Param

SHARED = ("i32", "u32", "i64", "u64")
ATOMIC = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
          "xor": np.bitwise_xor, "xchg": lambda old, new: new}
COMMUTING = ("add", "max", "min", "and", "or", "xor")


def do(g: Gen, text: str, args: tuple, fn, ops: tuple, kind: str, soft: int = 0) -> None:
    g.out.append(Do(Expr(text, args, T("i32"), fn, ops, 0, soft), kind))


def output(g: Gen, dtype: str, shape: tuple[int, ...], fill: str = "zeros") -> str:
    """A new array parameter that programs write to."""
    name = g.fresh("y")
    np_type = NP.get(dtype, f"np.{DTYPES[dtype].name}")
    if g.chance(0.2) and shape:
        make = f"np.{fill}({(*shape[:-1], shape[-1] * 2)}, {np_type})[..., ::2]"
    elif g.chance(0.2) and len(shape) > 1:
        make = f"np.{fill}({shape[::-1]}, {np_type}).T"
    else:
        make = f"np.{fill}({tuple(shape)}, {np_type})"
    g.params.append(Param(name, make))
    return name


def holder(g: Gen, dtype: str) -> str:
    """The dtype of an array that a tile of that dtype can be stored to [IMPL-1]."""
    wider = [d for d in ARITHMETIC if d != dtype and promote(dtype, d) == d]
    return g.pick(wider) if wider and g.chance(0.15) else dtype


def store(g: Gen, e: Expr) -> None:
    """A store of one tile per block; some tiles reach beyond the edge."""
    d = e.t.dtype
    if not DTYPES[d].arrays or d in SM100 and g.chance(0.4):
        e = g.cast(e, "f32")
    tile, to = e.t.shape, holder(g, e.t.dtype)
    how = g.pick((tile_store, tile_store, view_store, scatter, raw_store)) if len(tile) == 1 else g.pick(
        (tile_store, tile_store, tile_store, view_store, advanced_store if len(tile) > 1 else tile_store))
    how(g, e, tile or (1,), to)


def convert(e: Expr, to: str):
    return lambda v: meaning.convert(v, e.t.d, DTYPES[to])


def region(g: Gen, tile: tuple[int, ...], ragged: bool = True) -> tuple[int, tuple[int, ...]]:
    """The axis along which blocks lie, and the sizes of the array."""
    axis = g.rng.randrange(len(tile))
    sizes = [n * (g.blocks if k == axis else 1) for k, n in enumerate(tile)]
    if ragged and g.chance(0.4):
        k = g.rng.randrange(len(tile))
        sizes[k] = max(1, sizes[k] - g.rng.randrange(min(tile[k], 4)))
    return axis, tuple(sizes)


def own_index(tile: tuple[int, ...], axis: int) -> str:
    inner = ", ".join("{0}" if k == axis else "0" for k in range(len(tile)))
    return f"({inner},)" if len(tile) == 1 else f"({inner})"


def at(tile: tuple[int, ...], axis: int, b) -> tuple[int, ...]:
    return tuple(int(b) * n if k == axis else 0 for k, n in enumerate(tile))


def tile_store(g: Gen, e: Expr, tile: tuple, to: str) -> None:
    axis, sizes = region(g, tile)
    order = list(range(len(tile)))
    if len(tile) > 1 and g.chance(0.2):
        g.rng.shuffle(order)
    in_array = [0] * len(tile)
    for i, k in enumerate(order):
        in_array[k] = sizes[i]
    name, cast = output(g, to, tuple(in_array)), convert(e, to)
    how = f", order={tuple(order)}" if order != sorted(order) else g.pick(("", "", ", latency=2", ", allow_tma=False"))

    def fn(ctx, b, v):
        reference.store(ctx.memory[name].transpose(order), at(tile, axis, b), cast(v).reshape(tile))

    do(g, f"ct.store({name}, {own_index(tile, axis)}, {{1}}{how})", (g.block, e), fn, (("store", to),), "store", e.soft)
    if g.chance(0.15) and g.depth == 0:
        reload(g, name, tile, axis, order, to, e)


def reload(g: Gen, name: str, tile: tuple, axis: int, order: list, to: str, e: Expr) -> None:
    """A load of what was just stored."""
    text = f"ct.load({name}, {own_index(tile, axis)}, {shape_text(tile)}, order={tuple(order)}, padding_mode='ZERO')"
    g.let(Expr(text, (g.block,), T(to, tile), lambda ctx, b: reference.load(
        ctx.memory[name].transpose(order), at(tile, axis, b), tile), (("load", to),), e.mag, e.soft))


def view_store(g: Gen, e: Expr, tile: tuple, to: str) -> None:
    axis, sizes = region(g, tile)
    name, cast = output(g, to, sizes), convert(e, to)

    def fn(ctx, b, v):
        reference.store(ctx.memory[name], at(tile, axis, b), cast(v).reshape(tile))

    do(g, f"{name}.tiled_view({shape_text(tile)}).store({own_index(tile, axis)}, {{1}})", (g.block, e), fn,
       (("tiled_view", to), ("view_store", to)), "store", e.soft)


def scatter(g: Gen, e: Expr, tile: tuple, to: str) -> None:
    """A scatter of the block's own elements in another order, masked, with a few beyond the end."""
    n = tile[0]
    name, cast = output(g, to, (n * g.blocks - g.pick((0, 0, 1 if n > 1 else 0)),)), convert(e, to)
    odd = g.pick((1, 3, 5))
    c = g.rng.randrange(n)
    text = f"ct.scatter({name}, {{0}} * {n} + ((ct.arange({n}, dtype=ct.int32) * {odd}) % {n} ^ {c}), {{1}}"
    ops = (("scatter", to), ("arange", "i32"), ("mul", "i32"), ("mod", "i32"), ("add", "i32"), ("bitwise_xor", "i32"))
    args, mask = (g.block, e), ""
    if g.chance(0.4):
        args, mask = (*args, g.want("b1", tile, clean=True)), ", mask={2}"

    def fn(ctx, b, v, m=None):
        where = b * np.int32(n) + ((np.arange(n, dtype=np.int32) * odd) % n ^ c)
        reference.scatter(ctx.memory[name], (where,), cast(v), m)

    do(g, text + mask + ")", args, fn, ops, "scatter", e.soft)


def raw_store(g: Gen, e: Expr, tile: tuple, to: str) -> None:
    n = tile[0]
    name, cast = g.fresh("y"), convert(e, to)
    g.params.append(Param(name, f"np.zeros({(n * g.blocks,)}, {NP.get(to, f'np.{DTYPES[to].name}')})"))
    args, mask = (g.block, e), ""
    if g.chance(0.4):
        args, mask = (*args, g.want("b1", tile, clean=True)), ", mask={2}"

    def fn(ctx, b, v, m=None):
        reference.scatter(ctx.memory[name], (b * np.int32(n) + np.arange(n),), cast(v), m)

    do(g, f"{name}.get_raw_memory().store_offset({{0}} * {n} + ct.arange({n}, dtype=ct.int32), {{1}}{mask})", args, fn,
       (("get_raw_memory", to), ("store_offset", to), ("arange", "i32"), ("mul", "i32"), ("add", "i32")), "scatter",
       e.soft)


def advanced_store(g: Gen, e: Expr, tile: tuple, to: str) -> None:
    """A store of rows in another order, and of ranges along the other axes."""
    axis = g.rng.randrange(len(tile))
    sizes = tuple(n * (g.blocks if k == axis else 1) for k, n in enumerate(tile))
    name, cast, n = output(g, e.t.dtype, sizes), convert(e, e.t.dtype), tile[axis]
    entries = ", ".join(f"{{0}} * {n} + (ct.arange({n}, dtype=ct.int32) ^ {n - 1})" if k == axis
                        else f"ct.Slice(0, {m})" for k, m in enumerate(tile))

    def fn(ctx, b, v):
        grids = [int(b) * n + (np.arange(n) ^ n - 1) if k == axis else np.arange(m) for k, m in enumerate(tile)]
        reference.scatter(ctx.memory[name], np.ix_(*grids), cast(v), None)

    do(g, f"ct.store_advanced_indexing({name}, ({entries}), {{1}})", (g.block, e), fn,
       (("store_advanced_indexing", to), ("Slice", to), ("arange", "i32"), ("mul", "i32"), ("add", "i32")), "scatter",
       e.soft)


# ------------------------------------------------------------------ atomics


def atomic(g: Gen) -> None:
    g.pick((shared_atomic, shared_atomic, own_atomic, own_cas, view_atomic))(g)


def shared_atomic(g: Gen) -> None:
    """Atomics of all blocks on the same elements: integers, one op, old values unused."""
    name, d = g.pick(COMMUTING), g.pick(SHARED)
    n = g.pick((1, 4, 8, 13))
    fill = "ones" if name == "and" else "zeros"
    array = g.fresh("y")
    g.params.append(Param(array, f"np.{fill}({(n,)}, np.{DTYPES[d].name})" + (" * 255" if name == "and" else "")))
    shape = g.shape(1, 1)
    index, value = g.want("i32", shape, clean=True), g.want(d, shape, clean=True)
    raw = g.chance(0.3)
    text = (f"{array}.get_raw_memory().atomic_{name}_offset({{0}} % {n}, {{1}})" if raw else
            f"ct.atomic_{name}({array}, {{0}} % {n}, {{1}}" + g.pick(("", ", memory_order=ct.MemoryOrder.RELAXED",
                                                                      ", memory_order='ACQ_REL'")) + ")")

    def fn(ctx, i, v):
        reference.update(ctx.memory[array], (i % np.int32(n),), v, ATOMIC[name])

    op = f"atomic_{name}" + ("_offset" if raw else "")
    do(g, text, (index, value), fn, ((op, d), ("mod", "i32"), *((("get_raw_memory", d),) if raw else ())), "atomic")


def own_atomic(g: Gen) -> None:
    """Atomics on elements that only one block touches, each once: any dtype, and the old value is used."""
    name = g.pick(("add", "xchg", "add", "xchg", "xchg", *COMMUTING))
    d = g.pick({"add": (*SHARED, *FLOATS), "xchg": (*SHARED, "f32", "f64")}.get(name, SHARED))
    n = g.pick((2, 4, 8))
    array, value, raw = g.fresh("y"), g.want(d, (n,), clean=name not in ("add", "xchg")), g.chance(0.4)
    np_type = NP.get(d, f"np.{DTYPES[d].name}")
    g.params.append(Param(array, f"data({(n * g.blocks,)}, {np_type}, 0, 4)"))
    where = f"{{0}} * {n} + ct.arange({n}, dtype=ct.int32)"
    text = (f"{array}.get_raw_memory().atomic_{name}_offset({where}, {{1}})" if raw
            else f"ct.atomic_{name}({array}, {where}, {{1}})")
    f = meaning.arithmetic("add", DTYPES[d]) if name == "add" else ATOMIC[name]

    def fn(ctx, b, v):
        return reference.update(ctx.memory[array], (b * np.int32(n) + np.arange(n),), v, f)

    op = f"atomic_{name}" + ("_offset" if raw else "")
    free = max(value.soft, int(name == "add" and d in FLOATS))
    e = Expr(text, (g.block, value), T(d, (n,)), fn, ((op, d), *own_ops(d, raw)), value.mag + 1, free)
    if g.trips == 1:
        g.let(e, "atomic")
    else:
        g.out.append(Do(e, "atomic"))


def own_ops(d: str, raw: bool) -> tuple:
    return (("arange", "i32"), ("mul", "i32"), ("add", "i32"), *((("get_raw_memory", d),) if raw else ()))


def own_cas(g: Gen) -> None:
    d, n = g.pick((*SHARED, "f32", "f64")), g.pick((2, 4))
    array, raw = g.fresh("y"), g.chance(0.4)
    g.params.append(Param(array, f"data({(n * g.blocks,)}, np.{DTYPES[d].name}, 1, 2)"))
    new = g.want(d, (n,), clean=True)
    host = DTYPES[d].host.type
    one = "1.0" if d in FLOATS else "1"
    where = f"{{0}} * {n} + ct.arange({n}, dtype=ct.int32)"
    text = (f"{array}.get_raw_memory().atomic_cas_offset({where}, {one}, {{1}})" if raw
            else f"ct.atomic_cas({array}, {where}, {one}, {{1}})")

    def fn(ctx, b, v):
        return reference.update(ctx.memory[array], (b * np.int32(n) + np.arange(n),), v,
                                lambda old, w: w if old == host(1) else old)

    op = "atomic_cas" + ("_offset" if raw else "")
    e = Expr(text, (g.block, new), T(d, (n,)), fn, ((op, d), *own_ops(d, raw)), max(2, new.mag), new.soft)
    if g.trips == 1:
        g.let(e, "atomic")
    else:
        g.out.append(Do(e, "atomic"))


def view_atomic(g: Gen) -> None:
    """Atomics of all blocks on the same tile of a view."""
    name, d = g.pick(COMMUTING), g.pick(SHARED)
    tile = g.pick(((4,), (8,), (2, 4)))
    sizes = tuple(n * 2 - g.pick((0, 1)) for n in tile)
    array = g.fresh("y")
    g.params.append(Param(array, f"data({sizes}, np.{DTYPES[d].name}, 0, 9)"))
    index = tuple(g.index(n) for n in tiles(sizes, tile))
    value = g.want(d, tile, clean=True)

    def fn(ctx, *xs):
        corners = starts(xs[:-1], tile)
        grids = np.ix_(*(s + np.arange(n) for s, n in zip(corners, tile, strict=True)))
        reference.update(ctx.memory[array], grids, xs[-1], ATOMIC[name])

    do(g, f"{array}.tiled_view({tile}).atomic_store_{name}({index_text(len(tile))}, {{{len(tile)}}})", (*index, value),
       fn,
       (("tiled_view", d), (f"view_atomic_store_{name}", d)), "atomic")


def remaining(g: Gen, count: int) -> None:
    """Store the variables of branches and loops, and those that nothing has read yet, the last first."""
    seen = list(reversed(g.scope))
    joined = [v for v in seen if v in g.joined]
    left = [v for v in seen if v.text in g.unused and v not in joined]
    others = [v for v in seen if v not in joined and v not in left and prod(v.t.shape) > 1]
    for v in (joined[:2] + left + others)[:count]:
        store(g, g.use(v))

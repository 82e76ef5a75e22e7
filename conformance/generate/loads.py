"""Reading memory: tile loads, gathers, views, raw memory, slices, lists. Arrays that are read are never written."""

from __future__ import annotations

from math import prod

import numpy as np

from conformance.generate import reference
from conformance.generate.core import DTYPES, NP, Arr, Gen, T, number, shape_text
from conformance.generate.dtypes import D, span
from conformance.generate.tree import Expr, Param, Var

PADS = {"ZERO": 0, "NEG_ZERO": -0.0, "NAN": np.nan, "POS_INF": np.inf, "NEG_INF": -np.inf}


def any_load(g: Gen, dtype: str, shape: tuple[int, ...]) -> Expr:
    """A tile of that type from memory, one way or another."""
    ways = [tile_load] * 5 + [view_load, gather, from_slice]
    if len(shape) == 1:
        ways += [gather, raw_load]
    if 1 <= len(shape) <= 3:
        ways += [from_list, foreign]
    if len(shape) >= 2:
        ways += [advanced]
    e = g.pick(ways)(g, dtype, shape)
    e.constant = False
    return g.let(e) if g.chance(0.7) else e


def input_array(g: Gen, dtype: str, rank: int, least: tuple[int, ...] = ()) -> Arr:
    """An array that is only read; `least`: sizes of at least one tile, if possible a few."""
    known = [a for a in g.arrays if a.dtype == dtype and len(a.shape) == rank]
    if known and (g.chance(0.6) or len(g.arrays) > 9):
        return g.pick(known)
    shape = tuple(max(1, s * g.pick((1, 1, 2, 3)) - g.pick((0, 0, 0, 1, 3))) for s in least or (8,) * rank)
    a = Arr(g.fresh("x"), dtype, shape, special=dtype in ("f16", "bf16", "f32", "f64") and g.chance(0.12))
    g.arrays.append(a)
    note = g.pick(("", "", "", "ct.IndexedWithInt64"))
    g.params.append(Param(a.name, made(g, a), note))
    return a


def made(g: Gen, a: Arr) -> str:
    """The host expression of an input array: packed, transposed, reversed, or part of a larger one."""
    d, shape = DTYPES[a.dtype], a.shape
    low, high = limits(g, d)
    dtype = NP.get(a.dtype, f"np.{d.name}")
    make = lambda s: f"data({s}, {dtype}, {low}, {high}{', special=True' if a.special else ''})"
    kind = g.rng.randrange(8)
    if kind == 3 and shape and not g.options.official and g.chance(0.5):  # a stride below zero [SPEC-3]
        return make(shape) + "[::-1]"
    if kind == 0 and len(shape) > 1:
        return make(shape[::-1]) + ".T"
    if kind == 1 and shape:
        return make((*shape[:-1], shape[-1] * 2)) + "[..., ::2]"
    if kind == 2 and shape:
        return make((shape[0] + 1, *shape[1:])) + "[1:]"
    return make(shape)


def limits(g: Gen, d: D) -> tuple:
    if d.kind == "b":
        return 0, 1
    if d.short == "e8m0":
        return 1, 4
    if d.kind in "iu":
        low, high = span(d.short)
        return g.pick(((max(low, -8), 9), (max(low, -100), 100), (low, high), (max(low, -3), 3)))
    return g.pick(((-4, 4), (-1, 1), (0, 2)))


# ------------------------------------------------------------------ tile indices


def tiles(shape: tuple[int, ...], tile: tuple[int, ...], step: tuple[int, ...] | None = None) -> tuple[int, ...]:
    return tuple(-(-n // s) for n, s in zip(shape, step or tile, strict=True))


def index_text(n: int, first: int = 0) -> str:
    """A tuple of operands as an index."""
    inner = ", ".join(f"{{{first + i}}}" for i in range(n))
    return f"({inner},)" if n == 1 else f"({inner})"


def starts(index: tuple, tile: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) * t for i, t in zip(index, tile, strict=True))


def padding(g: Gen, d: D, ragged: bool) -> tuple[str, float]:
    """The padding of a load as text, and its value. It may be left out if nothing is outside."""
    if not ragged and g.chance(0.7):
        return "", 0
    name = g.pick(("ZERO", "ZERO", *(PADS if d.kind == "f" and not d.restricted else ())))
    spelled = g.pick((f"ct.PaddingMode.{name}", repr(name)))
    return f", padding_mode={spelled}", PADS[name]


def tile_load(g: Gen, dtype: str, shape: tuple[int, ...]) -> Expr:
    d, rank = DTYPES[dtype], len(shape)
    tile = shape or (1,) * g.pick((1, 2))
    order = list(range(len(tile)))
    if rank > 1 and g.chance(0.25):
        g.rng.shuffle(order)
    in_array = [0] * len(tile)
    for i, k in enumerate(order):
        in_array[k] = tile[i]
    a = input_array(g, dtype, len(tile), tuple(in_array))
    counts = tiles(a.shape, tuple(in_array))
    index = [g.index(counts[k]) for k in order]
    ragged = any(n % t for n, t in zip(a.shape, in_array, strict=True))
    pad, value = padding(g, d, ragged)
    how = "" if order == sorted(order) else (", order='F'" if order == sorted(order)[::-1] and g.chance(0.7)
                                             else f", order={tuple(order)}")
    extra = g.pick(("", "", "", ", latency=4", ", allow_tma=False"))
    if not ragged and g.chance(0.1):
        extra += ", check_bounds=False"
    where = index_text(len(tile)) if rank != 1 or g.chance(0.5) else "{0}"
    size = shape_text(shape) if rank != 1 or g.chance(0.5) else str(shape[0])

    def fn(ctx, *index):
        x = ctx.memory[a.name].transpose(order)
        return reference.load(x, starts(index, tile), tile, value).reshape(shape)

    return Expr(f"ct.load({a.name}, {where}, {size}{how}{pad}{extra})", tuple(index), T(dtype, shape), fn,
                (("load", dtype),), 200 if a.special else 4)


def view_load(g: Gen, dtype: str, shape: tuple[int, ...]) -> Expr:
    d, tile = DTYPES[dtype], shape or (1,)
    a = input_array(g, dtype, len(tile), tile)
    step = tuple(g.pick((t, t, max(1, t // 2), t + 1)) for t in tile) if shape and g.chance(0.3) else None
    counts = tiles(a.shape, tile, step)
    index = tuple(g.index(n) for n in counts)
    pad, value = padding(g, d, step is not None or any(n % t for n, t in zip(a.shape, tile, strict=True)))
    text = f"{a.name}.tiled_view({shape_text(shape)}{pad}{f', traversal_steps={step}' if step else ''})"

    def fn(ctx, *index):
        return reference.load(ctx.memory[a.name], starts(index, step or tile), tile, value).reshape(shape)

    return Expr(f"{text}.load({index_text(len(tile))})", index, T(dtype, shape), fn,
                (("tiled_view", dtype), ("view_load", dtype)), 200 if a.special else 4)


def gather(g: Gen, dtype: str, shape: tuple[int, ...]) -> Expr:
    """A gather. Indices are any integers; those out of range give the padding value."""
    rank = g.pick((1, 1, 2)) if shape else 1
    a = input_array(g, dtype, rank, (8,) * rank)
    index = [index_tile(g, shape, n) for n in a.shape]
    kind = g.pick(("i8", "i16", "i32", "i32", "i64", "u8", "u32"))
    if not g.options.official and g.chance(0.2):
        index[0] = g.cast(index[0], kind)
    args, extra, mask = list(index), "", None
    if g.chance(0.4):
        mask = g.want("b1", shape, clean=True)
        extra += f", mask={{{len(args)}}}"
        args.append(mask)
    lit = g.literal(dtype)
    if g.chance(0.5):
        extra += f", padding_value={lit!r}"
        pad = np.asarray(lit).astype(DTYPES[dtype].host)
    elif dtype == "e8m0":
        extra, pad = extra + ", padding_value=1.0", np.asarray(1.0).astype(DTYPES[dtype].host)
    else:
        pad = np.asarray(0).astype(DTYPES[dtype].host)
    where = "{0}" if rank == 1 and g.chance(0.6) else index_text(rank)

    def fn(ctx, *xs):
        return reference.gather(ctx.memory[a.name], xs[:rank], xs[rank] if mask is not None else None, pad)

    return Expr(f"ct.gather({a.name}, {where}{extra})", tuple(args), T(dtype, shape), fn, (("gather", dtype),),
                200 if a.special else 4)


def index_tile(g: Gen, shape: tuple[int, ...], n: int) -> Expr:
    """A tile of indices, most of them in range."""
    x = g.want("i32", shape, clean=True)
    if g.chance(0.15):
        return x
    return Expr(f"({{0}} % {n})", (x,), T("i32", shape), lambda _, v: v % np.int32(n), (("mod", "i32"),))


def raw_load(g: Gen, dtype: str, shape: tuple[int, ...]) -> Expr:
    """Offsets count elements from the array's first one: only for a packed array."""
    d = DTYPES[dtype]
    a = Arr(g.fresh("x"), dtype, (g.pick((8, 16, 20)),))
    g.arrays.append(a)
    low, high = limits(g, d)
    g.params.append(Param(a.name, f"data({a.shape}, {NP.get(dtype, f'np.{d.name}')}, {low}, {high})"))
    at = Expr(f"({{0}} % {a.shape[0]})", (g.want("i32", shape, clean=True),), T("i32", shape),
              lambda _, v: v % np.int32(a.shape[0]), (("mod", "i32"),))
    args, extra = (at,), ""
    if g.chance(0.5):
        args, extra = (at, g.want("b1", shape, clean=True)), ", mask={1}, padding_value=1"
    pad = np.asarray(1).astype(d.host)
    return Expr(f"{a.name}.get_raw_memory().load_offset({{0}}{extra})", args, T(dtype, shape),
                lambda ctx, i, m=None: reference.gather(ctx.memory[a.name], (i,), m, pad),
                (("get_raw_memory", dtype), ("load_offset", dtype)), 4)


def from_slice(g: Gen, dtype: str, shape: tuple[int, ...]) -> Expr:
    """A load of a slice of an array: the slice starts at a run-time position."""
    tile = shape or (1,)
    a = input_array(g, dtype, len(tile), tile)
    axis = g.rng.randrange(len(tile))
    n, size = a.shape[axis], max(1, min(a.shape[axis], tile[axis] + g.pick((0, 0, -1, 1))))
    start = g.index(n - size + 1)
    s = start if isinstance(start, Var) else g.let(start)
    sliced = (*a.shape[:axis], size, *a.shape[axis + 1:])
    index = tuple(g.index(k) for k in tiles(sliced, tile))
    pad, value = padding(g, DTYPES[dtype], any(k % t for k, t in zip(sliced, tile, strict=True)))

    def fn(ctx, s, *index):
        x = ctx.memory[a.name]
        x = x[(slice(None),) * axis + (slice(int(s), int(s) + size),)]
        return reference.load(x, starts(index, tile), tile, value).reshape(shape)

    part = f"{a.name}.slice({axis}, {s.text}, {s.text} + {size})"
    text = f"ct.load({part}, {index_text(len(tile), 1)}, {shape_text(shape)}{pad})"
    return Expr(text, (g.use(s), *index), T(dtype, shape), fn, (("slice", dtype), ("load", dtype), ("add", "i32")),
                200 if a.special else 4)


def from_list(g: Gen, dtype: str, shape: tuple[int, ...]) -> Expr:
    """A load of one array of a list of them."""
    d, n, name = DTYPES[dtype], g.pick((2, 3)), g.fresh("xs")
    sizes = tuple(s * g.pick((1, 2)) for s in shape)
    low, high = limits(g, d)
    one = f"data({sizes}, {NP.get(dtype, f'np.{d.name}')}, {low}, {high})"
    g.params.append(Param(name, f"[{', '.join([one] * n)}]"))
    i, index = g.index(n), tuple(g.index(k) for k in tiles(sizes, shape))
    which = "{0}"
    if g.chance(0.4):
        i, which = g.block, f"{{0}} % len({name})"

    def fn(ctx, i, *index):
        return reference.load(ctx.memory[name][int(i) % n], starts(index, shape), shape)

    return Expr(f"ct.load({name}[{which}], {index_text(len(shape), 1)}, {shape_text(shape)})", (i, *index),
                T(dtype, shape), fn, (("list_item", dtype), ("list_len", dtype), ("load", dtype)), 4)


def foreign(g: Gen, dtype: str, shape: tuple[int, ...]) -> Expr:
    """A load through an array made of a pointer, sizes and strides."""
    d = DTYPES[dtype]
    a = Arr(g.fresh("x"), dtype, (prod(shape),))
    g.arrays.append(a)
    low, high = limits(g, d)
    g.params.append(Param(a.name, f"data({a.shape}, {NP.get(dtype, f'np.{d.name}')}, {low}, {high})"))
    strides = tuple(prod(shape[k + 1:]) for k in range(len(shape)))
    zero = ", ".join("0" for _ in shape) + ("," if len(shape) == 1 else "")
    array = f"ct.Array.from_foreign({a.name}.foreign_pointer, {shape}, {strides})"
    text = f"ct.load({array}, ({zero}), {shape_text(shape)})"
    return Expr(text, (), T(dtype, shape), lambda ctx: ctx.memory[a.name].reshape(shape),
                (("foreign_pointer", dtype), ("from_foreign", dtype), ("load", dtype)), 4)


def advanced(g: Gen, dtype: str, shape: tuple[int, ...]) -> Expr:
    """A load of the rows at a tile of indices, and of ranges along the other axes."""
    a = input_array(g, dtype, len(shape), shape)
    sparse = g.rng.randrange(len(shape))
    entries, args = [], []
    for k, n in enumerate(shape):
        if k == sparse:
            args.append(index_tile(g, (n,), a.shape[k]))
            entries.append(f"{{{len(args) - 1}}}")
        else:
            args.append(g.index(max(1, a.shape[k])))
            entries.append(f"ct.Slice({{{len(args) - 1}}}, {n})")

    def fn(ctx, *at):
        grids = [x if k == sparse else int(x) + np.arange(n) for k, (x, n) in enumerate(zip(at, shape, strict=True))]
        return reference.gather(ctx.memory[a.name], np.ix_(*grids), None, np.asarray(0).astype(DTYPES[dtype].host))

    return Expr(f"ct.load_advanced_indexing({a.name}, ({', '.join(entries)}), padding_mode=ct.PaddingMode.ZERO)",
                tuple(args), T(dtype, shape), fn, (("load_advanced_indexing", dtype), ("Slice", dtype)),
                200 if a.special else 4)


def sizes(g: Gen) -> Expr | None:
    """A number that the array or the grid gives: its shape, its tiles, the blocks."""
    kind = g.rng.randrange(5)
    if kind == 0:
        axis = g.rng.randrange(3)
        name = g.pick(("bid", "num_blocks"))
        return Expr(f"ct.{name}({axis})", (), T("i32"),
                    lambda ctx: np.asarray((ctx.bid if name == "bid" else ctx.grid)[axis], np.int32), ((name, "i32"),),
                    3)
    known = [a for a in g.arrays if a.shape and a.name.startswith("x")]
    if not known:
        return None
    a = g.pick(known)
    axis, n = g.rng.randrange(len(a.shape)), g.pick((2, 4))
    tile = tuple(n for _ in a.shape)
    count = np.asarray(-(-a.shape[axis] // n), np.int32)
    if kind == 1:
        return Expr(f"ct.num_tiles({a.name}, {axis}, {tile})", (), T("i32"), lambda _: count,
                    (("num_tiles", a.dtype),), 4)
    if kind == 2:
        return Expr(f"{a.name}.tiled_view({tile}).num_tiles({axis})", (), T("i32"), lambda _: count,
                    (("tiled_view", a.dtype), ("view_num_tiles", a.dtype)), 4)
    if kind == 3:
        x = g.want("i32", (), clean=True)
        return Expr("ct.assume_divisible_by({0} * 4, 4)", (x,), T("i32"), lambda _, v: v * np.int32(4),
                    (("assume_divisible_by", "i32"), ("mul", "i32")), 6)
    return Expr(f"({a.name}.shape[{axis}] + {number(n).source()})", (), T("i32"),
                lambda _: np.asarray(a.shape[axis] + n, np.int32), (("array_dim", a.dtype), ("add", "i32")), 4) \
        if "Int64" not in next(p.annotation for p in g.params if p.name == a.name) else None

"""Productions: casts, bitcasts, bytes."""

from __future__ import annotations

import numpy as np

from conformance.generate import loads, meaning
from conformance.generate.core import ALL, CAP, Gen
from conformance.generate.dtypes import DTYPES, FLOATS, INTS, RESTRICTED, T
from conformance.generate.tree import Expr

DIRECTED = {("f64", "f32"): ("RZ", "RM", "RP", "RN"), ("f32", "f16"): ("RZ", "RN"), ("f32", "bf16"): ("RZ", "RN"),
            ("f64", "f16"): ("RZ",), ("f64", "bf16"): ("RZ",), ("f32", "tf32"): ("RZ", "RA", "RN"),
            ("bf16", "f16"): ("RZ", "RM", "RP", "RA")}


def cast(g: Gen) -> Expr:
    if g.chance(0.2):
        (a, b), modes = g.pick(tuple(DIRECTED.items()))
        if g.options.official:  # its assembler fails on the others
            modes = tuple(m for m in modes if m not in ("RM", "RP"))
        return g.cast(g.want(a, g.shape(), mag=CAP.get(b)), b, g.pick(modes))
    a = g.dtype(ALL)
    b = g.pick([d for d in ALL if d != a and not (DTYPES[a].restricted and DTYPES[d].kind in "iub")])
    x = g.want(a, g.shape(), clean=DTYPES[b].kind in "iub" or b in RESTRICTED)
    return g.cast(x, b)


SAME_WIDTH = (("i8", "u8", "e4m3", "e5m2"), ("i16", "u16", "f16", "bf16"), ("i32", "u32", "f32"), ("i64", "u64", "f64"))


def number_bits(g: Gen, d: str, shape: tuple) -> Expr | None:
    """A tile whose bits the language fixes: nothing left open, and no NaN, whose bits an implementation may choose."""
    if DTYPES[d].restricted:
        return None if not g.memory else loads.tile_load(g, d, shape)
    x = g.want(d, shape, clean=True)
    if d not in FLOATS or x.soft:
        return None if x.soft else x
    v = g.let(x)
    return Expr("ct.where(ct.isnan({0}), 0.0, {1})", (g.use(v), v), x.t,
                lambda _, a, b: np.where(np.isnan(a.astype(np.float64)), np.zeros_like(b), b),
                (("isnan", d), ("where", d)), x.mag)


def bitcast(g: Gen) -> Expr | None:
    group = g.pick(SAME_WIDTH)
    a = g.pick(group)
    b = g.pick([d for d in group if d != a])
    x = number_bits(g, a, g.shape())
    if x is None:
        return None
    f = meaning.bitcast(DTYPES[a], DTYPES[b])
    return Expr(f"ct.bitcast({{0}}, ct.{DTYPES[b].name})", (x,), T(b, x.t.shape), lambda _, v: f(v), (("bitcast", b),),
                200)


def packing(g: Gen) -> Expr | None:
    if g.chance(0.5):
        d = g.dtype((*INTS, *FLOATS))
        x = number_bits(g, d, g.shape(1))
        return None if x is None else Expr(
            "ct.pack_to_bytes({0})", (x,), T("u8", (x.t.size * DTYPES[d].bits // 8,)), lambda _, v: meaning.to_bytes(v),
            (("pack_to_bytes", d),))
    d = g.dtype((*INTS, *FLOATS))
    width = DTYPES[d].bits // 8
    n = g.pick([n for n in (1, 2, 4, 8, 16, 32) if n >= width])
    f = meaning.from_bytes(DTYPES[d])
    return Expr(f"ct.unpack_from_bytes({{0}}, ct.{DTYPES[d].name})", (g.want("u8", (n,), clean=True),),
                T(d, (n // width,)), lambda _, v: f(v), (("unpack_from_bytes", d),), 200)

"""Tiles of the formats that only new GPUs have. These have no arithmetic: their elements are made, moved, chosen,
packed and read back.
"""

from __future__ import annotations

from math import prod

import numpy as np

from conformance.generate import elementwise, loads, structural
from conformance.generate.control import ternary
from conformance.generate.core import EVERY, Gen, T
from conformance.generate.dtypes import DTYPES, FLOATS, SM100
from conformance.generate.tree import Expr, Var

RESTRICTED = tuple(d for d in EVERY if DTYPES[d].restricted)
MOVING = (
    structural.reshaped, structural.broadcasted, structural.expanded, structural.permuted, structural.joined,
    structural.extracted, structural.inserted, structural.item, structural.stacked, structural.ramp, structural.chosen,
    elementwise.choice, elementwise.invert, elementwise.invert, structural.permuted, ternary,
)


def made(g: Gen, d: str, shape: tuple[int, ...]) -> Expr:
    """A tile of a format of sm_100: from memory, from other floats, from a number."""
    g.features.add("sm_100")
    kind = g.rng.randrange(4)
    if kind == 0 and g.memory and d == "e2m1":
        return loads.any_load(g, d, shape)
    if kind == 0 and g.memory and d == "e8m0" and 1 <= len(shape) <= 3:
        return g.pick((loads.gather, loads.from_list, loads.foreign))(g, d, shape)
    if kind <= 1 and d != "e8m0":
        return rounded(g, d, shape)
    return g.filled(d, shape)


def rounded(g: Gen, d: str, shape: tuple[int, ...]) -> Expr:
    """Floats cast to that format: no NaN, and no negative numbers if the format has no sign."""
    a = g.pick(FLOATS)
    x = g.want(a, shape, clean=True)
    v, host = g.use(x if isinstance(x, Var) else g.let(x)), DTYPES[a].host
    low = -4.0 if d == "e2m1" else 0.0
    inside = Expr(f"ct.where(({{0}} >= {low}) & ({{1}} <= 4.0), {{2}}, 1.0)", (v, v, v), v.t,
                  lambda _, p, q, r: np.where((p >= low) & (p <= 4), r, np.ones_like(r)).astype(host),
                  (("greater_equal", a), ("less_equal", a), ("bitwise_and", "b1"), ("where", a)), 2, v.soft)
    return g.cast(inside, d)


def moving(g: Gen) -> Expr | None:
    """An expression of a format without arithmetic, or of bool_."""
    d = g.pick(RESTRICTED if g.options.sm_100 and g.chance(0.7) else tuple(x for x in RESTRICTED if x not in SM100))
    if d in SM100:
        g.features.add("sm_100")
    g.only = d
    try:
        return g.pick((*MOVING, packed, packed, back))(g)
    finally:
        g.only = ""


def packed(g: Gen) -> Expr:
    """Its bytes, and the elements of those; or its bits as integers, and back."""
    d = g.dtype(RESTRICTED)
    x, name = g.want(d, g.shape(1)), f"ct.{DTYPES[d].name}"
    bits = "u32" if d == "tf32" else "u8"
    lacking = ("e2m1", "tf32") if g.options.official else ("e2m1",)  # 1.7.0 has no bitcast of tf32
    if d not in lacking and g.chance(0.4):
        return Expr(f"ct.bitcast(ct.bitcast({{0}}, ct.{DTYPES[bits].name}), {name})", (x,), x.t, lambda _, v: v,
                    (("bitcast", bits), ("bitcast", d)), x.mag, x.soft)
    if d == "e2m1" and x.t.size % 2:
        x = structural.expanded(g)
        return x
    return Expr(f"ct.unpack_from_bytes(ct.pack_to_bytes({{0}}), {name})", (x,), T(d, (x.t.size,)),
                lambda _, v: v.reshape(-1), (("pack_to_bytes", d), ("unpack_from_bytes", d)), x.mag, x.soft)


def back(g: Gen) -> Expr:
    """A tile cast to a format that can be added and stored."""
    d = g.dtype(RESTRICTED)
    x = g.want(d, g.shape(), clean=True)
    if d == "e2m1" and prod(x.t.shape) % 2 == 0 and x.t.shape:  # the first of two elements is the low half of a byte
        def nibbles(_, v):
            b = np.ascontiguousarray(v).reshape(-1).view(np.uint8) & 15
            return b[::2] | b[1::2] << np.uint8(4)

        return Expr("ct.pack_to_bytes({0})", (x,), T("u8", (x.t.size // 2,)), nibbles, (("pack_to_bytes", d),))
    return g.cast(x, g.pick(FLOATS) if d != "e8m0" else g.pick(("f32", "f64", "bf16")))


def created(g: Gen) -> Expr:
    """A tile of any dtype that an op makes without operands."""
    d = g.pick(EVERY if g.options.sm_100 and g.chance(0.15) else tuple(x for x in EVERY if x not in SM100))
    if d in SM100:
        g.features.add("sm_100")
    return g.filled(d, g.shape())

"""Productions: shapes, parts, reductions, scans, matrix products."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from conformance.generate import meaning
from conformance.generate.core import CAP, EVERY, Gen, broadcast, broadcasts, reshape, shape_text, summed
from conformance.generate.dtypes import ARITHMETIC, DTYPES, FLOATS, INTS, T
from conformance.generate.loads import tile_load
from conformance.generate.tree import Expr

ANY = EVERY


def moved(g: Gen, text: str, x: Expr, shape: tuple, f, op: str) -> Expr:
    """An op that only moves elements."""
    return Expr(text, (x,), T(x.t.dtype, shape), lambda _, v: f(v), ((op, x.t.dtype),), x.mag, x.soft)


def reshaped(g: Gen) -> Expr:
    shape = g.shape(1)
    x = g.want(g.dtype(ANY), shape)
    n = prod(shape)
    to = g.pick([s for s in ((n,), (1, n), (n, 1), (2, n // 2), (n // 2, 2),
                             (2, 1, n // 2)) if prod(s) == n and min(s)])
    if g.chance(0.2):
        k = g.rng.randrange(len(to))
        text = f"ct.reshape({{0}}, {shape_text((*to[:k], -1, *to[k + 1:]))})"
        return moved(g, text, x, to, lambda v: v.reshape(to), "reshape")
    return reshape(x, to)


def broadcasted(g: Gen) -> Expr:
    small = g.shape(0, 2)
    to = [s for s in ((4, 4), (2, 8), (2, 2, 2), (2, 4, 4), (8,), (4, 8)) if broadcasts(small, s)]
    return broadcast(g.want(g.dtype(ANY), small), g.pick(to) if to else small)


def expanded(g: Gen) -> Expr:
    x = g.want(g.dtype(ANY), g.shape(0, 2))
    n = len(x.t.shape)
    if g.chance(0.5):
        k = g.rng.randrange(-(n + 1), n + 1)
        shape = np.expand_dims(np.empty(x.t.shape), k).shape
        return moved(g, f"ct.expand_dims({{0}}, {k})", x, shape, lambda v: np.expand_dims(v, k), "expand_dims")
    keys = ("[None, ...]", "[..., None]") if n != 1 else ("[None, :]", "[:, None]", "[None]")
    key = g.pick(keys)
    front = key.startswith("[None")
    shape = (1, *x.t.shape) if front else (*x.t.shape, 1)
    text = "{0}" + key if len(x.source()) < 6 else "(" + "{0})" + key
    return moved(g, text, x, shape, lambda v: v.reshape(shape), "expand_dims")


def permuted(g: Gen) -> Expr:
    x = g.want(g.dtype(ANY), g.shape(2))
    n = len(x.t.shape)
    if g.chance(0.5):
        axes = list(range(n))
        g.rng.shuffle(axes)
        text = g.pick((f"ct.permute({{0}}, {tuple(axes)})", f"{{0}}.permute({tuple(axes)})"))
        return moved(g, text, x, tuple(x.t.shape[a] for a in axes), lambda v: v.transpose(axes), "permute")
    a, b = (0, 1) if n == 2 else g.pick(((0, 1), (1, 2), (0, -1)))
    args = "" if n == 2 and g.chance(0.5) else f", {a}, {b}"
    text = g.pick((f"ct.transpose({{0}}{args})", f"{{0}}.transpose({args[2:]})"))
    shape = np.swapaxes(np.empty(x.t.shape), a, b).shape
    return moved(g, text, x, shape, lambda v: np.swapaxes(v, a, b), "transpose")


def joined(g: Gen) -> Expr:
    d, shape = g.dtype(ANY), g.shape(1)
    x, y = g.want(d, shape), g.want(d, shape)
    k = g.rng.randrange(-len(shape), len(shape))
    to = list(shape)
    to[k] *= 2
    return Expr(f"ct.cat(({{0}}, {{1}}), {k})", (x, y), T(d, tuple(to)), lambda _, a, b: np.concatenate((a, b), k),
                (("cat", d),), max(x.mag, y.mag), max(x.soft, y.soft))


def parts(shape: tuple, part: tuple, index: tuple) -> tuple:
    return tuple(slice(int(i) * p, int(i) * p + p) for i, p in zip(index, part, strict=True))


def extracted(g: Gen) -> Expr:
    x = g.want(g.dtype(ANY), g.shape(1))
    shape = x.t.shape
    scalar = g.chance(0.2)
    part = (1,) * len(shape) if scalar else tuple(max(1, n // g.pick((1, 2, 4))) for n in shape)
    index = tuple(g.index(n // p) for n, p in zip(shape, part, strict=True))
    where = ", ".join(f"{{{i + 1}}}" for i in range(len(index))) + ("," if len(index) == 1 else "")
    text = g.pick((f"ct.extract({{0}}, ({where}), {() if scalar else part})",
                   f"{{0}}.extract(({where}), {() if scalar else part})"))
    return Expr(text, (x, *index), T(x.t.dtype, () if scalar else part),
                lambda _, v, *i: v[parts(shape, part, i)].reshape(() if scalar else part),
                (("extract", x.t.dtype),), x.mag, x.soft)


def inserted(g: Gen) -> Expr:
    x = g.want(g.dtype(ANY), g.shape(1))
    shape = x.t.shape
    part = tuple(max(1, n // g.pick((1, 2, 2))) for n in shape)
    y = g.want(x.t.dtype, part)
    index = tuple(g.index(n // p) for n, p in zip(shape, part, strict=True))
    where = ", ".join(f"{{{i + 2}}}" for i in range(len(index))) + ("," if len(index) == 1 else "")

    def fn(_, v, w, *i):
        v = v.copy()
        v[parts(shape, part, i)] = w
        return v

    return Expr(f"ct.insert({{0}}, ({where}), {{1}})", (x, y, *index), x.t, fn, (("insert", x.t.dtype),),
                max(x.mag, y.mag), max(x.soft, y.soft))


def item(g: Gen) -> Expr:
    x = g.want(g.dtype(ANY), g.pick(((1,), (1, 1))))
    return moved(g, "{0}.item()", x, (), lambda v: v.reshape(()), "item")


def stacked(g: Gen) -> Expr:
    d = g.dtype(ANY)
    xs = tuple(g.want(d, ()) for _ in range(g.pick((2, 4))))
    text = "ct.astile((" + ", ".join(f"{{{i}}}" for i in range(len(xs))) + f"), dtype=ct.{DTYPES[d].name})"
    return Expr(text, xs, T(d, (len(xs),)), lambda _, *v: np.stack(v), (("astile", d),), max(x.mag for x in xs),
                max(x.soft for x in xs))


def ramp(g: Gen) -> Expr:
    d, n = g.dtype(tuple(d for d in ANY if d != "e8m0")), g.pick((4, 8, 16))
    start, step = g.pick((0, 1, 3)), g.pick((1, 2, 3))
    if d not in (*INTS, *FLOATS):
        n, start, step = 2 if d == "b1" else 4, 0, 1
    host = DTYPES[d].host
    i = np.arange(n)
    return Expr(f"ct.arange({n}, dtype=ct.{DTYPES[d].name}, start={start}, step={step})", (), T(d, (n,)),
                lambda _: (i * step + start).astype(host), (("arange", d),), 6)


# ------------------------------------------------------------------ reductions and scans


def folded(g: Gen) -> Expr:
    name = g.pick(("sum", "prod", "max", "min", "argmax", "argmin"))
    d, shape = g.dtype(("b1", *INTS, *FLOATS)), g.shape(1)
    n, cap = prod(shape), CAP.get(d, 40)
    clean = name.startswith("arg")
    mag = {"sum": cap - 5, "prod": min(2, cap / n)}.get(name)
    x = g.want(d, shape, clean=clean, mag=mag)
    axis = g.rng.randrange(len(shape)) if g.chance(0.6) else None
    keep = g.chance(0.25)
    propagate = d in FLOATS and name not in ("sum", "prod") and g.chance(0.2)
    to = "i32" if d == "b1" or clean else d
    a = x.t.d if name in ("argmax", "argmin") else DTYPES[to]
    f = {"sum": lambda: meaning.total("sum", a), "prod": lambda: meaning.total("prod", a),
         "max": lambda: meaning.best(1, a, propagate), "min": lambda: meaning.best(-1, a, propagate),
         "argmax": lambda: meaning.best_index(1, a, propagate),
         "argmin": lambda: meaning.best_index(-1, a, propagate)}[name]()
    whole = meaning.along(f, axis, keep)
    r = tuple(1 for _ in shape) if axis is None and keep else () if axis is None else tuple(
        1 if k == axis else m for k, m in enumerate(shape) if keep or k != axis)
    args = ("" if axis is None and g.chance(0.7) else f", axis={axis}") + (", keepdims=True" if keep else "")
    args += ", propagate_nan=True" if propagate else ""
    free = 2 if d in FLOATS and name in ("sum", "prod") else 0
    return Expr(f"ct.{name}({{0}}{args})", (x,), T(to, r), lambda _, v: whole(meaning.convert(v, x.t.d, a)),
                ((name, d),), summed(x.mag, n) if name == "sum" else n * 2 if name == "prod" else x.mag,
                max(x.soft, free))


def chosen(g: Gen) -> Expr:
    """A reduction or scan of any dtype that takes the value of the least key."""
    name, shape = g.pick(("reduce", "scan")), g.shape(1)
    d = g.dtype(ARITHMETIC if g.options.official else ANY)  # formats without arithmetic do not assemble there
    x, axis = g.want(d, shape, clean=True), g.rng.randrange(len(shape))
    n = shape[axis]
    c, r = g.rng.randrange(n), shape if name == "scan" else shape[:axis] + shape[axis + 1:]
    line = tuple(n if k == axis else 1 for k in range(len(shape)))
    keys = f"ct.broadcast_to((ct.arange({n}, dtype=ct.int32) ^ {c}).reshape({line}), {shape})"
    f = lambda u, v: (np.minimum(u[0], v[0]), np.where(u[0] <= v[0], u[1], v[1]))
    whole = meaning.tree(f, axis, False) if name == "reduce" else meaning.prefix(f, axis, False)
    text = (f"ct.{name}(({keys}, {{0}}), {axis}, lambda p, q, s, t: (min(p, s), ct.where(p <= s, q, t)), "
            f"({2**31 - 1}, 1))[1]")

    def fn(_, v):
        k = np.broadcast_to((np.arange(n, dtype=np.int32) ^ np.int32(c)).reshape(line), shape)
        return whole(k, v)[1].astype(v.dtype)

    return Expr(text, (x,), T(d, r), fn, ((name, d), ("arange", "i32"), ("bitwise_xor", "i32"), ("reshape", "i32"),
                                          ("broadcast_to", "i32"), ("where", d), ("less_equal", "i32"),
                                          ("minimum", "i32")), x.mag, x.soft)


# Associative and commutative functions of integers: source, meaning, identity by dtype.
LEAST = {"i": lambda d: -(1 << d.bits - 1), "u": lambda d: 0}
INT_FUNCTIONS = (
    ("lambda p, q: p + q", lambda a, b: a + b, lambda d: 0), ("lambda p, q: p ^ q", lambda a, b: a ^ b, lambda d: 0),
    ("lambda p, q: p * q", lambda a, b: a * b, lambda d: 1), ("max", np.maximum, lambda d: LEAST[d.kind](d)),
    ("ct.maximum", np.maximum, lambda d: LEAST[d.kind](d)), ("ct.bitwise_or", lambda a, b: a | b, lambda d: 0),
    ("lambda p, q: ct.where(p > q, p, q)", np.maximum, lambda d: LEAST[d.kind](d)),
)


def reduced(g: Gen) -> Expr:
    """A reduction or scan with a function of the user's."""
    name, shape = g.pick(("reduce", "scan")), g.shape(1)
    axis = g.rng.randrange(len(shape))
    wrap = meaning.tree if name == "reduce" else meaning.prefix
    flag = g.chance(0.3)
    extra = f", {'keepdims' if name == 'reduce' else 'reverse'}=True" if flag else ""
    r = shape if name == "scan" else tuple(1 if k == axis else m for k, m in enumerate(shape) if flag or k != axis)
    kind = g.rng.randrange(4)
    if kind == 0:
        return two_operands(g, name, shape, axis, partial(wrap, axis=axis), flag, extra, r)
    if kind == 1:
        d = g.dtype(FLOATS)
        x = g.want(d, shape, mag=CAP.get(d, 40) - 6)
        text, f, identity, free = g.pick((
            ("lambda p, q: p + q", meaning.arithmetic("add", DTYPES[d]), "0.0", 2),
            ("lambda p, q: ct.maximum(p, q)", meaning.extreme(DTYPES[d], 1), "float('-inf')", 0),
            ("min", meaning.extreme(DTYPES[d], -1), "float('inf')", 0)))
        x = x if free else no_nan(g, x)
    else:
        d = g.dtype(INTS)
        x, free = g.want(d, shape, clean=True), 0
        text, f, one = g.pick(INT_FUNCTIONS)
        identity = str(one(DTYPES[d]))
        scalars = [v for v in g.scope if v.t == T(d) and not v.soft]
        if scalars and g.chance(0.3):  # reads a variable around it
            v = g.pick(scalars)
            function = f"lambda p, q: ct.maximum(p, q) + ({v.text} - {v.text})"
            largest = wrap(lambda p, q: (np.maximum(p[0], q[0]),), axis, flag)
            identity = LEAST[d[0]](DTYPES[d])
            return Expr(f"ct.{name}({{0}}, {axis}, {function}, {identity}{extra})", (x, g.use(v)), T(d, r),
                        lambda _, a, k: largest(a), ((name, d), ("add", d), ("sub", d), ("maximum", d)))
    whole = wrap(lambda p, q: (f(p[0], q[0]),), axis, flag)
    return Expr(f"ct.{name}({{0}}, {axis}, {text}, {identity}{extra})", (x,), T(d, r), lambda _, v: whole(v),
                ((name, d),), summed(x.mag, prod(shape)), max(x.soft, free))


def no_nan(g: Gen, x: Expr) -> Expr:
    """The tile with 0 for NaN: with NaN, an infinity is no identity of max and min."""
    v, d = g.use(g.let(x)), x.t.dtype
    return Expr("ct.where(ct.isnan({0}), 0.0, {1})", (v, v), x.t,
                lambda _, a, b: np.where(np.isnan(a.astype(np.float64)), np.zeros_like(b), b),
                (("isnan", d), ("where", d)), x.mag, x.soft)


def two_operands(g: Gen, name: str, shape: tuple, axis: int, wrap, flag: bool, extra: str, r: tuple) -> Expr:
    """The least of each row with its position; or, as a scan, the composition of affine maps."""
    if name == "scan":
        d = g.dtype(INTS)
        x, y = g.want(d, shape, clean=True), g.want(d, shape, clean=True)
        text, one = "lambda p, q, s, t: (p * s, q * s + t)", "(1, 0)"
        f = lambda u, v: (u[0] * v[0], u[1] * v[0] + v[1])
    else:
        d = g.dtype((*INTS, "f32", "f64"))
        x, y = g.want(d, shape, clean=True), g.want("i32", shape, clean=True)
        text = "lambda p, q, s, t: (min(p, s), ct.where(p < s, q, ct.where(s < p, t, min(q, t))))"
        one = f"({identity1(d)}, {2**31 - 1})"
        low = meaning.extreme(DTYPES[d], -1)
        f = lambda u, v: (low(u[0], v[0]), np.where(u[0] < v[0], u[1], np.where(
            v[0] < u[0], v[1], np.minimum(u[1], v[1]))))
        x = no_nan(g, x) if d in FLOATS else x
    whole = wrap(f, axis=axis, **({"keepdims": flag} if name == "reduce" else {"reverse": flag}))
    return Expr(f"ct.{name}(({{0}}, {{1}}), {axis}, {text}, {one}{extra})", (x, y), (T(d, r), T(y.t.dtype, r)),
                lambda _, a, b: whole(a, b), ((name, d),), x.mag)


def identity1(d: str) -> str:
    return "float('inf')" if d in FLOATS else str((1 << DTYPES[d].bits - (d[0] == "i")) - 1)


def running(g: Gen) -> Expr:
    name, d, shape = g.pick(("cumsum", "cumprod")), g.dtype(("b1", *INTS, *FLOATS)), g.shape(1)
    axis = g.rng.randrange(len(shape))
    cap = CAP.get(d, 40)
    x = g.want(d, shape, mag=cap - 5 if name == "cumsum" else min(2, cap / shape[axis]))
    reverse, to = g.chance(0.3), "i32" if d == "b1" else d
    f = meaning.running(name, DTYPES[to], axis, reverse)
    args = ("" if axis == 0 and g.chance(0.5) else f", axis={axis}") + (", reverse=True" if reverse else "")
    return Expr(f"ct.{name}({{0}}{args})", (x,), T(to, shape), lambda _, v: f(meaning.convert(v, x.t.d, DTYPES[to])),
                ((name, d),), summed(x.mag, shape[axis]) if name == "cumsum" else 2 * shape[axis],
                max(x.soft, 2 if d in FLOATS else 0))


def twice(g: Gen) -> Expr:
    """One op on the same operands twice, with different attributes."""
    if g.chance(0.5):
        d, shape = g.dtype(INTS), g.shape(1)
        x, axis = g.use(g.let(g.want(d, shape, clean=True))), g.rng.randrange(len(shape))
        up, down = (meaning.running("cumsum", DTYPES[d], axis, reverse) for reverse in (False, True))
        return Expr(f"(ct.cumsum({{0}}, {axis}) ^ ct.cumsum({{1}}, {axis}, reverse=True))", (x, x), T(d, shape),
                    lambda _, v, w: up(v) ^ down(w), (("cumsum", d), ("cumsum", d), ("bitwise_xor", d)))
    d, shape = g.dtype(FLOATS), g.shape(1)
    x, y = (g.use(g.let(g.want(d, shape, clean=True, mag=CAP.get(d, 40) - 2))) for _ in range(2))
    low, high = (meaning.arithmetic("truediv", DTYPES[d], mode) for mode in ("RZ", "RP"))
    both = meaning.extreme(DTYPES[d], 1)
    text = "ct.maximum(" + ", ".join(f"ct.truediv({{{i}}}, {{{i + 1}}}, rounding_mode=ct.RoundingMode.{mode})"
                                     for i, mode in ((0, "RZ"), (2, "RP"))) + ")"
    return Expr(text, (x, y, x, y), T(d, shape), lambda _, a, b, u, v: both(low(a, b), high(u, v)),
                (("truediv", d), ("truediv", d), ("maximum", d)), 200, max(x.soft, y.soft))


# ------------------------------------------------------------------ matrix products

MMA = {"f16": ("f16", "f32"), "bf16": ("f32",), "f32": ("f32",), "tf32": ("f32",), "f64": ("f64",),
       "e4m3": ("f16", "f32"),
       "e5m2": ("f16", "f32"), "i8": ("i32",), "u8": ("i32",)}


def product(g: Gen) -> Expr:
    a = g.dtype(tuple(MMA))
    b = g.pick(("i8", "u8")) if a in ("i8", "u8") else a
    m, n, k = g.pick((1, 2, 4, 8)), g.pick((1, 2, 4, 8)), g.pick((1, 2, 4, 8, 16))
    batch = g.pick(((), (), (2,)))
    x, y = g.want(a, (*batch, m, k), mag=3), g.want(b, (*batch, k, n) if g.chance(0.7) else (k, n), mag=3)
    if g.chance(0.6):
        to = g.pick(MMA[a])
        acc = g.want(to, (*batch, m, n), mag=CAP.get(to, 40) - 3)
        fast = ", use_fast_acc=True" if a in ("e4m3", "e5m2") and g.chance(0.3) else ""
        return Expr(f"ct.mma({{0}}, {{1}}, {{2}}{fast})", (x, y, acc), T(to, (*batch, m, n)),
                    lambda _, u, v, w: meaning.product(u, v, w, DTYPES[to]), (("mma", a),), max(acc.mag, 10) + 1,
                    0 if to == "i32" else 2)
    if a != b:
        y = g.want(a, y.t.shape)
    acc, text = MMA[a][0], g.pick(("({0} @ {1})", "ct.matmul({0}, {1})"))
    return Expr(text, (x, y), T(a, (*batch, m, n)),
                lambda _, u, v: meaning.convert(meaning.product(u, v, None, DTYPES[acc]), DTYPES[acc], DTYPES[a]),
                (("matmul", a),), 10, 0 if acc == "i32" else 2)


# The dtype of operands, that of their scales, and how many elements have a scale.
SCALED = (*((d, "e8m0", 32) for d in ("e4m3", "e5m2", "e4m3", "e5m2")), ("e2m1", "e8m0", 16), ("e2m1", "e8m0", 32),
          ("e2m1", "e4m3", 16), ("e2m1", "e5m3", 16), ("e2m1", "e5m3", 32))


def scaled_product(g: Gen) -> Expr | None:
    if not g.options.sm_100 or not g.memory:
        return None
    (d, s, size), m, n, k = g.pick(SCALED), g.pick((2, 4)), g.pick((2, 4)), g.pick((32, 64))
    g.features.add("sm_100")
    xs = (tile_load(g, d, (m, k)), g.want(s, (m, k // size)), tile_load(g, d, (k, n)), g.want(s, (k // size, n)),
          g.want("f32", (m, n), mag=20))

    def fn(_, x, sx, y, sy, acc):
        wide = [v.astype(np.float64) for v in (x, sx, y, sy)]
        return meaning.product(wide[0] * np.repeat(wide[1], size, 1), wide[2] * np.repeat(wide[3], size, 0), acc,
                               DTYPES["f32"])

    return Expr("ct.mma_scaled({0}, {1}, {2}, {3}, {4})", xs, T("f32", (m, n)), fn, (("mma_scaled", d),), 20, 2)

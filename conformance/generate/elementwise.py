"""Productions: arithmetic, functions, bits, comparisons, choices. Each gives an expression, or None."""

from __future__ import annotations

import numpy as np

from conformance.generate import meaning
from conformance.generate.core import ALL, CAP, EVERY, Gen, lifted, number
from conformance.generate.dtypes import (
    ARITHMETIC,
    DTYPES,
    FLOATS,
    INTS,
    UNSIGNED,
    T,
    category,
    promote,
    with_literal,
)
from conformance.generate.functions import FUNCTIONS
from conformance.generate.tree import Expr

SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
         "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "bitwise_lshift": "<<", "bitwise_rshift": ">>",
         "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}


def spell(g: Gen, name: str, options: str = "") -> str:
    """An op of two operands as an operator or as a function."""
    if name in SIGNS and not options and g.chance(0.7):
        return f"({{0}} {SIGNS[name]} {{1}})"
    if name in ("minimum", "maximum") and not options and g.chance(0.4):
        return f"{name[:3]}({{0}}, {{1}})"
    return f"ct.{name}({{0}}, {{1}}{options})"


def literal(g: Gen, d: str) -> Expr:
    """A literal that meets a tile of dtype d, as a value of that dtype."""
    v = g.literal(d)
    if isinstance(v, float) and DTYPES[d].kind == "f" and g.chance(0.3) and v == int(v):
        v = int(v)
    return number(v, d)


def pair(g: Gen, d: str, shape: tuple, clean: bool = False, mag: float | None = None,
         tile: bool = False) -> tuple[Expr, Expr]:
    """Two operands whose common dtype is d and whose common shape is that one. `tile`: not both are constants."""
    x = g.want(d, shape, clean, mag, tile)
    kind = g.rng.randrange(8)
    if kind < 2 and d != "b1":
        y = literal(g, d)
    elif kind == 2 and shape:
        cut = g.rng.randrange(len(shape))
        small = tuple(1 if g.chance(0.5) else n for n in shape[cut:])
        y = g.want(d, small, clean, mag)
    elif kind == 3 and (lower := [e for e in ALL if e != d and promote(e, d) == d]):
        y = g.want(g.pick(lower), shape, clean, mag)
    else:
        y = g.want(d, shape, clean, mag)
    return (y, x) if g.chance(0.3) else (x, y)


def common(x: Expr, y: Expr) -> tuple[int, ...]:
    return np.broadcast_shapes(x.t.shape, y.t.shape)


def soft(*xs: Expr) -> int:
    return max(x.soft for x in xs)


# ------------------------------------------------------------------ arithmetic


def arithmetic(g: Gen) -> Expr:
    name = g.pick(("add", "sub", "mul"))
    d = g.dtype((*INTS, *FLOATS))
    cap = CAP.get(d, 40)
    x, y = pair(g, d, g.shape(), mag=cap / 2 if name == "mul" else cap - 1)
    options, mode, ftz = rounding(g, d, ("RN", "RZ", "RM", "RP"))
    mag = x.mag + y.mag if name == "mul" else max(x.mag, y.mag) + 1
    left = max(soft(x, y), int(DTYPES[d].kind == "f" and name != "mul"))  # a multiply-add may be fused
    return Expr(spell(g, name, options), (x, y), T(d, common(x, y)),
                lifted(meaning.arithmetic(name, DTYPES[d], mode, ftz), d, x.t, y.t), ((name, d),), mag, left)


def multiply_add(g: Gen) -> Expr:
    """A product that goes straight into a sum or difference: of floats, the two may be fused."""
    d, shape = g.dtype((*FLOATS, *FLOATS, *INTS)), g.shape()
    cap = CAP.get(d, 40)
    x, y, z = g.want(d, shape, mag=cap / 2 - 1), g.want(d, shape, mag=cap / 2 - 1), g.want(d, shape, mag=cap - 2)
    mul, add, sub = (meaning.arithmetic(name, DTYPES[d]) for name in ("mul", "add", "sub"))
    text, name, f = g.pick((
        ("({0} * {1} + {2})", "add", lambda a, b, c: add(mul(a, b), c)),
        ("({2} + {0} * {1})", "add", lambda a, b, c: add(c, mul(a, b))),
        ("({0} * {1} - {2})", "sub", lambda a, b, c: sub(mul(a, b), c)),
        ("({2} - {0} * {1})", "sub", lambda a, b, c: sub(c, mul(a, b)))))
    return Expr(text, (x, y, z), T(d, shape), lambda _, a, b, c: f(a, b, c), (("mul", d), (name, d)),
                max(x.mag + y.mag, z.mag) + 1, max(soft(x, y, z), int(d in FLOATS)))


def rounding(g: Gen, d: str, modes: tuple[str, ...], ftz: bool = True) -> tuple[str, str | None, bool]:
    """Options of a float op as text, the rounding mode, whether subnormals are flushed."""
    options, mode, flush = "", None, False
    if d in FLOATS and g.chance(0.12) and modes:
        mode = g.pick(modes)
        options += f", rounding_mode=ct.RoundingMode.{mode}"
    if d == "f32" and ftz and g.chance(0.08):
        flush = True
        options += ", flush_to_zero=True"
    return options, mode, flush


def divide(g: Gen) -> Expr:
    d = g.dtype(ARITHMETIC)
    r = d if d in FLOATS else "f32"
    x, y = pair(g, d, g.shape(), tile=True)
    options, mode, ftz = rounding(g, r, ("RN", "RZ", "RM", "RP", *(("FULL", "APPROX") if r == "f32" else ())))
    free = mode in ("FULL", "APPROX")
    return Expr(spell(g, "truediv", options), (x, y), T(r, common(x, y)),
                lifted(meaning.arithmetic("truediv", DTYPES[r], None if free else mode, ftz), r, x.t, y.t),
                (("truediv", d),), 200, max(soft(x, y), 2 * free))


def whole_division(g: Gen) -> Expr | None:
    """//, %, cdiv, divmod. Integer divisors are not zero, and -1 is avoided."""
    name = g.pick(("floordiv", "mod", "cdiv", "divmod"))
    d = g.dtype((*INTS, *(FLOATS if name != "divmod" else ())))
    if g.options.official and (d in UNSIGNED and name in ("floordiv", "divmod") or d in FLOATS and name == "cdiv"):
        return None
    shape = g.shape()
    x, y = g.want(d, shape, clean=True, tile=True), g.want(d, shape, clean=True)
    if d in INTS:
        sign = g.pick(("", "-")) if d[0] == "i" else ""
        one, m = DTYPES[d].host.type(2 if sign else 1), DTYPES[d].host.type(7)
        f = (lambda _, v: -one - (v & m)) if sign else (lambda _, v: (v & m) + one)
        y = Expr("(-2 - ({0} & 7))" if sign else "(({0} & 7) + 1)", (y,), y.t, f, (("bitwise_and", d), ("add", d)))
    if name == "divmod":
        text = g.pick(("ct.divmod({0}, {1})", "divmod({0}, {1})"))
        return Expr(text, (x, y), (T(d, shape),) * 2,
                    lambda _, a, b: (meaning.floordiv(DTYPES[d])(a, b), meaning.mod(DTYPES[d])(a, b)), ((name, d),))
    f = getattr(meaning, name)(DTYPES[d])
    return Expr(spell(g, name), (x, y), T(d, shape), lambda _, a, b: f(a, b), ((name, d),), 200, soft(x, y))


def extremes(g: Gen) -> Expr:
    name, d = g.pick(("minimum", "maximum")), g.dtype((*INTS, *FLOATS))
    x, y = pair(g, d, g.shape())
    options, _, ftz = rounding(g, d, ())
    propagate = d in FLOATS and g.chance(0.25)
    options += ", propagate_nan=True" if propagate else ""
    f = meaning.extreme(DTYPES[d], -1 if name == "minimum" else 1, propagate, ftz)
    return Expr(spell(g, name, options), (x, y), T(d, common(x, y)),
                lifted(lambda a, b: f(*np.broadcast_arrays(a, b)), d, x.t, y.t), ((name, d),), max(x.mag, y.mag),
                soft(x, y))


def sign(g: Gen) -> Expr | None:
    name = g.pick(("negative", "abs", "positive"))
    d = g.dtype(("b1", *INTS, *FLOATS))
    if g.options.official and name == "abs" and d in UNSIGNED:
        return None
    x, r = g.want(d, g.shape(), tile=d == "b1"), "i32" if d == "b1" and name != "abs" else d
    text = {"negative": g.pick(("(-{0})", "ct.negative({0})")), "abs": g.pick(("abs({0})", "ct.abs({0})")),
            "positive": "(+{0})"}[name]
    f = {"negative": lambda v: -v, "abs": np.abs, "positive": lambda v: v}[name]
    return Expr(text, (x,), T(r, x.t.shape), lifted(f, r, x.t), ((name, d),), x.mag, x.soft)


# ------------------------------------------------------------------ functions


def function(g: Gen) -> Expr:
    name = g.pick(tuple(FUNCTIONS))
    row = FUNCTIONS[name]
    d = g.dtype((*FLOATS, *FLOATS, *ARITHMETIC))
    r = d if d in FLOATS else "f32"
    x = g.want(d, g.shape(), mag=row.most, tile=True)  # constants are computed in Python's precision
    if d in INTS:
        x = Expr("({0} & 7)", (x,), x.t, lambda _, v: v & v.dtype.type(7), (("bitwise_and", d),), 3, x.soft)
    if row.positive and r == d and g.chance(0.8):
        x = Expr("(abs({0}) + 0.5)", (x,), x.t, lambda _, v: np.abs(v) + np.asarray(0.5).astype(DTYPES[d].host),
                 (("abs", d), ("add", d)), x.mag, max(1, x.soft))
    modes = row.modes if r == "f32" else tuple(m for m in row.modes if m not in ("FULL", "APPROX"))
    options, mode, ftz = rounding(g, r, modes, row.ftz)
    f = meaning.unary(row.exact, DTYPES[r], mode if mode in ("RZ", "RM", "RP") else "RN")
    g2 = (lambda v: meaning.flush(f(meaning.flush(v)))) if ftz else f
    exact = not row.free and mode != "APPROX"
    return Expr(f"ct.{name}({{0}}{options})", (x,), T(r, x.t.shape), lifted(g2, r, x.t), ((name, d),),
                200 if row.positive else row.gives, x.soft if exact else 2)


def whole(g: Gen) -> Expr:
    name, d = g.pick(("floor", "ceil")), g.dtype(FLOATS)
    x, f = g.want(d, g.shape(), clean=True), meaning.unary(getattr(np, name), DTYPES[d])
    return Expr(f"ct.{name}({{0}})", (x,), x.t, lambda _, v: f(v), ((name, d),), x.mag, x.soft)


def is_nan(g: Gen) -> Expr:
    d = g.dtype(FLOATS)
    x = g.want(d, g.shape())
    return Expr("ct.isnan({0})", (x,), T("b1", x.t.shape), lambda _, v: np.isnan(v.astype(np.float64)), (("isnan", d),))


def angle(g: Gen) -> Expr:
    d, shape = g.dtype(FLOATS), g.shape()
    x, y = g.want(d, shape, tile=True), g.want(d, shape, clean=True)
    return Expr("ct.atan2({0}, {1})", (x, y), T(d, shape), lambda _, a,
                b: meaning.in_float(DTYPES[d], np.arctan2, a, b),
                (("atan2", d),), 2, 2)


def powers(g: Gen) -> Expr | None:
    kind = g.rng.randrange(3)
    d, shape = g.dtype(FLOATS), g.shape()
    if kind == 0:  # to an integer: repeated multiplication
        x = g.want(d, shape, mag=min(3, CAP.get(d, 40) / 4), tile=True)
        if g.chance(0.5):
            n = g.pick((0, 1, 2, 3, 4, -1, -2))
            y = number(n)
        else:
            e = g.pick(("i8", "i16", "i32", "u8", "u16"))
            y = Expr("({0} & 3)", (g.want(e, shape, clean=True),), T(e, shape), lambda _, v: v & v.dtype.type(3),
                     (("bitwise_and", e),))
        f = meaning.repeated_power(DTYPES[d])
        return Expr(spell(g, "pow"), (x, y), T(d, shape), lambda _, a, b: f(a, b), (("pow", d),), 200, soft(x, y))
    if kind == 1 and not g.options.official:
        d = g.dtype(INTS)
        x, y = g.want(d, shape, clean=True), g.want(d, shape, clean=True)
        m = DTYPES[d].host.type(3)
        y = Expr("({0} & 3)", (y,), y.t, lambda _, v: v & m, (("bitwise_and", d),))
        return Expr(spell(g, "pow"), (x, y), T(d, shape), lambda _, a, b: meaning.integer_power(a, b), (("pow", d),))
    x, y = g.want(d, shape, clean=True, mag=2, tile=True), g.want(d, shape, clean=True, mag=2)
    if g.chance(0.8):
        x = Expr("(abs({0}) + 0.5)", (x,), x.t, lambda _, v: np.abs(v) + np.asarray(0.5).astype(DTYPES[d].host),
                 (("abs", d), ("add", d)), 3, max(1, x.soft))
    return Expr(spell(g, "pow"), (x, y), T(d, shape), lambda _, a, b: meaning.in_float(DTYPES[d], np.power, a, b),
                (("pow", d),), 12, 2)


# ------------------------------------------------------------------ bits, comparisons, choices


def bits(g: Gen) -> Expr:
    name, d = g.pick(("bitwise_and", "bitwise_or", "bitwise_xor")), g.dtype(("b1", *INTS))
    shape = g.shape()
    x = g.want(d, shape, clean=True)
    y = literal(g, d) if d != "b1" and g.chance(0.3) else g.want(d, shape, clean=True)
    f = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}[name]
    return Expr(spell(g, name), (x, y), T(d, shape), lambda _, a, b: f(a, b), ((name, d),))


def invert(g: Gen) -> Expr:
    if g.chance(0.3):
        d = g.dtype(EVERY)
        x = g.want(d, g.shape(), clean=True)
        return Expr("(not {0})", (x,), T("b1", x.t.shape), lambda _, v: ~meaning.truth(v), (("logical_not", d),))
    d = g.dtype(("b1", *INTS))
    x = g.want(d, g.shape(), clean=True, tile=d == "b1")
    text = g.pick(("(~{0})", "ct.bitwise_not({0})"))
    return Expr(text, (x,), x.t, lambda _, v: ~v, (("bitwise_not", d),))


def shift(g: Gen) -> Expr:
    """By less than the width."""
    name, d, shape = g.pick(("bitwise_lshift", "bitwise_rshift")), g.dtype(INTS), g.shape()
    x, m = g.want(d, shape, clean=True), DTYPES[d].bits - 1
    if g.chance(0.5):
        y = number(g.rng.randrange(m + 1), d)
    else:
        y = Expr(f"({{0}} & {m})", (g.want(d, shape, clean=True),), T(d, shape), lambda _, v: v & v.dtype.type(m),
                 (("bitwise_and", d),))
    f = np.left_shift if name == "bitwise_lshift" else np.right_shift
    return Expr(spell(g, name), (x, y), T(d, shape), lambda _, a, b: f(a, b), ((name, d),))


def comparison(g: Gen) -> Expr:
    name, d = g.pick(tuple(meaning.COMPARE)), g.dtype(("b1", *INTS, *FLOATS))
    x, y = pair(g, d, g.shape(), clean=True)
    return Expr(spell(g, name), (x, y), T("b1", common(x, y)), lifted(meaning.compare(name, DTYPES[d]), d, x.t, y.t),
                ((name, d),), 0, soft(x, y))


def choice(g: Gen) -> Expr:
    d, shape = g.dtype(EVERY), g.shape()
    c = g.want("b1" if g.chance(0.8) else g.dtype((*INTS, "f32")), shape, clean=True)
    x, y = pair(g, d, shape) if not DTYPES[d].restricted else (g.want(d, shape), g.want(d, shape))
    return Expr("ct.where({0}, {1}, {2})", (c, x, y), T(d, np.broadcast_shapes(c.t.shape, x.t.shape, y.t.shape)),
                lambda _, c, a, b: np.where(meaning.truth(c), meaning.convert(a, x.t.d, DTYPES[d]),
                                            meaning.convert(b, y.t.d, DTYPES[d])), (("where", d),),
                max(x.mag, y.mag), soft(c, x, y))


def mixed(g: Gen) -> Expr:
    """An operand whose category the literal raises: an integer tile and a float, a bool tile and an integer."""
    d = g.dtype(("b1", *INTS))
    v = g.pick((0.5, 2.5, -1.5)) if d != "b1" or g.chance(0.5) else g.pick((2, 5, -3))
    r = with_literal(d, v)
    name = g.pick(("add", "sub", "mul", "maximum"))
    x = g.want(d, g.shape())
    lit = number(v, r)
    f = meaning.arithmetic(name, DTYPES[r]) if name != "maximum" else meaning.extreme(DTYPES[r], 1)
    g2 = lambda a, b: f(*np.broadcast_arrays(a, b))
    assert category(r) > category(d)
    return Expr(spell(g, name), (x, lit), T(r, x.t.shape), lifted(g2, r, x.t, lit.t), ((name, d),),
                64 if d != "b1" else 3,
                max(x.soft, int(r == "f32" and name in ("add", "sub"))))

"""Statements by their form: assignments of every kind, context managers, prints and assertions, parameters."""

from __future__ import annotations

import math

import numpy as np

from conformance.generate import meaning
from conformance.generate.control import carried, updated
from conformance.generate.core import ALL, Gen, T, number
from conformance.generate.dtypes import DTYPES, FLOATS, INTS, to_float
from conformance.generate.elementwise import literal
from conformance.generate.structural import MMA
from conformance.generate.tree import Do, Expr, If, Leave, Let, Param, Text, Var, With, variable

# ------------------------------------------------------------------ assignments


def assigned(g: Gen) -> None:
    g.pick((several, nested, annotated, listed, swapped, *[augmented] * 5))(g)


def named(g: Gen, texts: tuple[str, ...], es: tuple[Expr, ...], targets: str, kind: str, right: str) -> None:
    """New variables, one for each value that the right side gives."""
    made = tuple(variable(n, e) for n, e in zip(texts, es, strict=True))
    whole = Expr(right, es, tuple(e.t for e in es), lambda _, *v: v if len(v) > 1 else v[0])
    g.out.append(Let(texts, whole if len(es) > 1 else es[0], None, kind, targets))
    g.scope += made
    g.unused.update(texts)


def several(g: Gen) -> None:
    """a = b = value"""
    e, names = g.want(g.dtype(ALL), g.shape()), (g.fresh(), g.fresh())
    both = Expr("{0}", (e,), (e.t, e.t), lambda _, v: (v, v))
    g.out.append(Let(names, both, None, "a = b =", " = ".join(names)))
    g.scope += [variable(n, e) for n in names]
    g.unused.update(names)


def nested(g: Gen) -> None:
    names = tuple(g.fresh() for _ in range(3))
    es = tuple(g.want(g.dtype(ALL), g.shape()) for _ in names)
    named(g, names, es, "{}, ({}, {})".format(*names), "a, (b, c) =", "{0}, ({1}, {2})")


def listed(g: Gen) -> None:
    names = (g.fresh(), g.fresh())
    es = tuple(g.want(g.dtype(ALL), g.shape()) for _ in names)
    named(g, names, es, "[{}, {}]".format(*names), "[a, b] =", "{0}, {1}")


def annotated(g: Gen) -> None:
    name, e = g.fresh(), g.want(g.dtype(ALL), g.shape())
    named(g, (name,), (e,), f"{name}: {g.pick(('object', 'int', 'ct.Tile'))}", "a: T =", "")


def swapped(g: Gen) -> None:
    """a, b = b, a: of variables of one type, outside loops, where an earlier use would see the other. Never the number
    of the block: stores rely on its range.
    """
    own = [v for v in g.scope if v is not g.block]
    alike = [(v, w) for v in own for w in own[-8:] if v is not w and v.t == w.t]
    if not alike or g.depth or g.trips > 1:
        return several(g)
    v, w = g.pick(alike)
    both = Expr("{0}, {1}", (w, v), (v.t, v.t), lambda _, a, b: (a, b))
    g.out.append(Let((v.text, w.text), both, None, "a, b = b, a"))
    v.mag = w.mag = max(v.mag, w.mag)
    v.soft = w.soft = max(v.soft, w.soft)
    v.constant = w.constant = v.constant or w.constant


SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
         "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "bitwise_lshift", ">>": "bitwise_rshift"}
BITWISE = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift}
OF_KIND = {"b": ("&", "|", "^"), "i": ("+", "-", "*", "//", "%", "**", "&", "|", "^", "<<", ">>"),
           "u": ("+", "-", "*", "//", "%", "**", "&", "|", "^", "<<", ">>"),
           "f": ("+", "-", "*", "/", "/", "//", "%", "**")}


def augmented(g: Gen) -> None:
    """A variable of its own, and a statement that changes it."""
    if g.chance(0.1):
        return product(g)
    d = g.dtype(("b1", *INTS, *FLOATS))
    x = g.want(d, g.shape(), clean=True, mag=4, tile=d in FLOATS)
    signs = tuple(s for s in OF_KIND[DTYPES[d].kind] if not (g.options.official and s in ("//", "**")))
    v, sign = g.let(x if not isinstance(x, Var) else plus_zero(x)), g.pick(signs)
    if sign in ("//", "%", "**", "<<", ">>") or sign == "/":
        n = g.pick((1, 2, 3))
        y = number(n, "i32" if sign == "**" else d)
    else:
        y = g.want(d, v.t.shape, clean=True, mag=4) if d == "b1" or g.chance(0.7) else literal(g, d)
    e = Expr(f"({{0}} {sign} {{1}})", (v, y), v.t, changed_by(sign, d), ((SIGNS[sign], d),), v.mag, v.soft)
    g.out.append(Let((v.text,), e, sign, f"{sign}="))
    if d in FLOATS:
        v.mag, v.soft = 12, max(v.soft, y.soft, int(sign in "+-"))


def plus_zero(x: Var) -> Expr:
    """The same value under another name."""
    return Expr("{0}", (x,), x.t, lambda _, v: v, (), x.mag, x.soft)


def changed_by(sign: str, d: str):
    if sign in BITWISE:
        return lambda _, a, b: BITWISE[sign](a, b)
    if sign == "**":
        of_float = meaning.repeated_power(DTYPES[d])
        return (lambda _, a, b: of_float(a, b.astype(np.int32))) if d in FLOATS else (
            lambda _, a, b: meaning.integer_power(a, b))
    name = SIGNS[sign]
    f = getattr(meaning, name)(DTYPES[d]) if name in ("floordiv", "mod") else meaning.arithmetic(name, DTYPES[d])
    return lambda _, a, b: f(a, b)


def product(g: Gen) -> None:
    """x @= y"""
    d, n = g.pick(tuple(MMA)), g.pick((2, 4))
    x, y = g.want(d, (n, n), mag=2), g.want(d, (n, n), mag=2)
    v, acc = g.let(x if not isinstance(x, Var) else plus_zero(x)), DTYPES[MMA[d][0]]
    e = Expr("({0} @ {1})", (v, y), v.t, lambda _, a, b: meaning.convert(meaning.product(a, b, None, acc), acc,
                                                                       DTYPES[d]), (("matmul", d),), 10, 2)
    g.out.append(Let((v.text,), e, "@", "@="))
    if DTYPES[d].kind == "f":
        v.mag, v.soft = 10, 2


# ------------------------------------------------------------------ context managers

PLAIN = '''
@contextlib.contextmanager
def {f}(p):
    q = p ^ {k}
    yield q
    q = None
'''
STORING = '''
@contextlib.contextmanager
def {f}(y, i, p):
    yield p + {k}
    ct.scatter(y, i, p + (p + {k}))
'''
AROUND = '''
@contextlib.contextmanager
def {f}_inner(p):
    yield p + {k}


@contextlib.contextmanager
def {f}(p):
    with {f}_inner(p) as q:
        yield q - 1
'''


def with_block(g: Gen, body) -> None:
    """A with statement of one manager or two."""
    values = carried(g, 1)
    outer = manager(g)
    inner = manager(g) if g.chance(0.3) else None
    scope = [Var(m.name, (), m.t, None, (), 3) for m in (outer, inner) if m]
    with g.inside() as stmts:
        g.scope += scope
        body(g)
        leave(g)
        for v in values:
            updated(g, v)
    last = inner or outer
    last.body = stmts
    if inner:
        outer.kind, outer.body = "with several", [inner]
    g.out.append(outer)


def leave(g: Gen) -> None:
    """An exit from the body through the end of the manager, or nothing."""
    if g.memory and g.chance(0.4):
        kind = g.pick(("break", "continue", "return") if g.counters else ("return",))
        g.out.append(If(g.condition(), [Leave(kind)], []))


def manager(g: Gen) -> With:
    """A with statement without its body; `t` is the type of what the manager yields."""
    f, d, k, kind = g.fresh("m"), g.pick(INTS), g.pick((1, 2, 3)), g.pick((PLAIN, STORING, AROUND))
    x = g.want(d, () if kind is STORING else g.shape(), clean=True, tile=True)
    one, no = DTYPES[d].host.type, lambda *_: None
    g.helpers.append(Text(f, kind.format(f=f, k=k).strip().split("\n"), "manager"))
    if kind is STORING:
        y = g.fresh("y")
        g.params.append(Param(y, f"np.zeros({(g.blocks,)}, np.{DTYPES[d].name})"))

        def end(ctx, b, p):
            ctx.memory[y][int(b)] = p + (p + one(k))

        ops = (("scatter", d), ("add", d), ("add", d), ("with", d))
        made = With(g.fresh(), Expr(f"{f}({y}, {{0}}, {{1}})", (g.block, x), T(d), lambda _, b, p: (b, p), ops),
                    lambda _, b, p: p + one(k), end, [])
    else:
        enter = (lambda _, p: p ^ one(k)) if kind is PLAIN else lambda _, p: p + one(k) - one(1)
        ops = (("bitwise_xor", d),) if kind is PLAIN else (("add", d), ("sub", d))
        made = With(g.fresh(), Expr(f"{f}({{0}})", (x,), x.t, lambda _, p: (p,), (*ops, ("with", d))), enter, no, [])
    made.t = x.t
    return made


# ------------------------------------------------------------------ what is said and asserted


def never(g: Gen, statement, orelse: list | None = None) -> None:
    """A statement that is compiled and never run: no block has a number below zero."""
    below = Expr("({0} < 0)", (g.block,), T("b1"), lambda _, b: b < 0, (("less", "i32"),))
    g.out.append(If(below, [statement], orelse or []))


def said(g: Gen) -> None:
    """print and printf. What they write is not compared, so no block reaches them."""
    x, y = g.want(g.dtype(ALL), g.shape()), g.want(g.dtype((*INTS, *FLOATS)), ())
    letter = "f" if y.t.d.kind == "f" else "d"
    text, args = g.pick((
        ("ct.print({0}, {1}, sep='; ', end='.')", (x, y)), ("print('at', {0})", (x,)),
        (f"ct.print(f'{{{{{{0}}:>8.3{letter}}}}} is it', None, (1, {{1}}))", (y, x)),
        *[(f"ct.printf('%{letter} of 100%%\\n', {{0}})", (y,))] * 2,
        ("ct.print(ct.int32, 2.5, ct.RoundingMode.RZ, {0})", (x,))))
    kind = "printf" if "printf" in text else "print"
    args = tuple(g.use(a) if isinstance(a, Var) else g.use(g.let(a)) for a in args)
    never(g, Do(Expr(text, args, T("i32"), lambda *_: None, ((kind, args[0].t.dtype),)), kind))


def static_assert(g: Gen) -> None:
    x = g.want(g.dtype(ALL), g.shape(), tile=True)
    x = g.use(x if isinstance(x, Var) else g.let(x))
    text = g.pick((f"{{0}}.shape == {x.t.shape}", f"{{0}}.ndim == {len(x.t.shape)}, 'not so'",
                   f"{{0}}.dtype == ct.{x.t.d.name}, f'{{{{1 / 0}}}}'", f"{{0}}.dtype.name == '{x.t.d.name}'",
                   f"math.prod({{0}}.shape) == {x.t.size}"))
    ops = (("static_assert", x.t.dtype),)
    g.out.append(Do(Expr(f"ct.static_assert({text})", (x,), T("i32"), lambda *_: None, ops), "static_assert"))


def untaken(g: Gen) -> None:
    """A branch that a constant condition does not take: it is not compiled."""
    x = g.want(g.dtype(ALL), g.shape(), tile=True)
    x = g.use(x if isinstance(x, Var) else g.let(x))
    text, holds = g.pick((("{0}.ndim > 3", False), ("{0} is None", False), (f"{{0}}.dtype == ct.{x.t.d.name}", True),
                          (f"{{0}}.shape == {x.t.shape}", True), ("'' or 0.0", False),
                          ("not ct.static_eval(True)", False)))
    cond = Expr(text, (x,), T("b1"), lambda *_: np.asarray(holds), (("static condition", x.t.dtype),))
    (v,) = carried(g, 1)
    with g.inside() as taken:
        updated(g, v)
    raised = Expr("ct.static_exception(ValueError('not reached'))", (), T("i32"), lambda _: None,
                  (("static_exception", x.t.dtype),))
    other = g.pick((Leave("raise", raised), Text("", ["undefined_name.attribute(1)"], "expression")))
    g.out.append(If(cond, taken, [other], "if") if holds else If(cond, [other], taken))


def idle(g: Gen) -> None:
    """An expression as a statement."""
    g.out.append(Text("", [g.pick(("...", "'a text'", "None, 1", "ct.int32"))], "expression"))


# ------------------------------------------------------------------ parameters and constants


def parameter(g: Gen) -> Expr:
    """A parameter that is no array: a constant, a 64-bit number, a bool, items of a tuple."""
    kind, name = g.rng.randrange(5), g.fresh("n")
    d = g.dtype((*INTS, *FLOATS))
    if kind == 0:
        g.params.append(Param(name, "3", "ct.Constant[int]"))
        x = g.want(d, g.shape(), mag=8, clean=True)
        f = meaning.arithmetic("add", DTYPES[d])
        three = np.asarray(3).astype(DTYPES[d].host)
        return Expr(f"({{0}} + {name})", (x,), x.t, lambda _, v: f(v, three), (("add", d), ("constant", d)), 9,
                    max(x.soft, int(d in FLOATS)))
    if kind == 1:
        g.params.append(Param(name, f"{2**40 + 3}", "ct.ScalarInt64"))
        return Expr(name, (), T("i64"), lambda _: np.asarray(2**40 + 3, np.int64), (("parameter", "i64"),))
    if kind == 2:
        g.params.append(Param(name, "True"))
        return Expr(name, (), T("b1"), lambda _: np.asarray(True), (("parameter", "b1"),))
    if kind == 3:
        g.params.append(Param(name, "(5, (1.5, -2))"))
        return Expr(f"{name}[1][0]", (), T("f32"), lambda _: np.asarray(1.5, np.float32), (("parameter", "f32"),))
    d = g.pick([d for d in FLOATS if not (g.options.official and d == "f64")])  # it rounds constants to float32 [D-1]
    x, f = g.want(d, g.shape(), mag=4, clean=True, tile=True), meaning.arithmetic("mul", DTYPES[d])
    number = g.pick((math.pi, math.e))
    value = to_float(np.asarray(number, np.longdouble), DTYPES[d])
    return Expr(f"({{0}} * math.{'pi' if number == math.pi else 'e'})", (x,), x.t, lambda _, v: f(v, value),
                (("mul", d), ("constant", d)), x.mag + 2, x.soft)

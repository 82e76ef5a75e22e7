"""Statements that hold statements: branches, loops, helpers, early exits."""

from __future__ import annotations

import numpy as np

from conformance.generate import meaning
from conformance.generate.core import CAP, EVERY, Gen, T, number
from conformance.generate.dtypes import DTYPES, FLOATS, INTS
from conformance.generate.tree import Def, Do, Each, Expr, For, If, Leave, Let, Var, While, variable


def assign(v: Var, e: Expr, kind: str = "assign") -> Let:
    return Let((v.text,), e, None, kind)


def copied(e: Expr) -> Expr:
    return Expr("{0}", (e,), e.t, lambda _, x: x, (), e.mag, e.soft)


# ------------------------------------------------------------------ new values of variables


def carried(g: Gen, n: int) -> list[Var]:
    """New variables that loops and branches assign."""
    out = []
    for _ in range(n):
        d = g.dtype((*INTS, *FLOATS, *FLOATS, "b1"))
        e = g.want(d, g.shape(), mag=CAP.get(d, 40) / 2 - 3)
        v = g.let(copied(e) if isinstance(e, Var) else e)
        if v.t.d.kind == "f":
            v.mag, v.soft = CAP.get(d, 40) / 2, 2
        out.append(v)
        g.joined.append(v)
    return out


def updated(g: Gen, v: Var) -> None:
    """A statement that gives a variable a new value of its type."""
    d = v.t.d
    if d.kind == "b":
        sign, f = g.pick((("&", np.bitwise_and), ("^", np.bitwise_xor), ("|", np.bitwise_or)))
        e = Expr(f"({{0}} {sign} {{1}})", (v, g.want("b1", v.t.shape, clean=True)), v.t, lambda _, a, b: f(a, b),
                 ((f"bitwise_{ {'&': 'and', '^': 'xor', '|': 'or'}[sign] }", "b1"),))
    else:
        accumulates = d.kind != "f" or g.trips <= 8
        name = g.pick(("add", "add", "sub", "maximum", "where") if accumulates else ("maximum", "where"))
        x = g.want(v.t.dtype, v.t.shape, clean=d.kind != "f", mag=v.mag - 4)
        e = _update(g, v, x, name)
        v.soft = max(v.soft, e.soft)
        if name in ("add", "sub") and g.chance(0.6):
            sign = {"add": "+", "sub": "-"}[name]
            g.out.append(Let((v.text,), e, sign, f"{sign}="))
            return
    g.out.append(assign(v, e))


def _update(g: Gen, v: Var, x: Expr, name: str) -> Expr:
    d = v.t.d
    left = max(v.soft, x.soft, 1 if d.kind == "f" and name in ("add", "sub") else 0)
    if name == "where":
        c = g.want("b1", v.t.shape, clean=True)
        return Expr("ct.where({0}, {1}, {2})", (c, v, x), v.t, lambda _, c, a, b: np.where(c, a, b),
                    (("where", d.short),),
                    v.mag, max(left, c.soft))
    if name == "maximum":
        f = meaning.extreme(d, 1)
        return Expr("max({0}, {1})", (v, x), v.t, lambda _, a, b: f(a, b), (("maximum", d.short),), v.mag, left)
    f = meaning.arithmetic(name, d)
    return Expr(f"({{0}} {'+' if name == 'add' else '-'} {{1}})", (v, x), v.t, lambda _, a, b: f(a, b),
                ((name, d.short),),
                v.mag, left)


# ------------------------------------------------------------------ branches


def branch(g: Gen, body) -> None:
    joined = carried(g, g.pick((1, 1, 2)))
    cond = g.condition()
    before = [v.soft for v in joined]
    with g.inside() as then:
        body(g)
        for v in joined:
            updated(g, v)
    orelse: list = []
    kind = g.rng.randrange(3)
    if kind:
        with g.inside() as orelse:
            if kind == 2:
                branch_only(g, joined)
            else:
                body(g)
                updated(g, g.pick(joined))
    for v, s in zip(joined, before, strict=True):
        v.soft = max(v.soft, s)
    g.out.append(If(cond, then, orelse))


def branch_only(g: Gen, joined: list[Var]) -> None:
    """An elif."""
    cond = g.condition() if not g.out else g.block
    if g.out:  # the condition needed statements of its own
        updated(g, g.pick(joined))
        return
    with g.inside() as then:
        updated(g, g.pick(joined))
    if g.out:
        return
    g.out.append(If(cond, then, [], "elif"))


def ternary(g: Gen) -> Expr | None:
    d = g.dtype(EVERY)
    shape = g.shape()
    c, x, y = g.condition(), g.want(d, shape), g.want(d, shape)
    return Expr("({1} if {0} else {2})", (c, x, y), T(d, shape), lambda _, c, a, b: a if c else b, (("ternary", d),),
                max(x.mag, y.mag), max(x.soft, y.soft), any(e.constant for e in (c, x, y)))


def connective(g: Gen) -> Expr:
    word = g.pick(("and", "or"))
    x, y = g.condition(), g.condition()
    return Expr(f"({{0}} {word} {{1}})", (x, y), T("b1"),
                lambda _, a, b: np.asarray((a and b) if word == "and" else (a or b), bool), (("connective", "b1"),),
                constant=x.constant or y.constant)


# ------------------------------------------------------------------ loops


def bounds(g: Gen) -> tuple[tuple[Expr, ...], int]:
    """The arguments of range, and the largest number of rounds."""
    kind, n = g.rng.randrange(4), g.pick((1, 2, 3, 4))
    if kind == 0:
        return (number(n),), n
    if kind == 1:
        start = g.pick((0, 1, 2))
        return (number(start), number(start + n)), n
    if kind == 2:
        step = g.pick((1, 2, 3))
        return (number(1), number(1 + n * step), number(step)), n
    e = g.index(4)  # a run-time bound, perhaps zero
    return (e,), 3


def for_loop(g: Gen, body) -> None:
    values = carried(g, g.pick((1, 2)))
    args, n = bounds(g)
    bound = g.pick(("i32", "i32", "i32", "i64", "i16", "i8")) if g.memory else "i32"
    if bound != "i32":
        at = min(len(args), 2) - 1  # where to stop
        args = (*args[:at], constructed(args[at], bound), *args[at + 1:])
    d = "i64" if bound == "i64" else "i32"  # that of the widest bound, int32 at least
    held = g.fresh("r") if g.chance(0.2) else ""
    i = Var(g.fresh("i"), (), T(d), None, (), 3)
    with g.inside(n) as stmts:
        g.scope.append(i)
        g.counters.append(i)
        body(g)
        escape(g, values)
        for v in values:
            updated(g, v)
        g.counters.pop()
    g.out.append(For(i.text, args, stmts, dtype=d, held=held))


def constructed(e: Expr, d: str) -> Expr:
    """A scalar of int32 as an integer of another width."""
    return Expr(f"ct.{DTYPES[d].name}({{0}})", (e,), T(d), lambda _, v: v.astype(DTYPES[d].host),
                (("astype", d), ("astype from", "i32")))


def escape(g: Gen, values: list[Var]) -> None:
    """A break or continue in the middle of a body, or nothing."""
    if g.memory and g.chance(0.4):
        kind = g.pick(("break", "break", "continue", "continue", "return"))
        cond = g.condition()
        with g.inside() as then:
            if g.chance(0.7):
                updated(g, g.pick(values))
            then.append(Leave(kind))
        g.out.append(If(cond, then, []))


def while_loop(g: Gen, body) -> None:
    """With a counter, so that it ends."""
    n = g.pick((1, 2, 3))
    values = carried(g, g.pick((1, 2)))
    zero = Expr("({0} * 0)", (g.block,), T("i32"), lambda _, b: b * np.int32(0), (("mul", "i32"),))
    i = g.let(zero)
    i.mag = 3
    step = Expr("({0} + {1})", (i, number(1)), T("i32"), lambda _, a, b: a + b, (("add", "i32"),))
    cond = Expr(f"({{0}} < {n})", (g.use(i),), T("b1"), lambda _, v: v < n, (("less", "i32"),))
    forever = g.chance(0.4)
    with g.inside(n) as stmts:
        if forever:
            at_end = Expr(f"({{0}} >= {n})", (i,), T("b1"), lambda _, v: v >= n, (("greater_equal", "i32"),))
            stmts.append(If(at_end, [Leave("break")], []))
        stmts.append(Let((i.text,), step, "+", "+="))
        body(g)
        escape(g, values)
        for v in values:
            updated(g, v)
    g.out.append(While(None if forever else cond, stmts, "while True" if forever else "while"))


def unrolled(g: Gen, body) -> None:
    """A compile-time loop. Its variable is a constant, so only statements that stay legal may read it."""
    (v,) = carried(g, 1)
    name, fresh = g.fresh("k"), g.fresh("k")
    target, text, values = g.pick(ITEMS)
    names = tuple(n for n in (name, fresh)[:1 + ("," in target)])
    with g.inside(len(values)) as stmts:
        updated(g, v)
        if v.t.d.kind in "iu":
            k = Var(name, (), T("i32"), None)
            e = Expr("({0} + {1})", (v, k), v.t, lambda _, a, b: a + b.astype(a.dtype), (("add", v.t.dtype),), v.mag)
            stmts.append(assign(v, e))
    rounds = [tuple(np.asarray(n, np.int32) for n in r) for r in values]
    items = Expr(text, (), T("i32"), lambda _: rounds, (("static_iter", "i32"),))
    g.out.append(Each(name, names, target.format(*names), items, stmts))


# For a compile-time loop: its target, the text that it iterates over, and the numbers of each round.
ITEMS = (
    ("{0}", "(0, 1)", ((0,), (1,))), ("{0}", "(3, 1, 2)", ((3,), (1,), (2,))), ("{0}", "[5]", ((5,),)),
    ("{0}", "range(1, 7, 2)", ((1,), (3,), (5,))), ("{0}, {1}", "enumerate((4, 2))", ((0, 4), (1, 2))),
    ("{0}, {1}", "zip((1, 2), [3, 4])", ((1, 3), (2, 4))), ("({0}, {1})", "{'a': (6, 7)}.values()", ((6, 7),)),
    ("{0}", "[n * n for n in range(3) if n != 1]", ((0,), (4,))), ("{0}", "sorted({3, 1})", ((1,), (3,))),
)


# ------------------------------------------------------------------ helpers


def helper(g: Gen, expression, nested: bool = False) -> None:
    """A helper function and a call of it. Nested ones may read the variables around them."""
    name = g.fresh("f")
    args = [g.want(g.dtype((*INTS, *FLOATS)), g.shape()) for _ in range(g.pick((1, 2)))]
    args = [a if isinstance(a, Var) else g.let(a) for a in args]
    params = [variable(g.fresh("p"), a) for a in args]
    kept = g.scope, g.out, g.unused, g.memory, g.depth
    g.scope = [*(g.scope[-6:] if nested else []), *params]
    g.out, g.unused, g.memory, g.depth = [], set(), False, g.depth + 1
    early = g.chance(0.4)
    for _ in range(g.pick((1, 2, 3))):
        if (e := expression(g)) is not None:
            g.let(e)
    if g.chance(0.2):
        for_loop(g, lambda g: None)
    last = next(v for v in reversed(g.scope) if isinstance(v.t, T))
    d, shape = last.t.dtype, last.t.shape
    results = [g.use(last)]
    if early and (nested or any(p.t.d.kind in "iu" and p.t.shape == () for p in params) or d == "b1" and shape == ()):
        cond = g.condition()
        with g.inside() as then:
            x = g.want(d, shape)
            then.append(Leave("return", x))
            results.append(x)
        g.out.append(If(cond, then, []))
        if not last.t.d.restricted:  # and go on after it
            last = g.let(copied(last))
            updated(g, last)
            results.append(last)
    pair = g.chance(0.3)
    if pair and len(results) == 1:
        second = g.want(g.dtype((*INTS, *FLOATS)), g.shape())
        t: T | tuple = (last.t, second.t)
        g.out.append(Leave("return", Expr("({0}, {1})", (last, second), t, lambda _, a, b: (a, b))))
        results.append(second)
    else:
        t = last.t
        g.out.append(Leave("return", last))
    body = g.out
    soft, mag = max(r.soft for r in results), max(r.mag for r in results)
    g.scope, g.out, g.unused, g.memory, g.depth = kept
    made = Def(name, tuple(p.text for p in params), body, "closure" if nested else "helper")
    (g.out if nested else g.helpers).append(made)
    inner = ", ".join(f"{{{i}}}" for i in range(len(args)))
    call = Expr(f"{name}({inner})", tuple(g.use(a) for a in args), t, lambda ctx, *v: ctx.call(name, v), (), mag, soft,
                any(r.constant for r in results))
    g.let(call, "call")
    if g.chance(0.3) and not isinstance(t, tuple):
        g.let(call, "call")


# ------------------------------------------------------------------ statements of the host's side


def always(g: Gen) -> None:
    """An assertion that holds."""
    x = g.want(g.dtype(INTS), g.shape(), clean=True)
    message = g.pick(("", ", 'never'"))
    g.out.append(Do(Expr(f"ct.assert_({{0}} == {{1}}{message})", (x if isinstance(x, Var) else g.let(x),) * 2, T("b1"),
                         lambda _, a, b: None, (("assert_", x.t.dtype), ("equal", x.t.dtype))), "assert_"))


def dependency(g: Gen) -> None:
    name = g.pick(("grid_dependency_control_wait", "grid_dependency_control_launch_dependents"))
    g.out.append(Do(Expr(f"ct.{name}()", (), T("b1"), lambda _: None, ((name, "b1"),)), "dependency"))


def nothing(g: Gen) -> None:
    g.out.append(Leave("pass"))


def leave_early(g: Gen) -> None:
    """A return in the middle of the kernel, for some blocks."""
    cond = Expr("({0} == 1)", (g.block,), T("b1"), lambda _, b: b == 1, (("equal", "i32"),))
    g.out.append(If(cond, [Leave("return")], []))


def scalars(g: Gen) -> Expr:
    """A number that the host passes."""
    from conformance.generate.tree import Param

    d, value, note = g.pick((("i32", 3, ""), ("i32", -7, ""), ("f32", 1.5, ""), ("i32", 5, "")))
    name = g.fresh("n")
    g.params.append(Param(name, repr(value), note))
    return Expr(name, (), T(d), lambda ctx: np.asarray(ctx.memory[name], DTYPES[d].host), (), 3)

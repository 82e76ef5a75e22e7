"""Expressions: syntax → terms [execution-model §4]."""

from __future__ import annotations

import ast
import builtins
import enum
from collections.abc import Callable

from cutile.dtypes import bool_, info
from cutile.errors import TileError, TileSyntaxError, TileTypeError
from cutile.front import call, error_recovery, objects, static, stmt
from cutile.front.binding import ArgumentSpans
from cutile.front.context import Context
from cutile.front.hints import call_of, hint, nearest
from cutile.front.idioms import VARIABLES
from cutile.front.join import Join, conflict_help, type_text, versus
from cutile.front.operators import binary, kind, unary
from cutile.front.scope import MISSING, Scope, Var, home_of
from cutile.ir.nodes import If, Region, Value, Yield
from cutile.ir.recursion import STEPS, apart, deep, far_down
from cutile.ir.terms import (
    NONE,
    POISON,
    Closure,
    Const,
    Dict,
    FString,
    Leaf,
    Poison,
    PySlice,
    RawMemory,
    Record,
    Static,
    Term,
    Tuple,
    Unusable,
    View,
    article,
    call_help,
    is_poisoned,
    is_scalar,
    is_tile,
    phrase,
)
from cutile.ops import bits, compare, memory, shape
from cutile.ops._types import loose, value_of
from cutile.types import ArrayType, ListType, TileType


def evaluate(c: Context, s: Scope, node: ast.expr) -> Term:
    """The term of an expression; poison if it is wrong, or has different types on different paths."""
    term = evaluate_unused(c, s, node)
    return c.report(term.error(s.span(node))) if isinstance(term, Unusable) else term


def evaluate_unused(c: Context, s: Scope, node: ast.expr) -> Term:
    """The term of an expression whose value need not be usable: it is only given a name, or thrown away [JOIN-2]."""
    c.nested += 1
    try:
        if c.nested % STEPS == 0 and far_down():
            return apart(_evaluate, c, s, node)
        return _evaluate(c, s, node)
    finally:
        c.nested -= 1


def _evaluate(c: Context, s: Scope, node: ast.expr) -> Term:
    with c.at(s.span(node)):
        try:
            return error_recovery.expression(c, s, node) if node in c.refused else EXPRESSIONS[type(node)](c, s, node)
        except TileError as e:
            return c.report(e)


Evaluate = Callable[[Context, Scope, ast.expr], Term]


# ------------------------------------------------------------------ names and literals


def _constant(c: Context, s: Scope, node: ast.Constant) -> Term:
    v = node.value
    if v is None or v is Ellipsis or isinstance(v, str):
        return Static(v)
    if isinstance(v, bool | int | float):
        return c.attempt(c.span, loose, v)
    return c.report(TileTypeError(f"tile code has no {type(v).__name__} values: {v!r}"))


def _name(c: Context, s: Scope, node: ast.Name) -> Term:
    """Locals, then closure variables, then globals, then builtins [EX-4]."""
    name = node.id
    if (home := home_of(s, name)) is not None:
        return _variable(c, home, name)
    obj = c.outside(s, name)
    if obj is MISSING:
        return _nowhere(c, s, name, called=False)
    return objects.capture(c, obj, name)


def _callee(c: Context, s: Scope, node: ast.expr) -> Term:
    """What is called. A name that is not there may be that of a function elsewhere."""
    if isinstance(node, ast.Name) and home_of(s, node.id) is None and c.outside(s, node.id) is MISSING:
        with c.at(s.span(node)):
            return _nowhere(c, s, node.id, called=True)
    return evaluate(c, s, node)


def _nowhere(c: Context, s: Scope, name: str, *, called: bool) -> Term:
    close = nearest(name, [n for n in (*s.vars, *s.cells, *s.globals, *dir(builtins)) if n != name])
    meant = hint(name) if called or name in VARIABLES else None
    if close and name not in VARIABLES and not (called and call_of(name)):
        meant = f"did you mean `{close}`?"
    return _undefined(c, s, name, "", meant)


def _variable(c: Context, home: Scope, name: str) -> Term:
    var = home.vars.get(name)
    if var is None:
        return _undefined(
            c, home, name, ": it is assigned only later or elsewhere", f"assign `{name}` before this line"
        )
    if isinstance(var.term, Unusable):
        home.vars[name] = Var(POISON, var.span)  # one use is enough to say so
        return c.report(var.term.error(c.span))
    return var.term


def _undefined(c: Context, s: Scope, name: str, why: str, help: str | None) -> Term:
    if name in s.unknown:
        return POISON
    s.unknown.add(name)
    return c.report(TileSyntaxError(f"Undefined variable `{name}` used{why}", help=help))


def _tuple(c: Context, s: Scope, node: ast.Tuple) -> Term:
    return Tuple(tuple(_starred(c, s, node.elts)))


def _starred(c: Context, s: Scope, elts: list[ast.expr], evaluate: Evaluate = evaluate) -> list[Term]:
    """The items of a display or an argument list, `*tuple` spread out [EX-2]."""
    out: list[Term] = []
    for e in elts:
        if not isinstance(e, ast.Starred):
            out.append(evaluate(c, s, e))
            continue
        t = evaluate(c, s, e.value)
        if isinstance(t, Tuple):
            out += t.items
        else:
            bad = is_poisoned(t)
            out.append(
                POISON
                if bad
                else c.report(TileTypeError(f"only a tuple can be unpacked with *, not {phrase(t)}"), s.span(e))
            )
    return out


def _fstring(c: Context, s: Scope, node: ast.JoinedStr) -> Term:
    parts: list[str | tuple[Term, str]] = []
    for v in node.values:
        if isinstance(v, ast.Constant):
            parts.append(v.value)
        else:
            spec = "".join(x.value for x in v.format_spec.values) if v.format_spec else ""
            parts.append((evaluate(c, s, v.value), spec))
    return FString(tuple(parts))


def _lambda(c: Context, s: Scope, node: ast.Lambda) -> Term:
    return stmt.make_closure(c, s, node)


# ------------------------------------------------------------------ operators


def _binop(c: Context, s: Scope, node: ast.BinOp) -> Term:
    x, y = evaluate(c, s, node.left), evaluate(c, s, node.right)
    return binary(c, type(node.op), x, y, c.span, lambda: {"x": s.span(node.left), "y": s.span(node.right)})


def _unaryop(c: Context, s: Scope, node: ast.UnaryOp) -> Term:
    return unary(c, type(node.op), evaluate(c, s, node.operand), c.span)


def _compare(c: Context, s: Scope, node: ast.Compare) -> Term:
    """a < b < c: middle operands are evaluated once, and the chain stops at the first False [EX-10]."""
    left = evaluate(c, s, node.left)
    return _chain(c, s, left, list(zip(node.ops, node.comparators, strict=True)))


def _chain(c: Context, s: Scope, left: Term, rest: list[tuple[ast.cmpop, ast.expr]]) -> Term:
    (operator, node), *more = rest
    right = evaluate(c, s, node)
    result = _compare_once(c, operator, left, right)
    if not more or is_poisoned(result):
        return result
    return _short_circuit(c, s, result, lambda: _chain(c, s, right, more), False)


def _compare_once(c: Context, operator: ast.cmpop, x: Term, y: Term) -> Term:
    if is_poisoned(x) or is_poisoned(y):
        return POISON
    match operator:
        case ast.Is() | ast.IsNot():
            return _identity(c, x, y, isinstance(operator, ast.Is))
        case ast.In() | ast.NotIn():
            return _membership(c, x, y, isinstance(operator, ast.In))
        case _:
            return binary(c, type(operator), x, y, c.span)


def _identity(c: Context, x: Term, y: Term, positive: bool) -> Term:
    none = [isinstance(t, Static) and t.obj is None for t in (x, y)]
    if not any(none):
        return c.report(TileTypeError("`is` and `is not` compare with None only", help="write == or !="))
    return loose(all(none) == positive)


def _membership(c: Context, x: Term, y: Term, positive: bool) -> Term:
    if isinstance(y, Dict):
        if not (isinstance(x, Static) and isinstance(x.obj, str)):
            return c.report(TileTypeError(f"a key must be a string constant, not {phrase(x)}"))
        return loose((x.obj in y.items) == positive)
    if not isinstance(y, Tuple):
        return c.report(TileTypeError(f"`in` looks into tuples and keyword dicts, not into {phrase(y)}"))
    result: Term = loose(False)
    for item in y.items:
        same = binary(c, ast.Eq, x, item, c.span) if _comparable(x, item) else loose(False)
        if is_poisoned(same):
            return same
        if not is_scalar(same):
            return c.report(TileTypeError(
                f"`in` looks for one value, and {phrase(x)} compared with {phrase(item)} gives {phrase(same)}",
                help="compare with each item by ==, and join the masks by |"))
        if isinstance(same, Const) and same.value:
            result = loose(True)
            break
        if not isinstance(same, Const):
            result = (
                same
                if isinstance(result, Const)
                else call.call_op(c, bits.bitwise_or, {"x": result, "y": same}, c.span)
            )
    return result if positive else call.call_op(c, bits.bitwise_not, {"x": result}, c.span)


def _comparable(x: Term, y: Term) -> bool:
    return is_tile(x) and is_tile(y) or kind(x) == kind(y) != "other" or isinstance(x, Record) or isinstance(y, Record)


# ------------------------------------------------------------------ conditions


def condition(c: Context, s: Scope, node: ast.expr) -> bool | Value:
    """A condition: a Python bool if it is known at compile time, else a bool_ scalar [COND-1, COND-2]."""
    return truth(c, evaluate(c, s, node))


def truth(c: Context, t: Term) -> bool | Value:
    match t:
        case Poison():
            return Value(TileType(bool_))
        case Const():
            return bool(t.value)
        case Leaf(value=Value(type=TileType(shape=()))):
            if info(t.type.dtype).kind == "p":
                c.report(TileTypeError(f"{phrase(t)} cannot be used as a condition"))
                return Value(TileType(bool_))
            return value_of(c, compare.truth(c, t))
        case Static():
            return bool(t.obj) if t.obj is None or isinstance(t.obj, str | enum.Enum) else True
        case Tuple():
            return bool(t.items)
        case FString():
            return any(not isinstance(p, str) or p for p in t.parts)
        case Record() | Closure():
            return True
    is_tile_ = isinstance(t, Leaf) and isinstance(t.type, TileType)
    c.report(TileTypeError(
        f"{phrase(t)} cannot be used as a condition",
        help="a condition is one scalar: reduce the tile first (ct.max(mask.astype(ct.int32)) > 0 for any), "
             "or choose element by element with ct.where(mask, x, y); & joins masks" if is_tile_ else None))
    return Value(TileType(bool_))


def as_bool(c: Context, t: bool | Value) -> Term:
    return loose(t) if isinstance(t, bool) else Leaf(t)


def _boolop(c: Context, s: Scope, node: ast.BoolOp) -> Term:
    """`and`, `or`: short-circuit, and the result is a bool_ scalar [EX-13]."""
    stop_at = isinstance(node.op, ast.Or)

    def rest(i: int) -> Term:
        t = evaluate(c, s, node.values[i])
        if i == len(node.values) - 1 or is_poisoned(t):
            return t if is_poisoned(t) else as_bool(c, truth(c, t))
        return _short_circuit(c, s, t, lambda: rest(i + 1), stop_at)

    return rest(0)


@deep
def _short_circuit(c: Context, s: Scope, left: Term, right: Callable[[], Term], stop_at: bool) -> Term:
    cond = truth(c, left)
    if isinstance(cond, bool):
        if cond == stop_at:
            return loose(cond)
        t = right()
        return t if is_poisoned(t) else as_bool(c, truth(c, t))
    c.need_branch_free("`or`" if stop_at else "`and`", c.span)

    def go() -> Term:
        t = right()
        return t if is_poisoned(t) else as_bool(c, truth(c, t))

    def stay() -> Term:
        return loose(stop_at)

    t = choose(c, s, cond, *((stay, go) if stop_at else (go, stay)))
    return t if t is not None else POISON


def choose(c: Context, s: Scope, cond: Value, then: Callable[[], Term], orelse: Callable[[], Term]) -> Term | None:
    """A run-time choice between two expressions; None if their types differ, and then no value is handed on."""
    sides = []
    for side in (then, orelse):
        with c.into(Region()) as b:
            sides.append((b, side()))
    terms = [t for _, t in sides]
    join = Join(2)
    term = join.merge(terms)
    for i, (b, _) in enumerate(sides):
        with c.into(b):
            c.append(Yield(join.operands(c, i) if term is not None else (), c.span))
    c.append(If(cond, sides[0][0], sides[1][0], tuple(join.results) if term is not None else (), c.span))
    return term


def _ifexp(c: Context, s: Scope, node: ast.IfExp) -> Term:
    with c.at(s.span(node.test)):
        cond = condition(c, s, node.test)
    if isinstance(cond, bool):
        return evaluate_unused(c, s, node.body if cond else node.orelse)
    c.need_branch_free("a conditional expression on a run-time value", c.span)
    seen: list[Term] = []

    def side(n: ast.expr) -> Callable[[], Term]:
        def run() -> Term:
            seen.append(evaluate_unused(c, s, n))
            return seen[-1]
        return run

    term = choose(c, s, cond, side(node.body), side(node.orelse))
    if term is not None:
        return term
    if (inner := next((t for t in seen if isinstance(t, Unusable)), None)) is not None:
        return inner
    texts, sides = [type_text(t) for t in seen], [s.span(node.body), s.span(node.orelse)]
    message = f"Type of a conditional expression depends on path taken: {versus(texts)}"
    return Unusable(lambda span: TileTypeError(message, span, help=conflict_help(seen), notes=[
        (f"here it is {article(text)}", where) for text, where in zip(texts, sides, strict=True)]))


# ------------------------------------------------------------------ attributes, subscripts, calls


def _attribute(c: Context, s: Scope, node: ast.Attribute) -> Term:
    t = evaluate(c, s, node.value)
    return POISON if isinstance(t, Poison) else c.attempt(c.span, objects.attribute, c, t, node.attr)


def subscript_key(c: Context, s: Scope, node: ast.expr) -> Term:
    if isinstance(node, ast.Slice):
        return PySlice(*(NONE if p is None else evaluate(c, s, p) for p in (node.lower, node.upper, node.step)))
    if isinstance(node, ast.Tuple):
        keys = [_starred(c, s, [e]) if isinstance(e, ast.Starred) else [subscript_key(c, s, e)] for e in node.elts]
        return Tuple(tuple(k for part in keys for k in part))
    return evaluate(c, s, node)


def _subscript(c: Context, s: Scope, node: ast.Subscript) -> Term:
    t, key = evaluate(c, s, node.value), subscript_key(c, s, node.slice)
    return POISON if is_poisoned(t) or is_poisoned(key) else c.attempt(c.span, item, c, t, key)


def item(c: Context, t: Term, key: Term) -> Term:
    """t[key] [EX-6]."""
    match t:
        case Tuple():
            return _tuple_item(t, key)
        case Dict():
            if not (isinstance(key, Static) and isinstance(key.obj, str)):
                raise TileTypeError(f"a key must be a string constant, not {phrase(key)}")
            if key.obj not in t.items:
                raise TileTypeError(
                    f"no keyword argument {key.obj!r} was passed", help=f"passed: {', '.join(t.items) or 'none'}"
                )
            return t.items[key.obj]
        case Leaf(value=Value(type=ListType())):
            return memory.list_item(c, t, key)
        case Record() if hasattr(t.cls, "__getitem__"):
            return c.call(Static(t.cls.__getitem__), (t, key))
        case Const() | Leaf() if is_tile(t):
            return shape.index_tile(c, t, key)
        case Leaf(value=Value(type=ArrayType() as a)):
            raise TileTypeError(
                f"{phrase(t)} cannot be subscripted",
                help="ct.load(array, index, shape) reads a tile, ct.gather(array, indices) single elements, "
                     f"array.slice(axis, start, stop) makes a smaller view (rank {a.ndim})")
        case View():
            raise TileTypeError(f"{phrase(t)} cannot be subscripted", help="view.load(index) reads a tile")
        case RawMemory():
            raise TileTypeError(f"{phrase(t)} cannot be subscripted", help="memory.load_offset(offset) reads elements")
    raise TileTypeError(f"{phrase(t)} cannot be subscripted", help=call_help(t))


def _tuple_item(t: Tuple, key: Term) -> Term:
    if isinstance(key, PySlice):
        return Tuple(t.items[objects.python_slice(key)])
    if isinstance(key, Const) and info(key.dtype).integral:
        if not -len(t.items) <= key.value < len(t.items):
            raise TileTypeError(f"index {key.value} is out of range for a tuple of {len(t.items)} items")
        return t.items[key.value]
    raise TileTypeError(f"a tuple is indexed by an integer constant or a constant slice, not by {phrase(key)}",
                        help="loop with ct.static_iter to visit every item")


def _call(c: Context, s: Scope, node: ast.Call) -> Term:
    if (keyword := static.keyword(s, node)) is not None:
        return static.expression(c, s, node, keyword)
    func = _callee(c, s, node.func)
    if (
        isinstance(func, Static)
        and func.obj is tuple
        and len(node.args) == 1
        and isinstance(node.args[0], ast.GeneratorExp)
    ):
        return static.tuple_of(c, s, node.args[0])
    argument = evaluate_unused if call.inlines(func) else evaluate  # a parameter may stay unused
    args = _starred(c, s, node.args, argument)
    kwargs: dict[str, Term] = {}
    for k in node.keywords:
        t = (evaluate if k.arg is None else argument)(c, s, k.value)
        if k.arg is not None:
            new = {k.arg: t}
        elif isinstance(t, Dict):
            new = t.items
        else:
            new = {"**": POISON}  # the call is not looked at further
            if not is_poisoned(t):
                c.report(
                    TileTypeError(f"only a dict of keyword arguments can be passed with **, not {phrase(t)}"),
                    s.span(k.value),
                )
        for name, value in new.items():
            if name in kwargs:
                c.report(TileTypeError(f"keyword argument `{name}` is given twice"))
            kwargs[name] = value
    if isinstance(func, Poison):
        return POISON
    return call.call(c, func, tuple(args), kwargs, c.span, ArgumentSpans(s, node))


def _generator(c: Context, s: Scope, node: ast.GeneratorExp) -> Term:
    return static.tuple_of(c, s, node)


def _yield(c: Context, s: Scope, node: ast.Yield) -> Term:
    from cutile.front.context_managers import misplaced

    return misplaced(c, s, node)


EXPRESSIONS: dict[type[ast.expr], Callable[[Context, Scope, ast.expr], Term]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.JoinedStr: _fstring,
    ast.Lambda: _lambda,
    ast.BinOp: _binop,
    ast.UnaryOp: _unaryop,
    ast.Compare: _compare,
    ast.BoolOp: _boolop,
    ast.IfExp: _ifexp,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.GeneratorExp: _generator,
    ast.Yield: _yield,
}


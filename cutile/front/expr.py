"""Expressions: syntax → terms [execution-model §4]."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable

from cutile.dtypes import bool_, from_foreign, info
from cutile.errors import Span, TileSyntaxError, TileTypeError
from cutile.front import call, objects, static, stmt
from cutile.front.context import Context, nearest
from cutile.front.join import Join, same_object
from cutile.front.scope import MISSING, Scope, Var, outer_object
from cutile.front.syntax import static_keyword
from cutile.ir.nodes import Block, If, Value, Yield
from cutile.ir.terms import (
    NONE, POISON, Closure, Const, Dict, FString, Leaf, Poison, PySlice, Record, Static, Term, Tuple, Unusable, describe,
    is_poisoned, is_tile,
)
from cutile.ops import arithmetic, bits, compare, memory, mma, shape
from cutile.ops import math as math_ops
from cutile.ops._types import loose, value_of
from cutile.types import ArrayType, ListType, TileType


def evaluate(c: Context, s: Scope, node: ast.expr) -> Term:
    """The term of an expression; poison if it is wrong."""
    with c.at(s.definition.span(node, s.call_site)):
        return EXPRESSIONS[type(node)](c, s, node)


# ------------------------------------------------------------------ names and literals


def _constant(c: Context, s: Scope, node: ast.Constant) -> Term:
    v = node.value
    if v is None or v is Ellipsis or isinstance(v, str):
        return Static(v)
    if isinstance(v, bool | int | float):
        return c.attempt(c.span, loose, v)
    return c.report(TileTypeError(f"tile code has no {type(v).__name__} values: {v!r}"))


def _name(c: Context, s: Scope, node: ast.Name) -> Term:
    name = node.id
    scope: Scope | None = s
    while scope is not None:
        if name in scope.definition.locals:
            if name in scope.vars:
                return _use(c, scope.vars[name])
            return c.report(TileSyntaxError(f"Undefined variable `{name}` used: it is assigned only later or elsewhere",
                                            help=f"assign `{name}` before this line"))
        scope = scope.parent
    container, key, obj = outer_object(s, name)
    if obj is MISSING:
        close = nearest(name, [*s.vars, *s.cells, *s.globals])
        return c.report(TileSyntaxError(f"Undefined variable `{name}` used",
                                        help=f"did you mean `{close}`?" if close else None))
    c.reads.add(container, key, obj)
    return objects.capture(c, obj, name)


def _use(c: Context, var: Var) -> Term:
    if isinstance(var.term, Unusable):
        return c.report(var.term.error(c.span))
    return var.term


def _tuple(c: Context, s: Scope, node: ast.Tuple) -> Term:
    return Tuple(tuple(_starred(c, s, node.elts)))


def _starred(c: Context, s: Scope, elts: list[ast.expr]) -> list[Term]:
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
            out.append(POISON if bad else c.report(TileTypeError(f"only a tuple can be unpacked with *, not a {describe(t)}"),
                                                   s.definition.span(e, s.call_site)))
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

# AST operator → (symbol, op, name of the dunder that a dataclass may define).
BINARY: dict[type[ast.operator | ast.cmpop], tuple[str, object, str]] = {
    ast.Add: ("+", arithmetic.add, "add"),
    ast.Sub: ("-", arithmetic.sub, "sub"),
    ast.Mult: ("*", arithmetic.mul, "mul"),
    ast.Div: ("/", arithmetic.truediv, "truediv"),
    ast.FloorDiv: ("//", arithmetic.floordiv, "floordiv"),
    ast.Mod: ("%", arithmetic.mod, "mod"),
    ast.Pow: ("**", math_ops.pow, "pow"),
    ast.MatMult: ("@", mma.matmul, "matmul"),
    ast.BitAnd: ("&", bits.bitwise_and, "and"),
    ast.BitOr: ("|", bits.bitwise_or, "or"),
    ast.BitXor: ("^", bits.bitwise_xor, "xor"),
    ast.LShift: ("<<", bits.bitwise_lshift, "lshift"),
    ast.RShift: (">>", bits.bitwise_rshift, "rshift"),
    ast.Eq: ("==", compare.equal, "eq"),
    ast.NotEq: ("!=", compare.not_equal, "ne"),
    ast.Lt: ("<", compare.less, "lt"),
    ast.LtE: ("<=", compare.less_equal, "le"),
    ast.Gt: (">", compare.greater, "gt"),
    ast.GtE: (">=", compare.greater_equal, "ge"),
}
_REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def _binop(c: Context, s: Scope, node: ast.BinOp) -> Term:
    x, y = evaluate(c, s, node.left), evaluate(c, s, node.right)
    return binary(c, type(node.op), x, y, c.span)


def binary(c: Context, operator: type, x: Term, y: Term, span: Span) -> Term:
    """`x operator y` for any two terms."""
    if is_poisoned(x) or is_poisoned(y):
        return POISON
    symbol, op, dunder = BINARY[operator]
    if isinstance(x, Record) or isinstance(y, Record):
        return _record_operator(c, symbol, dunder, x, y, span)
    if (special := _COMPILE_TIME.get((symbol, _kind(x), _kind(y)))) is not None:
        return c.attempt(span, special, c, x, y)
    if is_tile(x) and is_tile(y):
        return call.call_op(c, op, {"x": x, "y": y}, span)
    return c.report(_unsupported(symbol, x, y), span)


def _unsupported(symbol: str, x: Term, y: Term) -> TileTypeError:
    array = next((t for t in (x, y) if isinstance(t, Leaf) and isinstance(t.type, ArrayType)), None)
    help = None
    if array is not None:
        zeros = ", ".join("0" for _ in range(array.type.ndim)) + ("," if array.type.ndim == 1 else "")
        help = (f"an array is memory, not a value: load a tile from it first, for example "
                f"ct.load(array, index=({zeros}), shape=...)")
    elif NONE in (x, y) or any(isinstance(t, Static) and t.obj is None for t in (x, y)):
        help = "compare with None by `is` and `is not`"
    return TileTypeError(f"unsupported operands for {symbol}: {describe(x)} and {describe(y)}", help=help)


def _kind(t: Term) -> str:
    """What decides the meaning of an operator on compile-time values."""
    match t:
        case Tuple():
            return "tuple"
        case Static(str()):
            return "str"
        case Static(enum.Enum() as e) if not isinstance(e, int):
            return "enum"
        case Static(obj) if from_foreign(obj) is not None:
            return "dtype"
        case FString():
            return "fstring"
        case _:
            return "other"


def _concat_tuples(c, x: Tuple, y: Tuple) -> Term:
    return Tuple(x.items + y.items)


def _concat_strings(c, x: Term, y: Term) -> Term:
    if isinstance(x, Static) and isinstance(y, Static):
        return Static(x.obj + y.obj)
    return FString(_text_parts(x) + _text_parts(y))


def _text_parts(t: Term) -> tuple:
    return t.parts if isinstance(t, FString) else (t.obj,)


def _tuples_equal(c: Context, x: Tuple, y: Tuple) -> Term:
    """Element-wise and recursive; different lengths are unequal [CV-1]."""
    if len(x.items) != len(y.items):
        return loose(False)
    result: Term = loose(True)
    for a, b in zip(x.items, y.items, strict=True):
        same = binary(c, ast.Eq, a, b, c.span)
        if is_poisoned(same):
            return same
        if isinstance(same, Const) and not same.value:
            return loose(False)
        if not isinstance(same, Const):
            result = same if isinstance(result, Const) else call.call_op(c, bits.bitwise_and, {"x": result, "y": same}, c.span)
    return result


def _negated(equal: Callable) -> Callable:
    def unequal(c: Context, x: Term, y: Term) -> Term:
        return call.call_op(c, bits.bitwise_not, {"x": equal(c, x, y)}, c.span)
    return unequal


def _objects_equal(c, x: Static, y: Static) -> Term:
    return loose(same_object(from_foreign(x.obj) or x.obj, from_foreign(y.obj) or y.obj))


def _objects_unequal(c, x: Static, y: Static) -> Term:
    return loose(not _objects_equal(c, x, y).value)


def _string_order(fn: Callable[[str, str], bool]) -> Callable:
    return lambda c, x, y: loose(fn(x.obj, y.obj))


_COMPILE_TIME: dict[tuple[str, str, str], Callable[[Context, Term, Term], Term]] = {
    ("+", "tuple", "tuple"): _concat_tuples,
    ("==", "tuple", "tuple"): _tuples_equal,
    ("!=", "tuple", "tuple"): _negated(_tuples_equal),
    ("+", "str", "str"): _concat_strings,
    ("+", "fstring", "str"): _concat_strings,
    ("+", "str", "fstring"): _concat_strings,
    ("+", "fstring", "fstring"): _concat_strings,
    ("<", "str", "str"): _string_order(str.__lt__),
    ("<=", "str", "str"): _string_order(str.__le__),
    (">", "str", "str"): _string_order(str.__gt__),
    (">=", "str", "str"): _string_order(str.__ge__),
    **{(sym, k, k): fn for k in ("str", "enum", "dtype") for sym, fn in (("==", _objects_equal), ("!=", _objects_unequal))},
}


def _record_operator(c: Context, symbol: str, dunder: str, x: Term, y: Term, span: Span) -> Term:
    """Operators of frozen dataclasses [DC-3]."""
    reflected = _REFLECTED.get(dunder, "r" + dunder)
    for a, b, name in ((x, y, dunder), (y, x, reflected)):
        if isinstance(a, Record):
            fn = getattr(a.cls, f"__{name}__", None)
            if objects.is_user_function(fn):
                return call.call(c, Static(fn), (a, b), {}, span)
    if isinstance(x, Record) and isinstance(y, Record) and symbol in ("==", "!="):
        if x.cls is not y.cls:
            return loose(symbol == "!=")
        return binary(c, ast.Eq if symbol == "==" else ast.NotEq, Tuple(tuple(x.fields.values())),
                      Tuple(tuple(y.fields.values())), span)
    if isinstance(x, Record) and isinstance(y, Record) and x.cls is y.cls and symbol in ("<", "<=", ">", ">=") and (
            x.cls.__dataclass_params__.order):
        return _lexicographic(c, symbol, list(x.fields.values()), list(y.fields.values()), span)
    return c.report(_unsupported(symbol, x, y), span)


def _lexicographic(c: Context, symbol: str, xs: list[Term], ys: list[Term], span: Span) -> Term:
    """dataclass(order=True): compare field by field, without branches."""
    strict_op = ast.Lt if symbol in ("<", "<=") else ast.Gt
    if not xs:
        return loose("=" in symbol)
    result = binary(c, ast.LtE if symbol == "<=" else ast.GtE if symbol == ">=" else strict_op, xs[-1], ys[-1], span)
    for a, b in zip(xs[-2::-1], ys[-2::-1], strict=True):
        tie = binary(c, ast.BitAnd, binary(c, ast.Eq, a, b, span), result, span)
        result = binary(c, ast.BitOr, binary(c, strict_op, a, b, span), tie, span)
    return result


UNARY: dict[type[ast.unaryop], tuple[str, object, str | None]] = {
    ast.USub: ("unary -", arithmetic.negative, "neg"),
    ast.UAdd: ("unary +", arithmetic.positive, "pos"),
    ast.Invert: ("~", bits.bitwise_not, "invert"),
    ast.Not: ("not", compare.logical_not, None),
}


def _unaryop(c: Context, s: Scope, node: ast.UnaryOp) -> Term:
    return unary(c, type(node.op), evaluate(c, s, node.operand), c.span)


def unary(c: Context, operator: type, x: Term, span: Span) -> Term:
    if is_poisoned(x):
        return POISON
    symbol, op, dunder = UNARY[operator]
    if isinstance(x, Record) and dunder and objects.is_user_function(fn := getattr(x.cls, f"__{dunder}__", None)):
        return call.call(c, Static(fn), (x,), {}, span)
    if operator is ast.Invert and isinstance(x, Const) and x.loose and x.dtype is bool_:
        return c.report(TileTypeError(f"~{x.value} is not defined for a bool constant",
                                      help="write `not x`, or ct.bitwise_not(x)"), span)
    if is_tile(x):
        return call.call_op(c, op, {"x": x}, span)
    help = None
    if operator is ast.Not:
        help = "write `x is None`, or test it with an if; `not` negates numbers and tiles"
    return c.report(TileTypeError(f"unsupported operand for {symbol}: {describe(x)}", help=help), span)


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
    return _short_circuit(c, s, result, lambda: _chain(c, s, right, more), stop_at=False)


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
            return c.report(TileTypeError(f"a key must be a string constant, not a {describe(x)}"))
        return loose((x.obj in y.items) == positive)
    if not isinstance(y, Tuple):
        return c.report(TileTypeError(f"`in` looks into tuples and keyword dicts, not into a {describe(y)}"))
    result: Term = loose(False)
    for item in y.items:
        same = binary(c, ast.Eq, x, item, c.span) if _comparable(x, item) else loose(False)
        if is_poisoned(same):
            return same
        if isinstance(same, Const) and same.value:
            result = loose(True)
            break
        if not isinstance(same, Const):
            result = same if isinstance(result, Const) else call.call_op(c, bits.bitwise_or, {"x": result, "y": same}, c.span)
    return result if positive else call.call_op(c, bits.bitwise_not, {"x": result}, c.span)


def _comparable(x: Term, y: Term) -> bool:
    return is_tile(x) and is_tile(y) or _kind(x) == _kind(y) != "other" or isinstance(x, Record) or isinstance(y, Record)


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
                c.report(TileTypeError(f"a {describe(t)} cannot be used as a condition"))
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
        f"a {describe(t)} cannot be used as a condition",
        help="a condition is one scalar: reduce the tile first (ct.max(mask.astype(ct.int32)) > 0 for any), "
             "or choose element by element with ct.where(mask, x, y)" if is_tile_ else None))
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
    """A run-time choice between two expressions; None if their types differ."""
    sides = []
    for side in (then, orelse):
        with c.into(Block()) as b:
            sides.append((b, side()))
    terms = [t for _, t in sides]
    join = Join(2)
    term = join.merge(terms)
    if term is not None:
        for i, (b, _) in enumerate(sides):
            with c.into(b):
                c.append(Yield(join.operands(c, i), c.span))
        c.append(If(cond, sides[0][0], sides[1][0], tuple(join.results), c.span))
    return term


def _ifexp(c: Context, s: Scope, node: ast.IfExp) -> Term:
    with c.at(s.definition.span(node.test, s.call_site)):
        cond = condition(c, s, node.test)
    if isinstance(cond, bool):
        return evaluate(c, s, node.body if cond else node.orelse)
    c.need_branch_free("a conditional expression on a run-time value", c.span)
    seen: list[Term] = []

    def side(n: ast.expr) -> Callable[[], Term]:
        def run() -> Term:
            seen.append(evaluate(c, s, n))
            return seen[-1]
        return run

    term = choose(c, s, cond, side(node.body), side(node.orelse))
    if term is None:
        return c.report(TileTypeError(
            f"Type of a conditional expression depends on path taken: {' vs. '.join(map(describe, seen))}",
            help="convert one side, or write literals alike (1.0 instead of 1)"))
    return term


# ------------------------------------------------------------------ attributes, subscripts, calls


def _attribute(c: Context, s: Scope, node: ast.Attribute) -> Term:
    t = evaluate(c, s, node.value)
    return POISON if isinstance(t, Poison) else c.attempt(c.span, objects.attribute, c, t, node.attr)


def subscript_key(c: Context, s: Scope, node: ast.expr) -> Term:
    if isinstance(node, ast.Slice):
        return PySlice(*(NONE if p is None else evaluate(c, s, p) for p in (node.lower, node.upper, node.step)))
    if isinstance(node, ast.Tuple):
        return Tuple(tuple(subscript_key(c, s, e) for e in node.elts))
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
                raise TileTypeError(f"a key must be a string constant, not a {describe(key)}")
            if key.obj not in t.items:
                raise TileTypeError(f"no keyword argument {key.obj!r} was passed", help=f"passed: {', '.join(t.items) or 'none'}")
            return t.items[key.obj]
        case Leaf(value=Value(type=ListType())):
            return memory.list_item(c, t, key)
        case Record() if hasattr(t.cls, "__getitem__"):
            return c.call(Static(t.cls.__getitem__), (t, key))
        case Const() | Leaf() if is_tile(t):
            return shape.index_tile(c, t, key)
        case Leaf(value=Value(type=ArrayType() as a)):
            raise TileTypeError(
                f"a {describe(t)} cannot be subscripted",
                help="ct.load(array, index, shape) reads a tile, ct.gather(array, indices) single elements, "
                     f"array.slice(axis, start, stop) makes a smaller view (rank {a.ndim})")
    raise TileTypeError(f"a {describe(t)} cannot be subscripted")


def _tuple_item(t: Tuple, key: Term) -> Term:
    if isinstance(key, PySlice):
        return Tuple(t.items[objects.python_slice(key)])
    if isinstance(key, Const) and info(key.dtype).integral:
        if not -len(t.items) <= key.value < len(t.items):
            raise TileTypeError(f"index {key.value} is out of range for a tuple of {len(t.items)} items")
        return t.items[key.value]
    raise TileTypeError(f"a tuple is indexed by an integer constant or a constant slice, not by a {describe(key)}",
                        help="loop with ct.static_iter to visit every item")


def _call(c: Context, s: Scope, node: ast.Call) -> Term:
    if static_keyword(node) and static.is_static_call(c, s, node):
        return static.expression(c, s, node)
    func = evaluate(c, s, node.func)
    if isinstance(func, Static) and func.obj is tuple and len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
        return static.tuple_of(c, s, node.args[0])
    args = _starred(c, s, node.args)
    kwargs: dict[str, Term] = {}
    for k in node.keywords:
        t = evaluate(c, s, k.value)
        if k.arg is not None:
            new = {k.arg: t}
        elif isinstance(t, Dict):
            new = t.items
        else:
            new = {}
            if not is_poisoned(t):
                c.report(TileTypeError(f"only a dict of keyword arguments can be passed with **, not a {describe(t)}"))
        for name, value in new.items():
            if name in kwargs:
                c.report(TileTypeError(f"keyword argument `{name}` is given twice"))
            kwargs[name] = value
    if isinstance(func, Poison):
        return POISON
    return call.call(c, func, tuple(args), kwargs, c.span)


def _generator(c: Context, s: Scope, node: ast.GeneratorExp) -> Term:
    return static.tuple_of(c, s, node)


def _yield(c: Context, s: Scope, node: ast.Yield) -> Term:
    return c.report(TileSyntaxError("yield is supported only as one plain statement of a context manager function"))


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


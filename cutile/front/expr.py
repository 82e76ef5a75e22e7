"""Expressions: from Python's syntax to terms [EX-*]."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable
from itertools import chain

from cutile.errors import TileError, TileSyntaxError, TileTypeError
from cutile.front import (
    attributes,
    callables,
    error_recovery,
    items,
    python_objects,
    repeated_ops,
    static,
    static_names,
)
from cutile.front.advice import call_of, hint, nearest
from cutile.front.assignment import assign
from cutile.front.conditions import choose, short_circuit, truth, truth_term
from cutile.front.context import Context
from cutile.front.definition import assigned_names, nested_definition
from cutile.front.foreign_names import VARIABLES
from cutile.front.op_calls import ArgumentSpans, call_op
from cutile.front.operators import binary, unary
from cutile.front.python_objects import NO_COMPLEX
from cutile.front.scope import MISSING, Member, Scope, Var, home_of, of_generator
from cutile.front.term_joins import conflict_help, type_text, versus
from cutile.ir.nodes import Value
from cutile.ir.recursion import STEPS, in_new_thread, near_limit
from cutile.ir.terms import (
    NONE,
    POISON,
    Bound,
    Closure,
    Const,
    Dict,
    FString,
    Leaf,
    Poison,
    PySlice,
    Static,
    Term,
    Tuple,
    Unusable,
    any_poisoned,
    article,
    is_poisoned,
    is_tile,
    phrase,
)
from cutile.ops._constants import loose
from cutile.ops._op import OpDef


def evaluate(c: Context, s: Scope, node: ast.expr) -> Term:
    """The term of an expression; poison if it is wrong, or has different types on different paths."""
    kind = type(node)
    if kind is ast.Name:  # a kernel has thousands of expressions: most are found here, without a span
        var = s.vars.get(node.id)
        if var is not None and type(var.term) in _READY and node.id in s.names and node not in c.refused:
            return var.term
    elif kind is ast.Attribute:
        member = c.members.get(node)
        if member is not None and member.still_there(s.globals):
            return member.term
    elif (term := c.literals.get(node)) is not None:
        return term
    term = evaluate_unused(c, s, node)
    return c.report(term.error(s.span(node))) if isinstance(term, Unusable) else term


_READY = frozenset({Leaf, Const, Static, Tuple})  # classes of terms that are used as they are


def evaluate_unused(c: Context, s: Scope, node: ast.expr) -> Term:
    """Like `evaluate`, for a value that is only given a name, or dropped. It may be `Unusable`: for example, it has
    different types on different paths [JOIN-2].
    """
    if (c.expression_depth + 1) % STEPS == 0 and near_limit():
        return in_new_thread(evaluate_unused, c, s, node)
    outer, c.span = c.span, s.spans.get(node) or s.span(node)  # as `with c.at(...)`, but quicker
    c.expression_depth += 1
    try:
        return error_recovery.expression(c, s, node) if node in c.refused else EXPRESSIONS[type(node)](c, s, node)
    except TileError as e:
        return c.report(e)
    finally:
        c.expression_depth -= 1
        c.span = outer


Evaluate = Callable[[Context, Scope, ast.expr], Term]


# ------------------------------------------------------------------ names and literals


def _constant(c: Context, s: Scope, node: ast.Constant) -> Term:
    v = node.value
    if v is None or v is Ellipsis or isinstance(v, str):
        term = c.literals[node] = Static(v)
        return term
    if isinstance(v, bool | int | float):
        term = c.attempt(loose, v)
        if isinstance(term, Const):
            c.literals[node] = term
        return term
    return c.report(TileTypeError(f"tile code has no {type(v).__name__} values: {v!r}",
                                  help=NO_COMPLEX if isinstance(v, complex) else None))


def _name(c: Context, s: Scope, node: ast.Name) -> Term:
    """A name is looked up in locals, closure variables, globals and builtins, in this order [EX-4]."""
    name = node.id
    if (home := home_of(s, name)) is not None:
        return _variable(c, s, home, name)
    obj = c.outside(s, name)
    if obj is MISSING:
        return _unknown_name(c, s, name, called=False)
    return python_objects.capture(c, obj, name)


def _callee(c: Context, s: Scope, node: ast.expr) -> Term:
    """The term that is called. If its name is unknown, the error says what to write instead of a function of another
    library that has this name.
    """
    if isinstance(node, ast.Name) and home_of(s, node.id) is None and c.outside(s, node.id) is MISSING:
        with c.at(s.span(node)):
            return _unknown_name(c, s, node.id, called=True)
    return evaluate(c, s, node)


def _unknown_name(c: Context, s: Scope, name: str, *, called: bool) -> Term:
    close = nearest(name, [n for n in (*s.vars, *s.cells, *s.globals, *dir(builtins)) if n != name])
    meant = hint(name) if called or name in VARIABLES else None
    if close and name not in VARIABLES and not (called and call_of(name)):
        meant = f"did you mean `{close}`?"
    return _undefined(c, s, name, "", meant)


def _variable(c: Context, s: Scope, home: Scope, name: str) -> Term:
    var = home.vars.get(name)
    if var is None:
        return _undefined(
            c, home, name, ": it is assigned only later or elsewhere", f"assign `{name}` before this line"
        )
    if isinstance(var.term, Unusable):
        home.vars[name] = Var(POISON, var.span)  # so that later uses are not reported
        return c.report(var.term.error(c.span), once=home is not s)
    return var.term


def _undefined(c: Context, s: Scope, name: str, why: str, help: str | None) -> Term:
    if name in s.unknown:
        return POISON
    s.unknown.add(name)
    return c.report(TileSyntaxError(f"Undefined variable `{name}` used{why}", help=help), once=True)


def _tuple(c: Context, s: Scope, node: ast.Tuple) -> Term:
    term = Tuple(tuple(_starred(c, s, node.elts)))
    if c.literals.keys() >= {*node.elts}:
        c.literals[node] = term
    return term


def _starred(c: Context, s: Scope, elts: list[ast.expr], evaluate: Evaluate = evaluate) -> list[Term]:
    """The terms of the items of a tuple display or an argument list; `*tuple` gives each of its items [EX-2]."""
    out: list[Term] = []
    for e in elts:
        if not isinstance(e, ast.Starred):
            out.append(evaluate(c, s, e))
            continue
        t = evaluate(c, s, e.value)
        if isinstance(t, Tuple):
            out += t.items
        else:
            if not is_poisoned(t):
                c.report(TileTypeError(f"only a tuple can be unpacked with *, not {phrase(t)}"), s.span(e))
            out.append(POISON)
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


# ------------------------------------------------------------------ operators


def _binop(c: Context, s: Scope, node: ast.BinOp) -> Term:
    x, y = evaluate(c, s, node.left), evaluate(c, s, node.right)
    return binary(c, type(node.op), x, y, lambda: {"x": s.span(node.left), "y": s.span(node.right)})


def _unaryop(c: Context, s: Scope, node: ast.UnaryOp) -> Term:
    return unary(c, type(node.op), evaluate(c, s, node.operand))


def _compare(c: Context, s: Scope, node: ast.Compare) -> Term:
    """a < b < c: each operand is evaluated once at most, and the chain stops at the first False [EX-10]."""
    left = evaluate(c, s, node.left)
    if len(node.ops) == 1:
        return _compare_once(c, node.ops[0], left, evaluate(c, s, node.comparators[0]))
    return _chain(c, s, left, list(zip(node.ops, node.comparators, strict=True)))


def _chain(c: Context, s: Scope, left: Term, rest: list[tuple[ast.cmpop, ast.expr]]) -> Term:
    (operator, node), *more = rest
    right = evaluate(c, s, node)
    result = _compare_once(c, operator, left, right)
    if not more or is_poisoned(result):
        return result
    return short_circuit(c, result, lambda: _chain(c, s, right, more), False)


def _compare_once(c: Context, operator: ast.cmpop, x: Term, y: Term) -> Term:
    if is_poisoned(x) or is_poisoned(y):
        return POISON
    kind = type(operator)
    if kind in (ast.Is, ast.IsNot):
        return _identity(c, x, y, kind is ast.Is)
    if kind in (ast.In, ast.NotIn):
        return items.contains(c, x, y, kind is ast.In)
    return binary(c, kind, x, y)


def _identity(c: Context, x: Term, y: Term, positive: bool) -> Term:
    none = [isinstance(t, Static) and t.obj is None for t in (x, y)]
    if not any(none):
        return c.report(TileTypeError("`is` and `is not` compare with None only", help="write == or !="))
    return loose(all(none) == positive)


# ------------------------------------------------------------------ conditions


def condition(c: Context, s: Scope, node: ast.expr) -> bool | Value:
    """The truth of an expression: a Python bool if it is known at compile time, else a bool_ scalar."""
    return truth(c, evaluate(c, s, node))


def _boolop(c: Context, s: Scope, node: ast.BoolOp) -> Term:
    """`and`, `or`: short-circuit, and the result is a bool_ scalar [EX-13]."""
    stop_at = isinstance(node.op, ast.Or)

    def rest(i: int) -> Term:
        t = evaluate(c, s, node.values[i])
        if i == len(node.values) - 1 or is_poisoned(t):
            return truth_term(c, t)
        return short_circuit(c, t, lambda: rest(i + 1), stop_at)

    return rest(0)


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

    term = choose(c, cond, side(node.body), side(node.orelse))
    if term is not None:
        return term
    if (inner := next((t for t in seen if isinstance(t, Unusable)), None)) is not None:
        return inner
    texts, sides = [type_text(t) for t in seen], [s.span(node.body), s.span(node.orelse)]
    message = f"Type of a conditional expression depends on path taken: {versus(seen)}"
    return Unusable(lambda span: TileTypeError(message, span, help=conflict_help(seen), notes=[
        (f"here it is {article(text)}", where) for text, where in zip(texts, sides, strict=True)]))


# ------------------------------------------------------------------ attributes, subscripts, calls


def _attribute(c: Context, s: Scope, node: ast.Attribute) -> Term:
    known = c.members.get(node)
    if known is None and type(node.value) is ast.Name and home_of(s, node.value.id) is None \
            and node.value.id not in s.cells:
        known = c.named_members.get((node.value.id, node.attr))
    if known is not None and known.still_there(s.globals):
        c.members[node] = known
        return known.term
    t = evaluate(c, s, node.value)
    if isinstance(t, Static) and type(t.obj) is types.ModuleType and isinstance(node.value, ast.Name):
        return _member(c, s, node, node.value.id, t)
    return POISON if isinstance(t, Poison) else c.attempt(attributes.attribute, c, t, node.attr)


def _member(c: Context, s: Scope, node: ast.Attribute, name: str, module: Static) -> Term:
    """An attribute of a module. That of a module which a global names is kept for the next evaluation."""
    term = c.attempt(attributes.attribute, c, module, node.attr)
    if isinstance(term, Static) and home_of(s, name) is None and name not in s.cells \
            and s.globals.get(name) is module.obj:
        c.members[node] = c.named_members[name, node.attr] = Member(
            s.globals, name, module.obj, node.attr, getattr(module.obj, node.attr, MISSING), term)
    return term


def _subscript(c: Context, s: Scope, node: ast.Subscript) -> Term:
    t, key = evaluate(c, s, node.value), evaluate(c, s, node.slice)
    if is_poisoned(t) or is_poisoned(key):
        return POISON
    if type(t) is Leaf and is_tile(t):
        return repeated_ops.apply(c, items.item, {"t": t, "key": key}, lambda: c.attempt(items.item, c, t, key))
    return c.attempt(items.item, c, t, key)


def _slice(c: Context, s: Scope, node: ast.Slice) -> Term:
    parts = (node.lower, node.upper, node.step)
    term = PySlice(*[NONE if p is None else evaluate(c, s, p) for p in parts])
    if parts == (None, None, None):
        c.literals[node] = term
    return term


def _call(c: Context, s: Scope, node: ast.Call) -> Term:
    member = c.members.get(node.func)
    if member is not None and type(member.term.obj) is OpDef and member.still_there(s.globals):  # as most are
        func: Term = member.term
    elif (construct := static_names.construct_of(s, node)) is not None:
        return static.expression(c, s, node, construct)
    else:
        func = _callee(c, s, node.func)
    receiver, called = (func.receiver, func.func) if type(func) is Bound else (None, func)
    of_op = type(called) is Static and type(called.obj) is OpDef  # most calls are; nothing else is looked at then
    # A function that is inlined might ignore an argument.
    argument = evaluate_unused if not of_op and callables.inlines(func) else evaluate
    args = _starred(c, s, node.args, argument)
    kwargs: dict[str, Term] = {}
    for k in node.keywords:
        t = (evaluate if k.arg is None else argument)(c, s, k.value)
        if k.arg is not None and k.arg not in kwargs:  # as most are
            kwargs[k.arg] = t
            continue
        if k.arg is not None:
            new = {k.arg: t}
        elif isinstance(t, Dict):
            new = t.items
        else:
            new = {"**": POISON}  # poisons the call
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
    if of_op:  # as `call` does, but quicker
        if any_poisoned(args) or kwargs and any_poisoned(kwargs.values()) or receiver and is_poisoned(receiver):
            return POISON
        return call_op(c, called.obj, tuple(args), kwargs, ArgumentSpans(s, node), receiver)
    return c.call(func, args, kwargs, ArgumentSpans(s, node))


# ------------------------------------------------------------------ functions and generators


def make_closure(c: Context, s: Scope, node: ast.FunctionDef | ast.Lambda) -> Closure:
    """A nested def or lambda; its defaults are evaluated now [CALL-1]."""
    a = node.args
    positional = [*a.posonlyargs, *a.args]
    named = chain(zip([p.arg for p in positional[len(positional) - len(a.defaults):]], a.defaults, strict=True),
                  ((p.arg, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None))
    return Closure(nested_definition(s.definition, node), s, {n: evaluate(c, s, d) for n, d in named})


def _tuple_of(c: Context, s: Scope, node: ast.GeneratorExp) -> Term:
    """tuple(element for target in ct.static_iter(…) if …) [EX-3]."""
    out: list[Term] = []
    unknown = False  # whether an error hides what the items are
    targets = [ast.For(g.target, ast.Constant(0), [], []) for g in node.generators]
    inner = of_generator(s, assigned_names(targets))  # a generator has its own scope

    def loop(depth: int) -> None:
        nonlocal unknown
        if depth == len(node.generators):
            out.append(evaluate(c, inner, node.elt))
            return
        g = node.generators[depth]
        items = static.iterate(c, inner if depth else s, g.iter)
        unknown = unknown or items is None
        for item in items or ():
            assign(c, inner, g.target, item, s.span(g.target))
            held = next((h for test in g.ifs if not (h := _holds(c, inner, test))), True)
            unknown = unknown or held is None
            if held:
                loop(depth + 1)

    loop(0)
    return POISON if unknown else Tuple(tuple(out))


def _holds(c: Context, s: Scope, test: ast.expr) -> bool | None:
    """The condition of a generator, which must be known at compile time; None after an error."""
    term = evaluate(c, s, test)
    cond = None if is_poisoned(term) else truth(c, term)
    if cond is None or isinstance(cond, bool):
        return cond
    c.report(
        TileTypeError(f"the condition of a generator must be known at compile time, got {phrase(term)}"), s.span(test)
    )
    return None


def _misplaced_yield(c: Context, s: Scope, node: ast.Yield) -> Term:
    """A yield of a context manager that context_managers.py did not take: a second one, or one in a loop [CM-1]."""
    raise TileTypeError(
        f"the context manager {s.function} must contain exactly one yield, outside of loops and branches",
        help="yield in a statement of its own, at the top level of the function or in a with statement there")


EXPRESSIONS: dict[type[ast.expr], Evaluate] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.JoinedStr: _fstring,
    ast.Lambda: make_closure,
    ast.BinOp: _binop,
    ast.UnaryOp: _unaryop,
    ast.Compare: _compare,
    ast.BoolOp: _boolop,
    ast.IfExp: _ifexp,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Call: _call,
    ast.GeneratorExp: _tuple_of,
    ast.Yield: _misplaced_yield,
}

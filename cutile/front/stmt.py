"""Statements: assignment and structured control flow [execution-model §4, §6, §7].

`block` types statements until control leaves. Branches work on copies of the scope's variables and are joined; loops
decide what they carry before their body is typed, since a Break or Continue anywhere must know it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

from cutile.errors import Span, TileError, TileSyntaxError, TileTypeError, TileValueError
from cutile.front import closures, error_recovery, expr, loops, operators, static
from cutile.front.context import Context
from cutile.front.join import Join, conflict, template_of, type_text, undefined, versus
from cutile.front.scope import ReturnPoint, Scope, Var
from cutile.front.source import nested_definition
from cutile.ir.nodes import Bind, If, Known, Region, Return, Value, Yield
from cutile.ir.recursion import deep
from cutile.ir.terms import (
    NONE,
    POISON,
    Closure,
    Dict,
    Leaf,
    Poison,
    RawMemory,
    Record,
    Static,
    Term,
    Tuple,
    Unusable,
    View,
    article,
    is_poisoned,
    is_tile,
    phrase,
)


@deep
def block(c: Context, s: Scope, body: Iterable[ast.stmt]) -> bool:
    """Type statements in order; False if control cannot reach the end."""
    for node in body:
        start = len(c.region.nodes)
        with c.at(s.span(node)):
            falls = True
            try:
                passed = node in c.refused
                falls = error_recovery.statement(c, s, node) if passed else STATEMENTS[type(node)](c, s, node)
            except TileError as e:
                c.report(e)
            _mark(c, node, start)
        if not falls:
            return False
    return True


def _mark(c: Context, node: ast.stmt, start: int) -> None:
    """A statement that left nothing in the IR still has a line to stop at, and to count."""
    if _is_docstring(node) or any(n.span.line == c.span.line for n in c.region.nodes[start:]):
        return
    c.region.nodes.insert(start, Bind("", Known(None), c.span))


# ------------------------------------------------------------------ assignment


def assign(c: Context, s: Scope, target: ast.AST, term: Term, span: Span) -> None:
    """Bind a target, which may be a nested pattern [ST-2]."""
    match target:
        case ast.Name(id=name):
            s.vars[name] = Var(term, span)
            if not is_poisoned(term) and not isinstance(term, Unusable):
                c.bind(name, template_of(term), span)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for t, item in zip(targets, _unpack(c, len(targets), term, span), strict=True):
                assign(c, s, t, item, span)
        case ast.Subscript():
            _assign_item(c, s, target, term, span)


def _unpack(c: Context, n: int, term: Term, span: Span) -> tuple[Term, ...]:
    if isinstance(term, Poison):
        return (POISON,) * n
    if not isinstance(term, Tuple):
        c.report(TileTypeError(f"cannot unpack {phrase(term)}: only tuples can be unpacked"), span)
        return (POISON,) * n
    if len(term.items) != n:
        few = "not enough" if len(term.items) < n else "too many"
        c.report(TileValueError(f"{few} values to unpack: expected {n}, got {len(term.items)}"), span)
        return (POISON,) * n
    return term.items


def _assign_item(c: Context, s: Scope, target: ast.Subscript, term: Term, span: Span) -> None:
    obj = expr.evaluate(c, s, target.value)
    if isinstance(obj, Poison):
        return
    if isinstance(obj, Record) and hasattr(obj.cls, "__setitem__"):
        key = expr.subscript_key(c, s, target.slice)
        c.call(Static(obj.cls.__setitem__), (obj, key, term))
        return
    if is_tile(obj):
        help = "tiles are immutable: ct.where(mask, x, y) chooses by element, ct.insert(x, index, value) puts a part"
    elif isinstance(obj, Leaf):
        help = "write to memory with ct.store(array, index, tile) or ct.scatter(array, indices, value)"
    elif isinstance(obj, View | RawMemory):
        help = "view.store(index, tile) writes a tile" if isinstance(obj, View) else (
            "memory.store_offset(offset, value) writes elements")
    else:
        help = "tuples and dicts are immutable: build a new one" if isinstance(obj, Tuple | Dict) else None
    c.report(TileTypeError(f"{phrase(obj)} cannot be assigned to by item", help=help), span)


def _assign_stmt(c: Context, s: Scope, node: ast.Assign) -> bool:
    lazy = all(isinstance(t, ast.Name) for t in node.targets)
    term = (expr.evaluate_unused if lazy else expr.evaluate)(c, s, node.value)
    for t in node.targets:
        assign(c, s, t, term, s.span(t) if isinstance(t, ast.Subscript) else c.span)
    return True


def _ann_assign(c: Context, s: Scope, node: ast.AnnAssign) -> bool:
    if node.value is not None:
        assign(c, s, node.target, expr.evaluate(c, s, node.value), c.span)
    return True


def _aug_assign(c: Context, s: Scope, node: ast.AugAssign) -> bool:
    load = ast.copy_location(_as_load(node.target), node.target)
    left, right = expr.evaluate(c, s, load), expr.evaluate(c, s, node.value)
    assign(c, s, node.target, operators.binary(c, type(node.op), left, right, c.span), c.span)
    return True


def _as_load(target: ast.AST) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Subscript():
            return ast.Subscript(target.value, target.slice, ast.Load())
    return target


def _expr_stmt(c: Context, s: Scope, node: ast.Expr) -> bool:
    if not _is_docstring(node):
        expr.evaluate_unused(c, s, node.value)
    return True


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _function_def(c: Context, s: Scope, node: ast.FunctionDef) -> bool:
    term = make_closure(c, s, node)
    s.vars[node.name] = Var(term, c.span)
    return True


def make_closure(c: Context, s: Scope, node: ast.FunctionDef | ast.Lambda) -> Closure:
    """A nested def or lambda; its defaults are evaluated now [CALL-1]."""
    a = node.args
    positional = [*a.posonlyargs, *a.args]
    named = chain(zip([p.arg for p in positional[len(positional) - len(a.defaults):]], a.defaults, strict=True),
                  ((p.arg, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None))
    return Closure(nested_definition(s.definition, node), s, {n: expr.evaluate(c, s, d) for n, d in named})


# ------------------------------------------------------------------ if


def _if(c: Context, s: Scope, node: ast.If) -> bool:
    with c.at(s.span(node.test)):
        cond = expr.condition(c, s, node.test)
    if isinstance(cond, bool):
        return block(c, s, node.body if cond else node.orelse)
    c.need_branch_free("a branch on a run-time value", s.span(node.test))
    return branch(c, s, cond, lambda: block(c, s, node.body), lambda: block(c, s, node.orelse))


def branch(c: Context, s: Scope, cond: Value, then: Callable[[], bool], orelse: Callable[[], bool]) -> bool:
    """Type both sides of a run-time branch and join what they leave behind."""
    before = s.vars
    paths: list[tuple[Region, dict[str, Var], bool]] = []
    for side in (then, orelse):
        s.vars = dict(before)
        with c.into(Region()) as b:
            falls = side()
        paths.append((b, s.vars, falls))
    arriving = [(b, vars) for b, vars, falls in paths if falls]
    join = Join(len(arriving))
    s.vars = _joined(join, before, [vars for _, vars in arriving]) if arriving else before
    for i, (b, _) in enumerate(arriving):
        with c.into(b):
            c.append(Yield(join.operands(c, i), c.span))
    c.append(If(cond, paths[0][0], paths[1][0], tuple(join.results), c.span))
    bind_results(c, s, before)
    return bool(arriving)


def _joined(join: Join, before: dict[str, Var], arriving: list[dict[str, Var]]) -> dict[str, Var]:
    """The variables after a meeting of paths, in a stable order."""
    out: dict[str, Var] = {}
    for name in dict.fromkeys(chain.from_iterable(arriving)):
        vars = [v.get(name) for v in arriving]
        if all(v is vars[0] for v in vars) and (vars[0] is before.get(name)):
            out[name] = vars[0]
        elif any(v is None for v in vars):
            some = next(v for v in vars if v is not None)
            out[name] = Var(undefined(name), some.span)
        else:
            out[name] = join_var(join, name, vars)
    return out


def join_var(join: Join, name: str, vars: list[Var]) -> Var:
    for v in vars:
        if isinstance(v.term, Unusable):
            return v
    term = join.merge([v.term for v in vars])
    if term is None:
        term = conflict(name, [v.term for v in vars], [v.span for v in vars])
    return Var(term, vars[-1].span)


def bind_results(c: Context, s: Scope, before: dict[str, Var]) -> None:
    """Tell the debugger what the joined variables are now."""
    for name, var in s.vars.items():
        old = before.get(name)
        if (old is None or old.term is not var.term) and not isinstance(var.term, Unusable | Closure) and (
                not is_poisoned(var.term)):
            c.bind(name, template_of(var.term), var.span)


# ------------------------------------------------------------------ leaving a function


@contextmanager
def before_terminator(c: Context, b: Region) -> Iterator[None]:
    """Append to a finished block, in front of the terminator."""
    with c.into(Region()) as made:
        yield
    b.nodes[-1:-1] = made.nodes


def run_cleanups(c: Context, s: Scope, depth: int) -> bool:
    """Type the exit code of the context managers above `depth`, innermost first, as seen from here.

    False if control does not get to its end.
    """
    saved, falls = s.cleanups, True
    for i in range(len(saved) - 1, depth - 1, -1):
        s.cleanups = saved[:i]
        falls = falls and saved[i]()
    s.cleanups = saved
    return falls


_RETURNED = "return"  # among a scope's variables, for closures in it to end with the managers that are left


def _return(c: Context, s: Scope, node: ast.Return) -> bool:
    if s.unrolling:
        c.report(TileSyntaxError("return cannot be used in the body of a static_iter loop",
                                 help="assign to a variable and return it after the loop"))
        return False
    term = NONE if node.value is None else expr.evaluate(c, s, node.value)
    s.vars[_RETURNED] = Var(term, c.span)
    falls = run_cleanups(c, s, 0)
    term = s.vars.pop(_RETURNED).term
    if falls:
        return_value(c, s, term)
    return False


def return_value(c: Context, s: Scope, term: Term) -> None:
    term = closures.leaving(term, s)
    node = Return((), c.span)
    s.returns.append(ReturnPoint(term, c.region, node, c.span))
    c.append(node)


def join_returns(c: Context, s: Scope) -> tuple[Term, tuple[Value, ...]]:
    """What a call gives: the join of its returns, which must have one type [CALL-3]; and the frame's results."""
    points = s.returns
    if not points:
        return NONE, ()
    bad = next((p for p in points if is_poisoned(p.term)), None)
    if bad is not None:
        return POISON, ()
    join = Join(len(points), inside=True)
    term = join.merge([p.term for p in points])
    if term is None:
        points = sorted(points, key=lambda p: p.span.line)
        texts = [type_text(p.term) for p in points]
        c.report(TileTypeError(
            f"Type of return value depends on path taken: {versus(texts)}",
            notes=[(f"here {s.function} returns {article(t)}", p.span) for t, p in zip(texts, points, strict=True)],
            help="return the same type on every path; falling off the end returns None"), points[-1].span)
        return POISON, ()
    for i, p in enumerate(points):
        with before_terminator(c, p.region):
            p.node.operands = join.operands(c, i)
    return term, tuple(join.results)


def _raise(c: Context, s: Scope, node: ast.Raise) -> bool:
    static.exception(c, s, node.exc)
    return False


# ------------------------------------------------------------------ with


def _with(c: Context, s: Scope, node: ast.With) -> bool:
    from cutile.front.context_managers import enter

    return enter(c, s, node.items, node.body)


def _pass(c: Context, s: Scope, node: ast.stmt) -> bool:
    return True


STATEMENTS: dict[type[ast.stmt], Callable[[Context, Scope, ast.stmt], bool]] = {
    ast.Assign: _assign_stmt,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.Expr: _expr_stmt,
    ast.FunctionDef: _function_def,
    ast.If: _if,
    ast.While: loops.while_,
    ast.For: loops.for_,
    ast.Break: loops.break_,
    ast.Continue: loops.continue_,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.With: _with,
    ast.Pass: _pass,
}

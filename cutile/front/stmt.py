"""Statements: assignment and structured control flow [execution-model §4, §6, §7].

`block` types statements until control leaves. Branches work on copies of the scope's variables and are joined; loops
decide what they carry before their body is typed, since a Break or Continue anywhere must know it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

from cutile.dtypes import bool_
from cutile.errors import Span, TileSyntaxError, TileTypeError, TileValueError
from cutile.front import expr, static
from cutile.front.context import Context
from cutile.front.join import Join, conflict, leaves, rebuild, same_structure, template_of, undefined
from cutile.front.scope import Edge, LoopState, ReturnPoint, Scope, Var
from cutile.front.source import assigned_names, nested_definition
from cutile.front.syntax import static_keyword
from cutile.ir.nodes import Block, Break, Continue, For, If, Return, Value, While, Yield
from cutile.ir.terms import (
    NONE, POISON, Closure, Const, Leaf, Poison, Range, Record, Static, Term, Tuple, Unusable, describe, is_poisoned,
)
from cutile.ops._types import value_of
from cutile.types import TileType


def block(c: Context, s: Scope, body: Iterable[ast.stmt]) -> bool:
    """Type statements in order; False if control cannot reach the end."""
    for node in body:
        with c.at(s.definition.span(node, s.call_site)):
            if not STATEMENTS[type(node)](c, s, node):
                return False
    return True


# ------------------------------------------------------------------ assignment


def assign(c: Context, s: Scope, target: ast.AST, term: Term, span: Span) -> None:
    """Bind a target, which may be a nested pattern [ST-2]."""
    match target:
        case ast.Name(id=name):
            s.vars[name] = Var(term, span)
            if not is_poisoned(term):
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
        c.report(TileTypeError(f"cannot unpack a {describe(term)}: only tuples can be unpacked"), span)
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
    help = "write to memory with ct.store(array, index, tile) or ct.scatter(array, indices, value)" if (
        isinstance(obj, Leaf)) else "tuples and dicts are immutable: build a new one"
    c.report(TileTypeError(f"a {describe(obj)} cannot be assigned to by item", help=help), span)


def _assign_stmt(c: Context, s: Scope, node: ast.Assign) -> bool:
    term = expr.evaluate(c, s, node.value)
    for t in node.targets:
        assign(c, s, t, term, s.definition.span(t, s.call_site) if isinstance(t, ast.Subscript) else c.span)
    return True


def _ann_assign(c: Context, s: Scope, node: ast.AnnAssign) -> bool:
    if node.value is not None:
        assign(c, s, node.target, expr.evaluate(c, s, node.value), c.span)
    return True


def _aug_assign(c: Context, s: Scope, node: ast.AugAssign) -> bool:
    load = ast.copy_location(_as_load(node.target), node.target)
    left, right = expr.evaluate(c, s, load), expr.evaluate(c, s, node.value)
    assign(c, s, node.target, expr.binary(c, type(node.op), left, right, c.span), c.span)
    return True


def _as_load(target: ast.AST) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Subscript():
            return ast.Subscript(target.value, target.slice, ast.Load())
    return target


def _expr_stmt(c: Context, s: Scope, node: ast.Expr) -> bool:
    if not isinstance(node.value, ast.Constant):  # docstrings and `...` mean nothing
        expr.evaluate(c, s, node.value)
    return True


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
    with c.at(s.definition.span(node.test, s.call_site)):
        cond = expr.condition(c, s, node.test)
    if isinstance(cond, bool):
        return block(c, s, node.body if cond else node.orelse)
    c.need_branch_free("a branch on a run-time value", s.definition.span(node.test, s.call_site))
    return branch(c, s, cond, lambda: block(c, s, node.body), lambda: block(c, s, node.orelse))


def branch(c: Context, s: Scope, cond: Value, then: Callable[[], bool], orelse: Callable[[], bool]) -> bool:
    """Type both sides of a run-time branch and join what they leave behind."""
    before = s.vars
    paths: list[tuple[Block, dict[str, Var], bool]] = []
    for side in (then, orelse):
        s.vars = dict(before)
        with c.into(Block()) as b:
            falls = side()
        paths.append((b, s.vars, falls))
    arriving = [(b, vars) for b, vars, falls in paths if falls]
    join = Join(len(arriving))
    s.vars = _joined(join, before, [vars for _, vars in arriving]) if arriving else before
    for i, (b, _) in enumerate(arriving):
        with c.into(b):
            c.append(Yield(join.operands(c, i), c.span))
    c.append(If(cond, paths[0][0], paths[1][0], tuple(join.results), c.span))
    _bind_results(c, s, before)
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
            out[name] = _join_var(join, name, vars)
    return out


def _join_var(join: Join, name: str, vars: list[Var]) -> Var:
    for v in vars:
        if isinstance(v.term, Unusable):
            return v
    term = join.merge([v.term for v in vars])
    if term is None:
        term = conflict(name, [v.term for v in vars], [v.span for v in vars])
    return Var(term, vars[-1].span)


def _bind_results(c: Context, s: Scope, before: dict[str, Var]) -> None:
    """Tell the debugger what the joined variables are now."""
    for name, var in s.vars.items():
        old = before.get(name)
        if (old is None or old.term is not var.term) and not isinstance(var.term, Unusable | Closure) and (
                not is_poisoned(var.term)):
            c.bind(name, template_of(var.term), var.span)


# ------------------------------------------------------------------ loops


def _while(c: Context, s: Scope, node: ast.While) -> bool:
    c.need_branch_free("a loop", c.span)
    header = _Header(c, s, assigned_names(node.body))
    with c.into(Block()) as cond_block, c.at(s.definition.span(node.test, s.call_site)):
        cond = expr.condition(c, s, node.test)
        if not isinstance(cond, bool):
            c.append(Yield((cond,), c.span))
    if cond is False:
        header.undo()
        return True
    body = header.body(lambda: block(c, s, node.body), infinite=cond is True)
    results, falls = header.finish(normal_exit=cond is not True)
    c.append(While(None if cond is True else cond_block, header.inits, header.params, body, results, c.span))
    header.bind_results()
    return falls


def _for(c: Context, s: Scope, node: ast.For) -> bool:
    if static_keyword(node.iter) == "static_iter" and (items := static.iterate(c, s, node.iter)) is not None:
        return _unroll(c, s, node, items)
    source = expr.evaluate(c, s, node.iter)
    iter_span = s.definition.span(node.iter, s.call_site)
    if isinstance(source, Poison):
        source = None
    elif not isinstance(source, Range):
        hint = "unroll it with `for … in ct.static_iter(…)`" if isinstance(source, Tuple) else (
            "loop over range(…) and load or extract one tile at a time")
        c.report(TileTypeError(f"a for loop runs over range(...) or ct.static_iter(...), not over a {describe(source)}",
                               help=hint), iter_span)
        source = None
    c.need_branch_free("a loop", c.span)
    start, stop, step = ((value_of(c, t) for t in (source.start, source.stop, source.step)) if source else
                         (Value(TileType(bool_)),) * 3)
    iv = Value(start.type)
    header = _Header(c, s, assigned_names(node.body) | assigned_names([ast.copy_location(
        ast.For(node.target, ast.Constant(0), [], []), node)]))

    def run() -> bool:
        assign(c, s, node.target, Leaf(iv) if source else POISON, s.definition.span(node.target, s.call_site))
        return block(c, s, node.body)

    body = header.body(run, infinite=False)
    results, _ = header.finish(normal_exit=True)
    c.append(For(iv, start, stop, step, header.inits, header.params, body, results, c.span))
    header.bind_results()
    return True


class _Header:
    """The carried variables of a loop [LOOP-5…7].

    Carried are the variables that have a value before the loop and are assigned in its body. Their structure and types
    are those before the loop; inside, none of their numbers is constant.
    """

    def __init__(self, c: Context, s: Scope, assigned: frozenset[str]):
        self.c, self.s = c, s
        self.before = dict(s.vars)
        self.local = [n for n in sorted(assigned) if n not in s.vars]
        self.names = [n for n in s.vars if n in assigned and not isinstance(s.vars[n].term, Unusable)]
        terms = [s.vars[n].term for n in self.names]
        self.init_terms = dict(zip(self.names, terms, strict=True))
        flat = [t for term in terms for t in leaves(term)]
        self.inits = tuple(value_of(c, t) for t in flat)
        self.params = tuple(Value(t.type) for t in flat)
        fresh = iter([Leaf(p) for p in self.params])
        s.vars = dict(self.before)
        for n in self.names:
            s.vars[n] = Var(rebuild(self.before[n].term, fresh), self.before[n].span)
        for n in self.local:
            s.vars[n] = Var(undefined(n, "in the first iteration it has not been assigned yet"), c.span)
        self.at_start = dict(s.vars)
        self.state = LoopState({n: s.vars[n].term for n in self.names}, len(s.cleanups), False)

    def undo(self) -> None:
        self.s.vars = self.before

    def body(self, run: Callable[[], bool], *, infinite: bool) -> Block:
        """Type the body; falling off its end continues the loop."""
        c, s = self.c, self.s
        self.state.infinite = infinite
        s.loops.append(self.state)
        unrolling, s.unrolling = s.unrolling, 0
        with c.into(Block()) as b:
            for n in self.names:
                if not is_poisoned(self.state.carried[n]):
                    c.bind(n, template_of(self.state.carried[n]), c.span)
            if run():
                leave(c, s, self.state, Continue)
        s.unrolling = unrolling
        s.loops.pop()
        for edge in self.state.continues:
            self._complete(edge)
        return b

    def _complete(self, edge: Edge) -> None:
        """Give a Continue the next values of what is carried; each must keep its type [LOOP-5]."""
        operands: list[Value] = []
        for n in self.names:
            var, expected = edge.vars[n], self.state.carried[n]
            if isinstance(var.term, Unusable):
                self.c.report(var.term.error(var.span))
            elif is_poisoned(var.term) or is_poisoned(expected):
                pass
            elif not same_structure(expected, var.term):
                self._type_changes(n, var)
            else:
                with before_terminator(self.c, edge.block):
                    operands += [value_of(self.c, t) for t in leaves(var.term)]
        edge.node.operands = tuple(operands)

    def _type_changes(self, name: str, var: Var) -> None:
        before = self.before[name]
        error = conflict(name, [self.init_terms[name], var.term], [before.span, var.span]).error(var.span)
        error.message += " (a variable that a loop carries keeps the type it had before the loop)"
        self.c.report(error)

    def finish(self, *, normal_exit: bool) -> tuple[tuple[Value, ...], bool]:
        """Join the exits; gives the loop's results and whether any exit exists."""
        c, s, st = self.c, self.s, self.state
        if not normal_exit and not st.breaks:
            s.vars = self.at_start
            return (), False
        exits = [e.vars for e in st.breaks]
        join = Join(len(exits) + normal_exit, inside=True)
        after = dict(self.before)
        for n in self.names:
            after[n] = self._after(join, n, exits, normal_exit)
        for n in self.local:
            vars = [v.get(n) for v in exits]
            if normal_exit or any(v is None or isinstance(v.term, Unusable) for v in vars):
                where = "it is assigned only inside the loop, which may run no iteration"
                after[n] = Var(undefined(n, where), c.span)
            else:
                after[n] = _join_var(join, n, vars)
        for i, e in enumerate(st.breaks):
            with before_terminator(c, e.block):
                e.node.operands = join.operands(c, i)
        s.vars = after
        return tuple(join.results), True

    def _after(self, join: Join, name: str, exits: list[dict[str, Var]], normal_exit: bool) -> Var:
        """A carried variable after the loop. Every leaf is a result, in the order of the params.

        It is constant again if all paths that lead here agree on the constant [LOOP-6].
        """
        vars = [v[name] for v in exits]
        start = self.state.carried[name]
        if is_poisoned(start) or any(is_poisoned(v.term) for v in vars):
            return Var(POISON, self.before[name].span)
        if normal_exit:
            vars.append(Var(start, self.before[name].span))
        odd = next((v for v in vars if not same_structure(start, v.term)), None)
        if odd is not None:
            self._results(join, [start] * len(vars))
            if isinstance(odd.term, Unusable):
                return odd
            return Var(conflict(name, [self.init_terms[name], odd.term], [self.before[name].span, odd.span]), odd.span)
        joined = self._results(join, [v.term for v in vars])
        paths = [v.term for v in vars[:len(exits)]]
        if normal_exit:
            paths += [self.init_terms[name], *(e.vars[name].term for e in self.state.continues)]
        agreed = [ts[0] if isinstance(ts[0], Const) and all(isinstance(t, Const) and t.same(ts[0]) for t in ts) else r
                  for r, *ts in zip(leaves(joined), *map(leaves, paths), strict=True)] if all(
                      same_structure(joined, p) for p in paths) else list(leaves(joined))
        return Var(rebuild(joined, iter(agreed)), vars[-1].span)

    @staticmethod
    def _results(join: Join, terms: list[Term]) -> Term:
        """A result for every leaf, constant or not: loops hand out exactly what they carry."""
        new: list[Term] = []
        for row in zip(*map(leaves, terms), strict=True):
            v = Value(row[0].type)
            join.results.append(v)
            for column, t in zip(join.columns, row, strict=True):
                column.append(t)
            new.append(Leaf(v))
        return rebuild(terms[0], iter(new))

    def bind_results(self) -> None:
        _bind_results(self.c, self.s, self.before)


@contextmanager
def before_terminator(c: Context, b: Block) -> Iterator[None]:
    """Append to a finished block, in front of the terminator."""
    with c.into(Block()) as made:
        yield
    b.nodes[-1:-1] = made.nodes


def leave(c: Context, s: Scope, loop: LoopState, kind: type) -> None:
    """Leave the body of a loop here, closing context managers opened inside it [CM-2]."""
    run_cleanups(c, s, loop.depth)
    node = kind((), c.span)
    (loop.breaks if kind is Break else loop.continues).append(Edge(dict(s.vars), c.block, node))
    c.append(node)


def run_cleanups(c: Context, s: Scope, depth: int) -> None:
    """Type the exit code of the context managers above `depth`, innermost first, as seen from here."""
    saved = s.cleanups
    for i in range(len(saved) - 1, depth - 1, -1):
        s.cleanups = saved[:i]
        saved[i]()
    s.cleanups = saved


def _break(c: Context, s: Scope, node: ast.Break) -> bool:
    return _jump(c, s, Break, "break")


def _continue(c: Context, s: Scope, node: ast.Continue) -> bool:
    return _jump(c, s, Continue, "continue")


def _jump(c: Context, s: Scope, kind: type, word: str) -> bool:
    if s.unrolling or not s.loops:
        c.report(TileSyntaxError(f"{word} cannot be used in the body of a static_iter loop",
                                 help="the loop is unrolled; put the rest of the body under an if instead"))
        return False
    leave(c, s, s.loops[-1], kind)
    return False


def _unroll(c: Context, s: Scope, node: ast.For, items: Iterable[Term]) -> bool:
    """for … in ct.static_iter(…): the body once per item [SEVAL-7]."""
    s.unrolling += 1
    try:
        for item in items:
            assign(c, s, node.target, item, s.definition.span(node.target, s.call_site))
            if not block(c, s, node.body):
                return False
    finally:
        s.unrolling -= 1
    return True


# ------------------------------------------------------------------ leaving a function


def _return(c: Context, s: Scope, node: ast.Return) -> bool:
    if s.unrolling:
        c.report(TileSyntaxError("return cannot be used in the body of a static_iter loop",
                                 help="assign to a variable and return it after the loop"))
        return False
    term = NONE if node.value is None else expr.evaluate(c, s, node.value)
    run_cleanups(c, s, 0)
    return_value(c, s, term)
    return False


def return_value(c: Context, s: Scope, term: Term) -> None:
    node = Return((), c.span)
    s.returns.append(ReturnPoint(term, c.block, node, c.span))
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
        texts = [describe(p.term) for p in points]
        c.report(TileTypeError(
            f"Type of return value depends on path taken: {' vs. '.join(dict.fromkeys(texts))}",
            notes=[(f"here {s.function} returns a {t}", p.span) for t, p in zip(texts, points, strict=True)],
            help="return the same type on every path; falling off the end returns None"), points[-1].span)
        return POISON, ()
    for i, p in enumerate(points):
        with before_terminator(c, p.block):
            p.node.operands = join.operands(c, i)
    return term, tuple(join.results)


def _raise(c: Context, s: Scope, node: ast.Raise) -> bool:
    c.report(static.exception(c, s, node.exc))
    return False


# ------------------------------------------------------------------ with


def _with(c: Context, s: Scope, node: ast.With) -> bool:
    from cutile.front.managers import enter

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
    ast.While: _while,
    ast.For: _for,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.With: _with,
    ast.Pass: _pass,
}

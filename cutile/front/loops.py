"""Loops: the variables that they carry, and how control leaves them [LOOP-1…10].

What a loop carries is decided before its body is typed, because each Break and Continue in the body passes on the
carried values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from cutile.dtypes import bool_
from cutile.errors import TileSyntaxError, TileTypeError
from cutile.front import error_recovery, expr, loop_else, static
from cutile.front.assignment import assign
from cutile.front.context import LOOP, Context
from cutile.front.control_flow import before_terminator, bind_joined, changed_names, join_var, run_cleanups
from cutile.front.definition import assigned_names
from cutile.front.scope import Jump, LoopState, Scope, Unrolling, Var
from cutile.front.static_names import construct_of
from cutile.front.term_joins import Join, conflict, is_loose, meets, met, same_structure, undefined, without_member
from cutile.ir.leaves import leaves, rebuild
from cutile.ir.nodes import Break, Continue, For, Region, Value, While, Yield
from cutile.ir.terms import POISON, Const, Leaf, Poison, Range, Term, Tuple, Unusable, call_help, is_poisoned, phrase
from cutile.ops._promotion import cast, value_of
from cutile.types import ListType, TileType


def while_(c: Context, s: Scope, node: ast.While) -> bool:
    c.need_branch_free(LOOP, c.span)
    if node.orelse:
        return loop_else.type_while(c, s, node)
    return _repeated(c, s, lambda wider: _while(c, s, node, wider))


def _while(c: Context, s: Scope, node: ast.While, wider: dict[str, Term]) -> bool:
    carried = _Carried(c, s, assigned_names(node.body), wider)
    with c.into(Region()) as cond_region, c.at(s.span(node.test)):
        cond = expr.condition(c, s, node.test)
        if not isinstance(cond, bool):
            c.append(Yield((cond,), c.span))
    if cond is False:
        carried.never_runs()
        return True
    body = carried.body(lambda: c.statements(s, node.body))
    results, falls = carried.finish(normal_exit=cond is not True)
    c.append(While(None if cond is True else cond_region, carried.inits, carried.params, body, results, c.span))
    if falls:
        bind_joined(c, s, changed_names(carried.before, [s.vars]), carried.before)
    return falls


def _is_list(source: Term) -> bool:
    return isinstance(source, Leaf) and isinstance(source.type, ListType)


def for_(c: Context, s: Scope, node: ast.For) -> bool:
    if construct_of(s, node.iter) == "static_iter":
        items = static.iterate(c, s, node.iter)
        if items is None:
            return error_recovery.statement(c, s, node)
        return _unroll(c, s, node, items) and c.statements(s, node.orelse)
    source = expr.evaluate(c, s, node.iter)
    iter_span = s.span(node.iter)
    if isinstance(source, Poison):
        source = None
    elif not isinstance(source, Range):
        hint = "unroll it with `for … in ct.static_iter(…)`" if isinstance(source, Tuple) else (
            "write for i in range(len(arrays)), and arrays[i] in the loop" if _is_list(source) else
            call_help(source) or "loop over range(…) and load or extract one tile at a time")
        c.report(TileTypeError(f"a for loop runs over range(...) or ct.static_iter(...), not over {phrase(source)}",
                               help=hint), iter_span)
        source = None
    c.need_branch_free(LOOP, c.span)
    start, stop, step = ((value_of(c, t) for t in (source.start, source.stop, source.step)) if source else
                         (Value(TileType(bool_)),) * 3)
    if node.orelse:
        return loop_else.type_for(c, s, node, [Leaf(v) for v in (start, stop, step)] if source else [POISON] * 3)
    return _repeated(c, s, lambda wider: _for(c, s, node, source, (start, stop, step), wider))


def _for(c: Context, s: Scope, node: ast.For, source: Range | None, bounds: Sequence[Value],
         wider: dict[str, Term]) -> bool:
    start, stop, step = bounds
    iv = Value(start.type)
    carried = _Carried(c, s, assigned_names(node.body) | assigned_names([ast.copy_location(
        ast.For(node.target, ast.Constant(0), [], []), node)]), wider)

    def run() -> bool:
        assign(c, s, node.target, Leaf(iv) if source else POISON, s.span(node.target))
        return c.statements(s, node.body)

    body = carried.body(run)
    results, _ = carried.finish(normal_exit=True)
    c.append(For(iv, start, stop, step, carried.inits, carried.params, body, results, c.span))
    bind_joined(c, s, changed_names(carried.before, [s.vars]), carried.before)
    return True


class _Wider(Exception):
    """Raised in element functions where variables that a loop carries get dtypes that hold what the body assigns."""

    def __init__(self, terms: dict[str, Term]):
        self.terms = terms


def _repeated(c: Context, s: Scope, type_loop: Callable[[dict[str, Term]], bool]) -> bool:
    """Type a loop, in element functions again with wider carried variables until their dtypes suffice [ELT-7].

    `type_loop(wider)` types it with the carried variables `wider` in these dtypes.
    """
    if not c.elements:
        return type_loop({})
    wider: dict[str, Term] = {}
    vars, errors, returns, depth, used = dict(s.vars), len(c.errors), len(s.returns), len(s.loops), c.used
    while True:
        try:
            return type_loop(wider)
        except _Wider as found:
            wider = {**wider, **found.terms}
            s.vars, c.used = dict(vars), used
            c.errors[errors:] = [e for e in c.errors[errors:] if e in c.said]
            del s.returns[returns:], s.loops[depth:]


class _Carried:
    """The carried variables of a loop [LOOP-5…7].

    A loop carries the variables that have a value before it and are assigned in its body. They keep the structure and
    types that they have before the loop. Inside the loop a carried number is never constant.
    """

    def __init__(self, c: Context, s: Scope, assigned: frozenset[str], wider: dict[str, Term]):
        self.c, self.s = c, s
        for n, like in wider.items():
            now = zip(leaves(s.vars[n].term), leaves(like), strict=True)
            s.vars[n] = Var(rebuild(like, iter([cast(c, t, w.type.dtype) for t, w in now])), s.vars[n].span)
        self.before, self.used, self.made = dict(s.vars), c.used, c.managers
        self.local = [n for n in sorted(assigned) if n not in s.vars or isinstance(s.vars[n].term, Unusable)]
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
            if n not in s.vars:
                s.vars[n] = Var(undefined(n, "in the first iteration it has not been assigned yet"), c.span)
        self.at_start = dict(s.vars)
        self.state = LoopState({n: s.vars[n].term for n in self.names}, len(s.cleanups))

    def never_runs(self) -> None:
        """Undo: the condition is constant False, so no loop is appended."""
        self.s.vars = self.before

    def body(self, run: Callable[[], bool]) -> Region:
        """Type the body; falling off its end continues the loop."""
        c, s = self.c, self.s
        s.loops.append(self.state)
        unrolling, s.unrolling = s.unrolling, []
        with c.into(Region()) as region:
            for n in self.names:
                if not is_poisoned(self.state.carried[n]):
                    c.bind(n, self.state.carried[n], c.span)
            if run():
                leave(c, s, self.state, Continue)
        s.unrolling = unrolling
        s.loops.pop()
        if c.elements and (wider := self._wider()):
            raise _Wider(wider)
        for jump in self.state.continues:
            self._complete(jump)
            c.used_again(self.made, jump.used - self.used, "the loop", "each iteration")
        return region

    def _wider(self) -> dict[str, Term]:
        """The carried variables whose dtypes do not hold what the body assigns, with terms of dtypes that do."""
        found = {}
        for n in self.names:
            term = self.state.carried[n]
            for jump in (*self.state.continues, *self.state.breaks):
                new = jump.vars[n].term
                if not (isinstance(new, Unusable) or is_poisoned(new) or is_poisoned(term)) and meets(term, new):
                    pairs = zip(leaves(term), leaves(new), strict=True)
                    term = rebuild(term, iter([met(*sorted(pair, key=is_loose)) for pair in pairs]))
            if not same_structure(term, self.state.carried[n]):
                found[n] = term
        return found

    def _complete(self, jump: Jump) -> None:
        """Give a Continue the next values of the carried variables; each must keep its type [LOOP-5]."""
        operands: list[Value] = []
        for n in self.names:
            var, expected = jump.vars[n], self.state.carried[n]
            if isinstance(var.term, Unusable):
                self.c.report(var.term.error(var.span))
            elif is_poisoned(var.term) or is_poisoned(expected):
                pass
            elif not self._holds(expected, var.term):
                self._type_changes(n, var)
            else:
                with before_terminator(self.c, jump.region):
                    pairs = zip(leaves(expected), leaves(var.term), strict=True)
                    operands += [value_of(self.c, _as_typed(self.c, t, like)) for like, t in pairs]
        jump.node.operands = tuple(operands)

    def _holds(self, carried: Term, new: Term) -> bool:
        """Whether a carried variable can take this term; in element functions also of a narrower dtype [ELT-7]."""
        return same_structure(carried, new) or self.c.elements and meets(carried, new)

    def _type_changes(self, name: str, var: Var) -> None:
        before = self.before[name]
        error = conflict(name, [self.init_terms[name], var.term], [before.span, var.span]).error(var.span)
        error.message += " (a variable that a loop carries keeps the type it had before the loop)"
        self.c.report(error)

    def finish(self, *, normal_exit: bool) -> tuple[tuple[Value, ...], bool]:
        """Join the variables of all exits. Returns the loop's results, and whether control can go past it.

        `normal_exit`: the loop also ends by its condition or range, not only by `break`.
        """
        c, s, state = self.c, self.s, self.state
        c.used = self.used.union(*(jump.used for jump in (*state.breaks, *state.continues)))
        if not normal_exit and not state.breaks:
            s.vars = self.at_start
            return (), False
        exits = [e.vars for e in state.breaks]
        join = Join(len(exits) + normal_exit, inside=True, promoting=c.elements)
        after = dict(self.before)
        for n in self.names:
            after[n] = self._after(join, n, exits, normal_exit)
        for n in self.local:
            vars = [v.get(n) for v in exits]
            if normal_exit or any(v is None or isinstance(v.term, Unusable) for v in vars):
                where = "it is assigned only inside the loop, which may run no iteration"
                after[n] = Var(undefined(n, where), c.span)
            else:
                after[n] = join_var(join, n, vars)
        for i, e in enumerate(state.breaks):
            with before_terminator(c, e.region):
                e.node.operands = join.operands(c, i)
        s.vars = after
        return tuple(join.results), True

    def _after(self, join: Join, name: str, exits: list[dict[str, Var]], normal_exit: bool) -> Var:
        """A carried variable after the loop. Each of its leaves is a result, in the order of the params. A leaf that is
        the same constant on all paths out of the loop is a constant after it [LOOP-6].
        """
        vars = [v[name] for v in exits]
        start = self.state.carried[name]
        if is_poisoned(start) or any(is_poisoned(v.term) for v in vars):
            return Var(POISON, self.before[name].span)
        if normal_exit:
            vars.append(Var(start, self.before[name].span))
        odd = next((v for v in vars if not self._holds(start, v.term)), None)
        if odd is not None:
            self._results(join, start, [start] * len(vars))
            if isinstance(odd.term, Unusable):
                return odd
            return Var(conflict(name, [self.init_terms[name], odd.term], [self.before[name].span, odd.span]), odd.span)
        joined = self._results(join, start, [v.term for v in vars])
        paths = [v.term for v in vars[:len(exits)]]
        if normal_exit:  # a normal exit leaves the value from before the loop or from an iteration's end
            paths += [self.init_terms[name], *(e.vars[name].term for e in self.state.continues)]
        if not all(same_structure(joined, p) for p in paths):
            return Var(joined, vars[-1].span)
        known = [_agreed(row) or r for r, *row in zip(leaves(joined), *map(leaves, paths), strict=True)]
        return Var(rebuild(joined, iter(known)), vars[-1].span)

    @staticmethod
    def _results(join: Join, carried: Term, terms: list[Term]) -> Term:
        """A new result for each leaf, even for a constant: a loop has one result per param."""
        new: list[Term] = []
        for like, *row in zip(leaves(carried), *map(leaves, terms), strict=True):
            v = Value(like.type)
            join.results.append(v)
            for column, t in zip(join.columns, row, strict=True):
                column.append(t)
            new.append(Leaf(v))
        return rebuild(terms[0], iter(new))


def _as_typed(c: Context, t: Const | Leaf, like: Const | Leaf) -> Term:
    """A leaf in the dtype of another one that holds it."""
    return t if t.type == like.type else cast(c, t, like.type.dtype)


def _agreed(terms: list[Term]) -> Const | None:
    """The constant, if all these terms are the same one; else None."""
    first = terms[0]
    same = isinstance(first, Const) and all(isinstance(t, Const) and t.same(first) for t in terms)
    return without_member(terms) if same else None


def leave(c: Context, s: Scope, loop: LoopState, kind: type) -> None:
    """Leave the body of a loop here, running the exit code of context managers that were entered in it [CM-2]."""
    if not run_cleanups(c, s, loop.depth):
        return
    node = kind((), c.span)
    (loop.breaks if kind is Break else loop.continues).append(Jump(dict(s.vars), c.used, c.region, node))
    c.append(node)


def break_(c: Context, s: Scope, node: ast.Break) -> bool:
    return _jump(c, s, Break, "break")


def continue_(c: Context, s: Scope, node: ast.Continue) -> bool:
    return _jump(c, s, Continue, "continue")


def _jump(c: Context, s: Scope, kind: type, word: str) -> bool:
    if s.unrolling and s.with_scope is not None and s.unrolling[-1].region is c.region:
        # In a context manager, a break known at compile time may leave out the yield.
        if run_cleanups(c, s, s.unrolling[-1].depth):
            s.unrolling[-1].left_by = kind
        return False
    if s.unrolling or not s.loops:
        c.report(TileSyntaxError(f"{word} cannot be used in the body of a static_iter loop",
                                 help="the loop is unrolled; put the rest of the body under an if instead"))
        return False
    leave(c, s, s.loops[-1], kind)
    return False


def _unroll(c: Context, s: Scope, node: ast.For, items: Iterable[Term]) -> bool:
    """for … in ct.static_iter(…): the body is typed once per item [SEVAL-7]."""
    for item in items:
        assign(c, s, node.target, item, s.span(node.target))
        s.unrolling.append(Unrolling(c.region, len(s.cleanups)))
        falls = c.statements(s, node.body)
        left_by = s.unrolling.pop().left_by
        if not falls and left_by is None:
            return False
        if left_by is Break:
            break
    return True

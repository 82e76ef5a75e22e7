"""Where paths of control meet, and where control leaves: branches, whose variables are joined, returns, and the exit
code of context managers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, compress

from cutile.errors import TileTypeError
from cutile.front import closures
from cutile.front.context import Context
from cutile.front.scope import ReturnPoint, Scope, Var, Variables
from cutile.front.term_joins import Join, conflict, type_text, undefined, versus
from cutile.ir.nodes import If, Region, Return, Value, Yield
from cutile.ir.terms import NONE, POISON, Closure, Term, Unusable, Use, article, is_poisoned


def branch(c: Context, s: Scope, cond: Value, then: Callable[[], bool], orelse: Callable[[], bool]) -> bool:
    """Type both sides of a run-time branch, and join the variables that they leave. False if control
    reaches the end of neither side.
    """
    before, used = s.vars, c.used
    paths: list[tuple[Region, dict[str, Var], bool]] = []
    after: list[frozenset[Use]] = []
    for side in (then, orelse):
        s.vars, c.used = Variables(before, before), used
        with c.into(Region()) as region:
            falls = side()
        paths.append((region, s.vars, falls))
        if falls:
            after.append(c.used)
    c.used = used.union(*after)
    arriving = [(region, vars) for region, vars, falls in paths if falls]
    join = Join(len(arriving), promoting=c.elements)
    changed = changed_names(before, [vars for _, vars in arriving])
    s.vars = _joined(join, changed, before, [vars for _, vars in arriving]) if arriving else before
    for i, (region, _) in enumerate(arriving):
        with c.into(region):
            c.append(Yield(join.operands(c, i), c.span))
    c.append(If(cond, paths[0][0], paths[1][0], tuple(join.results), c.span))
    bind_joined(c, s, changed, before)
    return bool(arriving)


def _joined(join: Join, changed: list[str], before: dict[str, Var], arriving: list[dict[str, Var]]) -> Variables:
    """The variables after paths meet, in a stable order. `arriving`: each path's variables; `before`: those
    before the branch.
    """
    base = before.base if isinstance(before, Variables) else None
    out = Variables(arriving[0], base, before.written if base is not None else ())
    for name in changed:
        vars = [v.get(name) for v in arriving]
        if any(v is None for v in vars):
            some = next(v for v in vars if v is not None)
            out[name] = Var(undefined(name), some.span)
        else:
            out[name] = join_var(join, name, vars)
    return out


def changed_names(before: dict[str, Var], after: list[dict[str, Var]]) -> list[str]:
    """The names that do not denote in each of `after` what they denoted before, in the order of the variables."""
    def differ(name: str) -> bool:
        return any(vars.get(name) is not before.get(name) for vars in after)

    if not all(isinstance(vars, Variables) and vars.base is before for vars in after):
        return [name for name in dict.fromkeys(chain.from_iterable(after)) if differ(name)]
    written = {name: None for vars in after for name in vars.written if differ(name)}
    old = [name for name in written if name in before]
    if len(old) > 1:
        old = list(compress(before, map(written.__contains__, before)))
    return [*(n for n in old if any(n in vars for vars in after)), *(n for n in written if n not in before)]


def join_var(join: Join, name: str, vars: list[Var]) -> Var:
    """A variable after paths meet; unusable if its type depends on the path."""
    for v in vars:
        if isinstance(v.term, Unusable):
            return v
    term = join.merge([v.term for v in vars])
    if term is None:
        term = conflict(name, [v.term for v in vars], [v.span for v in vars])
    return Var(term, vars[-1].span)


def bind_joined(c: Context, s: Scope, changed: list[str], before: dict[str, Var]) -> None:
    """Tell debuggers what the variables that a join changed denote now."""
    for name in changed:
        var, old = s.vars[name], before.get(name)
        if (old is None or old.term is not var.term) and not isinstance(var.term, Unusable | Closure) and (
                not is_poisoned(var.term)):
            c.bind(name, var.term, var.span)


# ------------------------------------------------------------------ leaving


@contextmanager
def before_terminator(c: Context, region: Region) -> Iterator[None]:
    """Within the `with` block, nodes are inserted into a finished region, before its terminator."""
    with c.into(Region()) as made:
        yield
    region.nodes[-1:-1] = made.nodes


def run_cleanups(c: Context, s: Scope, depth: int) -> bool:
    """Type the exit code of all but the `depth` outermost managers, from the innermost outwards.

    False if control does not reach the end of the exit code.
    """
    saved, falls = s.cleanups, True
    for i in range(len(saved) - 1, depth - 1, -1):
        s.cleanups = saved[:i]
        falls = falls and saved[i]()
    s.cleanups = saved
    return falls


def return_value(c: Context, s: Scope, term: Term) -> None:
    """Append a Return; `join_returns` gives it its operands."""
    term = closures.captured_on_return(term, s)
    node = Return((), c.span)
    s.returns.append(ReturnPoint(term, c.region, node, c.span, c.used))
    c.append(node)


def join_returns(c: Context, s: Scope, since: int) -> tuple[Term, tuple[Value, ...]]:
    """The term that a call gives, which is the join of all its returns, and the results of its Frame. The returns must
    have one type [CALL-3]. The call began at the time `since`.
    """
    points = s.returns
    if not points:
        return NONE, ()
    c.used = frozenset().union(*(p.used for p in points))
    bad = next((p for p in points if is_poisoned(p.term)), None)
    if bad is not None:
        return POISON, ()
    join = Join(len(points), inside=True, since=since, promoting=c.elements)
    term = join.merge([p.term for p in points])
    if term is None:
        points = sorted(points, key=lambda p: p.span.line)
        texts = [type_text(p.term) for p in points]
        c.report(TileTypeError(
            f"Type of return value depends on path taken: {versus([p.term for p in points])}",
            notes=[(f"here {s.function} returns {article(t)}", p.span) for t, p in zip(texts, points, strict=True)],
            help="return the same type on every path; falling off the end returns None"), points[-1].span)
        return POISON, ()
    for i, p in enumerate(points):
        with before_terminator(c, p.region):
            p.node.operands = join.operands(c, i)
    return term, tuple(join.results)

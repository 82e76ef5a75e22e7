"""Removes temporaries that are not needed, so that stepping through emitted code is as easy as through the user's own.

The emitter assigns every value to a temporary, but reads a variable of the user instead where one holds the value. A
temporary that is then never read is removed. One that is only read to assign a variable is removed too:
`.t1 = add(…); acc = .t1` becomes `acc = add(…)`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from cutile.interp.codegen.py_ast import NO_POSITION, assign_all, nodes_of, set_position


def propagate_copies(body: list[ast.stmt]) -> Counter[str]:
    """Simplify a function's body in place. Returns how often each name is still read."""
    while True:
        reads = Counter(n.id for n in nodes_of(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        changes = [_simplify(suite, reads) for suite in _suites(body)]  # a list, so that every suite is simplified
        if not any(changes):
            return reads


def _suites(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """A suite and those nested in it, outer ones first."""
    pending = [body]
    while pending:
        suite = pending.pop()
        yield suite
        inner = [x for s in suite for x in (getattr(s, "body", None), getattr(s, "orelse", None)) if x]
        pending += reversed(inner)


def _simplify(suite: list[ast.stmt], reads: Counter[str]) -> bool:
    """Make one pass over the statements of a suite. Returns whether anything changed."""
    out: list[ast.stmt] = []
    for s in suite:
        match s:
            case ast.Assign(targets=[ast.Name()], value=ast.Name(id=temp)) if (
                    is_temp(temp) and reads[temp] == 1 and (maker := _maker(out, temp)) is not None):
                maker.targets = s.targets  # the user's targets keep their position in the source
                reads[temp] = 0
            case ast.Assign(targets=[ast.Name() as t], value=value) if _unread(t, reads):
                if not isinstance(value, ast.Name):
                    out.append(ast.copy_location(ast.Expr(value), s))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if (
                    any(_unread(t, reads) for t in targets)):
                kept = [(t, v) for t, v in zip(targets, values, strict=True) if not _unread(t, reads)]
                if kept:
                    out.append(set_position(assign_all([t.id for t, _ in kept], [v for _, v in kept]), NO_POSITION))
            case ast.Return(value=ast.Name(id=temp)) if (
                    is_temp(temp) and reads[temp] == 1 and (maker := _maker(out, temp)) is not None):
                del out[out.index(maker):]
                s.value = maker.value
                out.append(s)
                reads[temp] = 0
            case ast.Delete(targets=targets):
                s.targets = [t for t in targets if not _unread(t, reads)]
                out += [s] * bool(s.targets)
            case _:
                out.append(s)
    out = out or [set_position(ast.Pass(), NO_POSITION)]
    changed = list(map(id, out)) != list(map(id, suite))
    suite[:] = out
    return changed


def _maker(before: list[ast.stmt], temp: str) -> ast.Assign | None:
    """The assignment of a temporary, if it is the last statement but for `del` statements; else None."""
    last = next((s for s in reversed(before) if not isinstance(s, ast.Delete)), None)
    match last:
        case ast.Assign(targets=[ast.Name(id=name)]) if name == temp:
            return last
    return None


def is_temp(name: str) -> bool:
    return name.startswith(".t")


def _unread(n: ast.expr, reads: Counter[str]) -> bool:
    return isinstance(n, ast.Name) and is_temp(n.id) and not reads[n.id]

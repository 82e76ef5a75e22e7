"""Removes temporaries that nothing reads, so that emitted code is as easy to step through as what the user wrote.

The emitter keeps every value in a temporary, and reads the user's variables instead wherever they hold the value.
Temporaries that are then not read go: `.t1 = add(…); acc = .t1` becomes `acc = add(…)`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from cutile.interp.codegen.py_ast import NO_POSITION, assign_all, set_position


def propagate_copies(body: list[ast.stmt]) -> Counter[str]:
    """Simplify a function's body in place. Gives how often each name is still read."""
    while True:
        reads = Counter(n.id for s in body for n in ast.walk(s)
                        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        changes = [_simplify(b, reads) for b in _suites(body)]  # all of them
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
    """One pass over the statements of a suite. Gives whether anything changed."""
    out: list[ast.stmt] = []
    for s in suite:
        match s:
            case ast.Assign(targets=[ast.Name()], value=ast.Name(id=temp)) if (
                    is_temp(temp) and reads[temp] == 1 and (maker := _maker(out, temp)) is not None):
                maker.targets = s.targets  # these keep their position in the source
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
    """The last statement that deletes nothing, if it only assigns this temporary."""
    last = next((s for s in reversed(before) if not isinstance(s, ast.Delete)), None)
    match last:
        case ast.Assign(targets=[ast.Name(id=name)]) if name == temp:
            return last
    return None


def is_temp(name: str) -> bool:
    return name.startswith(".t")


def _unread(n: ast.expr, reads: Counter[str]) -> bool:
    return isinstance(n, ast.Name) and is_temp(n.id) and not reads[n.id]

"""Which lines of functions use what a statement makes at import: followed by name, across files and tables."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict

from tests.mutation.sites import ROOT, TARGETS

Line = tuple[str, int]


@functools.cache
def _uses() -> tuple[dict[Line, set[str]], dict[str, set[Line]], dict[str, set[str]]]:
    """Names that module-level lines bind; lines of functions by name used; names bound of names used at import."""
    binds: dict[Line, set[str]] = defaultdict(set)
    lines: dict[str, set[Line]] = defaultdict(set)
    derived: dict[str, set[str]] = defaultdict(set)
    for path in TARGETS:
        for s in ast.parse((ROOT / path).read_text()).body:
            bound = _bound(s)
            for n in range(s.lineno, s.end_lineno + 1):
                binds[path, n] |= bound
            function = isinstance(s, ast.FunctionDef | ast.ClassDef)
            for name, line in _mentioned(s):
                if function:
                    lines[name].add((path, line))
                else:
                    derived[name] |= bound
            for d in getattr(s, "decorator_list", ()):
                for name, _ in _mentioned(d):
                    lines[name] |= {(path, n) for n in range(s.lineno, s.end_lineno + 1)}
    return binds, lines, derived


def _bound(s: ast.stmt) -> set[str]:
    if isinstance(s, ast.FunctionDef | ast.ClassDef):
        return {s.name}
    return {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _mentioned(s: ast.AST) -> set[tuple[str, int]]:
    return ({(n.id, n.lineno) for n in ast.walk(s) if isinstance(n, ast.Name)}
            | {(n.attr, n.lineno) for n in ast.walk(s) if isinstance(n, ast.Attribute)})


def lines_that_mention(path: str, numbers: tuple[int, ...]) -> set[Line]:
    """Lines of functions that use, directly or through other names, what stands at these lines of a file."""
    binds, lines, derived = _uses()
    todo = {name for n in numbers for name in binds[path, n]}
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= derived[name] - seen
    return {line for name in seen for line in lines[name]}

"""Python AST with the user's positions, and short names for the nodes that the emitters build.

Positions in a `Span` count characters; Python's AST counts UTF-8 bytes. A statement that the user did not write (a
value arriving at a join, the end of a temporary) has NO_POSITION: Python then gives its instructions the line of what
ran before, so that no debugger stops there and no coverage counts it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Sequence

from cutile.errors import Span, line_of

Position = tuple[int, int, int, int]  # line, column, end line, end column
NO_POSITION: Position = (-1, -1, -1, -1)


def position(span: Span) -> Position:
    line, end_line = max(span.line, 1), max(span.end_line, span.line, 1)
    col = _byte_column(span.filename, line, span.col)
    end_col = _byte_column(span.filename, end_line, span.end_col)
    return line, col, end_line, max(end_col, col) if line == end_line else end_col


def _byte_column(filename: str, line: int, col: int) -> int:
    if col <= 0:
        return 0
    text = line_of(filename, line)
    return col if text.isascii() else len(text[:col].encode())


def header(span: Span) -> Position:
    """The first line of a compound statement."""
    at = position(span)
    return at if at[0] == at[2] else _first_line(at)


def _first_line(at: Position) -> Position:
    return at[0], at[1], at[0], at[1] + 1


def set_position(stmt: ast.stmt, at: Position) -> ast.stmt:
    """Give the position `at` to every node of a statement that has none. Nodes below one with a position must have one.

    Python gives the instruction of an attribute the last line of its expression. If `at` spans several lines,
    attributes get the first line as their position instead.
    """
    here = _NOWHERE if at is NO_POSITION else dict(zip(_POSITION, at, strict=True))
    first = dict(zip(_POSITION, _first_line(at), strict=True)) if at[0] != at[2] else here
    pending: list[ast.AST] = [stmt]
    while pending:
        n = pending.pop()
        kind, fields = type(n), n.__dict__
        if "lineno" in fields:
            continue
        if kind is ast.Name or kind is ast.Constant:  # most are; this is quick
            fields.update(here)
            continue
        if kind is ast.Call:  # so are many of the others
            fields.update(here)
            pending.append(n.func)
            pending += n.args
            for k in n.keywords:
                k.__dict__.update(here)
                pending.append(k.value)
            continue
        names, stands = _parts(kind)
        for name in names:
            part = fields.get(name)
            if type(part) is list:
                pending += part
            elif part is not None:
                pending.append(part)
        if stands:
            fields.update(first if kind is ast.Attribute else here)
    return stmt


_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_NOWHERE = dict.fromkeys(_POSITION, -1)
_PLAIN = {"ctx", "op", "ops", "id", "attr", "name", "arg", "kind", "conversion", "type_comment"}


@functools.cache
def _parts(kind: type[ast.AST]) -> tuple[tuple[str, ...], bool]:
    """The fields of a kind of node that hold nodes with positions, or lists of them; whether it has one itself."""
    names = () if kind is ast.Constant else tuple(f for f in kind._fields if f not in _PLAIN)
    return names, "lineno" in kind._attributes


def inherit_position(body: list[ast.stmt]) -> list[ast.stmt]:
    """Give a function's first statements, if they have none, the position of the first one that has one.

    Otherwise they would count as the header of the function, and a debugger would stop there.
    """
    first = next((s for s in body if s.lineno > 0), None)
    for s in body:
        if s is first or first is None:
            break
        for n in ast.walk(s):
            if getattr(n, "lineno", 1) < 0:
                n.lineno, n.col_offset, n.end_lineno, n.end_col_offset = (
                    first.lineno, first.col_offset, first.end_lineno, first.end_col_offset)
    return body


_LOAD, _STORE = ast.Load(), ast.Store()


def load(name: str) -> ast.expr:
    return ast.Name(name, _LOAD)


def attribute(x: ast.expr, name: str) -> ast.expr:
    return ast.Attribute(x, name, _LOAD)


def constant(value) -> ast.expr:
    return ast.Constant(value)


def tuple_of(items: Iterable[ast.expr]) -> ast.expr:
    return ast.Tuple(list(items), _LOAD)


def call(function: ast.expr, args: Iterable[ast.expr] = (), keywords: Iterable[tuple[str, ast.expr]] = ()) -> ast.expr:
    return ast.Call(function, list(args), [ast.keyword(k, v) for k, v in keywords])


def assign(names: Sequence[str], value: ast.expr) -> ast.stmt:
    """`a = value`, `a, b = value`, or for no names the expression alone."""
    targets = [ast.Name(n, _STORE) for n in names]
    if not targets:
        return ast.Expr(value)
    return ast.Assign([targets[0] if len(targets) == 1 else ast.Tuple(targets, _STORE)], value)


def assign_all(names: Sequence[str], values: Sequence[ast.expr]) -> ast.stmt:
    """`a, b = x, y`: all are assigned at once."""
    return assign(names, values[0] if len(values) == 1 else tuple_of(values))


def unpack(names: Sequence[str], value: ast.expr) -> ast.stmt:
    """`a, b = value` where value is a tuple, also for a single name."""
    if not names:
        return ast.Expr(value)
    return ast.Assign([ast.Tuple([ast.Name(n, _STORE) for n in names], _STORE)], value)


def delete(names: Iterable[str]) -> ast.stmt:
    return ast.Delete([ast.Name(n, ast.Del()) for n in names])


def function(name: str, params: Sequence[str], body: list[ast.stmt], at: Position) -> ast.FunctionDef:
    args = ast.arguments([], [ast.arg(p) for p in params], None, [], [], None, [])
    f = ast.FunctionDef(name, args, body, [], None, None)
    if "type_params" in f._fields:  # Python 3.12 and later
        f.type_params = []
    return f if at is None else set_position(f, at)

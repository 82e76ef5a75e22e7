"""Python AST with the user's positions, and short names for the nodes that the emitters build.

Positions in a `Span` count characters; Python's AST counts UTF-8 bytes. A statement that the user did not write (a
value arriving at a join, the end of a temporary) has NO_POSITION: Python then gives its instructions the line of what
ran before, so that no debugger stops there and no coverage counts it.

`set_position` gives each node of a statement a position. `place` is quicker: it gives one only to the nodes where code
begins, since Python gives the instructions behind them the same. So statements may share all other nodes.

A large kernel has many nodes, which Python's garbage collector visits again and again. So the nodes made here have
slots instead of a dictionary, those at one place share the dictionary with their position, and empty lists are one
object. Neither may be changed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence

from cutile.spans import Span, line_of

Position = tuple[int, int, int, int]  # line, column, end line, end column
NO_POSITION: Position = (-1, -1, -1, -1)


def position(span: Span) -> Position:
    line, end_line = max(span.line, 1), max(span.end_line, span.line, 1)
    if line == end_line and span.col >= 0 and line_of(span.filename, line).isascii():  # most are; this is quick
        return line, span.col, line, max(span.end_col, span.col)
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
    here = fields_of(at)
    first = fields_of(_first_line(at)) if at[0] != at[2] else here
    pending: list[ast.AST] = [stmt]
    while pending:
        n = pending.pop()
        kind, fields = type(n), n.__dict__
        if "lineno" in fields:
            continue
        if kind is Name or kind is Constant:  # most are; this is quick
            n.__dict__ = here
            continue
        if kind is Call:  # so are many of the others
            n.__dict__ = here
            pending.append(n.func)
            pending += n.args
            for k in n.keywords:
                k.__dict__ = here
                pending.append(k.value)
            continue
        names, stands = _parts(kind)
        for name in names:
            part = getattr(n, name, None)
            if type(part) is list:
                pending += part
            elif part is not None:
                pending.append(part)
        if stands:
            _put(n, first if issubclass(kind, ast.Attribute) else here)
    return stmt


@functools.lru_cache(maxsize=256)  # many nodes in a row have one position
def fields_of(at: Position) -> dict[str, int]:
    """A position, as the fields of a node. Nodes share it."""
    line, col, end_line, end_col = at
    return {"lineno": line, "col_offset": col, "end_lineno": end_line, "end_col_offset": end_col}


def _put(n: ast.AST, here: dict[str, int]) -> None:
    """Give a node the position with these fields."""
    if type(n) in _LIGHT:
        n.__dict__ = here
    else:
        n.__dict__.update(here)


def place(stmt: ast.stmt, here: dict[str, int]) -> ast.stmt:
    """Give a simple statement, or a branch around placed statements, the position with the fields `here`.

    An instruction without a line takes the position of the one before it. So only the nodes get a position whose
    instructions are the first of the statement, or of a side of a conditional expression. Names may be shared with
    other statements; these get copies.
    """
    stmt.__dict__ = here
    value = getattr(stmt, "value", None)
    if value is not None:
        stmt.value = value = _begun(value, here)
        if type(stmt) is Return:  # Python compares its line with that of its value
            value.__dict__ = here
        elif type(value) is IfExp and type(stmt) is Assign:  # the assignment comes after both sides
            stmt.targets = [Name(t.id, t.ctx) if type(t) is Name else t for t in stmt.targets]
            for target in stmt.targets:
                target.__dict__ = here
    elif type(stmt) is If:
        stmt.test = _begun(stmt.test, here)
    return stmt


def _begun(x: ast.expr, here: dict[str, int]) -> ast.expr:
    """The expression, with this position where its code begins."""
    kind = type(x)
    if kind is Call:
        x.func = _begun(x.func, here)
        return x
    if kind is Name:
        x = Name(x.id, _LOAD)
    elif kind is Constant:
        x = Constant(x.value)
    elif kind is Tuple:
        x.elts[:1] = [_begun(first, here) for first in x.elts[:1]]
    elif kind is IfExp:
        x.test, x.body, x.orelse = _begun(x.test, here), _begun(x.body, here), _begun(x.orelse, here)
        return x
    elif kind is Compare:
        x.left = _begun(x.left, here)
        return x
    else:  # an attribute, or an item
        x.value = _begun(x.value, here)
        return x
    x.__dict__ = here
    return x


_NOWHERE = fields_of(NO_POSITION)
_PLAIN = {"ctx", "op", "ops", "id", "attr", "name", "arg", "kind", "conversion", "type_comment"}


@functools.cache
def _parts(kind: type[ast.AST]) -> tuple[tuple[str, ...], bool]:
    """The fields of a kind of node that hold nodes with positions, or lists of them; whether it has one itself."""
    names = () if issubclass(kind, ast.Constant) else tuple(f for f in kind._fields if f not in _PLAIN)
    return names, "lineno" in kind._attributes


def nodes_of(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The statements and the nodes in them, without those that have no position; several times as fast as ast.walk."""
    pending: list[ast.AST] = [*statements]
    while pending:
        n = pending.pop()
        yield n
        for name in _parts(type(n))[0]:
            part = getattr(n, name, None)
            if type(part) is list:
                pending += part
            elif part is not None:
                pending.append(part)


def inherit_position(body: list[ast.stmt]) -> list[ast.stmt]:
    """Give a function's first statements, if they have none, the position of the first one that has one.

    Otherwise they would count as the header of the function, and a debugger would stop there.
    """
    first = next((s for s in body if s.lineno > 0), None)
    for s in body:
        if s is first or first is None:
            break
        for n in nodes_of([s]):
            if getattr(n, "lineno", 1) < 0:
                _put(n, fields_of((first.lineno, first.col_offset, first.end_lineno, first.end_col_offset)))
    return body


_LOAD, _STORE, _DEL = ast.Load(), ast.Store(), ast.Del()


_OPTIONAL = {"kind", "type_comment"}  # fields that none of our nodes has


def _light(kind: type[ast.AST]) -> type:
    """A class of nodes with slots in place of a dictionary. They have NO_POSITION until they are given one."""
    return type(kind.__name__, (kind,), {"__slots__": tuple(f for f in kind._fields if f not in _OPTIONAL), **_NOWHERE})


Name, Constant, Tuple, Attribute, Call, Keyword, IfExp, Compare, Subscript, Starred, Dict = map(_light, (
    ast.Name, ast.Constant, ast.Tuple, ast.Attribute, ast.Call, ast.keyword, ast.IfExp, ast.Compare, ast.Subscript,
    ast.Starred, ast.Dict))
Assign, Expr, Delete, If, Return, Pass = map(_light, (
    ast.Assign, ast.Expr, ast.Delete, ast.If, ast.Return, ast.Pass))
_LIGHT = {Name, Constant, Tuple, Attribute, Call, Keyword, IfExp, Compare, Subscript, Starred, Dict, Assign, Expr,
          Delete, If, Return, Pass}
NONE: list = []  # the value of a field that has no nodes


def load(name: str) -> ast.expr:
    return Name(name, _LOAD)


def attribute(x: ast.expr, name: str) -> ast.expr:
    return Attribute(x, name, _LOAD)


def constant(value) -> ast.expr:
    return Constant(value)


def tuple_of(items: Iterable[ast.expr]) -> ast.expr:
    return Tuple(list(items) or NONE, _LOAD)


def call(function: ast.expr, args: Iterable[ast.expr] = (), keywords: Iterable[tuple[str, ast.expr]] = ()) -> ast.expr:
    return Call(function, list(args) or NONE, [Keyword(k, v) for k, v in keywords] or NONE)


def assign(names: Sequence[str], value: ast.expr) -> ast.stmt:
    """`a = value`, `a, b = value`, or for no names the expression alone."""
    if len(names) == 1:
        return Assign([Name(names[0], _STORE)], value)
    return Assign([Tuple([Name(n, _STORE) for n in names], _STORE)], value) if names else Expr(value)


def assign_all(names: Sequence[str], values: Sequence[ast.expr]) -> ast.stmt:
    """`a, b = x, y`: all are assigned at once."""
    return assign(names, values[0] if len(values) == 1 else tuple_of(values))


def unpack(names: Sequence[str | Sequence[str]], value: ast.expr) -> ast.stmt:
    """`a, b = value` where value is a tuple, also for a single name. Names in a sequence are unpacked from an item."""
    return Assign([_targets(names)], value) if names else Expr(value)


def _targets(names: Sequence[str | Sequence[str]]) -> ast.expr:
    return Tuple([Name(n, _STORE) if isinstance(n, str) else _targets(n) for n in names], _STORE)


def delete(names: Iterable[str]) -> ast.stmt:
    return Delete([Name(n, _DEL) for n in names])


def function(name: str, params: Sequence[str], body: list[ast.stmt], at: Position) -> ast.FunctionDef:
    args = ast.arguments(NONE, [ast.arg(p) for p in params], None, NONE, NONE, None, NONE)
    f = ast.FunctionDef(name, args, body, NONE, None, None)
    if "type_params" in f._fields:  # Python 3.12 and later
        f.type_params = NONE
    here = fields_of(at)
    for n in (f, *args.args):
        _put(n, here)
    return f

"""Definitions of functions: their syntax trees, with positions in the user's file, and the names that they assign."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence

from cutile._support.structs import cached, structure
from cutile.spans import SourceFile, Span


@structure(frozen=True, eq=False)
class Definition:
    """A `def` or `lambda`: its syntax tree and its file."""

    node: ast.FunctionDef | ast.Lambda
    filename: SourceFile

    @property
    def lines(self) -> Sequence[str]:
        """The lines of the whole file, as they were when this function was read."""
        return self.filename.lines

    @cached
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    @cached
    def locals(self) -> frozenset[str]:
        """The names that are local to the function: its parameters, and all that its body assigns."""
        body = self.node.body if isinstance(self.node.body, list) else []
        return frozenset(parameter_names(self.node.args)) | assigned_names(body)

    def span(self, node: ast.AST, call_site: Span | None = None) -> Span:
        """The span of a piece of this definition's syntax."""
        end_line, end_col = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        if self._ascii:  # most files are; this is fast, and every expression has a span
            return Span(self.filename, node.lineno, node.col_offset, end_line, end_col, self.name, call_site)
        return Span(self.filename, node.lineno, self._column(node.lineno, node.col_offset), end_line,
                    self._column(end_line, end_col), self.name, call_site)

    def header_span(self, call_site: Span | None = None) -> Span:
        """The first line of the definition."""
        n = self.node
        if isinstance(n, ast.Lambda):
            return self.span(n, call_site)
        text = self.lines[n.lineno - 1] if n.lineno <= len(self.lines) else ""
        return Span(self.filename, n.lineno, n.col_offset, n.lineno, len(text.rstrip()), self.name, call_site)

    def _column(self, line: int, offset: int) -> int:
        """The column of a span, in characters, for an offset of ast, in UTF-8 bytes."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return len(text.encode()[:offset].decode(errors="ignore"))

    @cached
    def _ascii(self) -> bool:
        n = self.node
        return all(line.isascii() for line in self.lines[n.lineno - 1:n.end_lineno])


def nested_definition(outer: Definition, node: ast.FunctionDef | ast.Lambda) -> Definition:
    """The definition of a function that is defined inside another one."""
    return Definition(node, outer.filename)


# ------------------------------------------------------------------ names


def parameter_names(a: ast.arguments) -> list[str]:
    """The names of all parameters, in the order of `co_varnames`."""
    return [p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]]


def assigned_names(body: list[ast.stmt]) -> frozenset[str]:
    """The names that statements assign in their own scope, not in nested functions or comprehensions."""
    return frozenset(name for stmt in body for name in _assigned(stmt))


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*_NAMED, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)


def _assigned(node: ast.AST) -> Iterator[str]:
    pending = [node]
    while pending:
        n = pending.pop()
        if isinstance(n, ast.Name):
            if not isinstance(n.ctx, ast.Load):
                yield n.id
        elif isinstance(n, _NAMED):
            yield n.name
        elif not isinstance(n, _SCOPES) and not (isinstance(n, ast.AnnAssign) and n.value is None):
            pending += children(n)


def children(node: ast.AST) -> list[ast.AST]:
    """The child nodes in order, without contexts and operators; faster than ast.iter_child_nodes."""
    found: list[ast.AST] = []
    for name in _fields(type(node)):
        field = getattr(node, name, None)
        if type(field) is list:
            found += [x for x in field if isinstance(x, ast.AST)]
        elif isinstance(field, ast.AST):
            found.append(field)
    return found


@functools.cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of node that may hold child nodes, apart from contexts and operators."""
    return () if kind in _LEAVES else tuple(f for f in kind._fields if f not in _NO_NODES)


_LEAVES = (ast.Name, ast.Constant)
_NO_NODES = ("ctx", "op", "ops", "id", "attr", "name", "arg", "module", "level", "kind", "type_comment", "conversion")

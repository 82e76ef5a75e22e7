"""From a Python function to its syntax tree, with the positions of the user's file."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import time
import types
from collections.abc import Iterator

from cutile.errors import Span, TileSyntaxError
from cutile.structs import structure


@structure(frozen=True, eq=False)
class Definition:
    """A `def` or `lambda`: its syntax, its file, and the names it assigns."""

    node: ast.FunctionDef | ast.Lambda
    filename: str
    lines: tuple[str, ...]

    @functools.cached_property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    @functools.cached_property
    def locals(self) -> frozenset[str]:
        """Names that are local to the function: parameters and everything its body assigns."""
        body = self.node.body if isinstance(self.node.body, list) else []
        return frozenset(parameter_names(self.node.args)) | assigned_names(body)

    def span(self, node: ast.AST, call_site: Span | None = None) -> Span:
        """The span of a piece of this definition's syntax."""
        end_line, end_col = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        if self._ascii:  # most are, and spans are made for every expression
            return Span(self.filename, node.lineno, node.col_offset, end_line, end_col, self.name, call_site)
        return Span(self.filename, node.lineno, self._column(node.lineno, node.col_offset), end_line,
                    self._column(end_line, end_col), self.name, call_site)

    def header_span(self, call_site: Span | None = None) -> Span:
        """The line that begins the definition."""
        n = self.node
        if isinstance(n, ast.Lambda):
            return self.span(n, call_site)
        text = self.lines[n.lineno - 1] if n.lineno <= len(self.lines) else ""
        return Span(self.filename, n.lineno, n.col_offset, n.lineno, len(text.rstrip()), self.name, call_site)

    def _column(self, line: int, offset: int) -> int:
        """ast counts UTF-8 bytes, spans count characters."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return len(text.encode()[:offset].decode(errors="ignore"))

    @functools.cached_property
    def _ascii(self) -> bool:
        n = self.node
        return all(line.isascii() for line in self.lines[n.lineno - 1:n.end_lineno])


def definition_of(fn: types.FunctionType) -> Definition:
    """The definition of a Python function. TileSyntaxError where Python cannot show its source [FN-2]."""
    try:
        return _definition_of(fn)
    except TileSyntaxError:
        # Text that is kept comes first: it is older than the file, which may be edited and not imported again. Where it
        # does not fit, the function may come from an import since then (importlib.reload, %autoreload).
        linecache.checkcache(fn.__code__.co_filename)
        return _definition_of(fn)


def _definition_of(fn: types.FunctionType) -> Definition:
    code = fn.__code__
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    if not lines:
        raise _no_source(fn, "Python cannot show its source")
    text = "".join(lines)
    try:
        tree = _parse(code.co_filename, text)
    except SyntaxError as e:
        raise _no_source(fn, f"its file no longer parses ({e.msg}, line {e.lineno})") from None
    found = [n for n in _functions(tree, code.co_firstlineno) if _matches(n, code)]
    if len(found) > 1:
        found = _by_position(found, code)
    if len(found) > 1:
        raise _no_source(fn, "several functions on one line cannot be told apart")
    if not found or _may_have_changed(code.co_filename) and not _compiles_to(found[0], code, text):
        raise _no_source(fn, "its source has changed since it was defined")
    return Definition(found[0], code.co_filename, tuple(lines))


_LOADED = time.time()


def _may_have_changed(filename: str) -> bool:
    """Whether the text may be younger than the function: for files, if written since this was imported."""
    try:
        found = os.stat(filename)
        return max(found.st_mtime, found.st_ctime) > _LOADED  # a file that is moved here keeps its time of writing
    except OSError:
        return True


def _compiles_to(node: ast.AST, code: types.CodeType, text: str) -> bool:
    """Whether the text still gives the function's code. Functions with assert may: test tools rewrite these."""
    if any(isinstance(n, ast.Assert) for n in ast.walk(node)):
        return True
    now = _codes(code.co_filename, text)
    return now is None or any(_essence(c) == _essence(code) for c in now if c.co_firstlineno == code.co_firstlineno)


@functools.lru_cache(maxsize=64)
def _codes(filename: str, text: str) -> tuple[types.CodeType, ...] | None:
    """All code objects of a text; None if it cannot stand alone, as a cell with `await`.

    Notebooks compile statement by statement, and then Python compiles calls of what other statements import otherwise.
    """
    try:
        tree = _parse(filename, text)
        units = [tree, *(ast.Module([st], []) for st in tree.body)]
        stack = [compile(u, filename, "exec", dont_inherit=True) for u in units]
    except (SyntaxError, ValueError):
        return None
    found: list[types.CodeType] = []
    while stack:
        found.append(stack.pop())
        stack += [c for c in found[-1].co_consts if isinstance(c, types.CodeType)]
    return tuple(found)


def _essence(code: types.CodeType) -> tuple:
    constants = [_essence(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return code.co_name, code.co_code, code.co_names, code.co_varnames, constants


def _code_of(node: ast.Lambda) -> types.CodeType:
    """The code of a lambda in which no name is free."""
    module = compile(ast.Expression(node), "lambda", "eval", dont_inherit=True)
    return next(c for c in module.co_consts if isinstance(c, types.CodeType))


def nested_definition(outer: Definition, node: ast.FunctionDef | ast.Lambda) -> Definition:
    return Definition(node, outer.filename, outer.lines)


def _no_source(fn: types.FunctionType, why: str) -> TileSyntaxError:
    code = fn.__code__
    return TileSyntaxError(
        f"the source of {fn.__qualname__} ({code.co_filename}, line {code.co_firstlineno}) is not available: {why}",
        help="put the function into a file or a notebook cell and import or run it again; code made with exec must be "
             "registered in linecache.cache under the file name given to compile()")


@functools.lru_cache(maxsize=256)
def _parse(filename: str, text: str) -> ast.Module:
    return ast.parse(text, filename)


def _functions(tree: ast.Module, line: int) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
    """The functions that begin on a line; statements that do not hold it are passed over."""
    pending: list[ast.AST] = [tree]
    for n in pending:
        pending += [c for c in children(n) if not isinstance(c, ast.stmt) or _first_line(c) <= line <= c.end_lineno]
    return [n for n in pending if isinstance(n, _FUNCTIONS) and _first_line(n) == line]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _first_line(n) -> int:
    return min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))])


def _matches(n, code: types.CodeType) -> bool:
    params = parameter_names(n.args)
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return getattr(n, "name", "<lambda>") == code.co_name and tuple(map(_mangled, params)) == tuple(
        map(_mangled, code.co_varnames[:count]))


def _mangled(name: str) -> str:
    """Private names in classes are mangled in code objects; compare what is left of that."""
    return name.split("__")[-1] if name.startswith("_") else name


def _by_position(found: list, code: types.CodeType) -> list:
    """Of several functions that begin on one line, the innermost that covers all of the code's positions."""
    points = [(line, col) for line, _, col, _ in code.co_positions() if line and col is not None]
    points = [p for p in points if p != (code.co_firstlineno, 0)]
    if not points:  # Python 3.12 may give none to a function that returns a constant
        return [n for n in found if isinstance(n, ast.Lambda) and _essence(_code_of(n)) == _essence(code)][:1]
    covering = [n for n in found
                if all((n.lineno, n.col_offset) <= p <= (n.end_lineno, n.end_col_offset) for p in points)]
    covering.sort(key=lambda n: (n.end_lineno - n.lineno, n.end_col_offset - n.col_offset))
    return covering[:1]


# ------------------------------------------------------------------ names


def parameter_names(a: ast.arguments) -> list[str]:
    """The names of all parameters, in the order of `co_varnames`."""
    return [p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]]


def assigned_names(body: list[ast.stmt]) -> frozenset[str]:
    """Names that statements assign in their own scope: nested functions and comprehensions apart."""
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


@functools.lru_cache(maxsize=1 << 13)  # each is asked for several times
def children(node: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes directly below one, in order: ast.iter_child_nodes in less time."""
    if type(node) in _LEAVES:
        return ()
    found: list[ast.AST] = []
    for name in node._fields:
        field = getattr(node, name, None)
        if type(field) is list:
            found += [x for x in field if isinstance(x, ast.AST)]
        elif isinstance(field, ast.AST) and not isinstance(field, ast.expr_context | ast.operator):
            found.append(field)
    return tuple(found)


_LEAVES = (ast.Name, ast.Constant)

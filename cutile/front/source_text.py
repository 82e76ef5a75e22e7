"""The source text of a function, and where the function stands in it [FN-2].

The text of a kernel is read when the kernel is decorated, that of another function when a kernel first calls it. It is
kept as long as the function's code lives, so that editing a file does not change a running program. If a file has had
several texts, the right one is the one that compiles to the function's code. Line numbers are not enough:
reloading tools replace a function's code by code compiled apart from its file.
"""

from __future__ import annotations
import __future__

import ast
import bisect
import functools
import linecache
import os
import time
import types
import weakref
import zipimport
from collections import deque
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader

from cutile._support.structs import cached, structure
from cutile.errors import TileSyntaxError
from cutile.front.definition import Definition, parameter_names
from cutile.front.private_names import with_private_names
from cutile.front.syntax_warnings import silent, warns
from cutile.ir.recursion import compiled
from cutile.spans import SourceFile

# ------------------------------------------------------------------ what is remembered


class _Text(SourceFile):
    """A text that a file has, or has had."""

    parsed: weakref.ref[_Parsed] | None = None


@structure(eq=False, slots=True)
class _Known:
    """What is remembered of a code object: the texts that it may come from or, once it is found, its definition."""

    code: weakref.ref[types.CodeType]
    texts: tuple[_Text, ...]
    definition: Definition | None = None


_known: dict[int, _Known] = {}  # by the id of a code object: equal code objects may come from different files
_texts: dict[str, list[weakref.ref[_Text]]] = {}  # the texts of a file that are in use, the newest first


def remember(fn: types.FunctionType) -> None:
    """Read the text of a function now: it stays the function's source even if the file changes."""
    if len(_recall(fn).texts) > 1:  # decide which text fits now, so that the others need not be kept
        try:
            definition_of(fn)
        except TileSyntaxError:
            pass  # reported when a kernel uses the function


def definition_of(fn: types.FunctionType) -> Definition:
    """The definition of a Python function. TileSyntaxError where Python cannot show its source [FN-2]."""
    known = _recall(fn)
    if known.definition is None:
        known.definition = _find(fn, known.texts)
        known.texts = ()
    return known.definition


def _recall(fn: types.FunctionType) -> _Known:
    code, key = fn.__code__, id(fn.__code__)
    known = _known.get(key)
    if known is None:
        known = _known[key] = _Known(weakref.ref(code, lambda _: _known.pop(key, None)), _texts_of(fn))
    return known


def _texts_of(fn: types.FunctionType) -> tuple[_Text, ...]:
    """The known texts of a function's file: that on disk, that in linecache, and those that other functions
    were read from.
    """
    name = fn.__code__.co_filename
    before = linecache.getlines(name, fn.__globals__)
    linecache.checkcache(name)
    after = linecache.getlines(name, fn.__globals__)
    found = [t for ref in _texts.get(name, ()) if (t := ref()) is not None]
    for lines in (after,) if after is before else (before, after):
        if lines and not any(t.lines is lines or t.lines == lines for t in found):
            text = _Text(name)
            text.lines = lines
            found.insert(0, text)
            _texts[name] = [weakref.ref(text, functools.partial(_drop, name)), *_texts.get(name, ())]
    return tuple(found)


def _drop(name: str, ref: weakref.ref[_Text]) -> None:
    left = [r for r in _texts.pop(name, ()) if r is not ref]
    if left:
        _texts[name] = left


# ------------------------------------------------------------------ the text that compiles to a function's code


def _find(fn: types.FunctionType, texts: tuple[_Text, ...]) -> Definition:
    if (found := _fitting(fn, texts)) is None:
        now = _texts_of(fn)  # a text may have been registered meanwhile
        found = _fitting(fn, [t for t in now if not any(t is u for u in texts)])
        texts = texts or now
    if found is not None:
        return found
    if not texts:
        raise _no_source(fn, "Python cannot show its source")
    errors = [p.error for t in texts if (p := _parsed(t)).error is not None]
    raise _no_source(fn, f"its file no longer parses ({errors[0].msg}, line {errors[0].lineno})" if errors
                     else "its source has changed since it was defined")


def _fitting(fn: types.FunctionType, texts: Sequence[_Text]) -> Definition | None:
    """The definition of a function, from the first text in which a definition compiles to the function's code.
    Definitions on its line are tried before all others.
    """
    code = fn.__code__
    for places in (_Parsed.on_line, _Parsed.anywhere):
        for text in texts:
            parsed = _parsed(text)
            for node in places(parsed, code):
                if parsed.compiles_to(node, code) or places is _Parsed.on_line and _may_be_rewritten(fn):
                    return Definition(with_private_names(node, code), text)
    return None


def _may_be_rewritten(fn: types.FunctionType) -> bool:
    """Whether a special loader, as some tools have, may have compiled a changed version of the file's text."""
    if type(fn.__globals__.get("__loader__")) in _PLAIN:
        return False
    try:
        found = os.stat(fn.__code__.co_filename)
        return max(found.st_mtime, found.st_ctime) <= _LOADED  # ctime, since a file that is moved keeps its mtime
    except OSError:
        return False


_PLAIN = (types.NoneType, type, SourceFileLoader, zipimport.zipimporter)  # a class is the loader of __main__
_LOADED = time.time()


class _Parsed:
    """The syntax of a text, and the code that its parts compile to."""

    def __init__(self, text: _Text):
        self.name = str(text)
        self.error: SyntaxError | None = None
        try:
            self.tree = ast.parse("".join(text.lines), self.name)
        except SyntaxError as e:
            self.error, self.tree = e, ast.Module([], [])
        self._codes: dict[tuple, tuple[tuple[ast.stmt, ...], _Codes]] = {}  # by ids of statements, which it keeps alive

    def on_line(self, code: types.CodeType) -> list[Function]:
        """The function that begins on the first line of a code object."""
        line = code.co_firstlineno
        pending: list[ast.AST] = [self.tree]
        for n in pending:
            pending += _below(n, line)
        found = [n for n in pending if isinstance(n, _FUNCTIONS) and _first_line(n) == line and _matches(n, code)]
        return _by_position(found, code) if len(found) > 1 else found

    def anywhere(self, code: types.CodeType) -> list[Function]:
        """All functions with the name of a code object."""
        return [n for n in self._by_name.get(code.co_name, ()) if _matches(n, code)]

    @cached
    def _by_name(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for n in ast.walk(self.tree):
            if isinstance(n, _FUNCTIONS):
                found.setdefault(_name(n), []).append(n)
        return found

    def compiles_to(self, node: Function, code: types.CodeType) -> bool:
        """Whether a function definition compiles to a code object."""
        if any(map(_is_not_compared, ast.walk(node))):
            return True
        documented = not isinstance(node, ast.Lambda) and ast.get_docstring(node, False) is not None
        wanted = _essence(code, documented)
        place, flags = (code.co_name, _first_line(node)), code.co_flags & _FUTURE
        return any(_essence(c, documented) == wanted for unit in self._units(node, code)
                   for c in self._compiled(unit, flags).get(place, ()))

    def _units(self, node: Function, code: types.CodeType) -> Iterator[tuple[ast.stmt, ...]]:
        """The statements that may have been compiled together with a function, the likeliest first.

        Python compiles whole files, notebooks compile single statements, and tools that reload modules compile single
        functions. The top-level statement comes first because it compiles faster than the file; imports are prepended
        because they change how calls compile.
        """
        body = self.tree.body
        top = _over(body, node.lineno)
        yield (*self._imports, *top)
        yield tuple(top)
        yield tuple(body)
        if not isinstance(node, ast.Lambda):
            owner = ["", *code.co_qualname.split(".")][-2]
            inside = owner and owner != "<locals>"
            yield (ast.copy_location(_class(owner, node), node) if inside else node,)

    @cached
    def _imports(self) -> tuple[ast.stmt, ...]:
        """One statement that imports the same names as the file does."""
        names: dict[str, None] = {}
        pending: list[ast.AST] = [*self.tree.body]
        for n in pending:
            if isinstance(n, ast.Import | ast.ImportFrom):
                names |= dict.fromkeys(a.asname or a.name.partition(".")[0] for a in n.names if a.name != "*")
            elif not isinstance(n, (*_FUNCTIONS, ast.ClassDef)):
                pending += [c for c in ast.iter_child_nodes(n) if isinstance(c, ast.stmt | ast.excepthandler
                                                                             | ast.match_case)]
        aliases = [ast.alias(n, None) for n in names]
        return (ast.fix_missing_locations(ast.Import(aliases, lineno=1, col_offset=0)),) if aliases else ()

    def _compiled(self, unit: tuple[ast.stmt, ...], flags: int) -> _Codes:
        """All code objects in some statements; none if the statements cannot stand alone, as those with `await`."""
        key = (*map(id, unit), flags)
        if key not in self._codes:
            found: _Codes = {}
            try:
                module = silent(ast.Module([*unit], []))
                stack = [compiled(module, self.name, flags)]
            except (SyntaxError, ValueError):
                stack = []
            for code in stack:
                found.setdefault((code.co_name, code.co_firstlineno), []).append(code)
                stack += [c for c in code.co_consts if isinstance(c, types.CodeType)]
            self._codes[key] = unit, found
        return self._codes[key][1]


Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_Codes = dict[tuple[str, int], list[types.CodeType]]  # by name and line
_FUTURE = functools.reduce(int.__or__, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))

_recent: deque[_Parsed] = deque(maxlen=16)  # keeps these alive; trees are large, so others are parsed again


def _parsed(text: _Text) -> _Parsed:
    found = text.parsed and text.parsed()
    if found is None:
        found = _Parsed(text)
        text.parsed = weakref.ref(found)
        _recent.append(found)
    return found


def _no_source(fn: types.FunctionType, why: str) -> TileSyntaxError:
    code = fn.__code__
    return TileSyntaxError(
        f"the source of {fn.__qualname__} ({code.co_filename}, line {code.co_firstlineno}) is not available: {why}",
        help="put the function into a file or a notebook cell and import or run it again; code made with exec must be "
             "registered in linecache.cache under the file name given to compile()")


# ------------------------------------------------------------------ syntax and code


def _below(n: ast.AST, line: int) -> Iterator[ast.AST]:
    """The children of a node; of statements only those that span the line."""
    for _, field in ast.iter_fields(n):
        if isinstance(field, list):
            held = _over(field, line) if field and isinstance(field[0], ast.stmt) else field
            yield from (x for x in held if isinstance(x, ast.AST))
        elif isinstance(field, ast.AST):
            yield field


def _over(body: list[ast.stmt], line: int) -> list[ast.stmt]:
    """The statements that span a line."""
    end = start = bisect.bisect_right(body, line, key=_first_line)
    while start and body[start - 1].end_lineno >= line:
        start -= 1
    return body[start:end]


def _first_line(n: ast.stmt | ast.Lambda) -> int:
    return min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))])


def _is_not_compared(n: ast.AST) -> bool:
    """Whether the code of a node is not compared: test tools rewrite an `assert`, and compiling what Python warns of
    would warn again. Tile code has neither.
    """
    return isinstance(n, ast.Assert) or warns(n)


def _class(name: str, node: ast.FunctionDef) -> ast.ClassDef:
    return ast.fix_missing_locations(ast.copy_location(
        ast.ClassDef(name, bases=[], keywords=[], body=[node], decorator_list=[], type_params=[]), node))


def _name(n: Function) -> str:
    return getattr(n, "name", "<lambda>")


def _matches(n: Function, code: types.CodeType) -> bool:
    params = parameter_names(n.args)
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return _name(n) == code.co_name and tuple(map(_mangled, params)) == tuple(map(_mangled, code.co_varnames[:count]))


def _mangled(name: str) -> str:
    """The part of a name that stays the same when Python mangles private names of a class."""
    return name.split("__")[-1] if name.startswith("_") else name


def _by_position(found: list[Function], code: types.CodeType) -> list[Function]:
    """The innermost of several functions on one line whose source covers all positions of a code object."""
    points = [(line, col) for line, _, col, _ in code.co_positions() if line and col is not None]
    points = [p for p in points if p != (code.co_firstlineno, 0)]
    if not points:  # Python 3.12 may give none to a function that returns a constant
        return [n for n in found if isinstance(n, ast.Lambda) and _essence(_code_of(n)) == _essence(code)]
    covering = [n for n in found
                if all((n.lineno, n.col_offset) <= p <= (n.end_lineno, n.end_col_offset) for p in points)]
    covering.sort(key=lambda n: (n.end_lineno - n.lineno, n.end_col_offset - n.col_offset))
    return covering[:1]


def _code_of(node: ast.Lambda) -> types.CodeType:
    """The code of a lambda without free names."""
    module = compile(ast.Expression(node), "lambda", "eval", dont_inherit=True)
    return next(c for c in module.co_consts if isinstance(c, types.CodeType))


def _essence(code: types.CodeType, documented: bool = False) -> tuple:
    """What identifies the code of a function, wherever it stands in its file.

    Ignores the docstring (`documented`), which tools re-indent.
    """
    constants = list(map(_constant, code.co_consts))
    if documented and constants:
        constants[0] = None
    return code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


def _constant(c: object) -> object:
    match c:
        case types.CodeType():
            return _essence(c)
        case tuple():
            return tuple(map(_constant, c))
        case frozenset():
            return frozenset(map(_constant, c))
        case _:
            return type(c), repr(c)

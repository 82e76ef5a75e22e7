"""A mutant of code that runs at import, without an import: the mutated assignment runs again in the live module.

What other assignments of the package make of it is made again too. Dicts, lists and sets are changed in place; any
other value is replaced wherever a module has it under its name. This takes milliseconds, an import and its collection
of tests take seconds.
"""

from __future__ import annotations
import __future__

import ast
import functools
import gc
import sys
import types
from typing import Any

from tests.mutation.sites import ROOT, TARGETS, Mutant, module_name


class NeedsImport(Exception):
    """Only an import does all that the mutant does."""


def apply(m: Mutant, mutated: bool = True) -> None:
    """Run the mutated statement. Not `mutated`: run it as it is, as a control, for tests that notice already that."""
    i, was = _statement(m)
    s = ast.parse(m.source()).body[i] if mutated else was
    module = sys.modules[module_name(m.path)]
    if isinstance(s, ast.Assign | ast.AnnAssign):
        changed, seen = _assign(m.path, s), {(m.path, was.lineno)}
        while changed:
            changed = _remade(changed, seen, module)
    elif isinstance(s, ast.FunctionDef) and s.body[0].lineno > m.line >= s.lineno:
        _set_defaults(m.path, s)
    else:
        raise NeedsImport


def ready() -> None:
    """Read the package once, before processes are forked."""
    for path in _imported():
        _at_import(path)


@functools.cache
def _tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def _statement(m: Mutant) -> tuple[int, ast.stmt]:
    """The mutated statement of the module, with its place."""
    return next((i, s) for i, s in enumerate(_tree(m.path).body)
                if min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))]) <= m.line <= s.end_lineno)


@functools.cache
def _imported() -> tuple[str, ...]:
    found = (str(p.relative_to(ROOT)) for p in sorted((ROOT / "cutile").rglob("*.py")))
    return tuple(path for path in found if module_name(path) in sys.modules)


@functools.cache
def _at_import(path: str) -> list[tuple[ast.stmt, frozenset[str], frozenset[str]]]:
    """The top statements of a module, with the names and the attributes that they read when it is imported."""
    found = []
    for s in _tree(path).body:
        parts: list[ast.AST] = [s]
        if isinstance(s, ast.Import | ast.ImportFrom):
            continue
        if isinstance(s, ast.FunctionDef):
            parts = [*s.decorator_list, *s.args.defaults, *filter(None, s.args.kw_defaults)]
        elif isinstance(s, ast.ClassDef):
            parts = [*s.decorator_list, *s.bases,
                     *(x.value for x in s.body if isinstance(x, ast.Assign | ast.AnnAssign) and x.value)]
        elif isinstance(s, ast.AnnAssign):
            parts = [s.value] if s.value is not None else []
        inside = [n for p in parts for n in ast.walk(p)]
        found.append((s, frozenset(n.id for n in inside if isinstance(n, ast.Name)),
                      frozenset(n.attr for n in inside if isinstance(n, ast.Attribute))))
    return found


def _remade(changed: set[str], seen: set[tuple[str, int]], origin: types.ModuleType) -> set[str]:
    """Run again what reads the changed names of `origin`, or of modules that import them; returns what that changed."""
    again: set[str] = set()
    for path in _imported():
        space = vars(sys.modules[module_name(path)])
        here = {c for c in changed if c in space}
        there = changed if any(v is origin for v in space.values()) else set()
        for s, names, attributes in _at_import(path) if here or there else ():
            if names.isdisjoint(here) and attributes.isdisjoint(there) or (path, s.lineno) in seen:
                continue
            if isinstance(s, ast.Assign | ast.AnnAssign) and _bound(s):
                seen.add((path, s.lineno))
                again |= _assign(path, s)
            elif path in TARGETS and not isinstance(s, ast.If):
                raise NeedsImport
    return again


def _bound(s: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _run(path: str, s: ast.stmt) -> dict[str, Any]:
    """The names of a module after a statement ran on a copy of them."""
    space = dict(vars(sys.modules[module_name(path)]))
    flags = __future__.annotations.compiler_flag if "annotations" in space else 0
    exec(compile(ast.Module([s], []), str(ROOT / path), "exec", dont_inherit=True, flags=flags), space)
    return space


def _assign(path: str, s: ast.Assign | ast.AnnAssign) -> set[str]:
    space, live = _run(path, s), vars(sys.modules[module_name(path)])
    bound = _bound(s)
    for name in bound & live.keys():
        _put(name, live[name], space[name])
    return bound


def _put(name: str, old: Any, new: Any) -> None:
    if type(old) is type(new) and isinstance(old, dict | set):
        items = type(new)(new)
        old.clear()
        old.update(items)
    elif type(old) is type(new) and isinstance(old, list):
        old[:] = new
    else:
        for module in list(sys.modules.values()):
            if isinstance(module, types.ModuleType) and vars(module).get(name) is old:
                setattr(module, name, new)


def _set_defaults(path: str, s: ast.FunctionDef) -> None:
    """Give the live function the defaults of a definition."""
    bare = ast.copy_location(ast.FunctionDef(s.name, s.args, s.body, [], s.returns, s.type_comment), s)
    bare.type_params = getattr(s, "type_params", [])
    made = _run(path, ast.fix_missing_locations(bare))[s.name]
    found = [f for f in gc.get_objects() if isinstance(f, types.FunctionType)
             and f.__code__.co_filename == str(ROOT / path) and f.__code__.co_qualname == s.name]
    if not found:
        raise NeedsImport
    for f in found:
        f.__defaults__, f.__kwdefaults__ = made.__defaults__, made.__kwdefaults__

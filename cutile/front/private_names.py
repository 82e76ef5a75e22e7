"""Private names: where a class stands around a function, Python reads `__name` in it as `_Class__name`."""

from __future__ import annotations

import ast
import copy
import types

_FIELDS = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.FunctionDef: "name"}


def with_private_names(node: ast.FunctionDef | ast.Lambda, code: types.CodeType) -> ast.FunctionDef | ast.Lambda:
    """The syntax of a function with the names that Python reads in it; `node` itself, if that has no private names.
    The function keeps its own name, and keywords of calls keep theirs, as in Python.
    """
    owner = _class_around(code.co_qualname).lstrip("_")
    if not owner or not any(map(_is_private, ast.walk(node))):
        return node
    root = copy.copy(node)
    pending: list[ast.AST] = [root]
    for n in pending:  # no recursion, since expressions nest to any depth
        if _is_private(n) and n is not root:
            field = _FIELDS[type(n)]
            setattr(n, field, f"_{owner}{getattr(n, field)}")
        for name, value in ast.iter_fields(n):
            if isinstance(value, ast.AST):
                value = copy.copy(value)
                pending.append(value)
            elif isinstance(value, list):
                value = [copy.copy(x) if isinstance(x, ast.AST) else x for x in value]
                pending += [x for x in value if isinstance(x, ast.AST)]
            setattr(n, name, value)
    return root


def _is_private(n: ast.AST) -> bool:
    name = getattr(n, _FIELDS[type(n)]) if type(n) in _FIELDS else ""
    return name.startswith("__") and not name.endswith("__")


def _class_around(qualname: str) -> str:
    """The innermost class around a function, from the function's qualified name; "" if there is none."""
    *names, _ = qualname.split(".")
    while names[-1:] == ["<locals>"]:  # a function is around it
        names = names[:-2]
    return names[-1] if names else ""

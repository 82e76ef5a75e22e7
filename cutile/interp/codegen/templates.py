"""Expressions for what a user's variable holds, from the template of a Bind: a value of the kernel, a compile-time
value, or a structure of both, which the debugger shows as an object of the user's class.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from cutile.interp.codegen.emit import EmittedCode
from cutile.interp.codegen.py_ast import call, constant, tuple_of
from cutile.interp.show import Shown, record_class
from cutile.ir import nodes as ir
from cutile.ir.nodes import Known, Template, Value


def from_template(code: EmittedCode, t: Template, use: Callable[[Value], ast.expr]) -> ast.expr:
    """The expression of what a user's variable holds. `use` gives that of a run-time value."""
    match t:
        case Value():
            return use(t)
        case Known(bool() | int() | str() | None as value):
            return constant(value)
        case Known(value):
            return code.ref(value, "known")
        case ir.Shown(text):
            return code.ref(Shown(text), "shown")
    items = [from_template(code, i, use) for i in t.items]
    if t.kind == "tuple":
        return tuple_of(items)
    if t.kind == "dict":
        return ast.Dict([constant(n) for n in t.names], items)
    return call(code.ref(record_class(t.kind), t.kind), (), list(zip(t.names, items, strict=True)))

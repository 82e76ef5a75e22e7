"""The static constructs, ct.static_eval and the others, and how a call of one is recognised [SEVAL-*].

Kernels recognise a construct by the object that its name denotes, so that aliases of the module work [SEVAL-1].
"""

from __future__ import annotations

import ast
import types
from typing import Any

from cutile.errors import TileStaticAssertionError
from cutile.front.scope import MISSING, Scope, home_of, outer_object
from cutile.ir.terms import Const, Record, Static, Term, Tuple, describe


def static_eval(expr, /):
    """Evaluate a Python expression while the kernel is compiled. Tile code only.

    Real Python runs: `expr` may call any function and read any constant of the kernel's surroundings. In it, constants
    of the kernel are Python values, and run-time tiles and arrays are ct.Tile and ct.Array objects with `dtype`,
    `shape` and operators [SEVAL-2, SEVAL-3].

    Returns the value as tile code: a number, bool, string, None, dtype, enum member, function, module, frozen
    dataclass, tile, array, or a tuple of these. Anything else is a TileTypeError [SEVAL-4]. An exception that the
    expression raises becomes a StaticException, with that exception as its cause [SEVAL-5].
    """
    raise RuntimeError("ct.static_eval() works in tile code only")


def static_assert(condition, message=None, /):
    """Stop compilation with TileStaticAssertionError unless a condition holds [SEVAL-6]. Tile code only.

    `condition` is evaluated as by ct.static_eval, and must be a bool that is known at compile time, else TileTypeError.
    `message` is evaluated only if the condition is False, and is shown with the error.
    """
    raise RuntimeError("ct.static_assert() works in tile code only")


def static_iter(iterable):
    """In tile code, `for x in ct.static_iter(iterable)` unrolls the loop: its body is compiled once per item [SEVAL-7].

    `iterable` is evaluated as by ct.static_eval. More than 1000 items are a TileStaticEvalError. The loop cannot be
    left by return, break or continue. `tuple(f(x) for x in ct.static_iter(iterable))` makes a tuple [EX-3].
    On the host it returns `iterable`.
    """
    return iterable


def static_exception(exc, /):
    """In tile code, `raise ct.static_exception(exc)` stops compilation with StaticException [ST-8].

    `exc` is evaluated as by ct.static_eval, and is an exception or a class of exceptions; it becomes the cause of the
    error. On the host it returns `exc`.
    """
    return exc


def ensure_constant(value, /):
    """`value`, if it is known at compile time; else TileStaticAssertionError [SEVAL-8]. Tile code only.

    Constants, strings, dtypes and other Python objects are known, and so are tuples and frozen dataclasses of these.
    """
    raise RuntimeError("ct.ensure_constant() works in tile code only")


KEYWORDS = {f.__name__: f for f in (static_eval, static_assert, static_iter, static_exception)}


def construct_of(s: Scope, node: ast.AST) -> str | None:
    """The static construct that an expression calls, by a global name or an attribute of a module; None for others."""
    if not isinstance(node, ast.Call):
        return None
    obj = _outside(s, node.func)
    return next((name for name, f in KEYWORDS.items() if obj is f), None)


def _outside(s: Scope, node: ast.expr) -> Any:
    """The Python object that a dotted name denotes outside the kernel; MISSING for any other expression."""
    match node:
        case ast.Name(id=name):
            return outer_object(s, name)[2] if home_of(s, name) is None else MISSING
        case ast.Attribute(value=value, attr=name):
            base = _outside(s, value)
            return getattr(base, name, MISSING) if isinstance(base, types.ModuleType) else MISSING
    return MISSING


def ensured(term: Term) -> Term:
    """The result of ct.ensure_constant [SEVAL-8]."""
    if not is_constant(term):
        raise TileStaticAssertionError(f"expected a compile-time constant, got {describe(term)}")
    return term


def is_constant(t: Term) -> bool:
    """Whether a term is known at compile time."""
    match t:
        case Const() | Static():
            return True
        case Tuple():
            return all(map(is_constant, t.items))
        case Record():
            return all(map(is_constant, t.fields.values()))
    return False

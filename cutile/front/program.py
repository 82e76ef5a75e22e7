"""The entry point of the front end: from a kernel function and the types of its arguments to a typed program."""

from __future__ import annotations

import ast
import contextvars
import types
import typing
from collections.abc import Sequence
from typing import Any

from cutile._support.structs import structure
from cutile.errors import TileError, TileInternalError, TileRecursionError, TileSyntaxError, TileTypeError
from cutile.front import call, expr, functions, stmt
from cutile.front.context import Context, Hidden, Recursion, StopCompiling
from cutile.front.definition import Definition
from cutile.front.dependencies import Dependencies
from cutile.front.python_objects import capture
from cutile.front.scope import Scope, of_function
from cutile.front.source_text import definition_of
from cutile.ir.nodes import Kernel, Value
from cutile.ir.recursion import with_room
from cutile.ir.terms import Leaf, Static, Term, Tuple, describe, is_poisoned
from cutile.types import ArrayType, ListType, TileType


@structure(frozen=True)
class Embedded:
    """The type of a constant argument: its Python value, which the program is compiled for."""

    value: Any


NESTED = 32  # how deep kernels may launch kernels from static code
_RECURSION = Recursion(expr.evaluate, stmt.statements, call.call)

# The type of an argument: of a run-time value, a constant, or a tuple of these.
ArgType = TileType | ArrayType | ListType | Embedded | tuple


@structure
class Program:
    """A typed kernel and what its meaning depends on outside itself."""

    kernel: Kernel
    dependencies: Dependencies


def type_kernel(fn: types.FunctionType, arg_types: Sequence[ArgType], hidden: Sequence[Hidden] = ()) -> Program:
    """Type a kernel for arguments of these types. `hidden`: what the last ones stand for, which are no parameters of
    the function.

    Raises the first error in program order; its `errors` are all that were found. It runs in a copy of the current
    contextvars context, so that an interrupt cannot leave a context variable set.
    """
    return contextvars.copy_context().run(with_room, _compile, fn, arg_types, hidden)


_around: contextvars.ContextVar[int] = contextvars.ContextVar("cutile_kernels_being_typed", default=0)


def is_typing() -> bool:
    """Whether this code is called from a kernel that is being typed."""
    return _around.get() > 0


def _compile(fn: types.FunctionType, arg_types: Sequence[ArgType], hidden: Sequence[Hidden]) -> Program:
    definition = definition_of(fn)
    if _around.get() >= NESTED:
        raise TileRecursionError(
            f"{NESTED} kernels are launched from each other's static_eval", definition.header_span(),
            help="a kernel that launches itself while it is compiled never gets to its end")
    _around.set(_around.get() + 1)
    s = of_function(fn, definition, None)
    c = Context(definition.header_span(), fn.__module__, _RECURSION)
    c.definition(fn)
    params: list[tuple[str, Value]] = []
    try:
        functions.check_syntax(c, s)
        names = parameter_names(definition)
        given = iter(arg_types)
        terms = {n: _parameter(c, n, t, params) for n, t in zip(names, given, strict=False)}
        c.hidden = {h: _parameter(c, h.name, t, params) for h, t in zip(hidden, given, strict=True)}
        functions.run_body(c, s, terms)
        _check_returns(c, s)
        c.dependencies.accept_changes(last=True)
    except StopCompiling:
        pass
    except TileError as e:
        e.loc = e.loc or c.span
        c.errors.append(e)
    except RecursionError:
        c.errors.append(
            TileRecursionError(
                f"the program nests deeper than Python's stack allows here (calls: {c.call_depth})",
                c.span,
                help="launch with fewer calls around, or raise Python's limit: sys.setrecursionlimit(…)",
            )
        )
    if c.errors:
        for e in c.errors:
            _note_constants(e, fn, definition, arg_types)
        raise _combined(c.errors)
    c.dependencies.finish()
    return Program(Kernel(fn.__name__, tuple(v for _, v in params), tuple(n for n, _ in params), c.region,
                          definition.header_span()), c.dependencies)


def parameter_names(definition: Definition) -> list[str]:
    """The names of a kernel's parameters; TileSyntaxError if it takes *args or **kwargs [KERN-6]."""
    a = definition.node.args
    for star in (a.vararg, a.kwarg):
        if star is not None:
            raise TileSyntaxError(f"a kernel cannot take *args or **kwargs: `{star.arg}`", definition.span(star),
                                  help="name every parameter; a tuple can be passed as one argument")
    return [p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]]


def _parameter(c: Context, name: str, t: ArgType, params: list[tuple[str, Value]]) -> Term:
    if isinstance(t, Embedded):
        return capture(c, t.value, name)
    if isinstance(t, tuple):
        return Tuple(tuple(_parameter(c, name, i, params) for i in t))
    v = Value(t, name)
    params.append((name, v))
    return Leaf(v)


def _note_constants(e: TileError, fn: types.FunctionType, definition: Definition,
                       arg_types: Sequence[ArgType]) -> None:
    """If an error's line names a constant parameter whose value does not match its annotation, add a note. Launches do
    not check these annotations [ANN-1].
    """
    where = e.loc.frames()[0] if e.loc else None
    if not isinstance(e, TileTypeError) or where is None or where.filename is not definition.filename:
        return
    piece = (where.line, where.col), (where.end_line, where.end_col)
    names = {n.id for n in ast.walk(definition.node) if isinstance(n, ast.Name)
             and piece[0] <= ((s := definition.span(n)).line, s.col) and (s.end_line, s.end_col) <= piece[1]}
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except Exception:  # text inside of an annotation that is no Python type: nothing else reads it
        hints = fn.__annotations__
    for name, t in zip(parameter_names(definition), arg_types, strict=False):
        wanted = (*typing.get_args(hints.get(name)), None)[0]
        if name in names and isinstance(t, Embedded) and wanted in _CHECKED and type(t.value) is not wanted:
            strict = hasattr(t.value, "dtype")
            e.notes += ((f"`{name}` is annotated as a constant {wanted.__name__}, and the launch gave {t.value!r}"
                         f"{f', which has a dtype of its own; pass {wanted.__name__}({name})' * strict}", None),)


_CHECKED = (bool, int, float, str)


def _check_returns(c: Context, s: Scope) -> None:
    """A kernel returns nothing [KERN-7]."""
    for p in s.returns:
        if not (isinstance(p.term, Static) and p.term.obj is None) and not is_poisoned(p.term):
            c.report(TileTypeError(f"a kernel cannot return a value, got {describe(p.term)}",
                                   help="write results to an array parameter with ct.store"), p.span)


def _combined(errors: list[TileError]) -> TileError:
    """The first error, with all of them as its `errors`. An internal error comes first only if there is no other."""
    first = next((e for e in errors if not isinstance(e, TileInternalError)), errors[0])
    first.errors = (first, *(e for e in errors if e is not first))
    return first

"""Names: what they denote now, where they were assigned, and how outer ones are found."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable
from typing import Any

from cutile._support.structs import field, structure
from cutile.errors import Span
from cutile.front.definition import Definition
from cutile.ir.nodes import Region, Return
from cutile.ir.terms import Term


@structure(frozen=True, eq=False)
class Var:
    """What a variable denotes, and the assignment that made it so."""

    term: Term
    span: Span


@structure(eq=False)
class LoopState:
    """A dynamic loop being compiled: what it carries and where control leaves its body."""

    carried: dict[str, Term]  # name -> the term inside the body at its start
    depth: int  # how many context managers were open outside
    infinite: bool
    breaks: list[Edge] = field(default_factory=list)
    continues: list[Edge] = field(default_factory=list)


@structure(eq=False)
class Unrolling:
    """A loop over static_iter whose body is being typed for one item."""

    region: Region  # where its statements go
    depth: int  # how many context managers were open outside
    left_by: type | None = None  # Break or Continue


@structure(eq=False)
class Edge:
    """A place where control leaves a body: the variables there and the terminator to complete."""

    vars: dict[str, Var]
    region: Region
    node: Any


@structure(eq=False)
class ReturnPoint:
    term: Term
    region: Region
    node: Return
    span: Span


@structure(eq=False)
class Scope:
    """One activation of a function.

    `vars` is the current state of its variables; control flow copies and joins it. A scope outlives its call, since
    closures made in it see its last state [CALL-5].
    """

    definition: Definition
    globals: dict[str, Any]
    cells: dict[str, types.CellType]
    parent: Scope | None
    call_site: Span | None
    vars: dict[str, Var] = field(default_factory=dict)
    returns: list[ReturnPoint] = field(default_factory=list)
    loops: list[LoopState] = field(default_factory=list)
    cleanups: list[Callable[[], bool]] = field(default_factory=list)
    unrolling: list[Unrolling] = field(default_factory=list)  # inside the bodies of static_iter
    names: frozenset[str] | None = None  # what is looked up here and not outside; None: the definition's locals
    unknown: set[str] = field(default_factory=set)  # names already reported as undefined
    host: Scope | None = None  # of a context manager's activation: the scope of the with statement
    revived: bool = False  # the last state of one that ended before

    def __post_init__(self):
        self.names = self.definition.locals if self.names is None else self.names

    def span(self, node: ast.AST) -> Span:
        """The span of a piece of this function's syntax, as called here."""
        return self.definition.span(node, self.call_site)

    @property
    def function(self) -> str:
        return self.definition.name


def of_function(fn: types.FunctionType, definition: Definition, call_site: Span | None) -> Scope:
    """A fresh activation of a Python function."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    return Scope(definition, fn.__globals__, cells, None, call_site)


def of_generator(outer: Scope, names: frozenset[str]) -> Scope:
    """The scope of a generator expression, which holds its loop variables."""
    return Scope(outer.definition, outer.globals, outer.cells, outer, outer.call_site, names=names)


def home_of(s: Scope | None, name: str) -> Scope | None:
    """The scope in which a name is looked up; None if it is a free variable of the Python function or a global."""
    while s is not None and name not in s.names:
        s = s.parent
    return s


MISSING = object()


def outer_object(s: Scope, name: str) -> tuple[Any, Any, Any]:
    """A Python object that a free name denotes: (container, key, object), object MISSING if there is none.

    The container and key let a launch look again: a changed global counts with its new value [SPEC: README].
    """
    if name in s.cells:
        cell = s.cells[name]
        try:
            return cell, None, cell.cell_contents
        except ValueError:
            return cell, None, MISSING
    if name in s.globals:
        return s.globals, name, s.globals[name]
    space = s.globals.get("__builtins__", builtins)
    space = space if isinstance(space, dict) else vars(space)
    return space, name, space.get(name, MISSING)

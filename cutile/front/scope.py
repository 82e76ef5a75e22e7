"""Scopes: what the variables of a function denote, where they were assigned, and how outer names are looked up."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Iterable
from typing import Any

from cutile._support.structs import field, structure
from cutile.front.definition import Definition
from cutile.ir.nodes import Region, Return
from cutile.ir.terms import Term, Use
from cutile.spans import Span


@structure(slots=True, eq=False)
class Var:
    """What a variable denotes, and where it was assigned. No code changes it."""

    term: Term
    span: Span


class Variables(dict[str, Var]):
    """The variables of a scope on one side of a branch.

    base     those before the branch, of which this began as a copy; None outside of branches
    written  the names that were assigned or forgotten since then, in order. So a join of branches need not look at
             variables that nobody assigned, of which a program may have as many as it has branches
    """

    def __init__(self, vars: dict[str, Var] | None = None, base: dict[str, Var] | None = None,
                 written: Iterable[str] = ()):
        super().__init__(vars or ())
        self.base, self.written = base, dict.fromkeys(written)

    def __setitem__(self, name: str, var: Var) -> None:
        super().__setitem__(name, var)
        self.written[name] = None

    def pop(self, name: str) -> Var:  # type: ignore[override]
        self.written[name] = None
        return super().pop(name)


@structure(eq=False)
class LoopState:
    """A run-time loop whose body is being typed: what it carries, and where control leaves its body."""

    carried: dict[str, Term]  # name -> its term at the start of the body
    depth: int  # how many context managers are open outside the loop
    breaks: list[Jump] = field(default_factory=list)
    continues: list[Jump] = field(default_factory=list)


@structure(eq=False)
class Unrolling:
    """A loop over static_iter whose body is being typed for one item."""

    region: Region  # the region to which the statements of the body append
    depth: int  # how many context managers are open outside the loop
    left_by: type | None = None  # Break or Continue


@structure(eq=False)
class Jump:
    """A Break or Continue: the variables at that place, the context managers used on the way there, and the node, which
    has no operands yet.
    """

    vars: dict[str, Var]
    used: frozenset[Use]
    region: Region
    node: Any


@structure(eq=False)
class ReturnPoint:
    """A Return: the term that it returns, the node, which has no operands yet, and the context managers used on the way
    there.
    """

    term: Term
    region: Region
    node: Return
    span: Span
    used: frozenset[Use] = frozenset()


@structure(eq=False)
class Scope:
    """One activation of a function.

    `vars` are its variables at the statement that is being typed. Control flow copies and joins them. A scope outlives
    its call, since closures made in it see the last state of its variables [CALL-5].
    """

    definition: Definition
    globals: dict[str, Any]
    cells: dict[str, types.CellType]
    parent: Scope | None
    call_site: Span | None
    vars: dict[str, Var] = field(default_factory=Variables)
    returns: list[ReturnPoint] = field(default_factory=list)
    loops: list[LoopState] = field(default_factory=list)
    cleanups: list[Callable[[], bool]] = field(default_factory=list)  # type the exit code of open context managers
    unrolling: list[Unrolling] = field(default_factory=list)  # loops over static_iter around the statement
    names: frozenset[str] | None = None  # names that are looked up in this scope; None: the definition's locals
    unknown: set[str] = field(default_factory=set)  # names that were reported as undefined
    with_scope: Scope | None = None  # of a context manager: the scope of the with statement
    revived: bool = False  # whether closures.py made it, from the last state of a scope that had ended
    spans: dict[ast.AST, Span] = field(default_factory=dict)  # made so far: unrolled loops ask again

    def __post_init__(self):
        self.names = self.definition.locals if self.names is None else self.names

    def span(self, node: ast.AST) -> Span:
        """The span of a piece of this function's syntax, in this call."""
        found = self.spans.get(node)
        if found is None:
            found = self.spans[node] = self.definition.span(node, self.call_site)
        return found

    @property
    def function(self) -> str:
        return self.definition.name


def of_function(fn: types.FunctionType, definition: Definition, call_site: Span | None) -> Scope:
    """A new activation of a Python function."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    return Scope(definition, fn.__globals__, cells, None, call_site)


def of_generator(outer: Scope, names: frozenset[str]) -> Scope:
    """A new scope for the loop variables of a generator expression."""
    return Scope(outer.definition, outer.globals, outer.cells, outer, outer.call_site, names=names)


def home_of(s: Scope | None, name: str) -> Scope | None:
    """The scope in which a name is looked up. None: the name is a free variable of the Python function, or a global."""
    while s is not None and name not in s.names:
        s = s.parent
    return s


MISSING = object()


@structure(eq=False)
class Member:
    """An attribute of a module that a global names, as it was found, with its term."""

    globals: dict[str, Any]
    name: str
    module: types.ModuleType
    attribute: str
    obj: Any
    term: Term

    def still_there(self, globals: dict[str, Any]) -> bool:
        """Whether an evaluation in a scope with these globals finds the same. Static code may have changed it."""
        return globals is self.globals and globals.get(self.name) is self.module \
            and getattr(self.module, self.attribute, MISSING) is self.obj


def outer_object(s: Scope, name: str) -> tuple[Any, Any, Any]:
    """The Python object that a free name denotes, as (container, key, object); the object is MISSING if there is none.

    A launch looks it up in the container again, by the key, to see changes.
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

"""What the typing of one kernel knows: the builder, the errors so far, and what was read from outside the kernel."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cutile._support.structs import structure
from cutile.dtypes import DType
from cutile.errors import (
    StaticException,
    TileError,
    TileInternalError,
    TileRecursionError,
    TileStaticAssertionError,
    TileStaticEvalError,
    TileSyntaxError,
    TileTypeError,
)
from cutile.front.definition import Definition
from cutile.front.dependencies import Dependencies
from cutile.front.scope import MISSING, Member, Scope, outer_object
from cutile.front.source_text import definition_of
from cutile.ir.build import Builder
from cutile.ir.nodes import Bind, Group, Known, Region, Shown, Template, Value
from cutile.ir.terms import (
    POISON,
    Const,
    Dict,
    Leaf,
    Manager,
    Range,
    Record,
    Static,
    Term,
    Tuple,
    Unusable,
    Use,
    describe,
)
from cutile.spans import Span
from cutile.types import ArrayType, LeafType

LOOP = "a loop"
CALL_LIMIT = 1000  # nested inlined calls [CALL-4]
ERROR_LIMIT = 50  # errors of one kernel, after which typing stops

# After these errors nothing else can be said about the program, so typing stops.
_ENDS_COLLECTION = (TileRecursionError, TileStaticAssertionError, TileStaticEvalError, StaticException)


class StopCompiling(Exception):
    """Raised when no more errors are wanted; `program.type_kernel` catches it."""


@structure(frozen=True)
class Recursion:
    """The functions by which the front end calls itself: expressions hold calls, calls run statements, statements hold
    expressions. Modules imported by these functions call them through the context, so that no import is circular.

    evaluate    `expr.evaluate(c, s, node)`: the term of an expression
    statements  `stmt.statements(c, s, body)`: types statements; False if control cannot reach their end
    call        `call.call(c, func, args, kwargs, spans)`: the term that a call gives
    """

    evaluate: Callable[..., Term]
    statements: Callable[..., bool]
    call: Callable[..., Term]


class Hidden:
    """Stands for an array in what a function captures. The kernel has a parameter for it, behind those of its function.

    name  of the parameter
    type  of the array
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: ArrayType):
        self.name, self.type = name, type


class Context(Builder):
    """The builder of the front end; it also collects errors and dependencies, and has the functions of `Recursion`."""

    def __init__(self, span: Span, module: str, recursion: Recursion):
        super().__init__(span)
        self.recursion = recursion
        self.errors: list[TileError] = []
        self.said: list[TileError] = []  # those of them that code which is typed again does not report again
        self.dependencies = Dependencies(module)
        self.call_depth = 0  # calls around the statement that is being typed
        self.deepest = 0  # the greatest call_depth so far inside the innermost call
        self.typed_calls: dict[Hashable, Any] = {}  # for repeated_calls.py
        self.applied: dict[Hashable, Any] = {}  # for repeated_ops.py
        self.expression_depth = 0  # expressions around the one that is being typed
        self.combining: str | None = None  # the reduce or scan whose combine function is being typed
        self.elements = False  # whether an element function is being typed
        self.hidden: dict[Hidden, Term] = {}  # the terms that stand for captured arrays
        self.managers = 0  # how many context managers have been made
        self.used: frozenset[Use] = frozenset()  # those used on the way to the statement that is being typed
        self.static: str | None = None  # the static construct that is being evaluated
        self.static_runs = 0  # how often static code has run
        self.checked: dict[tuple, frozenset[str]] = {}  # for each function whose syntax was checked, as one of elements
        # or not, the names that its refused parts assign
        self.refused: set[ast.AST] = set()  # statements and expressions that are skipped
        # Unrolled loops evaluate these again and again:
        self.literals: dict[ast.expr, Term] = {}  # numbers, strings, None, and tuples of these
        self.members: dict[ast.Attribute, Member] = {}  # attributes of modules
        self.named_members: dict[tuple[str, str], Member] = {}  # the same, by the names of module and attribute

    # -- the recursion

    def evaluate(self, s: Scope, node: ast.expr) -> Term:
        """The term of an expression; poison if it is wrong, or has different types on different paths."""
        return self.recursion.evaluate(self, s, node)

    def statements(self, s: Scope, body: Iterable[ast.stmt]) -> bool:
        """Type statements in order; False if control cannot reach their end."""
        return self.recursion.statements(self, s, body)

    def call(self, func: Term, args: Sequence[Term], kwargs: Mapping[str, Term] | None = None, spans=None) -> Term:
        """Call any term. `spans` (`op_calls.ArgumentSpans`) says where the arguments of a call in the user's
        source stand."""
        return self.recursion.call(self, func, tuple(args), dict(kwargs or {}), spans)

    # -- context managers

    def manager(self, func: Term, args: tuple[Term, ...], kwargs: dict[str, Term]) -> Manager:
        """A new context manager, made here."""
        self.managers += 1
        return Manager(func, args, kwargs, self.span, frozenset({Use(self.managers)}))

    def used_again(self, made: int, used: Iterable[Use], outside: str, again: str) -> None:
        """Report the managers, among those that code `used` which may run again, that were made before it: after `made`
        managers.
        """
        for use in sorted(used, key=lambda u: u.made):
            if use.made <= made:
                self.report(TileTypeError(
                    f"this context manager was made outside {outside}, and {again} may use it; it can be used once",
                    help="call the function again where the manager is used, for a new one each time"), use.entered)

    # -- errors

    def report(self, error: TileError, span: Span | None = None, *, once: bool = False) -> Term:
        """Record an error and give poison. Expressions that use the poison report nothing. `once`: not when they are
        typed again, either.
        """
        if error.loc is None:
            error.loc = span or self.span
        if not any(_same(error, e) for e in self.errors):
            self.errors.append(error)
            if once:
                self.said.append(error)
        if isinstance(error, _ENDS_COLLECTION) or len(self.errors) >= ERROR_LIMIT:
            raise StopCompiling
        return POISON

    def usable(self, term: Term) -> Term:
        """The term. One that has different types on different paths is reported, and becomes poison [JOIN-2]."""
        return self.report(term.error(self.span)) if isinstance(term, Unusable) else term

    def attempt(self, fn: Callable[..., Term], *args: Any, **kwargs: Any) -> Term:
        """Run a typing rule; an error that it raises is reported at the current span."""
        span = self.span
        try:
            return fn(*args, **kwargs)
        except TileError as e:
            return self.report(e, span)
        except (StopCompiling, RecursionError):
            raise
        except Exception as e:
            raise TileInternalError(f"{type(e).__name__} while typing: {e}", span) from e
        finally:
            self.span = span

    # -- what the program depends on

    def definition(self, fn: types.FunctionType) -> Definition:
        """The definition of a Python function; from now on the program depends on it."""
        found = definition_of(fn)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self.dependencies.add(fn, name, getattr(fn, name))
        if fn.__kwdefaults__:
            for name, value in fn.__kwdefaults__.items():
                self.dependencies.add(fn.__kwdefaults__, name, value)
        return found

    def outside(self, s: Scope, name: str) -> Any:
        """The Python object that a free name denotes, or MISSING; from now on the program depends on that object."""
        container, key, obj = outer_object(s, name)
        if obj is not MISSING:
            self.dependencies.add(container, key, obj)
            if container is not s.globals and key is not None:  # a builtin, which a later global may hide
                self.dependencies.add(s.globals, name, MISSING)
        return obj

    def special_method(self, cls: type, name: str) -> Any:
        found = next((vars(k)[name] for k in cls.__mro__ if name in vars(k)), MISSING)
        self.dependencies.add(cls, name, found)
        return None if found is MISSING else found

    def reach(self, obj: Any) -> None:
        self.dependencies.reach(obj, describe(Static(obj)))

    # -- combine functions

    @contextmanager
    def combine_body(self, op, types: Sequence[LeafType]):
        if self.elements:
            raise TileSyntaxError(f"{op.name}() cannot be used inside an element function, which sees single elements")
        if self.combining:
            raise TileSyntaxError(f"{op.name}() cannot be used inside the function given to {self.combining}()")
        self.combining = op.name
        made, used = self.managers, self.used
        try:
            with self.into(Region(params=tuple(Value(t) for t in types))) as region:
                yield region
            self.used_again(made, self.used - used, f"the function given to {op.name}()", "each of its calls")
        finally:
            self.combining = None

    @contextmanager
    def element_body(self, types: Sequence[LeafType]):
        elements, self.elements = self.elements, True
        made, used = self.managers, self.used
        try:
            with self.into(Region(params=tuple(Value(t) for t in types))) as region:
                yield region
            self.used_again(made, self.used - used, "the element function", "each of its calls")
        finally:
            self.elements = elements

    def need_branch_free(self, what: str, span: Span) -> None:
        """Report run-time control flow inside a combine function [RED-11]. Element functions may branch there; a loop
        (`what`) may not be in them either, since Tile IR has no loops in reductions.
        """
        if not self.combining or self.elements and what != LOOP:
            return
        self.report(TileSyntaxError(
            f"{what} cannot be used inside the function given to {self.combining}(): it must be free of branches",
            span, help="unroll it with ct.static_iter(range(…))" if self.elements else
            "choose between values with ct.where(cond, x, y), or make it an element function: ct.elementwise(f)"))

    # -- for debuggers

    def bind(self, name: str, term: Term, span: Span) -> None:
        """Tell debuggers that the variable `name` denotes `term` from here on."""
        self.append(Bind(name, template_of(term), span))


def _same(a: TileError, b: TileError) -> bool:
    def position(e):
        return e.loc and (e.loc.filename, e.loc.line, e.loc.col)
    return type(a) is type(b) and a.message == b.message and position(a) == position(b)


def template_of(t: Term) -> Template:
    """What a debugger shows for a term."""
    match t:
        case Leaf():
            return t.value
        case Const():
            return Known(t.value)
        case Static(obj) if type(obj) in (str, type(None)):  # members of string enums are shown like other members
            return Known(obj)
        case Tuple():
            return Group("tuple", (), tuple(map(template_of, t.items)))
        case Record():
            return Group(t.cls.__name__, tuple(t.fields), tuple(map(template_of, t.fields.values())))
        case Dict():
            return Group("dict", tuple(t.items), tuple(map(template_of, t.items.values())))
        case Range():
            return Group("range", ("start", "stop", "step"), tuple(map(template_of, (t.start, t.stop, t.step))))
        case Static(DType() as d):
            return Shown(d.name)
        case _:
            return Shown(describe(t))

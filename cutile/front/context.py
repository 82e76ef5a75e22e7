"""What one compilation knows: the builder, the errors so far, what was read from outside."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

from cutile.errors import (
    Span,
    StaticException,
    TileError,
    TileInternalError,
    TileRecursionError,
    TileStaticAssertionError,
    TileStaticEvalError,
    TileSyntaxError,
)
from cutile.front.dependencies import Dependencies
from cutile.front.scope import MISSING, Scope, outer_object
from cutile.front.source import Definition
from cutile.front.source_text import definition_of
from cutile.ir.build import Builder
from cutile.ir.nodes import Bind, Region, Value
from cutile.ir.terms import POISON, Term, Unusable
from cutile.types import LeafType

CALL_LIMIT = 1000  # nested inlined calls [CALL-4]

# After these there is no telling what else the program means, so nothing more is collected (DESIGN §9).
_ENDS_COLLECTION = (TileRecursionError, TileStaticAssertionError, TileStaticEvalError, StaticException)


class StopCompiling(Exception):
    """Enough errors are known; unwinds to the entry point."""


class Context(Builder):
    """The front end's builder."""

    def __init__(self, span: Span, module: str = ""):
        super().__init__(span)
        self.errors: list[TileError] = []
        self.dependencies = Dependencies(module)
        self.depth = 0
        self.nested = 0  # expressions around the one that is typed
        self.combining: str | None = None  # the reduce or scan whose combine function is being typed
        self.static: str | None = None  # the static construct being evaluated
        self.call_function: Callable[..., Term] | None = None  # front.call.call, set by the entry point
        self.checked: dict[ast.AST, frozenset[str]] = {}  # functions of known syntax -> names lost with refused parts
        self.refused: set[ast.AST] = set()  # statements and expressions that are passed over

    # -- errors

    def report(self, error: TileError, span: Span | None = None) -> Term:
        """Record an error; its expression becomes poison and its consumers stay silent."""
        if error.loc is None:
            error.loc = span or self.span
        if not any(_same(error, e) for e in self.errors):
            self.errors.append(error)
        if isinstance(error, _ENDS_COLLECTION) or len(self.errors) >= 50:
            raise StopCompiling
        return POISON

    def usable(self, term: Term) -> Term:
        """The term; poison, and its error, if it has different types on different paths [JOIN-2]."""
        return self.report(term.error(self.span)) if isinstance(term, Unusable) else term

    def attempt(self, span: Span, fn: Callable[..., Term], *args: Any, **kwargs: Any) -> Term:
        """Run a rule at a span; an error it raises is recorded there."""
        outer, self.span = self.span, span
        try:
            return fn(*args, **kwargs)
        except TileError as e:
            return self.report(e, span)
        except (StopCompiling, RecursionError):
            raise
        except Exception as e:
            raise TileInternalError(f"{type(e).__name__} while typing: {e}", span) from e
        finally:
            self.span = outer

    def definition(self, fn: types.FunctionType) -> Definition:
        """The definition of a Python function, which the program depends on from now on."""
        found = definition_of(fn)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self.dependencies.add(fn, name, getattr(fn, name))
        if fn.__kwdefaults__:
            for name, value in fn.__kwdefaults__.items():
                self.dependencies.add(fn.__kwdefaults__, name, value)
        return found

    def outside(self, s: Scope, name: str) -> Any:
        """The Python object that a free name denotes, which the program depends on from now on. MISSING: none does."""
        container, key, obj = outer_object(s, name)
        if obj is not MISSING:
            self.dependencies.add(container, key, obj)
            if container is not s.globals and key is not None:  # a builtin, which a global may come to hide
                self.dependencies.add(s.globals, name, MISSING)
        return obj

    # -- what typing rules need

    def call(self, func: Term, args: Sequence[Term], kwargs=None) -> Term:
        return self.call_function(self, func, tuple(args), dict(kwargs or {}), self.span)

    @contextmanager
    def combine_body(self, op, types: Sequence[LeafType]):
        if self.combining:
            raise TileSyntaxError(f"{op.name}() cannot be used inside the function given to {self.combining}()")
        region = Region(params=tuple(Value(t) for t in types))
        self.combining = op.name
        try:
            with self.into(region):
                yield region
        finally:
            self.combining = None

    def need_branch_free(self, what: str, span: Span) -> None:
        """Refuse run-time control flow inside a combine function [RED-11]."""
        if self.combining:
            self.report(TileSyntaxError(
                f"{what} cannot be used inside the function given to {self.combining}(): it must be free of branches",
                span, help="choose between values with ct.where(cond, x, y)"))

    def bind(self, name: str, template, span: Span) -> None:
        self.append(Bind(name, template, span))


def _same(a: TileError, b: TileError) -> bool:
    def place(e):
        return e.loc and (e.loc.filename, e.loc.line, e.loc.col)
    return type(a) is type(b) and a.message == b.message and place(a) == place(b)

"""What one compilation knows: the builder, the errors so far, what was read from outside."""

from __future__ import annotations

import ast
import difflib
import enum
import inspect
import itertools
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
from cutile.front import scope as scopes
from cutile.front.source import Definition, definition_of
from cutile.ir.build import Builder
from cutile.ir.nodes import Bind, Block, Value
from cutile.ir.terms import POISON, Term
from cutile.types import LeafType

CALL_LIMIT = 1000  # nested inlined calls [CALL-4]

# After these there is no telling what else the program means, so nothing more is collected (DESIGN §9).
_ENDS_COLLECTION = (TileRecursionError, TileStaticAssertionError, TileStaticEvalError, StaticException)


class StopCompiling(Exception):
    """Enough errors are known; unwinds to the entry point."""


class Context(Builder):
    """The front end's builder."""

    def __init__(self, span: Span):
        super().__init__(span)
        self.errors: list[TileError] = []
        self.reads = Reads()
        self.depth = 0
        self.combining: str | None = None  # the reduce or scan whose combine function is being typed
        self.static: str | None = None  # the static construct being evaluated
        self.call_function: Callable[..., Term] | None = None  # front.call.call, set by the entry point
        self.definitions: dict[types.CodeType, Definition] = {}
        self.checked: set[ast.AST] = set()  # functions whose syntax has been accepted

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
        code = fn.__code__
        if code not in self.definitions:
            self.definitions[code] = definition_of(fn)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self.reads.add(fn, name, getattr(fn, name))
        return self.definitions[code]

    # -- what typing rules need

    def call(self, func: Term, args: Sequence[Term], kwargs=None) -> Term:
        return self.call_function(self, func, tuple(args), dict(kwargs or {}), self.span)

    @contextmanager
    def combine_body(self, op, types: Sequence[LeafType]):
        if self.combining:
            raise TileSyntaxError(f"{op.name}() cannot be used inside the function given to {self.combining}()")
        block = Block(params=tuple(Value(t) for t in types))
        self.combining = op.name
        try:
            with self.into(block):
                yield block
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


class Reads:
    """What a compilation read from outside the kernel, so that a launch can see whether any of it has changed."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        self._snapshots: dict[int, tuple[Any, tuple | dict]] = {}

    def add(self, container: Any, key: Any, obj: Any) -> None:
        """`container` is a cell (key None), a dict, or an object whose attribute `key` was read."""
        self._seen.setdefault((id(container), key), (container, key, obj))

    def inside(self, obj: Any, depth: int = 0) -> None:
        """Python code has been handed `obj`: what it holds, or as a function reads, counts too, some levels deep."""
        if depth == SNAPSHOT_DEPTH:
            return
        if isinstance(obj, types.FunctionType):
            self._function(obj, depth)
        elif id(obj) not in self._snapshots and (held := _contents(obj)) is not None:
            self._snapshots[id(obj)] = (obj, held)
            for item in held.values() if isinstance(held, dict) else held:
                self.inside(item, depth + 1)

    def _function(self, fn: types.FunctionType, depth: int) -> None:
        """What a function that Python runs reads: its code, its closure, its globals."""
        if (id(fn), "__code__") in self._seen:
            return
        self.add(fn, "__code__", fn.__code__)
        for cell in fn.__closure__ or ():
            obj = _look(cell, None)
            self.add(cell, None, obj)
            self.inside(obj, depth + 1)
        for name in fn.__code__.co_names:
            if name in fn.__globals__:
                self.add(fn.__globals__, name, fn.__globals__[name])
                if not isinstance(fn.__globals__[name], types.ModuleType):
                    self.inside(fn.__globals__[name], depth + 1)

    def fresh(self) -> bool:
        """Everything read still denotes the same object, and mutable objects hold what they held."""
        return all(_look(container, key) is obj for container, key, obj in self._seen.values()) and all(
            _same_contents(_contents(obj), held) for obj, held in self._snapshots.values())

    def __len__(self) -> int:
        return len(self._seen)


SNAPSHOT_LIMIT = 1000  # items of a container that are compared at a launch
SNAPSHOT_DEPTH = 4


def _contents(obj: Any) -> tuple | dict | None:
    """What a mutable object holds; None if it holds nothing that could change."""
    if isinstance(obj, list | tuple | set | frozenset):
        return tuple(itertools.islice(obj, SNAPSHOT_LIMIT))
    if isinstance(obj, dict):
        return dict(itertools.islice(obj.items(), SNAPSHOT_LIMIT))
    if isinstance(obj, type | types.ModuleType | types.FunctionType | enum.Enum) or not hasattr(obj, "__dict__"):
        return None
    return dict(vars(obj))


def _same_contents(now: tuple | dict, then: tuple | dict) -> bool:
    if len(now) != len(then):
        return False
    if isinstance(now, dict):
        return all(k in now and _same_item(now[k], v) for k, v in then.items())
    return all(map(_same_item, now, then))


def _same_item(a: Any, b: Any) -> bool:
    return a is b or type(a) is type(b) and isinstance(a, bool | int | float | str) and repr(a) == repr(b)


def _look(container: Any, key: Any) -> Any:
    try:
        if key is None:
            return container.cell_contents
        if type(container) is dict:
            return container.get(key, scopes.MISSING)
        if isinstance(container, type):
            return inspect.getattr_static(container, key, scopes.MISSING)
        return getattr(container, key, scopes.MISSING)
    except ValueError:  # an empty cell
        return scopes.MISSING


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The most similar of some names, for 'did you mean'."""
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return close[0] if close else None

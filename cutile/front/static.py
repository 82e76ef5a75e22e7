"""Static constructs: Python that runs while the kernel is compiled [SEVAL-*].

Python itself runs the argument of ct.static_eval and the others, under the user's file name and positions. It sees the
names of the kernel: constants as Python values, run-time tiles and arrays as proxies (proxies.py).
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import os
import types
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

import numpy as np

from cutile._support.structs import structure
from cutile.errors import (
    StaticException,
    TileError,
    TileStaticAssertionError,
    TileStaticEvalError,
    TileSyntaxError,
    TileTypeError,
)
from cutile.front import attributes, operators, python_objects
from cutile.front.bytecode_names import Use
from cutile.front.context import Context, StopCompiling
from cutile.front.proxies import EVALUATOR, Array, Evaluator, Method, Proxy, Tile, proxy
from cutile.front.scope import MISSING, Scope, home_of
from cutile.front.static_names import construct_of
from cutile.front.syntax_warnings import silent
from cutile.ir.terms import (
    NONE,
    POISON,
    Bound,
    Closure,
    Const,
    Dict,
    Leaf,
    Poison,
    Record,
    Static,
    Term,
    Tuple,
    Unusable,
    describe,
    is_array,
    is_poisoned,
    is_tile,
    phrase,
)
from cutile.ops import arithmetic, bits
from cutile.ops._constants import const_term
from cutile.ops._op import EAGER, OpDef
from cutile.spans import Span

ITEM_LIMIT = 1000  # items of a static_iter [SEVAL-7]
FRAMES_SHOWN = 6  # innermost Python functions that an error in a static construct lists
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


# ------------------------------------------------------------------ constructs


def expression(c: Context, s: Scope, node: ast.Call, keyword: str) -> Term:
    """The term of a static construct that is used as an expression."""
    try:
        match keyword:
            case "static_eval":
                return _to_term(c, run(c, s, node.args[0], keyword), keyword)
            case "static_assert":
                return _static_assert(c, s, node)
    except _Poisoned:
        return POISON
    where = "after raise" if keyword == "static_exception" else (
        "as the iterable of a for loop, or in tuple(… for … in …)")
    return c.report(TileSyntaxError(f"{keyword}() is allowed only {where}"))


def _static_assert(c: Context, s: Scope, node: ast.Call) -> Term:
    value = run(c, s, node.args[0], "static_assert")
    if isinstance(value, np.bool_):
        value = bool(value)
    if isinstance(value, Proxy):
        return c.report(TileTypeError("static_assert() needs a condition that is known at compile time, got "
                                      f"{value!r}", help="ct.assert_(cond, message) checks while the kernel runs"))
    if not isinstance(value, bool):
        return c.report(TileTypeError(f"static_assert() needs a bool constant, got {value!r}"))
    if not value:
        text = "Static assertion failed"
        if len(node.args) == 2:
            message = run(c, s, node.args[1], "static_assert")
            text += "" if message is None else f": {message}"
        return c.report(TileStaticAssertionError(text))
    return NONE


def iterate(c: Context, s: Scope, node: ast.Call) -> list[Term] | None:
    """The items of a static_iter [SEVAL-7]; None where an error hides them."""
    with c.at(s.span(node)):
        try:
            value = run(c, s, node.args[0], "static_iter")
        except _Poisoned:
            return None
        if not isinstance(value, Iterable):
            c.report(TileTypeError(f"static_iter() needs an iterable, got {value!r}"))
            return None
        with _errors(c, "static_iter"):
            items = _evaluated(c, "static_iter", lambda: list(itertools.islice(value, ITEM_LIMIT + 1)))
        if len(items) > ITEM_LIMIT:
            c.report(TileStaticEvalError(f"static_iter() unrolls at most {ITEM_LIMIT} items",
                                         help="loop over range(…) at run time instead"))
        return [_to_term(c, i, "static_iter", TileStaticEvalError) for i in items]


def exception(c: Context, s: Scope, node: ast.Call) -> Term:
    """Stop typing with the error that `raise ct.static_exception(exc)` asks for [ST-8]."""
    try:
        value = run(c, s, node.args[0], "static_exception")
    except _Poisoned:
        return POISON
    if isinstance(value, type) and issubclass(value, BaseException):
        value = value()
    if not isinstance(value, BaseException):
        return c.report(StaticException(f"static_exception() needs an exception, got {value!r}"))
    return c.report(_wrapped(value))


# ------------------------------------------------------------------ running Python


def run(c: Context, s: Scope, node: ast.expr, construct: str) -> Any:
    """The value that Python gives to an expression of the kernel."""
    nested = next((k for n in ast.walk(node) if (k := construct_of(s, n)) is not None), None)
    if nested is not None:
        raise TileStaticEvalError(f"{nested}() cannot be used inside {construct}()",
                                  help=f"what stands inside {construct}() is Python already")
    code = compile(ast.Expression(silent(node)), str(s.definition.filename), "eval")
    namespace = _namespace(c, s, code)
    with _errors(c, construct):
        value = _evaluated(c, construct, lambda: eval(code, namespace))  # the user's own code, by their request
    c.dependencies.accept_changes()
    return value


def _evaluated(c: Context, construct: str, run: Callable[[], Any]) -> Any:
    """What `run` gives, while operators of proxies and calls of ops append to the IR of this kernel.

    No generator with a `finally`: one that an interrupt keeps from going on ends late, in another context.
    """
    before, apply = EVALUATOR.get(), EAGER.apply
    try:
        c.static, c.static_runs = construct, c.static_runs + 1
        EVALUATOR.set(_Evaluator(c))
        EAGER.apply = _apply
        return run()
    finally:
        c.static = None
        EVALUATOR.set(before)
        EAGER.apply = apply


class _Poisoned(Exception):
    """Raised when a static construct reads a variable that has no value because of an error already reported."""


@contextmanager
def _errors(c: Context, construct: str):
    """A Python exception in a static construct becomes a StaticException with it as cause [SEVAL-5]."""
    try:
        yield
    except (TileError, StopCompiling, _Poisoned):
        raise
    except Exception as e:
        error = _wrapped(e)
        error.message += f" (raised inside {construct}())"
        c.report(error)


def _wrapped(e: BaseException) -> StaticException:
    try:
        said = str(e)
    except Exception:  # its __str__ fails; tracebacks use the same text
        said = "<exception str() failed>"
    text = f"{type(e).__name__}: {said}" if said else type(e).__name__
    error = StaticException(text, notes=_python_frames(e))
    error.__cause__ = e
    return error


def _python_frames(e: BaseException) -> list[tuple[str, Span]]:
    """The Python functions between the user's expression and the exception, outermost first [ERR-12]."""
    import traceback  # only errors need it

    frames = [f for f in traceback.extract_tb(e.__traceback__) if f.name != "<module>"
              and not f.filename.startswith(_PACKAGE)]
    return [("in Python, at compile time:", Span(f.filename, f.lineno or 1, f.colno or 0, f.end_lineno or f.lineno or 1,
                                                 f.end_colno or 0, f.name)) for f in frames[-FRAMES_SHOWN:]]


def _namespace(c: Context, s: Scope, code: types.CodeType) -> dict[str, Any]:
    """The globals with which an expression runs: its names, as the kernel's scope knows them."""
    space: dict[str, Any] = {"__builtins__": s.globals.get("__builtins__", __builtins__)}

    def find(use: Use) -> Any:
        name = use.name
        home = home_of(s, name)
        if home is None:
            obj = c.outside(s, name)
            if obj is not MISSING:
                space[name] = obj
            return obj
        if name not in home.vars:
            return MISSING
        term = home.vars[name].term
        if isinstance(term, Unusable):
            c.report(term.error(c.span))
        if isinstance(term, Unusable) or is_poisoned(term):
            raise _Poisoned
        space[name] = to_python(c, term)
        return MISSING if isinstance(term, Leaf | Const | Closure) else space[name]

    c.dependencies.follow(code, find)
    return space


def to_python(c: Context, t: Term) -> Any:
    """A term as the Python value that static code sees [SEVAL-2]."""
    match t:
        case Const():
            return t.value
        case Static(obj):
            return obj
        case Tuple(items, cls):
            return tuple.__new__(cls, [to_python(c, i) for i in items])
        case Dict():
            return {k: to_python(c, v) for k, v in t.items.items()}
        case Record():
            obj = object.__new__(t.cls)
            for name, value in t.fields.items():
                object.__setattr__(obj, name, to_python(c, value))
            return obj
        case Leaf() if is_tile(t):
            return proxy(t, Tile)
        case Leaf() if is_array(t):
            return proxy(t, Array)
        case Closure() | Bound():
            return _Opaque(t)
        case Poison():
            raise _Poisoned
    raise TileTypeError(f"{phrase(t)} cannot be used inside a static construct")


@structure(frozen=True)
class _Opaque:
    """A function of tile code as static code sees it: it can be passed on, not called."""

    term: Term

    def __call__(self, *args, **kwargs):
        raise TileStaticEvalError(
            f"{describe(self.term)} is defined in tile code and cannot be called inside a static construct",
            help="call it before, and use the result here; or define it at module level",
        )


def _to_term(c: Context, obj: Any, construct: str, cls: type[TileError] = TileTypeError) -> Term:
    """The term of a value that a static construct returned [SEVAL-4]. Reports an error of class `cls` if tile code has
    no such values.
    """
    if isinstance(obj, Proxy):
        return obj._leaf
    if isinstance(obj, _Opaque):
        return obj.term
    if isinstance(obj, types.MethodType) and isinstance(obj.__func__, Method):
        return Bound(Static(obj.__func__.op), _to_term(c, obj.__self__, construct, cls))
    if isinstance(obj, tuple):
        items = tuple(_to_term(c, item, construct, cls) for item in tuple.__iter__(obj))
        return Tuple(items, python_objects.tuple_class(obj))
    if python_objects.is_record(obj):
        return Record(
            type(obj), {f.name: _to_term(c, getattr(obj, f.name), construct, cls) for f in dataclasses.fields(obj)}
        )
    if not python_objects.is_value(obj):
        return c.report(cls(f"{construct}() gave a {type(obj).__name__}, which is no tile-code value: {obj!r:.80}",
                            help="convert it: tuple(…), int(…), float(…)"))
    return python_objects.capture(c, obj, construct)


class _Evaluator(Evaluator):
    """Operators of proxies follow the rules of tile code; their IR has the line of the static construct."""

    def __init__(self, c: Context):
        self.c = c
        self.binary_nodes = {symbol: node for node, (symbol, _, _) in operators.BINARY.items()}
        self.unary_nodes = {"-": ast.USub, "+": ast.UAdd, "~": ast.Invert}

    def binary(self, symbol: str, x: Any, y: Any) -> Any:
        terms = [_to_term(self.c, v, "static_eval") for v in (x, y)]
        return self._to_python(operators.binary(self.c, self.binary_nodes[symbol], *terms))

    def unary(self, symbol: str, x: Any) -> Any:
        term = _to_term(self.c, x, "static_eval")
        return self._to_python(operators.unary(self.c, self.unary_nodes[symbol], term))

    def attribute(self, leaf: Leaf, name: str) -> Any:
        return to_python(self.c, attributes.attribute(self.c, leaf, name))

    def _to_python(self, t: Term) -> Any:
        if is_poisoned(t):
            raise self.c.errors[-1]
        return to_python(self.c, t)


# The ops that static code may apply to proxies [SEVAL-3]: Python's operators, min, max, divmod, and cdiv.
STATIC_OPS = frozenset({op for _, op, _ in operators.BINARY.values()} | {
    arithmetic.negative, arithmetic.minimum, arithmetic.maximum, arithmetic.divmod, arithmetic.cdiv, bits.bitwise_not})


def _apply(op: OpDef, args: tuple, kwargs: dict) -> Any:
    """Run a call of an op while static code runs."""
    evaluator = EVALUATOR.get()
    if evaluator is None:  # none runs: an interrupt kept the thread from forgetting this function
        EAGER.apply = None
        return op(*args, **kwargs)
    c = evaluator.c
    if op not in STATIC_OPS:
        name = f"{'ct' if op.public else ''}.{op.spelling}"
        raise TileStaticEvalError(f"{name}() cannot be called inside {c.static}()",
                                  help="call it in tile code and use the result here")
    terms = [_to_term(c, a, "static_eval") for a in args]
    t = c.call(Static(op), terms, {k: const_term(v) for k, v in kwargs.items()})
    if is_poisoned(t):
        raise c.errors[-1]
    return to_python(c, t)

"""Compile-time evaluation: static_eval, static_assert, static_iter, static_exception [execution-model §8].

The argument of a static construct is run by Python itself, under the user's file name and positions, with the names of
the kernel in scope: constants as Python values, run-time tiles and arrays as proxies.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any

from cutile.errors import (
    StaticException,
    TileError,
    TileStaticAssertionError,
    TileStaticEvalError,
    TileSyntaxError,
    TileTypeError,
)
from cutile.front import expr, objects, operators, stmt
from cutile.front.context import Context
from cutile.front.proxies import EVALUATOR, Array, Evaluator, Tile, _Proxy, proxy
from cutile.front.scope import MISSING, Scope, Var, outer_object
from cutile.ir.terms import (
    NONE,
    Bound,
    Closure,
    Const,
    Leaf,
    Record,
    Static,
    Term,
    Tuple,
    Unusable,
    describe,
    is_array,
    is_poisoned,
    is_tile,
)
from cutile.ops import memory
from cutile.ops._op import EAGER, OpDef
from cutile.ops._types import const_term

ITEM_LIMIT = 1000  # of a static_iter [SEVAL-7]


# ------------------------------------------------------------------ the public names


def static_eval(expr, /):
    """Evaluate a Python expression while the kernel is compiled [SEVAL-2]. Tile code only."""
    raise RuntimeError("ct.static_eval() works in tile code only")


def static_assert(condition, message=None, /):
    """Stop compilation with TileStaticAssertionError unless a constant condition holds [SEVAL-6]. Tile code only."""
    raise RuntimeError("ct.static_assert() works in tile code only")


def static_iter(iterable, /):
    """In tile code, `for x in ct.static_iter(iterable)` unrolls the loop [SEVAL-7]. On the host, the iterable itself."""
    return iterable


def static_exception(exception, /):
    """In tile code, `raise ct.static_exception(exc)` stops compilation with that error [ST-8]. On the host, the exception."""
    return exception


def ensure_constant(value, /):
    """The value, if it is known at compile time; else TileStaticAssertionError [SEVAL-8]. Tile code only."""
    raise RuntimeError("ct.ensure_constant() works in tile code only")


_KEYWORDS = {f.__name__: f for f in (static_eval, static_assert, static_iter, static_exception)}


def is_static_call(c: Context, s: Scope, node: ast.Call) -> bool:
    """The spelling of a static construct really denotes ours."""
    func = expr.evaluate(c, s, node.func)
    return isinstance(func, Static) and func.obj in _KEYWORDS.values()


# ------------------------------------------------------------------ constructs


def expression(c: Context, s: Scope, node: ast.Call) -> Term:
    """A static construct in the place of an expression."""
    name = expr.evaluate(c, s, node.func).obj.__name__
    if name == "static_eval":
        _arguments(node, name, 1)
        return _to_term(c, run(c, s, node.args[0], name), name)
    if name == "static_assert":
        return _static_assert(c, s, node)
    return c.report(TileSyntaxError(f"{name}() is allowed only " + (
        "as the iterable of a for loop, or in tuple(… for … in …)" if name == "static_iter" else "after raise")))


def _arguments(node: ast.Call, name: str, *counts: int) -> None:
    if len(node.args) not in counts:
        raise TileTypeError(f"{name}() takes {' or '.join(map(str, counts))} arguments, got {len(node.args)}")


def _static_assert(c: Context, s: Scope, node: ast.Call) -> Term:
    _arguments(node, "static_assert", 1, 2)
    value = run(c, s, node.args[0], "static_assert")
    if isinstance(value, _Proxy):
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
    """The items of a static_iter, or None if the call is not ours."""
    if not is_static_call(c, s, node):
        return None
    _arguments(node, "static_iter", 1)
    value = run(c, s, node.args[0], "static_iter")
    if not isinstance(value, Iterable):
        c.report(TileTypeError(f"static_iter() needs an iterable, got {value!r}"))
        return []
    with _errors(c, "static_iter"):
        items = list(itertools.islice(value, ITEM_LIMIT + 1))
    if len(items) > ITEM_LIMIT:
        c.report(TileStaticEvalError(f"static_iter() unrolls at most {ITEM_LIMIT} items",
                                     help="loop over range(…) at run time instead"))
    return [_to_term(c, i, "static_iter", TileStaticEvalError) for i in items]


def tuple_of(c: Context, s: Scope, node: ast.GeneratorExp) -> Term:
    """tuple(element for target in ct.static_iter(…) if …) [EX-3]."""
    out: list[Term] = []
    saved = dict(s.vars)

    def loop(depth: int) -> None:
        if depth == len(node.generators):
            out.append(expr.evaluate(c, s, node.elt))
            return
        g = node.generators[depth]
        for item in iterate(c, s, g.iter) or ():
            stmt.assign(c, s, g.target, item, c.span)
            if all(_holds(c, s, test) for test in g.ifs):
                loop(depth + 1)

    loop(0)
    s.vars = saved  # a generator has its own scope
    return Tuple(tuple(out))


def _holds(c: Context, s: Scope, test: ast.expr) -> bool:
    cond = expr.condition(c, s, test)
    if isinstance(cond, bool):
        return cond
    c.report(TileTypeError("the condition of a generator must be known at compile time"))
    return False


def exception(c: Context, s: Scope, node: ast.Call) -> TileError:
    """The error that `raise ct.static_exception(exc)` stops with."""
    if not is_static_call(c, s, node):
        return TileSyntaxError("tile code does not support raise",
                               help="raise ct.static_exception(ValueError('…')) stops compilation with that error")
    _arguments(node, "static_exception", 1)
    value = run(c, s, node.args[0], "static_exception")
    if isinstance(value, type) and issubclass(value, BaseException):
        value = value()
    if not isinstance(value, BaseException):
        return TileTypeError(f"static_exception() needs an exception, got {value!r}")
    return _wrapped(value)


def ensure(c: Context, term: Term) -> Term:
    """[SEVAL-8]"""
    if not is_constant(term):
        raise TileStaticAssertionError(f"expected a compile-time constant, got {describe(term)}")
    return term


def is_constant(t: Term) -> bool:
    match t:
        case Const() | Static():
            return True
        case Tuple():
            return all(map(is_constant, t.items))
        case Record():
            return all(map(is_constant, t.fields.values()))
    return False


# ------------------------------------------------------------------ running Python


def run(c: Context, s: Scope, node: ast.expr, construct: str) -> Any:
    """Run an expression as Python."""
    if c.static is not None:
        raise TileStaticEvalError(f"{construct}() cannot be used inside {c.static}()")
    code = compile(ast.Expression(node), s.definition.filename, "eval")
    c.static = construct
    token, eager = EVALUATOR.set(_Evaluator(c)), EAGER.set(_eager(c))
    try:
        namespace = _namespace(c, s, node)
        with _errors(c, construct):
            return eval(code, namespace)  # the user's own code, run as Python by their request
    finally:
        c.static = None
        EVALUATOR.reset(token)
        EAGER.reset(eager)


@contextmanager
def _errors(c: Context, construct: str):
    """A Python exception in a static construct becomes a StaticException with it as cause [SEVAL-5]."""
    try:
        yield
    except TileError as e:
        e.loc = e.loc or c.span
        raise
    except Exception as e:
        error = _wrapped(e)
        error.message += f" (raised inside {construct}())"
        c.report(error)


def _wrapped(e: BaseException) -> StaticException:
    text = f"{type(e).__name__}: {e}" if str(e) else type(e).__name__
    error = StaticException(text)
    error.__cause__ = e
    return error


def _namespace(c: Context, s: Scope, node: ast.expr) -> dict[str, Any]:
    """The globals for an expression: every name it mentions that can be seen from here."""
    space: dict[str, Any] = {"__builtins__": s.globals.get("__builtins__", __builtins__)}
    for name in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}:
        var = _visible(s, name)
        if var is not None:
            if isinstance(var.term, Unusable):
                c.report(var.term.error(c.span))
            else:
                space[name] = to_python(c, var.term)
            continue
        container, key, obj = outer_object(s, name)
        if obj is not MISSING:
            c.reads.add(container, key, obj)
            space[name] = obj
    return space


def _visible(s: Scope | None, name: str) -> Var | None:
    while s is not None:
        if name in s.definition.locals:
            return s.vars.get(name)
        s = s.parent
    return None


def to_python(c: Context, t: Term) -> Any:
    """A term as static code sees it [SEVAL-2]."""
    match t:
        case Const():
            return t.value
        case Static(obj):
            return obj
        case Tuple():
            return tuple(to_python(c, i) for i in t.items)
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
    raise TileTypeError(f"a {describe(t)} cannot be used inside a static construct")


@dataclasses.dataclass(frozen=True)
class _Opaque:
    """A function of tile code as static code sees it: to be passed on, not called."""

    term: Term

    def __call__(self, *args, **kwargs):
        raise TypeError("a function defined in tile code cannot be called inside a static construct")


def _to_term(c: Context, obj: Any, construct: str, cls: type[TileError] = TileTypeError) -> Term:
    """The result of a static construct as a term [SEVAL-4]."""
    if isinstance(obj, _Proxy):
        return obj._leaf
    if isinstance(obj, _Opaque):
        return obj.term
    if isinstance(obj, tuple) and type(obj) is tuple:
        return Tuple(tuple(_to_term(c, o, construct, cls) for o in obj))
    if objects.is_record(obj):
        return Record(type(obj), {f.name: _to_term(c, getattr(obj, f.name), construct, cls) for f in dataclasses.fields(obj)})
    if isinstance(obj, list | dict | set | bytes | complex) or not _capturable(obj):
        return c.report(cls(f"{construct}() gave a {type(obj).__name__}, which is no tile-code value: {obj!r:.80}",
                            help="convert it: tuple(…), int(…), float(…)"))
    return objects.capture(c, obj, construct)


def _capturable(obj: Any) -> bool:
    return callable(obj) or obj is None or obj is Ellipsis or isinstance(obj, bool | int | float | str) or (
        not hasattr(obj, "__dict__") or hasattr(obj, "name") or hasattr(obj, "dtype") or type(obj).__module__ != "builtins")


class _Evaluator(Evaluator):
    """Operators of proxies: the same rules as in tile code, at the line of the static construct."""

    def __init__(self, c: Context):
        self.c = c
        self.binary_nodes = {symbol: node for node, (symbol, _, _) in operators.BINARY.items()}
        self.unary_nodes = {"-": ast.USub, "+": ast.UAdd, "~": ast.Invert}

    def binary(self, symbol: str, x: Any, y: Any) -> Any:
        terms = [_to_term(self.c, v, "static_eval") for v in (x, y)]
        return self._back(operators.binary(self.c, self.binary_nodes[symbol], *terms, self.c.span))

    def unary(self, symbol: str, x: Any) -> Any:
        return self._back(operators.unary(self.c, self.unary_nodes[symbol], _to_term(self.c, x, "static_eval"), self.c.span))

    def array_dims(self, leaf: Leaf, strides: bool) -> tuple:
        get = memory.array_strides if strides else memory.array_shape
        return to_python(self.c, get(self.c, leaf))

    def _back(self, t: Term) -> Any:
        if is_poisoned(t):
            raise self.c.errors[-1]
        return to_python(self.c, t)


# Ops that static code may apply to proxies [SEVAL-3].
BASIC = frozenset("""add sub mul truediv floordiv pow mod divmod bitwise_and bitwise_or bitwise_xor bitwise_not
    bitwise_lshift bitwise_rshift minimum maximum cdiv equal not_equal less less_equal greater greater_equal negative
    matmul""".split())


def _eager(c: Context):
    def apply(o: OpDef, args: tuple, kwargs: dict) -> Any:
        if o.name not in BASIC:
            raise TileStaticEvalError(f"ct.{o.name}() cannot be called inside {c.static}()",
                                      help="call it in tile code and use the result here")
        terms = [_to_term(c, a, "static_eval") for a in args]
        t = c.call(Static(o), terms, {k: const_term(v) for k, v in kwargs.items()})
        if is_poisoned(t):
            raise c.errors[-1]
        return to_python(c, t)
    return apply


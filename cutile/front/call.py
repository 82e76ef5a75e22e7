"""Calls: ops, user functions, builtins, classes [execution-model §2, §5]."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from cutile._support.structs import replace
from cutile.dtypes import from_foreign
from cutile.errors import (
    Span,
    TileError,
    TileRecursionError,
    TileSyntaxError,
    TileTypeError,
    TileValueError,
    UnsupportedCallError,
)
from cutile.front import binding, builtins, closures, error_recovery, expr, objects, records, static, stmt, syntax
from cutile.front.binding import ArgumentSpans
from cutile.front.context import CALL_LIMIT, Context, StopCompiling
from cutile.front.hints import call_of, hint
from cutile.front.idioms import CAUTIONS, OTHERWISE
from cutile.front.join import template_of
from cutile.front.proxies import RECEIVERS, Method
from cutile.front.scope import Scope, Var, of_function
from cutile.front.source import Definition
from cutile.ir.nodes import Frame, Region
from cutile.ir.terms import (
    NONE,
    POISON,
    Bound,
    Closure,
    Const,
    Dict,
    Manager,
    Record,
    Static,
    Term,
    Tuple,
    Unusable,
    describe,
    is_poisoned,
    phrase,
)
from cutile.ops import convert, debug
from cutile.ops._op import PURE, OpDef


def call(c: Context, func: Term, args: tuple[Term, ...], kwargs: dict[str, Term], span: Span,
         spans: ArgumentSpans | None = None) -> Term:
    """Call any term."""
    if is_poisoned(func) or any(map(is_poisoned, args)) or any(map(is_poisoned, kwargs.values())):
        return POISON
    match func:
        case Static(OpDef() as o):
            return _call_op_bound(c, o, args, kwargs, span, spans)
        case Static(Method() as m):
            return _call_unbound(c, m, args, kwargs, span, spans)
        case Bound(Static(OpDef() as o), receiver):
            return _call_op_bound(c, o, args, kwargs, span, spans, receiver)
        case Bound():
            return call(c, func.func, (func.receiver, *args), kwargs, span)
        case Closure():
            return _call_closure(c, func, args, kwargs, span)
        case Record() if (fn := objects.own_method(func.cls, "__call__")) is not None:
            c.dependencies.add(func.cls, "__call__", fn)
            return call(c, Static(fn), (func, *args), kwargs, span)
        case Static(obj):
            return c.attempt(span, _call_object, c, obj, args, kwargs, span)
    help = "a shape is no method: x.shape, x.shape[0]" if isinstance(func, Tuple) else None
    return c.report(TileTypeError(f"{phrase(func)} cannot be called", help=help), span)


def inlines(func: Term) -> bool:
    """Whether a call types the body of a Python function: of its arguments only those that it uses must be usable."""
    match func:
        case Closure():
            return True
        case Bound():
            return inlines(func.func)
        case Static(obj):
            space = objects.declaration(obj)
            fn = obj if space is None else space.fn
            return isinstance(fn, types.FunctionType) and _root(fn) != "contextlib" and not _of_the_host(fn) and (
                not hasattr(fn, "__wrapped__") and fn not in static.KEYWORDS.values())
    return False


# ------------------------------------------------------------------ ops

def _call_op_bound(c: Context, o: OpDef, args, kwargs, span: Span, spans: ArgumentSpans | None,
                   receiver: Term | None = None) -> Term:
    method = receiver is not None
    try:
        terms = binding.bind(o, method, args, kwargs)
    except TileTypeError as e:
        return c.report(e, span)
    if method:
        terms = {next(iter(binding.shape_of(o).defaults)): receiver, **terms}
    return call_op(c, o, terms, span, spans and functools.partial(
        spans.by_parameter, binding.shape_of(o, method).positional))


def _call_unbound(c: Context, m: Method, args, kwargs, span: Span, spans: ArgumentSpans | None) -> Term:
    """ct.Tile.reshape(tile, shape): its parameters have the names that the method's have [METH-1]."""
    try:
        terms = binding.bind(m, False, args, kwargs)
    except TileTypeError as e:
        return c.report(e, span)
    names = dict(zip(terms, m.op.__signature__.parameters, strict=True))  # the receiver's is another
    positional = [names[n] for n in binding.shape_of(m).positional]
    return call_op(c, m.op, {names[n]: t for n, t in terms.items()}, span, spans and functools.partial(
        spans.by_parameter, positional))


def call_op(c: Context, o: OpDef, terms: dict[str, Term], span: Span,
            spans: Callable[[], Mapping[str, Span]] | None = None) -> Term:
    """Type one application of an op whose arguments are bound to parameters; defaults may be left out.

    `spans` gives those of the arguments that the user wrote: an error about one of them points at it [EXC-4].
    """
    if any(map(is_poisoned, terms.values())):
        return POISON
    if c.combining and (o.effect != PURE or o.family in ("reduce", "scan")):
        return c.report(TileSyntaxError(
            f"{o.spelling}() cannot be used inside the function given to {c.combining}(): only pure arithmetic can",
            help="do it before or after, or pass a further tile to the reduction"), span)
    for name, default in binding.shape_of(o).defaults.items():
        if name not in terms and default is not None:
            terms[name] = default
    return c.attempt(span, _apply, c, o, terms, spans)


def _apply(c: Context, o: OpDef, terms: dict[str, Term], spans: Callable[[], Mapping[str, Span]] | None) -> Term:
    try:
        return o.rule(c, o, **terms)
    except TileError as e:
        e.loc = e.loc or (spans().get(e.argument) if spans else None)
        raise


# ------------------------------------------------------------------ user functions

_DEFAULT = object()  # stands in signatures for a default that is captured only if a call uses it


@functools.lru_cache(maxsize=1024)
def _signature(definition: Definition) -> inspect.Signature:
    a = definition.node.args
    P = inspect.Parameter
    out: list[inspect.Parameter] = []
    positional = [(p, P.POSITIONAL_ONLY) for p in a.posonlyargs] + [(p, P.POSITIONAL_OR_KEYWORD) for p in a.args]
    first_default = len(positional) - len(a.defaults)
    for i, (p, kind) in enumerate(positional):
        out.append(P(p.arg, kind, default=_DEFAULT if i >= first_default else P.empty))
    if a.vararg:
        out.append(P(a.vararg.arg, P.VAR_POSITIONAL))
    for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        out.append(P(p.arg, P.KEYWORD_ONLY, default=P.empty if d is None else _DEFAULT))
    if a.kwarg:
        out.append(P(a.kwarg.arg, P.VAR_KEYWORD))
    return inspect.Signature(out)


def bind(c: Context, definition: Definition, args, kwargs, default: Callable[[str], Term]) -> dict[str, Term]:
    signature = _signature(definition)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as e:
        raise TileTypeError(f"{definition.name}(): {e}", help=f"it is defined as {definition.name}"
                            f"{_readable(signature)} in line {definition.node.lineno}") from None
    terms: dict[str, Term] = {}
    for name, p in signature.parameters.items():
        if p.kind is p.VAR_POSITIONAL:
            terms[name] = Tuple(tuple(map(c.usable, bound.arguments.get(name, ()))))
        elif p.kind is p.VAR_KEYWORD:
            terms[name] = Dict({k: c.usable(t) for k, t in bound.arguments.get(name, {}).items()})
        else:
            terms[name] = bound.arguments[name] if name in bound.arguments else default(name)
    return terms


def _readable(signature: inspect.Signature) -> str:
    class Dots:
        def __repr__(self):
            return "…"
    return str(signature.replace(parameters=[
        p.replace(default=Dots()) if p.default is _DEFAULT else p for p in signature.parameters.values()]))


def _call_function(c: Context, fn: types.FunctionType, args, kwargs, span: Span) -> Term:
    definition = c.definition(fn)
    defaults = python_defaults(fn)
    terms = bind(c, definition, args, kwargs, lambda name: objects.capture(c, defaults[name], name))
    return inline(c, of_function(fn, definition, span), terms, span)


def python_defaults(fn: types.FunctionType) -> dict[str, Any]:
    code, given = fn.__code__, fn.__defaults__ or ()
    names = code.co_varnames[:code.co_argcount]
    return {**dict(zip(names[len(names) - len(given):], given, strict=True)), **(fn.__kwdefaults__ or {})}


def _call_closure(c: Context, closure: Closure, args, kwargs, span: Span) -> Term:
    terms = c.attempt(span, bind, c, closure.definition, args, kwargs, functools.partial(closures.default_of, closure))
    if not isinstance(terms, dict):
        return POISON
    return inline(c, closures.scope_of(closure, span), terms, span)


def inline(c: Context, s: Scope, terms: dict[str, Term], span: Span) -> Term:
    """Type a callee's body for this call, as a Frame where it is called [CALL-2]."""
    if c.depth >= CALL_LIMIT:
        raise TileRecursionError(
            f"calls are nested more than {CALL_LIMIT} deep", span,
            help="every call is compiled in place, so recursion must end at compile time: make its condition constant")
    check_syntax(c, s)
    with c.into(Region()) as body, c.at(s.definition.header_span(span)):
        c.depth += 1
        run_body(c, s, terms)
        c.depth -= 1
    if any(is_poisoned(p.term) for p in s.returns):
        return POISON
    term, results = stmt.join_returns(c, s)
    c.append(Frame(s.function, s.definition.header_span(span), body, results, span))
    return term


def check_syntax(c: Context, s: Scope, *, manager: bool = False) -> None:
    """Refuse Python outside the subset for the whole body, before anything in it is typed.

    What is refused is passed over then (error_recovery.py). Of a context manager too little would be left.
    """
    node = s.definition.node
    if node not in c.checked:
        found, parts = syntax.refused(s.definition, lambda n: static.keyword(s, n), manager=manager)
        for e in found:
            c.report(TileSyntaxError(e.message, replace(e.loc, call_site=s.call_site), help=e.help))
        if node in parts or found and manager:
            raise StopCompiling
        c.refused |= parts
        c.checked[node] = frozenset().union(*map(error_recovery.names, parts))
    error_recovery.declare(s, c.checked[node])


def run_body(c: Context, s: Scope, terms: dict[str, Term]) -> None:
    """Bind parameters and type the body up to its returns."""
    for name, term in terms.items():
        s.vars[name] = Var(term, c.span)
        if not isinstance(term, Unusable):
            c.bind(name, template_of(term), c.span)
    body = s.definition.node.body
    if not isinstance(body, list):
        term = expr.evaluate(c, s, body)
        with c.at(s.span(body)):
            stmt.return_value(c, s, term)
    elif stmt.block(c, s, body):
        with c.at(s.span(body[-1])):
            stmt.return_value(c, s, NONE)


# ------------------------------------------------------------------ other Python objects


def _call_object(c: Context, obj: Any, args, kwargs, span: Span) -> Term:
    space = objects.declaration(obj)
    if space is not None:
        if not space.tile:
            raise UnsupportedCallError(f"{space.fn.__name__}() is declared host only (@ct.function(tile=False)) "
                                       f"and cannot be called from tile code")
        obj = space.fn
    if isinstance(obj, types.FunctionType) and obj in static.KEYWORDS.values():
        name = obj.__name__
        raise TileSyntaxError(
            f"{name}() must be called directly by its name",
            help=f"write ct.{name}(…), without giving the function another name first",
        )
    if obj is print:
        return call(c, Static(debug.print), args, kwargs, span)
    if obj is dataclasses.replace:
        return records.replace(c, args, kwargs)
    if (handler := builtins.handler(obj)) is not None:
        return handler(c, *_only_positional(obj, args, kwargs))
    if (d := from_foreign(obj)) is not None:
        return convert.construct(c, d, _only_positional(obj, args, kwargs))
    if isinstance(obj, type):
        return _call_class(c, obj, args, kwargs, span)
    if isinstance(obj, types.FunctionType) and not _of_the_host(obj):
        wrapped = getattr(obj, "__wrapped__", None)
        if (
            wrapped is not None
            and not inspect.isasyncgenfunction(wrapped)
            and (obj.__code__.co_filename, obj.__code__.co_name) == (contextlib.__file__, "helper")
        ):
            c.dependencies.add(obj, "__wrapped__", wrapped)
            return Manager(Static(wrapped), args, kwargs, span)
        return _call_function(c, obj, args, kwargs, span)
    if isinstance(obj, types.MethodType) and isinstance(obj.__func__, types.FunctionType):
        receiver = objects.capture(c, obj.__self__, "self")
        return call(c, Static(obj.__func__), (receiver, *args), kwargs, span)
    if not callable(obj):
        raise TileTypeError(f"{phrase(Static(obj))} cannot be called")
    raise UnsupportedCallError(f"{_name_of(obj)} cannot be called from tile code", help=_call_help(obj))


def _name_of(obj: Any) -> str:
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if name is None:
        return f"an object of type `{type(obj).__module__}.{type(obj).__qualname__}`"
    module = getattr(obj, "__module__", None) or ""
    return f"`{name}`" if module in ("", "builtins", "__main__") else f"`{module}.{name}`"


_REPLACEMENTS = {
    "enumerate": "for i in range(…), or ct.static_iter(enumerate(…))",
    "zip": "ct.static_iter(zip(…))",
    "sum": "ct.sum(tile, axis)",
    "pow": "x ** y",
    "map": "a loop over ct.static_iter(…)",
    "list": "a tuple",
    **{name: f"ct.static_eval({name}(…))" for name in ("isinstance", "hasattr", "callable", "type")},
    **{name: f"ct.static_iter({name}(…))" for name in ("reversed", "filter")},
    "sorted": "ct.static_eval(tuple(sorted(…))), of constants",
    "set": "a tuple",
}


# Packages whose Python functions are not looked into: of dataclasses, asdict and its kin need containers.
_FOR_THE_HOST = frozenset({"cutile", "dataclasses", "functools", "numpy", "torch", "jax", "cupy", "scipy", "triton",
                           "numba"})


def _of_the_host(fn: types.FunctionType) -> bool:
    """Whether a function is of such a package, or of functools around a user's function, which names it as its own."""
    return _root(fn) in _FOR_THE_HOST or fn.__code__.co_filename == functools.__file__


def _root(obj: Any) -> str:
    return (getattr(obj, "__module__", None) or "").split(".")[0]


def _call_help(obj: Any) -> str | None:
    name, module = getattr(obj, "__name__", ""), _root(obj)
    if module == "cutile":
        return "it is for code that runs on the host"
    if module == "builtins":
        return f"write {_REPLACEMENTS[name]}" if name in _REPLACEMENTS else hint(name)
    if isinstance(obj, functools.partial) or obj is functools.partial:
        return "write a lambda: lambda x: f(x, 2)"
    if module in _FOR_THE_HOST or module in sys.stdlib_module_names and module != "__main__":
        known = name not in OTHERWISE and f"{module}.{name}" not in OTHERWISE
        if known and (op := call_of(name)) is not None:
            return f"use {op}" + (f" ({CAUTIONS[name]})" if name in CAUTIONS and module != "math" else "")
        return known and hint(name) or (
            f"{module} functions run on the host; inside ct.static_eval(...) they can compute constants")
    if hasattr(obj, "cache_info"):
        return (f"a cache is for the host: leave it out, since a kernel's calls are compiled in place; or compute a "
                f"constant with ct.static_eval({name}(...))")
    if isinstance(getattr(obj, "__wrapped__", None), types.FunctionType):
        return (f"what wraps {name} runs on the host: call the plain function; or compute a constant with "
                f"ct.static_eval({name}(...))")
    return None


def _only_positional(obj: Any, args: tuple[Term, ...], kwargs: dict[str, Term]) -> tuple[Term, ...]:
    if kwargs:
        raise TileTypeError(f"{_name_of(obj)} takes no keyword arguments in tile code: {', '.join(kwargs)}")
    return args


def arity(name: str, args: tuple[Term, ...], *counts: int) -> None:
    if len(args) not in counts:
        raise TileTypeError(f"{name}() takes {' or '.join(map(str, counts))} arguments in tile code, got {len(args)}")


def _call_class(c: Context, cls: type, args, kwargs, span: Span) -> Term:
    if issubclass(cls, enum.Enum):
        return _enum_member(c, cls, _only_positional(cls, args, kwargs))
    if dataclasses.is_dataclass(cls):
        return records.make(c, cls, args, kwargs)
    if cls in RECEIVERS:
        help = "values come from ops: ct.load, ct.full, array.slice, array.tiled_view, array.get_raw_memory"
    elif _root(cls) in _FOR_THE_HOST or _root(cls) in sys.stdlib_module_names:
        help = _call_help(cls)
    else:
        help = "make it a frozen dataclass: @dataclasses.dataclass(frozen=True)"
    raise UnsupportedCallError(f"objects of class `{cls.__qualname__}` cannot be created in tile code", help=help)


def _enum_member(c: Context, cls: type[enum.Enum], args: tuple[Term, ...]) -> Term:
    arity(cls.__name__, args, 1)
    if not isinstance(args[0], Const | Static):
        raise TileTypeError(f"{cls.__name__}(value) needs a constant, got {describe(args[0])}")
    value = args[0].value if isinstance(args[0], Const) else args[0].obj
    try:
        return objects.capture(c, cls(value), cls.__name__)
    except ValueError as e:
        raise TileValueError(str(e)) from None

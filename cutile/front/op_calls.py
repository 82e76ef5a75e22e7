"""Calls of ops: binding arguments to parameters as Python does, and applying the op's typing rule."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence

from cutile._support.structs import structure
from cutile.errors import TileError, TileSyntaxError, TileTypeError
from cutile.front import repeated_ops
from cutile.front.advice import nearest
from cutile.front.context import Context
from cutile.front.foreign_names import PARAMETERS
from cutile.front.proxies import Method, method_signature
from cutile.front.scope import Scope
from cutile.ir.terms import POISON, Term, Tuple, any_poisoned
from cutile.ops._constants import const_term
from cutile.ops._op import PURE, REDUCTION, SCAN, OpDef
from cutile.spans import Span

# The dtype in the help of a call without one, and what the call means, where they are not float32 and plain.
_CALLS_WITH_DTYPE = {"arange": ("int32", ", which counts from 0 to size - 1")}

Spans = Callable[[], Mapping[str, Span]]  # gives the spans of arguments by parameter, when an error asks for one


@structure(slots=True, eq=False)
class ArgumentSpans:
    """Finds the position of an argument in the user's call, for an error about it."""

    scope: Scope
    node: ast.Call

    def by_parameter(self, positional: Sequence[str]) -> dict[str, Span]:
        """The spans of the arguments, by the names of the parameters that they fill."""
        found = {n: self.scope.span(a) for n, a in zip(positional, self.node.args, strict=False)}
        return found | {k.arg: self.scope.span(k.value) for k in self.node.keywords if k.arg is not None}


@structure(frozen=True, slots=True)
class Parameters:
    """The parameters of an op. Those of a method are without the receiver.

    positional  parameters that positional arguments fill, in order
    by_name     parameters that may be given by name
    star        the name of `*args`, or None
    defaults    the default of every parameter, in the order of the signature; None where there is none
    required    parameters without a default
    """

    positional: tuple[str, ...]
    by_name: frozenset[str]
    star: str | None
    defaults: dict[str, Term | None]
    required: frozenset[str]


@functools.cache
def parameters_of(op: OpDef | Method, method: bool = False) -> Parameters:
    """The parameters of an op, called as a function or (`method`) as a method."""
    parameters = signature_of(op, method).parameters.values()
    star = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    return Parameters(
        tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)),
        frozenset(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)), star,
        {p.name: None if p.default is p.empty else const_term(p.default) for p in parameters},
        frozenset(p.name for p in parameters if p.default is p.empty))


@functools.cache
def signature_of(op: OpDef | Method, method: bool) -> inspect.Signature:
    """The signature of an op; that of a method is without the receiver."""
    return method_signature(op) if method else op.__signature__


def bind(op: OpDef | Method, method: bool, args: Sequence[Term], kwargs: Mapping[str, Term]) -> dict[str, Term]:
    """The terms by parameter, in the order of the signature. TileTypeError if the arguments do not fit it."""
    parameters = parameters_of(op, method)
    given = dict(zip(parameters.positional, args, strict=False))
    fits = (len(args) <= len(parameters.positional) or parameters.star is not None) and (
        not kwargs or parameters.by_name.issuperset(kwargs) and given.keys().isdisjoint(kwargs))
    if parameters.star is not None:
        given[parameters.star] = Tuple(tuple(args[len(parameters.positional):]))
    given.update(kwargs)
    if not fits or not parameters.required.issubset(given):
        raise _error(op, method, args, kwargs, given)
    return {**parameters.defaults, **given}


def _error(op: OpDef | Method, method: bool, args: Sequence[Term], kwargs: Mapping[str, Term],
           given: Mapping[str, Term]) -> TileTypeError:
    """The error for arguments that do not fit. An unknown keyword is reported before a missing parameter."""
    name, signature = f".{op.spelling}" if method else op.__qualname__, signature_of(op, method)
    help = f"its signature is {name}{_plain(signature)}"
    unknown = next((k for k in kwargs if k not in signature.parameters), None)
    if unknown is not None:
        missing = [n for n, p in signature.parameters.items() if p.default is p.empty and n not in given]
        close = (PARAMETERS.get(unknown) or nearest(unknown, [*signature.parameters])
                 or (missing[0] if len(missing) == 1 else None))  # then that is what it stands for
        hint = f"did you mean `{close}`? " if close in signature.parameters else ""
        if name in ("load", "store") and unknown in ("mask", "other"):
            hint = ("what lies beyond the array reads as padding_mode says, and is not written; gather and scatter "
                    "have masks; ")
        return TileTypeError(f"{name}() has no parameter `{unknown}`", help=hint + help)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as e:
        missing = [n for n, p in signature.parameters.items() if p.default is p.empty and n not in given]
        return TileTypeError(f"{name}(): {e}", help=_what_to_write(op, name, signature, len(args), missing) + help)
    raise AssertionError(f"the arguments of {name}() fit its signature {signature}")


def _what_to_write(op: OpDef | Method, name: str, signature: inspect.Signature, count: int, missing: list[str]) -> str:
    """The beginning of a help: a call that fits, where a dtype is missing, and advice for too many arguments."""
    advice = _on_too_many(name, signature, count)
    if isinstance(op, OpDef) and op.method is None and "dtype" in missing:
        needed = [p.name for p in signature.parameters.values() if p.default is p.empty and p.name != "dtype"]
        dtype, meaning = _CALLS_WITH_DTYPE.get(name, ("float32", ""))
        return f"write ct.{name}({', '.join(needed)}, dtype=ct.{dtype}){meaning}; {advice}"
    return advice


def _on_too_many(name: str, signature: inspect.Signature, given: int) -> str:
    """Advice for a call with too many positional arguments, "" for others."""
    parameters = signature.parameters
    positional = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if given <= len(positional) or any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        return ""
    if "shape" in parameters and given > 1:
        return "a shape is one tuple; "
    if name in ("minimum", "maximum"):
        return f"it takes two tiles; nest calls for more: ct.{name}(x, ct.{name}(y, z)); "
    if len(parameters) > len(positional):
        return f"only {len(positional)} argument{'s' * (len(positional) != 1)} may be given without a name; "
    return ""


def _plain(signature: inspect.Signature) -> str:
    """A signature as users write it: members of enums by their names."""
    return re.sub(r"<(\w+\.\w+): [^>]*>", r"ct.\1", str(signature))


def check_count(name: str, args: Sequence[Term], *counts: int, where: str = "tile code", help: str | None = None
                ) -> None:
    """Refuse a call of Python's `name` with a number of arguments other than `counts`."""
    if len(args) not in counts:
        raise TileTypeError(f"{name}() takes {' or '.join(map(str, counts))} argument{'s' * (counts[-1] != 1)} in "
                            f"{where}, got {len(args)}", help=help)


# ------------------------------------------------------------------ calling


def call_op(c: Context, op: OpDef, args: tuple[Term, ...], kwargs: dict[str, Term], spans: ArgumentSpans | None,
            receiver: Term | None = None) -> Term:
    """An op called by the user: as a function, or as a method of `receiver`. No argument is poisoned."""
    method = receiver is not None
    try:
        terms = bind(op, method, args, kwargs)
    except TileTypeError as e:
        return c.report(e)
    if method:
        terms = {next(iter(parameters_of(op).defaults)): receiver, **terms}
    return apply_unpoisoned(
        c, op, terms, spans and functools.partial(spans.by_parameter, parameters_of(op, method).positional))


def call_unbound_method(c: Context, m: Method, args: tuple[Term, ...], kwargs: dict[str, Term],
                        spans: ArgumentSpans | None) -> Term:
    """`ct.Tile.reshape(tile, shape)`: parameters have the names that they have in the method [METH-1]."""
    try:
        terms = bind(m, False, args, kwargs)
    except TileTypeError as e:
        return c.report(e)
    names = dict(zip(terms, m.op.__signature__.parameters, strict=True))  # the receiver has another name in the op
    positional = [names[n] for n in parameters_of(m).positional]
    return apply(c, m.op, {names[n]: t for n, t in terms.items()},
                 spans and functools.partial(spans.by_parameter, positional))


def apply(c: Context, op: OpDef, terms: dict[str, Term], spans: Spans | None = None) -> Term:
    """Type one application of an op to terms by parameter; parameters with a default may be left out.

    An error about an argument that `spans` knows points at this argument [EXC-4].
    """
    return POISON if any_poisoned(terms.values()) else apply_unpoisoned(c, op, terms, spans)


def apply_unpoisoned(c: Context, op: OpDef, terms: dict[str, Term], spans: Spans | None = None) -> Term:
    """Like `apply`, for terms of which none is poisoned."""
    if c.combining and (op.effect != PURE or op.accumulates in (REDUCTION, SCAN)):
        return c.report(TileSyntaxError(
            f"{op.spelling}() cannot be used inside the function given to {c.combining}(): only pure arithmetic can",
            help="do it before or after, or pass a further tile to the reduction"))
    def run() -> Term:
        return c.attempt(_apply_rule, c, op, _with_defaults(op, terms), spans)

    return repeated_ops.apply(c, op, terms, run)


def _with_defaults(op: OpDef, terms: dict[str, Term]) -> dict[str, Term]:
    defaults = parameters_of(op).defaults
    if len(terms) == len(defaults):
        return terms
    return {**terms, **{n: d for n, d in defaults.items() if n not in terms and d is not None}}


def _apply_rule(c: Context, op: OpDef, terms: dict[str, Term], spans: Spans | None) -> Term:
    try:
        return op.rule(c, op, **terms)
    except TileError as e:
        e.loc = e.loc or (spans().get(e.argument) if spans else None)
        raise

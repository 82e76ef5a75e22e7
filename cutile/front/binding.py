"""Binding the arguments of an op's call to its parameters, as Python does, and where each of them stands."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Mapping, Sequence

from cutile._support.structs import structure
from cutile.errors import Span, TileTypeError
from cutile.front.hints import nearest
from cutile.front.idioms import PARAMETERS
from cutile.front.proxies import Method, method_signature
from cutile.front.scope import Scope
from cutile.ir.terms import Term, Tuple
from cutile.ops._op import OpDef
from cutile.ops._types import const_term


@structure(frozen=True)
class ArgumentSpans:
    """Where the arguments of a call stand, for errors about one of them: looked up only then."""

    scope: Scope
    node: ast.Call

    def by_parameter(self, positional: Sequence[str]) -> dict[str, Span]:
        """The spans by the names of the parameters that the arguments fill."""
        found = {n: self.scope.span(a) for n, a in zip(positional, self.node.args, strict=False)}
        return found | {k.arg: self.scope.span(k.value) for k in self.node.keywords if k.arg is not None}


@structure(frozen=True, slots=True)
class Shape:
    """An op's parameters, for a call of the function or of the method, which has its receiver already.

    positional  those that arguments fill in order;  by_name: those that may be named;  star: that of `*args`
    defaults    of all in order, None where there is none
    """

    positional: tuple[str, ...]
    by_name: frozenset[str]
    star: str | None
    defaults: dict[str, Term | None]


@functools.cache
def shape_of(o: OpDef | Method, method: bool = False) -> Shape:
    parameters = signature_of(o, method).parameters.values()
    star = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    return Shape(
        tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)),
        frozenset(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)), star,
        {p.name: None if p.default is p.empty else const_term(p.default) for p in parameters})


@functools.cache
def signature_of(o: OpDef | Method, method: bool) -> inspect.Signature:
    """An op's signature; a method's is without the receiver."""
    return method_signature(o) if method else o.__signature__


def bind(o: OpDef | Method, method: bool, args: Sequence[Term], kwargs: Mapping[str, Term]) -> dict[str, Term]:
    """The terms by parameter, in the order of the signature. TileTypeError where they do not fit."""
    shape = shape_of(o, method)
    given = dict(zip(shape.positional, args, strict=False))
    fits = (len(args) <= len(shape.positional) or shape.star is not None) and shape.by_name.issuperset(kwargs) and (
        given.keys().isdisjoint(kwargs))
    given.update(kwargs)
    if shape.star is not None:
        given[shape.star] = Tuple(tuple(args[len(shape.positional):]))
    terms = {n: given.get(n, default) for n, default in shape.defaults.items()}
    if not fits or None in terms.values():
        raise _error(o, method, args, kwargs)
    return terms


def _error(o: OpDef | Method, method: bool, args: Sequence[Term], kwargs: Mapping[str, Term]) -> TileTypeError:
    """What is wrong with arguments that do not fit; a misspelt keyword is named before what is missing for it."""
    name, signature = f".{o.spelling}" if method else o.__qualname__, signature_of(o, method)
    help = f"its signature is {name}{_plain(signature)}"
    unknown = next((k for k in kwargs if k not in signature.parameters), None)
    if unknown is not None:
        close = PARAMETERS.get(unknown) or nearest(unknown, [*signature.parameters])
        hint = f"did you mean `{close}`? " if close in signature.parameters else ""
        if name in ("load", "store") and unknown in ("mask", "other"):
            hint = ("what lies beyond the array reads as padding_mode says, and is not written; gather and scatter "
                    "have masks; ")
        return TileTypeError(f"{name}() has no parameter `{unknown}`", help=hint + help)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as e:
        many = len(args) > 1 and "shape" in signature.parameters and "too many" in str(e)
        return TileTypeError(f"{name}(): {e}", help=f"a shape is one tuple; {help}" if many else help)
    raise AssertionError(f"the arguments of {name}() fit its signature {signature}")


def _plain(signature: inspect.Signature) -> str:
    """A signature as users write it: members of enums by their names."""
    return re.sub(r"<(\w+\.\w+): [^>]*>", r"ct.\1", str(signature))

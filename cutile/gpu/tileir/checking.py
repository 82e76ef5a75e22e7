"""The checks that the builder makes: types of results, values of attributes, and what a bytecode version has."""

from __future__ import annotations

from collections.abc import Callable

from cutile.errors import TileUnsupportedFeatureError
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.module import Bounded, Constant, DivBy, Hints, Identity, SameElements, Value
from cutile.gpu.tileir.operations import ENUMS, HINT_SINCE, HINTS_FREE, Attr
from cutile.spans import Span

# How a named rule gives the type of a result: from the first operand.
RESULT_RULES: dict[str, Callable[[Value], ty.Type]] = {
    "token": lambda _: ty.token,
    "i32": lambda _: ty.Tile(ty.i32),
    "bool": lambda x: ty.Tile(ty.i1, x.type.shape),
    "pointee": lambda x: ty.Tile(x.type.element.pointee, x.type.shape),
    "view": lambda x: ty.Tile(x.type.tensor_view.element, x.type.tile_shape),
}


def _enum(attr: Attr, value) -> str | None:
    return None if value in ENUMS[attr.kind] else f"it can be one of {', '.join(ENUMS[attr.kind])}"


def _is(*types: type) -> Callable[[Attr, object], str | None]:
    def check(attr: Attr, value) -> str | None:
        wrong = not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
        return f"it must be of kind {attr.kind}" if wrong else None

    return check


def _all(kind: type) -> Callable[[Attr, object], str | None]:
    def check(attr: Attr, value) -> str | None:
        fine = isinstance(value, (tuple, list)) and all(type(x) is kind for x in value)
        return None if fine else f"it must be a tuple of {kind.__name__}"

    return check


_KINDS: dict[str, Callable[[Attr, object], str | None]] = {
    "unit": _is(bool), "bool": _is(bool), "int": _is(int), "str": _is(str), "i32s": _all(int), "bools": _all(bool),
    "dense": _is(Constant), "predicate": _is(DivBy, Bounded, SameElements), "identities": _all(Identity),
    "hints": _is(dict),
}


def wrong_value(attr: Attr, value) -> str | None:
    """What an attribute's value should be, for an error; None if the value is right."""
    return _KINDS.get(attr.kind, _enum)(attr, value)


def takes_hint(version: ty.Version, name: str) -> bool:
    """Whether a version accepts this name, of an architecture or of a hint."""
    return HINT_SINCE.get(name, HINTS_FREE) <= version


def check_hints(version: ty.Version, hints: Hints, loc: Span | None = None) -> None:
    """Raises TileUnsupportedFeatureError if the version does not accept the name of an architecture or hint."""
    for name in (*hints, *(n for values in hints.values() for n in values)):
        if not takes_hint(version, name):
            since = HINT_SINCE.get(name, HINTS_FREE)
            raise TileUnsupportedFeatureError(too_old(f"the name {name!r} among hints", since, version), loc)


def check_type(version: ty.Version, t: ty.Type, loc: Span | None = None) -> None:
    """Raises TileUnsupportedFeatureError if the version lacks a type or a part of it."""
    since = type_since(t)
    if since > version:
        raise TileUnsupportedFeatureError(too_old(f"the type {t}", since, version), loc)


def type_since(t: ty.Type) -> ty.Version:
    """The first version that has a type."""
    if isinstance(t, ty.Scalar):
        return t.since
    if isinstance(t, ty.Token):
        return (13, 1)
    if isinstance(t, ty.Pointer):
        return type_since(t.pointee)
    if isinstance(t, (ty.Tile, ty.TensorView)):
        return type_since(t.element)
    own = (13, 1) if isinstance(t, ty.PartitionView) else (13, 3)
    return max(own, type_since(t.tensor_view))


def too_old(what: str, since: ty.Version, version: ty.Version) -> str:
    return (f"{what} needs Tile IR bytecode {ty.version_text(since)} or newer; "
            f"this module is written as {ty.version_text(version)}")

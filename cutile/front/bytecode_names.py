"""The outer names that Python bytecode reads, and the attributes that it reads."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator
from typing import NamedTuple

GLOBAL, FREE, IMPORT = "global", "free", "import"
_ROOTS = {"LOAD_NAME": GLOBAL, "LOAD_GLOBAL": GLOBAL, "LOAD_FROM_DICT_OR_GLOBALS": GLOBAL, "LOAD_DEREF": FREE,
          "LOAD_CLASSDEREF": FREE, "LOAD_FROM_DICT_OR_DEREF": FREE, "IMPORT_NAME": IMPORT}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
_SETTERS = {"STORE_ATTR", "DELETE_ATTR", "STORE_NAME", "DELETE_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"}


class Use(NamedTuple):
    """`name.a.b`: a name from outside, and the chain of attributes that the code reads from it at once."""

    how: str  # GLOBAL, FREE (a variable of an outer function) or IMPORT (a module)
    name: str
    attributes: tuple[str, ...]


@functools.lru_cache(maxsize=1024)
def uses(code: types.CodeType) -> tuple[Use, ...]:
    """All uses of names from outside, in the code and in functions nested in it."""
    found = (*_own(code), *(u for c in _nested(code) for u in uses(c)))
    return tuple(dict.fromkeys(u for u in found if u.how != FREE or u.name in code.co_freevars))


@functools.lru_cache(maxsize=1024)
def mentioned(code: types.CodeType) -> frozenset[str]:
    """The names of attributes that the code may read. Any string constant may be one, since getattr takes strings."""
    texts = (t for c in code.co_consts for t in (c if type(c) is tuple else (c,)) if type(t) is str)
    read = {i.argval for i in dis.get_instructions(code)
            if i.opcode in dis.hasname and i.opname not in _ROOTS and i.opname not in _SETTERS}
    return frozenset(read.union(filter(str.isidentifier, texts), *map(mentioned, _nested(code))))


def _nested(code: types.CodeType) -> list[types.CodeType]:
    return [c for c in code.co_consts if isinstance(c, types.CodeType)]


def _own(code: types.CodeType) -> Iterator[Use]:
    use = None
    for i in dis.get_instructions(code):
        if use is not None and i.opname in _ATTRIBUTES:
            use = use._replace(attributes=(*use.attributes, i.argval))
        else:
            if use is not None:
                yield use
            how = _ROOTS.get(i.opname)
            use = how and Use(how, i.argval, ())
    if use is not None:
        yield use

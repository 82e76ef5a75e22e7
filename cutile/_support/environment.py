"""The variables CUTILE_* of the environment, read quickly.

For a variable that is not set, `os.environ` encodes the name, and raises and catches a KeyError twice. A launch asks
for eight variables that are hardly ever set; through `os.environ` that would take as long as the rest of a launch on
small arrays. The dictionary behind `os.environ`, which has the variables as the system spells them, answers in a
fifteenth of that time [measured]. Where there is no such dictionary, `os.environ` is asked.
"""

from __future__ import annotations

import functools
import os
from typing import Any

PREFIX = "CUTILE_"  # of the variables; the functions take names without it


def text_of(name: str) -> str | None:
    """The text of a variable; None if it is not set."""
    behind = getattr(os.environ, "_data", None)
    if behind is not None and _key(name) not in behind:
        return None
    return os.environ.get(PREFIX + name)


def none_set(names: tuple[str, ...]) -> bool:
    """Whether none of these variables is set, not even to an empty text."""
    behind = getattr(os.environ, "_data", None)
    if behind is None:
        return not any(PREFIX + n in os.environ for n in names)
    return behind.keys().isdisjoint(_keys(names))


def watch(names: tuple[str, ...]) -> tuple | None:
    """Data from which C code (runtime/_launcher.c) answers `none_set` itself: where `os.environ` is, what is there
    now, the dictionary behind it, and the keys of the variables there. None where only Python knows.
    """
    behind = getattr(os.environ, "_data", None)
    return (vars(os), "environ", os.environ, behind, *_keys(names)) if type(behind) is dict else None


@functools.cache
def _keys(names: tuple[str, ...]) -> tuple:
    return tuple(map(_key, names))


@functools.cache
def _key(name: str) -> Any:
    """A variable as the dictionary behind os.environ spells it."""
    return os.environ.encodekey(PREFIX + name)

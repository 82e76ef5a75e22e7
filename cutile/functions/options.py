"""Checks that options are of the kinds that they may be, and says what they are."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cutile.errors import refusal
from cutile.runtime.arrays import type_name

Kind = tuple[Callable[[Any], bool], str]  # whether a value is of it, and what it is, in words

FUNCTION: Kind = callable, "a function"
POSITIVE: Kind = (lambda x: _is_int(x) and x > 0), "a positive int"
SECONDS: Kind = (lambda x: _is_real(x) and x > 0), "a positive number of seconds"
MILLISECONDS: Kind = (lambda x: _is_real(x) and x >= 0), "a number of milliseconds, 0 or more"
COUNT: Kind = (lambda x: _is_int(x) and x >= 0), "an int, 0 or more"
ARGUMENTS: Kind = (lambda x: isinstance(x, tuple | list)), "a tuple of the arguments, such as (x,)"
BY_NAME: Kind = (lambda x: isinstance(x, Mapping)), "a dictionary by name"
NAMES: Kind = (lambda x: isinstance(x, Sequence) and not isinstance(x, str | bytes) and all(
    isinstance(n, str) for n in x)), 'a tuple of names, such as ("N",)'
TEXT: Kind = (lambda x: isinstance(x, str)), "text"
SWITCH: Kind = (lambda x: isinstance(x, bool)), "True or False"
PATH: Kind = (lambda x: isinstance(x, str | bytes | os.PathLike)), "a path"


def check(of: str, given: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    """TypeError for an option of another kind; None stands for one that is not given. `of`: whose options they are."""
    for name, value in given.items():
        is_one, words = kinds[name]
        if value is not None and not is_one(value):
            raise refusal(TypeError(f"{name} of {of} is {words}, not {_shown(value)}"))


def check_path(of: str, path: Any) -> None:
    """TypeError for what is no path, None too. `of`: the function that takes it."""
    if not PATH[0](path):
        raise refusal(TypeError(f"{of} takes a path, not {_shown(path)}"))


def _shown(value: Any) -> str:
    """A value in words; arrays, whose text has lines, by their type."""
    return type_name(value) if hasattr(value, "shape") else f"{value!r:.100}"


def _is_int(x: Any) -> bool:
    is_array = hasattr(x, "shape") and not isinstance(x, np.generic)
    return hasattr(type(x), "__index__") and not isinstance(x, bool) and not is_array


def _is_real(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and not math.isnan(x)

"""Which frames users see: tracebacks of errors for them end at their call, and warnings name their line."""

from __future__ import annotations

import functools
import os
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from cutile import settings
from cutile.errors import is_for_users, refusal

_PACKAGE = os.path.dirname(__file__) + os.sep

E = TypeVar("E", bound=Exception)
F = TypeVar("F", bound=Callable)


def hidden(found: Any) -> bool:
    """Whether pytest leaves out the frames of a module for an error, of which it passes an ExceptionInfo.

    A module whose functions users call has it as `__tracebackhide__`.
    """
    return found is not None and is_for_users(found.value)


__tracebackhide__ = hidden  # of `for_callers`


def for_users(e: E) -> E:
    """Remove the frames of cutile from the traceback of an error and of its cause. Returns the error.

    The frames of kernels and of other code of the user stay.
    """
    if e.__cause__ is not None:
        e.__cause__.__traceback__ = _users_frames(e.__cause__.__traceback__)
    return e.with_traceback(_users_frames(e.__traceback__))


def for_callers(function: F) -> F:
    """A function whose errors for users have tracebacks that end at its call."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as e:
            if settings.get("DEBUG") or not is_for_users(e):
                raise
            error = for_users(e)
        raise error from error.__cause__

    return wrapper  # type: ignore[return-value]


def declares(function: F) -> F:
    """The same for a function by which users declare something: all that it refuses are errors for users."""
    @functools.wraps(function)
    def refusing(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError) as e:
            refusal(e)
            raise

    return for_callers(refusing)  # type: ignore[return-value]


def in_package(filename: str) -> bool:
    """Whether a source file is one of cutile."""
    return filename.startswith(_PACKAGE)


def warn(message: str) -> None:
    """Warn at the user's line, below which all frames are those of cutile and of the entries of tile functions."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and (in_package(name := frame.f_code.co_filename) or name.startswith("<function ")):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, stacklevel=level)


def _users_frames(tb: types.TracebackType | None) -> types.TracebackType | None:
    kept = []
    while tb is not None:
        if not in_package(tb.tb_frame.f_code.co_filename):
            kept.append(tb)
        tb = tb.tb_next
    shown = None
    for t in reversed(kept):
        line = t.tb_lineno or t.tb_frame.f_code.co_firstlineno  # None in generated code without a line
        shown = types.TracebackType(shown, t.tb_frame, t.tb_lasti, line)
    return shown

"""Calls of functions that users give to say what is right, and the errors of these functions as such."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cutile.errors import refusal
from cutile.functions.tuning_check import copies


def result_of(reference: Callable, name: str, args: Sequence[Any], named: Mapping[str, Any],
              what: str = "reference") -> Any:
    """What a reference returns for copies of the arguments of the function of this name.

    TypeError where it does not take these arguments; RuntimeError, whose cause is its own error, where it raises one.
    """
    try:
        return reference(*copies(tuple(args)), **copies(dict(named)))
    except Exception as e:
        said = f"the {what} of {name}, {getattr(reference, '__name__', None) or repr(reference)[:100]},"
        raised_inside = e.__traceback__ is not None and e.__traceback__.tb_next is not None
        if isinstance(e, TypeError) and not raised_inside:
            given = ", ".join([*(f"{len(args)} by position",) * bool(args), *(f"`{n}`" for n in named)]) or "none"
            raise refusal(TypeError(f"{said} is called with the arguments of the call ({given}), and does not take "
                                    f"them: {e}")) from None
        raise refusal(RuntimeError(f"{said} raised {type(e).__name__}: {e}")) from e

"""Hides functions from compilers that trace Python: PyTorch's Dynamo, for which a launch breaks the graph.

Dynamo takes over the frames of a running program. In cutile's frames it finds nothing that it can compile, and fails in
code that it does not know. So every function that users call is marked, and Dynamo skips it and all that it calls.
cutile does not import PyTorch for that. It tells PyTorch of the marks once it is loaded, or when Dynamo asks about one.

Dynamo does not ask about a frame that it gets directly, such as one below a frame that it skipped. A function that may
run in such a frame does little itself and calls another marked function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_codes: list[CodeType] = []  # the code of marked functions


class _Asked:
    """The mark that Dynamo finds on a function: it is true, and asking so tells PyTorch of all marks."""

    def __bool__(self) -> bool:
        tell()
        return True


_ASKED = _Asked()


def opaque(why: str) -> Callable[[F], F]:
    """Mark a function as not to be traced. `why` is for PyTorch's message about the broken graph."""

    def mark(f: F) -> F:
        f._torchdynamo_disable, f._torchdynamo_disable_msg = _ASKED, why  # type: ignore[attr-defined]
        _codes.append(f.__code__)
        tell()
        return f

    return mark


def tell() -> None:
    """Make Dynamo skip the frames of marked functions and all frames below them, if PyTorch is loaded."""
    dynamo = sys.modules.get("torch._C._dynamo.eval_frame")
    mark = getattr(dynamo, "set_code_exec_strategy", None)  # since PyTorch 2.7
    if mark is not None:
        skip = dynamo._FrameAction.SKIP
        for code in _codes:
            mark(code, dynamo._FrameExecStrategy(skip, skip))

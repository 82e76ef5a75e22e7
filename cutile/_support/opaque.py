"""What compilers that trace Python do not look into: PyTorch's, for which a launch is a break of the graph.

Dynamo takes over the frames of a running program. In ours it would find nothing that it can compile, and errors in
what it does not know; so each function that users call, with all that it calls, is marked as not for it. PyTorch is
not imported for that: it is told when it is there, or when Dynamo comes upon the function and asks.

Dynamo does not ask about a frame that it is offered at once, as below a frame that it skipped. Such a function does
little itself, and calls one that is marked as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_codes: list[CodeType] = []  # of the functions that are marked


class _Asked:
    """What Dynamo finds where it looks whether a function is for it: true, and PyTorch knows from then on."""

    def __bool__(self) -> bool:
        tell()
        return True


_ASKED = _Asked()


def opaque(why: str) -> Callable[[F], F]:
    """Mark a function as one that is run, never traced. `why` is what PyTorch's message of a broken graph says."""

    def mark(f: F) -> F:
        f._torchdynamo_disable, f._torchdynamo_disable_msg = _ASKED, why  # type: ignore[attr-defined]
        _codes.append(f.__code__)
        tell()
        return f

    return mark


def tell() -> None:
    """Have Dynamo leave alone the frames of marked functions and all frames below them, if PyTorch is loaded."""
    dynamo = sys.modules.get("torch._C._dynamo.eval_frame")
    mark = getattr(dynamo, "set_code_exec_strategy", None)  # since PyTorch 2.7
    if mark is not None:
        skip = dynamo._FrameAction.SKIP
        for code in _codes:
            mark(code, dynamo._FrameExecStrategy(skip, skip))

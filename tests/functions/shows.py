"""`@shows("JIT-4.equal")`: the clauses of clauses.md that a test shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable)


def shows(*ids: str) -> Callable[[F], F]:
    """Marks a test; test_clauses.py reads the marks from the source."""
    return lambda test: test

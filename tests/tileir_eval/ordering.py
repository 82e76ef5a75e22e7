"""Tokens: whether accesses of one block that touch the same memory are ordered, as they must be to mean anything.

A token is the set of accesses before it, as the bits of an int. Two accesses meet where they share an address and at
least one writes; two atomics may meet in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.tileir_eval.registry import EvaluationError

READ, WRITE, ATOMIC = "read", "write", "atomic"


@dataclass(slots=True)
class _Access:
    kind: str
    what: str
    addresses: np.ndarray  # sorted


class Order:
    """What one block did to memory so far."""

    def __init__(self):
        self._done: list[_Access] = []

    def access(self, kind: str, what: Callable[[], str], addresses: np.ndarray, token: int | None) -> int:
        """The token of an access that waited for `token`. EvaluationError if it meets one that is not in it."""
        before = token or 0
        new = _Access(kind, what(), np.unique(addresses))
        for k, old in enumerate(self._done):
            if not before >> k & 1 and _conflict(old, new):
                raise EvaluationError(f"{new.what} meets {old.what} in memory, but no token orders them")
        self._done.append(new)
        return before | 1 << len(self._done) - 1


def _conflict(a: _Access, b: _Access) -> bool:
    if (a.kind == b.kind) and a.kind in (READ, ATOMIC) or not (a.addresses.size and b.addresses.size):
        return False
    if a.addresses[-1] < b.addresses[0] or b.addresses[-1] < a.addresses[0]:
        return False
    return np.intersect1d(a.addresses, b.addresses, assume_unique=True).size > 0

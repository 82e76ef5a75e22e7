"""Tokens: whether accesses of one block that touch the same memory are ordered, as they must be to mean anything.

A token is the set of accesses before it, as the bits of an int. Two accesses meet where they share an address and at
least one writes; two atomics may meet in any order. A release publishes what its token has, so that must be all that
the block did before; what comes after an acquire must have it in its token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.tileir_eval.registry import EvaluationError

READ, WRITE, ATOMIC = "read", "write", "atomic"
RELEASES, ACQUIRES = ("release", "acq_rel"), ("acquire", "acq_rel")


@dataclass(slots=True)
class _Access:
    kind: str
    what: str
    addresses: np.ndarray  # sorted


class Order:
    """What one block did to memory so far."""

    def __init__(self):
        self._done: list[_Access] = []
        self._acquired = 0  # the latest acquire, as a token

    def access(self, kind: str, what: Callable[[], str], addresses: np.ndarray, token: int | None,
               semantics: str) -> int:
        """The token of an access that waited for `token`. EvaluationError if it must wait for one that is not in it."""
        before = token or 0
        new = _Access(kind, what(), np.unique(addresses))
        for k, old in enumerate(self._done):
            if before >> k & 1:
                continue
            if _conflict(old, new):
                raise EvaluationError(f"{new.what} meets {old.what} in memory, but no token orders them")
            if semantics in RELEASES:
                raise EvaluationError(f"{new.what} releases, but no token orders it after {old.what}")
            if self._acquired >> k & 1:
                raise EvaluationError(f"no token orders {new.what} after {old.what}, which acquires")
        own = 1 << len(self._done)
        if semantics in ACQUIRES:
            self._acquired = own
        self._done.append(new)
        return before | own


def _conflict(a: _Access, b: _Access) -> bool:
    if (a.kind == b.kind) and a.kind in (READ, ATOMIC) or not (a.addresses.size and b.addresses.size):
        return False
    if a.addresses[-1] < b.addresses[0] or b.addresses[-1] < a.addresses[0]:
        return False
    return np.intersect1d(a.addresses, b.addresses, assume_unique=True).size > 0

"""The tokens by which Tile IR orders operations on memory, while a kernel is lowered.

`analysis/tokens.py` says which tokens an access waits for, joins or becomes; here each token has its Tile IR value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cutile.analysis.tokens import ACQUIRE, Key, Ordering, ordering
from cutile.gpu.tileir.builder import Builder, Value
from cutile.ir import nodes
from cutile.ir.nodes import For, Kernel, Op, Region
from cutile.types import ArrayType, ListType


class TokenValues:
    """The value of each token where the builder appends. A token without a value is the first one, for
    which nothing waits.
    """

    def __init__(self, builder: Builder, order: Ordering):
        self.b, self._order = builder, order
        self._first: Value | None = None
        self._values: dict[Key, Value] = {}
        self._apart: dict[Op, Value | None] = {}  # a store that waits only for what came before its loop → that token

    def begin(self) -> None:
        """Make the first token, if any operation needs one."""
        if self._order.tokens:
            self._first = self.b.op("make_token")

    def changed(self, inside: Iterable[Region]) -> tuple[Key, ...]:
        """The tokens that some node in these regions changes, in a fixed order."""
        return self._order.changed(inside)

    def values(self, keys: Sequence[Key]) -> list[Value]:
        return [self._values.get(k) or self._first for k in keys]

    def set(self, keys: Sequence[Key], values: Iterable[Value]) -> None:
        self._values.update(zip(keys, values, strict=True))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Within the `with` block, in which a region is lowered, tokens may change; after it, they are as before."""
        before, self._values = self._values, dict(self._values)
        yield
        self._values = before

    def begin_loop(self, loop: For) -> None:
        """Called before a loop: note what its stores wait for if they need not wait for each other."""
        for n, memory in self._order.apart.get(loop, {}).items():
            self._apart[n] = self._join([self._values.get(("any", memory)), self._values.get(ACQUIRE)])

    def before(self, n: Op) -> Value | None:
        """The token that an operation on memory waits for; None if it waits for nothing."""
        if n in self._apart:
            return self._apart[n]
        return self._join([self._values.get(k) for k in self._order.of(n).waits])

    def after(self, n: Op, own: Value) -> None:
        """Note the token that an operation on memory gives."""
        tokens, alone = self._order.of(n), n in self._apart
        for k in tokens.joins + (tokens.becomes if alone else ()):
            self._values[k] = self._join([self._values.get(k), own])
        self._values.update(dict.fromkeys(() if alone else tokens.becomes, own))

    def _join(self, tokens: Iterable[Value | None]) -> Value | None:
        found = [t for t in dict.fromkeys(tokens) if t is not None and t is not self._first]
        if len(found) > 1:
            return self.b.op("join_tokens", [found])
        return found[0] if found else None


def order_of(kernel: Kernel, facts: Sequence[Any]) -> Ordering:
    """The order of the accesses of a kernel, about whose parameters these facts are known."""
    return ordering(kernel, *_overlaps(kernel, facts))


def _overlaps(kernel: Kernel, facts: Sequence[Any]) -> tuple[list[list[nodes.Value]], list[nodes.Value]]:
    """Groups of parameters that may share memory, and those parameters in which two elements may share memory."""
    groups: dict[str, list[nodes.Value]] = {}
    overlapping: list[nodes.Value] = []
    for p, f in zip(kernel.params, facts, strict=True):
        if isinstance(p.type, ArrayType):
            for g in f.alias_groups if f else ():
                groups.setdefault(g, []).append(p)
            if f is None or f.may_alias_internally:
                overlapping.append(p)
        elif isinstance(p.type, ListType):  # its arrays are one class anyway
            for g in f.element.alias_groups if f else ():
                groups.setdefault(g, []).append(p)
            overlapping.append(p)
    return list(groups.values()), overlapping

"""A dictionary of bounded size, which forgets what nobody asked for lately."""

from __future__ import annotations

from typing import Any, TypeVar

K, V = TypeVar("K"), TypeVar("V")


class Recent(dict[K, V]):
    """At most `limit` values, added by `keep`; to look one up costs what it costs in a dictionary.

    Who finds a value may set its attribute `used`: then the value stays when the next ones are dropped. Threads may use
    it together without a lock; what one of them loses in a race is a value that has to be made again.
    """

    def __init__(self, limit: int):
        super().__init__()
        self.limit = limit

    def keep(self, key: K, value: V) -> None:
        """Add a value, and drop the oldest that were not used since they were last looked through."""
        self.pop(key, None)
        self[key] = value
        while len(self) > self.limit:
            for oldest in list(self):
                found: Any = self.pop(oldest, None)
                if getattr(found, "used", False):
                    found.used = False
                    self[oldest] = found  # as the newest
                else:
                    break

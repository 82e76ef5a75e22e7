"""A dictionary of bounded size: it drops the oldest values, but those in use get a second chance."""

from __future__ import annotations

from typing import Any, TypeVar

K, V = TypeVar("K"), TypeVar("V")


class LruDict(dict[K, V]):
    """At most `limit` values, added by `keep`. A lookup costs what it costs in a plain dictionary.

    A caller that finds a value may set the value's attribute `used`. When it is the oldest, it is then not dropped, but
    becomes the newest, no longer marked. Threads may share the dictionary without a lock. A race may lose a value,
    which must be made again then.
    """

    def __init__(self, limit: int):
        super().__init__()
        self.limit = limit

    def keep(self, key: K, value: V) -> None:
        """Add a value. If there are too many, drop the oldest ones that are not marked as used."""
        self.pop(key, None)
        self[key] = value
        while len(self) > self.limit:
            for oldest in list(self):
                found: Any = self.pop(oldest, None)
                if getattr(found, "used", False):
                    found.used = False
                    self[oldest] = found  # it is now the newest
                else:
                    break

"""What a typed program depends on outside itself, so that nothing stale is launched [DESIGN §7].

Names and attributes are compared by identity; what real Python code in a static construct was handed is compared by its
contents too, some levels deep.
"""

from __future__ import annotations

import enum
import inspect
import itertools
import operator
import types
from collections.abc import Callable
from typing import Any

from cutile.front.scope import MISSING
from cutile.ir.terms import number_key

SNAPSHOT_LIMIT = 1000  # items of a container that are compared at a launch
SNAPSHOT_DEPTH = 4
_MISSING = itertools.repeat(MISSING)
_SIMPLE = (dict, types.FunctionType, types.CellType)


class Reads:
    """What a compilation read from outside the kernel, so that a launch can see whether any of it has changed."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        self._snapshots: dict[int, tuple[Any, tuple | dict]] = {}
        self._arranged: tuple[tuple, tuple, list] | None = None  # what `fresh` made of it

    def add(self, container: Any, key: Any, obj: Any) -> None:
        """`container` is a cell (key None), a dict, or an object whose attribute `key` was read."""
        if type(container) is types.ModuleType and key in vars(container):
            container = vars(container)  # the same, but looked up quickly
        self._seen.setdefault((id(container), key), (container, key, obj))
        self._arranged = None

    def inside(self, obj: Any, depth: int = 0) -> None:
        """Python code has been handed `obj`: what it holds, or as a function reads, counts too, some levels deep."""
        if depth == SNAPSHOT_DEPTH:
            return
        if isinstance(obj, types.FunctionType):
            self._function(obj, depth)
        elif id(obj) not in self._snapshots and (held := _contents(obj)) is not None:
            self._snapshots[id(obj)] = (obj, held)
            for item in held.values() if isinstance(held, dict) else held:
                self.inside(item, depth + 1)

    def _function(self, fn: types.FunctionType, depth: int) -> None:
        """What a function that Python runs reads: its code, its closure, its globals."""
        if (id(fn), "__code__") in self._seen:
            return
        self.add(fn, "__code__", fn.__code__)
        for cell in fn.__closure__ or ():
            obj = _look(cell, None)
            self.add(cell, None, obj)
            self.inside(obj, depth + 1)
        for name in fn.__code__.co_names:
            if name in fn.__globals__:
                self.add(fn.__globals__, name, fn.__globals__[name])
                if not isinstance(fn.__globals__[name], types.ModuleType):
                    self.inside(fn.__globals__[name], depth + 1)

    def fresh(self) -> bool:
        """Everything read still denotes the same object, and mutable objects hold what they held."""
        (dicts, names, objs), (functions, attributes, values), others = self._arranged or self._arrange()
        if not all(map(operator.is_, map(dict.get, dicts, names), objs)) \
                or not all(map(operator.is_, map(getattr, functions, attributes, _MISSING), values)):
            return False
        for container, key, obj in others:
            if _look(container, key) is not obj:
                return False
        return not self._snapshots or all(
            _same_contents(_contents(obj), held) for obj, held in self._snapshots.values())

    def _arrange(self) -> tuple[tuple, tuple, list]:
        """What `fresh` looks at: columns of what was found in dictionaries, most of it globals, such columns of the
        attributes of functions, and other rows.
        """
        found, functions, others = [], [], []
        for row in self._seen.values():
            if type(row[0]) is types.FunctionType:
                functions.append(row)
            else:
                simple = type(row[0]) is dict and row[2] is not None and row[2] is not MISSING  # `get` gives None here
                (found if simple else others).append(row)
        self._arranged = _columns(found), _columns(functions), others
        return self._arranged

    def seen(self) -> tuple | Callable[[], bool]:
        """What `fresh` compares, for who compares it himself: dictionaries, functions or cells, a key or attribute of
        each, and the object that must be there, all in one tuple. `fresh` itself if there is more to it.
        """
        found = [(c, "cell_contents" if k is None else k, obj) for c, k, obj in self._seen.values()]
        simple = all(type(c) in _SIMPLE and type(k) is str and obj is not MISSING for c, k, obj in found)
        return tuple(itertools.chain.from_iterable(found)) if simple and not self._snapshots else self.fresh

    def __len__(self) -> int:
        return len(self._seen)


def _columns(rows: list[tuple]) -> tuple:
    return tuple(zip(*rows, strict=True)) or ((), (), ())


def _contents(obj: Any) -> tuple | dict | None:
    """What a mutable object holds; None if it holds nothing that could change."""
    if isinstance(obj, list | tuple | set | frozenset):
        return tuple(itertools.islice(obj, SNAPSHOT_LIMIT))
    if isinstance(obj, dict):
        return dict(itertools.islice(obj.items(), SNAPSHOT_LIMIT))
    if isinstance(obj, type | types.ModuleType | types.FunctionType | enum.Enum) or not hasattr(obj, "__dict__"):
        return None
    return dict(vars(obj))


def _same_contents(now: tuple | dict, then: tuple | dict) -> bool:
    if len(now) != len(then):
        return False
    if isinstance(now, dict):
        return all(k in now and _same_item(now[k], v) for k, v in then.items())
    return all(map(_same_item, now, then))


def _same_item(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b) or not isinstance(a, bool | int | float | str):
        return False
    return a == b if isinstance(a, str) else number_key(a) == number_key(b)


def _look(container: Any, key: Any) -> Any:
    try:
        if key is None:
            return container.cell_contents
        if type(container) is dict:
            return container.get(key, MISSING)
        if isinstance(container, type):
            return inspect.getattr_static(container, key, MISSING)
        return getattr(container, key, MISSING)
    except ValueError:  # an empty cell
        return MISSING

"""What a typed program depends on outside itself, so that nothing stale is launched [DESIGN §7].

Names and attributes are compared by identity; what real Python code in a static construct was handed is compared by its
contents too, some levels deep.
"""

from __future__ import annotations

import builtins
import enum
import functools
import inspect
import itertools
import operator
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Set
from typing import Any

import numpy as np

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
        self._snapshots: dict[int, tuple[Any, Contents]] = {}
        self._followed: set[tuple[int, str | None]] = set()  # attributes, and functions; `_seen` keeps them alive
        self._arranged: tuple[tuple, tuple, list] | None = None  # what `fresh` made of it

    def add(self, container: Any, key: Any, obj: Any) -> None:
        """`container` is a cell (key None), a dict, or an object whose attribute `key` was read."""
        if type(container) is types.ModuleType and key in vars(container):
            container = vars(container)  # the same, but looked up quickly
        self._seen.setdefault((id(container), key), (container, key, obj))
        self._arranged = None

    def inside(self, obj: Any, names: Set[str] = frozenset(), depth: int = 0) -> None:
        """Python code that mentions `names` has been handed `obj`: what it holds, what its class or module has by
        these names, and what it reads as a function count too, some levels deep.
        """
        if depth == SNAPSHOT_DEPTH:
            return
        match obj:
            case types.FunctionType():
                self._function(obj, depth)
            case types.ModuleType():
                for name in names & vars(obj).keys():
                    self._attribute(obj, name, vars(obj)[name], names, depth)
            case type():
                self._class(obj, names, depth)
            case staticmethod() | classmethod() | types.MethodType() | property() | functools.partial():
                for name in ("__func__", "fget", "func", "args", "keywords"):
                    self.inside(getattr(obj, name, None), names, depth)
            case _:
                self._instance(obj, names, depth)

    def _instance(self, obj: Any, names: Set[str], depth: int) -> None:
        if id(obj) not in self._snapshots and (held := _contents(obj)) is not None:
            self._snapshots[id(obj)] = (obj, held)
            for item in held.values() if isinstance(held, dict) else held if isinstance(held, tuple) else ():
                self.inside(item, names, depth + 1)
        self._class(type(obj), names, depth)

    def _class(self, cls: type, names: Set[str], depth: int) -> None:
        """What code that mentions `names` may find in a class, and what Python calls without naming it."""
        if _is_users(cls):
            special = (n for c in cls.__mro__ if _is_users(c) for n, v in vars(c).items()
                       if n.startswith("__") and isinstance(v, types.FunctionType))
            for name in {*names, *special}:
                if (found := _of_class(cls, name)) is not MISSING:
                    self._attribute(cls, name, found, names, depth)

    def _attribute(self, owner: Any, name: str, obj: Any, names: Set[str], depth: int) -> None:
        if (id(owner), name) not in self._followed:
            self._followed.add((id(owner), name))
            self.add(owner, name, obj)
            self.inside(obj, names, depth + 1)

    def _function(self, fn: types.FunctionType, depth: int) -> None:
        """What a function that Python runs reads: its code, its defaults, its closure, its globals."""
        if (id(fn), None) in self._followed:
            return
        self._followed.add((id(fn), None))
        names = frozenset(_names(fn.__code__))
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self._attribute(fn, name, getattr(fn, name), names, depth)
        for cell in fn.__closure__ or ():
            obj = _look(cell, None)
            self.add(cell, None, obj)
            self.inside(obj, names, depth + 1)
        for name in names:
            if name in fn.__globals__ or hasattr(builtins, name):  # a builtin a global may come to hide
                obj = fn.__globals__.get(name, MISSING)
                self.add(fn.__globals__, name, obj)
                self.inside(obj, names, depth + 1)

    def fresh(self) -> bool:
        """Everything read still denotes the same object, and mutable objects hold what they held."""
        (dicts, names, objs), (functions, attributes, values), others = self._arranged or self._arrange()
        if not all(map(operator.is_, map(dict.get, dicts, names, _MISSING), objs)) \
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
                (found if type(row[0]) is dict else others).append(row)
        self._arranged = _columns(found), _columns(functions), others
        return self._arranged

    def seen(self) -> tuple | Callable[[], bool]:
        """What `fresh` compares, for who compares it himself: dictionaries, functions or cells, a key or attribute of
        each, and the object that must be there, all in one tuple; the dictionary where there must be none. `fresh`
        itself if there is more to it.
        """
        found = [(c, "cell_contents" if k is None else k, c if type(c) is dict and obj is MISSING else obj)
                 for c, k, obj in self._seen.values()]
        simple = all(type(c) in _SIMPLE and type(k) is str and obj is not MISSING for c, k, obj in found) \
            and not any(c is obj for c, _, obj in self._seen.values())
        return tuple(itertools.chain.from_iterable(found)) if simple and not self._snapshots else self.fresh

    def __len__(self) -> int:
        return len(self._seen)


def _columns(rows: list[tuple]) -> tuple:
    return tuple(zip(*rows, strict=True)) or ((), (), ())


def _names(code: types.CodeType) -> Iterator[str]:
    """What a function's code mentions, and that of functions in it: globals, builtins and attributes."""
    yield from code.co_names
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _names(c)


_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: classes that Python code can change
_OTHERS = sys.stdlib_module_names | {"cutile", "numpy", "ml_dtypes"}


def _is_users(cls: type) -> bool:
    """Whether a class may be of the user's making."""
    return bool(cls.__flags__ & _HEAP) and str(cls.__module__).partition(".")[0] not in _OTHERS


Contents = tuple | dict | bytes


def _contents(obj: Any) -> Contents | None:
    """What a mutable object holds; None if it holds nothing that could change."""
    match obj:
        case list() | tuple() | set() | frozenset() | deque():
            return tuple(itertools.islice(obj, SNAPSHOT_LIMIT))
        case dict() | types.MappingProxyType():
            return dict(itertools.islice(obj.items(), SNAPSHOT_LIMIT))
        case bytearray():
            return bytes(obj[:SNAPSHOT_LIMIT])
        case np.ndarray():
            return None if obj.dtype.hasobject else obj.flat[:SNAPSHOT_LIMIT].tobytes()
        case enum.Enum():
            return None
    slots = {n: v for c in type(obj).__mro__ if _is_users(c) for n, d in vars(c).items()
             if type(d) is types.MemberDescriptorType and (v := _slot(d, obj)) is not MISSING}
    return slots | vars(obj) if hasattr(obj, "__dict__") else slots or None


def _slot(d: types.MemberDescriptorType, obj: Any) -> Any:
    try:
        return d.__get__(obj)
    except AttributeError:
        return MISSING


def _same_contents(now: Contents | None, then: Contents) -> bool:
    if isinstance(then, bytes):
        return now == then
    if now is None or len(now) != len(then):
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


def _of_class(cls: type, name: str) -> Any:
    """As `inspect.getattr_static`, which takes ten times as long where there is one."""
    for c in cls.__mro__:
        if name in c.__dict__:
            return c.__dict__[name]
    return inspect.getattr_static(cls, name, MISSING)


def _look(container: Any, key: Any) -> Any:
    try:
        if key is None:
            return container.cell_contents
        if type(container) is dict:
            return container.get(key, MISSING)
        if isinstance(container, type):
            return _of_class(container, key)
        return getattr(container, key, MISSING)
    except ValueError:  # an empty cell
        return MISSING

"""Factories: functions that return kernels, called once for each combination of arguments [JIT-19]."""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from cutile._support.lru import LruDict
from cutile.dtypes import DType
from cutile.functions.tile_function import TileFunction
from cutile.runtime.kernel import Kernel
from cutile.tracebacks import declares

LIMIT = 1000  # functions that a factory keeps

# Values of these classes are equal only if they mean the same. 1 and True are equal, so their classes go into the key.
_PLAIN = frozenset({int, bool, str, type(None), DType})


class CacheInfo(NamedTuple):
    """How often a factory found a function, and made one, and how many it keeps."""

    hits: int
    misses: int
    size: int


class Factory:
    """A function that returns kernels, made by `ct.jit`. A call returns the function of the kernel that it makes."""

    def __init__(self, function: types.FunctionType, given: Mapping[str, Any]):
        functools.update_wrapper(self, function)
        self._function, self.given = function, dict(given)
        self._parameters = inspect.signature(function)
        self._lock = threading.RLock()
        self.clear()

    @property
    def _instead_of_kernel(self) -> str:
        """What to do with it in the place of a kernel, in words."""
        return (f"and ct.jit has made another object of {self.__name__}: write @ct.jit(...) above, and @ct.kernel "
                f"next to the function")

    def clear(self) -> None:
        """Forget all functions."""
        self._by_call: LruDict[tuple, TileFunction] = LruDict(LIMIT)  # by arguments as written, where they are plain
        self._made: LruDict[Any, TileFunction] = LruDict(LIMIT)
        self._hits = self._misses = 0

    def cache_info(self) -> CacheInfo:
        return CacheInfo(self._hits, self._misses, len(self._made))

    def __getattr__(self, name: str) -> NoReturn:
        """For what only the functions have that it makes."""
        if hasattr(TileFunction, name) and not name.startswith("_"):
            raise AttributeError(f"{self.__name__} is a factory: call it, and what it returns has {name}, as in "
                                 f"{self.__name__}(...).{name}", name=name, obj=self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __getitem__(self, grid: Any) -> NoReturn:
        raise TypeError(f"{self.__name__} takes no grid in brackets, since ct.jit was given one; call it as "
                        f"{self.__name__}(...)(...)")

    def __call__(self, *args: Any, **kwargs: Any) -> TileFunction:
        key = (args, *map(type, args)) if not kwargs else (args, *map(type, args), *kwargs.items(),
                                                           *map(type, kwargs.values()))
        try:
            found = self._by_call[key]
        except (KeyError, TypeError):
            return self._checked(key, args, kwargs)
        self._hits += 1
        return found

    @declares
    def _checked(self, call: tuple, args: tuple, kwargs: dict[str, Any]) -> TileFunction:
        return self._find(call, args, kwargs)

    def _find(self, call: tuple, args: tuple, kwargs: dict[str, Any]) -> TileFunction:
        try:
            bound = self._parameters.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{self.__name__}{self._parameters} is a function that returns kernels, for ct.jit: {e}. "
                            f"If it is a kernel itself, write @ct.kernel between @ct.jit(...) and it") from None
        bound.apply_defaults()
        key = tuple((n, frozen(v)) for n, v in bound.arguments.items())
        with self._lock:
            found = self._made.get(key)
            if found is None:
                self._misses += 1
                found = self._make(bound)
                self._made.keep(key, found)
            else:
                self._hits += 1
            if _PLAIN.issuperset({*map(type, args), *map(type, kwargs.values())}):
                self._by_call.keep(call, found)
        return found

    def _make(self, bound: inspect.BoundArguments) -> TileFunction:
        made = self._function(*bound.args, **bound.kwargs)
        if isinstance(made, TileFunction):
            if self.given:
                raise TypeError(f"{self._function.__name__} returns a function made by ct.jit, so ct.jit around it "
                                f"takes no keywords")
            return made
        if not isinstance(made, Kernel):
            raise TypeError(f"{self._function.__name__} must return a kernel, since ct.jit decorates it, but returned "
                            f"{made!r:.100}")
        made._origin = (self, bound.args, bound.kwargs)  # by which another process finds it (tune/trial.py)
        return TileFunction(made, self.given)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<factory of tile functions {self.__module__}.{self.__qualname__}{self._parameters}>"

    def __copy__(self) -> Factory:
        return self

    def __deepcopy__(self, memo: Any) -> Factory:
        return self

    def __reduce__(self) -> str:
        return self.__qualname__


def frozen(value: Any) -> Any:
    """A key that is equal for equal contents. 1, 1.0 and True differ, and 0.0 and -0.0; NaN equals itself."""
    cls = type(value)
    if cls is float:
        return cls, value.hex()
    if issubclass(cls, tuple | list):
        return (cls, *map(frozen, value))
    if issubclass(cls, dict):
        return (cls, *sorted(((frozen(k), frozen(v)) for k, v in value.items()), key=repr))
    if issubclass(cls, set | frozenset):
        return (cls, *sorted(map(frozen, value), key=repr))
    try:
        hash(value)
    except TypeError:
        import pickle  # loaded when it is needed

        return cls, pickle.dumps(value)
    return cls, value

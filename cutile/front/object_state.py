"""What Python objects hold, so that a launch can see whether it has changed.

Objects that hold others are compared item by item, by identity, numbers and texts by value; memory by its bytes. None
of the objects' own code runs.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import gc
import io
import itertools
import operator
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cutile.front.scope import MISSING
from cutile.ir.terms import number_key

Take = Callable[[Any], tuple]  # an object → what it holds

# ------------------------------------------------------------------ what holds nothing that can change

ATOMS = frozenset({
    type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented), types.CodeType,
    types.GenericAlias, types.UnionType, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType, np.ufunc})
# Modules whose objects serve a process rather than hold values, and those whose values never change.
_SERVICES = frozenset({
    "logging", "threading", "_thread", "asyncio", "concurrent", "multiprocessing", "socket", "subprocess", "re", "abc",
    "_abc", "typing", "datetime", "decimal", "random", "_random", "importlib", "_frozen_importlib",
    "_frozen_importlib_external", "cutile", "jax", "jaxlib"})
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8  # flags of types: made at run time, as by `class`; Python code cannot change it


def root_of(module: Any) -> str:
    """The top-level name of a module's."""
    return str(module).partition(".")[0]


@functools.lru_cache(maxsize=1024)
def is_installed(root: str) -> bool:
    """Whether a top-level module belongs to Python or to an installed library, whose code nobody edits."""
    if root in sys.stdlib_module_names or root in ("cutile", "numpy", "ml_dtypes"):
        return True
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def is_atom(obj: Any) -> bool:
    """Whether an object holds nothing that could change and count."""
    cls = type(obj)
    if issubclass(cls, type):
        return False
    if cls in ATOMS or issubclass(cls, np.dtype) or issubclass(cls, np.generic) and not issubclass(cls, np.void):
        return True
    if cls is types.BuiltinFunctionType:
        return obj.__self__ is None or type(obj.__self__) is types.ModuleType
    if cls is threading.local:
        return False
    return (root_of(cls.__module__) in _SERVICES or str(cls.__module__).startswith("numpy.random")
            or f"{cls.__module__}.{cls.__qualname__}" in ("torch.dtype", "torch.device", "torch.layout"))


def unseen(obj: Any) -> str | None:
    """What an object is whose state cannot be looked at; None for all others."""
    cls = type(obj)
    if issubclass(cls, types.GeneratorType) or hasattr(cls, "__next__") and not _states(cls):
        return "an iterator"
    if issubclass(cls, io.IOBase):
        return "a file"
    if _is_tensor(obj):
        return None if obj.device.type == "cpu" and obj.layout is sys.modules["torch"].strided else (
            f"a tensor on {obj.device}, of layout {obj.layout}")
    if _is_on_gpu(obj):
        return "an array in GPU memory"
    return None


def _is_tensor(obj: Any) -> bool:
    return issubclass(type(obj), getattr(sys.modules.get("torch"), "Tensor", ()))


def _is_on_gpu(obj: Any) -> bool:
    name = "__cuda_array_interface__"
    return hasattr(type(obj), name) or name in getattr(obj, "__dict__", ())


def metadata(obj: Any, name: str) -> Take | None:
    """What takes an attribute of an array that says nothing of its elements; None if `name` is no such one."""
    if _is_tensor(obj):
        return _layout_of_tensor if name in _OF_TENSORS else None
    return _OF_ARRAYS.get(name) if type(obj) is np.ndarray or _is_on_gpu(obj) else None


_OF_ARRAYS: dict[str, Take] = {
    "shape": lambda a: a.shape, "strides": lambda a: (a.strides,), "dtype": lambda a: (a.dtype,),
    "ndim": lambda a: (a.ndim,), "size": lambda a: (a.size,), "itemsize": lambda a: (a.itemsize,),
    "nbytes": lambda a: (a.nbytes,)}
_OF_TENSORS = frozenset("""shape size stride dim ndim numel nelement dtype device is_cuda get_device layout itemsize
    nbytes element_size is_contiguous storage_offset requires_grad is_floating_point""".split())


def _layout_of_tensor(t: Any) -> tuple:
    strided = (t.stride(), t.storage_offset()) if t.layout is sys.modules["torch"].strided else ()
    return (tuple(t.shape), t.dtype, t.layout, str(t.device), t.requires_grad, *strided)


# ------------------------------------------------------------------ what the others hold


def parts(obj: Any) -> Iterator[Held]:
    """All that an object holds. ValueError for memory that is not there any more."""
    cls = type(obj)
    if _is_tensor(obj):
        yield held(obj, _tensor)
        return
    if (take := _states(cls)) is not None:  # first, as what an object of C refers to may come to include its __dict__
        yield held(obj, take)
    if issubclass(cls, np.ndarray) and not _array(obj).dtype.hasobject or _is_buffer(cls):
        yield held(obj, _memory)
    else:
        take = next((take for kind, take in _TAKES.items() if issubclass(cls, kind)), None)
        if take is not None:
            yield held(obj, take)
        elif _is_of_c(cls):
            yield held(obj, _referents)


def _array(a: np.ndarray) -> np.ndarray:
    return a if type(a) is np.ndarray else np.ndarray.view(a, np.ndarray)


def _objects(a: np.ndarray) -> tuple:
    """The elements of an array of objects."""
    a = _array(a)
    names = a.dtype.names
    return (a.shape, *a.ravel().tolist()) if names is None else tuple(
        itertools.chain.from_iterable(_objects(a[n]) if a[n].dtype.hasobject else (a[n].tobytes(),) for n in names))


def _pairs(d: dict) -> tuple:
    return (*dict.keys(d), *dict.values(d))


def _ordered_pairs(d: collections.OrderedDict) -> tuple:
    return (*collections.OrderedDict.keys(d), *collections.OrderedDict.values(d))


def _default_pairs(d: collections.defaultdict) -> tuple:
    return (d.default_factory, *_pairs(d))


def _referents(obj: Any) -> tuple:
    """What an object of a type written in C refers to."""
    return tuple(o for o in gc.get_referents(obj) if o is not type(obj))


def _value_of_variable(v: contextvars.ContextVar) -> tuple:
    try:
        return (v.get(),)
    except LookupError:
        return ()


# Of several that fit, the first.
_TAKES: dict[type, Take] = {
    collections.OrderedDict: _ordered_pairs, collections.defaultdict: _default_pairs, dict: _pairs,
    list: lambda x: tuple(list.__iter__(x)), tuple: lambda x: tuple(tuple.__iter__(x)),
    set: lambda x: tuple(set.__iter__(x)), frozenset: lambda x: tuple(frozenset.__iter__(x)),
    collections.deque: lambda x: tuple(collections.deque.__iter__(x)), np.ndarray: _objects,
    contextvars.ContextVar: _value_of_variable, functools._lru_cache_wrapper: lambda x: (),  # its function counts
    weakref.ref: lambda x: (x(),), threading.local: lambda x: _pairs(x.__dict__)}


def _is_of_c(cls: type) -> bool:
    """Whether a class is written in C, or has such a base."""
    return any(not c.__flags__ & _HEAP or c.__flags__ & _IMMUTABLE for c in cls.__mro__ if c is not object)


@functools.lru_cache(maxsize=1024)
def _states(cls: type) -> Take | None:
    """What takes the attributes that instances of a class have themselves; None if they have none."""
    slots = [d for c in cls.__mro__ for d in vars(c).values() if type(d) is types.MemberDescriptorType
             and c.__flags__ & _HEAP and not d.__name__.startswith("__")]
    space = next((d for c in cls.__mro__ if (d := vars(c).get("__dict__")) is not None
                  and type(d) is types.GetSetDescriptorType), None)
    if not slots and space is None:
        return None

    def state(obj: Any) -> tuple:
        found = () if space is None else _pairs(space.__get__(obj))
        return (type(obj), *found, *(_slot(d, obj) for d in slots))

    state.slots = tuple(d.__name__ for d in slots)  # type: ignore[attr-defined]
    return state


def _slot(d: types.MemberDescriptorType, obj: Any) -> Any:
    try:
        return d.__get__(obj)
    except AttributeError:
        return MISSING


# ------------------------------------------------------------------ memory

SMALL = 1 << 12  # bytes that are copied to be compared
CHUNK = 1 << 20  # bytes that are compared at once: what fits into a cache


@functools.lru_cache(maxsize=1024)
def _is_buffer(cls: type) -> bool:
    """Whether objects of a type lend their memory, as array.array, bytearray, mmap and ctypes do."""
    if issubclass(cls, np.ndarray | np.generic):
        return issubclass(cls, np.void)
    return any("__buffer__" in vars(c) for c in cls.__mro__) or any(
        f"{c.__module__}.{c.__qualname__}" in _BUFFERS for c in cls.__mro__)


# Before Python 3.12, which gives them a method __buffer__.
_BUFFERS = {"builtins.bytearray", "builtins.memoryview", "array.array", "mmap.mmap", "_ctypes.Array",
            "_ctypes.Structure", "_ctypes.Union", "_ctypes._SimpleCData"}


def _memory(obj: Any) -> tuple[tuple, np.ndarray]:
    """What an array or buffer is, and its bytes."""
    if isinstance(obj, np.ndarray):
        a = _array(obj)
        kind: tuple = a.dtype, a.shape, a.strides, a.flags.writeable
        packed = a.T if a.flags.f_contiguous else np.ascontiguousarray(a)
        return kind, packed.reshape(-1).view(np.uint8) if a.nbytes else _NOTHING
    if isinstance(obj, np.void):
        return (obj.dtype,), np.frombuffer(np.void.tobytes(obj), np.uint8)
    with memoryview(obj) as m:
        kind = m.format, m.shape, m.strides
        if not m.nbytes:
            return kind, _NOTHING
        return kind, np.frombuffer(obj if m.c_contiguous else m.tobytes(), np.uint8)


_NOTHING = np.empty(0, np.uint8)


def _tensor(t: Any) -> tuple[tuple, np.ndarray]:
    """What a torch tensor is, and the bytes of all its storage."""
    import ctypes

    storage = t.untyped_storage()
    n = storage.nbytes()
    kind = t.dtype, tuple(t.shape), t.stride(), t.storage_offset(), t.requires_grad
    return kind, np.frombuffer((ctypes.c_ubyte * n).from_address(storage.data_ptr()), np.uint8) if n else _NOTHING


def _equal_bytes(a: np.ndarray, b: np.ndarray | bytes) -> bool:
    if isinstance(b, bytes):
        return a.tobytes() == b
    if a.size % 8 == 0:
        a, b = a.view(np.uint64), b.view(np.uint64)
    step = CHUNK // a.itemsize
    return all(np.array_equal(a[i:i + step], b[i:i + step]) for i in range(0, a.size, step))


# ------------------------------------------------------------------ comparing


class Held:
    """What an object held; `take` says what it holds now."""

    __slots__ = ("obj", "take", "then", "__weakref__")

    def __init__(self, obj: Any, take: Take):
        self.obj, self.take = obj, take
        self.then = then = take(obj)
        if take in (_memory, _tensor):
            kind, data = then
            self.then = kind, data.tobytes() if data.size <= SMALL else data.copy()

    def items(self, attribute: str | None) -> Iterator[tuple[Any, str | None]]:
        """The objects that it held, each with the attribute by which it was reached: its own, or that of the object."""
        if self.take in (_memory, _tensor):
            return iter(())
        slots = getattr(self.take, "slots", None)
        if slots is None:
            return zip(self.then, itertools.repeat(attribute))
        names = self.then[1:1 + (len(self.then) - 1 - len(slots)) // 2]
        return zip(self.then, (None, *itertools.repeat(None, len(names)), *names, *slots), strict=True)

    def __len__(self) -> int:
        return 1 if self.take in (_memory, _tensor) else len(self.then)

    def same(self) -> bool:
        """Whether it holds now what it held then."""
        then = self.then
        try:
            now = self.take(self.obj)
        except Exception:  # memory that was given back, a dictionary that another thread changes meanwhile
            return False
        if self.take in (_memory, _tensor):
            return now[0] == then[0] and now[1].size == len(then[1]) and _equal_bytes(now[1], then[1])
        return len(now) == len(then) and (all(map(operator.is_, now, then)) or all(map(same_item, now, then)))


_known: weakref.WeakValueDictionary[tuple, Held] = weakref.WeakValueDictionary()


def held(obj: Any, take: Take) -> Held:
    """What an object holds now. While it is unchanged, all programs that have read it share one copy."""
    found = _known.get((id(obj), take))
    if found is None or found.obj is not obj or not found.same():
        found = _known[id(obj), take] = Held(obj, take)
    return found


def same_item(a: Any, b: Any) -> bool:
    """The same object, or plain numbers or texts of one type and value."""
    if a is b:
        return True
    if type(a) is not type(b) or type(a) not in (bool, int, float, str, bytes, tuple):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(same_item, a, b))
    return a == b if isinstance(a, str | bytes) else number_key(a) == number_key(b)

"""Snapshots of what Python objects hold, by which a launch sees whether they have changed.

What an object holds is compared item by item: numbers and texts by value, other items by identity. Memory is compared
by its bytes. Neither taking nor comparing snapshots runs code of the objects.
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

Reader = Callable[[Any], tuple]  # gives what an object holds

# ------------------------------------------------------------------ objects that hold nothing that can change

ATOMS = frozenset({
    type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented), types.CodeType,
    types.GenericAlias, types.UnionType, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType, np.ufunc})
# Modules whose objects are services of the process (loggers, locks, …) or values that never change.
_SERVICES = frozenset({
    "logging", "threading", "_thread", "asyncio", "concurrent", "multiprocessing", "socket", "subprocess", "re", "abc",
    "_abc", "typing", "datetime", "decimal", "random", "_random", "importlib", "_frozen_importlib",
    "_frozen_importlib_external", "cutile", "jax", "jaxlib"})
# Flags of types.
_HEAP = 1 << 9  # made at run time, as by `class`
_IMMUTABLE = 1 << 8  # Python code cannot change it


def root_of(module: Any) -> str:
    """The top-level name in the name of a module."""
    return str(module).partition(".")[0]


@functools.lru_cache(maxsize=1024)
def is_installed(root: str) -> bool:
    """Whether a top-level module belongs to Python or an installed library, whose code counts as unchanging."""
    if root in sys.stdlib_module_names or root in ("cutile", "numpy", "ml_dtypes"):
        return True
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def is_atom(obj: Any) -> bool:
    """Whether an object need not be compared: nothing that it holds can change, or its state means nothing to static
    code (locks, loggers).
    """
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


def unobservable(obj: Any) -> str | None:
    """The name in messages of an object whose state cannot be read; None for all other objects."""
    cls = type(obj)
    if issubclass(cls, types.GeneratorType) or _has(cls, "__next__") and not _attributes_reader(cls):
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
    if _has(type(obj), name):
        return True
    try:
        return name in object.__getattribute__(obj, "__dict__")  # which runs no code of the class
    except AttributeError:
        return False


def _has(cls: type, name: str) -> bool:
    """Whether instances of a class have an attribute from it. No code of the metaclass runs."""
    return any(name in vars(c) for c in cls.__mro__)


def metadata(obj: Any, name: str) -> Reader | None:
    """The reader of an attribute of an array that does not depend on the elements, such as the shape; None for others.
    """
    if _is_tensor(obj):
        return _layout_of_tensor if name in _OF_TENSORS else None
    return _OF_ARRAYS.get(name) if type(obj) is np.ndarray or _is_on_gpu(obj) else None


_OF_ARRAYS: dict[str, Reader] = {
    "shape": lambda a: a.shape, "strides": lambda a: (a.strides,), "dtype": lambda a: (a.dtype,),
    "ndim": lambda a: (a.ndim,), "size": lambda a: (a.size,), "itemsize": lambda a: (a.itemsize,),
    "nbytes": lambda a: (a.nbytes,)}
_OF_TENSORS = frozenset("""shape size stride dim ndim numel nelement dtype device is_cuda get_device layout itemsize
    nbytes element_size is_contiguous storage_offset requires_grad is_floating_point""".split())


def _layout_of_tensor(t: Any) -> tuple:
    strided = (t.stride(), t.storage_offset()) if t.layout is sys.modules["torch"].strided else ()
    return (tuple(t.shape), t.dtype, str(t.device), t.requires_grad, *strided)


# ------------------------------------------------------------------ what other objects hold


def parts(obj: Any) -> Iterator[Snapshot]:
    """Snapshots of all that an object holds. ValueError for memory that has been released."""
    cls = type(obj)
    if _is_tensor(obj):
        yield snapshot(obj, _tensor)
        return
    # Attributes come first: the referents of an object of C may include its __dict__ once it has been read.
    if (read := _attributes_reader(cls)) is not None:
        yield snapshot(obj, read)
    if issubclass(cls, np.ndarray) and not _array(obj).dtype.hasobject or _is_buffer(cls):
        yield snapshot(obj, _memory)
    else:
        read = next((read for kind, read in _READERS.items() if issubclass(cls, kind)), None)
        if read is not None:
            yield snapshot(obj, read)
        elif _is_of_c(cls):
            yield snapshot(obj, _referents)


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


def _items_of_tuple(t: tuple) -> tuple:
    return tuple(tuple.__iter__(t))


def _members_of_frozenset(s: frozenset) -> tuple:
    return tuple(frozenset.__iter__(s))


def _referents(obj: Any) -> tuple:
    """What an object of a type written in C refers to."""
    return tuple(o for o in gc.get_referents(obj) if o is not type(obj))


def _value_of_variable(v: contextvars.ContextVar) -> tuple:
    try:
        return (v.get(),)
    except LookupError:
        return ()


# The first entry whose class the object belongs to decides.
_READERS: dict[type, Reader] = {
    collections.OrderedDict: _ordered_pairs, collections.defaultdict: _default_pairs, dict: _pairs,
    list: lambda x: tuple(list.__iter__(x)), tuple: _items_of_tuple,
    set: lambda x: tuple(set.__iter__(x)), frozenset: _members_of_frozenset,
    collections.deque: lambda x: tuple(collections.deque.__iter__(x)), np.ndarray: _objects,
    contextvars.ContextVar: _value_of_variable,
    functools._lru_cache_wrapper: lambda x: (),  # its function is followed as an attribute
    weakref.ref: lambda x: (x(),), threading.local: lambda x: _pairs(x.__dict__)}
_OF_CONSTANTS = (_items_of_tuple, _members_of_frozenset)  # what these read of an object stays the same


def _is_of_c(cls: type) -> bool:
    """Whether a class is written in C, or has such a base."""
    return any(not c.__flags__ & _HEAP or c.__flags__ & _IMMUTABLE for c in cls.__mro__ if c is not object)


@functools.lru_cache(maxsize=1024)
def _attributes_reader(cls: type) -> Reader | None:
    """The reader of the attributes that are kept in the instances of a class; None if none are."""
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

SMALL = 1 << 12  # up to so many bytes are copied before they are compared
CHUNK = 1 << 20  # bytes that are compared at once, chosen to fit into a CPU cache


@functools.lru_cache(maxsize=1024)
def _is_buffer(cls: type) -> bool:
    """Whether objects of a class have the buffer protocol, as array.array, bytearray, mmap and ctypes do."""
    if issubclass(cls, np.ndarray | np.generic):
        return issubclass(cls, np.void)
    return any("__buffer__" in vars(c) for c in cls.__mro__) or any(
        f"{c.__module__}.{c.__qualname__}" in _BUFFERS for c in cls.__mro__)


# Classes with the buffer protocol that have no method __buffer__ before Python 3.12.
_BUFFERS = {"builtins.bytearray", "builtins.memoryview", "array.array", "mmap.mmap", "_ctypes.Array",
            "_ctypes.Structure", "_ctypes.Union", "_ctypes._SimpleCData"}


def _memory(obj: Any) -> tuple[tuple, np.ndarray]:
    """The layout of an array or buffer, and its bytes."""
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
    """The layout of a torch tensor, and the bytes of its whole storage."""
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


class Snapshot:
    """`content` is what an object held at some time; `read` returns what it holds now."""

    __slots__ = ("obj", "read", "content", "__weakref__")

    def __init__(self, obj: Any, read: Reader):
        self.obj, self.read = obj, read
        self.content = content = read(obj)
        if read in (_memory, _tensor):
            kind, data = content
            self.content = kind, data.tobytes() if data.size <= SMALL else data.copy()

    def items(self, attribute: str | None) -> Iterator[tuple[Any, str | None]]:
        """The objects in it, each with the attribute that leads to it; `attribute` is for items without an attribute of
        their own.
        """
        if self.read in (_memory, _tensor):
            return iter(())
        slots = getattr(self.read, "slots", None)
        if slots is None:
            return zip(self.content, itertools.repeat(attribute))
        names = self.content[1:1 + (len(self.content) - 1 - len(slots)) // 2]
        return zip(self.content, (None, *itertools.repeat(None, len(names)), *names, *slots), strict=True)

    @property
    def may_change(self) -> bool:
        return self.read not in _OF_CONSTANTS

    def __len__(self) -> int:
        return 1 if self.read in (_memory, _tensor) else len(self.content)

    def same(self) -> bool:
        """Whether the object still holds the same."""
        content = self.content
        try:
            now = self.read(self.obj)
        except Exception:  # memory was released, or another thread changes a dictionary meanwhile
            return False
        if self.read in (_memory, _tensor):
            return now[0] == content[0] and now[1].size == len(content[1]) and _equal_bytes(now[1], content[1])
        return len(now) == len(content) and (all(map(operator.is_, now, content)) or all(map(same_item, now, content)))


_shared: weakref.WeakValueDictionary[tuple, Snapshot] = weakref.WeakValueDictionary()


def snapshot(obj: Any, read: Reader) -> Snapshot:
    """A snapshot of an object. While the object is unchanged, all programs that read it share one snapshot."""
    found = _shared.get((id(obj), read))
    if found is None or found.obj is not obj or not found.same():
        found = _shared[id(obj), read] = Snapshot(obj, read)
    return found


def same_item(a: Any, b: Any) -> bool:
    """Whether two items are the same object, or numbers, strings, bytes or tuples of one type and value. Bools are the
    same if they are equal.
    """
    if a is b:
        return True
    if type(a) is not type(b) or type(a) not in (int, float, str, bytes, tuple):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(same_item, a, b))
    return a == b if isinstance(a, str | bytes) else number_key(a) == number_key(b)

"""Objects of every kind that hold a 1: how static code reads it, and how to make it a 2."""

import abc
import argparse
import array
import collections
import contextvars
import ctypes
import dataclasses
import enum
import functools
import mmap
import operator
import threading
import types
import weakref

import ml_dtypes
import numpy as np

import cutile as ct
from cutile.front import object_state


def reading(f):
    """A kernel that stores the result of a function without parameters."""

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(float(f())))

    return k


def stored(k):
    out = np.zeros(1, np.float32)
    ct.launch(None, (1,), k, (out,))
    return out[0]


class Plain:
    def __init__(self):
        self.n = 1

    def method(self):
        return self.n

    def __call__(self):
        return self.n


class Slotted:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: object = 1


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    n: int = 1


class Color(enum.Enum):
    RED = 1
    TABLE = [1]


class Base(abc.ABC):
    tile = 1
    table = [1]

    def look(self):
        return self.table[0]

    @property
    def first(self):
        return self.table[0]

    @classmethod
    def of_class(cls):
        return cls.table[0]


class Derived(Base):
    class Inner:
        table = [1]


class Asked:
    """An object whose attributes are found by __getattr__."""

    def __init__(self):
        self.space = {"n": 1}

    def __getattr__(self, name):
        return self.space[name]


class ListOfMine(list):
    n = 1


class ArrayOfMine(np.ndarray):
    n = 1


class Structure(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int)]


class Union(ctypes.Union):
    _fields_ = [("n", ctypes.c_int), ("x", ctypes.c_float)]


def memory(size=64):
    m = mmap.mmap(-1, size)
    m[0] = 1
    return m


def nested(x, depth):
    for _ in range(depth):
        x = [x]
    return x


def innermost(x):
    while isinstance(x, list):
        x = x[0]
    return x


def variable():
    v = contextvars.ContextVar("v")
    v.set(1)
    return v


def local():
    x = threading.local()
    x.n = 1
    return x


def without_elements():
    a = np.ones((2, 0))
    a.shape = (1, 0)  # from now on its strides are the same for each number of rows
    return a


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def setting(key, value=2):
    return lambda x: operator.setitem(x, key, value)


def forcing(name):
    return lambda x: object.__setattr__(x, name, 2)


def first(x):
    return x[0]


def n_of(x):
    return x.n


def changed(value):
    return lambda x: setattr(x, "n", value)


two = changed(2)
KINDS = {  # how to make an object, how to read it, how to change it
    "a large array": (lambda: ones(300001), lambda a: a[300000], setting(300000)),
    "a strided array": (lambda: ones(90, 80)[::2, ::3].T, lambda a: a[20, 40], setting((20, 40))),
    "a reversed array": (lambda: ones(5)[::-1], first, setting(0)),
    "an array of rank 0": (lambda: ones(), lambda a: a[()], setting(())),
    "bfloat16": (lambda: ones(9, dtype=ml_dtypes.bfloat16), lambda a: a[7], setting(7)),
    "float8": (lambda: ones(9, dtype=ml_dtypes.float8_e4m3fn), lambda a: a[7], setting(7)),
    "an array of records": (lambda: np.ones(3, [("a", "u1"), ("b", "<f8")]), lambda a: a["b"][2],
                            lambda a: operator.setitem(a["b"], 2, 2)),
    "a record": (lambda: np.ones(1, [("a", "u1"), ("b", "<f8")])[0], lambda a: a["b"], setting("b")),
    "an array of objects": (lambda: np.array([[1], [1, 1]], object), lambda a: a[1][0],
                            lambda a: operator.setitem(a[1], 0, 2)),
    "a read-only view": (lambda: np.broadcast_to(ones(1), (3,)), first, lambda a: operator.setitem(a.base, 0, 2)),
    "a masked array": (lambda: np.ma.masked_array([1.0]), lambda a: a.filled(2)[0], setting(0, np.ma.masked)),
    "an array of a subclass": (lambda: ones(3).view(ArrayOfMine), first, setting(0)),
    "an attribute of an array": (lambda: ones(3).view(ArrayOfMine), n_of, two),
    "the dtype of an array": (lambda: ones(1, dtype=np.int8), lambda a: 1 + (a.dtype.kind == "u"),
                              lambda a: setattr(a, "dtype", np.uint8)),
    "the shape of an array": (lambda: ones(1, 2), lambda a: a.shape[0], lambda a: setattr(a, "shape", (2, 1))),
    "a long list": (lambda: [1] * 30000, lambda x: x[29000], setting(29000)),
    "a long dictionary": (lambda: dict.fromkeys(range(30000), 1), lambda x: x[29000], setting(29000)),
    "a deep list": (lambda: nested([1], 3000), innermost, lambda x: operator.setitem(
        functools.reduce(lambda y, _: y[0], range(3000), x), 0, 2)),
    "deep dictionaries": (lambda: {"a": {"b": {"c": {"d": {"e": 1}}}}}, lambda x: x["a"]["b"]["c"]["d"]["e"],
                          lambda x: x["a"]["b"]["c"]["d"].update(e=2)),
    "the order of a dictionary": (lambda: {1: 0, 2: 0}, lambda x: next(iter(x)),
                                  lambda x: operator.setitem(x, 1, x.pop(1))),
    "array.array": (lambda: array.array("i", [1] * 9), lambda x: x[8], setting(8)),
    "an array.array that grows": (lambda: array.array("i", [1]), sum, lambda x: x.append(1)),
    "a bytearray": (lambda: bytearray(b"\1" * 9000), lambda x: x[8999], setting(8999)),
    "a memoryview": (lambda: memoryview(bytearray(b"\1" * 9))[::2], lambda x: x[2], setting(2)),
    "mapped memory": (memory, first, setting(0)),
    "an array without elements": (without_elements, len, lambda a: setattr(a, "shape", (2, 0))),
    "a union of ctypes": (lambda: Union(1), n_of, two),
    "a number of ctypes": (lambda: ctypes.c_int(1), lambda x: x.value, lambda x: setattr(x, "value", 2)),
    "an array of ctypes": (lambda: (ctypes.c_int * 3)(1, 1, 1), lambda x: x[2], setting(2)),
    "a structure of ctypes": (lambda: Structure(1), n_of, two),
    "a set": (lambda: {1}, max, lambda x: x.add(2)),
    "a deque": (lambda: collections.deque([1] * 2000), lambda x: x[1000], setting(1000)),
    "a defaultdict": (lambda: collections.defaultdict(int, a=1), lambda x: x["a"], setting("a")),
    "an OrderedDict": (lambda: collections.OrderedDict(a=1, b=2), lambda x: next(iter(x.values())),
                       lambda x: x.move_to_end("a")),
    "a ChainMap": (lambda: collections.ChainMap({}, {"a": 1}), lambda x: x["a"], setting("a")),
    "a UserDict": (lambda: collections.UserDict(a=1), lambda x: x["a"], setting("a")),
    "a namedtuple": (lambda: collections.namedtuple("P", "n")([1]), lambda x: x.n[0],
                     lambda x: operator.setitem(x.n, 0, 2)),
    "a proxy of a dictionary": (lambda: types.MappingProxyType({"a": 1}), lambda x: x["a"],
                                lambda x: operator.setitem(object_state._referents(x)[0], "a", 2)),
    "a view of a dictionary": (lambda: {"a": 1}.values(), lambda x: next(iter(x)),
                               lambda x: operator.setitem(object_state._referents(x)[0], "a", 2)),
    "SimpleNamespace": (lambda: types.SimpleNamespace(n=1), n_of, two),
    "argparse.Namespace": (lambda: argparse.Namespace(n=1), n_of, two),
    "a ContextVar": (variable, lambda v: v.get(), lambda v: v.set(2)),
    "what a thread has": (local, n_of, two),
    "a weak reference": (lambda: weakref.ref(KEPT), lambda r: r().n, lambda r: setattr(r(), "n", 2)),
    "keywords of a partial": (lambda: functools.partial(lambda n: n, n=1), lambda f: f(),
                              lambda f: f.keywords.update(n=2)),
    "an argument of a partial": (lambda: functools.partial(max, [1]), lambda f: f(), lambda f: f.args[0].append(2)),
    "a method of a list": (lambda: [1].__getitem__, lambda f: f(0), lambda f: operator.setitem(f.__self__, 0, 2)),
    "a method": (lambda: Plain().method, lambda f: f(), lambda f: setattr(f.__self__, "n", 2)),
    "an attribute": (Plain, n_of, two),
    "an attribute asked for by text": (Plain, lambda x: getattr(x, "n"), two),
    "an object that is called": (Plain, lambda x: x(), two),
    "a slot": (Slotted, n_of, two),
    "a frozen dataclass": (Frozen, n_of, forcing("n")),
    "a frozen dataclass with slots": (FrozenSlots, n_of, forcing("n")),
    "a frozen dataclass in another": (lambda: Frozen(Frozen()), lambda x: x.n.n, lambda x: forcing("n")(x.n)),
    "the value of an enum member": (lambda: Color.TABLE, lambda x: x.value[0], lambda x: operator.setitem(x.value, 0, 2)),
    "an attribute of the class": (Derived, lambda x: x.tile, lambda x: setattr(Derived, "tile", 2)),
    "an attribute that comes to hide the class's": (Derived, lambda x: x.tile, lambda x: setattr(x, "tile", 2)),
    "an attribute of the class by text": (Derived, lambda x: getattr(x, "tile"),
                                          lambda x: setattr(Base, "tile", 2)),
    "a table of the class": (Derived, lambda x: x.look(), lambda x: operator.setitem(x.table, 0, 2)),
    "a property": (Derived, lambda x: x.first, lambda x: operator.setitem(x.table, 0, 2)),
    "a class method": (Derived, lambda x: x.of_class(), lambda x: operator.setitem(x.table, 0, 2)),
    "a nested class": (Derived, lambda x: x.Inner.table[0], lambda x: operator.setitem(x.Inner.table, 0, 2)),
    "what __getattr__ finds": (Asked, n_of, lambda x: x.space.update(n=2)),
    "an attribute of a list of mine": (ListOfMine, n_of, two),
    "a list in a set's frozen object": (lambda: {Frozen((1,))}, lambda x: next(iter(x)).n[0],
                                        lambda x: object.__setattr__(next(iter(x)), "n", (2,))),
    "a function in a dictionary": (lambda: {"f": lambda t=[1]: t[0]}, lambda x: x["f"](),
                                   lambda x: operator.setitem(x["f"].__defaults__[0], 0, 2)),
    "a cached function": (lambda: functools.lru_cache(lambda t=[1]: t[0]), lambda f: f(),
                          lambda f: (operator.setitem(f.__wrapped__.__defaults__[0], 0, 2), f.cache_clear())),
    "a ring": (lambda: RING, lambda x: x[1][1][0], setting(0)),
}
KEPT = Plain()
RING: list = [1]
RING.append(RING)

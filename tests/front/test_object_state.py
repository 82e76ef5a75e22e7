"""Objects that static code may reach, of any size and depth: a launch sees their changes, or they are refused."""

import _abc
import abc
import argparse
import array
import asyncio
import collections
import concurrent.futures
import contextvars
import ctypes
import dataclasses
import datetime
import decimal
import enum
import functools
import importlib.util
import itertools
import logging
import mmap
import multiprocessing
import operator
import random
import re
import socket
import subprocess
import sys
import threading
import types
import typing
import weakref

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.front import dependencies, object_state
from tests.front.compiling import cell
from tests.gpu.arrays import at

kernels = sys.modules["cutile.runtime.kernel"]  # cutile.runtime.kernel itself is the decorator


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


@pytest.fixture
def typings(monkeypatch):
    """The kernels that are typed during a test."""
    seen = []
    typed = kernels.typed
    monkeypatch.setattr(kernels, "typed", lambda k, arg_types: seen.append(k) or typed(k, arg_types))
    return seen


# -------------------------------------------------------- objects that hold a 1, how to read it, how to make it 2


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


@pytest.fixture(autouse=True)
def as_before():
    yield
    RING[0] = KEPT.n = Base.tile = Base.table[0] = Derived.Inner.table[0] = Color.TABLE.value[0] = 1
    if "tile" in vars(Derived):
        del Derived.tile


@pytest.mark.parametrize("name", KINDS)
def test_a_change_counts_at_the_next_launch(name, typings):
    make, read, change = KINDS[name]
    held = make()
    k = reading(lambda: read(held))
    assert stored(k) == stored(k) == 1 and len(typings) == 1
    change(held)
    assert stored(k) == stored(k) == 2 and len(typings) == 2


@pytest.mark.parametrize("then, now", [(np.nan, -np.nan), (0.0, -0.0), (np.nan, 1.0)])
@pytest.mark.parametrize("make", [lambda x: np.array([x]), lambda x: [x], lambda x: array.array("d", [x])])
def test_numbers_are_compared_to_the_last_bit(make, then, now):
    held = make(then)
    k = reading(lambda: np.copysign(1, held[0]) * (3 if held[0] != held[0] else 1))
    stored(k)
    held[0] = now
    assert stored(k) == np.copysign(1, now) * (3 if now != now else 1)


def test_equal_contents_are_no_change(typings):
    held = [1.5, float("nan"), 10**30, "ab", np.ones(3), {"a": (1, 2)}]
    k = reading(lambda: len(held))
    stored(k)
    held[:4] = [float("1.5"), float("nan"), int("1" + "0" * 30), "".join(["a", "b"])]
    held[4][:] = 1
    assert stored(k) == 6 and len(typings) == 1
    held[0] = 1
    assert stored(k) == 6 and len(typings) == 2


@pytest.mark.parametrize("size", [object_state.SMALL - 1, object_state.SMALL + 1, object_state.CHUNK * 2 + 8, object_state.CHUNK * 2 + 9])
@pytest.mark.parametrize("place", [0, -1])
def test_each_byte_of_memory_counts(size, place):
    a = np.zeros(size, np.uint8)
    held = object_state.snapshot(a, object_state._memory)
    assert held.same()
    a[place] = 1
    assert not held.same()


def test_programs_share_what_they_compare_with():
    table = np.zeros(10**6)

    @ct.kernel
    def k(out, n: ct.Constant):
        ct.store(out, 0, n + ct.static_eval(int(table[5])))

    for n in range(4):
        ct.launch(None, (1,), k, (np.zeros(1), n))
    copies = {id(h) for p in k._programs.values() for h in p.dependencies._snapshots.values() if h.obj is table}
    assert len(copies) == 1


# ------------------------------------------------------------------ objects in tile code


def test_records_that_were_changed_by_force():
    pair = (Frozen(1), Frozen(Frozen(1)))

    def helper(*, p=pair[1]):
        return p.n.n

    @ct.kernel
    def k(out):
        ct.store(out, 0, pair[0].n * 10 + helper())

    assert stored(k) == 11
    object.__setattr__(pair[0], "n", 2)
    assert stored(k) == 21
    object.__setattr__(pair[1].n, "n", 3)
    assert stored(k) == 23


def test_members_of_enumerations_that_were_changed_by_force():
    class Level(enum.Enum):
        LOW = 1

    @ct.kernel
    def k(out):
        ct.store(out, 0, Level.LOW.value)

    assert stored(k) == 1
    Level.LOW._value_ = 2
    assert stored(k) == 2


TABLE = [1]


def look():
    return TABLE[0]


@dataclasses.dataclass(frozen=True)
class Scaled:
    n: int

    def value(self):
        return self.n * TABLE[0]


def test_what_static_code_reads_by_a_variable_of_the_kernel(monkeypatch):
    called, scaled = Plain(), Scaled(1)

    @ct.kernel
    def k(out):
        f, c, s = look, called, scaled
        ct.store(out, 0, ct.static_eval(f() * 100 + c.n * 10 + s.value()))

    assert stored(k) == 111
    called.n = 2
    assert stored(k) == 121
    monkeypatch.setattr(sys.modules[__name__], "TABLE", [3])
    assert stored(k) == 323
    TABLE[0] = 4
    assert stored(k) == 424


def test_modules_that_functions_import(monkeypatch):
    module = types.ModuleType("some_module_of_mine")
    module.n, module.table = 1, [1]
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def importing():
        import some_module_of_mine as m
        from some_module_of_mine import table
        return m.n * 10 + table[0]

    k = reading(importing)
    assert stored(k) == 11
    module.n = 2
    assert stored(k) == 21
    module.table[0] = 3
    assert stored(k) == 23


# ------------------------------------------------------------------ objects that are not compared


class Holding:
    """An object with many attributes that static code does not read."""

    def __init__(self):
        self.n = 1
        self.lines = open(__file__)
        self.places = iter([1])
        self.on_gpu = [at(4096, (4,))]
        self.lock, self.log, self.many = threading.Lock(), logging.getLogger(__name__), [0] * (dependencies.LIMIT + 1)

    def tile(self):
        return self.n

    def place(self):
        return next(self.places)


def test_an_attribute_alone_looks_at_nothing_else(typings):
    held = Holding()

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(held.n))

    assert stored(k) == 1
    held.many[5] = 1
    assert stored(k) == 1 and len(typings) == 1
    held.n = 2
    assert stored(k) == 2
    held.lines.close()


def test_what_no_code_mentions_need_not_be_comparable():
    held = Holding()
    held.many = None
    k = reading(lambda: held.tile())
    assert stored(k) == 1
    held.n = 2
    assert stored(k) == 2
    with pytest.raises(ct.TileStaticEvalError, match="an iterator through `held.places`"):
        stored(reading(lambda: held.place()))
    held.lines.close()


def test_the_shape_of_an_array_on_a_gpu():
    held = at(4096, (4,))
    held.shape = (3, 4)
    k = reading(lambda: held.shape[0])
    assert stored(k) == 3
    held.shape = (5, 4)
    assert stored(k) == 5


def test_elements_of_an_array_whose_shape_is_read_are_not_compared(typings):
    table = np.zeros((3, 4))
    k = reading(lambda: table.shape[0] + table.ndim + table.dtype.itemsize)
    assert stored(k) == 13
    table[:] = 1
    assert stored(k) == 13 and len(typings) == 1


def of_module(name):
    """An object of a class that says it is of this module."""
    return type("Some", (), {"__module__": name, "__slots__": ("n",)})()


@dataclasses.dataclass
class Sample:
    a: int = 0


SERVICES = {  # of each module whose objects count as unchanging
    "logging": logging.getLogger(__name__), "threading": threading.Event(), "_thread": threading.Lock(),
    "asyncio": asyncio.Event(), "concurrent": concurrent.futures.Future(),
    "multiprocessing": multiprocessing.get_context(), "socket": socket.AF_INET,
    "subprocess": subprocess.CompletedProcess([], 0), "re": re.compile("a"), "abc": abc.ABC(),
    "_abc": _abc._get_dump(abc.ABC) and vars(abc.ABC)["_abc_impl"], "typing": typing.TypeVar("T"),
    "datetime": datetime.date(2000, 1, 1), "decimal": decimal.Decimal(1), "random": random.Random(),
    "_random": __import__("_random").Random(), "importlib": importlib.util.LazyLoader, "cutile": ct.kernel(lambda: None),
    "_frozen_importlib": object_state.__spec__, "_frozen_importlib_external": importlib.machinery.SourceFileLoader("m", "m.py"),
    "jax": of_module("jax.numpy"), "jaxlib": of_module("jaxlib")}
ATOMS = [None, True, 1, 1.0, 1j, "", b"", range(2), ..., NotImplemented, of_module.__code__, list[int], int | str,
         int.__add__, str.join, dict.__dict__["fromkeys"], types.FunctionType.__code__, Slotted.n, np.add]


@pytest.mark.parametrize("root", SERVICES)
def test_services_of_the_process_are_not_compared(root):
    held = SERVICES[root]
    if isinstance(held, type):
        held = held.__new__(held)
    assert type(held).__module__.partition(".")[0] == root
    assert object_state.is_atom(held)


@pytest.mark.parametrize("held", ATOMS, ids=lambda x: type(x).__name__)
def test_objects_that_cannot_change_are_not_compared(held):
    assert object_state.is_atom(held)


def test_there_is_a_sample_of_each_kind_that_cannot_change():
    assert {type(x) for x in ATOMS} == object_state.ATOMS and SERVICES.keys() == object_state._SERVICES


@pytest.mark.parametrize("held", [Sample(), of_module("my.jax"), [1], threading.local(), Sample, asyncio.Event, {1}])
def test_other_objects_are_compared(held):
    assert not object_state.is_atom(held)


METADATA = {"shape": (2, 3), "strides": ((24, 8),), "dtype": (np.dtype(float),), "ndim": (2,), "size": (6,),
            "itemsize": (8,), "nbytes": (48,)}


@pytest.mark.parametrize("name", [*METADATA, "T"])
def test_metadata_of_arrays(name):
    read = object_state.metadata(np.ones((2, 3)), name)
    assert (read and read(np.ones((2, 3)))) == METADATA.get(name)


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    for held in (torch.float32, torch.device("cpu"), torch.strided):
        assert object_state.is_atom(held)
    assert not object_state.is_atom(torch.ones(2))
    numbers = torch.tensor([1.0, 2.0, 3.0])
    held = numbers[:2]
    k = reading(lambda: held.tolist()[0])
    assert stored(k) == 1
    held.set_(numbers.untyped_storage(), 1, (2,), (1,))
    assert stored(k) == 2


@pytest.mark.parametrize("held, says", [
    (iter([1, 2]), "an iterator"), ((i for i in (1, 2)), "an iterator"), (itertools.count(), "an iterator"),
    ([1, {"a": (iter(()),)}], "an iterator"), (at(4096, (4,)), "an array in GPU memory"),
    ([0] * (dependencies.LIMIT + 1), "more than 100,000 objects"), (nested([0] * 100, 100_000), "more than 100,000 objects")],
    ids=["list", "generator", "count", "inside", "gpu", "long", "deep"])
def test_what_is_refused(held, says):
    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(len(str(type(held)))))

    with pytest.raises(ct.TileStaticEvalError, match=f"(?s)static code reads {says}.* `held`.*static_eval.*help:") as e:
        stored(k)
    assert e.value.loc.function == "k"


def test_memory_that_was_given_back():
    view = memoryview(bytearray(8))
    k = reading(lambda: view[0])
    stored(k)
    view.release()
    with pytest.raises(ct.TileStaticEvalError, match="type memoryview that cannot be looked at"):
        stored(k)


def test_installed_libraries_stay_as_they_are(typings):
    k = reading(lambda: np.sum(np.ones(3)) + len(logging.getLevelName(10)) + dataclasses.replace(Frozen(1), n=2).n)
    assert stored(k) == stored(k) == 10 and len(typings) == 1


def test_methods_of_dataclasses_that_were_replaced(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int = 1

        def __post_init__(self):
            ct.static_assert(self.x > 0)

        def __call__(self):
            return self.x

    @ct.kernel
    def k(out):
        ct.store(out, 0, Point()())

    assert stored(k) == 1
    monkeypatch.setattr(Point, "__call__", lambda self: self.x + 1)
    assert stored(k) == 2
    monkeypatch.setattr(Point.__dataclass_fields__["x"], "default", 5)
    assert stored(k) == 6
    monkeypatch.setattr(Point, "__post_init__", lambda self: ct.static_assert(self.x < 5))
    with pytest.raises(ct.TileStaticAssertionError):
        stored(k)


def test_a_context_manager_that_was_replaced():
    space = cell("""
        import contextlib
        @contextlib.contextmanager
        def one(): yield 1
        @contextlib.contextmanager
        def two(): yield 2
        @ct.kernel
        def k(out):
            with one() as n:
                ct.store(out, 0, n)
    """)
    assert stored(space["k"]) == 1
    space["one"].__wrapped__ = space["two"].__wrapped__
    assert stored(space["k"]) == 2

"""Which values are compile-time constants, and which parameters need one."""

import array
import collections
import contextvars
import ctypes
import dataclasses
import enum
import functools
import math
import mmap
import threading
import types
import weakref

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, refuses, run
from conformance.harness.tile_code import body, rejects, takes
from conformance.harness.type_probes import constant_is, static

FOUR, TEXT, NESTED, HALF = 4, "text", (1, (2, "a")), 0.5


class Color(enum.Enum):
    RED = "red"


def tile():
    return ct.zeros((2, 8), ct.float16)


@pytest.mark.parametrize("f, value, dtype", [
    pytest.param(lambda: 3, 3, "int32", marks=clause("CONST-1.literal")),
    pytest.param(lambda: FOUR, 4, "int32", marks=clause("CONST-1.global")),
    pytest.param(lambda: HALF, 0.5, "float32", marks=clause("CONST-1.global")),
    pytest.param(lambda: NESTED[1][0], 2, "int32", marks=clause("CONST-1.global")),
    pytest.param(lambda: tile().shape[1], 8, "int32", marks=clause("CONST-1.attribute")),
    pytest.param(lambda: tile().ndim, 2, "int32", marks=clause("CONST-1.attribute")),
    pytest.param(lambda: tile().dtype == ct.float16, True, "bool_", marks=clause("CONST-1.attribute")),
    pytest.param(lambda: (FOUR * 3 - 2) // 3, 3, "int32", marks=clause("CONST-1.fold")),
    pytest.param(lambda: ct.maximum(FOUR, 9), 9, "int32", marks=clause("CONST-1.fold")),
    pytest.param(lambda: len(NESTED) + len(()), 2, "int32", marks=clause("CONST-1.len")),
    pytest.param(lambda: TEXT + "a" == "texta", True, "bool_", marks=clause("CONST-1.string"))])
def test_sources(f, value, dtype):
    constant_is(f, value, dtype)


@clause("CONST-1.closure", "CONST-1.string")
def test_variables_of_enclosing_functions():
    size, text, color = 8, "b", Color.RED
    assert static(lambda: (ct.zeros((size,), ct.int8).shape, text + TEXT, color)) == ((8,), "btext", Color.RED)


@clause("CONST-1.parameter")
def test_constant_parameters():
    @ct.kernel
    def k(n: ct.Constant, out):
        ct.store(out, 0, ct.sum(ct.ones((n * 2,), ct.int32)))

    assert run(k, 4, np.zeros(1, np.int32)).tolist() == [8]


@clause("CONST-2")
def test_constants_in_variables():
    takes(body("a = 2\nb = a * 2\nc, d = b, (b, a)\nct.zeros((c, d[1]), ct.int8)"), 1)
    takes(body("a = 2\nif n > 0:\n    b = a\n    ct.zeros((b,), ct.int8)"), 1)
    takes(body("a = 2\nfor i in range(n):\n    b = a + 2\n    ct.zeros((b,), ct.int8)"), 1)
    rejects("TileTypeError", body("a = n\nct.zeros((a,), ct.int8)"), 2)


def i4():
    return ct.zeros((4, 4), ct.int32)


NEEDED = {
    "CONST-3.axis": (lambda n: ct.sum(i4(), n), lambda n: ct.bid(n), lambda n: ct.cat((i4(), i4()), n)),
    "CONST-3.shape": (lambda n: ct.zeros((n,), ct.int8), lambda n: ct.reshape(i4(), (n, 4)),
                      lambda n: ct.broadcast_to(i4(), (n, 4, 4))),
    "CONST-3.dtype": (lambda n: ct.zeros((2,), n), lambda n: i4().astype(n)),
    "CONST-3.keepdims": (lambda n: ct.sum(i4(), 0, keepdims=n > 0), lambda n: ct.max(i4(), 0, keepdims=n > 0)),
    "CONST-3.reverse": (lambda n: ct.cumsum(i4(), 0, reverse=n > 0),),
}
ARRAYS = {
    "CONST-3.shape": (lambda a, n: ct.load(a, 0, n),),
    "CONST-3.order": (lambda a, n: ct.load(a, 0, 2, order=n),),
    "CONST-3.check_bounds": (lambda a, n: ct.gather(a, 0, check_bounds=n > 0),
                             lambda a, n: ct.scatter(a, 0, 1, check_bounds=n > 0)),
    "CONST-3.latency": (lambda a, n: ct.load(a, 0, 2, latency=n), lambda a, n: ct.store(a, 0, 1, latency=n)),
}


def each(table):
    return [pytest.param(f, marks=clause(i), id=f"{i}{k}") for i, fs in table.items() for k, f in enumerate(fs)]


@pytest.mark.parametrize("f", each(NEEDED))
def test_parameters_that_need_constants(f):
    rejects("TileTypeError", f, 1)


@pytest.mark.parametrize("f", each(ARRAYS))
def test_parameters_of_memory_operations(f):
    @ct.kernel
    def k(a, n):
        f(a, n)

    refuses("TileTypeError", k, np.zeros(4, np.int32), 1)


@clause("CONST-3.text")
def test_text():
    rejects("TileTypeError", lambda n: ct.sum(i4(), n), 1, match="constant")
    rejects("TileTypeError", lambda n: ct.zeros((n,), ct.int8), 1, match="constant")
    rejects("TileTypeError", lambda n: ct.sum(i4(), 0, keepdims=n > 0), 1, match="constant")


@clause("CONST-3.bool")
@pytest.mark.parametrize("bad", [1, 0, None, "True", 1.0])
def test_bool_parameters(bad):
    rejects("TileTypeError", lambda: ct.sum(i4(), 0, keepdims=bad))
    rejects("TileTypeError", lambda: ct.cumsum(i4(), 0, reverse=bad))


@clause("CONST-3.int", "CONST-3.int.dtype")
def test_int_parameters():
    for bad in (True, 1.0, "1"):
        rejects("TileTypeError", lambda bad=bad: ct.sum(i4(), bad))
        rejects("TileTypeError", lambda bad=bad: ct.bid(bad))
        rejects("TileTypeError", lambda bad=bad: ct.zeros((bad,), ct.int8))
    for good in (ct.int8, ct.int16, ct.int64, ct.uint8, ct.uint64):
        takes(lambda good=good: ct.sum(ct.zeros((good(2), 4), ct.int8), good(1)))


def stored(k):
    return run(k, np.zeros(1, np.int32))[0]


@clause("CONST-4.variable")
def test_captured_variables_that_change():
    value = 3

    @ct.kernel
    def k(out):
        ct.store(out, 0, value)

    assert stored(k) == 3
    value = 8
    assert stored(k) == 8
    accepts(k, np.zeros(1, np.int32))


NUMBER = 3


def number():
    return 3


class Numbers:
    number = 3


MODULE = types.ModuleType("numbers of a test")
MODULE.number, MODULE.inner = 3, Numbers()


# What is read of the world, as in a kernel; who holds it, by which name it is there, and what takes its place.
PLACES = {
    "a global": (lambda: NUMBER, globals(), "NUMBER", 8),
    "a function": (lambda: number(), globals(), "number", lambda: 8),
    "an attribute of a module": (lambda: MODULE.number, vars(MODULE), "number", 8),
    "an attribute of an object": (lambda: ct.static_eval(MODULE.inner.number), MODULE.inner, "number", 8),
    "an attribute of a class": (lambda: Numbers.number, Numbers, "number", 8),
    "a global that hides a builtin": (lambda: max(2, 3), globals(), "max", lambda x, y: 8),
}


@clause("CONST-4.variable")
@pytest.mark.parametrize("place", PLACES)
def test_what_a_kernel_finds_by_name(place, monkeypatch):
    """Launches before and after a change repeat, as an implementation may keep what repeats."""
    read, holder, name, other = PLACES[place]

    @ct.kernel
    def k(out):
        ct.store(out, 0, read())

    for value in 3, 8, 3:
        with monkeypatch.context() as changed:
            if value == 8 and isinstance(holder, dict):
                changed.setitem(holder, name, other)
            elif value == 8:
                changed.setattr(holder, name, other)
            assert [stored(k) for _ in range(4)] == [value] * 4


@dataclasses.dataclass(frozen=True)
class Point:
    x: int


@clause("CONST-4.field")
def test_captured_fields_that_change():
    p = (Point(3),)

    @ct.kernel
    def k(out):
        ct.store(out, 0, p[0].x)

    assert stored(k) == 3
    object.__setattr__(p[0], "x", 8)
    assert stored(k) == 8
    accepts(k, np.zeros(1, np.int32))


@clause("CONST-4.contents")
@pytest.mark.parametrize("held, change", [
    (np.zeros(100000, np.int32), lambda x: x.__setitem__(99990, 8)),
    (np.zeros((300, 400), np.int16).T, lambda x: x.__setitem__((390, 290), 8)),
    ([0] * 20000, lambda x: x.__setitem__(19990, 8)),
    (dict.fromkeys(range(20000), 0), lambda x: x.__setitem__(19990, 8)),
    ([[[[[[[{"a": ([0],)}]]]]]]], lambda x: x[0][0][0][0][0][0][0]["a"][0].__setitem__(0, 8)),
], ids=["array", "transposed", "list", "dictionary", "nested"])
def test_captured_contents_that_change(held, change):
    def largest(x):
        if isinstance(x, np.ndarray):
            return int(x.max())
        items = x.values() if isinstance(x, dict) else x
        return x if isinstance(x, int) else max(map(largest, items))

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(largest(held)))

    assert stored(k) == 0
    change(held)
    assert stored(k) == 8
    accepts(k, np.zeros(1, np.int32))


class Slots:
    __slots__ = ("_hidden", "number")


class Fields(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("number", ctypes.c_int)]


class Listed(list):
    pass


def slots_of(number):
    x = Slots()
    x.number = number
    return x


def mapped(size):
    m = mmap.mmap(-1, size)
    m[:] = bytes(size)
    return m


class Number:
    number = 0


class Counted(dict):
    number = 0


def local_of(number):
    x = threading.local()
    x.number = number
    return x


REFERRED = Number()
VARIABLE = contextvars.ContextVar("number", default=0)
HOLDERS = {  # what is held, how to read a number from it, how to change that number to 8
    "list": (lambda: [0, 0, 0], max, lambda x: x.__setitem__(1, 8)),
    "own list": (lambda: Listed([0, 0]), max, lambda x: x.__setitem__(1, 8)),
    "tuple of lists": (lambda: (0, [0]), lambda x: x[1][0], lambda x: x[1].__setitem__(0, 8)),
    "equal numbers of other types": (lambda: [0, 8], lambda x: 0 if type(x[1]) is int else 8,
                                     lambda x: x.__setitem__(1, 8.0)),
    "signs of zeros": (lambda: [0.0], lambda x: 0 if math.copysign(1, x[0]) > 0 else 8,
                       lambda x: x.__setitem__(0, -0.0)),
    "tuples in a list": (lambda: [(1, 2), (3, (4, 0))], lambda x: x[1][1][1],
                         lambda x: x.__setitem__(1, (3, (4, 8)))),
    "shorter tuples in a list": (lambda: [(0, 0)], lambda x: 8 if len(x[0]) == 1 else 0,
                                 lambda x: x.__setitem__(0, (0,))),
    "dictionary": (lambda: {"a": 0}, lambda x: max(x.values()), lambda x: x.__setitem__("b", 8)),
    "keys": (lambda: {0: 0}, max, lambda x: x.__setitem__(8, 0)),
    "set": (lambda: {0}, max, lambda x: x.add(8)),
    "objects of a set": (lambda: {Number()}, lambda x: max(n.number for n in x),
                         lambda x: setattr(next(iter(x)), "number", 8)),
    "objects of a frozenset": (lambda: frozenset([Number()]), lambda x: max(n.number for n in x),
                               lambda x: setattr(next(iter(x)), "number", 8)),
    "OrderedDict": (lambda: collections.OrderedDict(a=0), lambda x: x["a"], lambda x: x.__setitem__("a", 8)),
    "order of an OrderedDict": (lambda: collections.OrderedDict(a=8, b=0), lambda x: list(x.values())[-1],
                                lambda x: x.move_to_end("a")),
    "order of a dictionary": (lambda: {"a": 8, "b": 0}, lambda x: list(x.values())[-1],
                              lambda x: x.__setitem__("a", x.pop("a"))),
    "defaultdict": (lambda: collections.defaultdict(int, a=0), lambda x: max(x.values()),
                    lambda x: x.__setitem__("b", 8)),
    "default of a defaultdict": (lambda: collections.defaultdict(int), lambda x: x.default_factory() and 8,
                                 lambda x: setattr(x, "default_factory", lambda: 8)),
    "attribute of a dictionary": (Counted, lambda x: x.number, lambda x: setattr(x, "number", 8)),
    "attribute of a class": (lambda: type("Own", (), {"number": 0}), lambda x: x.number,
                             lambda x: setattr(x, "number", 8)),
    "attribute of a base": (lambda: type("Own", (type("Base", (), {"number": 0}),), {})(), lambda x: x.number,
                            lambda x: setattr(type(x).__mro__[1], "number", 8)),
    "property": (lambda: type("Own", (), {"number": property(lambda self: self.held[0]), "held": [0]})(),
                 lambda x: x.number, lambda x: x.held.__setitem__(0, 8)),
    "method": (lambda: type("Own", (), {"of": lambda self: self.number, "number": 0})(), lambda x: x.of(),
               lambda x: setattr(x, "number", 8)),
    "default argument": (lambda: lambda held=[0]: held[0], lambda x: x(),
                         lambda x: x.__defaults__[0].__setitem__(0, 8)),
    "weak reference": (lambda: weakref.ref(REFERRED), lambda x: x().number, lambda x: setattr(x(), "number", 8)),
    "threading.local": (lambda: local_of(0), lambda x: x.number, lambda x: setattr(x, "number", 8)),
    "array of objects": (lambda: np.array([0, [0]], object), lambda x: x[1][0], lambda x: x[1].__setitem__(0, 8)),
    "record with objects": (lambda: np.array([(1, [0])], "i4,O"), lambda x: x[0][1][0],
                            lambda x: x[0][1].__setitem__(0, 8)),
    "number of a record with objects": (lambda: np.array([(0, None)], "i4,O"), lambda x: int(x["f0"][0]),
                                        lambda x: x["f0"].__setitem__(0, 8)),
    "shape of an array of objects": (lambda: np.array([0, 0, 0, 0], object), lambda x: 0 if x.ndim == 1 else 8,
                                     lambda x: setattr(x, "shape", (2, 2))),
    "deque": (lambda: collections.deque([0, 0]), max, lambda x: x.appendleft(8)),
    "counter": (lambda: collections.Counter("abc"), lambda x: x["d"], lambda x: x.update({"d": 8})),
    "array.array": (lambda: array.array("i", [0] * 5), max, lambda x: x.__setitem__(3, 8)),
    "bytearray": (lambda: bytearray(9), max, lambda x: x.__setitem__(8, 8)),
    "memoryview": (lambda: memoryview(bytearray(9))[::2], max, lambda x: x.__setitem__(2, 8)),
    "mmap": (lambda: mapped(5000), lambda x: x[4999], lambda x: x.__setitem__(4999, 8)),
    "ctypes.Structure": (Fields, lambda x: x.number, lambda x: setattr(x, "number", 8)),
    "ctypes.Array": (ctypes.c_int * 3, lambda x: x[2], lambda x: x.__setitem__(2, 8)),
    "ctypes.c_int": (ctypes.c_int, lambda x: x.value, lambda x: setattr(x, "value", 8)),
    "slots": (lambda: slots_of(0), lambda x: x.number, lambda x: setattr(x, "number", 8)),
    "attributes": (lambda: types.SimpleNamespace(a=types.SimpleNamespace(number=0)), lambda x: x.a.number,
                   lambda x: setattr(x.a, "number", 8)),
    "ContextVar": (lambda: VARIABLE, lambda x: x.get(), lambda x: x.set(8)),
    "partial": (lambda: functools.partial(max, [0, 0]), lambda x: x(), lambda x: x.args[0].append(8)),
    "array": (lambda: np.zeros((3, 4), np.int32), lambda x: int(x.max()), lambda x: x.__setitem__((2, 3), 8)),
    "array of columns": (lambda: np.zeros((3, 4), np.int32, order="F"), lambda x: int(x[2, 3]),
                         lambda x: x.__setitem__((2, 3), 8)),
    "strided array": (lambda: np.zeros((9, 9), np.int16)[::2, 1::3], lambda x: int(x[-1, -1]),
                      lambda x: x.__setitem__((-1, -1), 8)),
    "large array": (lambda: np.zeros(3 << 20, np.uint8), lambda x: int(x.max()), lambda x: x.__setitem__(-1, 8)),
    "large odd array": (lambda: np.zeros((3 << 20) + 1, np.uint8), lambda x: int(x.max()),
                        lambda x: x.__setitem__(1 << 20, 8)),
    "shape": (lambda: np.zeros(8, np.int8), lambda x: 0 if x.ndim == 1 else 8, lambda x: setattr(x, "shape", (2, 4))),
    "dtype": (lambda: np.zeros(8, np.int8), lambda x: 0 if x.dtype == np.int8 else 8,
              lambda x: setattr(x, "dtype", np.uint8)),
    "writeable": (lambda: np.zeros(8, np.int8), lambda x: 0 if x.flags.writeable else 8,
                  lambda x: setattr(x.flags, "writeable", False)),
    "record": (lambda: np.zeros(2, "i4,i4")[0], lambda x: int(x[1]), lambda x: x.__setitem__(1, 8)),
}


@clause("CONST-4.contents")
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("name", HOLDERS)
def test_what_captured_objects_hold(name):
    make, read, change = HOLDERS[name]
    held = make()

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(read(held)))

    assert stored(k) == 0
    assert stored(k) == 0
    change(held)
    assert stored(k) == 8
    accepts(k, np.zeros(1, np.int32))


@clause("CONST-4.contents")
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("read, change", [
    (lambda a: a.shape, lambda a: setattr(a, "shape", (2, 4))),
    (lambda a: a.ndim, lambda a: setattr(a, "shape", (2, 4))),
    (lambda a: a.strides, lambda a: setattr(a, "shape", (2, 4))),
    (lambda a: a.dtype, lambda a: setattr(a, "dtype", np.uint16)),
    (lambda a: a.itemsize, lambda a: setattr(a, "dtype", np.int32)),
    (lambda a: a.size, lambda a: setattr(a, "dtype", np.int32)),
    (lambda a: a.nbytes, lambda a: a.resize(4, refcheck=False)),
], ids=["shape", "ndim", "strides", "dtype", "itemsize", "size", "nbytes"])
def test_what_is_read_of_captured_arrays(read, change):
    """One attribute, which does not depend on the elements."""
    held = np.zeros(8, np.int16)
    first = read(held)

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(0 if read(held) == first else 8))

    assert stored(k) == 0
    change(held)
    assert stored(k) == 8


@clause("CONST-4.contents")
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("change", [
    lambda a: a.__setitem__((1, 2), 8), lambda a: setattr(a, "dtype", np.uint32),
    lambda a: setattr(a, "shape", (4, 2)), lambda a: setattr(a, "strides", (4, 4)),
    lambda a: setattr(a.flags, "writeable", False),
], ids=["value", "dtype", "shape", "strides", "writeable"])
def test_captured_arrays_whose_layout_changes(change):
    """The bytes stay where they are, in all but the first."""
    held = np.zeros((2, 4), np.int32)

    def seen(a):
        return 8 if a.max() or (a.dtype, a.shape, a.strides, a.flags.writeable) != (
            np.int32, (2, 4), (16, 4), True) else 0

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(seen(held)))

    assert stored(k) == 0
    assert stored(k) == 0
    change(held)
    assert stored(k) == 8


@clause("CONST-4.contents")
@pytest.mark.parametrize("change", [
    lambda t: t.__setitem__(5, 8), lambda t: setattr(t, "data", t.data.double()),
    lambda t: setattr(t, "data", t.data.reshape(2, 4)), lambda t: setattr(t, "data", t.data.flip(0)[::2]),
    lambda t: setattr(t, "data", t.data[1:]), lambda t: t.requires_grad_(),
], ids=["value", "dtype", "shape", "strides", "offset", "gradient"])
def test_captured_tensors(change):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    held = torch.zeros(8)

    def seen(t):
        layout = t.dtype, tuple(t.shape), t.stride(), t.storage_offset(), t.requires_grad
        return 8 if float(t.detach().max()) or layout != (torch.float32, (8,), (1,), 0, False) else 0

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(seen(held)))

    assert stored(k) == 0
    change(held)
    assert stored(k) == 8


@clause("CONST-4.contents")
@pytest.mark.parametrize("size", [1, 7, 8, 9, 18, 63, 64, 72, 81])
def test_captured_arrays_of_few_bytes(size):
    held = np.zeros(size, np.int8)

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(int(held.max())))

    for at in {0, size // 2, size - 1}:
        assert stored(k) == 0
        held[at] = 8
        assert stored(k) == 8
        held[at] = 0


@clause("CONST-4.contents")
@pytest.mark.parametrize("read", [
    lambda held: sum([h.number for h in held]), lambda held: sum(h.number for h in held),
    lambda held: max(held, key=lambda h: h.number).number, lambda held: (lambda: (lambda: held[1].number)())(),
], ids=["list", "generator", "lambda", "nested"])
def test_captured_attributes_that_inner_functions_read(read):
    class Holder:
        number = 0

    held = [Holder(), Holder()]

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(read(held)))

    assert stored(k) == 0
    held[1].number = 8
    assert stored(k) == 8

"""Values that tile code can hold, and objects that it finds outside [OBJ]."""

import dataclasses
import enum
import math

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, refuses, run
from conformance.harness.type_probes import constant, look, refused, same_number, static


@dataclasses.dataclass(frozen=True)
class Point:
    x: object
    y: object = 2

    def total(self):
        return self.x + self.y


@dataclasses.dataclass
class Mutable:
    x: int


class Plain:
    value = 3


class Color(enum.Enum):
    RED = 1
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 3


def double(x):
    return x + x


def pick(first, second):
    """In tile code: passes a value through a tuple and a helper."""
    held = (first, second)
    return held[0]


TRUE, FIVE, HALF, WORD, NOTHING, DOTS = True, 5, 0.5, "word", None, ...
NESTED = (1, (2.5, "x", ct.int8), None)
POINT = Point(3, 4)
FLOAT, INTEGER, YES = np.float16(1.5), np.int8(-3), np.bool_(True)
LONG, LONGEST = np.int64((1 << 62) + 1), np.uint64((1 << 64) - 1)
LIST, DICT, SET, OBJECT, ARRAY, MUTABLE = [1, 2], {"a": 1}, {1}, Plain(), np.arange(3), Mutable(1)


def ones(n=4):
    return np.ones(n, np.float32)


# ------------------------------------------------------------------ kinds of values


@clause("OBJ-1.array", "OBJ-1.tile", "OBJ-1.view", "OBJ-1.raw", "OBJ-1.scalar")
def test_arrays_tiles_and_their_kin():
    @ct.kernel
    def k(x, out):
        a = pick(x, 1)
        t = pick(ct.load(a, 0, 4), a)
        v = pick(a.tiled_view(4), t)
        r = pick(a.get_raw_memory(), v)
        s = pick(ct.load(a, 2, ()), r)
        ct.store(out, 0, t + v.load(0) + r.load_offset(ct.arange(4, dtype=ct.int32)) + s)

    assert run(k, np.arange(4, dtype=np.float32), ones()).tolist() == [2, 5, 8, 11]


@clause("OBJ-1.list")
def test_lists_of_arrays():
    @ct.kernel
    def k(xs, out):
        held = pick(xs, 0)
        ct.store(out, 0, ct.load(held[1], 0, 4))

    assert run(k, [ones(), 2 * ones()], ones()).tolist() == [2] * 4


@clause("OBJ-1.tuple")
def test_tuples():
    assert static(lambda: pick((1, (2, 3)), 0)) == (1, (2, 3))


@clause("OBJ-1.dataclass")
def test_dataclasses():
    assert static(lambda: pick(Point(5), 0).total()) == 7


@clause("OBJ-1.index_slice")
def test_index_slices():
    @ct.kernel
    def k(x, out):
        rows, columns = ct.arange(2, dtype=ct.int32), pick(ct.Slice(1, 2), 0)
        ct.store(out, (0, 0), ct.load_advanced_indexing(x, (rows, columns)))

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert run(k, x, np.zeros((2, 2), np.float32)).tolist() == [[1, 2], [5, 6]]


@clause("OBJ-1.slice", "OBJ-1.ellipsis")
def test_slices_and_ellipsis():
    assert static(lambda: (1, 2, 3, 4)[pick(slice(1, 3, None), 0)]) == (2, 3)
    assert static(lambda: ct.zeros((2, 4), ct.int8)[pick(..., 0), None].shape) == (2, 4, 1)


@clause("OBJ-1.range")
def test_ranges():
    @ct.kernel
    def k(out):
        r = pick(range(2, 8, 3), 0)
        total = 0
        for i in r:
            total = total * 10 + i
        ct.store(out, 0, total)

    assert run(k, np.zeros(1, np.int32)).tolist() == [25]


@clause("OBJ-1.dtype", "OBJ-1.constructor")
def test_dtypes():
    [(value, dtype)] = look(lambda: pick(ct.int8, 0)(300))
    assert (value, dtype) == (44, ct.int8)


@clause("OBJ-1.enum", "OBJ-1.string", "OBJ-1.none")
def test_enums_strings_and_none():
    assert static(lambda: pick(Color.BLUE, 0)) is Color.BLUE
    assert static(lambda: pick("text", 0)) == "text"
    assert static(lambda: pick(None, 0)) is None


@clause("OBJ-1.fstring")
def test_formatted_strings():
    @ct.kernel
    def k(x):
        text = pick(f"value {ct.load(x, 0, ())}", 0)
        ct.print(text)

    accepts(k, ones())


@clause("OBJ-1.dict")
def test_keyword_arguments():
    def f(**kwargs):
        held = pick(kwargs, 0)
        return held["a"]

    assert static(lambda: f(a=5, b=6)) == 5


@clause("OBJ-1.function", "OBJ-1.lambda", "OBJ-1.closure", "OBJ-1.method")
def test_functions():
    def f():
        n = 3

        def add(x):
            return x + n

        return (pick(double, 0)(5), pick(lambda x: x * 3, 0)(5), pick(add, 0)(5), pick(Point(1, 4).total, 0)())

    assert static(f) == (10, 15, 8, 5)


@clause("OBJ-1.module", "OBJ-1.type")
def test_modules_and_classes():
    assert static(lambda: pick(math, 0).pi) == math.pi
    assert static(lambda: pick(Point, 0)(1).y) == 2


@clause("OBJ-1.pointer")
def test_foreign_pointers():
    @ct.kernel
    def k(x, out):
        p = pick(x.foreign_pointer, 0)
        ct.store(out, 0, ct.load(ct.Array.from_foreign(p, (4,), (1,)), 0, 4))

    assert run(k, 3 * ones(), ones()).tolist() == [3] * 4


# ------------------------------------------------------------------ immutability


@clause("OBJ-2.attribute", "OBJ-2.tile", "OBJ-2.array", "OBJ-2.tuple")
def test_nothing_can_be_changed():
    @ct.kernel
    def attribute(x):
        t = ct.load(x, 0, 4)
        t.name = 1

    @ct.kernel
    def tile(x):
        t = ct.load(x, 0, 4)
        t[0] = 1

    @ct.kernel
    def array(x):
        x[0] = 1

    @ct.kernel
    def pair(x):
        t = (1, 2)
        t[0] = 1

    refuses("TileSyntaxError", attribute, ones())
    for k in (tile, array, pair):
        refuses("TileTypeError", k, ones())


@clause("OBJ-3.array", "OBJ-3.tile")
def test_nothing_can_be_made():
    refused("TileError", lambda: ct.Array((4,), ct.float32))
    refused("TileError", lambda: ct.Tile((4,), ct.float32))
    refused("TileError", lambda: ct.Tile())


# ------------------------------------------------------------------ objects found outside


@pytest.mark.parametrize("f", [pytest.param(f, marks=clause(f"OBJ-4.{n}"), id=n) for n, f in {
    "list": lambda: LIST, "dict": lambda: DICT, "set": lambda: SET, "object": lambda: OBJECT, "ndarray": lambda: ARRAY,
    "dataclass": lambda: MUTABLE}.items()])
def test_objects_that_are_no_values(f):
    refused("TileTypeError", f)
    refused("TileTypeError", lambda: (f(), 1))


@clause("OBJ-4.static_eval", "OBJ-4.static_iter", "OBJ-4.static_assert")
def test_static_constructs_use_any_object():
    @ct.kernel
    def k(out):
        total = 0
        for v in ct.static_iter(LIST):
            total = total + v
        for v in ct.static_iter(ARRAY.tolist()):
            total = total + v
        ct.static_assert(DICT["a"] == 1 and SET == {1} and OBJECT.value == 3)
        total = total + ct.static_eval(LIST[1] + DICT["a"] + len(SET) + OBJECT.value + int(ARRAY.sum()) + MUTABLE.x)
        ct.store(out, 0, total)

    assert run(k, np.zeros(1, np.int32)).tolist() == [3 + 3 + 2 + 1 + 1 + 3 + 3 + 1]


@pytest.mark.parametrize("f, value, dtype", [
    pytest.param(f, v, d, marks=clause(f"OBJ-5.{n}"), id=n) for n, f, v, d in [
        ("bool", lambda: TRUE, True, "bool_"),
        ("int", lambda: FIVE, 5, "int32"),
        ("float", lambda: HALF, 0.5, "float32"),
        ("intenum", lambda: Level.LOW, 3, "int32"),
        ("intenum", lambda: Level.LOW + 1, 4, "int32"),
        ("numpy.float", lambda: FLOAT, 1.5, "float16"),
        ("numpy.float", lambda: FLOAT + 0.0001, 1.5, "float16"),
        ("numpy.int", lambda: INTEGER, -3, "int8"),
        ("numpy.int", lambda: INTEGER * 100, -44, "int8"),
        ("numpy.bool", lambda: YES, True, "bool_"),
        ("module", lambda: math.pi, math.pi, "float32"),
        ("function", lambda: double(4), 8, "int32"),
        ("class", lambda: Point(1).x, 1, "int32"),
        ("dataclass", lambda: POINT.total(), 7, "int32"),
        ("builtin", lambda: int(2.5), 2, "int32"),
        ("builtin", lambda: float(2), 2.0, "float32"),
        ("builtin", lambda: bool(2), True, "bool_"),
    ]])
def test_captured_numbers(f, value, dtype):
    got, d = constant(f)
    same_number(got, value)
    assert d.name == dtype


@clause("OBJ-5.bool", "OBJ-5.int", "OBJ-5.float")
def test_captured_numbers_are_loose():
    assert static(lambda: (ct.zeros((2,), ct.int16) + FIVE).dtype == ct.int16)
    assert static(lambda: (ct.zeros((2,), ct.float16) + HALF).dtype == ct.float16)
    assert static(lambda: (ct.zeros((2,), ct.uint8) + TRUE).dtype == ct.uint8)
    refused("TileValueError", lambda: ct.zeros((2,), ct.uint8) + (FIVE * 100))


@clause("OBJ-5.numpy.float", "OBJ-5.numpy.int", "OBJ-5.numpy.bool")
def test_captured_numpy_scalars_are_strict():
    assert static(lambda: (ct.zeros((2,), ct.int8) + FLOAT).dtype == ct.float16)
    refused("TileTypeError", lambda: ct.zeros((2,), ct.uint8) + INTEGER)
    refused("TileTypeError", lambda: ct.zeros((2,), ct.bool_) + YES)
    assert static(lambda: LONG == 4611686018427387905 and LONGEST == 18446744073709551615)


@clause("OBJ-5.str", "OBJ-5.none", "OBJ-5.tuple", "OBJ-5.enum")
def test_captured_objects():
    assert static(lambda: WORD) == "word"
    assert static(lambda: NOTHING is None) is True
    assert static(lambda: NESTED) == NESTED
    assert static(lambda: NESTED[1][0] + NESTED[0]) == 3.5
    assert static(lambda: Color.RED) is Color.RED
    assert static(lambda: Color("blue") == Color.BLUE) is True


@clause("OBJ-5.ellipsis")
def test_captured_ellipsis():
    assert static(lambda: ct.zeros((2, 4), ct.int8)[DOTS, None].shape) == (2, 4, 1)


@clause("OBJ-5.class", "OBJ-5.builtin")
def test_captured_classes():
    assert static(lambda: Color(1)) is Color.RED
    assert static(lambda: Point(x=1, y=5).y) == 5
    assert static(lambda: str(5)) == "5"
    assert static(lambda: tuple((1, 2))) == (1, 2)
    assert static(lambda: (1, 2, 3)[slice(0, 2, 1)]) == (1, 2)


@clause("OBJ-5.dtype", "OBJ-5.foreign")
def test_captured_dtypes():
    kinds = (ct.float16, np.float16, np.dtype("float16"))
    for kind in kinds:
        assert static(lambda kind=kind: ct.zeros((2,), kind).dtype) == ct.float16


@clause("OBJ-5.builtin")
def test_captured_range():
    steps = range

    @ct.kernel
    def k(out):
        for i in steps(3):
            ct.store(out, i, i)

    out = np.full(4, 7, np.int32)
    launch(k, out)
    assert out.tolist() == [0, 1, 2, 7]

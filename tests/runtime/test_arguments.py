"""What launch arguments become, and the specialisation key [ARG-*, ANN-*, SPEC-1]."""

import enum
import math
from collections import namedtuple

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.dtypes import INFO, NUMERIC, of_storage
from cutile.front.program import Embedded
from cutile.runtime.annotations import PLAIN, ParameterSpec, spec_of
from cutile.runtime.arguments import classify, classify_all
from cutile.runtime.launch_key import constant_key
from cutile.types import ArrayType, ListType, TileType

CONSTANT = ParameterSpec(constant=True)


def got(value, spec=PLAIN):
    return classify(2, "p", value, spec)


def refused(value, spec=PLAIN, cls=TypeError, says=""):
    with pytest.raises(cls) as e:
        got(value, spec)
    assert "Invalid kernel argument #2 (`p`)" in str(e.value)
    assert says in str(e.value)


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


def test_scalars():  # ARG-4…6
    for value, dtype in (
        (True, ct.bool_),
        (3, ct.int32),
        (Level.LOW, ct.int32),
        (2.5, ct.float32),
        (np.float64(2.5), ct.float32),
    ):
        a = got(value)
        assert a.arg_type == TileType(dtype) and a.flat_args == (value,) and type(a.flat_args[0]) in (bool, int, float)


def test_int_ranges():  # ARG-5, ANN-2
    int64 = spec_of(ct.ScalarInt64, "p")
    got(2**31 - 1)
    got(-2**31)
    for value in (2**31, -2**31 - 1):
        refused(value, cls=OverflowError, says="ct.ScalarInt64")
        assert got(value, int64).arg_type == TileType(ct.int64)
    refused(2**63, int64, cls=OverflowError, says="does not fit int64")
    for value in (True, 1.0, np.zeros(2, np.float32), (1,), [np.zeros(2, np.float32)]):
        refused(value, int64)


def test_arrays():  # ARG-2
    a = got(np.zeros((2, 3), np.float16))
    assert a.arg_type == ArrayType(ct.float16, 2)
    assert got(np.zeros((), np.float32)).arg_type == ArrayType(ct.float32, 0)
    for d in NUMERIC:
        if of_storage(INFO[d].storage) is d:
            assert got(np.zeros(4, INFO[d].storage)).arg_type.dtype is d


@pytest.mark.parametrize(
    "dtype,says",
    [
        (complex, "complex128"),
        (object, "object"),
        ("U3", "<U3"),
        ("M8[s]", "datetime64"),
        (">f4", "byte order"),
        (np.dtype([("a", "f4")]), "not supported"),
    ],
)
def test_arrays_of_other_dtypes(dtype, says):  # ARG-3, D-30
    refused(np.zeros(3, dtype), says=says)


def test_scalars_of_numpy_name_the_conversion():
    for x, plain in ((np.float32(1), "float"), (np.int64(1), "int"), (np.bool_(True), "bool")):
        refused(x, says=f"; pass {plain}(x), or annotate")


def test_odd_strides():  # D-30
    packed = np.zeros(4, np.dtype([("a", "f4"), ("b", "i2")]))
    refused(packed["a"], says="no multiples of its 4-byte elements")
    aligned = np.zeros(4, np.dtype([("a", "f4"), ("b", "f4")]))
    assert got(aligned["b"]).flat_args[0].owner.strides == (8,)


def test_static_dims():  # ANN-3
    def spec(**kw):
        return ParameterSpec(array=ct.ArrayAnnotation(**kw))

    x = np.zeros((4, 6), np.float32)
    t = got(x, spec(static_shape_dims=(-1,), static_stride_dims=(0,))).arg_type
    assert (t.static_shape, t.static_strides) == ((None, 6), (6, None))
    assert got(x, spec(index_dtype=ct.int64)).arg_type.index_dtype is ct.int64
    for dims in ((2,), (-3,)):
        refused(x, spec(static_shape_dims=dims), cls=ValueError, says="out of range for an array of rank 2")
    refused(x, spec(static_stride_dims=(1, -1)), cls=ValueError, says="name a dim of an array of rank 2 twice")


def test_large_arrays():  # ARR-6, LIM-3
    x = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (2**31,), (0,))
    refused(x, cls=OverflowError, says="ct.IndexedWithInt64")
    got(x, spec_of(ct.IndexedWithInt64, "p"))


def test_lists():  # ARG-7
    x, y = np.zeros(3, np.float32), np.zeros(5, np.float32)
    a = got([x, y])
    assert a.arg_type == ListType(ArrayType(ct.float32, 1)) and [r.owner for r in a.flat_args[0]] == [x, y]
    refused([], says="empty list")
    refused([x, 3], says="item 1 of the list is no array but an object of type int")
    refused([x, np.zeros(3, np.int32)], says="one dtype and rank")
    refused([x, np.zeros((3, 1), np.float32)], says="one dtype and rank")
    refused([x, np.zeros(3, complex)], says="complex128")
    static = ParameterSpec(list=ct.ListAnnotation(element=ct.ArrayAnnotation(static_shape_dims=(0,))))
    refused([x, y], static, cls=ValueError, says="differ in a static dim")
    got([x, x], static)


def test_tuples():  # ARG-8, ANN-5
    x = np.zeros(3, np.float32)
    a = got((1, (x, 2.5), ()))
    assert a.arg_type == (TileType(ct.int32), (ArrayType(ct.float32, 1), TileType(ct.float32)), ())
    assert (a.flat_args[0], a.flat_args[1].owner, a.flat_args[2]) == (1, x, 2.5)
    refused(namedtuple("T", "a")(1))
    spec = spec_of(tuple[ct.Constant[int], int], "p")
    assert got((4, 5), spec).arg_type == (Embedded(4), TileType(ct.int32))
    refused((4,), spec, says="a tuple of 2 items, got 1")
    refused(4, spec, says="asks for a tuple")
    deep = 1
    for _ in range(64):
        deep = (deep,)
    got(deep)
    with pytest.raises(RecursionError, match="more than 64 deep"):
        got((deep,))


@pytest.mark.parametrize(
    "value",
    [
        True,
        3,
        -1,
        2.5,
        2**70,
        "a",
        None,
        Color.RED,
        Level.LOW,
        ct.int8,
        np.float32,
        np.int16(3),
        np.dtype("f4"),
        ct.RoundingMode.RZ,
    ],
)
def test_constants(value):  # ANN-1
    a = got(value, CONSTANT)
    assert a.arg_type == Embedded(value) and a.flat_args == ()


@pytest.mark.parametrize("value", [[1], np.zeros(3), {}, {1}, object(), b"", 1j, len])
def test_what_is_no_constant(value):
    refused(value, CONSTANT)


@pytest.mark.parametrize(
    "value,says",
    [
        (None, "ct.Constant"),
        ("a", "ct.Constant"),
        (Color.RED, "ct.Constant"),
        (ct.int8, "ct.Constant"),
        (np.int16(3), "ct.Constant"),
        (len, "by naming it there"),
        ({}, "dict"),
        (1j, "complex"),
        (object(), "object"),
    ],
)
def test_what_is_no_argument(value, says):  # ARG-9
    refused(value, says=says)


def test_annotated_kind_must_match():
    x = np.zeros(3, np.float32)
    array, lists = (
        spec_of(ct.IndexedWithInt64, "p"),
        ParameterSpec(list=ct.ListAnnotation(element=ct.ArrayAnnotation())),
    )
    refused(3, array, says="asks for an array")
    refused(3, lists, says="asks for a list")
    refused(x, lists, says="asks for a list")
    refused([x], array, says="does not ask for a list")
    refused((x,), array, says="does not ask for a tuple")


def key(value, spec=PLAIN):
    return got(value, spec).key


def test_keys_of_scalars_and_arrays():  # SPEC-1, SPEC-4
    x = np.zeros((4, 6), np.float32)
    assert key(1) == key(2) != key(1.0) != key(True)
    assert key(x) == key(np.ones((8, 2), np.float32)) == key(x.T)
    assert len({key(v) for v in (x, x[0], x.astype(np.float16), x.astype(np.int32), [x], (x,), 1)}) == 7


def test_keys_of_constants():  # SPEC-1
    values = (
        1,
        True,
        1.0,
        0.0,
        -0.0,
        0,
        False,
        None,
        "1",
        Color.RED,
        Level.LOW,
        ct.int8,
        np.int8(1),
        np.int16(1),
        np.float32(1),
        math.inf,
        ml_dtypes.bfloat16(1),
    )
    keys = [key(v, CONSTANT) for v in values]
    assert len(set(keys)) == len(values)
    assert key(math.nan, CONSTANT) == key(float("nan"), CONSTANT)
    assert constant_key(np.float32(-0.0)) != constant_key(np.float32(0.0))
    assert key((1, (2,)), CONSTANT) != key((1, 2), CONSTANT) != key((1, True), CONSTANT)


def test_static_dims_are_part_of_the_key():  # SPEC-1
    spec = ParameterSpec(array=ct.ArrayAnnotation(static_shape_dims=(0,)))
    a, b = np.zeros((4, 6), np.float32), np.zeros((8, 6), np.float32)
    assert key(a, spec) != key(b, spec) and key(a, spec) == key(np.zeros((4, 9), np.float32), spec)


def test_a_variadic_kernel_is_refused_whatever_the_count():  # KERN-6
    @ct.kernel
    def k(a, *rest):
        pass

    for args in ((), (1,), (1, 2), (1, 2, 3)):
        with pytest.raises(ct.TileSyntaxError, match=r"cannot take \*args"):
            ct.launch(None, (1,), k, args)


def test_counts():  # LAUNCH-4, KERN-6
    with pytest.raises(TypeError, match=r"kernel k expects 2 argument\(s\) \(a, b\), got 1"):
        classify_all(["a", "b"], [PLAIN, PLAIN], (1,), "k")


def test_constants_are_told_apart_whatever_they_say():
    class Equal(enum.Enum):
        A, B = 1, 2

        def __eq__(self, other):
            return True

        __hash__ = None

    class Mode(enum.Flag):
        R, W = 1, 2

    found = [constant_key(v) for v in (*Equal, Mode.R, Mode.W, Mode.R | Mode.W, Mode(0))]
    assert len(set(found)) == len(found)


def test_a_string_is_a_constant_by_its_text():
    class Named(str):
        number = 1

    argument = classify(0, "c", Named("a"), spec_of(ct.Constant[str], "c"))
    assert type(argument.arg_type.value) is str


# ------------------------------------------------------------------ subclasses of numbers and texts


def lying(base):
    """A class whose every method of its base says something wrong."""
    def wrong(*args):
        raise AssertionError("code of a subclass ran")

    odd = {n: wrong for n in vars(base) if callable(getattr(base, n)) and n not in ("__new__", "__getattribute__")}
    return type(f"Lying{base.__name__}", (base,), {**odd, "__array_interface__": property(wrong)})


LyingInt, LyingFloat, LyingStr = map(lying, (int, float, str))


@ct.kernel
def number(out, x):
    ct.store(out, 0, x)


@ct.kernel
def constant(out, x: ct.Constant):
    ct.store(out, 0, x)


@ct.kernel
def pair(out, x):
    ct.store(out, 0, x[0] * 10 + x[1])


@ct.kernel
def fixed_pair(out, x: ct.Constant):
    ct.store(out, 0, x[0] * 10 + x[1])


@ct.kernel
def text(out, x: ct.Constant):
    ct.store(out, 0, 1 if x == "a" else 2)


@pytest.mark.parametrize("kernel, value, want", [
    (number, LyingInt(5), 5), (constant, LyingInt(5), 5), (number, LyingFloat(2.5), 2.5),
    (constant, LyingFloat(2.5), 2.5), (pair, (LyingInt(4), LyingFloat(0.5)), 40.5),
    (fixed_pair, (LyingInt(4), LyingFloat(0.5)), 40.5), (text, LyingStr("a"), 1)],
    ids=lambda v: v.__name__ if isinstance(v, ct.kernel) else type(v).__name__)
def test_a_subclass_counts_with_its_value_alone(kernel, value, want):  # ARG-5, ARG-6
    for _ in range(2):  # the second time by the plan of the first
        out = np.zeros(1, np.float32)
        ct.launch(None, (1,), kernel, (out, value))
        assert out[0] == want


def test_a_captured_subclass_counts_with_its_value_alone():
    whole, half, name, items = LyingInt(5), LyingFloat(0.5), LyingStr("a"), lying(tuple)((7, 8))

    @ct.kernel
    def k(out):
        ct.store(out, 0, whole + half + (items[0] if name == "a" else 0))

    out = np.zeros(1, np.float32)
    ct.launch(None, (1,), k, (out,))
    assert out[0] == 12.5


def test_a_subclass_in_a_grid_and_in_hints_counts_with_its_value_alone():
    @ct.kernel
    def k(out):
        ct.store(out, ct.bid(0), 1)

    out = np.zeros(4, np.float32)
    ct.launch(None, lying(tuple)((LyingInt(3),)), k.replace_hints(occupancy=LyingInt(2)), lying(tuple)((out,)))
    assert out.tolist() == [1, 1, 1, 0]
    assert type(k.replace_hints(occupancy=LyingInt(2)).options.occupancy) is int


def test_equal_values_of_subclasses_share_a_program():
    out, typed = np.zeros(1, np.float32), ct.kernel(constant.function)
    for value in (5, LyingInt(5), 2.5, LyingFloat(2.5)):
        ct.launch(None, (1,), typed, (out, value))
    assert len(typed._programs) == 2 and len(typed.plans) == 2

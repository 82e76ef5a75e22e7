# ruff: noqa: F841 -- tile code under test, not code to tidy
"""Which arguments a kernel accepts, what they become, and when a kernel is compiled anew."""

import collections
import dataclasses
import enum
import math
from typing import Annotated, Any

import ml_dtypes
import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, fails, launch, named, needs, run
from conformance.harness.tile_code import Counter

A1, A2, F1 = np.zeros(4, np.int32), np.zeros((4, 4), np.int32), np.zeros(4, np.float32)


class Number(enum.IntEnum):
    SEVEN = 7


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Point:
    x: int


def dtype_of(value):
    seen = []

    @ct.kernel
    def k(x):
        d = x.dtype
        ct.static_eval(seen.append((x, d)))

    accepts(k, value)
    x, d = seen[-1]
    assert isinstance(x, ct.Tile) and x.shape == ()
    return d.name


@pytest.mark.parametrize("value, name", [
    pytest.param(True, "bool_", marks=clause("ARG-4")), pytest.param(False, "bool_", marks=clause("ARG-4")),
    pytest.param(3, "int32", marks=clause("ARG-5.int")), pytest.param(-5, "int32", marks=clause("ARG-5.int")),
    pytest.param(Number.SEVEN, "int32", marks=clause("ARG-5.intenum")),
    pytest.param(2.5, "float32", marks=clause("ARG-6.float")),
    pytest.param(np.float64(2.5), "float32", marks=clause("ARG-6.float64"))], ids=named)
def test_scalars(value, name):
    assert dtype_of(value) == name

    @ct.kernel
    def k(x, out):
        ct.store(out, 0, x * 4)

    assert run(k, value, np.zeros(1, np.float32)).tolist() == [float(value) * 4]


@clause("ARG-6.float")
def test_floats_are_rounded():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, x.astype(ct.float64))

    for v in (0.1, 1e300, -math.inf, 1e-46):
        with np.errstate(all="ignore"):
            assert run(k, v, np.zeros(1)).tolist() == [float(np.float32(v))]


@clause("ARG-5.range")
def test_range_of_ints():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, x)

    for v in (-(1 << 31), (1 << 31) - 1):
        assert run(k, v, np.zeros(1, np.int32)).tolist() == [v]
    for v in (1 << 31, -(1 << 31) - 1, 1 << 70):
        fails(OverflowError, k, v, np.zeros(1, np.int32))


@ct.kernel
def double(x, out):
    ct.store(out, 0, ct.load(x, 0, 4) * 2)


class WithDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class WithInterface:
    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__


@needs("cpu arrays")
@pytest.mark.parametrize("wrap", [pytest.param(WithDlpack, marks=clause("ARG-2")),
                                  pytest.param(WithInterface, marks=clause("ARG-3"))])
def test_array_objects(wrap):
    out = np.zeros(4, np.float32)
    launch(double, wrap(np.arange(4, dtype=np.float32)), wrap(out))
    assert out.tolist() == [0, 2, 4, 6]


@needs("cpu arrays")
@clause("ARG-1")
def test_torch_tensors():
    torch = pytest.importorskip("torch")
    out = torch.zeros(4)
    launch(double, torch.arange(4, dtype=torch.float32), out)
    assert out.tolist() == [0, 2, 4, 6]


@clause("ARG-7.list", "ARG-7.index")
def test_lists():
    @ct.kernel
    def k(xs, out):
        i = ct.bid(0)
        t = ct.load(xs[i], 0, 4, padding_mode=ct.PaddingMode.ZERO)
        ct.store(out, i, ct.sum(t) * 10 + len(xs) + ct.load(xs[1], 1, 1).item() * 100)

    xs = [np.array([1, 2, 0, 0], np.int32), np.array([3, 4], np.int32), np.array([5], np.int32)]
    assert run(k, xs, np.zeros(3, np.int32), grid=(3,)).tolist() == [433, 473, 453]


@clause("ARG-7.list")
def test_lists_are_written_through():
    @ct.kernel
    def k(xs):
        ct.store(xs[ct.bid(0)], 0, ct.bid(0) + 1)

    xs = [np.zeros(1, np.int32) for _ in range(3)]
    launch(k, xs, grid=(3,))
    assert [x[0] for x in xs] == [1, 2, 3]


@pytest.mark.parametrize("value", [
    pytest.param([], marks=clause("ARG-7.empty")),
    pytest.param([A1, F1], marks=clause("ARG-7.dtype")),
    pytest.param([A1, A2], marks=clause("ARG-7.rank")),
    pytest.param([A1, 1], marks=clause("ARG-7.item")),
    pytest.param([1, 2], marks=clause("ARG-7.item")),
    pytest.param([None], marks=clause("ARG-7.item")),
    pytest.param([[A1]], marks=clause("ARG-7.item")),
    pytest.param(collections.namedtuple("P", "x y")(1, 2), marks=clause("ARG-8.subclass")),
    pytest.param(np.int32(3), marks=clause("ARG-9.numpy")),
    pytest.param(np.float32(3), marks=clause("ARG-9.numpy")),
    pytest.param(np.bool_(True), marks=clause("ARG-9.numpy")),
    pytest.param("a", marks=clause("ARG-9.str")), pytest.param(None, marks=clause("ARG-9.none")),
    pytest.param(Color.RED, marks=clause("ARG-9.enum")), pytest.param(ct.float32, marks=clause("ARG-9.dtype")),
    pytest.param(np.float32, marks=clause("ARG-9.dtype")), pytest.param(Point(1), marks=clause("ARG-9.dataclass")),
    pytest.param({"a": 1}, marks=clause("ARG-9.dict")), pytest.param(len, marks=clause("ARG-9.function")),
    pytest.param(fails, marks=clause("ARG-9.function")), pytest.param(1j, marks=clause("ARG-9.complex"))], ids=named)
def test_refused_arguments(value):
    @ct.kernel
    def k(first, x):
        pass

    fails(TypeError, k, 1, value)
    fails(TypeError, k, 1, (value,))


@clause("ARG-9.text")
@pytest.mark.parametrize("value", [None, "a", Color.RED])
def test_text_of_a_refusal(value):
    @ct.kernel
    def k(first, x):
        pass

    fails(TypeError, k, 1, value, match="Invalid kernel argument #1")
    fails(TypeError, k, value, 1, match="Invalid kernel argument #0")


@clause("ARG-7.static")
def test_static_dims_of_lists():
    element = ct.ArrayAnnotation(static_shape_dims=(0,))

    @ct.kernel
    def k(xs: Annotated[Any, ct.ListAnnotation(element=element)]):
        pass

    accepts(k, [A1, A1])
    fails(ValueError, k, [A1, np.zeros(8, np.int32)])


@clause("ARG-8.tuple", "ARG-8.nested")
def test_tuples():
    @ct.kernel
    def k(p, out):
        a, (x, (b, ())), c, e = p
        ct.static_assert(e == ())
        d = c.dtype
        ct.static_assert(d == ct.float32)
        ct.store(out, 0, ct.sum(ct.load(x, 0, 4)) + a * 10 + b.astype(ct.int32) * 100)

    x = np.arange(4, dtype=np.int32)
    assert run(k, (7, (x, (True, ())), 1.5, ()), np.zeros(1, np.int32)).tolist() == [176]


@clause("ARG-8.deep")
def test_deeply_nested_tuples():
    def nested(n):
        t = 1
        for _ in range(n):
            t = (t,)
        return t

    @ct.kernel
    def k(p):
        pass

    accepts(k, nested(60))
    fails(RecursionError, k, nested(70))


@pytest.mark.parametrize("value", [
    pytest.param(True, marks=clause("ARG-10.bool")), pytest.param(3, marks=clause("ARG-10.int")),
    pytest.param(0.25, marks=clause("ARG-10.float")), pytest.param(-math.inf, marks=clause("ARG-10.float")),
    pytest.param((1, (True, 2.5), ()), marks=clause("ARG-10.tuple"))], ids=named)
def test_constants(value):
    @ct.kernel
    def k(x: ct.Constant):
        ct.static_assert(x == value)

    accepts(k, value)


@clause("ARG-10.object")
@pytest.mark.parametrize("value", [[1], {"a": 1}, object(), A1, {1}], ids=named)
def test_refused_constants(value):
    @ct.kernel
    def k(x: ct.Constant):
        pass

    fails(TypeError, k, value)


# ------------------------------------------------------------------ specialisation


def compilations(annotation, *values, grids=None):
    """The number of compilations after a launch with each of these values."""
    counter = Counter()
    hit = counter.hit

    @ct.kernel
    def k(x: annotation):
        n = ct.static_eval(hit())

    seen = []
    for i, v in enumerate(values):
        launch(k, v, grid=grids[i] if grids else (1,))
        seen.append(counter.count)
    return seen


def again(annotation, *values):
    """Each value compiles once, and not again."""
    got = compilations(annotation, *values, *values)
    n = len(values)
    assert got == [*range(1, n + 1), *[n] * n]


@clause("SPEC-1.same", "SPEC-4.value", "SPEC-4.pointer")
def test_launches_of_the_same_kinds():
    assert compilations(Any, 1, 2, -5, 0) == [1] * 4
    assert compilations(Any, 0.5, math.nan) == [1] * 2
    assert compilations(Any, np.zeros(4, np.int32), np.ones(4, np.int32)) == [1] * 2
    assert compilations(Any, (1, 2.0), (3, 4.0)) == [1] * 2


@clause("SPEC-4.size")
def test_sizes():
    assert compilations(Any, np.zeros((5, 3), np.int32), np.zeros((7, 9), np.int32)) == [1] * 2


@clause("SPEC-4.grid")
def test_grids():
    assert compilations(Any, 1, 1, 1, grids=[(1,), (2, 2), (1, 1, 3)]) == [1] * 3


@clause("SPEC-1.kind")
def test_kinds():
    again(Any, 1, True, 1.0, A1, (1,))


@clause("SPEC-1.dtype")
def test_dtypes():
    again(Any, *(np.zeros(4, d) for d in (np.int32, np.uint32, np.float32, np.float16, ml_dtypes.bfloat16)))


@clause("SPEC-1.rank")
def test_ranks():
    again(Any, *(np.zeros((2,) * r, np.int32) for r in (1, 2, 3)))


@clause("SPEC-1.constant", "SPEC-1.constant.type", "SPEC-1.constant.zero", "SPEC-1.constant.nan")
def test_constants_compile():
    again(ct.Constant, 1, 2, True, 1.0, 0.0, -0.0, math.nan)
    again(ct.Constant, (1, 2), (1, 2.0), (1, True), (2, 1))


@clause("SPEC-1.static")
def test_static_dims_compile():
    again(Annotated[Any, ct.ArrayAnnotation(static_shape_dims=(0,))], *(np.zeros(n, np.int32) for n in (3, 5, 7)))


@clause("SPEC-1.tuple")
def test_tuples_compile():
    again(Any, (1, 2), (1,), (1, (2,)), ((1,), 2), ())


@clause("SPEC-6")
def test_sizes_of_one():
    seen = []

    @ct.kernel
    def k(x):
        n, s = x.shape[0], x.strides[0]
        ct.static_eval(seen.append((n, s)))

    accepts(k, np.zeros((1, 4), np.int32))
    accepts(k, np.zeros((4,), np.int32))
    assert all(isinstance(v, ct.Tile) for pair in seen for v in pair)

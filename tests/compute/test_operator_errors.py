"""Errors about operators: each names the argument, the items, and the user's line, and no line of the package."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from cutile import compute
from cutile.compute import OpKind
from cutile.errors import TileError
from cutile.tracebacks import in_package

X, Y, ONE, COUNT = np.arange(6, dtype=np.float32), np.zeros(6, np.float32), np.zeros(1, np.float32), np.zeros(2, int)
N = len(X)
BINARY = {
    "reduce_into": ("op", lambda op: compute.reduce_into(X, ONE, N, op, np.float32(0))),
    "inclusive_scan": ("op", lambda op: compute.inclusive_scan(X, Y, op, None, N)),
    "exclusive_scan": ("op", lambda op: compute.exclusive_scan(X, Y, op, np.float32(0), N)),
    "binary_transform": ("op", lambda op: compute.binary_transform(X, X, Y, op, N)),
    "segmented_reduce": ("op", lambda op: compute.segmented_reduce(X, ONE, 1, COUNT[:1], COUNT[1:], op, np.float32(0))),
    "reduce_by_key": ("op", lambda op: compute.reduce_by_key(X, X, Y, Y.copy(), COUNT, op, N)),
    "merge_sort": ("op", lambda op: compute.merge_sort(X, None, Y, None, N, op)),
    "unique_by_key": ("op", lambda op: compute.unique_by_key(X, X, Y, Y.copy(), COUNT, op, N)),
    "lower_bound": ("comp", lambda op: compute.lower_bound(X, N, X, N, np.zeros(N, np.uint64), op)),
    "make_reduce_into": ("op", lambda op: compute.make_reduce_into(X, ONE, op)),
}
UNARY = {
    "unary_transform": ("op", lambda op: compute.unary_transform(X, Y, op, N)),
    "select": ("cond", lambda op: compute.select(X, Y, COUNT, op, N)),
    "TransformIterator": ("transform_op", lambda op: compute.TransformIterator(X, op)),
    "typed TransformIterator": ("transform_op", lambda op: compute.TransformIterator(X, op, np.float32)),
    "TransformOutputIterator": ("transform_op", lambda op: compute.TransformOutputIterator(X, op, np.float32)),
}


def raised(call, op):
    with pytest.raises(TileError) as found:
        call(op)
    for one in found.value.errors:
        assert not any(in_package(s.filename) for s in (one.loc.frames() if one.loc else ()))
    return found.value


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_number_of_parameters(name):
    argument, call = (BINARY | UNARY)[name]
    two = name in BINARY
    e = raised(call, (lambda a: a) if two else (lambda a, b: a))
    words = "two items: float32, float32" if two else "one item: float32"
    assert f"argument `{argument}`" in e.message and words in e.message
    assert e.loc.filename == __file__ and e.loc.source_line().strip().startswith("e = raised")
    kind = OpKind.NEGATE if two else OpKind.PLUS
    assert f"OpKind.{kind.name} is an operator of" in raised(call, kind).message


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_what_typing_refuses(name):
    argument, call = (BINARY | UNARY)[name]
    e = raised(call, (lambda a, b: a.nothing) if name in BINARY else (lambda a: a.nothing))
    assert e.loc.filename == __file__ and "a.nothing" in e.loc.source_line()
    assert any(text.startswith(f"argument `{argument}` is called with float32") for text, _ in e.notes)
    assert argument in str(e)


@pytest.mark.parametrize("name", [n for n in BINARY if n not in ("merge_sort", "unique_by_key", "lower_bound")])
def test_results_of_another_kind(name):
    argument, call = BINARY[name]
    e = raised(call, lambda a, b: (a, b))
    assert f"argument `{argument}`: called with float32, float32 it returns (float32, float32)" in e.message
    assert "lambda a, b: (a, b)" in e.loc.source_line()


def test_an_equal_function_elsewhere():
    """The error shows the function that was given, though equal ones share code."""
    def first(a, b):
        return a & b
    compute.reduce_into(np.arange(3), np.zeros(1, int), 3, first)

    def second(a, b):
        return a & b
    for f in (first, second):
        line = f.__code__.co_firstlineno
        assert raised(BINARY["reduce_into"][1], f).loc.line == line + 1


def test_callables_without_lines():
    call = BINARY["reduce_into"][1]
    for op in (sum, functools.partial(lambda a, b: a.nothing)):
        raised(call, op)
    note = raised(call, OpKind.BIT_AND).notes
    assert note[-1][0] == "OpKind.BIT_AND is called with float32, float32"


def test_structs_have_words():
    Point = compute.gpu_struct({"x": np.float32, "p": {"n": np.int8}}, "Point")
    points, numbers = np.zeros(3, Point.dtype), np.zeros(3)
    words = r"`d_out` takes items of float64, .* of AnonymousStruct\(x: float32, p: AnonymousStruct\(n: int8\)\)"
    with pytest.raises(TypeError, match=words):
        compute.select(points, numbers, COUNT, lambda p: p.x > 0, 3)
    with pytest.raises(TypeError, match="`d_out` takes items of AnonymousStruct.*, of float64"):
        compute.reduce_into(numbers, points, 3, OpKind.PLUS)
    with pytest.raises(TypeError, match="`d_out` takes items of float64, .* of complex128"):
        compute.inclusive_scan(numbers.astype(complex), numbers, OpKind.PLUS, None, 3)


def test_real_numbers_become_complex():
    out = np.zeros(3, np.complex64)
    compute.unary_transform(np.arange(3), out, lambda v: v, 3)
    compute.inclusive_scan(np.arange(3), out, lambda a, b: a + b, None, 3)
    assert out.tolist() == [0, 1, 3]
    compute.reduce_into(np.arange(3), out, 3, lambda a, b: a + b)
    assert out[0] == 3


@dataclasses.dataclass(frozen=True)
class Inner:
    low: np.float32
    n: np.int32


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner
    total: np.int64


def test_dataclasses():
    """As results, initial values, constants, and types."""
    x = np.arange(10, dtype=np.int32)
    out = np.zeros(10, compute.gpu_struct(Outer).dtype)

    def joined(a, b):
        return Outer(Inner(min(a.inner.low, b.inner.low), a.inner.n + b.inner.n), a.total + b.total)
    items = compute.TransformIterator(x, lambda v: Outer(Inner(v, 1), v), Outer)
    compute.reduce_into(items, out, 10, joined, Outer(Inner(np.float32(5), np.int32(1)), 100))
    assert out[0].tolist() == ((0.0, 11), 145)
    compute.inclusive_scan(items, out, joined, None, 10)
    assert out[9].tolist() == ((0.0, 10), 45)
    compute.unary_transform(compute.ConstantIterator(Inner(np.float32(2), np.int32(7))), x, lambda v: v.n, 2)
    assert x[:3].tolist() == [7, 7, 2]

"""The builder: where nodes go, which span they get, and how operands are laid out."""

import pytest

from cutile.dtypes import float32, int32
from cutile.ir.build import Builder
from cutile.ir.nodes import Op, Region, Value, Yield
from cutile.ops import arithmetic, memory, reduce
from cutile.spans import Span
from cutile.types import ArrayType, TileType

A, B = Span("a.py", 1, 0, 1, 5, "f"), Span("a.py", 2, 0, 2, 5, "f")
F32, I32 = TileType(float32), TileType(int32)


def test_nodes_are_appended_with_the_span():
    b, x = Builder(A), Value(F32)
    y = b.op1(arithmetic.add, x, x, result=F32, rounding_mode=None)
    with b.at(B):
        z = b.op1(arithmetic.add, y, x, result=F32)
    first, second = b.region.nodes
    assert isinstance(first, Op) and (first.operands, first.results, first.span) == ((x, x), (y,), A)
    assert first.attrs == {"rounding_mode": None} and first.layout is None and y.type == F32
    assert (second.operands, second.results, second.span) == ((y, x), (z,), B)


def test_groups_of_operands_and_absent_ones_have_a_layout():
    b, array, i, j = Builder(A), Value(ArrayType(float32, 2)), Value(I32), Value(I32)
    b.op1(memory.gather, array, (i, j), None, padding := Value(F32), result=F32)
    [n] = b.region.nodes
    assert n.operands == (array, i, j, padding) and n.layout == (1, 2, None, 1)
    with pytest.raises(AssertionError):
        b.op1(memory.gather, None, (i, j), None, padding, result=F32)


def test_another_region_and_span_for_a_while():
    b, inner = Builder(A), Region()
    outer = b.region
    with pytest.raises(KeyError), b.into(inner) as region, b.at(B):
        assert region is inner is b.region and b.span is B
        b.append(Yield((), b.span))
        raise KeyError
    assert b.region is outer and b.span is A and not outer.nodes and inner.nodes[0].span is B


def test_the_body_of_a_combine_function_takes_a_value_of_each_type():
    b = Builder(A)
    with b.combine_body(reduce.reduce, (F32, I32)) as body:
        assert [v.type for v in body.params] == [F32, I32]
        b.append(Yield(body.params, A))
    assert not b.region.nodes and len(body.nodes) == 1


def test_only_the_front_end_calls_python():
    with pytest.raises(NotImplementedError):
        Builder(A).call(None, ())

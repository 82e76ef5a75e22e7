"""Structs: their classes, values and arrays."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute.value_types import Number, storage, value_type


def test_three_ways_to_declare():
    a = compute.gpu_struct({"x": np.float32, "n": {"k": np.int8, "m": "int64"}}, "P")
    assert a.__name__ == "P" and a.dtype == np.dtype([("x", "f4"), ("n", np.dtype([("k", "i1"), ("m", "i8")],
                                                                               align=True))], align=True)
    b = compute.gpu_struct(np.dtype([("x", "f4"), ("y", "u2")]))
    assert b.value_type.dtypes == (ct.float32, ct.uint16)

    @compute.gpu_struct
    class Q:
        x: np.float32
        y: np.uint16
    assert Q.__name__ == "Q" and Q.value_type.parts == b.value_type.parts
    assert compute.gpu_struct({"x": np.float32}) is compute.gpu_struct({"x": np.float32})
    for bad, error in (({"1x": np.int8}, ValueError), ({"class": np.int8}, ValueError), ({}, TypeError),
                       ({"x": object}, TypeError), (3, TypeError)):
        with pytest.raises(error):
            compute.gpu_struct(bad)


def test_values():
    P = compute.gpu_struct({"x": np.float32, "y": np.int32})
    p = P(1.5, y=2)
    assert (p.x, p.y, *p) == (1.5, 2, 1.5, 2) and p == P(1.5, 2)
    t = P.value_type
    for value in (p, np.array([(1.5, 2)], P.dtype), np.array([(1.5, 2)], P.dtype)[0], (1.5, 2), P({"y": 2, "x": 1.5})):
        assert t.numbers(value) == (1.5, 2)
    assert (p[0], p[-1], p[:1]) == (1.5, 2, (1.5,))
    with pytest.raises(TypeError):
        P(1)
    with pytest.raises(IndexError):
        p[2]


def test_types():
    assert value_type("int16") == Number(ct.int16) == value_type(ct.int16) == value_type(np.int16)
    assert storage(value_type(np.float16)) == np.float16
    with pytest.raises(TypeError, match="no type of items"):
        value_type("text")


@pytest.mark.parametrize("align", [True, False])
def test_arrays_of_structs(align):
    dtype = np.dtype([("x", "f4"), ("n", [("a", "i4"), ("b", "f4")])], align=align)
    x, o = np.zeros(300, dtype), np.zeros(300, dtype)
    x["x"], x["n"]["a"], x["n"]["b"] = np.arange(300), np.arange(300)[::-1], 2

    fields = compute.gpu_struct(dtype)

    def turned(p):
        if p.x > 10:
            return fields(p.x * p[1].b, p.n)
        return p
    compute.unary_transform(x, o, turned, 300)
    assert np.array_equal(o["x"], np.where(x["x"] > 10, x["x"] * 2, x["x"])) and np.array_equal(o["n"], x["n"])
    compute.unary_transform(x, o, lambda p: (p.n.a, (p.x, p.n[1])), 300)  # a tuple converts
    assert np.array_equal(o["x"], x["n"]["a"]) and np.array_equal(o["n"]["a"], x["x"])


def test_packed_fields_that_no_stride_reaches():
    x = np.zeros(10, np.dtype([("c", "i1"), ("x", "f4")]))
    with pytest.raises(TypeError, match="align=True"):
        compute.unary_transform(x, x.copy(), lambda p: p, 10)

"""Functions of equal code that capture equal values have equal keys; what they capture counts when it changes."""

from __future__ import annotations

import numpy as np

from cutile import compute
from cutile.compute.operators import operator

A = np.array([-7, -3, 0, 5, 8, 9], np.int32)
SCALE = 3


def scaled(v):
    return v * SCALE


def made(k):
    return lambda v: v * k + helper(v)


def helper(v):
    return v if v > 0 else 0


def test_keys():
    """Equal code and constants are one key, wherever they are written and whoever made them."""
    assert operator(made(2)).key == operator(made(2)).key != operator(made(3)).key
    assert operator(lambda v: v + 1).key == operator(lambda v: v + 1).key != operator(lambda v: v + 1.0).key
    assert operator(made(2)).key != operator(made(np.float32(2))).key != operator(made(2.0)).key


OUTER = lambda a, b: a if a > b else b


def test_a_function_in_a_function_is_no_other():
    x, y, o = A, A[::-1].copy(), np.zeros_like(A)
    larger = compute.make_binary_transform(x, y, o, OUTER)
    larger(x, y, o, lambda a, b: a if a > b else b, len(A))
    assert np.array_equal(o, np.maximum(x, y))


def test_what_is_captured_counts_when_it_changes(monkeypatch):
    o = np.zeros(len(A), np.int32)
    for scale in (3, 5, 3):
        monkeypatch.setitem(globals(), "SCALE", scale)
        compute.unary_transform(A, o, scaled, len(A))
        assert o.tolist() == (A * scale).tolist()


def test_defaults_and_keyword_defaults():
    def f(v, k=2, *, m=1):
        return v * k + m
    o = np.zeros(len(A), np.int32)
    compute.unary_transform(A, o, f, len(A))
    assert o.tolist() == (A * 2 + 1).tolist()
    f.__defaults__, f.__kwdefaults__ = (3,), {"m": 0}
    compute.unary_transform(A, o, f, len(A))
    assert o.tolist() == (A * 3).tolist()


def test_names_of_attributes_capture_nothing(monkeypatch):
    """Though a global array, even of structs, has the name of a field."""
    Point = compute.gpu_struct({"field": np.int32, "other": np.int32})
    points, o = np.zeros(3, Point.dtype), np.zeros(3, np.int32)
    points["field"] = 4, 5, 6

    def summed(p):
        return (lambda q: q.field)(p) + p.other

    for there in (points, points["field"], np.zeros((2, 2))):
        monkeypatch.setitem(globals(), "field", there)
        assert not operator(summed).hidden
        compute.unary_transform(points, o, summed, 3)
        assert o.tolist() == [4, 5, 6]

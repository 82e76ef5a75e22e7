"""Structs: their classes, values and arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute.value_types import Number, storage, value_type
from tests.compute.checks import deep_but


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
    assert len(compute.gpu_struct({"value_type": np.int32, "dtype": np.int8})(1, 2)) == 2


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_fields_at_run_time(dtype):
    """Counted from the end where the index is negative; the last one where there is none [ITR-5]."""
    i = np.array([0, 1, 2, 0, 1, 2, *((-1, -2, -3) if np.dtype(dtype).kind == "i" else (0, 1, 2)), 7], dtype)
    x, o = np.arange(10, dtype=np.int32), np.zeros(10)
    compute.unary_transform(compute.ZipIterator(x, x * 1.5, i), o, lambda z: z[z[2]], 10)
    columns = (x, x * 1.5, i)
    assert o.tolist() == [float(columns[int(k) if -3 <= int(k) < 3 else 2][row]) for row, k in enumerate(i)]
    Deep = compute.gpu_struct({"a": np.int32, "b": {"q": np.int32}})
    with pytest.raises(ct.TileTypeError, match="a tuple is indexed by an integer constant"):
        compute.unary_transform(np.zeros(3, Deep.dtype), o, lambda p: p[p.a], 3)


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


PACKED = {"bytes": np.dtype([("c", "i1"), ("x", "f8"), ("n", "u2")]), "pairs": np.dtype([("n", "i2"), ("x", "f4")]),
          "words": np.dtype([("n", "u4"), ("x", "f8")]), "nested": np.dtype([("n", "i1"), ("x", [("q", "?"), ("z",
                                                                                                     "c16")])]),
          "gap": np.dtype({"names": ["n", "x"], "formats": ["i1", "f2"], "offsets": [4, 1], "itemsize": 7})}


def some(n: int, dtype: np.dtype) -> np.ndarray:
    x = np.zeros(n, dtype)
    if dtype.names:
        for name in dtype.names:
            x[name] = some(n, dtype[name])
    else:
        x[:] = np.random.default_rng(dtype.num).integers(0, 100, n)
    return x


@pytest.mark.parametrize("dtype", PACKED.values(), ids=PACKED)
def test_packed_arrays(dtype):
    """Items whose numbers no multiple of their size leads to: read and written by tiles, at places, backwards [TYP-4].
    """
    n = 3001
    x, o = some(n, dtype), np.zeros(n, dtype)
    same, steps = compute.OpKind.IDENTITY, np.arange(n)[::-1].copy()
    for source, target, want in ((x, o, x), (x[::-1], o, x[::-1]), (x, o[::-1], x[::-1]), (x[5:], o[:-5], x[5:]),
                                 (compute.PermutationIterator(x, steps), o, x[::-1]),
                                 (x, compute.PermutationIterator(o, steps), x[::-1]),
                                 (compute.ReverseIterator(x), compute.ReverseIterator(o), x)):
        o[:] = 0
        compute.unary_transform(source, target, same, len(want))
        assert np.array_equal(o[:len(want)], want) and np.array_equal(o[len(want):], np.zeros(n, dtype)[len(want):])
    whole = np.zeros(n, compute.gpu_struct(dtype).dtype)
    compute.unary_transform(x, whole, same, n)
    assert all(np.array_equal(whole[name], x[name]) for name in dtype.names)


@pytest.mark.parametrize("name", deep_but(PACKED, "words", "nested"))
def test_algorithms_of_packed_arrays(name):
    n, count, dtype = 700, np.zeros(1, np.int64), PACKED[name]
    x, o = some(n, dtype), np.zeros(n, dtype)
    compute.merge_sort(x, None, o, None, n, lambda a, b: a.n < b.n)
    assert np.array_equal(o, x[np.argsort(x["n"], kind="stable")])
    compute.select(x, o, count, lambda p: p.n > 50, n)
    assert count[0] == (x["n"] > 50).sum() and np.array_equal(o[:count[0]], x[x["n"] > 50])
    compute.inclusive_scan(x, o, lambda a, b: a if a.n > b.n else b, None, n)
    assert np.array_equal(o["n"], np.maximum.accumulate(x["n"]))
    compute.reduce_into(x, o[1:], n, lambda a, b: a if a.n > b.n else b)
    assert o[1]["n"] == x["n"].max()
    keys, places = x["n"].copy(), np.arange(n)
    compute.radix_sort(keys, keys.copy(), x, o, n, compute.SortOrder.ASCENDING)
    assert np.array_equal(o, x[np.argsort(keys, kind="stable")])
    with pytest.raises(ValueError, match="share memory"):
        compute.select(x, x[1:], count, lambda p: p.n > 50, n - 1)
    with pytest.raises(TypeError, match="`d_in`: this object was made for packed array of .*, got array of"):
        compute.make_unary_transform(x, places, lambda p: p.n)(np.zeros(3, compute.gpu_struct(dtype).dtype), places,
                                                               lambda p: p.n, 3)


@pytest.mark.parametrize("dtype", ["i2", "f4", "f8", "u8", "?", ml_dtypes.bfloat16])
def test_fields_of_packed_arrays(dtype):
    """They are arrays of numbers, however far apart."""
    x = np.zeros(500, [("c", "i1"), ("x", dtype), ("d", "i4")])
    o = x.copy()
    x["x"] = np.arange(500) % 120
    compute.unary_transform(x["x"], o["x"], compute.OpKind.IDENTITY, 500)
    assert np.array_equal(o["x"], x["x"]) and not o["c"].any() and not o["d"].any()
    if dtype not in ("?", ml_dtypes.bfloat16):
        keys, places = np.zeros(500, dtype), np.zeros(500, np.int32)
        compute.radix_sort(x["x"], keys, compute.CountingIterator(np.int32(0)), places, 500,
                           compute.SortOrder.DESCENDING)
        assert np.array_equal(keys, np.sort(x["x"])[::-1]) and np.array_equal(x["x"][places], keys)
        compute.reduce_into(x["x"], o["x"], 500, compute.OpKind.MAXIMUM)
        assert o["x"][0] == x["x"].max()


def test_hints_for_packed_arrays():
    with pytest.raises(ValueError, match="multiples of their sizes"):
        compute.CacheModifiedInputIterator(np.zeros(3, "i1,f4")["f1"])

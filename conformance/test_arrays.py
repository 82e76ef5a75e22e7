"""Global arrays: addresses, attributes, slices, foreign pointers [ARR, SLICE, FPTR, RAWMEM]."""

from typing import Annotated

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, fails, launch, needs, refuses, run
from conformance.harness.dtype_names import DTYPES, NUMPY
from conformance.harness.type_probes import counting, inspect, taken

Static = Annotated[object, ct.ArrayAnnotation(static_shape_dims=(1,), static_stride_dims=(0,))]


# ------------------------------------------------------------------ addresses


LAYOUTS = {
    "contiguous": lambda: counting(4, 8),
    "transposed": lambda: counting(8, 4).T,
    "stepped": lambda: counting(8, 24)[::2, 1::3],
    "offset": lambda: counting(6, 16)[2:, 5:13],
    "column": lambda: np.broadcast_to(counting(4, 1), (4, 8)),
}


@pytest.mark.parametrize("make", [pytest.param(f, id=n, marks=clause("ARR-1.zero") if n == "column" else ())
                                  for n, f in LAYOUTS.items()])
@clause("ARR-1.offset")
def test_elements(make):
    x = make()

    @ct.kernel
    def k(x, out, each):
        ct.store(out, (0, 0), ct.load(x, (0, 0), (4, 8)))
        rows, columns = ct.arange(4, dtype=ct.int32)[:, None], ct.arange(8, dtype=ct.int32)[None]
        ct.store(each, (0, 0), ct.gather(x, (rows, columns)))

    out, each = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    run(k, x, out, each)
    want = [[float(x[i, j]) for j in range(8)] for i in range(4)]
    assert out.tolist() == want and each.tolist() == want


@pytest.mark.parametrize("make", [f for n, f in LAYOUTS.items() if n != "column"],
                         ids=[n for n in LAYOUTS if n != "column"])
@clause("ARR-1.offset")
def test_stores_touch_their_elements_only(make):
    x = make()
    memory = x
    while memory.base is not None:
        memory = memory.base
    before = memory.copy()

    @ct.kernel
    def k(x):
        ct.store(x, (0, 0), ct.full((4, 8), -1, ct.float32))

    run(k, x)
    assert x.tolist() == [[-1] * 8] * 4
    assert (memory != before).sum() == 32


@clause("ARR-1.rank")
@pytest.mark.parametrize("rank", range(6))
def test_ranks(rank):
    x = np.arange(2**rank, dtype=np.float32).reshape((2,) * rank)
    shape, index = (2,) * rank, (0,) * rank

    @ct.kernel
    def k(x, out):
        ct.store(out, index, ct.load(x, index, shape) + 1)

    assert run(k, x, np.zeros_like(x)).tolist() == (x + 1).tolist()


# ------------------------------------------------------------------ attributes


@clause("ARR-1.strides", "ARR-3.shape", "ARR-3.strides")
def test_sizes_and_strides():
    for x, shape, strides in ((counting(3, 5, 7), [3, 5, 7], [35, 7, 1]), (counting(5, 3).T, [3, 5], [1, 3]),
                              (counting(8, 24)[::2, 1::3], [4, 8], [48, 3]),
                              (np.broadcast_to(counting(1), (6,)), [6], [0])):
        n = len(shape)
        assert taken(lambda a: a.shape, x)[:n + 1] == shape + [-1]
        assert taken(lambda a: a.strides, x)[:n + 1] == strides + [-1]


@clause("ARR-2.int32", "ARR-3.dynamic", "ARR-3.one")
def test_sizes_are_run_time_values():
    for f in (lambda a: a.shape, lambda a: a.strides):
        assert inspect(f, np.zeros((1, 4), np.float32)) == [(None, "int32")] * 2
        assert inspect(f, np.zeros((4, 1), np.float32)) == [(None, "int32")] * 2
    refused_shape = np.zeros(1, np.float32)

    @ct.kernel
    def k(x):
        ct.zeros((x.shape[0],), ct.int32)

    refuses("TileTypeError", k, refused_shape)


@clause("ARR-2.int64")
def test_sizes_of_arrays_indexed_with_int64():
    assert inspect(lambda a: (*a.shape, *a.strides), np.zeros(4, np.float32),
                   ct.IndexedWithInt64) == [(None, "int64")] * 2


@clause("ARR-3.static_shape", "ARR-3.static_stride", "ARR-3.unlisted")
def test_static_sizes_and_strides():
    x = counting(3, 8)
    assert inspect(lambda a: a.shape, x, Static) == [(None, "int32"), (8, "int32")]
    assert inspect(lambda a: a.strides, x, Static) == [(8, "int32"), (None, "int32")]

    @ct.kernel
    def k(x: Static, out):
        ct.store(out, (0, 0), ct.load(x, (2, 0), (1, x.shape[1])))

    assert run(k, x, np.zeros((1, 8), np.float32)).tolist() == [list(range(16, 24))]


@clause("ARR-3.dtype", "ARR-3.ndim")
def test_dtype_and_rank():
    for rank in range(4):
        for short in ("b1", "u16", "bf16", "e4m3"):
            want = DTYPES[short]

            @ct.kernel
            def k(x):
                d, n = x.dtype, x.ndim
                ct.static_assert(d == want and n == rank)

            accepts(k, np.zeros((2,) * rank, NUMPY[short]))
    assert inspect(lambda a: (a.ndim,), np.zeros((2, 2), np.float32)) == [(2, "int32")]


@pytest.mark.parametrize("f", [pytest.param(f, id=n, marks=clause(f"ARR-4.{n}")) for n, f in {
    "dtype": lambda a: a.dtype, "ndim": lambda a: a.ndim, "shape": lambda a: a.shape, "strides": lambda a: a.strides,
    "slice": lambda a: a.slice(0, 0, 1), "tiled_view": lambda a: a.tiled_view(2),
    "get_raw_memory": lambda a: a.get_raw_memory(), "foreign_pointer": lambda a: a.foreign_pointer}.items()])
def test_attributes(f):
    @ct.kernel
    def k(x):
        f(x)

    accepts(k, np.zeros(4, np.float32))


def iterate(a):
    for v in a:
        return v


@pytest.mark.parametrize("f", [pytest.param(f, id=f"{n}{i}", marks=clause(f"ARR-4.{n}")) for i, (n, f) in enumerate([
    ("T", lambda a: a.T), ("size", lambda a: a.size), ("reshape", lambda a: a.reshape((2, 2))),
    ("unknown", lambda a: a.frobnicate), ("unknown", lambda a: a.itemsize), ("len", lambda a: len(a)),
    ("index", lambda a: a[0]), ("index", lambda a: a[None]), ("iter", iterate), ("arithmetic", lambda a: a + 1),
    ("arithmetic", lambda a: 2 * a), ("arithmetic", lambda a: -a), ("arithmetic", lambda a: a @ a),
    ("arithmetic", lambda a: ct.add(a, 1)), ("arithmetic", lambda a: ct.exp(a)), ("compare", lambda a: a == a),
    ("compare", lambda a: a < 1)])])
def test_what_arrays_do_not_have(f):
    @ct.kernel
    def k(x):
        f(x)

    refuses("TileTypeError", k, np.zeros(4, np.float32))


@clause("ARR-5.shape", "ARR-5.load", "ARR-5.store")
def test_arrays_of_rank_0():
    @ct.kernel
    def k(x, out):
        ct.static_assert(x.shape == () and x.strides == ())
        n = x.ndim
        ct.static_assert(n == 0)
        v = ct.load(x, (), ())
        s = v.shape
        ct.static_assert(s == ())
        ct.store(out, (), v * 2)

    assert run(k, np.array(21, np.int32), np.array(0, np.int32)).tolist() == 42


# ------------------------------------------------------------------ arguments


@clause("ARR-6.size", "ARR-6.stride", "ARR-6.int64")
def test_large_sizes_and_strides():
    @ct.kernel
    def plain(x):
        pass

    @ct.kernel
    def wide(x: ct.IndexedWithInt64, out):
        ct.store(out, 0, x.shape[0])
        ct.store(out, 1, x.strides[0])

    byte = np.zeros(1, np.int8)
    long = np.broadcast_to(byte, (1 << 31,))
    far = np.lib.stride_tricks.as_strided(byte, (1, 1), (1 << 31, 1))
    fails(OverflowError, plain, long)
    fails(OverflowError, plain, far)
    launch(plain, np.broadcast_to(byte, ((1 << 31) - 1,)))
    assert run(wide, long, np.zeros(2, np.int64)).tolist() == [1 << 31, 0]


@clause("ARR-6.overlap")
@needs("cpu arrays", "overlap")
def test_overlapping_arguments():
    @ct.kernel
    def k(x, y):
        t = ct.load(x, ct.bid(0), 4)
        ct.store(y, ct.bid(0), t + 100)
        ct.store(y, ct.bid(0), t + t)

    x = np.arange(8, dtype=np.float32)
    run(k, x[:4], x[1:5])
    assert x.tolist() == [0, 0, 2, 4, 6, 5, 6, 7]


# ------------------------------------------------------------------ by path taken


def chosen(use):
    @ct.kernel
    def k(n, a, b, out):
        if n > 0:
            x = a
        else:
            x = b
        if use:
            ct.store(out, 0, ct.load(x, 0, 4))
    return k


@clause("ARR-7.same")
def test_either_array():
    k = chosen(True)
    for n in (1, 0):
        assert run(k, n, counting(4), counting(8)[::-1][:4][::-1], np.zeros(4, np.float32)).tolist() == [
            [4, 5, 6, 7], [0, 1, 2, 3]][n]


@clause("ARR-7.dtype", "ARR-7.unused")
def test_arrays_of_two_dtypes():
    args = (1, np.zeros(4, np.float32), np.zeros(4, np.float16), np.zeros(4, np.float32))
    refuses("TileTypeError", chosen(True), *args)
    accepts(chosen(False), *args)


@clause("ARR-7.rank")
def test_arrays_of_two_ranks():
    @ct.kernel
    def k(n, a, b, out):
        x = a
        if n > 0:
            x = b
        ct.store(out, 0, x.shape[0])

    accepts(k, 1, counting(4), counting(6), np.zeros(1, np.int32))
    refuses("TileTypeError", k, 1, counting(4), counting(2, 2), np.zeros(1, np.int32))


@clause("ARR-7.index")
def test_arrays_of_two_index_dtypes():
    @ct.kernel
    def k(n, a, b: ct.IndexedWithInt64, out):
        x = a
        if n > 0:
            x = b
        ct.store(out, 0, ct.load(x, 0, 4))

    refuses("TileTypeError", k, 1, counting(4), counting(4), counting(4))


@clause("ARR-7.static")
def test_arrays_of_two_static_types():
    @ct.kernel
    def k(n, a, b: Annotated[object, ct.ArrayAnnotation(static_shape_dims=(0,))], out):
        x = a
        if n > 0:
            x = b
        ct.store(out, 0, ct.load(x, 0, 4))

    refuses("TileTypeError", k, 1, counting(4), counting(4), counting(4))

    @ct.kernel
    def strides(n, a, b: Annotated[object, ct.ArrayAnnotation(static_stride_dims=(0,))], out):
        x = a
        if n > 0:
            x = b
        ct.store(out, 0, ct.load(x, 0, 4))

    refuses("TileTypeError", strides, 1, counting(4), counting(4), counting(4))

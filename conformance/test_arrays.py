"""Global arrays: addresses, attributes, slices, foreign pointers [ARR, SLICE, FPTR, RAWMEM]."""

from typing import Annotated

import numpy as np
import pytest

from conformance.api import accepts, clause, ct, fails, launch, needs, refuses, run
from conformance.probing import DTYPES, NAMES, NUMPY, is_constant, refused

Static = Annotated[object, ct.ArrayAnnotation(static_shape_dims=(1,), static_stride_dims=(0,))]


def counting(*shape, dtype=np.float32):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def taken(f, *args, want=np.int64):
    """What f(array) holds at run time, as int64 numbers: a tuple of scalars."""
    out = np.full(8, -1, want)

    @ct.kernel
    def k(x, out):
        values = f(x)
        for i, v in ct.static_iter(enumerate(values)):
            ct.store(out, i, v)

    return run(k, *args, out).tolist()


def inspect(f, x, annotation=object):
    """Of each item of the tuple f(array): (constant value or None, name of its dtype)."""
    seen = []

    @ct.kernel
    def k(x: annotation):
        values = f(x)
        for i in ct.static_iter(range(len(values))):
            v = values[i]
            d = v.dtype
            ct.static_eval(seen.append((v, d.name)))

    accepts(k, x)
    return [(v if is_constant(v) else None, d) for v, d in seen]


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


@pytest.mark.parametrize("make", [f for n, f in LAYOUTS.items() if n != "column"], ids=[n for n in LAYOUTS if n != "column"])
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
    assert inspect(lambda a: (*a.shape, *a.strides), np.zeros(4, np.float32), ct.IndexedWithInt64) == [(None, "int64")] * 2


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
@needs("cpu arrays")
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


# ------------------------------------------------------------------ slices


@clause("SLICE-1.base", "SLICE-1.size", "SLICE-5", "SLICE-2.axis.negative")
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_slices(axis):
    x = counting(4, 6, 8)[:, ::-1][:, ::-1]
    k_axis = axis % 3

    @ct.kernel
    def k(x, start, stop, out, dims):
        a = x.slice(axis, start, stop)
        b = x.slice(stop=stop, axis=axis, start=start)
        ct.store(out, (0, 0, 0), ct.load(a, (0, 0, 0), (4, 8, 8), padding_mode="ZERO") +
                 ct.load(b, (0, 0, 0), (4, 8, 8), padding_mode="ZERO"))
        for i in ct.static_iter(range(3)):
            ct.store(dims, i, a.shape[i])
            ct.store(dims, 3 + i, a.strides[i])

    for start, stop in ((1, 3), (0, 4), (2, 2), (3, 4)):
        out, dims = np.full((4, 8, 8), -1, np.float32), np.zeros(8, np.int32)
        launch(k, x, start, stop, out, dims)
        want = np.zeros((4, 8, 8), np.float32)
        for i in range(4):
            for j in range(6):
                for m in range(8):
                    at = [i, j, m]
                    at[k_axis] -= start
                    if 0 <= at[k_axis] < stop - start:
                        want[tuple(at)] = 2 * x[i, j, m]
        assert out.tolist() == want.tolist()
        sizes = [4, 6, 8]
        sizes[k_axis] = stop - start
        assert dims.tolist() == [*sizes, 48, 8, 1, 0, 0]


@clause("SLICE-1.base")
def test_slices_of_slices_share_memory():
    @ct.kernel
    def k(x, n):
        y = x.slice(0, n, 8).slice(0, 1, n)
        ct.store(y, 0, ct.full((4,), -1, ct.float32))

    x = counting(9)
    run(k, x, 3)
    assert x.tolist() == [0, 1, 2, 3, -1, -1, 6, 7, 8]


@clause("SLICE-4.static", "SLICE-4.runtime", "SLICE-4.others")
def test_sizes_of_slices():
    x = counting(4, 8)
    assert inspect(lambda a: a.slice(0, 1, 3).shape, x) == [(2, "int32"), (None, "int32")]
    assert inspect(lambda a: a.slice(1, 1, a.shape[1]).shape, x) == [(None, "int32"), (None, "int32")]
    assert inspect(lambda a: a.slice(1, ct.bid(0), 3).shape, x) == [(None, "int32"), (None, "int32")]
    assert inspect(lambda a: a.slice(0, 1, 3).shape, x, Static) == [(2, "int32"), (8, "int32")]
    assert inspect(lambda a: a.slice(1, ct.bid(0), 3).shape, x, Static) == [(None, "int32"), (None, "int32")]
    assert inspect(lambda a: a.slice(1, ct.bid(0), 3).strides, x, Static) == [(8, "int32"), (None, "int32")]


@clause("SLICE-4.cast")
def test_sizes_of_slices_have_the_index_dtype():
    def cut(a):
        return a.slice(0, ct.int64(1) * ct.bid(0), ct.int64(3) + ct.bid(0)).shape

    assert inspect(cut, counting(8)) == [(None, "int32")]
    assert inspect(lambda a: a.slice(0, ct.bid(0), ct.int8(3) + ct.bid(0).astype(ct.int8)).shape, counting(8),
                   ct.IndexedWithInt64) == [(None, "int64")]
    assert taken(cut, counting(8))[0] == 3


@clause("SLICE-2.bounds")
@pytest.mark.parametrize("short", ["i8", "i16", "i32", "i64"])
def test_bounds_of_slices(short):
    dtype = DTYPES[short]

    @ct.kernel
    def k(x, n, out):
        ct.store(out, 0, ct.load(x.slice(0, dtype(n), dtype(4)), 0, 2))
        ct.store(out, 1, ct.load(x.slice(0, dtype(1), n.astype(dtype) + 1), 0, 2, padding_mode="ZERO"))

    assert run(k, counting(8), 2, np.zeros(4, np.float32)).tolist() == [2, 3, 1, 2]


ONE = np.zeros(4, np.float32)


@pytest.mark.parametrize("f", [pytest.param(f, id=f"{n}{i}", marks=clause(f"SLICE-{n}")) for i, (n, f) in enumerate([
    ("2.axis", lambda a: a.slice(ct.bid(0), 0, 1)), ("2.axis", lambda a: a.slice(0.0, 0, 1)),
    ("2.axis", lambda a: a.slice(False, 0, 1)), ("2.axis", lambda a: a.slice((0,), 0, 1)),
    ("2.axis.range", lambda a: a.slice(1, 0, 1)), ("2.axis.range", lambda a: a.slice(-2, 0, 1)),
    ("2.bounds.unsigned", lambda a: a.slice(0, ct.uint32(0), 1)), ("2.bounds.unsigned", lambda a: a.slice(0, 0, ct.uint8(1))),
    ("2.bounds.bool", lambda a: a.slice(0, False, 1)), ("2.bounds.bool", lambda a: a.slice(0, 0, True)),
    ("2.bounds.float", lambda a: a.slice(0, 0.0, 1)), ("2.bounds.float", lambda a: a.slice(0, 0, 1.0)),
    ("2.bounds.tile", lambda a: a.slice(0, ct.zeros((1,), ct.int32), 1)),
    ("2.bounds.tile", lambda a: a.slice(0, 0, ct.zeros((1,), ct.int32))),
    ("3.start", lambda a: a.slice(0, -1, 1)), ("3.start", lambda a: a.slice(0, -1, ct.bid(0))),
    ("3.stop", lambda a: a.slice(0, 0, -1)), ("3.stop", lambda a: a.slice(0, ct.bid(0), -1)),
    ("3.order", lambda a: a.slice(0, 2, 1))])])
def test_slices_that_are_refused(f):
    @ct.kernel
    def k(x):
        f(x)

    refuses("TileTypeError", k, ONE)


@clause("SLICE-2.axis.rank0")
def test_slices_of_rank_0():
    @ct.kernel
    def k(x):
        x.slice(0, 0, 1)

    refuses("TileTypeError", k, np.array(1.0))


@clause("SLICE-3.beyond", "SLICE-3.order")
def test_constant_bounds_that_are_accepted():
    @ct.kernel
    def k(x: Annotated[object, ct.ArrayAnnotation(static_shape_dims=(0,))]):
        x.slice(0, 2, 2)
        x.slice(0, 0, 0)
        x.slice(0, 0, 100)

    accepts(k, ONE)


@clause("SLICE-3.runtime")
@needs("cpu arrays")
def test_slices_beyond_an_array():
    @ct.kernel
    def k(x, start, stop, out):
        y = x.slice(0, start, stop)
        ct.store(out, 0, ct.load(y, 0, 8, padding_mode="NEG_INF"))
        ct.store(y, 0, ct.full((8,), 9, ct.float32))

    memory = counting(16)
    x, inf = memory[4:12], float("inf")
    assert run(k, x, 6, 12, np.zeros(8, np.float32)).tolist() == [10, 11, *[-inf] * 6]
    assert memory.tolist() == [*range(10), 9, 9, 12, 13, 14, 15]
    assert run(k, x, -2, 2, np.zeros(8, np.float32)).tolist() == [-inf, -inf, 4, 5, *[-inf] * 4]
    assert memory.tolist() == [0, 1, 2, 3, 9, 9, *range(6, 10), 9, 9, 12, 13, 14, 15]
    assert run(k, x, 5, 3, np.zeros(8, np.float32)).tolist() == [-inf] * 8


# ------------------------------------------------------------------ foreign pointers


@clause("FPTR-1.cached", "FPTR-1.name", "FPTR-1.bitwidth")
def test_pointer_dtypes():
    seen = set()
    for short, name in NAMES.items():
        d = ct.foreign_pointer_dtype(DTYPES[short])
        assert isinstance(d, ct.DType) and d is ct.foreign_pointer_dtype(DTYPES[short])
        assert d.name == str(d) == f"foreign_pointer[{name}]" and d.bitwidth == 64
        seen.add(d)
    assert len(seen) == len(NAMES)


@clause("FPTR-1.other", "FPTR-1.pointer")
def test_arguments_of_pointer_dtypes():
    for wrong in (int, 5, "float32", None, np.float32, ct.foreign_pointer_dtype(ct.float32)):
        with pytest.raises(TypeError):
            ct.foreign_pointer_dtype(wrong)


@clause("FPTR-1.tile", "FPTR-2.type")
def test_types_of_pointers():
    @ct.kernel
    def k(x, y):
        p, q = x.foreign_pointer, y.foreign_pointer
        d, e, s, n = p.dtype, q.dtype, p.shape, p.ndim
        f = ct.foreign_pointer_dtype(ct.float32)
        ct.static_assert(d == f and s == () and n == 0 and e != f)

    accepts(k, ONE, np.zeros(4, np.int8))


@clause("FPTR-1.call")
def test_calls_of_pointer_dtypes():
    kind = ct.foreign_pointer_dtype(ct.float32)
    refused("TileTypeError", lambda: kind(0))


@pytest.mark.parametrize("f", [pytest.param(f, id=f"{n}{i}", marks=clause(f"FPTR-2.{n}")) for i, (n, f) in enumerate([
    ("arithmetic", lambda p, q: p + 1), ("arithmetic", lambda p, q: p - q), ("arithmetic", lambda p, q: -p),
    ("arithmetic", lambda p, q: p & 1), ("arithmetic", lambda p, q: p << 1), ("arithmetic", lambda p, q: ct.sum(p)),
    ("comparison", lambda p, q: p == q), ("comparison", lambda p, q: p < q), ("comparison", lambda p, q: p == 0),
    ("cast", lambda p, q: p.astype(ct.uint64)), ("cast", lambda p, q: ct.bitcast(p, ct.uint64)),
    ("cast", lambda p, q: ct.uint64(p)), ("cast", lambda p, q: ct.zeros((2,), ct.uint64).astype(p.dtype)),
    ("memory", lambda p, q: ct.load(p, 0, 4)), ("memory", lambda p, q: ct.store(p, 0, 1)),
    ("where", lambda p, q: ct.where(True, p, 0))])])
def test_what_pointers_cannot_do(f):
    @ct.kernel
    def k(x, y):
        f(x.foreign_pointer, y.foreign_pointer)

    refuses("TileTypeError", k, ONE, ONE)


@clause("FPTR-2.memory")
def test_pointers_are_not_stored():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, x.foreign_pointer)

    refuses("TileTypeError", k, ONE, np.zeros(1, np.uint64))


@clause("FPTR-2.where", "FPTR-2.uses")
def test_choosing_a_pointer():
    @ct.kernel
    def k(n, x, y, out):
        p = ct.where(n > 0, x.foreign_pointer, y.foreign_pointer)
        ct.store(out, 0, ct.load(ct.Array.from_foreign(p, (4,), (1,)), 0, 4))

    @ct.kernel
    def two(x, y):
        ct.where(True, x.foreign_pointer, y.foreign_pointer)

    for n in (1, 0):
        assert run(k, n, counting(4), 10 * counting(4), np.zeros(4, np.float32)).tolist() == [
            [0, 10, 20, 30], [0, 1, 2, 3]][n]
    refuses("TileTypeError", two, ONE, np.zeros(4, np.int32))


@clause("FPTR-3.element")
def test_arrays_at_pointers():
    @ct.kernel
    def k(x, n, out, back):
        a = ct.Array.from_foreign(x.slice(0, 2, 24).foreign_pointer, (2, n), (n * 2, 2))
        ct.store(out, (0, 0), ct.load(a, (0, 0), (2, 4), padding_mode="NEG_INF"))
        ct.store(a, (0, 0), ct.full((2, 4), -1, ct.float32))
        ct.store(back, 0, a.shape[0] * 1000 + a.shape[1] * 100 + a.strides[0] * 10 + a.strides[1])

    x, out, back = counting(24), np.zeros((2, 4), np.float32), np.zeros(1, np.int32)
    run(k, x, 3, out, back)
    ninf = float("-inf")
    assert out.tolist() == [[2, 4, 6, ninf], [8, 10, 12, ninf]] and back.tolist() == [2362]
    assert [i for i in range(24) if x[i] == -1] == [2, 4, 6, 8, 10, 12]


@clause("FPTR-3.constant", "FPTR-3.runtime", "FPTR-3.index")
def test_types_of_arrays_at_pointers():
    def at(shape, strides):
        def f(a):
            b = ct.Array.from_foreign(a.foreign_pointer, shape(a), strides(a))
            return (*b.shape, *b.strides)
        return f

    x = counting(16)
    assert inspect(at(lambda a: (4, 2), lambda a: (2, 1)), x) == [(v, "int32") for v in (4, 2, 2, 1)]
    assert inspect(at(lambda a: (4, a.shape[0]), lambda a: (a.strides[0], 1)), x) == [
        (4, "int32"), (None, "int32"), (None, "int32"), (1, "int32")]
    assert inspect(at(lambda a: (a.shape[0],), lambda a: (a.strides[0].astype(ct.int64),)), x) == [(None, "int64")] * 2
    assert inspect(at(lambda a: (a.shape[0].astype(ct.int8),), lambda a: (a.strides[0],)), x) == [(None, "int32")] * 2
    assert inspect(at(lambda a: (ct.int64(4) + ct.bid(0),), lambda a: (a.strides[0],)), x) == [(None, "int64")] * 2


@pytest.mark.parametrize("f", [pytest.param(f, id=f"{n}{i}", marks=clause(f"FPTR-3.{n}")) for i, (n, f) in enumerate([
    ("pointer", lambda a: ct.Array.from_foreign(a, (4,), (1,))),
    ("pointer", lambda a: ct.Array.from_foreign(0, (4,), (1,))),
    ("pointer", lambda a: ct.Array.from_foreign(ct.zeros((1,), ct.uint64), (4,), (1,))),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, 4, 1)),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4.0,), (1,))),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4,), (True,))),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, (ct.uint32(4),), (1,))),
    ("entries", lambda a: ct.Array.from_foreign(a.foreign_pointer, (ct.zeros((1,), ct.int32),), (1,))),
    ("length", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4, 1), (1,))),
    ("length", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4,), (1, 1))),
    ("negative", lambda a: ct.Array.from_foreign(a.foreign_pointer, (-1,), (1,))),
    ("negative", lambda a: ct.Array.from_foreign(a.foreign_pointer, (4,), (-1,)))])])
def test_arrays_at_pointers_that_are_refused(f):
    @ct.kernel
    def k(x):
        f(x)

    refuses("TileTypeError", k, ONE)


@clause("FPTR-3.foreign")
@needs("cpu arrays")
def test_arrays_at_pointers_beyond_the_argument():
    @ct.kernel
    def k(x, n, out):
        a = ct.Array.from_foreign(x.foreign_pointer, (n,), (1,))
        ct.store(out, 0, ct.load(a, 0, 8, padding_mode="NEG_INF"))
        ct.store(a, 0, ct.full((8,), -1, ct.float32))

    memory = counting(16)
    assert run(k, memory[4:8], 8, np.zeros(8, np.float32)).tolist()[:4] == [4, 5, 6, 7]
    assert memory[:4].tolist() == [0, 1, 2, 3] and memory[4:8].tolist() == [-1] * 4


# ------------------------------------------------------------------ raw memory


@clause("RAWMEM-1.attributes", "RAWMEM-1.dropped")
def test_attributes_of_raw_memory():
    @ct.kernel
    def k(x):
        d = x.get_raw_memory().dtype
        ct.static_assert(d == ct.float32)

    accepts(k, ONE)
    for f in (lambda r: r.shape, lambda r: r.strides, lambda r: r.ndim, lambda r: r.size, lambda r: r[0]):
        @ct.kernel
        def wrong(x):
            f(x.get_raw_memory())

        refuses("TileTypeError", wrong, ONE)


@clause("RAWMEM-1.static")
def test_raw_memory_in_static_code():
    @ct.kernel
    def k(x):
        r = x.get_raw_memory()
        ct.static_eval(r)

    refuses("TileTypeError", k, ONE)

"""The dtypes of indices, sizes and loop variables [IDX]."""

from typing import Annotated, get_args

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, fails, launch, needs, refuses, run
from conformance.harness.dtype_names import DTYPES

Wide = ct.IndexedWithInt64
INT32 = type(get_args(ct.ScalarInt64)[1])(dtype=ct.int32)  # the class of scalar annotations has no public name


def dtypes_of(f, *args, annotation=object):
    """Names of the dtypes of the results of f(argument)."""
    seen = []

    @ct.kernel
    def k(x: annotation):
        values = f(x)
        for i in ct.static_iter(range(len(values))):
            d = values[i].dtype
            ct.static_eval(seen.append(d.name))

    accepts(k, *args)
    return seen


X = np.zeros((4, 8), np.float32)


@clause("IDX-1.bid", "IDX-1.num_blocks", "IDX-1.num_tiles", "IDX-1.view")
@pytest.mark.parametrize("annotation", [object, Wide])
def test_int32(annotation):
    def f(x):
        return (ct.bid(0), ct.num_blocks(1), ct.num_tiles(x, 0, (2, 2)), x.tiled_view((2, 2)).num_tiles(1))

    assert dtypes_of(f, X, annotation=annotation) == ["int32"] * 4


@clause("IDX-2.dtype", "IDX-2.narrow")
@pytest.mark.parametrize("annotation", [object, Wide])
@pytest.mark.parametrize("short", ["i8", "i16", "i32", "i64"])
def test_tile_indices(annotation, short):
    dtype = DTYPES[short]

    @ct.kernel
    def k(x: annotation, n, out: annotation):
        i = n.astype(dtype)
        ct.store(out, i, ct.load(x, i, 2) + x.tiled_view(2).load(i))
        x.tiled_view(2).store(i - 1, ct.load(x, dtype(0), 2))

    x, out = np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)
    launch(k, x, 3, out)
    assert out.tolist() == [0] * 6 + [14, 16] and x.tolist() == [1, 2, 3, 4, 1, 2, 7, 8]


@clause("IDX-2.dtype")
def test_tile_indices_that_are_refused():
    @ct.kernel
    def k(x, i: ct.Constant):
        ct.load(x, i, 2)

    for wrong in (True, 1.0, np.uint32(1)):
        refuses("TileTypeError", k, np.zeros(8, np.float32), wrong)

    @ct.kernel
    def of_an_array(x, i):
        ct.load(x, (i,), 2)

    refuses("TileTypeError", of_an_array, np.zeros(8, np.float32), np.zeros(1, np.int32))


@clause("IDX-2.wide")
@needs("cpu arrays")
def test_wide_indices_of_narrow_arrays():
    """An int64 index of an array indexed with int32 is truncated."""
    @ct.kernel
    def k(x, i: ct.ScalarInt64, out):
        ct.store(out, 0, ct.load(x, i, 2))
        ct.store(out, 1, x.tiled_view(2).load(i))
        ct.store(x, i + (1 << 33), ct.full((2,), -1, ct.float32))

    x = np.arange(8, dtype=np.float32)
    assert run(k, x, (1 << 32) + 3, np.zeros(4, np.float32)).tolist() == [6, 7, 6, 7]
    assert x.tolist() == [0, 1, 2, 3, 4, 5, -1, -1]


@clause("IDX-2.int64")
@needs("cpu arrays")
def test_wide_indices_of_wide_arrays():
    @ct.kernel
    def k(x: Wide, i: ct.ScalarInt64, out):
        ct.store(out, 0, ct.load(x, i, 2, padding_mode="NEG_INF"))
        ct.store(x, i, ct.full((2,), -1, ct.float32))

    x = np.arange(8, dtype=np.float32)
    assert run(k, x, (1 << 32) + 3, np.zeros(2, np.float32)).tolist() == [-np.inf] * 2
    assert x.tolist() == list(range(8))


@clause("IDX-3")
def test_element_indices():
    """Element indices have 64 bits, whatever the index dtype of the array."""
    @ct.kernel
    def k(x, i: ct.ScalarInt64, out):
        at = i + ct.arange(4, dtype=ct.int32).astype(ct.int64)
        ct.store(out, 0, ct.gather(x, at, padding_value=-5))
        ct.scatter(x, at + 1, 9)

    x = np.arange(8, dtype=np.float32)
    for i in (1 << 32, -(1 << 32), 1 << 62, -1 << 63, 1 << 31):
        assert run(k, x, i, np.zeros(4, np.float32)).tolist() == [-5] * 4
    assert x.tolist() == list(range(8))
    assert run(k, x, 6, np.zeros(4, np.float32)).tolist() == [6, 7, -5, -5]
    assert x.tolist() == [0, 1, 2, 3, 4, 5, 6, 9]
    assert run(k, x, -2, np.zeros(4, np.float32)).tolist() == [-5, -5, 0, 1]


@clause("IDX-3")
def test_unsigned_element_indices():
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.gather(x, ct.full((2,), -1, ct.int32).astype(ct.uint32), padding_value=-5))
        ct.store(out, 1, ct.gather(x, ct.arange(2, dtype=ct.uint8) + 6, padding_value=-5))

    assert run(k, np.arange(8, dtype=np.float32), np.zeros(4, np.float32)).tolist() == [-5, -5, 6, 7]


def variable(f, *args):
    """The dtype of the variable of a loop over range(*f(n))."""
    seen = []

    @ct.kernel
    def k(n, m: ct.ScalarInt64):
        bounds = f(n, m)
        for i in range(bounds[0], bounds[1], bounds[2]):
            d = i.dtype
            ct.static_eval(seen.append(d.name))

    accepts(k, *args)
    return seen[-1]


@clause("IDX-4.int32", "IDX-4.int64", "IDX-4.mixed")
def test_loop_variables():
    for f, want in ((lambda n, m: (0, n, 1), "int32"), (lambda n, m: (0, 10, 1), "int32"),
                    (lambda n, m: (ct.int8(0), n.astype(ct.int8), ct.int8(1)), "int32"),
                    (lambda n, m: (ct.int16(0), n.astype(ct.int16), 1), "int32"),
                    (lambda n, m: (m, m + 1, 1), "int64"), (lambda n, m: (0, m, 1), "int64"),
                    (lambda n, m: (m, n, 1), "int64"), (lambda n, m: (0, n, m), "int64"),
                    (lambda n, m: (0, 1 << 40, 1), "int64")):
        assert variable(f, 3, 5) == want


@clause("IDX-4.int64")
def test_loops_beyond_32_bits():
    @ct.kernel
    def k(start: ct.ScalarInt64, out):
        total = ct.int64(0)
        for i in range(start, start + 3):
            total = total + i
        ct.store(out, 0, total)

    assert run(k, 1 << 40, np.zeros(1, np.int64)).tolist() == [3 * (1 << 40) + 3]


@clause("IDX-5.int32", "IDX-5.int64", "IDX-5.overflow")
def test_integer_arguments():
    @ct.kernel
    def narrow(n, out):
        d = n.dtype
        ct.static_assert(d == ct.int32)
        ct.store(out, 0, n)

    @ct.kernel
    def wide(n: ct.ScalarInt64, out):
        d = n.dtype
        ct.static_assert(d == ct.int64)
        ct.store(out, 0, n)

    @ct.kernel
    def same(n: Annotated[int, INT32], out):
        ct.store(out, 0, n)

    out = np.zeros(1, np.int64)
    for n in (0, -1, (1 << 31) - 1, -(1 << 31)):
        assert run(narrow, n, out)[0] == run(wide, n, out)[0] == run(same, n, out)[0] == n
    for n in (1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63)):
        assert run(wide, n, out)[0] == n
        fails(OverflowError, narrow, n, out)
        fails(OverflowError, same, n, out)
    for n in (1 << 63, -(1 << 63) - 1):
        fails(OverflowError, wide, n, out)

"""Objects as bytes: what another process gets, what is refused, and that a blob has code for every call."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute, settings
from cutile.compute import OpKind, ProxyArray, ProxyValue, ahead
from cutile.errors import TileUnsupportedFeatureError
from cutile.gpu import driver as drivers
from tests.compute.checks import check_docstring, deep_but
from tests.gpu.arrays import Cuda, at
from tests.gpu.fake_driver import installed
from tests.gpu.tileir.tool import needs_tool

F, N32 = np.float32, np.int32
Pair = compute.gpu_struct({"low": F, "count": N32}, "Pair")


def added(a, b):
    return a + b


def again(obj, *args):
    """A call of an object that was serialized."""
    made = compute.deserialize(compute.serialize(obj))
    return made(np.empty(made(None, *args), np.uint8), *args)


# ------------------------------------------------------------------ what comes back


def test_what_comes_back_runs_on_host_arrays():
    x, out = np.arange(100, dtype=F), np.zeros(1)
    reduce = compute.make_reduce_into(x, out, added, 0.5)
    again(reduce, x, out, added, 100, 0.5)
    assert out[0] == 4950.5
    made = compute.deserialize(reduce.serialize())
    assert made.serialize() == reduce.serialize() and made.options == reduce.options and made.capabilities == ()
    with pytest.raises(TypeError, match="`op`: this object was made for another operator"):
        made(None, x, out, lambda a, b: a - b, 100, 0.5)
    with pytest.raises(TypeError, match="`op`: this object was made for another operator"):
        made(None, x, out, lambda a: a, 100, 0.5)
    with pytest.raises(TypeError, match="`d_in`: this object was made for array of float32, got array of int64"):
        made(None, x.astype(int), out, added, 100, 0.5)
    made(None, x, out, lambda a, b: a + b, 100, 0.5)  # an equal operator


def test_structs_and_iterators_come_back():
    items = compute.TransformIterator(compute.ZipIterator(np.arange(9, dtype=F), compute.CountingIterator(N32(3))),
                                      lambda z: Pair(z[0], z[1]))
    out, zero = np.zeros(1, Pair.dtype), Pair(0, 0)

    def both(a, b):
        return Pair(a.low + b.low, a.count + b.count)
    again(compute.make_reduce_into(items, out, both, zero), items, out, both, 9, zero)
    assert out[0].tolist() == (36.0, 63)
    made = compute.deserialize(compute.serialize(compute.make_reduce_into(items, out, both, zero)))
    other = compute.TransformIterator(items.children[0], lambda z: Pair(z[0], 2 * z[1]))
    with pytest.raises(TypeError, match="argument `d_in`"):
        made(None, other, out, both, 9, zero)


def test_options_come_back():
    keys, out = np.array([3, 1, 2]), np.zeros(3, int)
    again(compute.make_radix_sort(keys, out, None, None, compute.SortOrder.DESCENDING), keys, out, None, None, 3)
    assert out.tolist() == [3, 2, 1]
    counts = np.zeros(4, N32)
    histogram = compute.make_histogram_even(keys, counts, 5, 0, 4, 3)
    again(histogram, keys, counts, 5, 0, 4, 3)
    assert counts.tolist() == [0, 1, 1, 1]
    with pytest.raises(TypeError, match="h_num_output_levels"):
        compute.deserialize(histogram.serialize())(None, keys, counts, 4, 0, 3, 3)


# ------------------------------------------------------------------ what is refused


def test_blobs_of_others_and_damaged_ones_are_refused(monkeypatch):
    x = np.arange(5, dtype=F)
    blob = compute.serialize(compute.make_unary_transform(x, x, OpKind.NEGATE))
    for wrong in (blob[:40], blob[:-1], blob + b"\0", blob[:-3] + bytes([blob[-3] ^ 1]) + blob[-2:]):
        with pytest.raises(ValueError, match="the blob is damaged|no blob of cutile"):
            compute.deserialize(wrong)
    for wrong in (b"", b"\0" * 300, b"CUBIN", b"cutile.compute\n", b"cutile.compute 1\n"):
        with pytest.raises(ValueError, match="this is no blob"):
            compute.deserialize(wrong)
    for wrong in (None, "text", 7, x):
        with pytest.raises(TypeError, match=r"deserialize\(\) takes bytes"):
            compute.deserialize(wrong if wrong is not x else [x])
    for wrong in (None, compute.make_unary_transform, x, blob):
        with pytest.raises(TypeError, match=r"serialize\(\) takes an object that make_"):
            compute.serialize(wrong)
    monkeypatch.setattr(ahead, "release", lambda: "9.9-abc")
    with pytest.raises(ValueError, match=r"the blob is of cutile 0\.\S+, and this is 9\.9-abc"):
        compute.deserialize(blob)


def test_unknown_parts_are_refused(monkeypatch):
    x = np.arange(5, dtype=F)
    made = compute.make_unary_transform(x, x, OpKind.NEGATE)
    blob = compute.serialize(made)
    monkeypatch.setattr(ahead, "_classes", dict)
    with pytest.raises(ValueError, match="a part that is unknown here: 'UnaryTransform'"):
        compute.deserialize(blob)


def test_without_a_gpu_an_object_says_for_which_ones_it_is_made(monkeypatch):
    def missing():
        raise TileUnsupportedFeatureError("no driver")
    monkeypatch.setattr(drivers, "driver", missing)
    made = compute.make_unary_transform(ProxyArray(F), ProxyArray(F), OpKind.NEGATE)
    with pytest.raises(RuntimeError, match="no GPU here to compile for: pass compute_capability="):
        compute.serialize(made)


# ------------------------------------------------------------------ code for every call


def array(n, dtype=F):
    return at(1 << 20, (n,), typestr=np.dtype(dtype).str)


def by_key(n, items, lengths, *rest):
    return items, items, items, lengths, array(1, np.int64), n, *rest


# make_…'s arguments, and those of a call for n items between `temp_storage` and `stream`
OBJECTS = {
    "unary_transform": (lambda a: (a(F), a(F), OpKind.NEGATE), lambda n: (array(n), array(n), OpKind.NEGATE, n)),
    "reduce_into": (lambda a: (a(F), a(F), added, ProxyValue(F)), lambda n: (array(n), array(1), added, n, F(0))),
    "exclusive_scan": (lambda a: (a(F), a(F), added, ProxyValue(F)), lambda n: (array(n), array(n), added, F(0), n)),
    "inclusive_scan": (lambda a: (a(N32), a(N32), added), lambda n: (array(n, N32), array(n, N32), added, None, n)),
    "select": (lambda a: (a(F), a(F), a(np.int64), OpKind.LOGICAL_NOT),
               lambda n: (array(n), at(1 << 50, (n,)), at(1 << 51, (1,), typestr="<i8"), OpKind.LOGICAL_NOT, n)),
    "merge_sort": (lambda a: (a(F), None, a(F), None, OpKind.LESS),
                   lambda n: (array(n), None, array(n), None, n, OpKind.LESS)),
    "radix_sort": (lambda a: (a(N32), a(N32), a(F), a(F), compute.SortOrder.ASCENDING),
                   lambda n: (array(n, N32), at(1 << 50, (n,), typestr="<i4"), at(1 << 51, (n,)), at(1 << 52, (n,)), n,
                              0, 4 if n % 2 else None)),
    "segmented_sort": (lambda a: (a(N32), a(N32), None, None, a(N32), a(N32), compute.SortOrder.ASCENDING),
                       lambda n: (array(n, N32), at(1 << 50, (n,), typestr="<i4"), None, None, n, 9, array(9, N32),
                                  array(9, N32))),
    "segmented_reduce": (lambda a: (a(F), a(F), a(N32), a(N32), added, ProxyValue(F)),
                         lambda n: (array(n), array(n), max(n // 7, 1), array(n, N32), array(n, N32), added, F(0))),
    "histogram_even": (lambda a: (a(N32), a(N32), 9, 0, 8, 1),
                       lambda n: (array(n, N32), at(1 << 50, (8,), typestr="<i4"), 9, -1, n, n)),
    "lower_bound": (lambda a: (a(F), a(F), a(np.uint64)), lambda n: (array(n), n, array(n), n, array(n, np.uint64),
                                                                     None)),
    "reduce_by_key": (lambda a: (a(F), a(F), a(F), a(F), a(np.int64), added),
                      lambda n: (array(n), array(n), at(1 << 50, (n,)), at(1 << 51, (n,)),
                                 at(1 << 52, (1,), typestr="<i8"), added, n, None)),
}


@pytest.mark.parametrize("name", deep_but(list(OBJECTS), "unary_transform", "select"))
def test_a_blob_has_code_for_every_call(name, monkeypatch):
    """Whatever the number of items, alignment and strides, calls compile nothing."""
    fake = installed(monkeypatch)
    make, args_of = OBJECTS[name]
    compute.clear_all_caches()
    blob = compute.serialize(getattr(compute, f"make_{name}")(*make(ProxyArray), compute_capability=[90, 100]))
    assert {b["target"] for b in fake.built} == {"sm_90", "sm_100"}
    assert len({str(b["constraints"]) for b in fake.built}) > 1
    built = len(fake.built)
    compute.clear_all_caches()
    made = compute.deserialize(blob)
    needs_storage = name not in ("unary_transform", "lower_bound")
    for n in (1, 5, 31, 64, 1000, 1024, 5000, 2048 * 9, (1 << 20) + 3, 3 << 20, (1 << 31) - 1, (1 << 31) + 5, 1 << 33):
        if name == "segmented_reduce" and n > 1 << 30 or name in ("merge_sort", "radix_sort") and n > 1 << 31:
            continue
        args = args_of(n)
        if needs_storage:
            made(at(1 << 20, (made(None, *args),), typestr="|u1"), *args)
        else:
            made(*args)
        assert len(fake.built) == built, n
    assert fake.launches


def test_arrays_of_any_layout_have_code(monkeypatch):
    fake = installed(monkeypatch)
    made = compute.make_unary_transform(ProxyArray(F), ProxyArray(F), OpKind.NEGATE, compute_capability=90)
    blob, built = compute.serialize(made), len(fake.built)
    compute.clear_all_caches()
    made, x = compute.deserialize(blob), np.zeros(10_000, F)
    for view in (x[:4096], x[1:5000], x[::2], x[1::3], x[::-1], x[4095::-1]):
        made(Cuda(view), Cuda(view), OpKind.NEGATE, len(view))
    assert len(fake.built) == built and len(fake.launches) == 6
    loaded = {c[1] for c in fake.calls if c[0] == "cuModuleLoadData"}
    assert len(loaded) >= 3  # arrays without gaps that are aligned have code of their own
    made(x, x, OpKind.NEGATE, 100)  # in host memory it runs, too
    with pytest.raises(RuntimeError, match="made for arrays in host memory"):
        compute.deserialize(compute.serialize(compute.make_unary_transform(x, x, OpKind.NEGATE)))(
            Cuda(x), Cuda(x), OpKind.NEGATE, 5)


def test_operators_that_capture_arrays(monkeypatch):
    fake = installed(monkeypatch)
    table, x, out = np.arange(9, dtype=F), np.zeros(300, N32), np.zeros(300, F)

    def looked_up(array):
        return lambda v: array[v] + 1
    made = compute.make_unary_transform(x, out, looked_up(table), compute_capability=90)
    items = compute.TransformIterator(x, looked_up(table))
    reduce = compute.make_reduce_into(items, out, added, F(0), compute_capability=90)
    blobs, built = [compute.serialize(made), compute.serialize(reduce)], len(fake.built)
    compute.clear_all_caches()
    made, reduce = map(compute.deserialize, blobs)
    there, values, result = Cuda(table), Cuda(x), Cuda(out)
    made(values, result, looked_up(there), 300)
    items = compute.TransformIterator(values, looked_up(there))
    reduce(Cuda(np.zeros(reduce(None, items, result, added, 300, F(0)), np.uint8)), items, result, added, 300, F(0))
    assert len(fake.built) == built and len(fake.launches) >= 2
    made(x, out, looked_up(table), 300)
    assert out[0] == 1
    with pytest.raises(TypeError, match="argument `op`"):
        made(x, out, lambda v: table[v] + 2, 300)


def test_code_goes_with_the_object(monkeypatch):
    fake = installed(monkeypatch)
    made = compute.make_unary_transform(ProxyArray(F), ProxyArray(F), OpKind.NEGATE, compute_capability=90)
    blob, built = compute.serialize(made), len(fake.built)
    compute.clear_all_caches()
    compute.deserialize(blob)  # and forgotten
    x = Cuda(np.zeros(64, F))
    compute.unary_transform(x, x, OpKind.NEGATE, 64)
    assert len(fake.built) == built + 1


@needs_tool
def test_a_blob_has_what_the_assembler_made(tmp_path):
    with settings.override(CACHE_DIR=str(tmp_path)):
        made = compute.make_unary_transform(ProxyArray(F), ProxyArray(F), lambda v: v * 3, compute_capability="9.0")
        found = compute.deserialize(compute.serialize(made)).carried.codes
        codes = [c for codes in found.values() for c in codes]
        assert codes and all(c.cubin[:4] == b"\x7fELF" and c.symbol.encode() in c.cubin for c in codes)
        assert compute.pch_cache_dir() == tmp_path
        assert compute.clear_pch_cache() == len(codes) and compute.clear_pch_cache() == 0
    with settings.override(CACHE=False):
        assert compute.pch_cache_dir() is None and compute.clear_pch_cache() == 0


@pytest.mark.parametrize("function", [compute.serialize, compute.deserialize])
def test_documentation(function):
    check_docstring(function)

"""Sorts through cuda-cccl: which calls go there, with which arguments, and what happens without the package.

A stand-in takes the place of cuda.compute. It has its signatures, and sorts the host memory that is GPU memory here.
"""

from __future__ import annotations

import enum
import sys
import threading
import types

import numpy as np
import pytest

from cutile import compute, settings
from cutile.compute import DoubleBuffer, ProxyArray, SortOrder, algorithm, arrays, delegation, roles
from cutile.compute.plans import Plan
from cutile.runtime import launch_cache
from tests.compute.checks import check_docstring
from tests.gpu import extension
from tests.gpu.arrays import Cuda, at
from tests.gpu.fake_driver import installed
from tests.gpu.fields_in_c import FieldsArray, array
from tests.runtime.test_c_readers import offers

N = 50
KEYS = np.random.default_rng(3).integers(-9, 9, N).astype(np.int32)


class Order(enum.Enum):
    ASCENDING = 0
    DESCENDING = 1


def _memory(a):
    cai = a.__cuda_array_interface__
    return np.ndarray(cai["shape"], cai["typestr"], np.ctypeslib.as_array(
        (np.ctypeslib.ctypes.c_ubyte * (cai["shape"][0] * a.dtype.itemsize)).from_address(cai["data"][0])))


class Package(types.ModuleType):
    """What delegation uses of cuda.compute 1.2."""

    SortOrder = Order
    _BINDINGS_AVAILABLE = True

    def __init__(self):
        super().__init__("cuda.compute")
        self.calls: list[dict] = []
        self.made: list[tuple] = []
        self.blobs: list[tuple] = []

    def make_radix_sort(self, *, d_in_keys, d_out_keys, d_in_values, d_out_values, order, compute_capability=None):
        self.made.append((threading.get_ident(), order, d_in_keys.dtype, d_in_values and d_in_values.dtype))
        if compute_capability is not None:
            return self.made[-1][1:], compute_capability
        return self.radix_sort(order)

    def ProxyArray(self, dtype):
        return types.SimpleNamespace(dtype=dtype)

    def serialize(self, made):
        self.blobs.append(made)
        return b"blob %d\0" % len(self.blobs)

    def deserialize(self, blob):
        (order, *_), _ = self.blobs[int(blob[5:-1]) - 1]
        return self.radix_sort(order)

    def radix_sort(self, order):

        def run(*, temp_storage, d_in_keys, d_out_keys, d_in_values, d_out_values, num_items, begin_bit=None,
                end_bit=None, stream=None):
            if temp_storage is not None:
                self.calls.append({"items": num_items, "bits": (begin_bit, end_bit), "bytes": temp_storage.nbytes,
                                   "stream": stream and stream.__cuda_stream__()})
                at = np.argsort(_memory(d_in_keys) * (1 if order is Order.ASCENDING else -1), kind="stable")
                _memory(d_out_keys)[:] = _memory(d_in_keys)[at]
                if d_in_values is not None:
                    _memory(d_out_values)[:] = _memory(d_in_values)[at]
            return 1000 + num_items
        return run

    def make_segmented_sort(self, *, d_in_keys, d_out_keys=None, d_in_values=None, d_out_values=None, start_offsets_in,
                            end_offsets_in, order):
        def run(*, temp_storage, d_in_keys, d_out_keys, d_in_values, d_out_values, num_items, num_segments,
                start_offsets_in, end_offsets_in, stream=None):
            assert d_in_values is d_out_values is None and len(_memory(start_offsets_in)) == num_segments
            if temp_storage is not None:
                self.calls.append({"items": num_items})
                for a, b in zip(_memory(start_offsets_in), _memory(end_offsets_in), strict=True):
                    found = np.sort(_memory(d_in_keys)[a:b])
                    _memory(d_out_keys)[a:b] = found if order is Order.ASCENDING else found[::-1]
            return 64
        return run


@pytest.fixture
def package(monkeypatch):
    found = Package()
    monkeypatch.setitem(sys.modules, "cuda.compute", found)
    monkeypatch.setattr(delegation, "_package", lambda: found)
    monkeypatch.setattr(delegation, "_installed", lambda: True)
    monkeypatch.setattr(delegation, "_choices", [])
    found.driver = installed(monkeypatch)
    compute.clear_all_caches()
    yield found
    compute.clear_all_caches()


def sorted_by(order, n=N, values=True, keys=KEYS, **more):
    out, moved = np.full(n, -1, keys.dtype), np.full(n, -1, np.int64)
    given = (Cuda(np.arange(n)), Cuda(moved)) if values else (None, None)
    compute.radix_sort(Cuda(keys), Cuda(out), *given, n, order, **more)
    return out, moved


def test_a_radix_sort(package):
    for _ in range(2):
        out, moved = sorted_by(SortOrder.DESCENDING, stream=77)
    at = np.argsort(-KEYS, kind="stable")
    assert out.tolist() == KEYS[at].tolist() and moved.tolist() == at.tolist()
    assert package.calls == 2 * [{"items": N, "bits": (0, 32), "bytes": 1000 + N, "stream": (0, 77)}]
    assert package.made == [(threading.get_ident(), Order.DESCENDING, KEYS.dtype, np.dtype(np.int64))]
    assert not package.driver.launches
    sorted_by(SortOrder.ASCENDING, values=False, begin_bit=2, end_bit=5)
    assert package.calls[-1]["bits"] == (2, 5)
    assert "cuMemFreeAsync" in package.driver.names()


def test_an_object_and_its_storage(package):
    made = compute.make_radix_sort(ProxyArray(np.int32), ProxyArray(np.int32), None, None, SortOrder.ASCENDING)
    out = Cuda(np.zeros(N, np.int32))
    need = made(None, Cuda(KEYS), out, None, None, N)
    assert made.backend == "cccl" and need >= 1000 + N and not package.calls
    with pytest.raises(ValueError, match="temp_storage"):
        made(Cuda(np.zeros(need - 1, np.uint8)), Cuda(KEYS), out, None, None, N)
    made(Cuda(np.zeros(need, np.uint8)), Cuda(KEYS), out, None, None, N)
    assert out.array.tolist() == np.sort(KEYS).tolist() and len(package.calls) == 1


def test_a_segmented_sort(package):
    out, starts, ends = Cuda(np.full(N, 99, np.int32)), Cuda(np.array([0, 20])), Cuda(np.array([20, 45]))
    compute.segmented_sort(Cuda(KEYS), out, None, None, N, 2, starts, ends, SortOrder.ASCENDING)
    assert out.array.tolist() == [*np.sort(KEYS[:20]), *np.sort(KEYS[20:45]), *[99] * 5]
    assert len(package.calls) == 1 and not package.driver.launches


@pytest.mark.parametrize("in_c", [True, False])
def test_calls_run_where_their_arrays_are(package, monkeypatch, in_c):
    """Their object runs with the context of the GPU current, and calls leave the current one as it was."""
    module = extension.built() if in_c else None
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    driver = package.driver
    seen = []
    made_of = Package.radix_sort

    def radix_sort(self, order):
        run = made_of(self, order)

        def noted(**given):
            seen.append(driver.contexts[-1])
            return run(**given)
        return noted
    monkeypatch.setattr(Package, "radix_sort", radix_sort)
    for current in ([0], [0x1000], [0x1001]):
        driver.contexts[:] = current
        seen.clear()
        out, _ = sorted_by(SortOrder.ASCENDING, values=False)
        assert seen and set(seen) == {0x1000} and driver.contexts == current and out.tolist() == np.sort(KEYS).tolist()


def test_errors_of_theirs(package, monkeypatch):
    """They are raised as they are, once, from C code too, and memory is given back."""
    module = extension.built()
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    extension.installed(monkeypatch)
    offers(monkeypatch, FieldsArray)
    monkeypatch.setattr(arrays, "KINDS", {})
    monkeypatch.setattr(algorithm, "KINDS", arrays.KINDS)
    monkeypatch.setattr(roles, "KINDS", arrays.KINDS)
    package.driver.contexts[:] = [0x1000]
    calls, wrong = [], [False]

    def radix_sort(order):
        def run(*, temp_storage, stream=None, **given):
            if temp_storage is not None:
                calls.append(stream and stream.__cuda_stream__())
                if wrong[0]:
                    raise RuntimeError("error code: 700")
            return 64
        return run
    monkeypatch.setattr(package, "radix_sort", radix_sort)
    x, out = (array(1 << k, (N,), (1,), "i4") for k in (40, 41))
    for k in range(4):
        compute.radix_sort(x, out, None, None, N, SortOrder.ASCENDING, stream=77 * k)
    assert calls == [None, (0, 77), (0, 154), (0, 231)]
    with pytest.raises(TypeError, match="is no stream"):
        compute.radix_sort(x, out, None, None, N, SortOrder.ASCENDING, stream=2.5)
    monkeypatch.setattr(Plan, "run_once", None)  # from now on C code runs them
    wrong[0] = True
    with pytest.raises(RuntimeError, match="error code: 700"):
        compute.radix_sort(x, out, None, None, N, SortOrder.ASCENDING, stream=5)
    names = package.driver.names()
    assert calls[4:] == [(0, 5)] and names.count("cuMemAllocAsync") == names.count("cuMemFreeAsync") == 5


def test_each_thread_has_its_object(package):
    sorted_by(SortOrder.ASCENDING)
    done = threading.Thread(target=sorted_by, args=(SortOrder.ASCENDING,))
    done.start()
    done.join()
    assert len({thread for thread, *_ in package.made}) == 2 and len(package.calls) == 2


def test_what_stays_here(package):
    """Whatever a sort of cuda.compute may give another result of, or does not take."""
    x, o, n = Cuda(KEYS), Cuda(np.zeros(N, np.int32)), N
    f, g = Cuda(KEYS.astype(np.float32)), Cuda(np.zeros(N, np.float32))
    strided, offsets = Cuda(np.zeros(2 * N, np.int32)[::2]), (Cuda(np.array([0])), Cuda(np.array([9])))
    up = SortOrder.ASCENDING
    compute.radix_sort(DoubleBuffer(x, o), None, None, None, n, up)
    compute.radix_sort(strided, o, None, None, n, up)
    compute.radix_sort(compute.TransformIterator(x, lambda v: v), o, None, None, n, up)
    compute.radix_sort(Cuda(KEYS > 0), Cuda(KEYS > 1), None, None, n, up)
    compute.segmented_sort(f, g, None, None, n, 1, *offsets, up)
    compute.segmented_sort(x, o, f, g, n, 1, *offsets, up)
    compute.merge_sort(x, None, o, None, n, compute.OpKind.LESS)
    many = 1 << 31
    made = compute.make_radix_sort(x, o, None, None, up)
    for n_items, calls in ((many - 1, 1), (many, 0)):
        arrays = (at(place, (many,), typestr="<i4") for place in (1 << 40, 1 << 50))
        assert (made(None, *arrays, None, None, n_items) < 1 << 32) == calls
    assert not package.calls and package.driver.launches
    host = np.zeros_like(KEYS)
    compute.radix_sort(KEYS, host, None, None, n, up)
    compute.radix_sort(x, o, None, None, 0, up)
    assert not package.calls and host.tolist() == np.sort(KEYS).tolist()
    with pytest.raises(ValueError, match="share memory"):
        compute.radix_sort(x, x, None, None, n, up)


def test_the_choice(package, monkeypatch):
    assert compute.backend() == "auto"
    assert compute.backend("own") == "own" == compute.backend()
    sorted_by(SortOrder.ASCENDING)
    assert not package.calls and package.driver.launches
    made = compute.make_radix_sort(ProxyArray("i4"), ProxyArray("i4"), None, None, SortOrder.ASCENDING)
    assert made.backend == "own" and compute.make_select(
        ProxyArray("i4"), ProxyArray("i4"), ProxyArray("i4"), compute.OpKind.IDENTITY).backend == "own"
    compute.backend("cccl")
    sorted_by(SortOrder.ASCENDING)
    assert len(package.calls) == 1
    for wrong in ("", "cub", 7):
        with pytest.raises(ValueError, match="backend"):
            compute.backend(wrong)
    monkeypatch.setattr(delegation, "_choices", [])
    for setting, way in (("own", "own"), ("cccl", "cccl"), ("auto", "cccl")):
        with settings.override(COMPUTE=setting):
            assert compute.backend() == setting and delegation.chosen() == way
    with settings.override(BACKEND="interp"):
        assert delegation.chosen() == "own"


def test_without_the_package(package, monkeypatch):
    monkeypatch.setattr(delegation, "_package", lambda: "cuda.compute cannot be imported (OSError: no libnvrtc)")
    sorted_by(SortOrder.ASCENDING)
    assert package.driver.launches  # auto
    compute.backend("cccl")
    with pytest.raises(ImportError, match=r"no libnvrtc\): pip install 'cutile\[compute\]', or CUTILE_COMPUTE=own"):
        sorted_by(SortOrder.ASCENDING, n=N - 1)
    monkeypatch.setattr(delegation, "_installed", lambda: False)
    compute.backend("auto")
    assert delegation.chosen() == "own"


def test_the_package_is_looked_for(monkeypatch):
    broken = types.ModuleType("cuda.compute")
    for found, says in ((None, "cannot be imported"), (broken, "finds no driver")):
        monkeypatch.setitem(sys.modules, "cuda.compute", found)
        delegation._package.cache_clear()
        assert says in delegation._package()
    broken._BINDINGS_AVAILABLE = True
    delegation._package.cache_clear()
    assert delegation._package() is broken
    delegation._package.cache_clear()


@pytest.fixture
def few_sizes(monkeypatch):
    """Blobs have code for fewer items than 2^12: what is tested here is which code, not for which sizes."""
    monkeypatch.setattr(algorithm, "MOST_BITS", 12)


def test_blobs(package, monkeypatch, few_sizes):
    """They have their bytes, which the same version takes, and kernels of this language, which run elsewhere."""
    monkeypatch.setattr(delegation, "version", lambda: "1.2.1")
    made = compute.make_radix_sort(ProxyArray("i4"), ProxyArray("i4"), ProxyArray("f8"), ProxyArray("f8"),
                                   SortOrder.DESCENDING, compute_capability=[90, 100])
    blob = compute.serialize(made)
    assert package.driver.built and package.blobs == [
        ((Order.DESCENDING, KEYS.dtype, np.dtype(np.float64)), [(9, 0), (10, 0)])]
    out, moved = Cuda(np.zeros(N, np.int32)), Cuda(np.zeros(N))

    def sorted_by(again):
        compute.clear_all_caches()
        args = Cuda(KEYS), out, Cuda(np.arange(N, dtype=float)), moved, N
        again(Cuda(np.zeros(again(None, *args), np.uint8)), *args)

    again = compute.deserialize(blob)
    before = len(package.made)
    sorted_by(again)
    assert again.backend == "cccl" and len(package.made) == before and len(package.calls) == 1
    assert out.array.tolist() == sorted(KEYS, reverse=True) and again.serialize() == blob
    for other in ("1.3.0", ""):
        monkeypatch.setattr(delegation, "version", lambda other=other: other)
        again = compute.deserialize(blob)
        assert again.backend == "own"
    sorted_by(again)
    assert len(package.calls) == 1 and package.driver.launches


PAIR = DoubleBuffer(ProxyArray("i4"), ProxyArray("i4"))


@pytest.mark.parametrize("keys, out, backend", [
    (PAIR, None, "auto"), (ProxyArray("i4"), ProxyArray("i4"), "own"),
    pytest.param(ProxyArray("?"), ProxyArray("?"), "auto", marks=pytest.mark.deep)])
def test_blobs_without_bytes_of_theirs(keys, out, backend, package, few_sizes):
    """What their sorts do not take, and what is to run here."""
    compute.backend(backend)
    made = compute.make_radix_sort(keys, out, None, None, SortOrder.ASCENDING, compute_capability=90)
    assert compute.deserialize(compute.serialize(made)).backend == "own" and not package.blobs


def test_documentation():
    check_docstring(compute.backend)

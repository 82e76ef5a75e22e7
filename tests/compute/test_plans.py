"""Plans: what a later call with other arrays, numbers and streams runs, on the host and on a GPU that is none."""

from __future__ import annotations

import struct
import sys
import threading
import types

import numpy as np
import pytest

import cutile as ct
from cutile import compute, settings
from cutile.compute import CountingIterator, OpKind, ZipIterator, arrays, roles, steps
from cutile.compute.algorithm import Algorithm
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.reduce import Reduce
from cutile.compute.roles import COUNT, INITIAL, INITIAL_OR_ARRAY, INPUT, OPERATOR, OUTPUT, VALUE
from cutile.compute.scan import Scan
from cutile.compute.transform import UnaryTransform
from cutile.gpu import cubin as building
from cutile.gpu import driver as drivers
from cutile.runtime import launch_cache
from cutile.runtime.kernel import Kernel
from tests.gpu import extension
from tests.gpu.arrays import Cuda
from tests.gpu.fake_driver import FakeDriver, installed, sizes_of
from tests.runtime.test_c_readers import lending


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """How often each algorithm makes a plan; none is known before."""
    compute.clear_all_caches()
    found: list[str] = []
    plan_of = Algorithm._plan

    def counted(self, key, args, roots):
        before = len(self.plans)
        answer = plan_of(self, key, args, roots)
        found.extend([type(self).__name__] * (len(self.plans) - before))
        return answer
    monkeypatch.setattr(Algorithm, "_plan", counted)
    return found


def test_later_calls_run_on_their_own_arguments(made):
    rng = np.random.default_rng(4)
    n = 70_000
    for k in range(4):
        x, y = rng.integers(-9, 9, n).astype(np.int32), np.zeros(n, np.int32)
        o, first = np.zeros(1, np.int64), np.array([k], np.int64)
        compute.reduce_into(x, o, n, OpKind.PLUS, first)
        assert o[0] == x.sum() + k
        compute.inclusive_scan(x, y, lambda a, b: a + b, np.int32(k), n)
        assert np.array_equal(y, np.cumsum(x) + k)
        pairs = ZipIterator(CountingIterator(np.int32(10 * k)), x)
        compute.unary_transform(pairs, y, lambda p: p[0] * 100 + p[1], n)
        assert np.array_equal(y, (np.arange(n) + 10 * k) * 100 + x)
    assert sorted(made) == ["Reduce", "Scan", "UnaryTransform"]


def test_what_plans_depend_on(made):
    """Sizes, counts, dtypes, places in arrays, operators and what they capture."""
    x, o = np.arange(100, dtype=np.int32), np.zeros(100, np.int32)
    captured = 2

    def scaled(v):
        return v * captured
    for n, source in ((100, x), (99, x), (99, x[1:]), (99, x.astype(np.int16)),
                      (99, compute.CacheModifiedInputIterator(x) + 1), (98, compute.CacheModifiedInputIterator(x) + 2)):
        for captured in (2, 5):
            o[:] = 0
            compute.unary_transform(source, o, scaled, n)
            given = x[source.start:] if hasattr(source, "start") else source
            assert np.array_equal(o[:n], given[:n] * captured) and not o[n:].any()
    assert len(made) == 12
    for _ in range(2):  # a new function of the same code is the same operator, wherever it is written
        compute.unary_transform(x.copy(), o, lambda v: v * captured, 100)
    assert len(made) == 12
    compute.unary_transform(x.copy(), o, lambda v: captured * v, 100)
    assert len(made) == 13


def test_a_captured_object_that_changes():
    settings = types.SimpleNamespace(scale=2)
    x, o = np.arange(5, dtype=np.int32), np.zeros(5, np.int32)

    def scaled(v):
        return v * ct.static_eval(settings.scale)
    for scale in (2, 3):
        settings.scale = scale
        compute.unary_transform(x, o, scaled, 5)
        assert o.tolist() == [k * scale for k in range(5)]


def test_an_operator_that_becomes_another_op():
    """In host memory ops alone run by calls of NumPy; which op it is may change."""
    settings, x = types.SimpleNamespace(add=True), np.array([2, 3, 4], np.int32)

    def combined(a, b):
        if ct.static_eval(settings.add):
            return a + b
        return a * b
    for settings.add in (True, False, True):
        f = np.add if settings.add else np.multiply
        total, both, sums, few = (np.zeros(k, np.int32) for k in (1, 3, 3, 1))
        compute.reduce_into(x, total, 3, combined)
        compute.binary_transform(x, x, both, combined, 3)
        compute.inclusive_scan(x, sums, combined, None, 3)
        compute.segmented_reduce(x, few, 1, np.zeros(1, int), np.full(1, 3), combined, np.int32(2))
        assert (total[0], both.tolist(), sums.tolist()) == (f.reduce(x), f(x, x).tolist(), f.accumulate(x).tolist())
        assert few[0] == f(f.reduce(x), 2)


def test_threads_share_an_object():
    n, wrong = 5000, []
    scan = compute.make_inclusive_scan(np.zeros(n, np.int64), np.zeros(n, np.int64), OpKind.PLUS, np.int64(0))
    need = scan(None, np.zeros(n, np.int64), np.zeros(n, np.int64), OpKind.PLUS, np.int64(0), n)

    def work(k):
        x, y, storage = np.arange(n) * k, np.zeros(n, np.int64), np.empty(need, np.uint8)
        for i in range(20):
            scan(storage, x, y, OpKind.PLUS, np.int64(i), n)
            if not np.array_equal(y, np.cumsum(x) + i):
                wrong.append((k, i))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ------------------------------------------------------------------ on a GPU


@pytest.fixture(params=["c", "python"])
def gpu(request, monkeypatch):
    module = extension.built() if request.param == "c" else None
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    fake = installed(monkeypatch)
    fake.in_c = module is not None
    return fake


def pointers(launch):
    return {int.from_bytes(p, "little") for p in launch["parameters"] if len(p) == 8}


def test_launches_on_a_gpu(gpu):
    n = 100_000
    for k in (0, 1, 2):
        x, o = (Cuda(np.zeros(m, np.float32)) for m in (n, 1))
        compute.reduce_into(x, o, n, OpKind.PLUS, np.float32(k), stream=7)
        first, second = gpu.launches[2 * k:]
        (storage,) = pointers(first) & pointers(second)
        assert x.array.ctypes.data in pointers(first) and o.array.ctypes.data in pointers(second)
        bits = int(np.float64(k).view(np.int64))
        assert bits in pointers(second) and (first["stream"], second["stream"]) == (7, 7)
        assert ("cuMemFreeAsync", storage, 7) in gpu.calls
        assert first["grid"][0] > 1 and second["grid"] == (1, 1, 1)
    names = [c for c in gpu.names() if c.startswith("cuLaunch")]
    assert names[-2:] == ["cuLaunchKernel in C" if gpu.in_c else "cuLaunchKernel"] * 2


def test_storage_on_a_gpu(gpu):
    n = 100_000
    x, o = (Cuda(np.zeros(m, np.float32)) for m in (n, 1))
    reduce = compute.make_reduce_into(x, o, OpKind.PLUS)
    need = reduce(None, x, o, OpKind.PLUS, n)
    memory = np.zeros(need + 64, np.uint8)
    start = -memory.ctypes.data % 16
    assert not gpu.launches and "cuMemAllocAsync" not in gpu.names()
    for at in (start, start + 4, start, start + 4):  # code for the one is not run for the other
        storage = memory[at:at + need]
        assert reduce(Cuda(storage), x, o, OpKind.PLUS, n) == need
        assert storage.ctypes.data in pointers(gpu.launches[-1])
    assert len(gpu.built) > 2
    before = len(gpu.launches)
    for storage, error in ((Cuda(memory[start:start + need - 1]), f"has {need - 1} bytes"),
                           (Cuda(memory[start + 1:]), "no multiple of 4"), (Cuda(memory[::2]), "has|contiguous")):
        with pytest.raises(ValueError, match=error):
            reduce(storage, x, o, OpKind.PLUS, n)
    with pytest.raises(TypeError, match="is in host memory, and the arrays are in the memory of GPU 0"):
        reduce(memory, x, o, OpKind.PLUS, n)
    with pytest.raises(TypeError, match="`temp_storage`: expected an array or None, got str"):
        reduce("none", x, o, OpKind.PLUS, n)
    assert len(gpu.launches) == before


def test_two_gpus(gpu):
    xs = [Cuda(np.zeros(10, np.float32)) for _ in range(2)]
    gpu.homes[xs[1].array.ctypes.data] = 1
    negate = compute.make_unary_transform(xs[0], xs[0], OpKind.NEGATE)
    for x in [*xs, *xs]:
        negate(x, x, OpKind.NEGATE, 10)
    assert [launch["context"] for launch in gpu.launches] == [0x1000, 0x1001] * 2


def test_tensors_are_told(gpu, monkeypatch):
    extension.installed(monkeypatch)
    x, y = (extension.Tensor(4096 * k, (16,), (1,)) for k in (1, 2))
    for k in range(3):
        compute.unary_transform(x, y, OpKind.NEGATE, 16)
        compute.unary_transform(x, compute.ReverseIterator(y), OpKind.NEGATE, 16)
        assert (x.version, y.version) == (0, 2 * k + 2)
    y.requires_grad = True
    with pytest.raises(RuntimeError, match="stores to parameter `d_out`, but the tensor"):
        compute.unary_transform(x, y, OpKind.NEGATE, 16)
    assert len(gpu.launches) == 6 and sys.modules["torch"].Tensor is extension.Tensor


def test_settings_count_at_each_call(gpu, monkeypatch):
    x, y = Cuda(np.arange(8, dtype=np.float32)), Cuda(np.zeros(8, np.float32))
    for backend in ("", "interp", ""):
        monkeypatch.setenv("CUTILE_BACKEND", backend)
        y.array[:] = 0
        compute.unary_transform(x, y, OpKind.NEGATE, 8)
        assert np.array_equal(y.array, -x.array) == (backend == "interp")
    assert len(gpu.launches) == 2


def test_roots_are_read_and_wrapped_in_one_order():
    """What `read` appends is what the slots of the operand have."""
    x = np.arange(6, dtype=np.int32)
    structs = np.zeros(3, np.dtype([("a", "i4"), ("b", "f8")], align=True))
    for role, value in ((INPUT, x), (INPUT, structs),
                        (INPUT, x.reshape(2, 3)),
                        (INPUT, ZipIterator(x, CountingIterator(3), compute.ReverseIterator(x))),
                        (INITIAL, np.array([[7, 8]])), (INITIAL, 2.5),
                        (INITIAL, structs[0]), (INITIAL, (2.5,))):
        roots = []
        role.read(value, [], roots)
        slots = list(role.wrap(value, "x").slots())
        assert len(roots) == len(slots) > 0
        assert all(np.array_equal(a, s.root) for a, s in zip(roots, slots, strict=True))
    assert Reduce.plans is not Scan.plans


def test_c_code_and_python_read_the_same(monkeypatch):
    module = extension.built()
    lender, kept = lending()
    values = (None, 3, 1 << 40, True, 2.5, "x", np.arange(3), np.float32(2), [], CountingIterator(3), OpKind.PLUS,
              extension.Tensor(4096, (7,), (1,)), extension.Tensor(4096, (7,), (1,), neg=True))
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    monkeypatch.setattr(arrays, "KINDS", {extension.Tensor: lender})

    def read(role, value, kinds):
        monkeypatch.setattr(roles, "KINDS", kinds)
        try:
            return roles.read_roles(bytes([role.in_c]), (role.read,), "first", (value,))
        except Exception as e:
            return type(e)
    every = (INPUT, OUTPUT, OPERATOR, COUNT, INITIAL, INITIAL_OR_ARRAY, VALUE)
    for role in (*every, *map(roles.optional, every), roles.with_default(COUNT, 7)):
        for value in values:
            here, there = (read(role, value, kinds) for kinds in ({}, {extension.Tensor: lender}))
            assert str(here) == str(there), (role, value)
    assert kept


def scan_of(n):
    x = np.arange(4.0)
    compute.inclusive_scan(x, x.copy(), compute.OpKind.PLUS, None, n)


def search_of(n):
    x = np.arange(4.0)
    compute.lower_bound(x, n, x, 4, np.zeros(4, np.int64))


@pytest.mark.parametrize("call", [scan_of, search_of])
@pytest.mark.parametrize(("n", "message"), [
    (None, "is missing: it says how many items there are"), (2.5, "must be an int, got 2.5"),
    ("3", "must be an int, got '3'"), (np.float32(2), "must be an int, got"), ([4], "must be an int, got"),
])
def test_counts_that_are_no_ints(call, n, message):
    with pytest.raises(TypeError, match=f"argument `num_items` {message}"):
        call(n)


def test_a_count_is_never_left_out():
    x = np.arange(4.0)
    with pytest.raises(TypeError, match="argument `num_items` is missing"):
        compute.inclusive_scan(x, x.copy(), compute.OpKind.PLUS)
    scan_of(np.int64(4)), scan_of(np.uint8(4))


def test_gpus_of_one_kind_share_code(monkeypatch, tmp_path):
    """A kernel that runs on several GPUs is compiled once for each compute capability, and loaded on each GPU."""
    fake, made = FakeDriver(devices=3), []

    def compiled(program, facts, target, options, symbol, lineinfo, hints):
        made.append(str(target))
        fake.sizes[b"code %d" % len(made)] = sizes_of(p.type for p in program.params)
        return b"code %d" % len(made)
    monkeypatch.setattr(drivers, "_driver", fake.start())
    monkeypatch.setattr(building, "_compiled", compiled)
    arrays = [Cuda(np.zeros(64, np.float32)) for _ in range(3)]
    fake.homes = {a.array.ctypes.data: k for k, a in enumerate(arrays)}
    with settings.override(CACHE_DIR=str(tmp_path)):
        for a in arrays * 2:
            compute.unary_transform(a, a, OpKind.NEGATE, 64)
    assert made == ["sm_90"]
    assert [c[1:] for c in fake.calls if c[0] == "cuModuleLoadData"] == [(b"code 1", 0x1000 + k) for k in range(3)]
    assert [launch["context"] for launch in fake.launches] == [0x1000, 0x1001, 0x1002] * 2


def test_where_launch_values_come_from():
    """C code makes them of roots and constants, as Python does; constants that it cannot take are left to Python."""
    found = steps._sources([None, 1.5, -3, True], [(0, 2, 40)])
    assert struct.unpack("qqqdqqqq", found) == (2, 40, -1, 1.5, -1, -3, -1, 1)
    assert steps._sources([1 << 63], []) is None is steps._sources([np.float32(1)], [])


@pytest.fixture
def many_kernels(monkeypatch):
    """A call on a GPU that launches several kernels, and where each was built."""
    fake, x, out = installed(monkeypatch), np.zeros(70_000, np.int32), np.zeros(8, np.int32)
    threads: list[int] = []
    return fake, threads, lambda: compute.histogram_even(Cuda(x), Cuda(out), 9, 0, 8, len(x))


def test_kernels_of_a_first_call_are_compiled_at_the_same_time(monkeypatch, many_kernels):
    """The first two of them wait for each other; later calls compile none."""
    fake, threads, call = many_kernels
    both = threading.Barrier(2, timeout=60)

    def build(*what):
        threads.append(threading.get_ident())
        if len(threads) <= 2:
            both.wait()
        return fake.build(*what)
    monkeypatch.setattr(building, "build", build)
    call()
    here = threading.get_ident()
    assert len(threads) == 2 * threads.count(here) and not both.broken
    many = len(threads)
    call()
    assert len(threads) == many


def test_a_kernel_is_compiled_while_the_next_one_is_typed(monkeypatch, many_kernels):
    """The second one is typed only when the first one is being built."""
    fake, threads, call = many_kernels
    begun, waited = threading.Event(), []

    def build(*what):
        threads.append(threading.get_ident())
        begun.set()
        return fake.build(*what)

    def program(self, arguments, real=Kernel.program):
        waited.append(begun.wait(60 if len(waited) == 1 else 0))
        return real(self, arguments)
    monkeypatch.setattr(building, "build", build)
    monkeypatch.setattr(Kernel, "program", program)
    call()
    assert waited[:2] == [False, True] and threads[0] != threading.get_ident()


@pytest.mark.parametrize("name, value", [("CUTILE_CACHE", "0"), ("CUTILE_BACKEND", "interp")])
def test_where_no_cache_keeps_code_or_no_gpu_runs_it_nothing_is_compiled_ahead(name, value, monkeypatch, many_kernels):
    fake, threads, call = many_kernels
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(building, "build", lambda *what: threads.append(threading.get_ident()) or fake.build(*what))
    call()
    assert set(threads) <= {threading.get_ident()}


def test_what_does_not_compile_is_told_by_the_launch(monkeypatch, many_kernels):
    """Once, as for a launch by itself, and again at the next call."""
    _, threads, call = many_kernels

    def build(*what):
        threads.append(threading.get_ident())
        raise FileNotFoundError("no assembler")
    monkeypatch.setattr(building, "build", build)
    for k in (1, 2):
        with pytest.raises(FileNotFoundError, match="no assembler"):
            call()
        assert threads.count(threading.get_ident()) == k


def test_what_is_no_stream_is_refused_in_host_memory():
    """Whatever runs: kernels, NumPy, nothing, and where a call only asks for a size."""
    x, out = np.arange(4), np.zeros(4, int)
    make = compute.make_reduce_into(x, out, OpKind.PLUS, 0)
    for call in (lambda: compute.unary_transform(x, out, lambda v: v, 4, stream="no"),
                 lambda: compute.reduce_into(x, out, 4, OpKind.PLUS, stream="no"),
                 lambda: compute.reduce_into(x, out, 0, OpKind.PLUS, stream="no"),
                 lambda: make(None, x, out, OpKind.PLUS, 4, 0, stream="no"),
                 lambda: make(np.zeros(8, np.uint8), x, out, OpKind.PLUS, 4, 0, stream="no")):
        with pytest.raises(TypeError, match="type str is no stream"):
            call()
    assert not out.any()


def test_initial_values_of_several_numbers():
    """Structs and complex numbers of the host, in each form; what is no number is refused, at later calls too."""
    Pair = compute.gpu_struct({"n": np.int32, "x": np.float64})
    Deep = compute.gpu_struct({"n": np.int32, "p": {"x": np.float64}})
    x, o = np.zeros(3, Pair.dtype), np.zeros(1, Pair.dtype)
    x["n"], x["x"] = 2, 0.5

    def add(a, b):
        return Pair(a.n + b.n, a.x + b.x)
    for first in (Pair(1, 2), Pair(np.int8(1), np.float32(2)), np.array([(1, 2)], Pair.dtype),
                  np.array([(1, 2)], Pair.dtype)[0], Pair(np.array([1]), np.array(2.0)), Pair(True, 2)):
        for _ in range(2):
            compute.reduce_into(x, o, 3, add, first)
            assert o[0].item() == (7, 3.5), first
    for first in (Pair("1", 2), Pair([1, 2], 2), Pair(None, 2)):
        with pytest.raises((TypeError, ValueError), match="argument `h_init`"):
            compute.reduce_into(x, o, 3, add, first)
    z, c = np.full(3, 1 + 2j), np.zeros(1, complex)
    for one in (1j, np.complex128(1j), np.array([1j])):
        compute.reduce_into(z, c, 3, OpKind.PLUS, one)
        assert c[0] == 3 + 7j
    d = np.zeros(1, Deep.dtype)
    compute.reduce_into(np.zeros(2, Deep.dtype), d, 2, lambda a, b: (a.n + b.n, (a.p.x + b.p.x,)), Deep(1, (2.5,)))
    assert d[0].item() == (1, (2.5,))


def test_only_tensors_are_told_of_writes_through_iterators(monkeypatch):
    """Calls with other arrays in iterators may run in C code."""
    gpu = installed(monkeypatch)
    x, o = Cuda(np.zeros(8, np.int32)), Cuda(np.zeros(8, np.int32))
    pairs, outs = ZipIterator(x, x), ZipIterator(o, Cuda(np.zeros(8, np.int32)))
    compute.unary_transform(pairs, outs, lambda p: (p[1], p[0]), 8)
    (plan,) = UnaryTransform.plans.values()
    assert len(gpu.launches) == 1 and not plan._tells
    a = pairs.children[0].array
    seen = ArrayIterator(a).signature()[0]
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Cuda))
    assert ArrayIterator(a).signature()[0] != seen

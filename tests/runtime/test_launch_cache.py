"""Launches repeated in C: they do what those in Python do, on any arguments, and leave alone what is unusual."""

import enum
import gc
import math
import random
import struct
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile._support import float_mode
from cutile.dtypes import from_foreign
from cutile.gpu import variants
from cutile.gpu.driver import DriverError
from cutile.interp import HostLaunch
from cutile.runtime import arrays, c_readers, launch_cache, launch_key
from cutile.runtime.annotations import PLAIN, ParameterSpec
from tests.front.compiling import cell
from tests.gpu import extension
from tests.gpu.extension import CuPyArray, LentTensor, Tensor
from tests.gpu.fake_driver import installed

IN_C = "cuLaunchKernel in C"


@pytest.fixture
def libraries(monkeypatch):
    extension.installed(monkeypatch)


@pytest.fixture
def c(monkeypatch, libraries):
    module = extension.built()
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    return module


@pytest.fixture
def gpu(monkeypatch):
    """The driver, on whose GPU 0 this thread works. The first launch of a grid decides what runs for it."""
    monkeypatch.setattr(variants, "LAUNCHES", 1)
    fake = installed(monkeypatch)
    fake.contexts[:] = [0x1000]
    return fake


def scaling():
    @ct.kernel
    def scale(x, y, f, N: ct.Constant):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16) * f)

    return scale


X, Y = CuPyArray(4096, (48,), (1,)), CuPyArray(8192, (50,), (2,))
TX, TY = Tensor(4096, (48,), (1,)), Tensor(8192, (50,), (2,))
LX, LY = LentTensor(4096, (48,), (1,)), LentTensor(8192, (50,), (2,))


def launches_of(fake):
    return [{k: v for k, v in one.items() if k != "function"} for one in fake.launches]


# ------------------------------------------------------------------ repeated launches


def test_python_runs_the_launches_that_ask_for_a_variant(c, gpu, monkeypatch):
    monkeypatch.setattr(variants, "LAUNCHES", 2)
    k = scaling()
    for _ in range(2):
        ct.launch(77, (3,), k, (X, Y, 2.5, 16))
        assert gpu.names()[-1] == "cuLaunchKernel"
    gpu.calls.clear()
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    assert gpu.names() == [IN_C]


@pytest.mark.parametrize("x, y, other", [(X, Y, CuPyArray(16384, (48,), (1,))), (TX, TY, Tensor(16384, (48,), (1,))),
                                         (LX, LY, LentTensor(16384, (48,), (1,)))])
def test_a_repeated_launch(c, gpu, x, y, other):
    k = scaling()
    for grid in ((3, 2), (4,)):  # Python decides what runs for a grid
        ct.launch(77, grid, k, (x, y, 2.5, 16))
    gpu.calls.clear()
    ct.launch(77, (3, 2), k, (x, y, 2.5, 16))
    ct.launch(78, (4,), k, (other, y, -1.0, 16))
    assert gpu.names() == [IN_C] * 2
    one, _, two, three = gpu.launches
    assert one == two
    assert three == {**one, "grid": (4, 1, 1), "stream": 78, "parameters": [
        struct.pack("<Q", 16384), *one["parameters"][1:6], struct.pack("<f", -1)]}


def test_numbers(c, gpu):
    @ct.kernel
    def k(x, b, i, j: ct.ScalarInt64, f):
        ct.store(x, 0, ct.astype(b, ct.float32) + i + f + ct.astype(j, ct.float32))

    for n in (1, 2):
        for b, i, j, f in ((True, -7, 5, 0.5), (False, 2**31 - 1, -2**31, 1e300), (True, 0, 2**62, math.inf),
                           (True, 0, -2**63, np.float64(-0.0))):
            ct.launch(77, (1,), k, (X, b, i, j, f))
            float32 = struct.pack("<f", f) if abs(f) < 1e38 else struct.pack("<f", math.copysign(math.inf, f))
            assert gpu.launches[-1]["parameters"][3:] == [
                struct.pack("<i", b), struct.pack("<i", i), struct.pack("<q", j), float32]
        assert gpu.names().count(IN_C) == {1: 1, 2: 5}[n]  # two of the first four are read alike


@pytest.mark.parametrize("stream, number", [(None, 0), (0, 0), (2**63, 2**63), (type("S", (), {"cuda_stream": 9})(), 9),
                                            (type("S", (), {"ptr": 9})(), 9)])
def test_streams(c, gpu, stream, number):
    k = scaling()
    for _ in range(2):
        ct.launch(stream, (1,), k, (X, Y, 1.0, 16))
    assert [one["stream"] for one in gpu.launches] == [number] * 2 and gpu.names()[-1] == IN_C


def test_refused(c, gpu):
    k = scaling()
    ct.launch(77, (3, 2), k, (X, Y, 1.0, 16))
    gpu.fails["cuLaunchKernel in C"] = 700
    with pytest.raises(DriverError, match=r"kernel scale cannot be launched on GPU 0 .* with grid \(3, 2, 1\): "):
        ct.launch(77, (3, 2), k, (X, Y, 1.0, 16))
    assert gpu.names().count(IN_C) == 1 and "cuLaunchKernel" not in gpu.names()[-1:]


def test_threads(c, gpu):
    k = scaling()
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))

    def run(n):
        gpu.contexts[:] = [0x1000]
        for m in range(50):
            ct.launch(n, (1,), k, (CuPyArray(4096 * (n + 1), (48,), (1,)), Y, float(100 * n + m), 16))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(gpu.launches) == 201 and gpu.names().count(IN_C) == 200
    for one in gpu.launches[1:]:
        n = one["stream"]
        assert one["parameters"][0] == struct.pack("<Q", 4096 * (n + 1))
        assert struct.unpack("<f", one["parameters"][6])[0] // 100 == n


def at_once(*works):
    """Run functions in threads of their own, which begin together. The first error is raised here."""
    barrier, errors = threading.Barrier(len(works)), []

    def run(work, seed):
        barrier.wait()
        try:
            work(random.Random(seed))
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(work, seed)) for seed, work in enumerate(works)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_threads_that_look_up_what_others_insert(c):
    """Whatever is found is of the arguments that were asked for, though the cache is full again and again."""
    watch = settings.watch("BACKEND")
    cache = c.LaunchCache(constants=bytes((0, 1)), watch=watch, host_watch=watch, grid_limit=9, capacity=12)
    cache.kinds[np.ndarray] = c.NUMPY
    given = [(np.zeros(1 + n % 5), n) for n in range(30)]
    found = []

    def work(rng):
        for _ in range(1500):
            args = given[rng.randrange(30)]
            if rng.random() < 0.3:
                assert cache.insert(args, {}, lambda: True, ["of", args[1]], None, None, None) is True
            elif (one := cache.lookup(args)) is not None:
                assert one == ["of", args[1]]
                found.append(args[1])
            assert len(cache) <= 12 + 8  # as many may pass the limit as insert at once

    at_once(*[work] * 8)
    assert len(set(found)) == 30


FACTOR = 1


def test_threads_that_launch_while_a_dependency_changes(c, monkeypatch):
    """Known and new launches, of kernels whose caches are full again and again: each result is of one factor."""
    monkeypatch.setattr(launch_cache, "LIMIT", 4)
    monkeypatch.setitem(globals(), "FACTOR", 1)

    @ct.kernel
    def k(x, y, N: ct.Constant):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 4) * FACTOR + N)

    ending = threading.Event()

    def launch(rng):
        try:
            for _ in range(50):
                blocks, n = rng.randrange(1, 4), rng.randrange(2)
                x, y = np.arange(4 * blocks), np.zeros(4 * blocks, int)
                ct.launch(None, (blocks,), k, (x, y, n))
                assert y.tolist() in ((x + n).tolist(), (2 * x + n).tolist())
        finally:
            ending.set()

    def change(rng):
        while not ending.wait(0.01):
            globals()["FACTOR"] = 3 - FACTOR

    at_once(*[launch] * 7, change)


def test_threads_that_replace_arguments_of_a_prepared_launch(c, gpu):
    """Each launch has the numbers of one `set`."""
    k = scaling()
    prepared = ct.prepare(k, (3,), (X, Y, 0.0, 16))
    prepared(77)  # decides which code runs
    step = prepared._in_c
    values = {n: (4096 * n, 8192 * n, float(n)) for n in range(1, 9)}
    step.set((X, Y, 1.0, 16), values[1])
    gpu.launches.clear()

    def launch(rng):
        gpu.contexts[:] = [0x1000]
        for _ in range(200):
            assert step.launch(77) is None

    def replace(rng):
        for _ in range(2000):
            n = rng.randrange(1, 9)
            step.set((X, Y, float(n), 16), values[n])

    at_once(*[launch] * 4, *[replace] * 2)
    seen = [tuple(struct.unpack(f, one["parameters"][i])[0] for f, i in (("<Q", 0), ("<Q", 3), ("<f", 6)))
            for one in gpu.launches]
    assert len(seen) == 800 and set(seen) <= set(values.values())


# ------------------------------------------------------------------ variants


@pytest.mark.parametrize("x, y", [(X, Y), (TX, TY), (LX, LY)])
def test_the_variant_without_checks_serves_grids_whose_tiles_lie_inside(c, gpu, x, y):
    """`x` has three tiles. The variant is made while the usual code runs, and never serves a grid that is larger."""
    k = scaling()
    inside, beyond = ((1,), (3,), (3, 1), (2, 5, 3)), ((4,), (4, 1, 1), (2**20,))

    def run(names=(IN_C,)):
        gpu.calls.clear()
        gpu.launches.clear()
        for grid in (*inside, *beyond):
            ct.launch(77, grid, k, (x, y, 2.5, 16))
        assert set(names) == {n for n in gpu.names() if n.startswith("cuLaunch")}
        return [[one["function"][1] for one in gpu.launches if (one["grid"][0] <= 3) == here] for here in (True, False)]

    usual, unchecked = b"cubin 1", b"cubin 2"
    assert run(("cuLaunchKernel", IN_C)) == run() == [[usual] * 4, [usual] * 3]  # (3,) and (3, 1) are one grid
    assert len(gpu.built) == 1 and len(gpu.later) == 1
    gpu.work()
    assert len(gpu.built) == 2
    assert run(("cuLaunchKernel", IN_C)) == run() == [[unchecked] * 4, [usual] * 3]
    assert not gpu.later


def test_many_grids(c, gpu):
    """Each is decided once, by Python; from then on C code finds it among all others."""
    k, r = scaling(), random.Random(3)
    grids = [(r.randrange(1, 6), r.choice((1, 2, 65535)), r.randrange(1, 200)) for _ in range(400)]
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    gpu.work()
    for names in ({"cuLaunchKernel", IN_C}, {IN_C}):
        gpu.calls.clear()
        for grid in grids:
            ct.launch(0, grid, k, (X, Y, 1.0, 16))
            assert gpu.launches[-1]["grid"] == grid
            assert bool(gpu.unchecked_lines[gpu.launches[-1]["function"][1]]) == (grid[0] <= 3)
        assert {n for n in gpu.names() if n.startswith("cuLaunch")} == names


def test_arrays_of_other_sizes_have_decisions_of_their_own(c, gpu):
    k = scaling()
    for turn in range(3):
        for n in (0, 1, 15, 16, 17, 47, 48, 50):
            for grid in ((1,), (2,), (3,), (4,)):
                ct.launch(77, grid, k, (CuPyArray(4096, (n,), (1,)), Y, 1.0, 16))
                inside = 16 * grid[0] <= n
                code = gpu.launches[-1]["function"][1]
                assert inside or not gpu.unchecked_lines[code], (n, grid)
                if inside and turn == 2:
                    assert gpu.unchecked_lines[code], (n, grid)
        gpu.work()


def test_hints_switch_variants_off(c, gpu, monkeypatch):
    monkeypatch.setenv("CUTILE_HINTS", "0")
    k = scaling()
    for grid in ((1,), (2,)):
        ct.launch(77, grid, k, (X, Y, 1.0, 16))
    assert not gpu.later and gpu.names().count(IN_C) == 1  # any grid is launched in C


# ------------------------------------------------------------------ what is left to Python


def unusual():
    class Sub(CuPyArray):
        pass

    far = CuPyArray(4096, (48,), (1,), device=1)
    return {
        "another shape": (0, (1,), (CuPyArray(4096, (32,), (1,)), Y, 1.0, 16)),
        "another alignment": (0, (1,), (CuPyArray(4100, (48,), (1,)), Y, 1.0, 16)),
        "another dtype": (0, (1,), (CuPyArray(4096, (48,), (1,), "f2"), Y, 1.0, 16)),
        "another GPU": (0, (1,), (far, CuPyArray(8192, (50,), (2,), device=1), 1.0, 16)),
        "another constant": (0, (1,), (X, Y, 1.0, 17)),
        "an equal constant of another type": (0, (1,), (X, Y, 1.0, 16.0)),
        "another library": (0, (1,), (TX, Y, 1.0, 16)),
        "a subclass": (0, (1,), (Sub(4096, (48,), (1,)), Y, 1.0, 16)),
        "an int for a float": (0, (1,), (X, Y, 1, 16)),
        "a grid with nothing in it": (0, (0,), (X, Y, 1.0, 16)),
        "a mix": (0, (1,), (X, np.zeros(50, np.float32), 1.0, 16)),
        "two GPUs": (0, (1,), (far, Y, 1.0, 16)),
        "a negative stream": (-1, (1,), (X, Y, 1.0, 16)),
        "no stream": (object(), (1,), (X, Y, 1.0, 16)),
        "a bool as a stream": (True, (1,), (X, Y, 1.0, 16)),
        "a list as grid": (0, [1], (X, Y, 1.0, 16)),
        "a bool in the grid": (0, (True,), (X, Y, 1.0, 16)),
        "a grid of four": (0, (1, 1, 1, 1), (X, Y, 1.0, 16)),
        "a grid that is too large": (0, (2**24,), (X, Y, 1.0, 16)),
        "a negative grid": (0, (-1,), (X, Y, 1.0, 16)),
        "a list of arguments": (0, (1,), [X, Y, 1.0, 16]),
        "too few arguments": (0, (1,), (X, Y, 1.0)),
        "too many arguments": (0, (1,), (X, Y, 1.0, 16, 16)),
        "no array": (0, (1,), (X, None, 1.0, 16)),
        "a negated tensor": (0, (1,), (X, Tensor(8192, (50,), (2,), neg=True), 1.0, 16)),
        "a lent tensor that is negated": (0, (1,), (X, LentTensor(8192, (50,), (2,), neg=True), 1.0, 16)),
        "a lent tensor elsewhere": (0, (1,), (X, LentTensor(8192, (50,), (2,), cuda=False), 1.0, 16)),
        "a tensor elsewhere": (0, (1,), (X, Tensor(8192, (50,), (2,), cuda=False), 1.0, 16)),
    }


@pytest.mark.parametrize("name", unusual())
def test_unusual(monkeypatch, c, gpu, name):
    """The outcome is that of a process without the extension."""
    stream, grid, values = unusual()[name]

    def outcome(k):
        gpu.launches.clear()
        gpu.calls.clear()
        try:
            ct.launch(stream, grid, k, values)
        except Exception as e:
            return type(e), str(e)
        return launches_of(gpu)

    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert gpu.names()[-1] == IN_C
    got = outcome(k)
    assert IN_C not in gpu.names()
    monkeypatch.setattr(launch_cache, "extension", lambda: None)
    assert got == outcome(scaling())


def test_a_dependent_launch(c, gpu):
    k = scaling()
    for _ in range(3):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16), programmatic_dependent_launch=True)
    assert len(gpu.launches) == 3 and all(one["attributes"] for one in gpu.launches)


def test_another_current_context(c, gpu):
    k = scaling()
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    gpu.contexts[:] = [0]
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert IN_C not in gpu.names() and gpu.launches[-1]["context"] == 0x1000 and gpu.contexts == [0]
    gpu.contexts[:] = [0x1000]
    gpu.fails["cuCtxGetCurrent"] = 3
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert IN_C not in gpu.names()


def test_settings(c, gpu, monkeypatch, capsys):
    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert gpu.names().count(IN_C) == 1
    with settings.override(DEBUG=1):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert "scale" in capsys.readouterr().err
    monkeypatch.setenv("CUTILE_DEBUG", "1")
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert "scale" in capsys.readouterr().err
    monkeypatch.setenv("CUTILE_DEBUG", "much")
    with pytest.raises(ValueError, match="CUTILE_DEBUG is 'much'"):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    monkeypatch.delenv("CUTILE_DEBUG")
    assert gpu.names().count(IN_C) == 1
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert gpu.names().count(IN_C) == 2
    monkeypatch.setenv("CUTILE_BACKEND", "interp")
    x = np.arange(48, dtype=np.float32)
    y = np.zeros(50, np.float32)
    ct.launch(0, (3,), k, (CuPyArray(x.ctypes.data, (48,), (1,)), CuPyArray(y.ctypes.data, (25,), (2,)), 2.0, 16))
    assert y[::2].tolist() == (2 * x[:25]).tolist() and gpu.names().count(IN_C) == 2


def test_an_environment_that_was_replaced(c, gpu, monkeypatch):
    import os

    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    monkeypatch.setattr(os, "environ", {"CUTILE_DEBUG": "many"})
    with pytest.raises(ValueError, match="CUTILE_DEBUG is 'many'"):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))


def test_what_changed_outside_is_seen(c, gpu):
    for code in ("A = 2\n@ct.kernel\ndef k(x): ct.store(x, 0, ct.full((), A, ct.float32))",
                 "A = [2]\n@ct.kernel\ndef k(x): ct.store(x, 0, ct.full((), ct.static_eval(A[0]), ct.float32))"):
        space = cell(code)
        gpu.calls.clear()
        for _ in range(2):
            ct.launch(77, (1,), space["k"], (X,))
        assert gpu.names()[-1] == IN_C
        if isinstance(space["A"], list):
            space["A"][0] = 3
        else:
            space["A"] = 3
        gpu.calls.clear()
        ct.launch(77, (1,), space["k"], (X,))
        assert IN_C not in gpu.names()
        ct.launch(77, (1,), space["k"], (X,))
        assert gpu.names()[-1] == IN_C


def test_a_builtin_that_a_global_comes_to_hide(c, gpu):
    space = cell("@ct.kernel\ndef k(x): ct.store(x, 0, ct.full((), min(1, 2), ct.float32))")
    for hide in (None, lambda a, b: 3):
        if hide:
            space["min"] = hide
        gpu.calls.clear()
        ct.launch(77, (1,), space["k"], (X,))
        assert IN_C not in gpu.names()
        ct.launch(77, (1,), space["k"], (X,))
        assert gpu.names()[-1] == IN_C


def test_a_closure_that_changes_is_seen(c, gpu):
    n = 2.0

    @ct.kernel
    def k(x):
        ct.store(x, 0, n)

    for value in (2.0, 3.0):
        n = value
        gpu.calls.clear()
        ct.launch(77, (1,), k, (X,))
        assert IN_C not in gpu.names()
        ct.launch(77, (1,), k, (X,))
        assert gpu.names()[-1] == IN_C


def test_lists_tuples_and_what_the_stream_decides_are_not_repeated(c, gpu):
    @ct.kernel
    def numbers(n):
        ct.printf("%d", n)

    @ct.kernel
    def pair(t):
        ct.store(t[1], 0, ct.load(t[0], 0, 16))

    for _ in range(3):
        ct.launch(77, (1,), numbers, (3,))
        ct.launch(77, (1,), pair, ((X, Y),))
    assert IN_C not in gpu.names()


def test_no_more_than_some_are_kept(c, gpu, monkeypatch):
    """Those that went are launched from Python once more."""
    monkeypatch.setattr(launch_cache, "LIMIT", 3)
    k = scaling()
    sizes = [16 * n + 16 for n in range(10)]
    for n in [*np.repeat(sizes, 2).tolist(), sizes[0]]:
        ct.launch(0, (1,), k, (CuPyArray(4096, (n,), (1,)), Y, 1.0, 16))
    assert [name for name in gpu.names() if name.startswith("cuLaunch")] == [*["cuLaunchKernel", IN_C] * 10,
                                                                            "cuLaunchKernel"]


def test_a_kernel_that_is_gone_takes_its_launches_with_it(c, gpu):
    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    gone = weakref.ref(k)
    del k
    gc.collect()
    assert gone() is None


def test_tensors_that_are_lent(c, libraries, monkeypatch):
    assert c_readers.c_reader(c, LX) > 2**16
    monkeypatch.setattr(LentTensor, "__dlpack_c_exchange_api__", extension.exchange(major=2))
    # a version that is not known: read as before
    assert c_readers.c_reader(c, LX) == c.TORCH


def test_without_the_extension(monkeypatch, libraries, gpu):
    monkeypatch.setattr(launch_cache, "extension", lambda: None)
    k = scaling()
    for _ in range(2):
        ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    assert gpu.names().count("cuLaunchKernel") == 2 and IN_C not in gpu.names()


# ------------------------------------------------------------------ calls, which make their outputs


def empty(shape, pointer, fills=None):
    a = CuPyArray(pointer, shape, (2,))
    a.fill = lambda value: fills.append(value)
    return a


def entry_of(c, kernel, table, **given):
    """What calls of `scaling` go through, as a function of x, f and stream; Python code answers NotImplemented."""
    entry = c.Entry(**{"calls": table, "python": lambda *a, **named: NotImplemented, "failed": None,
                       "names": ("x", "f", "N"), "positional": 2, "defaults": (None, None, 1.0, 16),
                       "places": (0, 2, 3), "outputs": (1,), "returned": (1,), "arrays": (0,), **given})
    assert entry.use(kernel.plans.launch_cache) is True
    return entry


@pytest.fixture
def calls(c, gpu):
    """A function that keeps a call of `scaling` whose output `make` makes, and gives what calls such calls."""
    def kept(make, arguments=((50,), 8192), named=None, fill=None, stream_of=lambda x: 5, gpu_of=None, x=X, y=Y):
        k, table = scaling(), {}
        ct.launch(77, (3,), k, (x, y, 2.5, 16))
        cache = k.plans.launch_cache
        assert cache.keep_call(table, (x, None, 2.5, 16), (x, y, 2.5, 16), (3,), 0, stream_of, gpu_of,
                               ((make, arguments, named, fill),), ()) is True
        gpu.calls.clear()
        entry = entry_of(c, k, table)
        return lambda x=x, f=1.0, stream=None: entry(x, f, stream=stream)

    return kept


def last_values(fake):
    """The addresses of both arrays in the last launch, and the number."""
    parameters = fake.launches[-1]["parameters"]
    return struct.unpack("<Q", parameters[0])[0], struct.unpack("<Q", parameters[3])[0], struct.unpack(
        "<f", parameters[6])[0]


def test_a_call_makes_its_output(calls, gpu):
    fills, pointers = [], iter((16384, 32768))
    call = calls(lambda shape, fills: empty(shape, next(pointers), fills), ((50,),), {"fills": fills}, fill=3)
    for x, f, pointer in ((X, 1.0, 16384), (CuPyArray(65536, (48,), (1,)), 2.0, 32768)):
        out = call(x, f)
        assert out.data.ptr == pointer and last_values(gpu) == (x.data.ptr, pointer, f)
    assert gpu.names() == [IN_C] * 2 and fills == [3, 3] and gpu.launches[-1]["grid"] == (3, 1, 1)


def test_an_output_may_be_made_of_the_first_array(calls, gpu):
    seen = []
    call = calls(lambda first: seen.append(first) or empty((50,), 16384), None)
    assert call().data.ptr == 16384 and seen == [X]


@pytest.mark.parametrize("make", [lambda *a: CuPyArray(16388, (50,), (2,)), lambda *a: CuPyArray(16384, (49,), (2,)),
                                  lambda *a: CuPyArray(16384, (50,), (2,), device=1), lambda *a: None,
                                  lambda *a: CuPyArray(16384, (50,), (2,), "f8"), lambda *a: 1 / 0])
def test_an_output_that_is_not_as_before(calls, gpu, make):
    call = calls(make)
    assert call() is NotImplemented and gpu.names() == []


def test_nothing_is_made_for_a_launch_that_is_not_for_here(calls, gpu):
    made = []
    call = calls(lambda *a: made.append(a) or Y)
    assert call(CuPyArray(4096, (47,), (1,))) is NotImplemented  # a call that nobody has made
    gpu.contexts[:] = [0x1001]
    assert call() is NotImplemented and not made and IN_C not in gpu.names()
    gpu.contexts[:] = [0x1000]
    assert call() is Y and len(made) == 1


def test_a_call_that_the_driver_refuses(calls, gpu):
    call = calls(lambda *a: Y)
    gpu.fails[IN_C] = 700
    assert call() is NotImplemented


def test_an_interrupt_while_an_output_is_made(calls):
    def interrupted(*a):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calls(interrupted)()


def test_streams_of_calls(c, calls, gpu):
    of_gpu = c.streams_of(extension.exchange())
    assert c.streams_of(extension.exchange(major=2)) is None
    for stream_of, ordinal, number in ((lambda x: x.data.ptr, None, 4096), (of_gpu, 1, 401),
                                       (lambda ordinal: types.SimpleNamespace(ptr=90 + ordinal), 1, 91)):
        call = calls(lambda *a: Y, stream_of=stream_of, gpu_of=ordinal)
        for given in (None, number):
            assert call(stream=given) is Y and gpu.launches[-1]["stream"] == number


def test_outputs_are_made_in_c_only_where_the_current_stream_is_that_of_the_launch(calls, gpu):
    """Their library queues on its current stream what makes and fills them."""
    made = []
    call = calls(lambda *a: made.append(a) or Y)
    assert call(stream=7) is NotImplemented and not made and gpu.names() == []
    assert call(stream=5) is Y and len(made) == 1


def test_streams_that_are_given_for_calls_that_make_nothing(c, gpu):
    k, table = scaling(), {}
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    fills = []
    assert k.plans.launch_cache.keep_call(table, (X, Y, 2.5, 16), (X, Y, 2.5, 16), (3,), 0, lambda x: 5, None, (), ())
    entry = entry_of(c, k, table)
    for given, number in ((None, 5), (7, 7), (5, 5)):
        assert entry(X, 1.0, out=Y, stream=given) is Y and gpu.launches[-1]["stream"] == number
    for wrong in ((2, fills.append, 3), (9, fills.append), (-1, fills.append), ("1", fills.append)):
        with pytest.raises(TypeError, match="fillers"):
            k.plans.launch_cache.keep_call({}, (X, Y, 2.5, 16), (X, Y, 2.5, 16), (3,), 0, lambda x: 5, None, (), wrong)


def test_outputs_of_the_caller_are_filled_on_the_stream_of_the_launch(c, gpu):
    k, table, filled = scaling(), {}, []
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    assert k.plans.launch_cache.keep_call(table, (X, Y, 2.5, 16), (X, Y, 2.5, 16), (3,), 0, lambda x: 5, None, (),
                                          (1, filled.append))
    entry = entry_of(c, k, table)
    gpu.calls.clear()
    assert entry(X, 1.0, out=Y, stream=7) is NotImplemented and not filled and gpu.names() == []
    assert entry(X, 1.0, out=Y) is entry(X, 1.0, out=Y, stream=5) is Y and filled == [Y, Y]
    gpu.contexts[:] = [0x1001]
    assert entry(X, 1.0, out=Y) is NotImplemented and len(filled) == 2


def test_what_callers_pass_in_which_form(c, gpu):
    """By position, by name, in a row or not; whatever is wrong goes to Python with the arguments as they are."""
    k, table, seen = scaling(), {}, []
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    for n in (16, 8):
        ct.launch(77, (3,), k, (X, Y, 2.5, n))
        assert k.plans.launch_cache.keep_call(table, (X, Y, 2.5, n), (X, Y, 2.5, n), (3,), 0, lambda x: 5, None, (), ())
    entry = entry_of(c, k, table, python=lambda *a, **named: seen.append((a, named)) or "Python")
    gpu.calls.clear()
    forms = [lambda **o: entry(X, 2.5, **o), lambda **o: entry(X, **o), lambda **o: entry(x=X, f=2.5, **o),
             lambda **o: entry(*(X, 2.5), **{"N": 16, **o}), lambda **o: entry(f=1.0, N=8, x=X, **o),
             lambda **o: entry(X, N=8, **o)]
    for form in forms:
        assert form(out=Y) is form(out=Y, stream=None) is Y
    assert [struct.unpack("<f", one["parameters"][6])[0] for one in gpu.launches[-12::2]] == [2.5, 1, 2.5, 2.5, 1, 1]
    assert not seen and gpu.names() == [IN_C] * 12
    for args, named in (((X, 2.5, 16), {"out": Y}), ((X, 2.5), {"out": Y, "x": X}), ((X,), {"out": Y, "z": 1}),
                        ((), {"out": Y}), ((X,), {"out": X}), ((X,), {"out": (Y,)}), ((X,), {}),
                        ((X,), {"out": Y, "stream": "none"})):
        assert entry(*args, **named) == "Python" and seen.pop() == (args, named)
    assert gpu.names() == [IN_C] * 12


def test_an_entry_says_what_it_takes(c, gpu):
    k = scaling()
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    for wrong in ({"places": (0, 2)}, {"outputs": (4,)}, {"returned": (-1,)}, {"arrays": (4,)}, {"positional": 4},
                  {"defaults": (None,) * 257}):
        with pytest.raises(ValueError):
            entry_of(c, k, {}, **wrong)
    for wrong in ({"places": ("0", 2, 3)}, {"calls": None}):
        with pytest.raises(TypeError):
            entry_of(c, k, {}, **wrong)
    entry = entry_of(c, k, {})
    assert entry.use(object()) is False and entry.use(scaling()) is False


def echoing(c):
    """An object whose calls go through an Entry, and are answered by Python code."""
    class Function(c.Callable):
        def python(self, *args):
            return args

    f = Function()
    with pytest.raises(TypeError, match="nothing was said"):
        f(1)
    c.enter(f, c.Entry(calls={}, python=f.python, failed=None, names=("x",), positional=1, defaults=(None,),
                       places=(0,), outputs=(), returned=(), arrays=(0,)), shown)
    return f


def shown(*args):
    return "shown"


def test_calls_go_past_the_function_that_a_class_shows(c):
    f, other = echoing(c), echoing(c)
    for _ in range(2):
        assert type(f).__call__ is vars(type(f))["__call__"] is shown and f.__call__(1) == "shown"
        assert f(3) == (3,) and f(*[4]) == (4,) and f() == ()
        c.enter(f, c.Entry(calls={}, python=f.python, failed=None, names=("x",), positional=1, defaults=(None,),
                           places=(0,), outputs=(), returned=(), arrays=(0,)), shown)
    type(f).__call__ = lambda self, x: x + 1
    assert f(3) == 4 and other(3) == (3,)
    del type(f).__call__
    assert f(3) == (3,)


def test_an_entry_that_is_gone_takes_its_function_with_it(c):
    f = echoing(c)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def test_several_outputs_between_other_arguments(c, gpu):
    @ct.kernel
    def k(a, x, b, y):
        ct.store(a, 0, ct.load(x, 0, 4) + ct.load(y, 0, 4))
        ct.store(b, 0, ct.load(x, 0, 4))

    arrays = [CuPyArray(n * 4096, (8,), (1,)) for n in range(1, 9)]
    a, x, b, y, *others = arrays
    ct.launch(0, (1,), k, (a, x, b, y))
    cache, table = k.plans.launch_cache, {}
    recipes = [(lambda o=o: o, (), None, None) for o in others[:2]]
    assert cache.keep_call(table, (None, x, None, y), (a, x, b, y), (1,), 1, lambda x: 0, None, tuple(recipes), ())
    for too_few in ((), tuple(recipes[:1])):
        assert cache.keep_call({}, (None, x, None, y), (a, x, b, y), (1,), 1, lambda x: 0, None, too_few, ()) is False
    assert cache.keep_call(table, (a, x, b, y), (a, x, b, y), (1,), 1, lambda x: 0, None, (), ())
    entry = entry_of(c, k, table, names=("x", "y"), defaults=(None,) * 4, places=(1, 3), outputs=(0, 2),
                     returned=(0, 1, 2), arrays=(1, 3))
    assert entry(others[2], others[3]) == (others[0], others[2], others[1])
    addresses = [struct.unpack("<Q", p)[0] for p in gpu.launches[-1]["parameters"] if len(p) == 8]
    assert [n for n in addresses if n >= 4096] == [o.data.ptr for o in (others[0], others[2], others[1], others[3])]
    assert entry(x, y, out=(a, b)) == (a, x, b)
    for out in (a, [a, b], (a,), (a, b, b), (a, a), (a, x), [y, b], (None, b), iter((a, b))):
        assert entry(x, y, out=out) is NotImplemented


def test_versions_of_outputs_stay(calls, gpu):
    """Nobody has seen a tensor before the call returns it."""
    made = LentTensor(16384, (50,), (2,))
    call = calls(lambda *a: made, x=LX, y=LY)
    assert call(LX) is made and (LX.version, made.version) == (0, 0)


# ------------------------------------------------------------------ in CPU memory


class HostTensor(LentTensor):
    """A torch.Tensor in CPU memory that is none."""

    def __init__(self, a: np.ndarray, lent: bool = True):
        super().__init__(a.ctypes.data if lent else 0, a.shape, tuple(s // a.itemsize for s in a.strides), a.dtype,
                         cuda=False)
        self.a, self.device = a, types.SimpleNamespace(type="cpu", index=-1)

    def numpy(self) -> np.ndarray:
        return self.a

    def numel(self) -> int:
        return self.a.size


@pytest.fixture
def host(c, monkeypatch):
    """A list of the launches in CPU memory that Python runs."""
    for s in settings.table().values():
        monkeypatch.delenv(s.variable, raising=False)
    monkeypatch.setattr(sys.modules["torch"], "Tensor", HostTensor)
    monkeypatch.setattr(arrays, "_HOST_DTYPES", {np.dtype(t): (from_foreign(np.dtype(t)), None) for t in ("f4", "f8")})
    ran, run = [], HostLaunch.run
    monkeypatch.setattr(HostLaunch, "run", lambda *given: ran.append(given) or run(*given))
    return ran


@pytest.mark.parametrize("made", [np.asarray, HostTensor])
def test_a_repeated_launch_in_cpu_memory(host, made):
    k = scaling()
    for n in range(4):
        x, y = np.full(48, n, np.float32), np.zeros(48, np.float32)
        ct.launch("no stream", (3,), k, (made(x), made(y), 2.5, 16))
        assert (y == 2.5 * n).all()
    for grid, blocks in (((2,), 2), ((2,), 2), ((3, 1), 3)):
        y[...] = 0
        ct.launch(None, grid, k, (made(x), made(y), -1.0, 16))
        assert y.tolist() == [-3.0] * 16 * blocks + [0.0] * (48 - 16 * blocks)
    assert len(host) == 2  # the first of each grid


@pytest.mark.parametrize("made", [np.asarray, HostTensor])
def test_what_python_has_to_decide_in_cpu_memory(host, monkeypatch, made):
    k, memory = scaling(), np.arange(100, dtype=np.float32)
    x, y = memory[:48], memory[50:98]

    def launch(x=x, y=y, n=16):
        before = len(host)
        ct.launch(None, (3,), k, (made(x), made(y), 2.0, n))
        assert (y == 2 * x.copy()).all() or np.may_share_memory(x, y)
        return len(host) - before

    assert [launch(), launch()] == [1, 0]
    assert [launch(y=memory[40:88]), launch()] == [1, 0]  # it overlaps x
    assert [launch(y=np.zeros(50, np.float32)[:48]), launch(y=np.zeros(96, np.float32)[::2])] == [0, 1]
    assert [launch(y=np.zeros(48)), launch(n=8), launch()] == [1, 1, 0]
    monkeypatch.setenv("CUTILE_CHECK", "1")
    assert launch() == 1
    monkeypatch.delenv("CUTILE_CHECK")
    with settings.override(MEMORY=1000):
        assert launch() == 1
    monkeypatch.setattr(float_mode, "TINY", 1e-300)  # Python finds the usual mode anyway
    assert launch() == 0
    unaligned = np.zeros(48 * 4 + 1, np.uint8)[1:].view(np.float32)
    assert [launch(y=unaligned), launch(y=unaligned), launch()] == [1, 1, 0]


def test_tensors_without_memory(host, monkeypatch):
    monkeypatch.setattr(arrays, "_state", lambda torch, t: None)
    k, y = scaling(), np.zeros(48, np.float32)
    for _ in range(2):
        ct.launch(None, (3,), k, (HostTensor(y + 1), HostTensor(y), 2.0, 16))
    with pytest.raises(TypeError, match="whose storage was given back has no memory"):
        ct.launch(None, (3,), k, (HostTensor(y + 1, lent=False), HostTensor(y), 2.0, 16))


def test_an_error_of_code_in_cpu_memory(c, host, monkeypatch):
    """It is the same from C and from Python, and no array is kept."""
    meaning, fails = ct.mul.meaning, []

    def failing(x, y, /, **options):
        if fails:
            raise fails[0]("here")
        return meaning(x, y, **options)

    monkeypatch.setattr(ct.mul, "meaning", failing)
    k, errors = scaling(), []
    x, y = np.ones(48, np.float32), np.zeros(48, np.float32)
    for module in (c, None):
        monkeypatch.setattr(launch_cache, "extension", lambda module=module: module)
        k = scaling()
        for _ in range(2):
            ct.launch(None, (3,), k, (x, y, 1.0, 16))
        for kind in (MemoryError, KeyError, KeyboardInterrupt):
            fails[:] = [kind]
            with pytest.raises(BaseException) as caught:
                ct.launch(None, (3,), k, (x, y, 1.0, 16))
            errors.append((type(caught.value), str(caught.value), type(caught.value.__cause__)))
        fails.clear()
    assert errors[:3] == errors[3:] and errors[2][0] is KeyboardInterrupt
    assert "memory" in errors[0][1]
    del caught
    gone = weakref.ref(x)
    host.clear()
    del x
    gc.collect()
    assert gone() is None


def test_views_keep_arrays_alive(host, monkeypatch):
    kept, meaning = [], ct.mul.meaning
    monkeypatch.setattr(ct.mul, "meaning", lambda x, y, /, **options: kept.append(x) or meaning(x, y, **options))
    k = scaling()
    for n in range(3):
        ct.launch(None, (3,), k, (np.full(48, n, np.float32), np.zeros(48, np.float32), 1.0, 16))
    gc.collect()
    assert [int(x.max()) for x in kept] == [0, 1, 2] and not any(x.flags.writeable for x in kept)


# ------------------------------------------------------------------ both ways, on random arguments


class Level(enum.IntEnum):
    LOW = 1


def random_array(r, tensor):
    cls = r.choice((CuPyArray, tensor))
    shape = tuple(r.choice((1, 5, 16)) for _ in range(r.randrange(3)))
    strides = tuple(r.choice((1, 5, 16, -1)) for _ in shape)
    more = {"cuda": r.random() < 0.95, "neg": r.random() < 0.1} if cls is tensor else {}
    return cls(r.choice((4096, 4100, 8192, 2**47)), shape, strides, r.choice(("f4", "i4", "f2")),
               int(r.random() < 0.1), **more)


def random_value(r, tensor):
    return r.choice((lambda: random_array(r, tensor), lambda: r.choice((True, False)),
                     lambda: r.choice((0.0, -0.0, 1e300)),
                     lambda: r.choice((0, 1, -1, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**63 - 1, 2**63, 2**70)),
                     lambda: r.choice((np.float64(1.5), np.float32(1), None, "a", (1,), [X], Level.LOW))))()


CONSTANTS = [0, 1, -1, True, False, None, 0.0, -0.0, 1.0, 2**63, 2**70, "a", Level.LOW, ct.int8, np.int8(1), math.nan]
SPECS = [PLAIN, PLAIN, ParameterSpec(constant=True)]
FLAGS = bytes(s.constant for s in SPECS)


@pytest.mark.parametrize("tensor", [Tensor, LentTensor])
def test_equal_signatures_mean_equal_keys(c, tensor):
    """And, of values that are the same objects or plain numbers and arrays, the other way round."""
    r = random.Random(1)
    cache = c.LaunchCache(constants=FLAGS, watch=(), host_watch=(), grid_limit=1, capacity=1)
    for value in (True, 1, 1.0, np.float64(1), tensor(4096, (48,), (1,)), X):
        cache.kinds[type(value)] = c_readers.c_reader(c, value)
    by_signature, by_key = {}, {}
    for _ in range(20000):
        values = (random_value(r, tensor), random_value(r, tensor), r.choice(CONSTANTS))
        found = cache.signature(values)
        key, launch_values = [], []
        try:
            launch_key.read(values, SPECS, key, launch_values)
            key = tuple(key)
        except Exception:
            key = None
        if found is NotImplemented:
            continue
        assert key is not None, values
        signature, packed = found
        assert by_signature.setdefault(signature, key) == key
        assert by_key.setdefault(key, signature) == signature
        want = b"".join(struct.pack("<d", v) if isinstance(v, float) else struct.pack("<Q", v % 2**64)
                        for v in launch_values)
        assert packed == want
    assert len(by_key) > 2000


@pytest.mark.parametrize("tensor", [Tensor, LentTensor])
def test_both_ways(c, gpu, monkeypatch, tensor):
    """A run of random launches of one kernel, with the extension and without: the driver hears the same."""
    r = random.Random(2)
    pool = [random_array(r, tensor) for _ in range(10)]
    jobs = [(r.choice((0, 5)), (r.randrange(4),) * r.randrange(1, 3),
             (r.choice(pool), r.choice(pool), r.choice((1.5, -2.0, 3, 2**31, True)), r.choice((16, 16.0, True))))
            for _ in range(400)]
    jobs = [r.choice(jobs[:60]) if r.random() < 0.7 else j for j in jobs]

    @ct.kernel
    def k(x, y, f, N: ct.Constant):
        ct.printf("%f", ct.full((), f, ct.float32))

    def outcomes(k):
        out = []
        for stream, grid, values in jobs:
            gpu.launches.clear()
            try:
                ct.launch(stream, grid, k, values)
            except Exception as e:
                out.append((type(e), str(e)))
            else:
                out.append(launches_of(gpu))
        return out

    got = outcomes(k)
    repeated = gpu.names().count(IN_C)
    monkeypatch.setattr(launch_cache, "extension", lambda: None)
    assert got == outcomes(ct.kernel(k.function))
    assert repeated > 30 and gpu.names().count(IN_C) == repeated and sum(isinstance(o, tuple) for o in got) > 20


# ------------------------------------------------------------------ what is written


@pytest.mark.parametrize("cls", [Tensor, LentTensor])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_version_of_a_written_tensor_is_raised(c, gpu, monkeypatch, cls, repeated):
    if not repeated:
        monkeypatch.setattr(launch_cache, "extension", lambda: None)
    x, y, k = cls(4096, (48,), (1,)), cls(8192, (50,), (2,)), scaling()
    for n in range(1, 4):
        ct.launch(77, (3,), k, (x, y, 2.5, 16))
        assert (x.version, y.version, len(gpu.launches)) == (0, n, n)
    assert gpu.names().count(IN_C) == (2 if repeated else 0)


@pytest.mark.parametrize("grad_mode", [True, False])
def test_a_written_leaf_that_requires_grad(c, gpu, monkeypatch, grad_mode):
    """Refused at each launch while grad mode is on, also where one like it was repeated."""
    x, y, k = Tensor(4096, (48,), (1,)), Tensor(8192, (50,), (2,)), scaling()
    monkeypatch.setattr(sys.modules["torch"], "is_grad_enabled", lambda: grad_mode)
    for _ in range(2):
        ct.launch(77, (3,), k, (x, y, 2.5, 16))
    y.requires_grad = x.requires_grad = True
    for n in range(2):
        if grad_mode:
            with pytest.raises(RuntimeError, match=r"parameter `y`.*leaf that requires grad.*torch\.no_grad"):
                ct.launch(77, (3,), k, (x, y, 2.5, 16))
        else:
            ct.launch(77, (3,), k, (x, y, 2.5, 16))
            assert gpu.names().count(IN_C) == n + 2
    assert y.version == len(gpu.launches) == (2 if grad_mode else 4)
    y.is_leaf = False
    ct.launch(77, (3,), k, (x, y, 2.5, 16))
    assert y.version == len(gpu.launches) == (3 if grad_mode else 5)


# ------------------------------------------------------------------ CUTILE_LAUNCHER


def test_python_alone_launches_where_the_setting_says_so(c, gpu, monkeypatch):
    monkeypatch.setenv("CUTILE_LAUNCHER", "python")
    scale = scaling()
    for _ in range(3):
        ct.launch(7, (3,), scale, (X, Y, 2.0, 1))
    assert scale.plans.launch_cache is None and IN_C not in gpu.names() and len(gpu.launches) == 3


def test_c_code_launches_where_the_setting_says_so(c, gpu, monkeypatch):
    monkeypatch.setenv("CUTILE_LAUNCHER", "c")
    scale = scaling()
    for _ in range(3):
        ct.launch(7, (3,), scale, (X, Y, 2.0, 1))
    assert gpu.names().count(IN_C) == 2


def test_c_code_that_is_missing_is_an_error_where_the_setting_asks_for_it(gpu, libraries, monkeypatch):
    monkeypatch.setattr(launch_cache, "extension", lambda: None)
    monkeypatch.setenv("CUTILE_LAUNCHER", "c")
    with pytest.raises(settings.SettingError, match="CUTILE_LAUNCHER is 'c', but cutile was installed without"):
        ct.launch(7, (3,), scaling(), (X, Y, 2.0, 1))
    with pytest.raises(settings.SettingError, match="CUTILE_LAUNCHER is 'c'"):
        ct.prepare(scaling(), (3,), (X, Y, 2.0, 1))
    monkeypatch.delenv("CUTILE_LAUNCHER")
    ct.launch(7, (3,), scaling(), (X, Y, 2.0, 1))

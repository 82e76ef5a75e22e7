"""C code of launches under arguments that work against it: their properties run code that launches, changes or fails.

Whatever they do, a launch computes what its arguments were when it read them, or raises what they raise.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from typing import Annotated

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.gpu import variants
from cutile.runtime import launch_cache
from tests.front.compiling import cell
from tests.gpu import extension
from tests.gpu.extension import CuPyArray
from tests.gpu.fake_driver import installed


@pytest.fixture
def c(monkeypatch):
    module = extension.built()
    for s in settings.table().values():
        monkeypatch.delenv(s.variable, raising=False)  # those that leave launches to Python
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    return module


def squares():
    """A function that C code knows calls of."""

    @ct.jit(grid="cdiv(N, T)", out=ct.Out("N"))
    @ct.kernel
    def square(x: Annotated[ct.Array, ct.Sizes("N")], y, T: ct.Constant[int] = 16):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), T) * ct.load(x, ct.bid(0), T))

    for _ in range(3):
        square(X)
    return square


X = np.arange(40, dtype=np.float32)


class Watched(np.ndarray):
    """An array that runs a function when its dtype is asked for, which C code does while it reads it."""

    asked = staticmethod(lambda: None)

    @property
    def dtype(self):
        self.asked()
        return np.ndarray.dtype.__get__(self)


def watched(monkeypatch, asked, dtype=np.float32):
    """Such an array; while the function runs, it is not called again."""

    def once():
        monkeypatch.setattr(Watched, "asked", lambda self: None)
        try:
            asked()
        finally:
            monkeypatch.setattr(Watched, "asked", lambda self: once())

    array = X.astype(dtype).view(Watched)
    monkeypatch.setattr(Watched, "asked", lambda self: once())
    return array


@pytest.mark.usefixtures("c")
def test_an_argument_that_launches_the_same_function(monkeypatch):
    square = squares()
    x = watched(monkeypatch, lambda: [square(X), square(np.ones(7, np.float32))])
    for _ in range(4):
        assert (np.asarray(square(x)) == X * X).all()


@pytest.mark.usefixtures("c")
def test_an_argument_that_clears_what_is_known(monkeypatch):
    """Of two launches at most one is kept, so that each one inside drops the other, and with it what it holds."""
    monkeypatch.setattr(launch_cache, "LIMIT", 1)
    square, count = squares(), iter(range(8, 1000))
    x = watched(monkeypatch, lambda: [square(np.ones(next(count), np.float32)), gc.collect()])
    for _ in range(4):
        assert (np.asarray(square(x)) == X * X).all()
        assert (square(X) == X * X).all()


@pytest.mark.usefixtures("c")
@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, SystemExit])
def test_an_argument_whose_properties_fail(monkeypatch, error):
    square = squares()
    x = watched(monkeypatch, lambda: None)
    square(x)

    def fails():
        raise error("here")

    x = watched(monkeypatch, fails)
    with pytest.raises(error, match="here"):
        square(x)
    assert (square(X) == X * X).all()


@pytest.mark.usefixtures("c")
def test_an_argument_that_changes_its_class(monkeypatch):
    square = squares()

    class Other(np.ndarray):
        pass

    x = watched(monkeypatch, lambda: setattr(x, "__class__", Other))
    for _ in range(3):
        assert (np.asarray(square(x)) == X * X).all()
    assert type(x) is Other


@pytest.mark.usefixtures("c")
@pytest.mark.parametrize("name", ["__hash__", "__eq__"])
def test_a_class_that_cannot_be_looked_up(name):
    """Classes are found by their hash and equality, which a metaclass may define."""

    def fails(*args):
        raise RuntimeError("here")

    metaclass = type("Meta", (type,), {"__hash__": lambda cls: hash(np.ndarray),
                                       "__eq__": lambda cls, other: cls is other, name: fails})
    square = squares()
    with pytest.raises((RuntimeError, TypeError)):
        square(metaclass("Mine", (), {})())
    assert (square(X) == X * X).all()


class SameHash(str):
    """A key that other keys cannot be compared with."""

    def __hash__(self):
        return hash("min")

    def __eq__(self, other):
        raise RuntimeError("here")


def test_a_name_that_must_not_be_a_global_and_cannot_be_looked_up(c, monkeypatch):
    """Where a builtin is used, launches look whether a global hides it by now."""
    extension.installed(monkeypatch)
    monkeypatch.setattr(variants, "LAUNCHES", 1)
    gpu, x = installed(monkeypatch), CuPyArray(4096, (48,), (1,))
    gpu.contexts[:] = [0x1000]
    space = cell("@ct.kernel\ndef k(x): ct.store(x, 0, ct.full((), min(1, 2), ct.float32))")
    for _ in range(3):
        ct.launch(77, (1,), space["k"], (x,))
    assert gpu.names()[-1] == "cuLaunchKernel in C"
    launches = len(gpu.launches)
    space[SameHash("another")] = 1
    with pytest.raises(RuntimeError, match="here"):
        ct.launch(77, (1,), space["k"], (x,))
    assert len(gpu.launches) == launches


def test_no_reference_is_kept(c):
    """What is refused, found or left to Python leaves every object as it was."""
    square, y = squares(), np.empty_like(X)
    cache = square.kernel.plans.launch_cache
    arguments, odd = (X, y, 16), (X, y, object())
    ct.launch(None, (3,), square.kernel, arguments)
    objects = [X, y, NotImplemented, arguments, odd, cache, X.dtype]

    def use():
        assert cache.insert((X, y, (16,)), {}, (), None, None, None, None) is False  # a tuple is not kept
        assert cache.keep_call({}, (X, None, (16,)), (X, y, (16,)), (3,), 0, None, None, ((0, 0, 0, 0),), ()) is False
        assert cache.lookup(odd) is None and cache.lookup(arguments) is not None
        assert cache.launch(None, (3,), (X, y, (16,))) is NotImplemented
        assert cache.launch(None, (3,), arguments) is None
        square(X)
        square(x=X, out=y, T=16)
        with pytest.raises(TypeError):
            square(X, another=y)

    use()
    gc.collect()
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(100):
        use()
    gc.collect()
    after = [sys.getrefcount(o) for o in objects]
    assert all(abs(a - b) < 20 for a, b in zip(before, after, strict=True)), (before, after)


def test_memory_that_may_only_be_read(c, monkeypatch):
    """Who asks to write to it gets an error, and no object that would have to be given back."""

    @ct.kernel
    def doubled(x, y):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 8) * 2)

    kept, meaning = [], ct.mul.meaning
    squares()  # so that the op is known
    monkeypatch.setattr(ct.mul, "meaning", lambda x, y, /, **options: kept.append(x) or meaning(x, y, **options))
    for _ in range(2):
        ct.launch(None, (5,), doubled, (X, np.empty_like(X)))
    memory = kept[-1]  # a view of X
    while isinstance(memory, np.ndarray):
        memory = memory.base
    assert type(memory).__name__ == "Memory" and memoryview(memory).readonly
    ask = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(
        ("PyObject_GetBuffer", ctypes.pythonapi))
    view = (ctypes.c_size_t * 16)(*[1] * 16)  # a Py_buffer: the address, the object, …
    with pytest.raises(BufferError):
        ask(memory, ctypes.addressof(view), 1)  # PyBUF_WRITABLE
    assert view[1] == 0


@pytest.mark.usefixtures("c")
def test_arrays_that_other_threads_replace():
    """Each call works on the array that it was given, also where nothing else holds it any more."""
    square, stop = squares(), threading.Event()
    slots, wrong = [X] * 4, []

    def replace():
        n = 0
        while not stop.is_set():
            n += 1
            slots[n % 4] = np.full(20 + n % 3, n, np.float32)

    def call():
        for n in range(300):
            x = slots[n % 4]
            if not (square(x) == x * x).all():
                wrong.append(x)

    threads = [threading.Thread(target=call) for _ in range(3)]
    other = threading.Thread(target=replace)
    other.start()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    stop.set()
    other.join()
    assert not wrong

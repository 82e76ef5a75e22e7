"""Objects that static code may reach and that are not compared: they cannot change, or nobody reads them, or they are
refused.
"""

import _abc
import abc
import asyncio
import concurrent.futures
import dataclasses
import datetime
import decimal
import importlib.util
import itertools
import logging
import multiprocessing
import random
import re
import socket
import subprocess
import threading
import types
import typing

import numpy as np
import pytest

import cutile as ct
from cutile.front import dependencies, object_state
from tests.front.compiling import cell
from tests.front.kinds_of_objects import Frozen, Slotted, nested, reading, stored
from tests.gpu.arrays import at


class Holding:
    """An object with many attributes that static code does not read."""

    def __init__(self):
        self.n = 1
        self.lines = open(__file__)
        self.places = iter([1])
        self.on_gpu = [at(4096, (4,))]
        self.lock, self.log, self.many = threading.Lock(), logging.getLogger(__name__), [0] * (dependencies.LIMIT + 1)

    def tile(self):
        return self.n

    def place(self):
        return next(self.places)


def test_an_attribute_alone_looks_at_nothing_else(typings):
    held = Holding()

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(held.n))

    assert stored(k) == 1
    held.many[5] = 1
    assert stored(k) == 1 and len(typings) == 1
    held.n = 2
    assert stored(k) == 2
    held.lines.close()


def test_what_no_code_mentions_need_not_be_comparable():
    held = Holding()
    held.many = None
    k = reading(lambda: held.tile())
    assert stored(k) == 1
    held.n = 2
    assert stored(k) == 2
    with pytest.raises(ct.TileStaticEvalError, match="an iterator through `held.places`"):
        stored(reading(lambda: held.place()))
    held.lines.close()


def test_the_shape_of_an_array_on_a_gpu():
    held = at(4096, (4,))
    held.shape = (3, 4)
    k = reading(lambda: held.shape[0])
    assert stored(k) == 3
    held.shape = (5, 4)
    assert stored(k) == 5


def test_elements_of_an_array_whose_shape_is_read_are_not_compared(typings):
    table = np.zeros((3, 4))
    k = reading(lambda: table.shape[0] + table.ndim + table.dtype.itemsize)
    assert stored(k) == 13
    table[:] = 1
    assert stored(k) == 13 and len(typings) == 1


def of_module(name):
    """An object of a class that says it is of this module."""
    return type("Some", (), {"__module__": name, "__slots__": ("n",)})()


@dataclasses.dataclass
class Sample:
    a: int = 0


SERVICES = {  # of each module whose objects count as unchanging
    "logging": logging.getLogger(__name__), "threading": threading.Event(), "_thread": threading.Lock(),
    "asyncio": asyncio.Event(), "concurrent": concurrent.futures.Future(),
    "multiprocessing": multiprocessing.get_context(), "socket": socket.AF_INET,
    "subprocess": subprocess.CompletedProcess([], 0), "re": re.compile("a"), "abc": abc.ABC(),
    "_abc": _abc._get_dump(abc.ABC) and vars(abc.ABC)["_abc_impl"], "typing": typing.TypeVar("T"),
    "datetime": datetime.date(2000, 1, 1), "decimal": decimal.Decimal(1), "random": random.Random(),
    "_random": __import__("_random").Random(), "importlib": importlib.util.LazyLoader, "cutile": ct.kernel(lambda: None),
    "_frozen_importlib": object_state.__spec__, "_frozen_importlib_external": importlib.machinery.SourceFileLoader("m", "m.py"),
    "jax": of_module("jax.numpy"), "jaxlib": of_module("jaxlib")}
ATOMS = [None, True, 1, 1.0, 1j, "", b"", range(2), ..., NotImplemented, of_module.__code__, list[int], int | str,
         int.__add__, str.join, dict.__dict__["fromkeys"], types.FunctionType.__code__, Slotted.n, np.add]


@pytest.mark.parametrize("root", SERVICES)
def test_services_of_the_process_are_not_compared(root):
    held = SERVICES[root]
    if isinstance(held, type):
        held = held.__new__(held)
    assert type(held).__module__.partition(".")[0] == root
    assert object_state.is_atom(held)


@pytest.mark.parametrize("held", ATOMS, ids=lambda x: type(x).__name__)
def test_objects_that_cannot_change_are_not_compared(held):
    assert object_state.is_atom(held)


def test_there_is_a_sample_of_each_kind_that_cannot_change():
    assert {type(x) for x in ATOMS} == object_state.ATOMS and SERVICES.keys() == object_state._SERVICES


@pytest.mark.parametrize("held", [Sample(), of_module("my.jax"), [1], threading.local(), Sample, asyncio.Event, {1}])
def test_other_objects_are_compared(held):
    assert not object_state.is_atom(held)


METADATA = {"shape": (2, 3), "strides": ((24, 8),), "dtype": (np.dtype(float),), "ndim": (2,), "size": (6,),
            "itemsize": (8,), "nbytes": (48,)}


@pytest.mark.parametrize("name", [*METADATA, "T"])
def test_metadata_of_arrays(name):
    read = object_state.metadata(np.ones((2, 3)), name)
    assert (read and read(np.ones((2, 3)))) == METADATA.get(name)


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    for held in (torch.float32, torch.device("cpu"), torch.strided):
        assert object_state.is_atom(held)
    assert not object_state.is_atom(torch.ones(2))
    numbers = torch.tensor([1.0, 2.0, 3.0])
    held = numbers[:2]
    k = reading(lambda: held.tolist()[0])
    assert stored(k) == 1
    held.set_(numbers.untyped_storage(), 1, (2,), (1,))
    assert stored(k) == 2


@pytest.mark.parametrize("held, says", [
    (iter([1, 2]), "an iterator"), ((i for i in (1, 2)), "an iterator"), (itertools.count(), "an iterator"),
    ([1, {"a": (iter(()),)}], "an iterator"), (at(4096, (4,)), "an array in GPU memory"),
    ([0] * (dependencies.LIMIT + 1), "more than 100,000 objects"), (nested([0] * 100, 100_000), "more than 100,000 objects")],
    ids=["list", "generator", "count", "inside", "gpu", "long", "deep"])
def test_what_is_refused(held, says):
    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(len(str(type(held)))))

    with pytest.raises(ct.TileStaticEvalError, match=f"(?s)static code reads {says}.* `held`.*static_eval.*help:") as e:
        stored(k)
    assert e.value.loc.function == "k"


def test_memory_that_was_given_back():
    view = memoryview(bytearray(8))
    k = reading(lambda: view[0])
    stored(k)
    view.release()
    with pytest.raises(ct.TileStaticEvalError, match="type memoryview that cannot be looked at"):
        stored(k)


def test_installed_libraries_stay_as_they_are(typings):
    k = reading(lambda: np.sum(np.ones(3)) + len(logging.getLevelName(10)) + dataclasses.replace(Frozen(1), n=2).n)
    assert stored(k) == stored(k) == 10 and len(typings) == 1


def test_methods_of_dataclasses_that_were_replaced(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int = 1

        def __post_init__(self):
            ct.static_assert(self.x > 0)

        def __call__(self):
            return self.x

    @ct.kernel
    def k(out):
        ct.store(out, 0, Point()())

    assert stored(k) == 1
    monkeypatch.setattr(Point, "__call__", lambda self: self.x + 1)
    assert stored(k) == 2
    monkeypatch.setattr(Point.__dataclass_fields__["x"], "default", 5)
    assert stored(k) == 6
    monkeypatch.setattr(Point, "__post_init__", lambda self: ct.static_assert(self.x < 5))
    with pytest.raises(ct.TileStaticAssertionError):
        stored(k)


def test_a_context_manager_that_was_replaced():
    space = cell("""
        import contextlib
        @contextlib.contextmanager
        def one(): yield 1
        @contextlib.contextmanager
        def two(): yield 2
        @ct.kernel
        def k(out):
            with one() as n:
                ct.store(out, 0, n)
    """)
    assert stored(space["k"]) == 1
    space["one"].__wrapped__ = space["two"].__wrapped__
    assert stored(space["k"]) == 2

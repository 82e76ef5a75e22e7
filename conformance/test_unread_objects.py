"""Objects of which later launches look at nothing, or which they cannot look at; and none of whose code they run."""

import asyncio
import concurrent.futures
import dataclasses
import importlib.machinery
import io
import logging
import multiprocessing
import random
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.read_module import KERNEL, stored
from conformance.harness.tile_code import Counter, module, rejects


class OnGPU:
    """What says that it is an array in GPU memory."""

    shape = 3,
    __cuda_array_interface__ = {"shape": (3,), "typestr": "<i4", "data": (4096, False), "version": 3}


class OnGPULater:
    def __init__(self):
        self.__cuda_array_interface__ = OnGPU.__cuda_array_interface__


def generating():
    yield 1


class Iterating:
    def __init__(self):
        self.made = iter([1])


@clause("CONST-4.contents")
@pytest.mark.parametrize("make", [OnGPU, OnGPULater, lambda: iter([1]), lambda: map(str, [1]), generating,
                                  lambda: zip([1], [2]), lambda: io.StringIO("a"), Iterating])
def test_objects_that_cannot_be_compared(make):
    """They are refused, since a launch could not see a change."""
    held = make()
    rejects("TileStaticEvalError", lambda n: ct.static_eval(len([held]) + hasattr(held, "made")), 1)


SERVICES = {  # objects of the process, and what changes their attributes
    "logging": (logging.getLogger("conformance of launches"), lambda x: x.setLevel(x.level + 1)),
    "threading": (threading.Event(), lambda x: x.clear() if x.is_set() else x.set()),
    "asyncio": (asyncio.Event(), lambda x: x.clear() if x.is_set() else x.set()),
    "concurrent": (concurrent.futures.Future(), lambda x: x.done() or x.set_result(1)),
    "multiprocessing": (multiprocessing.Process(), lambda x: setattr(x, "daemon", not x.daemon)),
    "subprocess": (subprocess.CompletedProcess([], 0), lambda x: setattr(x, "returncode", x.returncode + 1)),
    "random": (random.Random(3), lambda x: x.random()),
    "socket": (socket.socket(), lambda x: x.close()),
    "a spec": (importlib.machinery.ModuleSpec("a", None), lambda x: setattr(x, "origin", f"{x.origin}.")),
    "a loader": (importlib.machinery.SourceFileLoader("a", "b"), lambda x: setattr(x, "path", x.path + "b")),
    "a lock": (threading.Lock(), lambda x: x.release() if x.locked() else x.acquire()),
}


@clause("SPEC-1.same")
@pytest.mark.parametrize("what", SERVICES)
def test_services_of_the_process(what):
    counter = Counter()
    held, change = SERVICES[what]
    space = module(KERNEL.format("len([held]) + 2"), hit=counter.hit, held=held)
    for _ in range(3):
        assert stored(space["kern"]) == 3
        change(held)
    assert stored(space["kern"]) == 3 and counter.count == 1


@clause("SPEC-1.same", "OBJ-4.static_eval")
def test_kernels_that_static_code_holds():
    @ct.kernel
    def other(n: ct.Constant, out):
        ct.store(out, 0, n)

    counter = Counter()
    space = module(KERNEL.format("len([other]) + 2"), hit=counter.hit, other=other)
    for n in range(3):
        assert stored(space["kern"]) == 3
        assert int(run(other, n, np.zeros(1, np.int32))[0]) == n
    assert counter.count == 1


def with_code(calls):
    """Classes, objects and a module whose code `calls` counts, by name."""
    class Meta(type):
        def __getattr__(cls, name):
            calls.hit()
            return 1

        @property
        def shown(cls):
            calls.hit()
            return 1

    class Descriptor:
        def __get__(self, instance, owner):
            calls.hit()
            return 1

    class Plain:
        descriptor = Descriptor()
        number = 1

        def __getattr__(self, name):
            calls.hit()
            return 1

    class Loud(metaclass=Meta):
        number = 1

        def __getattribute__(self, name):
            calls.hit()
            return object.__getattribute__(self, name)

        def __eq__(self, other):
            calls.hit()
            return self is other

        __hash__ = None

    class Lazy(type(sys)):
        def __getattr__(self, name):
            calls.hit()
            return 1

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        x: int
        number = 1

    Frozen.descriptor = Descriptor()
    plain, loud, lazy = Plain(), Loud(), Lazy("lazy_module")
    loud.attribute, lazy.number = 1, 1
    return {"plain": plain, "Plain": Plain, "loud": loud, "Loud": Loud, "lazy": lazy, "Frozen": Frozen,
            "frozen": Frozen(1)}


@clause("SPEC-1.same")
def test_no_code_of_objects_runs():
    """A launch that compiles nothing looks at what the kernel reads, and calls none of its code."""
    calls = Counter()
    names = with_code(calls)
    for expression in (
            "plain.descriptor", "Plain.descriptor", "plain.missing", "plain.number", "Plain.number", "loud.attribute",
            "Loud.number", "Loud.shown", "Loud.missing", "lazy.number", "lazy.missing", "getattr(Loud, 'number')",
            "(lambda: loud.number)()", "[x.number for x in (loud, plain)][0]", "(loud == loud) + 0",
            "(lambda: lazy.missing)()"):
        space = module(KERNEL.format(expression), hit=int, **names)
        assert stored(space["kern"]) == 1
        before = calls.count
        assert [stored(space["kern"]) for _ in range(3)] == [1] * 3
        assert calls.count == before, expression


@clause("SPEC-1.same", "CONST-4.variable")
@pytest.mark.parametrize("expression", [
    "Plain.descriptor", "Loud.number", "Loud.shown", "frozen.descriptor", "Frozen.descriptor", "Frozen.number",
    "lazy.number", "frozen.number", "frozen.x"])
def test_no_code_of_objects_runs_for_tile_code(expression):
    """Not when it is launched again."""
    calls = Counter()
    names = with_code(calls)
    space = module(f"""
        @ct.kernel
        def kern(out):
            ct.store(out, 0, {expression})
    """, **names)
    try:
        assert stored(space["kern"]) == 1
    except ct.TileTypeError:  # what would run code need not be readable
        return
    stored(space["kern"])
    before = calls.count
    assert [stored(space["kern"]) for _ in range(3)] == [1] * 3
    assert calls.count == before

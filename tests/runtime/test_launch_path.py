"""A launch goes down through cutile/runtime once: no file is entered again from another file before the back end."""

from __future__ import annotations

import enum
import sys
from pathlib import Path

import numpy as np
import pytest

import cutile as ct
from cutile.runtime import launch_cache
from tests.gpu import extension
from tests.gpu.arrays import Cuda, at
from tests.gpu.extension import CuPyArray, Tensor
from tests.gpu.fake_driver import installed

PACKAGE = Path(ct.__file__).parent
BACK_ENDS = {("interp", "host_launch.py"), ("gpu", "device_launch.py"), ("interp", "__init__.py")}


def entered(launch) -> list[str]:
    """The files of cutile/runtime in the order in which calls from other files of it enter them, until a back end runs.

    A file that several arguments bring the same caller to, one after another, is entered once.
    """
    entries: list[tuple[str, str]] = []
    stack = [""]
    done = False

    def profile(frame, event, arg):
        nonlocal done
        file = Path(frame.f_code.co_filename)
        if done or event not in ("call", "return") or PACKAGE not in file.parents:
            return
        part = file.relative_to(PACKAGE).parts
        if event == "return":
            stack.pop()
        elif part[0] != "runtime":
            done = part in BACK_ENDS and frame.f_code.co_name in ("run", "prepare")
            stack.append(stack[-1])
        else:
            if part[1] != stack[-1] and (stack[-1], part[1]) not in entries[-1:]:
                entries.append((stack[-1], part[1]))
            stack.append(part[1])

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        launch()
    finally:
        sys.setprofile(before)
    assert done
    return [file for _, file in entries]


@ct.kernel
def scaled(x, y, f, n: ct.Constant[int], b):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), n) * f)


def host():
    return np.ones(32, np.float32)


ARRAYS = {
    "NumPy": lambda: (host(), host()),
    "GPU arrays by their interface": lambda: (at(4096, (32,)), Cuda(host())),
    "CuPy": lambda: (CuPyArray(4096, (32,), (1,)), CuPyArray(8192, (32,), (1,))),
    "PyTorch": lambda: (Tensor(4096, (32,), (1,)), Tensor(8192, (32,), (1,))),
}


@pytest.fixture
def driver(monkeypatch):
    installed(monkeypatch)
    monkeypatch.setattr(launch_cache, "extension", lambda: None)  # so that C code leaves launches to Python
    extension.installed(monkeypatch)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("repeated", [False, True])
def test_no_file_is_entered_twice(driver, name, repeated):
    kernel = ct.kernel(scaled.function)
    for _ in range(2):
        files = entered(lambda: ct.launch(77, (2,), kernel, (*ARRAYS[name](), 2.0, 16, True)))
        assert files[:2] == ["launch.py", "launch_plan.py"] and len(set(files)) == len(files), files
        if not repeated:
            assert {"launch_key.py", "arguments.py", "array_ref.py", "kernel.py"} < set(files)
            return
    assert set(files) <= {"launch.py", "launch_plan.py", "launch_key.py", "arrays.py", "autograd.py"}


class Level(enum.Enum):
    LOW = "low"


class Number(enum.IntEnum):
    TWO = 2


class Mine(float):
    pass


CONSTANTS = [3, 2**63, True, 2.5, float("nan"), "text", None, ct.float16, np.dtype("i4"), np.float32, Level.LOW,
             Number.TWO, np.int8(1), np.float32(-0.0), Mine(0.5), (), (1, ("a", None)), (2.5, ct.int8, Level.LOW)]
ARGUMENTS = {
    **{f"constant {c!r}": (ct.Constant, lambda x, c=c: c) for c in CONSTANTS},
    "list": (None, lambda x: [x, x]),
    "tuple": (None, lambda x: (x, 2, (True, (1.5, x)))),
    "tuple with constants": (tuple[None, ct.Constant, ct.ScalarInt64], lambda x: (x, Level.LOW, 2**40)),
    "tuple of any length": (tuple[ct.Constant[tuple[int, str]], ...], lambda x: ((1, "a"), (2, "b"))),
    "empty tuple": (None, lambda x: ()),
    **{f"number {v!r}": (None, lambda x, v=v: v) for v in (False, 7, 2.5, np.float64(1), Mine(0.5), Number.TWO)},
    "wide integer": (ct.ScalarInt64, lambda x: 2**40),
    "array with 64-bit indices": (ct.IndexedWithInt64, lambda x: x),
}


def is_quick(argument, i, k):
    """Each constant and number stands between arrays of one kind, the rest between those of all kinds."""
    return not argument.startswith(("constant", "number")) or i % len(ARRAYS) == k


@pytest.mark.parametrize("argument, name", [
    pytest.param(argument, name, marks=[] if is_quick(argument, i, k) else [pytest.mark.deep])
    for i, argument in enumerate(ARGUMENTS) for k, name in enumerate(ARRAYS)])
def test_whatever_stands_between_arrays(driver, name, argument):
    annotation, make = ARGUMENTS[argument]

    def copy(x, between, y, again):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16))

    copy.__annotations__ = {"between": annotation, "again": annotation}
    kernel = ct.kernel(copy)
    for repeated in (False, True):
        x, y = ARRAYS[name]()
        files = entered(lambda: ct.launch(77, (2,), kernel, (x, make(x), y, make(y))))  # noqa: B023
        assert len(set(files)) == len(files), files
        assert not repeated or set(files) <= {"launch.py", "launch_plan.py", "launch_key.py", "arrays.py",
                                              "autograd.py"}, files

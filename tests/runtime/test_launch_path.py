"""A launch goes down through cutile/runtime once: no file is entered again from another file before the back end."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import cutile as ct
from tests.gpu import extension
from tests.gpu.arrays import Cuda, at
from tests.gpu.extension import CuPyArray, Tensor
from tests.gpu.fake_driver import installed

PACKAGE = Path(ct.__file__).parent
BACK_ENDS = {("interp", "launch.py"), ("gpu", "device_launch.py"), ("interp", "__init__.py")}


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


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("repeated", [False, True])
def test_no_file_is_entered_twice(monkeypatch, name, repeated):
    fake = installed(monkeypatch)
    fake.contexts[:] = [0]  # so that C code leaves launches to Python
    extension.installed(monkeypatch)
    kernel = ct.kernel(scaled.function)
    for _ in range(2):
        files = entered(lambda: ct.launch(77, (2,), kernel, (*ARRAYS[name](), 2.0, 16, True)))
        assert files[:2] == ["launch.py", "launch_plan.py"] and len(set(files)) == len(files), files
        if not repeated:
            assert {"launch_key.py", "arguments.py", "array_ref.py", "kernel.py"} < set(files)
            return
    assert set(files) <= {"launch.py", "launch_plan.py", "launch_key.py", "arrays.py", "autograd.py"}

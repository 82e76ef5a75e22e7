"""Ways to run or refuse a piece of tile code: as a function of run-time arguments, or as source text."""

from __future__ import annotations

import itertools
import os
import tempfile
import textwrap
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from conformance.harness.api import accepts, ct, launch, refuses

LENGTH = 16  # most results of a piece of code
UNSET = -99

_folder = tempfile.TemporaryDirectory(prefix="conformance-")
_number = itertools.count()


def _body(f: Callable) -> Any:
    @ct.kernel
    def k(args):
        f(*args)

    return k


def result(f: Callable, *args: Any, want: Any = np.int64, dtype: Any = None, grid: tuple[int, ...] = (1,)) -> Any:
    """The result of f(*args) in a kernel, with run-time values as arguments: a number, or a list of numbers for a
    tuple.
    """
    out = np.full(LENGTH, UNSET, want)
    single = np.zeros(1, np.int32)
    d = dtype or getattr(ct, np.dtype(want).name)

    @ct.kernel
    def k(args, out, single):
        values = f(*args)
        is_tuple = ct.static_eval(isinstance(values, tuple))
        if is_tuple:
            for i, v in ct.static_iter(enumerate(values)):
                ct.store(out, i, ct.astype(v, d))
        else:
            ct.store(out, 0, ct.astype(values, d))
            ct.store(single, 0, 1)

    launch(k, args, out, single, grid=grid)
    return out[0].item() if single[0] else out[out != UNSET].tolist()


def takes(f: Callable, *args: Any) -> None:
    """Assert that f(*args) compiles in tile code, with run-time values as arguments."""
    accepts(_body(f), args)


def rejects(error: str | tuple[str, ...], f: Callable, *args: Any, match: str | None = None) -> BaseException:
    """Assert that f(*args) does not compile in tile code."""
    return refuses(error, _body(f), args, match=match)


def module(source: str, **names: Any) -> dict[str, Any]:
    """The names that a piece of Python source defines. `inspect` finds its text."""
    path = Path(_folder.name) / f"piece_{os.getpid()}_{next(_number)}.py"  # forked processes share the folder
    path.write_text(textwrap.dedent(source))
    space: dict[str, Any] = {"ct": ct, "np": np, "__name__": path.stem, **names}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), space)
    return space


def body(lines: str, **names: Any) -> Callable:
    """A function f(n) of tile code with these lines as its body."""
    return module("def f(n):\n" + textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ") + "\n", **names)["f"]


class Counter:
    """Counts how often tile code is compiled: the code contains `ct.static_eval(hit())`, where `hit` is the counter's
    method.

    The count is the size of a file. A count in an object would change what static code reads, and so cause
    compilation.
    """

    def __init__(self) -> None:
        self.file, path = tempfile.mkstemp(dir=_folder.name)
        weakref.finalize(self, os.close, self.file)

    @property
    def count(self) -> int:
        return os.fstat(self.file).st_size

    def hit(self) -> int:
        return os.write(self.file, b".")

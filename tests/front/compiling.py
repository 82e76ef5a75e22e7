"""What typing a kernel gives in tests: IR, its text, a constant, a number from the interpreter, or an error."""

from __future__ import annotations

import itertools
import linecache
import textwrap
import types

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.front.program import ArgType, Embedded, type_kernel
from cutile.ir.check import check
from cutile.ir.nodes import Kernel
from cutile.ir.text import to_text
from cutile.types import ArrayType, ListType, TileType

I32, F32, B1 = TileType(ct.int32), TileType(ct.float32), TileType(ct.bool_)
A1, A2, AI = ArrayType(ct.float32, 1), ArrayType(ct.float32, 2), ArrayType(ct.int32, 1)
ARRAYS = ListType(A1)
C = Embedded


def typed(fn: types.FunctionType, *kinds: ArgType) -> Kernel:
    """The checked IR of a kernel."""
    kernel = type_kernel(fn, kinds).kernel
    check(kernel)
    return kernel


def text(fn: types.FunctionType, *kinds: ArgType) -> str:
    return to_text(typed(fn, *kinds), spans=False)


def refused(
    fn: types.FunctionType,
    *kinds: ArgType,
    cls: type[ct.TileError] = ct.TileTypeError,
    at: str | None = None,
    says: str = "",
    help: str = "",
    alone: bool = True,
) -> ct.TileError:
    """The error of a kernel that is refused.

    Checks its exact class, the source `at` its carets, and that its message and help contain `says` and `help`.
    `alone`: it is the only error.
    """
    with pytest.raises(ct.TileError) as caught:
        type_kernel(fn, kinds)
    e = caught.value
    assert type(e) is cls, str(e)
    assert says in e.message, str(e)
    assert help in (e.help or ""), str(e)
    assert e.loc is not None
    if at is not None:
        assert under_carets(e) == at, str(e)
    if alone:
        assert len(e.errors) == 1, str(e)
    return e


def under_carets(e: ct.TileError) -> str:
    line = e.loc.source_line()
    return line[e.loc.col:e.loc.end_col if e.loc.end_line == e.loc.line else None]


def result(f, *args, dtype=np.int32):
    """The scalar that a function returns in a kernel that the interpreter runs. Arguments may be tuples and arrays."""
    out = np.zeros(1, dtype)

    @ct.kernel
    def run(out, args):
        ct.scatter(out, 0, f(*args))

    with settings.override(CHECK=True):
        ct.launch(None, (1,), run, (out, args))
    return out[0]


def constant(f, *args):
    """The compile-time value that a function returns in a kernel, as static code sees it."""
    seen: list = []

    def run(args):
        value = ct.ensure_constant(f(*args))
        ct.static_eval(seen.append(value))

    typed(run, tuple(map(C, args)))
    return seen[0]


_cells = itertools.count()


def cell(source: str, **names) -> dict:
    """Run source text as notebooks run a cell, registered in linecache under a new name. Returns its globals."""
    source = textwrap.dedent(source).lstrip("\n")
    filename = f"<cell {next(_cells)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    space = {"ct": ct, "np": np, **names}
    exec(compile(source, filename, "exec"), space)
    return space

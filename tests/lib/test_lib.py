"""The names of cutile.lib: how kernels reach them, examples, and code for GPUs."""

import doctest
import importlib
import inspect
import subprocess
import sys

import numpy as np
import pytest

import cutile as ct
from cutile import lib
from tests.front.compiling import A1, cell, refused
from tests.gpu.tileir.rules.small_kernels import FLOATS, INTEGERS, assemble, sampled, tile
from tests.gpu.tileir.tool import needs_tool

FUNCTIONS = [getattr(lib, name) for name in lib.__all__]
FILES = sorted({f.__module__ for f in FUNCTIONS})


def test_importing_cutile_does_not_load_it():
    code = "import cutile, sys; print('cutile.lib' in sys.modules, 'lib' in cutile.__all__, cutile.lib.erf.__name__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False True erf\n"


@pytest.mark.parametrize("name", FILES)
def test_examples(name):
    tests = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), extraglobs={"np": np})
    assert {t.name for t in tests if t.examples} == {f"{name}.{f.__name__}" for f in FUNCTIONS if f.__module__ == name}
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test)
    assert not runner.failures


@pytest.mark.parametrize("f", FUNCTIONS)
def test_docstrings_have_their_sections(f):
    sections = ["Parameters", "Returns", "Raises", "Notes", "Examples"]
    lines = [line.strip() for line in f.__doc__.splitlines()]
    assert [line for line, rule in zip(lines, lines[1:], strict=False) if rule and set(rule) == {"-"}] == sections
    told = inspect.getdoc(f).partition("Parameters\n")[2].partition("\nReturns")[0]
    assert all(p in told for p in inspect.signature(f).parameters)


@pytest.mark.parametrize("how", ["ct.lib.sigmoid(t)", "lib.sigmoid(t)", "sigmoid(t)"])
def test_ways_to_reach_a_function(how):
    @ct.kernel
    def reference(x, y):
        ct.store(y, 0, 1 / (1 + ct.exp(-ct.load(x, 0, (4,)))))

    space = cell(f"def f(x, y):\n    t = ct.load(x, 0, (4,))\n    ct.store(y, 0, {how})", lib=lib, sigmoid=lib.sigmoid)
    x, y, z = np.array([-1, 0, 1, 2], np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    ct.launch(None, (1,), ct.kernel(space["f"]), (x, y))
    ct.launch(None, (1,), reference, (x, z))
    np.testing.assert_allclose(y, z, rtol=5e-7)


@pytest.mark.parametrize(("name", "help"), [("sigmod", "did you mean `sigmoid`"), ("exp", "write ct.exp(x)"),
                                            ("random", "ct.lib.uniform"), ("elementwise", "")])
def test_unknown_names(name, help):
    e = refused(cell(f"def k(a): ct.lib.{name}(ct.load(a, 0, 4))")["k"], A1, says=f"has no attribute `{name}`")
    assert help in (e.help or "")


# ------------------------------------------------------------------ code for GPUs

ELEMENTWISE = (lib.erf, lib.log1p, lib.expm1, lib.sigmoid, lib.silu, lib.gelu, lib.gelu_tanh, lib.softplus)
ROWS = (lib.mean, lib.var, lib.std, lib.norm, lib.logsumexp, lib.softmax)


def moved(t):
    return lib.flip(t, 1), lib.roll(t, 3, 1), lib.roll(t, ct.bid(0), 0)


def ranked(t):
    return lib.topk(t, 4)


def running(t):
    return lib.cummax(t, 1), lib.cummin(t, 0, reverse=True)


def drawn(t):
    return lib.random_bits(ct.bid(0), t), lib.uniform(1, t), lib.normal(2**40, t)


def hot(t):
    return lib.one_hot(t, 8)


CASES = [*((f, (tile(d),)) for f in ELEMENTWISE for d in (*FLOATS, INTEGERS[0])),
         *((f, (tile(d),)) for f in (lib.rint, lib.trunc) for d in FLOATS),
         *((lambda t, f=f: f(t, 1), (tile(d, 4, 16),)) for f in ROWS for d in FLOATS),
         *((f, (tile(d, 4, 16),)) for f in (moved, ranked, running) for d in (*FLOATS, ct.int8, ct.uint64)),
         *((f, (tile(d, 4, 16),)) for f in (drawn, hot) for d in (ct.int32, ct.uint8, ct.int64))]


@needs_tool
@sampled(CASES)
def test_all_are_assembled(target, cases):
    assemble(cases, target)

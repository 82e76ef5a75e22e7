"""Functions that nest deeply get from an environment what their callers would only hand on."""

from __future__ import annotations

import functools
import linecache

import numpy as np
import pytest

import cutile as ct
from cutile.interp.codegen.batch import compile_kernel as batch
from cutile.interp.codegen.block import compile_kernel as block
from cutile.interp.codegen.links import DEEP, ENVIRONMENT

LEVELS = DEEP + 8
WRAPPED = "def wrapped(f, i, j):\n    def g(x):\n"
PLAIN = "return f(x) * 3 + i - j"
#: bodies of closures that wrap each other; `i` and `j` are numbers of the launch, which differ between blocks
BODIES = {
    "calls": (PLAIN,),
    "branches": ("y = j", "if x > i:", "    y = f(x - 1) + i", "return y"),
    "early returns": ("if x > i:", "    if x > j + 9:", "        return j", "    return f(x - 1) - i", "return x + j"),
    "returns in all branches": ("if x > i + 3:", "    return f(x - 1) * i", "elif x == j:", "    return i",
                                "else:", "    return x - j"),
    "loops": ("for k in range(2):", "    if x > i + k:", "        break", "    x += j + k", "if x < j:",
              "    x = f(x - i) * 2", "return x"),
    "calls in loops": ("for k in range(1):", "    x = f(x + k) + i", "return x - j"),
    "recursion": (),
    "other closures": ("h = lambda y: y * i + j", "if x > h(2):", "    return h(f(h(x) % 7))", "return h(x)"),
}
#: values of each level are read at the innermost, and some of the outer ones now and then
RECURSION = """
def down(t, x, n):
    if n == 0:
        for v in ct.static_iter(t):
            x = x * 3 + v
        return x
    y = t[n % 3] * x
    z = y - x if n % 4 else t[n % 7] + x
    return down(t + (z,), y, n - 1)

@ct.kernel
def k(o, c0):
    c = ct.bid(0) + c0
    ct.store(o, ct.bid(0), down((c, c + 1, c * 2, c - 3, c * 4, 1 - c, 7), c, LEVELS))
"""
KERNEL = """
@ct.kernel
def k(o, c0):
    c = ct.bid(0) * 3 + c0
    f = lambda x: x - c
{layers}
    r = f(c)
    for i in range(2):
        r = r * 5 + f(i - r % 9)
    ct.store(o, ct.bid(0), r)
"""


def kernel(body: tuple[str, ...], levels: int = LEVELS) -> ct.kernel:
    layers = "\n".join(f"    f = wrapped(f, c * {n % 11 - 5} + {n * n % 7}, c + {n % 5})" for n in range(levels))
    source = WRAPPED + "".join(f"        {s}\n" for s in body) + "    return g\n" + KERNEL.format(layers=layers)
    if body == BODIES["recursion"]:
        source = RECURSION.replace("LEVELS", str(levels))
    name = f"<closures {abs(hash((body, levels)))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"ct": ct}
    exec(compile(source, name, "exec"), space)
    return space["k"]


def launched(k: ct.kernel, schedule: str, check: str, monkeypatch) -> list[int]:
    monkeypatch.setenv("CUTILE_SCHEDULE", schedule)
    monkeypatch.setenv("CUTILE_CHECK", check)
    o = np.zeros(16, np.int32)
    ct.launch(None, (16,), k, (o, -20))
    return o.tolist()


def in_python(body: tuple[str, ...]) -> list[int]:
    """The same with Python's own closures, and numbers that wrap around as int32 does."""
    found: dict[int, np.int32] = {}

    class Memory:
        @staticmethod
        def bid(axis):
            return np.int32(len(found))

        @staticmethod
        def store(o, index, r):
            found[int(index)] = r

        kernel = staticmethod(lambda f: f)
        static_iter = staticmethod(iter)

    function = kernel(body).__wrapped__
    space = {**function.__globals__, "ct": Memory}
    source = "".join(linecache.cache[function.__code__.co_filename][2])
    exec(source, space)
    with np.errstate(over="ignore"):
        for _ in range(16):
            space["k"](None, np.int32(-20))
    return [int(found[block_number]) for block_number in range(16)]


@pytest.mark.parametrize("name", BODIES)
def test_results_are_those_of_python(name, monkeypatch):
    expected = in_python(BODIES[name])
    assert len(set(expected)) > 3  # so that blocks differ
    for check in "01":
        k = kernel(BODIES[name])  # typed once, and checked if that is asked for
        for schedule in ("batch", "block", "interleave"):
            assert launched(k, schedule, check, monkeypatch) == expected, (schedule, check)


def typed(k: ct.kernel):
    return k.program(k.classify((np.zeros(16, np.int32), 3))).kernel


@functools.cache
def typed_of(body: tuple[str, ...], levels: int):
    return typed(kernel(body, levels))


def functions_of(emit, body: tuple[str, ...], levels: int) -> list[list[str]]:
    """The parameters of the functions that are emitted."""
    made = emit(typed_of(body, levels), check=False, step_limit=False, syntax=True).syntax
    return [[a.arg for a in f.args.args] for f in made]


@pytest.mark.parametrize("name", [n for n in BODIES if n not in ("calls in loops", "recursion")])
def test_arguments_grow_with_the_depth(name):
    for emit in (batch, block):
        few, many = (functions_of(emit, BODIES[name], n) for n in (LEVELS, 2 * LEVELS))
        assert any(ENVIRONMENT in params for params in few)
        assert sum(map(len, many)) < 2.2 * sum(map(len, few)), emit


@pytest.mark.parametrize("emit", [batch, block])
def test_shallow_functions_are_passed_all(emit):
    assert not any(ENVIRONMENT in params for params in functions_of(emit, (PLAIN,), DEEP - 2))

"""The variant without checks of bounds: for which kernels there is one, and which launches it serves."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import HealthCheck, given, reject
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

import cutile as ct
from cutile import settings
from cutile._support.strides import row_major
from cutile.compilation.launch_signature import of_launch
from cutile.gpu import cubin
from cutile.gpu.cubin_resources import read
from cutile.gpu.facts import ArrayFacts
from cutile.gpu.hints import choose_hints
from cutile.gpu.target import parse_target
from cutile.gpu.unchecked import unchecked, uses_tma, without_needless_checks
from cutile.ir.nodes import Frame, Op
from cutile.ir.walk import walk
from cutile.types import ListType
from tests.analysis import test_inside as oracle
from tests.front.compiling import A1, A2, cell, typed
from tests.gpu import extension
from tests.gpu.extension import CuPyArray
from tests.gpu.fake_driver import installed
from tests.gpu.tileir.tool import needs_tool


def copy(x, y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16))


def test_which_launches_it_serves():
    may_run = unchecked(typed(copy, A1, A1), True).for_arrays([((48,), (1,)), ((64,), (2,))])
    assert [may_run((n, 1, 1)) for n in range(6)] == [False, True, True, True, False, False]


def test_a_kernel_that_only_stores_has_none():
    def fill(x, y):
        ct.store(y, ct.bid(0), ct.full((16,), 1.0, y.dtype) * ct.load(x, ct.bid(0), 1))

    assert unchecked(typed(fill, A1, A1), True) is None and unchecked(typed(copy, A1, A1), True) is not None


def test_a_list_of_arrays():
    def k(arrays, x):
        ct.store(x, ct.bid(0), ct.load(arrays[0], ct.bid(0), 8))

    found = unchecked(typed(k, ListType(A1), A1), True)
    assert found.for_arrays([[((8,), (1,)), ((16,), (1,))], ((16,), (1,))])((1, 1, 1))
    assert not found.for_arrays([[((8,), (1,)), ((16,), (1,))], ((16,), (1,))])((2, 1, 1))


def test_accesses_in_functions():
    def k(x, y):
        copy(x, y)

    found = unchecked(typed(k, A1, A1), True).kernel
    nodes = list(walk(found.body))
    assert not any(isinstance(n, Frame) for n in nodes)
    assert [n.attrs["check_bounds"] for n in nodes if isinstance(n, Op) and n.op.accesses] == [False, False]


def test_kernels_that_have_none():
    def product(x, y):
        a = ct.load(x, (0, 0), (16, 16))
        ct.store(y, (0, 0), ct.mma(a, a, ct.zeros((16, 16), ct.float32)))

    def scattered(x, y):
        i = ct.arange(16, dtype=ct.int32)
        ct.scatter(y, i, ct.gather(x, i))

    def promised(x, y):
        ct.store(y, 0, ct.load(x, 0, 16, check_bounds=False), check_bounds=False)

    assert unchecked(typed(product, A2, A2), True) is None
    assert unchecked(typed(scattered, A1, A1), True) is unchecked(typed(promised, A1, A1), True) is None
    with settings.override(HINTS=False):
        assert unchecked(typed(copy, A1, A1), True) is None
    assert unchecked(typed(copy, A1, A1), True) is not None


# ------------------------------------------------------------------ launches of random programs


@settings_of_hypothesis(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(seed=st.integers(0, 2**32), plain=st.booleans(), launches=st.lists(oracle.launches, min_size=2, max_size=5))
def test_what_runs_without_checks_stays_inside(monkeypatch, seed, plain, launches):
    """A kernel is launched with several grids, sizes and numbers, again and again, while its variant is made."""
    extension.installed(monkeypatch)
    fake = installed(monkeypatch)
    fake.contexts[:] = [0x1000]
    source = oracle.Program(random.Random(seed), plain).source
    kernel = ct.kernel(cell(source)["k"])
    for _ in range(3):
        for grid, (a, b, m), n in launches:
            arrays = [CuPyArray(4096, shape, row_major(shape)) for shape in ((a,), (b,), m)]
            try:
                ct.launch(0, grid, kernel, (*arrays, n))
                truth = oracle.accesses_of(source, grid, [(a,), (b,), m], n)
            except (ct.TileError, oracle.TooLong):
                reject()
            unchecked_lines = fake.unchecked_lines[fake.launches[-1]["function"][1]]
            assert not any(False in truth.get(line, ()) for line in unchecked_lines), source
        fake.work()


# ------------------------------------------------------------------ TMA


def rows(x, y):
    for i in range(ct.bid(0), ct.num_tiles(x, 0, (1, 1024)), ct.num_blocks(0)):
        t = ct.load(x, (i, 0), (1, 1024), padding_mode=ct.PaddingMode.NEG_INF)
        ct.store(y, (i, 0), t - ct.max(t, axis=1, keepdims=True))


def attributes(kernel, name):
    return [n.attrs[name] for n in walk(kernel.body) if isinstance(n, Op) and n.op.accesses]


def test_what_goes_by_tma_stays_as_it_is():
    kernel = typed(rows, A2, A2)
    assert attributes(unchecked(kernel, True).kernel, "allow_tma") == [None, None]
    assert attributes(unchecked(kernel, False).kernel, "allow_tma") == [False, False]

    def told(x):
        ct.store(x, ct.bid(0), ct.load(x, ct.bid(0), 8, allow_tma=True))

    assert attributes(unchecked(typed(told, A1), False).kernel, "allow_tma") == [True, False]


def largest(x, y):
    """A loop that only compares, so that its loads may go by TMA."""
    t = ct.full((64, 64), -1.0, ct.float16)
    for k in range(ct.num_tiles(x, 0, (64, 64))):
        t = ct.maximum(t, ct.load(x, (k, ct.bid(0)), (64, 64), padding_mode=ct.PaddingMode.NEG_INF))
    ct.store(y, (0, ct.bid(0)), ct.max(t, axis=0, keepdims=True))


@needs_tool
def test_a_variant_takes_no_more_warps(tmp_path, monkeypatch):
    """The assembler could make the unchecked loads by TMA, but not the checked ones, which are padded."""
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    target, arrays = parse_target("sm_90"), (np.empty((64, 1024), np.float16),) * 2
    kernel = ct.kernel(largest)
    arguments = kernel.classify(arrays)
    constraints, symbol = of_launch(kernel, arguments)
    program = kernel.program(arguments).kernel

    def code(program):
        return cubin.build(program, constraints, target, kernel.options, symbol)

    usual = code(program)
    by_tma = uses_tma(usual, symbol, kernel.options.num_worker_warps)
    warps = {may: read(code(unchecked(program, may).kernel), symbol).warps for may in (by_tma, True)}
    assert not by_tma and warps[by_tma] == read(usual, symbol).warps == 4
    assert warps[True] > 4, "the assembler does otherwise now: is the rule still needed?"
    assert uses_tma(b"no cubin", symbol, None)


# ------------------------------------------------------------------ by proof


def test_needless_checks_go():
    def k(x, w):
        for i in range(ct.bid(0), ct.num_tiles(x, 0, (1, 32)), ct.num_blocks(0)):
            t = ct.load(x, (i, 0), (1, 32), allow_tma=False)
            u = ct.load(x, (i, 0), (1, 32))
            ct.store(x, (i, 0), t + u + ct.load(w, 0, 32, allow_tma=False), allow_tma=False)
            ct.store(x, (i, 1), t, allow_tma=False)

    def facts(*sizes):
        n = len(sizes)
        return ArrayFacts(sizes, (None,) * n, (1,) * n, (1,) * n, (None,) * n)

    kernel = typed(k, A2, A1)
    known = facts(None, 32), facts(32)
    assert attributes(without_needless_checks(kernel, known), "check_bounds") == [False, True, False, False, True]
    assert attributes(without_needless_checks(kernel, (facts(None, 31), None)), "check_bounds") == [True] * 5
    with settings.override(HINTS=False):
        assert without_needless_checks(kernel, known) is kernel
    whole = choose_hints(typed(copy, A1, A1), parse_target("sm_90"))  # the grid may be of any size
    assert attributes(without_needless_checks(whole, (facts(16), facts(16))), "check_bounds") == [True, True]

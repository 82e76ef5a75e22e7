"""Checked tiles that are gathered: which are, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import interp, settings
from cutile.compilation.launch_signature import of_launch
from cutile.dtypes import info
from cutile.front.program import Embedded
from cutile.gpu import cubin
from cutile.gpu.cubin_resources import read
from cutile.gpu.facts import ArrayFacts
from cutile.gpu.hints import choose_hints
from cutile.gpu.predicated_loads import predicated_loads
from cutile.gpu.target import parse_target
from cutile.gpu.tileir.lower import after_passes
from cutile.ir.check import check
from cutile.ir.nodes import Kernel, Op
from cutile.ir.walk import walk
from cutile.passes.fma import fma
from cutile.types import ArrayType, TileType
from tests.front.compiling import typed
from tests.gpu.tileir.tool import needs_tool

Mode = ct.PaddingMode
N = TileType(ct.int32)


def facts(ndim=2, size=16, rows=16, base=16, last=1, constant=None) -> ArrayFacts:
    n = ndim - 1
    return ArrayFacts((None,) * n + (constant,), (None,) * n + (last,), (1,) * n + (size,), (rows,) * n + (1,),
                      (0,) * ndim, base)


def copy(x, y, i, j, R, C, mode):
    ct.store(y, (0, 0), ct.load(x, (i, j), (R, C), padding_mode=mode))


def passed(code, *kinds, known) -> tuple[Kernel, Kernel]:
    """A kernel as the pass gets it, and as it gives it."""
    before = choose_hints(after_passes(fma(typed(code, *kinds))), parse_target("sm_90"))
    after = predicated_loads(before, known)
    check(after)
    return before, after


def reads(kernel: Kernel) -> list[str]:
    return [n.op.name for n in walk(kernel.body) if isinstance(n, Op) and n.op.name in ("load", "gather")]


def copied(dtype=ct.float16, mode=Mode.ZERO, tile=(1, 16), **known) -> list[str]:
    t = ArrayType(dtype, 2)
    kinds = (t, t, N, N, *map(Embedded, (*tile, mode)))
    return reads(passed(copy, *kinds, known=(facts(**known), facts(), None, None))[1])


MODES = [(d, m) for d in (ct.float16, ct.bfloat16, ct.float32, ct.float64)
         for m in (Mode.ZERO, Mode.NEG_ZERO, Mode.NAN, Mode.POS_INF, Mode.NEG_INF)]


@pytest.mark.parametrize("dtype, mode", [*MODES, (ct.int8, Mode.ZERO), (ct.uint64, Mode.ZERO)],
                         ids=lambda x: getattr(x, "name", str(x)))
def test_results_stay(dtype, mode):
    t = ArrayType(dtype, 2)
    before, after = passed(copy, t, t, N, N, *map(Embedded, (4, 32, mode)), known=(facts(), facts(), None, None))
    assert reads(before) == ["load"] and reads(after) == ["gather"]
    x = np.arange(6 * 48).reshape(6, 48).astype(info(dtype).storage)
    for i, j in ((0, 0), (1, 1), (0, 2), (-1, 0), (0, -1), (2**31 - 1, 2**31 - 1), (-2**31, 0)):
        got = []
        for kernel in (before, after):
            y = np.zeros((4, 32), x.dtype)
            interp.launch(kernel, (1, 1, 1), [x.copy(), y, np.int32(i), np.int32(j)])
            got.append(y.tobytes())
        assert got[0] == got[1], (i, j)


@pytest.mark.parametrize("of_array", [ct.int32, ct.int64])
def test_wide_indices(of_array):
    """An index of 64 bits wraps to the index dtype of its array."""
    t, wide = ArrayType(ct.float32, 2, of_array), TileType(ct.int64)
    before, after = passed(copy, t, t, wide, wide, *map(Embedded, (4, 32, Mode.ZERO)),
                           known=(facts(), facts(), None, None))
    assert reads(before) == ["load"] and reads(after) == ["gather"]
    x = np.arange(1, 6 * 48 + 1, dtype=np.float32).reshape(6, 48)
    for i, j in ((2**32, 2**32), (1 - 2**32, 2**33), (2**31, 1 - 2**40), (1, 2**32 + 1), (0, 2**32 - 1)):
        got = []
        for kernel in (before, after):
            y = np.zeros((4, 32), np.float32)
            interp.launch(kernel, (1, 1, 1), [x.copy(), y, np.int64(i), np.int64(j)])
            got.append(y.tolist())
        assert got[0] == got[1], (i, j)


def test_words_lie_inside_or_outside_as_a_whole():
    assert copied(size=8) == copied(size=16) == copied(constant=3072) == ["gather"]
    assert copied(size=4) == copied(constant=50257) == ["load"]
    assert copied(ct.float32, size=4) == copied(ct.float32, size=2, rows=2) == ["gather"]
    assert copied(ct.float32, size=2) == copied(ct.int8, size=8) == ["load"]
    assert copied(tile=(1, 4)) == copied(tile=(16, 1)) == ["load"]
    assert copied(rows=1) == copied(base=2) == copied(last=None) == copied(last=2) == ["load"]


def test_without_padding_only_small_tiles():
    small, large = {"tile": (2, 512), "mode": Mode.UNDETERMINED}, {"tile": (2, 1024), "mode": Mode.UNDETERMINED}
    assert copied(**small) == copied(ct.int8, **large) == ["gather"]
    assert copied(**large) == copied(ct.float32, **small) == ["load"]


def test_what_stays():
    assert copied(ct.bool_) == copied(ct.float8_e5m2) == ["load"]

    def code(x, y):
        t = ct.load(x, (0, 0), (16, 16), padding_mode=Mode.ZERO, check_bounds=False)
        t += ct.load(x, (0, 0), (16, 16), padding_mode=Mode.ZERO, order="F")
        t += ct.load(x, (0, 0), (16, 16), padding_mode=Mode.ZERO, memory_order=ct.MemoryOrder.RELAXED,
                     memory_scope=ct.MemoryScope.DEVICE)
        ct.store(y, (0, 0), t)

    def by_tma(x, y):
        t = ct.load(x, (0, 0), (16, 16), padding_mode=Mode.ZERO, allow_tma=True)
        ct.store(y, (0, 0), t + ct.load(x, (0, 1), (16, 16), padding_mode=Mode.ZERO))

    def product(x, y):
        t = ct.load(x, (0, 0), (16, 16), padding_mode=Mode.ZERO)
        ct.store(y, (0, 0), ct.mma(t, t, ct.zeros((16, 16), ct.float16)))

    t = ArrayType(ct.float16, 2)
    for kernel in (code, by_tma, product):
        before, after = passed(kernel, t, t, known=(facts(), facts()))
        assert before is after, kernel
    before, after = passed(copy, t, t, N, N, *map(Embedded, (1, 16, Mode.ZERO)), known=(None,) * 4)
    assert before is after
    with settings.override(HINTS=False):
        assert copied() == ["load"]


def test_single_elements_stay():
    def code(x, y):
        ct.store(y, (), ct.load(x, (), (), padding_mode=Mode.ZERO))

    def of_rows(x, y):
        ct.store(y, (0, 0), ct.load(x, (1, 1), (), padding_mode=Mode.ZERO))

    for kernel, ndim in ((code, 0), (of_rows, 2)):
        t = ArrayType(ct.float32, ndim)
        known = facts() if ndim else ArrayFacts((), (), (), (), (), 16)
        before, after = passed(kernel, t, t, known=(known, known))
        assert before is after, kernel


def rms_norm(x, y, N: ct.Constant[int], T: ct.Constant[int]):
    t = ct.load(x, (ct.bid(0), 0), (1, T), padding_mode=Mode.ZERO).astype(ct.float32)
    ct.store(y, (ct.bid(0), 0), (t * ct.rsqrt(ct.sum(t * t, axis=1, keepdims=True) / N)).astype(y.dtype))


@needs_tool
def test_the_assembler_takes_it(monkeypatch, tmp_path):
    """It may have its reasons for a branch around each word; if it drops them, this pass may go."""
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    kernel = ct.kernel(rms_norm)
    x = np.zeros((4, 3072), np.float16)
    arguments = kernel.classify((x, x.copy(), 3072, 4096))
    constraints, symbol = of_launch(kernel, arguments)
    code = cubin.build(kernel.program(arguments).kernel, constraints, parse_target("sm_90"), kernel.options, symbol)
    assert not read(code, symbol).stack

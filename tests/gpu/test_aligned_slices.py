"""Wide words for slices that begin anywhere: which accesses get a branch, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import interp, settings
from cutile.compilation.launch_signature import of_launch
from cutile.front.program import Embedded
from cutile.gpu import cubin
from cutile.gpu.aligned_slices import aligned_slices
from cutile.gpu.cubin_resources import read
from cutile.gpu.facts import ArrayFacts
from cutile.gpu.target import parse_target
from cutile.gpu.tileir.lower import after_passes
from cutile.ir.check import check
from cutile.ir.nodes import If, Kernel, Op
from cutile.ir.walk import walk
from cutile.passes.fma import fma
from cutile.types import ArrayType, TileType
from tests.front.compiling import typed
from tests.gpu.tileir.tool import needs_tool

H2, N = ArrayType(ct.float16, 2), TileType(ct.int32)


def facts(last: int | None = 1, rows: int = 8, base: int = 16) -> ArrayFacts:
    return ArrayFacts((None, None), (None, last), (1, 1), (rows, 1), (0, 0), base)


def crop(x, y, top, left, R: ct.Constant[int], C: ct.Constant[int]):
    part = x.slice(0, top, top + y.shape[0]).slice(1, left, left + y.shape[1])
    ct.store(y, (0, 0), ct.load(part, (0, 0), (R, C)))


def passed(code, *kinds, known) -> tuple[Kernel, Kernel]:
    """A kernel as the pass gets it, and as it gives it."""
    before = after_passes(fma(typed(code, *kinds)))
    after = aligned_slices(before, known)
    check(after)
    return before, after


def branches(kernel: Kernel) -> list[tuple[list, list]]:
    """What each branch of each If accesses, with the divisors that it promises."""
    def shown(region) -> list:
        return [n.attrs.get("divisor", n.op.name) for n in walk(region)
                if isinstance(n, Op) and (n.op.accesses or "divisor" in n.attrs)]

    return [(shown(n.then), shown(n.orelse)) for n in walk(kernel.body) if isinstance(n, If)]


def cropped(array=H2, known=None, tile=(8, 16)) -> list:
    given = known or facts()
    return branches(passed(crop, array, array, N, N, *map(Embedded, tile), known=(given, given, None, None))[1])


@pytest.mark.parametrize("left", [0, 3, 8, 24, 39])
def test_results_stay(left):
    before, after = passed(crop, H2, H2, N, N, Embedded(8), Embedded(16), known=(facts(), facts(), None, None))
    assert branches(after) == [([8, "load"], ["load"])]
    x = np.arange(20 * 64, dtype=np.float16).reshape(20, 64)
    for kernel in (before, after):
        y = np.zeros((8, 16), np.float16)
        interp.launch(kernel, (1, 1, 1), [x.copy(), y, np.int32(5), np.int32(left)])
        np.testing.assert_array_equal(y, x[5:13, left:left + 16])


def test_how_many_elements():
    assert cropped(ArrayType(ct.float64, 2)) == [([2, "load"], ["load"])]
    assert cropped(ArrayType(ct.int8, 2), facts(rows=16)) == [([16, "load"], ["load"])]
    assert cropped(ArrayType(ct.bool_, 2), facts(rows=16)) == [([16, "load"], ["load"])]
    assert cropped(known=facts(rows=4)) == cropped(known=facts(base=8)) == [([4, "load"], ["load"])]


@pytest.mark.parametrize("known", [facts(last=None), facts(rows=1), facts(base=2), facts(last=2)])
def test_where_nothing_could_be_wider(known):
    assert cropped(known=known) == []


def test_tiles_that_are_shorter_than_a_word():
    assert cropped(tile=(16, 4)) == [] and cropped(tile=(1, 8)) == [([8, "load"], ["load"])]


def test_stores_and_slices_of_slices():
    def code(x, a):
        part = x.slice(1, a, x.shape[1]).slice(0, a, x.shape[0]).slice(1, 8, 40)
        ct.store(part, (0, 0), ct.load(part, (0, 0), (8, 8), order="F").transpose())

    assert branches(passed(code, H2, N, known=(facts(), None))[1]) == [([8, "load"], ["load"]),
                                                                      ([8, "store"], ["store"])]


def test_slices_that_stay():
    def known_start(x, y, a):
        part = x.slice(1, ct.assume_divisible_by(a, 8), x.shape[1]).slice(0, a, x.shape[0])
        ct.store(y, (0, 0), ct.load(part, (0, 0), (8, 8)) + ct.load(x.slice(1, 3, 11), (0, 0), (8, 8)))

    def twice(x, y, a):
        ct.store(y, (0, 0), ct.load(x.slice(1, a, 40).slice(1, a, 20), (0, 0), (8, 8)))

    def product(x, y, a):
        t = ct.load(x.slice(1, a, 40), (0, 0), (16, 16))
        ct.store(y, (0, 0), ct.mma(t, t, ct.zeros((16, 16), ct.float16)))

    for code in (known_start, twice, product):
        before, after = passed(code, H2, H2, N, known=(facts(), facts(), None))
        assert before is after, code
    with settings.override(HINTS=False):
        assert cropped() == []


@needs_tool
def test_the_assembler_takes_it(monkeypatch, tmp_path):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    kernel = ct.kernel(crop)
    arguments = kernel.classify((np.zeros((32, 64), np.float16), np.zeros((8, 16), np.float16), 1, 8, 8, 16))
    constraints, symbol = of_launch(kernel, arguments)
    program = kernel.program(arguments).kernel

    def code_size() -> int:
        return read(cubin.build(program, constraints, parse_target("sm_90"), kernel.options, symbol), symbol).code

    with_branch = code_size()
    with settings.override(HINTS=False):
        assert code_size() < with_branch

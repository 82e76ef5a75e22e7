"""Compaction in one launch: sizes around tiles, groups and chunks, in any order of blocks, and of which items. In the
interpreter.
"""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.analysis.tokens import ordering
from cutile.compute import algorithm, compact_once, compaction, steps
from cutile.compute.plans import Plan
from cutile.ir.nodes import Op
from cutile.ir.walk import walk
from cutile.ops._op import WRITE
from cutile.passes.flatten_frames import flatten_frames
from cutile.runtime.repeated import Repeated
from tests.compute.checks import assemble_launches, at_levels, launched_as_on_a_gpu
from tests.gpu.tileir.tool import needs_tool

TILE, GROUP = 32, 4
CHUNK = TILE * GROUP * GROUP


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    """The names of the kernels that are launched."""
    found = launched_as_on_a_gpu(monkeypatch)
    for name, value in (("MANY", 1), ("GROUP", GROUP), ("KEPT", compact_once.KEPT._replace(size=TILE))):
        monkeypatch.setattr(compact_once, name, value)
    for key, way in compact_once.WAYS.items():
        monkeypatch.setitem(compact_once.WAYS, key, way._replace(size=TILE))
    compute.clear_all_caches()
    yield found
    compute.clear_all_caches()


def numbers(n: int, dtype: type = np.int64) -> np.ndarray:
    return np.random.default_rng(n).integers(-9, 9, n).astype(dtype)


def positive(v):
    return v > 0


def check(x: np.ndarray) -> None:
    n = len(x)
    out, count = np.full(n + 2, -77, x.dtype), np.zeros(1, np.int64)
    compute.select(x, out, count, positive, n)
    want = x[x > 0]
    assert count[0] == len(want) and out.tolist() == want.tolist() + [-77] * (n + 2 - len(want))


@pytest.mark.parametrize("n", [1, TILE - 1, TILE, TILE + 1, GROUP * TILE, GROUP * TILE + 1, CHUNK - 1, CHUNK, CHUNK + 1,
                               CHUNK + GROUP * TILE + 1, 3 * CHUNK + 77, 9 * CHUNK])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_sizes(n, dtype, kernels):
    for x in (numbers(n, dtype), np.ones(n, dtype), np.zeros(n, dtype)):
        check(x)
    assert set(kernels) == {"clear_words", "compact_once"}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_blocks_in_any_order(seed, monkeypatch):
    monkeypatch.setenv("CUTILE_SEED", str(seed))
    check(numbers(CHUNK + 3 * TILE + 5))


@pytest.mark.parametrize("n", [1, TILE - 1, CHUNK + 1, 2 * CHUNK])
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_two_flags(dtype, n, kernels):
    """Words count both, and tiles are stored by parts."""
    x, parts, counts = numbers(n, dtype), [np.zeros(n, dtype) for _ in range(3)], np.zeros(2, np.int64)
    compute.three_way_partition(x, *parts, counts, lambda v: v > 3, lambda v: v < 0, n)
    want = [x[x > 3], x[x < 0], x[(x >= 0) & (x <= 3)]]
    assert counts.tolist() == [len(want[0]), len(want[1])] and set(kernels) == {"clear_words", "compact_once"}
    assert all(p[:len(w)].tolist() == w.tolist() for p, w in zip(parts, want, strict=True))


@pytest.mark.parametrize("n", [1, CHUNK + 1])
def test_operators_that_capture_arrays_see_items_once(n, kernels):
    """Items of any type."""
    Pair = compute.gpu_struct({"key": np.int64, "value": np.float64})
    seen, x, parts, counts = np.zeros(1, np.int32), np.zeros(n, Pair.dtype), [], np.zeros(2, np.int64)
    x["key"], x["value"] = numbers(n), np.arange(n)
    parts = [np.zeros(n, Pair.dtype) for _ in range(3)]

    def large(v):
        ct.atomic_add(seen, 0, 1)
        return v.key > 3
    compute.three_way_partition(x, *parts, counts, large, lambda v: v.key < 0, n)
    want = [x[x["key"] > 3], x[x["key"] < 0], x[(x["key"] >= 0) & (x["key"] <= 3)]]
    assert counts.tolist() == [len(want[0]), len(want[1])] and seen[0] == n
    assert all(np.array_equal(p[:len(w)], w) for p, w in zip(parts, want, strict=True)) and "compact_once" in kernels


def slowly(v):
    while v < 0:
        v += 2
    return v > 0


@pytest.mark.parametrize("dtype, many, op, once", [
    (np.int64, 300, positive, True), (np.float64, 300, positive, True), (np.int64, 301, positive, False),
    (np.int32, 300, positive, True), (np.int16, 300, positive, False), (np.int64, 300, slowly, False)])
def test_many_items_take_one_launch(dtype, many, op, once, kernels, monkeypatch):
    monkeypatch.setattr(compact_once, "MANY", many)
    x, out, count = np.arange(300).astype(dtype), np.zeros(300, dtype), np.zeros(1, np.int64)
    compute.select(x, out, count, op, 300)
    assert ("compact_once" in kernels) == once and count[0] == 299 and out[:299].tolist() == x[1:].tolist()


def test_positions_beyond_int32(monkeypatch):
    monkeypatch.setattr(algorithm, "WIDE", 1)
    check(numbers(CHUNK + TILE + 3, np.float64))


def test_the_sanitizer_has_nothing_to_report(monkeypatch, capfd):
    monkeypatch.setenv("CUTILE_SANITIZE", "all")
    check(numbers(3 * GROUP * TILE + 9))
    assert not capfd.readouterr().err


@needs_tool
@at_levels
def test_the_kernels_are_assembled(level, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(compact_once, "MANY", 1)
    monkeypatch.setattr(compaction, "ONCE", 1)
    seen = assemble_launches(monkeypatch, tmp_path, level)
    check(numbers(9000))
    assert "compact_once" in seen
    for dtype in (np.int32, np.float64):
        x, out, counts = numbers(9000, dtype), np.zeros((3, 9000), dtype), np.zeros(2, np.int64)
        compute.three_way_partition(x, *out, counts, positive, lambda v: v < 0, 9000)
        assert np.array_equal(out[2][:9000 - counts.sum()], x[x == 0])


def test_stores_of_a_lane_do_not_wait_for_each_other(monkeypatch):
    """Each goes through an array of its own, so that the threads of a block need not meet between them."""
    launched = {}

    class Noted(Repeated):
        def __init__(self, kernel, grid, args, *rest):
            launched[kernel.__name__] = kernel.program(kernel.classify(args)).kernel
            super().__init__(kernel, grid, args, *rest)
    monkeypatch.setattr(steps, "Repeated", Noted)
    x, counts = numbers(300, np.int32), np.zeros(2, np.int64)
    compute.three_way_partition(x, *(np.zeros_like(x) for _ in range(3)), counts, positive, lambda v: v < 0, 300)
    program = flatten_frames(launched["compact_once"])
    order = ordering(program)
    stores = [order.of(n).becomes for n in walk(program.body) if isinstance(n, Op) and n.op.effect == WRITE
              and n.operands[0].name == "outs"]
    assert len(stores) == len(set(stores)) == 3 * 4  # outputs, items of a lane

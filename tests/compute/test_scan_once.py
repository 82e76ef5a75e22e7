"""Scans that read items once: sizes around tiles, groups and chunks, in any order of blocks, operators that do not
commute, and which scans are made so. In the interpreter.
"""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import OpKind, algorithm, scan_once
from cutile.compute.plans import Plan
from tests.compute.checks import assemble_launches, at_levels, forget_plans, launched_as_on_a_gpu
from tests.gpu.tileir.tool import needs_tool

TILE, GROUP = 32, 4
CHUNK = TILE * GROUP * GROUP


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    """The names of the kernels that are launched."""
    found = launched_as_on_a_gpu(monkeypatch)
    for name, value in (("MANY", 1), ("TILE", TILE), ("GROUP", GROUP)):
        monkeypatch.setattr(scan_once, name, value)
    forget_plans()
    yield found
    forget_plans()


def numbers(n: int, dtype: type = np.int64) -> np.ndarray:
    return np.random.default_rng(n).integers(-9, 9, n).astype(dtype)


def composed(a, b):
    """Affine maps modulo 2^16, each in one integer: first a, then b."""
    scale = (a >> 16) * (b >> 16) & 0xFFFF
    return scale << 16 | ((a & 0xFFFF) * (b >> 16) + (b & 0xFFFF)) & 0xFFFF


@pytest.mark.parametrize("n", [1, TILE - 1, TILE, TILE + 1, GROUP * TILE, GROUP * TILE + 1, CHUNK - 1, CHUNK, CHUNK + 1,
                               CHUNK + GROUP * TILE + 1, 3 * CHUNK + 77])
def test_sizes(n, kernels):
    x, o = numbers(n), np.full(n + 2, -77)
    for begin in (None, np.array([7])):
        compute.inclusive_scan(x, o, OpKind.PLUS, begin, n)
        assert np.array_equal(o[:n], np.cumsum(x) + (0 if begin is None else 7))
    compute.exclusive_scan(x, o, OpKind.PLUS, 7, n)
    assert np.array_equal(o[:n], np.cumsum(x) - x + 7)
    assert (o[n:] == -77).all() and set(kernels) == {"clear_words", "scan_once"}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_blocks_in_any_order(seed, monkeypatch):
    """Items are combined in their order, and floats in the same way each time."""
    monkeypatch.setenv("CUTILE_SEED", str(seed))
    n = CHUNK + 3 * TILE + 5
    x, o = np.random.default_rng(1).integers(0, 1 << 32, n), np.zeros(n, np.int64)
    compute.inclusive_scan(x, o, composed, None, n)
    want = [int(x[0])]
    for v in x[1:].tolist():
        want.append(composed(want[-1], v))
    assert o.tolist() == want
    y, p = np.random.default_rng(2).normal(size=n), np.zeros(n)
    compute.inclusive_scan(y, p, OpKind.PLUS, 0.5, n)
    monkeypatch.setenv("CUTILE_SEED", "99")
    q = np.zeros(n)
    compute.inclusive_scan(y, q, OpKind.PLUS, 0.5, n)
    assert p.tobytes() == q.tobytes() and np.allclose(p, np.cumsum(y) + 0.5)


def test_in_place():
    n = CHUNK + 50
    x = numbers(n)
    y, z = x.copy(), x.copy()
    compute.inclusive_scan(y, y, OpKind.MAXIMUM, None, n)
    compute.exclusive_scan(z, z, OpKind.PLUS, 5, n)
    assert np.array_equal(y, np.maximum.accumulate(x)) and np.array_equal(z, np.cumsum(x) - x + 5)


def slowly(a, b):
    while a < 0:
        a += 1
    return max(a, b)


@pytest.mark.parametrize("dtype, many, op, once", [
    (np.int64, 300, OpKind.PLUS, True), (np.float64, 300, OpKind.MAXIMUM, True), (np.int64, 301, OpKind.PLUS, False),
    (np.int32, 300, OpKind.PLUS, False), (np.complex64, 300, OpKind.PLUS, False), (np.int64, 300, slowly, False)])
def test_many_long_items_are_read_once(dtype, many, op, once, kernels, monkeypatch):
    monkeypatch.setattr(scan_once, "MANY", many)
    x = np.arange(300).astype(dtype)
    compute.inclusive_scan(x, x, op, None, 300)
    assert ("scan_once" in kernels) == once


def test_positions_beyond_int32(monkeypatch):
    monkeypatch.setattr(algorithm, "WIDE", 1)
    n = CHUNK + TILE + 3
    x, o = numbers(n, np.float64), np.zeros(n)
    compute.exclusive_scan(x, o, OpKind.PLUS, 1.0, n)
    assert np.array_equal(o, np.cumsum(x) - x + 1)


def test_the_sanitizer_has_nothing_to_report(monkeypatch, capfd):
    monkeypatch.setenv("CUTILE_SANITIZE", "all")
    n = 3 * GROUP * TILE + 9
    x, o = numbers(n), np.zeros(n, np.int64)
    compute.exclusive_scan(x, o, OpKind.PLUS, 1, n)
    assert not capfd.readouterr().err and np.array_equal(o, np.cumsum(x) - x + 1)


@needs_tool
@at_levels
@pytest.mark.parametrize("inclusive", [False, True])
def test_the_kernel_is_assembled(inclusive, level, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(scan_once, "MANY", 1)
    seen = assemble_launches(monkeypatch, tmp_path, level)
    x, o = numbers(9000), np.zeros(9000, np.int64)
    scan = compute.inclusive_scan if inclusive else compute.exclusive_scan
    scan(x, o, OpKind.PLUS, 0, 9000)
    assert "scan_once" in seen and np.array_equal(o, np.cumsum(x) - (0 if inclusive else x))

"""Scans: every size around tiles, operators that do not commute, in place, and what a call refuses."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compute import OpKind
from cutile.compute.plans import Plan
from cutile.compute.scan import HOST_TILE, TILE
from tests.compute.checks import forget_plans

SIZES = [1, 2, HOST_TILE - 1, HOST_TILE, HOST_TILE + 1, HOST_TILE ** 2 - 1, HOST_TILE ** 2 + 1, 5000, 70_001]


def integers(n: int, low: int = -9) -> np.ndarray:
    return np.random.default_rng(n).integers(low, 9, n).astype(np.int32)


@pytest.fixture(params=["host", "gpu"])
def launches(request, monkeypatch):
    """The grids of what is launched, with the launches for host memory and then with those for a GPU."""
    found: list[int] = []

    def launch(plan, blocks, kernel, *args):
        found.append(blocks)
        return launch_of_plan(plan, blocks, kernel, *args)

    launch_of_plan = Plan.launch
    monkeypatch.setattr(Plan, "launch", launch)
    forget_plans()
    if request.param == "gpu":
        monkeypatch.setattr(Plan, "on_host", False)
    yield found
    forget_plans()


@pytest.mark.parametrize("n, blocks", [(TILE, [1]), (TILE + 1, [2, 2]), (TILE ** 2, [TILE, TILE]),
                                       (TILE ** 2 + 1, [TILE + 1, 2, 2, TILE + 1])])
@pytest.mark.parametrize("launches", ["gpu"], indirect=True)
def test_blocks_of_few_tiles_combine_those_before_them(launches, n, blocks):
    x, o = integers(n), np.zeros(n, np.int64)
    compute.inclusive_scan(x, o, lambda a, b: a + b, None, n)
    assert launches == blocks and np.array_equal(o, np.cumsum(x))
    compute.exclusive_scan(x, o, lambda a, b: a + b, 3, n)
    assert launches == blocks * 2 and np.array_equal(o, np.cumsum(x) - x + 3)


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n, launches):
    x, o = integers(n), np.full(n + 2, -77, np.int64)
    total = np.cumsum(x)
    for begin in (None, 0, np.array([7], np.int64)):
        add = 0 if begin is None else int(np.asarray(begin).reshape(-1)[0])
        compute.inclusive_scan(x, o, lambda a, b: a + b, begin, n)
        assert np.array_equal(o[:n], total + add)
        if begin is not None:
            compute.exclusive_scan(x, o, OpKind.PLUS, begin, n)
            assert np.array_equal(o[:n], total - x + add)
    assert (o[n:] == -77).all()


@pytest.mark.parametrize("n", [1, 33, 4000])
def test_in_place(n, launches):
    x = integers(n)
    y, z = x.copy(), x.copy()
    compute.inclusive_scan(y, y, OpKind.MAXIMUM, None, n)
    compute.exclusive_scan(z, z, OpKind.PLUS, np.int32(5), n)
    assert np.array_equal(y, np.maximum.accumulate(x)) and np.array_equal(z, np.cumsum(x) - x + 5)


def test_an_operator_that_does_not_commute(launches):
    """Affine maps, composed in order: struct in, struct out."""
    Map = compute.gpu_struct({"scale": np.float64, "shift": np.float64})

    def then(p, q):
        return Map(p.scale * q.scale, p.shift * q.scale + q.shift)
    n = 2500
    x, o = np.zeros(n, Map.dtype), np.zeros(n, Map.dtype)
    x["scale"], x["shift"] = np.where(integers(n) % 2, 1, -1), integers(n)
    for make, begin in ((compute.inclusive_scan, None), (compute.inclusive_scan, Map(-1, 3)),
                        (compute.exclusive_scan, Map(-1, 3))):
        make(x, o, then, begin, n)
        scale, shift = (1, 0) if begin is None else tuple(begin)
        want = []
        for a, b in x.tolist():
            if make is compute.exclusive_scan:
                want.append((scale, shift))
            scale, shift = scale * a, shift * a + b
            if make is compute.inclusive_scan:
                want.append((scale, shift))
        assert o.tolist() == want


def test_an_operator_with_a_loop(launches):
    def divisor(a, b):
        while b != 0:
            a, b = b, a % b
        return a
    x, o = integers(1500, 1) * 36, np.zeros(1500, np.int32)
    compute.inclusive_scan(x, o, divisor, None, 1500)
    assert np.array_equal(o, np.gcd.accumulate(x))


def test_accumulators_and_iterators():
    """The accumulator is the type of the initial value; reversed, zipped and counted inputs and outputs."""
    x, o = np.full(400, 100, np.int8), np.zeros(400, np.float32)
    compute.inclusive_scan(x, o, OpKind.PLUS, np.int64(0), 400)
    assert o.tolist() == [100 * (k + 1) for k in range(400)]
    y = integers(400).astype(np.float32)
    compute.inclusive_scan(compute.ReverseIterator(y), compute.ReverseIterator(o), OpKind.MINIMUM, None, 400)
    assert np.array_equal(o, np.minimum.accumulate(y[::-1])[::-1])
    compute.exclusive_scan(compute.CountingIterator(np.int32(1)), o, OpKind.PLUS, np.int64(0), 400)
    assert o.tolist() == [k * (k + 1) // 2 for k in range(400)]


def test_segments_by_flags(launches):
    """A segmented scan is a scan of pairs."""
    n = 3000
    x, flags = integers(n), (integers(n) == 3).astype(np.int32)
    a, b = np.zeros(n, np.int32), np.zeros(n, np.int32)

    def add(p, q):
        return (q[0] if q[1] else p[0] + q[0], p[1] | q[1])
    compute.inclusive_scan(compute.ZipIterator(x, flags), compute.ZipIterator(a, b), add, None, n)
    total = 0
    for k in range(n):
        total = x[k] if flags[k] else total + x[k]
        assert a[k] == total


def test_nothing_and_storage():
    o = np.full(3, 9, np.int32)
    compute.inclusive_scan(np.zeros(0, np.int32), o, OpKind.PLUS, None, 0)
    compute.exclusive_scan(np.zeros(0, np.int32), o, OpKind.PLUS, 1, 0)
    assert o.tolist() == [9, 9, 9]
    n = 5000
    x, o = integers(n), np.zeros(n, np.int32)
    scan = compute.make_inclusive_scan(x, o, OpKind.PLUS)
    need = scan(None, x, o, OpKind.PLUS, None, n)
    assert not o.any()
    with pytest.raises(ValueError, match=f"{need} are needed"):
        scan(np.empty(need - 1, np.uint8), x, o, OpKind.PLUS, None, n)
    assert not o.any()
    scan(np.empty(need, np.uint8), x, o, OpKind.PLUS, None, n)
    assert np.array_equal(o, np.cumsum(x))


def test_wrong_arguments():
    x, o = integers(10), np.zeros(10, np.int32)
    with pytest.raises(ValueError, match="`init_value`: an exclusive scan needs"):
        compute.make_exclusive_scan(x, o, OpKind.PLUS, None)(None, x, o, OpKind.PLUS, None, 10)
    scan = compute.make_inclusive_scan(x, o, OpKind.PLUS, np.int32(0))
    for what, call in {"d_in": lambda: scan(None, x.astype(float), o, OpKind.PLUS, np.int32(0), 9),
                       "op": lambda: scan(None, x, o, OpKind.MINIMUM, np.int32(0), 9),
                       "init_value": lambda: scan(None, x, o, OpKind.PLUS, np.int64(0), 9)}.items():
        with pytest.raises(TypeError, match=f"`{what}`"):
            call()
    with pytest.raises(ValueError, match="has 10 items"):
        compute.inclusive_scan(x, o, OpKind.PLUS, None, 11)


def test_in_place_under_the_sanitizer():
    x = np.arange(5000, dtype=np.int32)
    wanted = np.cumsum(x)
    with ct.sanitize("all"):
        compute.inclusive_scan(x, x, OpKind.PLUS, None, len(x))
    assert np.array_equal(x, wanted)

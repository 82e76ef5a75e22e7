"""reduce_by_key: beside a loop in Python, for every size around tiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import compute
from cutile.compute import OpKind, algorithm
from cutile.compute.plans import Plan
from cutile.compute.scan import HOST_TILE, TILE
from tests.compute.checks import assemble_launches, at_levels, forget_plans
from tests.compute.compactions import front, heads
from tests.elements import under_debugger
from tests.gpu.tileir.tool import needs_tool

SIZES = [0, 1, 2, HOST_TILE - 1, HOST_TILE, HOST_TILE + 1, TILE - 1, TILE, TILE + 1, 5000]


@pytest.fixture(autouse=True)
def fresh():
    """Plans are made anew: those of other tests may be for the other way."""
    forget_plans()
    yield
    forget_plans()


@pytest.fixture(params=["host", "gpu"])
def way(request, monkeypatch):
    if request.param == "gpu":
        monkeypatch.setattr(Plan, "on_host", False)
    return request.param


def same(a, b):
    return a == b


def folded(keys, values, op, equal):
    found = []
    for k, v in enumerate(values):
        if k == 0 or not equal(keys[k - 1], keys[k]):
            found.append(v)
        else:
            found[-1] = op(found[-1], v)
    return found


def numbers(n, seed=0):
    return np.random.default_rng([n, seed]).integers(0, 3, n).astype(np.int32)


def compare(keys, values, n, op, equal=None, plain=same):
    out_keys, out_values, runs = np.full(n + 1, 77, np.int32), np.full(n + 1, 77, np.int64), np.full(2, -5, np.int32)
    compute.reduce_by_key(keys, values, out_keys, out_values, runs, op, n, equal)
    first = heads(keys, plain)
    assert runs.tolist() == [len(first), -5]
    assert front(out_keys, len(first)) == [keys[k] for k in first]
    assert front(out_values, len(first)) == folded(keys.tolist(), values.tolist(), op, plain)


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n, way):
    compare(numbers(n), numbers(n, 1), n, lambda a, b: a + b)


def test_long_runs(way):
    """Over many tiles, and all of one run."""
    for period in (1, 700, 5000):
        keys = (np.arange(5000) // period).astype(np.int32)
        compare(keys, numbers(5000), 5000, max)


@settings(max_examples=12, deadline=None)
@given(n=st.sampled_from(SIZES), seed=st.integers(0, 9), gpu=st.booleans(), equal=st.sampled_from(
    [same, lambda a, b: a < b, lambda a, b: abs(a - b) < 2]))
def test_neighbours_are_compared(n, seed, gpu, equal):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "on_host", not gpu)
        forget_plans()
        compare(numbers(n, seed), numbers(n, 1), n, lambda a, b: a + b, equal, equal)


def test_order_and_structs(way):
    """Values are combined in their order: affine maps."""
    Map = compute.gpu_struct({"scale": np.int64, "shift": np.int64})
    n = 3000
    x = np.zeros(n, Map.dtype)
    x["scale"], x["shift"] = np.where(numbers(n) % 2, 1, -1), np.arange(n)
    keys, out, runs = (np.arange(n) // 57).astype(np.int16), np.zeros(n, Map.dtype), np.zeros(1, np.int64)
    compute.reduce_by_key(keys, x, compute.DiscardIterator(keys), out, runs,
                          lambda p, q: (p.scale * q.scale, p.shift * q.scale + q.shift), n)
    want = folded(keys, x.tolist(), lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), same)
    assert out[:runs[0]].tolist() == want


def test_an_operator_with_a_loop():
    def divisor(a, b):
        while b != 0:
            a, b = b, a % b
        return a
    keys, values = numbers(400), numbers(400, 2) * 12 + 24
    compare(keys, values, 400, divisor)


def test_item_by_item(monkeypatch):
    under_debugger(lambda: compare(numbers(70), numbers(70, 1), 70, lambda a, b: a + b))


def test_positions_beyond_int32(way, monkeypatch):
    monkeypatch.setattr(algorithm, "WIDE", 1)
    compare(numbers(3000), numbers(3000, 1), 3000, lambda a, b: a + b)


def test_objects():
    keys, values, out, sums, runs = numbers(3000), numbers(3000, 1), *np.zeros((2, 3000), np.int32), np.zeros(1, int)
    reducer = compute.make_reduce_by_key(keys, values, out, sums, runs, OpKind.PLUS)
    need = reducer(None, keys, values, out, sums, runs, OpKind.PLUS, 3000)
    with pytest.raises(ValueError, match=f"{need} are needed"):
        reducer(np.zeros(need - 1, np.uint8), keys, values, out, sums, runs, OpKind.PLUS, 3000)
    assert runs[0] == 0
    storage = np.full(need, 255, np.uint8)
    reducer(storage, keys, values, out, sums, runs, OpKind.PLUS, 3000)
    assert sums[:runs[0]].tolist() == folded(keys, values.tolist(), lambda a, b: a + b, same)
    with pytest.raises(TypeError, match="`equal`"):
        reducer(storage, keys, values, out, sums, runs, OpKind.PLUS, 3000, lambda a, b: a <= b)
    with pytest.raises(ValueError, match="share memory"):
        compute.reduce_by_key(keys, values, keys, sums, runs, OpKind.PLUS, 9)
    with pytest.raises(ValueError, match="`d_in_values` has 8 items"):
        compute.reduce_by_key(keys, values[:8], out, sums, runs, OpKind.PLUS, 9)


@needs_tool
@at_levels
def test_kernels_are_assembled(level, monkeypatch, tmp_path):
    seen = assemble_launches(monkeypatch, tmp_path, level)
    compare(numbers(3000), numbers(3000, 1), 3000, lambda a, b: a + b)
    assert set(seen) == {"sum_tiles", "scan_tiles"}

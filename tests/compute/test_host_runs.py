"""Runs in host memory: beside the launches that GPUs have, bit for bit, for each operator that NumPy takes."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute, settings
from cutile.compute import OpKind, host_runs
from cutile.compute.plans import Plan
from cutile.errors import TileValueError
from tests.compute.checks import deep_but, forget_plans

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
OPERATORS = [OpKind.PLUS, OpKind.MULTIPLIES, OpKind.MINIMUM, OpKind.MAXIMUM, OpKind.BIT_AND, OpKind.BIT_OR,
             OpKind.BIT_XOR, lambda a, b: a if a > b else b]
N = 300


def runs_of(kind):
    rng = np.random.default_rng(3)
    return {"short": rng.integers(0, 3, N), "one": np.zeros(N), "each": np.arange(N)}[kind].astype(np.int16)


def numbers(dtype, seed=0):
    return np.frombuffer(np.random.default_rng(seed).bytes(N * np.dtype(dtype).itemsize), dtype)


@pytest.fixture
def called(monkeypatch):
    """How many plans let NumPy do it."""
    found = []
    launch = host_runs._launch
    monkeypatch.setattr(host_runs, "_launch", lambda *args: found.append(1) or launch(*args))
    forget_plans()
    yield found
    forget_plans()


def both(monkeypatch, call, *args):
    """What a call gives, by NumPy and by kernels alone."""
    found = []
    for on_host in (True, False):
        forget_plans()
        with monkeypatch.context() as patch:
            if not on_host:
                patch.setattr(Plan, "on_host", False)
            found.append(call(*args))
    return found


def reduced(keys, values, op, out_dtype=None):
    out_keys, out = np.full(N, 9, keys.dtype), np.full(N, 7, out_dtype or values.dtype)
    count = np.zeros(2, np.int32)
    compute.reduce_by_key(keys, values, out_keys, out, count, op, N)
    return out_keys.tobytes(), out.tobytes(), count.tolist()


@pytest.mark.parametrize("kind", ["short", "one", "each"])
@pytest.mark.parametrize("dtype", deep_but(INTEGERS, np.int8, np.uint16, np.int32, np.uint64))  # each width
def test_integers(dtype, kind, called, monkeypatch):
    for op in OPERATORS:
        one, other = both(monkeypatch, reduced, runs_of(kind), numbers(dtype), op)
        assert one == other
    assert len(called) == len(OPERATORS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats(dtype, called, monkeypatch):
    """Values whose sums are exact; NaN and infinities."""
    values = np.random.default_rng(1).integers(-9, 9, N).astype(dtype)
    values[[5, 90]], values[[40, 200]] = np.nan, np.inf
    one, other = both(monkeypatch, reduced, runs_of("short"), values, OpKind.PLUS)
    assert one == other and len(called) == 1


def test_other_types_of_outputs(called, monkeypatch):
    for values, dtype in ((numbers(np.int32), np.int64), (numbers(np.int64), np.uint8)):
        one, other = both(monkeypatch, reduced, runs_of("short"), values, OpKind.PLUS, dtype)
        assert one == other
    assert len(called) == 2
    one, other = both(monkeypatch, reduced, runs_of("short"), numbers(np.float32), OpKind.PLUS, np.int32)
    assert one == other and len(called) == 2  # astype of floats is the language's


def test_structs_iterators_and_strides(called, monkeypatch):
    Pair = compute.gpu_struct({"a": np.int16, "b": np.float64})
    keys = np.zeros(N, Pair.dtype)
    keys["a"], keys["b"] = runs_of("short"), 2.5

    def call():
        out, items, count = np.zeros(2 * N, Pair.dtype)[::2], np.zeros(N, np.int64)[::-1], np.zeros(1, np.uint64)
        compute.unique_by_key(compute.ReverseIterator(keys), compute.CountingIterator(5), out, items, count,
                              lambda p, q: p.a == q.a, N)
        return out.tolist(), items.tolist(), count.tolist()
    one, other = both(monkeypatch, call)
    assert one == other and len(called) == 1


def test_lengths(called, monkeypatch):
    def call():
        out, lengths, count = np.zeros(N, np.int16), np.zeros(N, np.int16), np.zeros(1, np.int8)
        compute.run_length_encode(runs_of("short") // 2, compute.DiscardIterator(out), lengths, count, N)
        return lengths.tobytes(), count.tobytes()
    one, other = both(monkeypatch, call)
    assert one == other and len(called) == 1


def test_checked_launches_are_kernels(called):
    """Where launches are checked, the plan is another one, also for a call that was made before."""
    args = runs_of("short"), numbers(np.int32), np.zeros(N, np.int16), np.zeros(N, np.int32), np.zeros(1, int)
    compute.reduce_by_key(*args, OpKind.PLUS, N)
    want = args[3].copy()
    assert len(called) == 1
    args[3][:] = 0
    with settings.override(SANITIZE=frozenset({"bounds"})):
        compute.reduce_by_key(*args, OpKind.PLUS, N)
    assert len(called) == 1 and (args[3] == want).all()


@pytest.mark.parametrize("op", [OpKind.PLUS, lambda a, b: a - b + b + b])
@pytest.mark.parametrize("short", ["d_out_keys", "d_out_values"])
def test_outputs_that_are_too_short(op, short):
    keys, outs = np.arange(9), {name: np.zeros(9, int) for name in ("d_out_keys", "d_out_values")}
    outs[short] = np.zeros(4, int)
    with pytest.raises(TileValueError, match=f"`{short}` has 4 items, and 9 are written"):
        compute.reduce_by_key(d_in_keys=keys, d_in_values=keys, d_out_num_runs=np.zeros(1, int), op=op, num_items=9,
                              **outs)

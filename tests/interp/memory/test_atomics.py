"""Atomic updates of many elements: a sequence, in some order. Counting instead of adding one by one gives the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import cutile as ct
from cutile import dtypes as dt
from cutile import settings
from cutile.interp.memory.array_view import wrap
from tests.interp.layouts import batch_shapes, per_block

N = 100_000  # positions: several parts


def positions(high: int, dtype=np.int32) -> np.ndarray:
    return np.random.default_rng(0).integers(0, high, N).astype(dtype).reshape(100, 1, 1, N // 100)


def update(memory: np.ndarray, at: np.ndarray, x, old: bool = False):
    batch_shape = at.shape[:3]
    view = wrap(memory, dt.of_storage(memory.dtype))
    return view.update("add", (at,), (np.asarray(x, memory.dtype),), None, at.shape[3:], batch_shape, old)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint64])
@pytest.mark.parametrize("index", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
@pytest.mark.parametrize("x", [1, 3, 100])
def test_in_range(dtype, index, x):
    memory, wanted = np.arange(7).astype(dtype), np.arange(7).astype(dtype)
    at = positions(7, index)
    np.add.at(wanted, at, dtype(x))
    done, old = update(memory, at, x)
    assert memory.tobytes() == wanted.tobytes()
    assert done.shape == old.shape == at.shape and done.all() and not old.any() and old.dtype == dtype


@pytest.mark.parametrize("wrong", [-1, 7, -(1 << 31), (1 << 31) - 1])
@pytest.mark.parametrize("place", [0, N - 1])
def test_out_of_range(wrong, place):
    """A position that does not exist, in the first part or the last: its update alone does not take place."""
    memory, wanted = np.zeros(7, np.int32), np.zeros(7, np.int32)
    at = positions(7)
    at.reshape(-1)[place] = wrong
    np.add.at(wanted, np.delete(at.reshape(-1), place), np.int32(5))
    done, _ = update(memory, at, 5)
    assert memory.tolist() == wanted.tolist()
    assert np.flatnonzero(~done.reshape(-1)).tolist() == [place]


@pytest.mark.parametrize("memory", [np.zeros(14, np.int32)[::2], np.zeros(7, np.int32)[::-1], np.zeros(0, np.int32),
                                    np.zeros(2 * N, np.int32), np.zeros(7, np.float32)])
def test_other_memory(memory):
    high = max(memory.size, 1)
    wanted = memory.copy()
    at = positions(high)
    if memory.size:
        np.add.at(wanted, at, memory.dtype.type(2))
    done, _ = update(memory, at, 2)
    assert memory.tolist() == wanted.tolist() and done.all() == bool(memory.size)


def test_positions_that_blocks_share():
    """One position for all elements: each block and element counts."""
    memory = np.zeros(3, np.int32)
    view = wrap(memory, dt.int32)
    done, _ = view.update("add", (np.full((1, 1, 1, 1), 2, np.int32),), (np.ones((), np.int32),), None, (4,), (5, 1, 1),
                          False)
    assert memory.tolist() == [0, 0, 20] and done.shape == (5, 1, 1, 4)


def test_the_values_before_do_not_depend_on_what_was_asked_before():
    """What an update returns where no one asked is shared, and cannot be written."""
    memory, at = np.zeros(7, np.int32), positions(7)
    for part in update(memory, at, 1):
        assert not part.flags.writeable
    _, old = update(memory, at, 1, old=True)
    assert np.sort(old.reshape(-1)[at.reshape(-1) == 0]).tolist() == list(range(memory[0] // 2, memory[0]))


@ct.kernel
def counted(x, may_count, n: ct.Constant[int]):
    ct.atomic_add(may_count, ct.load(x, ct.bid(0), n), 1)


@pytest.mark.parametrize("wrong", [[], [-1, 9], [5]])
def test_batch_counts_as_block_does(wrong):
    x = np.arange(64, dtype=np.int32) % 5
    x[:len(wrong)] = wrong
    found = []
    for schedule in ("batch", "block"):
        may_count = np.arange(5, dtype=np.int32)
        with settings.override(SCHEDULE=schedule):
            ct.launch(None, (8,), counted, (x, may_count, 8))
        found.append(may_count.tolist())
    assert found[0] == found[1] and sum(found[0]) == 64 + 10 - len(wrong)


# ------------------------------------------------------------------ every kind, one after another

PYTHON = {"add": lambda a, b: a + b, "max": max, "min": min, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
          "xor": lambda a, b: a ^ b, "xchg": lambda a, b: b}


@hypothesis_settings(max_examples=60, deadline=None)
@given(st.sampled_from([*PYTHON, "cas"]), st.sampled_from([dt.int32, dt.uint32, dt.int64, dt.uint64]), batch_shapes(),
       st.lists(st.integers(-1, 4), min_size=1, max_size=40), st.integers(0, 2**32 - 1), st.booleans())
def test_updates_of_integers_are_a_sequence(kind, dtype, batch_shape, places, seed, transposed):
    rng = np.random.default_rng(seed)
    i = dt.info(dtype)
    a = rng.integers(0, 3, 8).astype(i.storage)
    array = a[::2] if transposed else a[:4]
    index = np.array(places, np.int32)
    core = index.shape
    lo, hi = (0, 3) if kind == "cas" else dt.int_range(dtype)
    operands = [rng.integers(lo, hi, batch_shape + core, dtype=i.storage, endpoint=True)
                for _ in range(2 if kind == "cas" else 1)]
    want, olds = array.copy(), []
    for n in range(int(np.prod(batch_shape))):
        for x, p in enumerate(places):
            values = [int(per_block(o, batch_shape, 1)[n][x]) for o in operands]
            if not 0 <= p < len(want):
                olds.append(0)
                continue
            now = int(want[p])
            olds.append(now)
            new = (values[1] if now == values[0] else now) if kind == "cas" else PYTHON[kind](now, values[0])
            want[p] = np.array(new & ((1 << dtype.bitwidth) - 1), f"u{i.storage.itemsize}").view(i.storage)
    for old in (True, False):
        copy = a.copy()
        view = wrap(copy[::2] if transposed else copy[:4], dtype)
        done, seen = view.update(kind, [index], operands, None, core, batch_shape, old)
        assert np.array_equal(view.buffer.array, want)
        assert done.shape == batch_shape + core
        assert per_block(done, batch_shape, 1)[0].tolist() == [0 <= p < 4 for p in places]
        if old:
            assert seen.dtype == i.carrier and seen.ravel().tolist() == olds
    untouched = copy[1::2] if transposed else copy[4:]
    assert np.array_equal(untouched, a[1::2] if transposed else a[4:])


@pytest.mark.parametrize("dtype", [dt.int32, dt.uint32, dt.int64, dt.uint64, dt.float32], ids=str)
@pytest.mark.parametrize("bins", [4, 1000, 20_000])
@pytest.mark.parametrize("step", [1, 2])
def test_adding_one_number_in_many_places(dtype, bins, step):
    """Many more places than a piece that is counted at once, some of them outside and some masked out."""
    i = dt.info(dtype)
    rng = np.random.default_rng(bins)
    index = rng.integers(-2, bins + 2, (3, 1, 1, 30_000)).astype(np.int32)
    mask = rng.integers(0, 4, index.shape).astype(bool)
    number = np.asarray(3 if i.floating else dt.int_range(dtype)[1] - 1, i.carrier)  # wraps
    a = np.zeros(bins * step, i.storage)
    wrap(a[::step], dtype).update("add", [index], [number], mask, (30_000,), (3, 1, 1), False)
    hits = np.bincount(index[mask & (index >= 0) & (index < bins)], minlength=bins)
    want = [int(n) * int(number) for n in hits]
    if i.integral:
        want = np.array([n & ((1 << dtype.bitwidth) - 1) for n in want], f"u{i.storage.itemsize}").view(i.storage)
    assert a[::step].tolist() == list(want)
    assert step == 1 or not a[1::2].any()


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16, dt.float32, dt.float64], ids=str)
@pytest.mark.parametrize("old", [True, False])
def test_float_additions_round_one_by_one(dtype, old):
    storage = dt.info(dtype).storage
    values = np.random.default_rng(1).normal(size=300).astype(storage)
    a = np.zeros(3, storage)
    index = np.arange(300, dtype=np.int32) % 3
    view = wrap(a, dtype)
    _, seen = view.update("add", [index], [values.astype(dt.info(dtype).carrier)], None, (300,), (), old)
    want, before = np.zeros(3, storage), []
    for k, v in zip(index, values):
        before.append(float(want[k]))
        want[k] = storage.type(float(want[k]) + float(v))  # exact in float64, or rounded innocuously; then once
    assert a.astype(np.float64).tolist() == want.astype(np.float64).tolist()
    if old:
        assert seen.astype(np.float64).tolist() == before


def test_compare_and_swap_compares_bits():
    a = np.array([0.0, -0.0, np.nan, 1.0], np.float32)
    view = wrap(a, dt.float32)
    expected = np.array([-0.0, -0.0, np.nan, 1.0], np.float32)
    view.update("cas", [np.arange(4, dtype=np.int32)], [expected, np.full(4, 5, np.float32)], None, (4,), ())
    assert a.tolist() == [0, 5, 5, 5]


def test_uniform_atomics_act_once_per_block():
    a = np.zeros(1, np.int32)
    zero, one = np.zeros((), np.int32), np.ones((), np.int32)
    _, seen = wrap(a, dt.int32).update("add", [zero], [one], None, (), (2, 3, 1))
    assert a[0] == 6 and seen.ravel().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind, dtype", [
    *((k, d) for k in ("add", "max", "min") for d in (dt.float16, dt.bfloat16, dt.float32, dt.int8, dt.uint64)),
    *((k, d) for k in ("and", "or", "xor") for d in (dt.int32, dt.uint64)),
    *((k, d) for k in ("xchg", "cas") for d in (dt.float32, dt.int64)),
], ids=str)
@pytest.mark.parametrize("strided", [False, True])
def test_one_element_is_updated_as_several_are(kind, dtype, strided):
    i = dt.info(dtype)
    values = np.array([3, 1, 100, 100, 5, 2, 64], i.carrier)
    operands = [values, values[::-1].copy()][:2 if kind == "cas" else 1]
    memory = np.array([5, 1, 100, 0, 7, 2, 127], i.storage)
    results = []
    for split in (False, True):
        a = np.zeros((7, 2), i.storage)[:, 0] if strided else np.empty(7, i.storage)
        a[:] = memory
        view, at, olds = wrap(a, dtype), np.arange(7, dtype=np.int32), []
        for part in [slice(k, k + 1) for k in range(7)] if split else [slice(None)]:
            given = [x[part] for x in operands]
            olds += view.update(kind, [at[part]], given, None, at[part].shape, (), True)[1].tolist()
        results.append((olds, a.astype(np.float64).tolist()))
    assert results[0] == results[1]

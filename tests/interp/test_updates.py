"""Counting instead of adding one by one: equal to `np.add.at`, or nothing is done."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import dtypes as dt
from cutile import settings
from cutile.interp.memory import wrap

N = 100_000  # positions: several parts


def positions(high: int, dtype=np.int32) -> np.ndarray:
    return np.random.default_rng(0).integers(0, high, N).astype(dtype).reshape(100, 1, 1, N // 100)


def update(memory: np.ndarray, at: np.ndarray, x, old: bool = False):
    lead = at.shape[:3]
    view = wrap(memory, dt.of_storage(memory.dtype))
    return view.update("add", (at,), (np.asarray(x, memory.dtype),), None, at.shape[3:], lead, old)


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
def counted(x, counts, n: ct.Constant[int]):
    ct.atomic_add(counts, ct.load(x, ct.bid(0), n), 1)


@pytest.mark.parametrize("wrong", [[], [-1, 9], [5]])
def test_batch_counts_as_block_does(wrong):
    x = np.arange(64, dtype=np.int32) % 5
    x[:len(wrong)] = wrong
    found = []
    for schedule in ("batch", "block"):
        counts = np.arange(5, dtype=np.int32)
        with settings.override(SCHEDULE=schedule):
            ct.launch(None, (8,), counted, (x, counts, 8))
        found.append(counts.tolist())
    assert found[0] == found[1] and sum(found[0]) == 64 + 10 - len(wrong)

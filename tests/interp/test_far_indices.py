"""Indices far beyond what memory can hold [IDX-2]."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import settings


@pytest.mark.parametrize("index", [0, (1 << 41) - 1, 1 << 41, 1 << 42, (1 << 60) + 1, -1, (1 << 63) - 1])
@pytest.mark.parametrize("schedule", ["batch", "block"])
def test_arrays_of_more_elements_than_memory_has(schedule, index):
    """One that repeats its elements can have them, and every index below its size is one of it."""
    @ct.kernel
    def k(x: ct.IndexedWithInt64, i: ct.ScalarInt64, out):
        part, at = x.slice(0, 1, 1 << 45), i + ct.arange(16, dtype=ct.int64)
        ct.store(out, (0, 0), ct.load(x, i, 16, padding_mode=ct.PaddingMode.ZERO)[None])
        ct.store(out, (1, 0), ct.load(part, i, 16, padding_mode=ct.PaddingMode.ZERO)[None])
        ct.store(out, (2, 0), ct.gather(x, at, padding_value=0)[None])
        ct.store(out, (3, 0), ct.gather(part, at, padding_value=0)[None])

    whole, out = 1 << 46, np.full((4, 16), -1, np.int8)
    with settings.override(SCHEDULE=schedule):
        ct.launch(None, (1,), k, (np.broadcast_to(np.full(1, 7, np.int8), (whole,)), index, out))
    tile, single = ([n * index + i for i in range(16)] for n in (16, 1))
    single = [(i + (1 << 63)) % (1 << 64) - (1 << 63) for i in single]  # sums of int64 wrap
    places = [(tile, whole), (tile, (1 << 45) - 1), (single, whole), (single, (1 << 45) - 1)]
    assert out.tolist() == [[7 if 0 <= i < size else 0 for i in at] for at, size in places]

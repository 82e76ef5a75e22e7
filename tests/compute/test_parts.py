"""How launches go over items in tiles: of many items in GPU memory the last tile has a launch of its own."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import OpKind, SortOrder, parts
from cutile.compute.parts import Part, parts_of
from cutile.compute.plans import Plan


class Gpu:
    on_host = False


class Host:
    on_host = True


def test_the_last_tile_is_alone_where_there_are_many_items():
    many = parts.PARTED
    assert list(parts_of(Gpu, many, 1024)) == [Part(many // 1024, 0, True, many)]
    assert list(parts_of(Gpu, many + 5, 1024)) == [Part(many // 1024, 0, True, many),
                                                   Part(1, many // 1024, False, many + 5)]
    for plan, n in ((Host, many + 5), (Gpu, 2047)):
        assert list(parts_of(plan, n, 1024)) == [Part(-(-n // 1024), 0, False, n)]
    assert list(parts_of(Host, 2048, 1024)) == [Part(2, 0, True, 2048)]


@pytest.fixture
def launched(monkeypatch):
    """The names of kernels that are launched, as for a GPU, where few items are many."""
    found: list[str] = []
    launch_of_plan = Plan.launch

    def launch(plan, blocks, kernel, *args):
        found.append(kernel.__name__)
        return launch_of_plan(plan, blocks, kernel, *args)

    monkeypatch.setattr(Plan, "launch", launch)
    monkeypatch.setattr(Plan, "on_host", False)
    monkeypatch.setattr(parts, "PARTED", 1)
    compute.clear_all_caches()
    yield found
    compute.clear_all_caches()


SIZES = [1023, 1024, 1025, 2048 + 2047, 4096 + 3, 3 * 4096 - 1]


def transform(x, n, out):
    compute.unary_transform(x, out, lambda v: v + 1, n)
    return x[:n] + 1


def scan(x, n, out):
    compute.inclusive_scan(x, out, OpKind.PLUS, None, n)
    return np.cumsum(x[:n], dtype=x.dtype)


def exclusive(x, n, out):
    compute.exclusive_scan(x, out, lambda a, b: a + b, 5, n)
    return np.cumsum(x[:n], dtype=x.dtype) - x[:n] + x.dtype.type(5)


def backwards(x, n, out):
    compute.inclusive_scan(compute.ReverseIterator(x[:n + 3]), out, OpKind.PLUS, None, n)
    return np.cumsum(x[:n + 3][::-1][:n], dtype=x.dtype)


def radix(x, n, out):
    names, moved = np.arange(len(x), dtype=np.int32), np.full(len(x), -1, np.int32)
    compute.radix_sort(x, out, names, moved, n, SortOrder.ASCENDING)
    assert np.array_equal(moved[:n], np.argsort(x[:n], kind="stable")) and (moved[n:] == -1).all()
    return np.sort(x[:n])


def select(x, n, out):
    count = np.zeros(1, np.int64)
    compute.select(x, out, count, lambda v: v > 0, n)
    kept = x[:n][x[:n] > 0]
    assert count[0] == len(kept)
    return kept


def by_key(x, n, out):
    """Keys are 0 up to the end of the first tile, as what is read outside of an array is."""
    keys = np.maximum((np.arange(len(x), dtype=np.int32) + 1) // 5 - 204, 0)
    values, count = np.zeros(len(x), np.int32), np.zeros(1, np.int64)
    compute.reduce_by_key(keys, x, values, out, count, OpKind.PLUS, n)
    begins = np.flatnonzero(np.diff(keys[:n], prepend=-1))
    assert count[0] == len(begins) and np.array_equal(values[:count[0]], keys[begins])
    return np.add.reduceat(x[:n], begins, dtype=x.dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("made, dtype, alone", [
    (transform, np.int8, "transform"), (transform, np.int32, None), (scan, np.int32, "sum_tiles"),
    (exclusive, np.int64, "sum_tiles"), (backwards, np.int32, "scan_tiles"), (radix, np.int16, "move_items"),
    (select, np.int32, None), (by_key, np.int32, "scan_tiles")])
def test_items_after_whole_tiles(made, dtype, alone, n, launched):
    """The operands have more items, which are neither read nor written."""
    x = np.random.default_rng(n).integers(-9, 9, n + 40).astype(dtype)
    out = np.full(n + 40, 77, dtype)
    want = made(x, n, out)
    assert np.array_equal(out[:len(want)], want) and (out[len(want):] == 77).all()
    if alone and n > 2048:
        assert launched.count(alone) >= 2

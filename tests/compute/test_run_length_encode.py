"""run_length_encode: items and lengths of every size around tiles, and what a call refuses."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute.scan import HOST_TILE
from tests.compute.compactions import front, heads


def numbers(n):
    return np.random.default_rng(n).integers(0, 3, n).astype(np.int32)


@pytest.mark.parametrize("n", [0, 1, 2, HOST_TILE - 1, HOST_TILE, HOST_TILE + 1, 1025, 5000])
@pytest.mark.parametrize("equal", [None, lambda a, b: a <= b], ids=["equal", "rising"])
def test_sizes(n, equal):
    x, items, lengths, runs = numbers(n), np.full(n + 1, 77.0), np.full(n + 1, 77, np.uint16), np.zeros(1, np.int64)
    compute.run_length_encode(x, items, lengths, runs, n, equal)
    first = heads(x, equal or (lambda a, b: a == b))
    assert front(items, int(runs[0])) == [x[k] for k in first]
    assert front(lengths, int(runs[0])) == np.diff([*first, n]).tolist()


def test_one_run():
    items, lengths, runs = np.zeros(2), np.zeros(2, np.int32), np.zeros(1, np.int8)
    compute.run_length_encode(compute.ConstantIterator(np.float32(2.5)), items, lengths, runs, 70_000)
    assert runs[0] == 1 and lengths.tolist() == [70_000, 0] and items.tolist() == [2.5, 0]


def test_objects():
    x, items, lengths, runs = numbers(3000), *np.zeros((2, 3000), np.int32), np.zeros(1, np.int64)
    encoder = compute.make_run_length_encode(x, items, lengths, runs)
    storage = np.full(encoder(None, x, items, lengths, runs, 3000), 255, np.uint8)
    assert runs[0] == 0
    encoder(storage, x, items, lengths, runs, 3000)
    assert np.repeat(items[:runs[0]], lengths[:runs[0]]).tolist() == x.tolist()
    with pytest.raises(TypeError, match="`equal`"):
        encoder(storage, x, items, lengths, runs, 3000, lambda a, b: a <= b)
    for call, text in ((lambda: compute.run_length_encode(x, x, lengths, runs, 9), "share memory"),
                       (lambda: compute.run_length_encode(x, items, items, runs, 9), "share memory"),
                       (lambda: compute.run_length_encode(x, items, lengths, runs, 3001), "has 3000 items"),
                       (lambda: compute.run_length_encode(x, items, lengths, runs[:0], 9), "1 are needed")):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(TypeError, match="`d_out_lengths`: counts are integers"):
        compute.run_length_encode(x, items, lengths.astype(float), runs, 9)

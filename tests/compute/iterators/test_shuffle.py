"""Shuffled numbers are permutations, which the seed fixes."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000])
def test_shuffled(n):
    o, again, other = (np.zeros(n, np.int64) for _ in range(3))
    for out, seed in ((o, 5), (again, 5), (other, -6)):
        compute.unary_transform(compute.ShuffleIterator(n, seed), out, compute.OpKind.IDENTITY, n)
        assert sorted(out) == list(range(n))
    assert np.array_equal(o, again) and (n < 4 or not np.array_equal(o, other))
    compute.unary_transform(compute.ShuffleIterator(n, 5) + 1, other, compute.OpKind.IDENTITY, n - 1)
    assert np.array_equal(other[:n - 1], o[1:])
    with pytest.raises(ValueError, match="positive number of items"):
        compute.ShuffleIterator(0)

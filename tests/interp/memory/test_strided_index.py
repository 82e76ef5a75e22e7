"""Indices that are affine in the position of a block."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cutile.interp.memory.strided_index import StridedIndex, as_strided_index


def test_steps_are_found_and_the_rest_refused():
    i = np.arange(4)[:, None, None] * 6 + np.arange(3)[None, :, None] * -2 + 5
    found = as_strided_index(i)
    assert found == StridedIndex(5, (6, -2, 0), (4, 3, 1)) and np.array_equal(found.array(), i)
    i[2, 1, 0] += 1
    assert as_strided_index(i) is None
    assert as_strided_index(np.array([7, 7, 7])) == StridedIndex(7, (0,), (3,))
    assert as_strided_index(np.array([7, 7, 8])) is None
    assert as_strided_index(np.array([3, 2, 1])) == StridedIndex(3, (-1,), (3,))


@given(st.integers(-9, 9), st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), max_size=3), st.integers(-2, 2))
def test_what_it_says_is_so_of_the_array(start, axes, factor):
    index = StridedIndex(start, tuple(d if n > 1 else 0 for d, n in axes), tuple(n for _, n in axes))
    x = index.array()
    assert x.shape == index.shape and (index.min, index.max) == (x.min(), x.max())
    assert np.array_equal(index.scale(factor, 3).array(), x * factor + 3)
    assert index.scale(factor).shift(3) == index.scale(factor, 3)
    assert as_strided_index(x) == index

"""Values that no memory holds."""

from __future__ import annotations

import numpy as np

from cutile import compute
from cutile.compute import CountingIterator


def test_counting_wraps():
    out = np.zeros(10, np.int32)
    compute.unary_transform(CountingIterator(np.uint8(250)), out, compute.OpKind.IDENTITY, 10)
    assert out.tolist() == [250, 251, 252, 253, 254, 255, 0, 1, 2, 3]
    assert (CountingIterator(np.uint8(250)) + 10).numbers == (4,)

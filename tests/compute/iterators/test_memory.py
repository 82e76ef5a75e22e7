"""Arrays as operands: read-only ones are no outputs."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import PermutationIterator, ReverseIterator, ZipIterator


def test_outputs_that_are_read_only():
    """They are refused where an object is made, and at the first call and later ones, before anything is written."""
    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    fixed = x.copy()
    fixed.flags.writeable = False
    one = np.zeros(4, np.int32)
    for target in (fixed, ReverseIterator(fixed), ZipIterator(one, fixed), PermutationIterator(fixed, x)):
        source = ZipIterator(x, x) if isinstance(target, ZipIterator) else x
        with pytest.raises(TypeError, match="`d_out` is written to, but the array is read-only"):
            compute.make_unary_transform(source, target, compute.OpKind.IDENTITY)
    for target, allowed in ((out, True), (fixed, False), (out, True), (fixed, False)):
        if allowed:
            compute.unary_transform(x, target, compute.OpKind.IDENTITY, 4)
        else:
            with pytest.raises(TypeError, match="`d_out` is written to, but the array is read-only"):
                compute.unary_transform(x, target, compute.OpKind.IDENTITY, 4)
    compute.unary_transform(fixed, PermutationIterator(out, fixed), compute.OpKind.NEGATE, 4)
    assert out.tolist() == [0, -1, -2, -3] and not one.any()

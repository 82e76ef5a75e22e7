"""Arrays as operands: read-only ones are no outputs."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import CountingIterator, PermutationIterator, ReverseIterator, ZipIterator


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


def test_outputs_whose_items_share_memory():
    x, line, pair = np.arange(4, dtype=np.int32), np.zeros(40, np.uint8), np.dtype([("a", "i4"), ("b", "i4")])
    one, near = np.ndarray((4,), np.int32, line, 0, (0,)), np.ndarray((4,), pair, line, 0, (4,))
    for target, text in ((one, "4 bytes that lie 0"), (near, "8 bytes that lie 4"),
                         (ReverseIterator(near), "8 bytes that lie 4"),
                         (np.ndarray((4,), pair, line, 16, (-4,)), "lie 4"),
                         (ZipIterator(x.copy(), one), "4 bytes that lie 0")):
        op = compute.OpKind.IDENTITY if target is one else lambda v: (v, v)
        with pytest.raises(ValueError, match=f"`d_out` is written to, but items of .*{text} bytes apart"):
            compute.unary_transform(x, target, op, 4)
    compute.unary_transform(one, x, compute.OpKind.IDENTITY, 4)  # they may be read
    compute.reduce_into(x, one[:1], 4, compute.OpKind.PLUS, 5)
    assert one[0] == 5 and not line[4:].any()


@pytest.mark.parametrize("name", ["d_in", "d_out"])
def test_arrays_that_are_no_line_are_named(name):
    x = np.zeros(4)
    arguments = {"d_in": x, "d_out": x, name: np.zeros((4, 4))[:, ::2]}
    with pytest.raises(ValueError, match=f"argument `{name}`: Non-contiguous arrays are not supported"):
        compute.unary_transform(op=compute.OpKind.IDENTITY, num_items=4, **arguments)


def test_advances_by_negative_numbers():
    """As far as an iterator was advanced before, and no farther, wherever it is in an operand."""
    x, o, zero = np.arange(6, dtype=np.int32), np.zeros(6, np.int32), CountingIterator(np.int32(0))
    same = compute.OpKind.IDENTITY
    for make in (compute.CacheModifiedInputIterator, ReverseIterator, lambda a: PermutationIterator(a, zero),
                 lambda a: compute.TransformIterator(a, lambda v: v), lambda a: PermutationIterator(zero, a)):
        it = make(x) + 3 + -2
        compute.unary_transform(it, o, same, 4)
        want = np.zeros(6, np.int32)
        compute.unary_transform(make(x), want, same, 6)
        assert np.array_equal(o[:4], want[1:5])
    for make in (compute.CacheModifiedInputIterator, ReverseIterator, lambda a: PermutationIterator(zero, a),
                 lambda a: ZipIterator(zero, a), lambda a: compute.TransformIterator(a, lambda v: v)):
        for n in (1, 4):
            with pytest.raises(ValueError, match="argument `d_in` begins 2 items outside of an array"):
                compute.unary_transform(make(x) + 1 + -3, o, lambda v: 1, n)
    for out in (ReverseIterator(o), compute.TransformOutputIterator(o, lambda v: v, np.int32)):
        with pytest.raises(ValueError, match="argument `d_out` begins 1 items outside of an array"):
            compute.select(x, out + -1, np.zeros(1, int), lambda v: v > 2, 6)
    with pytest.raises(ValueError, match="argument `num_items` is .*, and positions have 64 bits"):
        compute.unary_transform(zero, compute.DiscardIterator(), same, 1 << 63)

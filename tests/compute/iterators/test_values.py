"""Values that no memory holds."""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import CountingIterator


def test_counting_wraps():
    out = np.zeros(10, np.int32)
    compute.unary_transform(CountingIterator(np.uint8(250)), out, compute.OpKind.IDENTITY, 10)
    assert out.tolist() == [250, 251, 252, 253, 254, 255, 0, 1, 2, 3]
    assert (CountingIterator(np.uint8(250)) + 10).numbers == (4,)


@pytest.mark.parametrize("iterator", [CountingIterator, compute.ConstantIterator])
def test_arrays_are_refused(iterator):
    for value in (np.arange(3), np.zeros((1, 1)), np.zeros(0)):
        shape = rf"shape \({value.shape[0]},"
        with pytest.raises(TypeError, match=rf"{iterator.__name__} takes one value.*{shape}.*pass one"):
            iterator(value)
    assert iterator(np.array(3, np.int8)).numbers == (3,)


@pytest.mark.parametrize("value", [np.int32, compute.gpu_struct({"a": np.int32}), {}, object(), None, "a", b"a",
                                   np.datetime64(1, "s"), 1 << 64, -(1 << 9999)],
                         ids=["dtype", "struct", "dict", "object", "None", "str", "bytes", "date", "65 bits", "long"])
def test_what_is_no_value(value):
    """In each place that takes one."""
    x, out = np.arange(3), np.zeros(3, int)
    text = r"argument `{}`: (expected .*, got |an integer of .* bits is too long)"
    for name, call in (("h_init", lambda: compute.reduce_into(x, out, 3, compute.OpKind.PLUS, value)),
                       ("init_value", lambda: compute.inclusive_scan(x, out, compute.OpKind.PLUS, value, 3)),
                       ("h_lower_level", lambda: compute.histogram_even(x, out, 3, value, 3, 3)),
                       ("h_upper_level", lambda: compute.histogram_even(x, out, 3, 0, value, 3))):
        if value is not None or "level" in name:
            with pytest.raises(TypeError, match=text.format(name)):
                call()

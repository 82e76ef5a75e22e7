"""Arrays whose strides are constants: tiles of short rows, which compilers may read in another way, and strides beyond
32 bits.
"""

from typing import Annotated, Any

import ml_dtypes
import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, same_bits

KNOWN = Annotated[Any, ct.ArrayAnnotation(static_stride_dims=(0, 1, 2))]
DTYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
          "i32": np.int32}
#: tiles of two short rows or more, of three axes
TILES = [(1, 2, 4), (2, 1, 4), (2, 4, 1), (1, 2, 8), (2, 2, 2), (2, 2, 4), (2, 4, 2), (2, 2, 8), (2, 8, 2), (2, 8, 8),
         (4, 2, 2), (1, 4, 2), (1, 2, 16), (1, 1, 4), (1, 2, 2)]


@clause("ANN-3.stride", "LOAD-5.edge", "SHAPE-1.method")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", TILES, ids=str)
def test_short_rows(dtype, shape):
    """Tiles that are reshaped and multiplied."""
    count = shape[0] * shape[1] * shape[2]

    @ct.kernel
    def k(x: KNOWN, y):
        t = ct.load(x, (0, 0, 0), shape).reshape((count,))
        ct.store(y, 0, t * t + t)

    x = (np.arange(4 * 8 * 16) % 7).reshape(4, 8, 16).astype(DTYPES[dtype])
    y = np.zeros(count, DTYPES[dtype])
    launch(k, x, y)
    t = x[:shape[0], :shape[1], :shape[2]].reshape(-1)
    same_bits(y, t * t + t)


@clause("ANN-3.stride", "LOAD-5.edge", "STORE-1.edge")
@pytest.mark.parametrize("stride", [(1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, 1 << 32, 1 << 40], ids=str)
def test_far_strides(stride):
    """Of an axis of one element."""
    far = ct.ArrayAnnotation(static_stride_dims=(0, 1), index_dtype=ct.int64)

    @ct.kernel
    def k(x: Annotated[Any, far], y):
        t = ct.load(x, (0, 1), (2, 4), padding_mode=ct.PaddingMode.ZERO)
        ct.store(y, (0, 0), t)
        ct.store(x, (0, 0), t)

    x, y = np.arange(8, dtype=np.int8), np.zeros((2, 4), np.int8)
    launch(k, np.lib.stride_tricks.as_strided(x, (1, 8), (stride, 1)), y)
    assert y.tolist() == [[4, 5, 6, 7], [0] * 4] and x.tolist() == [4, 5, 6, 7] * 2

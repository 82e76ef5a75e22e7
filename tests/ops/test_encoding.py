"""Bits and storage, over the whole domain of every 8- and 16-bit format."""

from __future__ import annotations

import numpy as np
import pytest

from cutile.dtypes import (
    bfloat16,
    bool_,
    float4_e2m1fn,
    float8_e4m3fn,
    float16,
    float32,
    float64,
    info,
    int8,
    int32,
    tfloat32,
    uint16,
    uint64,
)
from cutile.ops import _numeric as N
from tests.ops.oracle import NARROW, assert_same, codes, value_of_code


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


# ------------------------------------------------------------------ codes and storage


@pytest.mark.parametrize("dtype", [float16, bfloat16, *NARROW], ids=str)
def test_every_code_decodes_and_encodes_back(dtype):
    c = codes(dtype)
    x = N.from_bits(c, dtype)
    assert x.dtype == np.float32
    assert_same(x, [value_of_code(dtype, int(k)) for k in c])
    back = N.to_bits(x, dtype)
    assert back.dtype == c.dtype
    assert (back == c).all(), "NaN payloads and signs survive"


@pytest.mark.parametrize("dtype", [float16, bfloat16, *NARROW], ids=str)
def test_every_stored_element_survives(dtype):
    stored = codes(dtype).view(info(dtype).storage)
    x = N.to_carrier(stored, dtype)
    assert_same(x, [value_of_code(dtype, int(k)) for k in codes(dtype)])
    back = N.to_storage(x, dtype)
    assert back.dtype == info(dtype).storage
    finite = ~np.isnan(x)
    assert (back.view(codes(dtype).dtype) == codes(dtype))[finite].all()
    assert np.isnan(N.to_carrier(back, dtype)[~finite]).all()


@pytest.mark.parametrize("dtype", [bool_, int8, uint16, int32, uint64, float32, float64], ids=str)
def test_own_storage_is_not_copied(dtype):
    x = np.array([0, 1], info(dtype).storage)
    assert N.to_carrier(x, dtype) is x
    assert N.to_storage(x, dtype) is x
    assert N.from_bits(N.to_bits(x, dtype), dtype).tolist() == x.tolist()


def test_tfloat32_words_lose_their_low_bits_but_stay_nan():
    bits = np.array([0x3F801FFF, 0x7F800001, 0xFF801000, 0x7FC00000], np.uint32)
    assert N.to_bits(N.from_bits(bits, tfloat32), tfloat32).tolist() == [0x3F800000, 0x7FC00000, 0xFFC00000, 0x7FC00000]


def test_float4_pairs_low_nibble_first():
    packed = np.arange(256, dtype=np.uint8).reshape(2, 128)
    x = N.unpack_f4(packed)
    assert x.shape == (2, 256)
    assert_same(x[..., 0::2], [value_of_code(float4_e2m1fn, k & 15) for k in range(256)])
    assert_same(x[..., 1::2], [value_of_code(float4_e2m1fn, k >> 4) for k in range(256)])
    assert (N.pack_f4(x) == packed).all()


@pytest.mark.parametrize("shape", [(), (1,), (2, 1, 3, 4)])
def test_shapes_survive(shape):
    for dtype in (float16, bfloat16, tfloat32, float8_e4m3fn, float32):
        x = N.round_to(dtype, np.full(shape, 1.25, np.float32))
        assert x.shape == shape and x.dtype == np.float32 and (x == 1.25).all()
        assert N.to_carrier(N.to_storage(x, dtype), dtype).shape == shape
        assert N.from_bits(N.to_bits(x, dtype), dtype).shape == shape

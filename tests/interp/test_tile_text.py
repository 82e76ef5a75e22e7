"""Tiles as text and as pictures."""

from __future__ import annotations

import base64
import re
import zlib

import numpy as np
import pytest

from cutile.dtypes import bfloat16, bool_, float16, float32, info, int32
from cutile.interp.tile_text import PIXELS, SHOWN, picture, text
from cutile.types import TileType

NAN, INF = np.nan, np.inf


def typed(values, dtype) -> tuple[TileType, np.ndarray]:
    x = np.asarray(values, info(dtype).carrier)
    return TileType(dtype, x.shape), x


@pytest.mark.parametrize("t, shown", [
    (typed([[1.0, NAN], [-2.5, 0.0]], float32), "f32[2,2] [[1, nan], [-2.5, 0]]"),
    (typed([NAN, INF], float16), "f16[2] [nan, inf]"),
    (typed([3, 0, -1, 0], int32), "i32[4] [3, 0, -1, 0]"),
    (typed([True, False], bool_), "b1[2] [True, False]"),
    (typed(np.zeros(SHOWN), int32), f"i32[{SHOWN}] [{', '.join('0' * SHOWN)}]"),
    (typed(np.arange(32), int32), "i32[32] 0 … 31, min 0 max 31 zero 1"),
    (typed(np.arange(64).reshape(8, 8) / 4, bfloat16), "bf16[8,8] 0 … 15.75, min 0 max 15.75 nan 0 inf 0"),
    (typed([-INF] + [1.0, NAN, INF] * 21, float32), "f32[64] -inf … inf, min -inf max inf nan 21 inf 22"),
    (typed([NAN] * 32, float32), "f32[32] nan … nan, nan 32 inf 0"),
    (typed(np.arange(32) < 5, bool_), "b1[32] True … False, true 5 of 32"),
    (typed(5, int32), "i32 5"), (typed(0.5, bfloat16), "bf16 0.5"), (typed(True, bool_), "b1 True"),
])
def test_text(t, shown):
    assert text(*t) == shown


def pixels(page: str) -> np.ndarray:
    """The colours of the picture in a page, (height, width, 3)."""
    data = base64.b64decode(re.search("base64,([^\"]*)", page)[1])
    width, height = (int.from_bytes(data[i:i + 4], "big") for i in (16, 20))
    start = data.index(b"IDAT")
    rows = zlib.decompress(data[start + 4:start + 4 + int.from_bytes(data[start - 4:start], "big")])
    return np.frombuffer(rows, np.uint8).reshape(height, 1 + 3 * width)[:, 1:].reshape(height, width, 3)


def test_a_picture_has_one_colour_per_element():
    seen = pixels(picture(*typed([[0, 1, 0], [1, 0.5, NAN], [INF, -INF, 0]], float32)))
    assert seen.shape == (3, 3, 3)
    assert len({tuple(p) for p in seen.reshape(-1, 3)}) == 6
    assert (seen[0, 0] == seen[2, 2]).all() and (seen[0, 1] == seen[1, 0]).all()


@pytest.mark.parametrize("values", [[[NAN, INF]], [[1e38, -1e38]], [[5, 5]], [[-3e38, 3e38]]])
def test_pictures_of_extreme_tiles(values):
    assert pixels(picture(*typed(values, float32))).shape == (1, 2, 3)


@pytest.mark.parametrize("dtype", [bool_, int32, float16])
def test_large_tiles_are_thinned_out(dtype):
    page = picture(*typed(np.arange(4 * PIXELS * 2).reshape(4 * PIXELS, 2) % 2, dtype))
    assert pixels(page).shape == (PIXELS, 2, 3) and "every 4. row and 1. column" in page


def test_other_ranks_are_text():
    assert picture(*typed([1, 2], int32)) == "<pre>i32[2] [1, 2]</pre>"

"""What a debugger shows of tiles."""

from __future__ import annotations

import numpy as np
import pytest

from cutile.dtypes import bfloat16, bool_, float16, float32, int8, int32
from cutile.interp.show import Shown, Tile, record_class
from cutile.types import TileType


def tile(values, dtype) -> Tile:
    from cutile.dtypes import info
    x = np.asarray(values, info(dtype).carrier)
    return Tile(carrier=x, type=TileType(dtype, x.shape))


@pytest.mark.parametrize("t, text", [
    (tile([3, 0, -1, 0], int32), "i32[4] [3, 0, -1, 0]"),
    (tile(5, int32), "i32 5"), (tile(0.5, bfloat16), "bf16 0.5"), (tile(True, bool_), "b1 True"),
])
def test_repr(t, text):
    assert repr(t) == text


def test_scalars_are_like_numbers():
    t = tile(5, int32)
    assert int(t) == 5 and float(t) == 5.0 and bool(t) and [1, 2, 3, 4, 5, 6][t] == 6
    assert t == 5 and t != 4 and t < 6 and t >= 5 and 4 < t and not t == 6
    assert (t == 5) is True and hash(t) == hash(5) and f"{t:03d}" == "005" and f"{t}" == "i32 5"


def test_numpy_attributes():
    t = tile([[1.0, 2.0], [3.0, 4.0]], float32)
    assert t.sum() == 10.0 and t[0].tolist() == [1, 2] and t.shape == (2, 2) and t.dtype is float32 and len(t) == 2
    assert np.asarray(t).tolist() == [[1, 2], [3, 4]] and (t > 2).tolist() == [[False, False], [True, True]]


def test_tiles_are_read_only():
    t = tile([1.0, 2.0], float32)
    with pytest.raises(ValueError):
        t.numpy()[0] = 5
    with pytest.raises(ValueError):
        np.asarray(t)[0] = 5


def test_arithmetic_keeps_the_type():
    t = tile([1.0, 2.0], float16) + 1e-5
    assert isinstance(t, Tile) and t.dtype is float16
    assert t.carrier.dtype == np.float32 and t.carrier.tolist() == [1.0, 2.0]
    i = 2 * tile([100, 1], int8)
    assert i.carrier.dtype == np.int8 and i.carrier.tolist() == [-56, 2]
    assert isinstance(tile([1, 2], int32) + np.zeros((3, 2), np.int32), np.ndarray)
    assert (-tile(3, int32)).carrier.item() == -3


def test_records():
    p = record_class("Point")(x=tile(1, int32), y=5)
    assert repr(p) == "Point(x=i32 1, y=5)" and repr(Shown("function f")) == "function f"

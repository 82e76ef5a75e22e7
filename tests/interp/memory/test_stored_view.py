"""Short floats that are only moved keep their bits, as the way through carriers keeps them."""

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.interp.codegen import batch_analysis

PADDING = {"zero": ct.PaddingMode.ZERO, "nan": ct.PaddingMode.NAN, "undetermined": ct.PaddingMode.UNDETERMINED}
DTYPES = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def every_code(dtype):
    """A matrix with every code of a format."""
    size = np.dtype(dtype).itemsize
    codes = np.arange(1 << 8 * size).astype(f"u{size}")
    return np.tile(codes, 16 if size == 1 else 1).view(dtype).reshape(64, -1)


def transposed(x, y, MODE: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (j, i), ct.transpose(ct.load(x, (i, j), (16, 8), padding_mode=MODE)))


def gathered(x, y, MODE: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    row, col = i * 16 + ct.arange(16, dtype=ct.int32), j * 8 + ct.arange(8, dtype=ct.int32)
    t = ct.gather(x, (row[:, None] ^ 1, col[None, :] ^ 1), padding_value=1.5)
    ct.scatter(y, (col[None, :], row[:, None]), t)


def looped(x, y, MODE: ct.Constant):
    j = ct.bid(1)
    for i in range(ct.num_tiles(x, 0, (16, 8))):
        t = ct.load(x, (i, j), (16, 8), padding_mode=MODE).reshape((8, 16))
        if j % 2 == 0:
            ct.store(y, (j, i), t)


def inside_itself(x, y, MODE: ct.Constant):
    """Reads and writes one array."""
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (j, i), ct.load(y, (j, i), (8, 16)))
    ct.store(x, (i, j), ct.load(x, (i, j), (16, 8), padding_mode=MODE))


def computed(x, y, MODE: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, (i, j), (16, 8), padding_mode=MODE)
    ct.store(y, (j, i), ct.where(ct.transpose(t.astype(ct.float32)) > 1, 1, 0).astype(y.dtype))


@pytest.mark.parametrize("kernel, bits", [(transposed, True), (gathered, True), (looped, True), (inside_itself, True),
                                          (computed, False)])
@pytest.mark.parametrize("mode", PADDING)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("edge", [0, 3])
def test_moved_values_have_the_bits_that_the_block_schedule_gives(kernel, bits, mode, dtype, edge, monkeypatch):
    chosen, real = [], batch_analysis.find_as_stored
    monkeypatch.setattr(batch_analysis, "find_as_stored", lambda *a: chosen.append(real(*a)) or chosen[-1])
    found = []
    for schedule in ("batch", "block"):
        x = every_code(dtype)
        x = x[:x.shape[0] - edge, :x.shape[1] - edge].copy()
        y = np.ones((x.shape[1] + 1, x.shape[0] + 2), dtype)
        with settings.override(SCHEDULE=schedule, CHECK=False):  # the checks look at carriers
            ct.launch(None, (4, x.shape[1] // 8 + 1), ct.kernel(kernel), (x, y, PADDING[mode]))
        found.append((x.tobytes(), y.tobytes()))
    assert found[0] == found[1]
    assert bool(chosen[0]) == bits

"""A tuned function, configurations, and kernels and references of which some are wrong."""

import numpy as np

import cutile as ct
from tests.functions.kernels import scaled_kernel

X = np.arange(100, dtype=np.float32)
TILES = [{"TILE": t} for t in (4, 16, 32)]


def tuned(configs=TILES, kernel=scaled_kernel, **given):
    f = ct.jit(kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), name="scaled")
    return ct.autotune(configs, **{"quiet": True, "timeout_s": None, **given})(f)


def searches(f, *args, **named):
    """Whether a call searches."""
    before = f.last
    f(*args, **named)
    return f.last is not before


@ct.kernel
def wrong_at_16(x: ct.Array["N"], y, factor, TILE: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, i, TILE) * factor
    if TILE == 16:
        t = t + 1
    if TILE != 32 or i > 0:
        ct.store(y, i, t)


def reference(x, factor):
    return x * factor


def kept_on_disk(tmp_path):
    return len(list((tmp_path / "cache").glob("tuned/*.json")))


def changes(x, factor):
    x *= factor
    return x


def factory(tile):
    @ct.kernel
    def k(x: ct.Array["N"], y):
        i = ct.bid(0)
        ct.store(y, i, ct.load(x, i, tile))
    return k

"""Kernels for tests of functions, functions of them, and arrays to call these with."""

import numpy as np

import cutile as ct

X = np.random.default_rng(0).random((5, 12)).astype(np.float32)
LINE = np.arange(10, dtype=np.float32)


def unstored(y):
    """Code of a kernel that may store to `y`, of any rank and dtype, and never does."""
    if ct.bid(0) < 0:
        ct.store(y, ct.static_eval((0,) * y.ndim), ct.zeros(ct.static_eval((1,) * y.ndim), y.dtype))


@ct.kernel
def softmax_kernel(x: ct.Array["M N"], y, TILE: ct.Constant[int]):
    row = ct.bid(0)
    t = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, index=(row, 0), tile=e / ct.sum(e, axis=1, keepdims=True))


def power_of_two(n):
    return 1 << max(n - 1, 0).bit_length()


softmax = ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"), defaults={"TILE": lambda N: 1 << (N - 1).bit_length()},
                 name="softmax")


def expected(x):
    """What `softmax` gives for x."""
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@ct.kernel
def scaled_kernel(x: ct.Array["N"], y, factor, TILE: ct.Constant[int] = 4):
    i = ct.bid(0)
    ct.store(y, i, (ct.load(x, i, TILE) * factor).astype(y.dtype))


scaled = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), name="scaled")

"""Arrays of every layout, leading axes of blocks, and coordinates that differ by block, for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def layouts(draw, min_rank=1, max_rank=3):
    """(base, array): an array that lies somewhere inside a larger base, in any layout, elements all different."""
    rank = draw(st.integers(min_rank, max_rank))
    sizes = [draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, 9)) for _ in range(rank)]
    steps = [draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in range(rank)]
    base = np.arange(1, 1 + int(np.prod([n * abs(s) + 4 for n, s in zip(sizes, steps)])), dtype=np.float32)
    base = base.reshape([n * abs(s) + 4 for n, s in zip(sizes, steps)])
    a = base[tuple(slice(2, 2 + n * s, s) if s > 0 else slice(1 + n * -s, 1, s) for n, s in zip(sizes, steps)) + (...,)]
    assert list(a.shape) == sizes
    return base, a.transpose(draw(st.permutations(range(rank))))


@st.composite
def batch_shapes(draw):
    return draw(st.sampled_from([(), (3,), (5,), (1, 1, 1), (4, 1, 1), (2, 3, 1), (2, 1, 2), (1, 3, 2)]))


@st.composite
def coordinates(draw, batch_shape, low, high):
    """An index carrier: uniform, affine or arbitrary over some of the leading axes."""
    shape = tuple(n if draw(st.booleans()) else 1 for n in batch_shape)
    kind = draw(st.sampled_from(["uniform", "affine", "affine", "any"]))
    if kind == "uniform" or not batch_shape:
        return np.asarray(draw(st.integers(low, high)), np.int32)
    if kind == "any":
        return np.array([draw(st.integers(low, high)) for _ in range(int(np.prod(shape)))], np.int32).reshape(shape)
    c = np.asarray(draw(st.integers(low, high)))
    for axis, n in enumerate(shape):
        step = draw(st.integers(-2, 2))
        c = c + (step * np.arange(n)).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return c.astype(np.int32)


def per_block(x, batch_shape, core=0):
    """The values of each block of `batch_shape`, in order."""
    x = np.asarray(x)
    tail = x.shape[x.ndim - core:]
    return list(np.broadcast_to(x, batch_shape + tail).reshape(-1, *tail))


def same_place(other, base, a):
    """The elements of `other`, a copy of `base`, that lie where `a` lies in it."""
    offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0] if a.size else 0
    return np.ndarray(a.shape, a.dtype, other, offset, a.strides)

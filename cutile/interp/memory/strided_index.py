"""A tile index for many blocks, as an affine function of their positions along the batch axes instead of an array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

INDEX = np.dtype(np.int32)  # of block indices


class StridedIndex(NamedTuple):
    """start + Σ steps[a]·i[a], where i[a] counts the positions along batch axis a, of length shape[a].

    A step is 0 along an axis of length 1. Meanings of ops take one in place of a carrier of dtype int32.
    """

    start: int
    steps: tuple[int, ...]
    shape: tuple[int, ...]

    dtype = INDEX

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def min(self) -> int:
        out = self.start
        for d, n in zip(self.steps, self.shape, strict=True):
            if d < 0:
                out += d * (n - 1)
        return out

    @property
    def max(self) -> int:
        out = self.start
        for d, n in zip(self.steps, self.shape, strict=True):
            if d > 0:
                out += d * (n - 1)
        return out

    def scale(self, factor: int, distance: int = 0) -> StridedIndex:
        """The index times a factor, plus a distance."""
        return StridedIndex(self.start * factor + distance, tuple([d * factor for d in self.steps]), self.shape)

    def shift(self, distance: int) -> StridedIndex:
        return StridedIndex(self.start + distance, self.steps, self.shape)

    def array(self) -> np.ndarray:
        """The index as an array of dtype int64."""
        out = np.full((1,) * len(self.shape), self.start, np.int64)
        for a, (d, n) in enumerate(zip(self.steps, self.shape, strict=True)):
            if d:
                out = out + (d * np.arange(n)).reshape([-1 if k == a else 1 for k in range(len(self.shape))])
        return np.broadcast_to(out, self.shape)


def as_strided_index(x: np.ndarray) -> StridedIndex | None:
    """An array with batch axes as a strided index, or None if it is not affine."""
    varying = [a for a, n in enumerate(x.shape) if n > 1]
    if not varying:
        return StridedIndex(x.item(), (0,) * x.ndim, x.shape)
    if len(varying) == 1:
        values = x.ravel().tolist()
        start, step, n = values[0], values[1] - values[0], len(values)
        if values != (list(range(start, start + step * n, step)) if step else [start] * n):
            return None
        return StridedIndex(start, tuple(step if a == varying[0] else 0 for a in range(x.ndim)), x.shape)
    start = int(x[(0,) * x.ndim])
    neighbours = (tuple(int(b == a) for b in range(x.ndim)) for a in range(x.ndim))
    steps = tuple(int(x[at]) - start if n > 1 else 0 for at, n in zip(neighbours, x.shape, strict=True))
    found = StridedIndex(start, steps, x.shape)
    return found if (found.array() == x).all() else None

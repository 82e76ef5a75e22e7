"""Cells: a grid or an array of any size, cut into parts of one shape, few enough for a picture."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np


class Cells:
    """`shape` of what is cut, `cell` the shape of a cell, `counts` how many cells there are along each axis."""

    def __init__(self, shape: Sequence[int], most: int):
        self.shape, self.cell = tuple(shape), tuple(1 for _ in shape)
        while prod(self.counts) > most:
            k = max(range(len(self.shape)), key=self.counts.__getitem__)
            self.cell = (*self.cell[:k], 2 * self.cell[k], *self.cell[k + 1:])

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(-(-n // c) for n, c in zip(self.shape, self.cell, strict=True))

    def of(self, indices: Sequence[np.ndarray]) -> np.ndarray:
        """The number of the cell that holds each element, in row-major order of the cells."""
        if not self.shape:
            return np.zeros((), np.int64)
        return np.ravel_multi_index([np.asarray(i) // c for i, c in zip(indices, self.cell, strict=True)], self.counts)

    def mean(self, x: np.ndarray) -> np.ndarray:
        """The mean of an array of this shape in each cell; a cell at an edge has fewer elements."""
        if not self.shape or not x.size:
            return x.reshape(self.counts).astype(np.float64)
        for k, (n, c) in enumerate(zip(self.shape, self.cell, strict=True)):
            begin = np.arange(0, n, c)
            sizes = np.minimum(begin + c, n) - begin
            x = np.add.reduceat(x, begin, axis=k, dtype=np.float64) / sizes.reshape([-1 if a == k else 1
                                                                                    for a in range(x.ndim)])
        return x

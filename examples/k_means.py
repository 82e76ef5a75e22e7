"""k-means: points go to the nearest of k centres, found by an operator that captures them; a sort brings those of one
centre together, and a reduction by key adds them up.
"""

import math

import numpy as np
from _report import check, show, timed

from cutile import compute
from cutile.compute import SortOrder

POINTS, STEPS = 1500, 4
TRUE = np.array([[0, 0], [6, 1], [-3, 5], [2, -6]], np.float64)

Sum = compute.gpu_struct({"x": np.float64, "y": np.float64, "n": np.int64})


def nearest_of(centres):
    """An operator. What it captures, `centres`, is read when it runs: x and y of one after the other."""
    many = len(centres) // 2

    def nearest(point):
        best, found = math.inf, 0
        for k in range(many):
            dx, dy = point[0] - centres[2 * k], point[1] - centres[2 * k + 1]
            distance = dx * dx + dy * dy
            if distance < best:
                best, found = distance, k
        return found
    return nearest


def added(a, b):
    return Sum(a.x + b.x, a.y + b.y, a.n + b.n)


def step(x, y, centres, labels):
    """Label the points, and give the centres of those with one label."""
    n, many = len(x), len(centres) // 2
    compute.unary_transform(compute.ZipIterator(x, y), labels, nearest_of(centres), n)
    ordered, places = np.zeros_like(labels), np.zeros(n, np.int32)
    compute.radix_sort(labels, ordered, compute.CountingIterator(np.int32(0)), places, n, SortOrder.ASCENDING)
    points = compute.PermutationIterator(compute.ZipIterator(x, y), places)
    ones = compute.TransformIterator(points, lambda p: Sum(p[0], p[1], 1))
    keys, sums, count = np.zeros(many, labels.dtype), np.zeros(many, Sum.dtype), np.zeros(1, np.int32)
    compute.reduce_by_key(ordered, ones, keys, sums, count, added, n)
    for k, total in zip(keys[:count[0]], sums[:count[0]], strict=True):
        centres[2 * k], centres[2 * k + 1] = total["x"] / total["n"], total["y"] / total["n"]


def main():
    rng = np.random.default_rng(0)
    points = TRUE[rng.integers(0, len(TRUE), POINTS)] + rng.standard_normal((POINTS, 2))
    x, y = points.T.copy()
    centres, labels = points[:len(TRUE)].reshape(-1).copy(), np.zeros(POINTS, np.int32)
    want = points[:len(TRUE)].copy()
    with timed() as watch:
        for _ in range(STEPS):
            step(x, y, centres, labels)
    for _ in range(STEPS):
        distances = np.square(points[:, None] - want).sum(axis=2)
        chosen = distances.argmin(axis=1)
        want = np.array([points[chosen == k].mean(axis=0) for k in range(len(TRUE))])
    close = POINTS * np.finfo(np.float64).eps * np.abs(points).max()
    return [check("k-means f64", (POINTS,), (len(TRUE),), watch, (labels, chosen, 0),
                  (centres.reshape(-1, 2), want, close))]


if __name__ == "__main__":
    show(main())

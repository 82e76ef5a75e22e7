"""Top-p sampling: tokens from those that hold most of the probability, by a sort, a scan, a selection and a search."""

import numpy as np
from _report import check, show, timed

from cutile import compute
from cutile.compute import OpKind, SortOrder

TOKENS, P, DRAWS = 20_000, 0.9, 1000


def beside(array, number):
    """Pairs of each item and one number. A number that an operator captured would make another kernel of it."""
    return compute.ZipIterator(array, compute.ConstantIterator(np.float32(number)))


def sample(logits, draws):
    """The rank of the token that each draw gives, a number from 0 to 1; all tokens by rank; and how many may be drawn:
    the fewest that have P of the probability.
    """
    n = len(logits)
    ordered, tokens, below = np.zeros_like(logits), np.zeros(n, np.int32), np.zeros_like(logits)
    compute.radix_sort(logits, ordered, compute.CountingIterator(np.int32(0)), tokens, n, SortOrder.DESCENDING)
    weights = compute.TransformIterator(beside(ordered, ordered[0]), lambda z: np.exp(z[0] - z[1]))
    compute.exclusive_scan(weights, below, OpKind.PLUS, np.float32(0), n)
    total = np.zeros(1, np.float32)
    compute.reduce_into(weights, total, n, OpKind.PLUS)
    kept, many = np.zeros_like(below), np.zeros(1, np.int64)
    compute.select(beside(below, P * total[0]), compute.ZipIterator(kept, compute.DiscardIterator(kept)), many,
                   lambda z: z[0] < z[1], n)
    last = int(many[0]) - 1
    mass = kept[last] + np.exp(ordered[last] - ordered[0])
    ends = np.zeros(len(draws), np.int32)
    compute.upper_bound(kept, last + 1, compute.TransformIterator(beside(draws, mass), lambda z: z[0] * z[1]),
                        len(draws), ends)
    return ends - 1, tokens, last + 1


def main():
    rng = np.random.default_rng(0)
    logits, draws = rng.normal(scale=3, size=TOKENS).astype(np.float32), rng.random(DRAWS, np.float32)
    with timed() as watch:
        ranks, tokens, many = sample(logits, draws)
    order = np.argsort(-logits, kind="stable")
    ends = np.cumsum(np.exp(logits[order].astype(np.float64) - logits.max()))
    begins = np.concatenate(([0], ends[:-1]))
    drawn, near = draws * ends[many - 1], 128 * np.finfo(np.float32).eps * ends[-1]  # a scan of three levels of 32
    outside = np.maximum(begins[ranks] - drawn, 0) + np.maximum(drawn - ends[ranks], 0)
    too_many = np.maximum(np.array([begins[many - 1] - P * ends[-1], P * ends[-1] - ends[many - 1]]), 0)
    return [check("top-p sampling f32", (TOKENS,), (DRAWS,), watch, (tokens, order, 0),
                  (outside, np.zeros(DRAWS), near), (too_many, np.zeros(2), near),
                  (ranks, np.minimum(ranks, many - 1), 0))]


if __name__ == "__main__":
    show(main())

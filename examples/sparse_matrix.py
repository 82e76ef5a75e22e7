"""A sparse matrix times a vector: one segment for each row, whose items are products that no array ever holds."""

import numpy as np
from _report import check, show, timed

from cutile import compute
from cutile.compute import OpKind

ROWS, COLUMNS, MOST = 2000, 3000, 40  # rows have 0 to MOST elements


def multiply(values, columns, begins, vector):
    """`values` and their `columns`, row after row; row r has those from begins[r] to begins[r + 1]."""
    rows = len(begins) - 1
    factors = compute.ZipIterator(values, compute.PermutationIterator(vector, columns))
    products = compute.TransformIterator(factors, lambda pair: pair[0] * pair[1])
    out = np.zeros(rows, values.dtype)
    compute.segmented_reduce(products, out, rows, begins[:-1], begins[1:], OpKind.PLUS, np.float32(0))
    return out


def main():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, MOST + 1, ROWS)
    begins = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    columns = rng.integers(0, COLUMNS, begins[-1]).astype(np.int32)
    values, vector = (rng.standard_normal(n).astype(np.float32) for n in (begins[-1], COLUMNS))
    with timed() as watch:
        out = multiply(values, columns, begins, vector)
    dense = np.zeros((ROWS, COLUMNS))
    rows = np.repeat(np.arange(ROWS), lengths)
    np.add.at(dense, (rows, columns), values)
    magnitude = np.zeros(ROWS)
    np.add.at(magnitude, rows, np.abs(values * vector[columns]))
    return [check("sparse matrix x vector f32", (ROWS,), (MOST,), watch,
                  (out, dense @ vector, MOST * np.finfo(np.float32).eps * magnitude))]


if __name__ == "__main__":
    show(main())

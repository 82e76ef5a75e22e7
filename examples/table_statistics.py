"""Statistics of every column of a table, each in one pass: a reduction of structs by Welford's formula."""

import numpy as np
from _report import check, show, timed
from sklearn.datasets import load_breast_cancer

from cutile import compute

Summary = compute.gpu_struct({"n": np.int64, "mean": np.float64, "squares": np.float64, "least": np.float64,
                              "most": np.float64})


def of_one(x):
    return Summary(1, x, 0.0, x, x)


def joined(a, b):
    """The summary of two parts of a column. `squares` is the sum of squared distances from the mean."""
    n, apart = a.n + b.n, b.mean - a.mean
    return Summary(n, a.mean + apart * b.n / n, a.squares + b.squares + apart * apart * a.n * b.n / n,
                   min(a.least, b.least), max(a.most, b.most))


def main():
    table = load_breast_cancer().data  # 569 samples of tissue, 30 measurements of each
    count, columns = table.shape
    found = np.zeros(columns, Summary.dtype)
    with timed() as watch:
        for k in range(columns):  # a column is a strided array; one plan serves all
            compute.reduce_into(compute.TransformIterator(table[:, k], of_one), found[k:k + 1], count, joined)
    mean, largest = table.mean(axis=0), np.abs(table).max(axis=0)
    close = 64 * np.finfo(np.float64).eps * largest  # six levels of the tree, and a few roundings at each
    return [check("statistics of columns f64", (columns,), (count,), watch, (found["n"], np.full(columns, count), 0),
                  (found["mean"], mean, close), (found["squares"], np.square(table - mean).sum(axis=0),
                                                 close * count * largest),
                  (found["least"], table.min(axis=0), 0), (found["most"], table.max(axis=0), 0))]


if __name__ == "__main__":
    show(main())

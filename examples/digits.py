"""Handwritten digits: a small network trained by scikit-learn, its forward pass as one fused kernel."""

import functools

import numpy as np
from _report import check, show, timed
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import cutile as ct

ZERO = ct.PaddingMode.ZERO


def dense(x, weights, bias, INPUTS, OUTPUTS):
    """x @ weights + bias; both arrays fit in one tile, and read as zero beyond their ends."""
    w = ct.load(weights, index=(0, 0), shape=(INPUTS, OUTPUTS), padding_mode=ZERO)
    b = ct.load(bias, index=0, shape=OUTPUTS, padding_mode=ZERO)
    return ct.mma(x, w, ct.zeros((x.shape[0], OUTPUTS), ct.float32)) + b


@ct.kernel
def classify(images, w1, b1, w2, b2, scores, labels, SAMPLES: ct.Constant[int], INPUTS: ct.Constant[int],
             HIDDEN: ct.Constant[int], CLASSES: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(images, index=(i, 0), shape=(SAMPLES, INPUTS), padding_mode=ZERO)
    hidden = ct.maximum(dense(x, w1, b1, INPUTS, HIDDEN), 0.0)
    score = dense(hidden, w2, b2, HIDDEN, CLASSES)
    ct.store(scores, index=(i, 0), tile=score)
    exists = ct.arange(CLASSES, dtype=ct.int32) < b2.shape[0]  # the tile has 16 classes, the digits are 10
    ct.store(labels, index=i, tile=ct.argmax(ct.where(exists, score, -np.inf), axis=1))


@functools.cache
def trained():
    """The network, trained on 1000 digits; 797 digits that it has not seen; their labels."""
    images, truth = load_digits(return_X_y=True)
    images /= 16
    network = MLPClassifier((48,), solver="lbfgs", alpha=0.1, max_iter=1000, random_state=0)
    return network.fit(images[:1000], truth[:1000]), images[1000:], truth[1000:]


def main():
    network, x, truth = trained()
    (w1, w2), (b1, b2) = network.coefs_, network.intercepts_
    x32, w1_32, b1_32, w2_32, b2_32 = (v.astype(np.float32) for v in (x, w1, b1, w2, b2))
    scores, labels = np.empty((len(x), 10), np.float32), np.empty(len(x), np.int32)
    tile = (64, 64, 64, 16)
    grid = (ct.cdiv(len(x), tile[0]),)
    with timed() as watch:
        ct.launch(None, grid, classify, (x32, w1_32, b1_32, w2_32, b2_32, scores, labels, *tile))

    want = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    predicted = network.predict(x)
    if not np.array_equal(labels, predicted):
        raise AssertionError(f"digits: {np.sum(labels != predicted)} predictions differ from scikit-learn's")
    if np.mean(labels == truth) < 0.9:
        raise AssertionError("digits: fewer than 90 % of the digits are recognised")
    # 64 + 48 products in float32 of weights rounded to float32, in sums below 64
    return [check("digits, forward pass", grid, tile, watch, (scores, want, 112 * 64 * 2**-24), (labels, predicted, 0))]


if __name__ == "__main__":
    show(main())

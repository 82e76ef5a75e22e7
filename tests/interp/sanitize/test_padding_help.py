"""The help of the check `undetermined` names the padding that a load needs."""

import numpy as np
import pytest

import cutile as ct


def load(x):
    return ct.load(x, (ct.bid(0), 0), (1, 8))


@ct.kernel
def softmax(x, y):
    t = load(x).astype(ct.float32)
    e = ct.exp(t - ct.max(t, axis=1, keepdims=True))
    ct.store(y, (ct.bid(0), 0), ct.sum(e, axis=1, keepdims=True))


@ct.kernel
def running(x, y):
    top = ct.full((1, 1), -1e30, ct.float32)
    for j in range(2):
        top = ct.maximum(top, ct.max(ct.load(x, (ct.bid(0), j), (1, 4)), axis=1, keepdims=True))
    ct.store(y, (ct.bid(0), 0), top)


@ct.kernel
def largest(x, y):
    ct.store(y, (ct.bid(0), 0), ct.max(2 * load(x), axis=1, keepdims=True))


@ct.kernel
def where_smallest(x, y):
    ct.store(y, (ct.bid(0), 0), ct.argmin(load(x), axis=1, keepdims=True))


@ct.kernel
def by_function(x, y):
    least = ct.reduce(load(x), 1, lambda a, b: ct.minimum(a, b), float("inf"), keepdims=True)
    ct.store(y, (ct.bid(0), 0), least)


@ct.kernel
def total(x, y):
    ct.store(y, (ct.bid(0), 0), ct.sum(load(x), axis=1, keepdims=True))


@ct.kernel
def product(x, y):
    ct.store(y, (ct.bid(0), 0), ct.prod(load(x), axis=1, keepdims=True))


@ct.kernel
def both(x, y):
    t = load(x)
    ct.store(y, (ct.bid(0), 0), ct.max(t, axis=1, keepdims=True) - ct.sum(t, axis=1, keepdims=True))


@ct.kernel
def matmul(x, y):
    t = load(x)
    ct.store(y, (ct.bid(0), 0), ct.extract(ct.mma(t, ct.ones((8, 1), ct.float32), ct.zeros((1, 1), ct.float32)),
                                           (0, 0), (1, 1)))


@ct.kernel
def moved(x, y):
    ct.store(y, (ct.bid(0), 0), ct.extract(load(x), (0, 6), (1, 1)))


@ct.kernel
def raw(x, y):
    k = ct.arange(8, dtype=ct.int32)
    t = x.get_raw_memory().load_offset(k, mask=k < 5, padding_value=None)
    ct.store(y, (0, 0), ct.max(t))


CASES = [(softmax, "NEG_INF, which is never the largest, and its exponential adds nothing to a sum"),
         (running, "NEG_INF, which is never the largest; ZERO would be the largest of numbers that are all negative"),
         (largest, "NEG_INF, which is never the largest; ZERO"),
         (where_smallest, "POS_INF, which is never the smallest; ZERO"),
         (by_function, "POS_INF, which is never the smallest; ZERO"), (total, "ZERO, which adds nothing"),
         (matmul, "ZERO, which adds nothing"), (product, "prod() needs 1, which no padding mode is"),
         (both, "max() and sum() need padding of their own"), (moved, "ZERO, or another that the operation needs"),
         (raw, "the padding_value of load_offset()")]


def helps(kernel, x):
    y = np.zeros((2, 1), np.float32 if x.dtype != np.int32 else np.int32)
    y = y if kernel is not where_smallest else y.astype(np.int32)
    with pytest.raises(ct.TileSanitizerError) as caught, ct.sanitize("undetermined"):
        ct.launch(None, (2,), kernel, (x, y))
    return {e.help for e in caught.value.errors}


@pytest.mark.parametrize("kernel, words", CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_the_padding_that_a_load_needs(kernel, words):
    (found,) = helps(kernel, np.full((2, 5), -3, np.float32))
    assert found.startswith("say what elements outside read as: ") and words in found


def test_the_padding_that_it_names_gives_right_results():
    """Numbers that are all negative, or all positive: ZERO would be chosen."""
    @ct.kernel
    def k(x, high, low, PAD: ct.Constant[ct.PaddingMode]):
        t = ct.load(x, (ct.bid(0), 0), (1, 8), padding_mode=PAD)
        ct.store(high, ct.bid(0), ct.max(t))
        ct.store(low, ct.bid(0), ct.min(t))

    x = np.float32([[-3, -2, -5], [3, 2, 5]])
    for kernel, column in ((largest, 0), (where_smallest, 1)):
        (mode,) = {m for m in ct.PaddingMode if f"PaddingMode.{m.name}, which is never" in next(iter(helps(kernel, x)))}
        found = np.zeros(2, np.float32), np.zeros(2, np.float32)
        ct.launch(None, (2,), k, (x, *found, mode))
        assert np.array_equal(found[column], x.max(1) if column == 0 else x.min(1))


def test_integers_have_no_infinity():
    (found,) = helps(largest, np.full((2, 5), -3, np.int32))
    assert "max() needs the lowest integer, which no padding mode is" in found and "ct.where(inside, tile" in found

"""Element functions on scalars, on one element, and on tiles of several axes, with masks and loops [ELT]."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run, same_bits


def halvings(v, w):
    n = 0
    while v > 0 and n < 40:
        v //= w
        n += 1
    return n


def early(v, w):
    for i in range(40):
        if v < w:
            return i
        v //= w
    return -1


def counted(v, w):
    for _ in range(3):
        v = v // w + 1
    return v


FUNCTIONS = [halvings, early, counted]


@clause("ELT-1.mask", "ELT-9.divide")
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("v, w", [(9, 2), (100, 3), (0, 5), (7, 0)])
def test_scalars_with_masks(f, v, w):
    """Where the mask is false, nothing runs, and the result is zero."""
    @ct.kernel
    def k(o, v, w):
        ct.store(o, 0, ct.elementwise(f)(v, w, mask=w > 1))
        ct.store(o, 1, ct.elementwise(f)(v, w + 2, mask=w <= 1))
        ct.store(o, 2, ct.elementwise(f)(v, w + 2))
        ct.store(o, 3, ct.elementwise(lambda p, q: (p // q + 1, p % q + 1))(v, w, mask=w != 0)[1])

    want = [f(v, w) if w > 1 else 0, f(v, w + 2) if w <= 1 else 0, f(v, w + 2), v % w + 1 if w else 0]
    assert run(k, np.zeros(4, np.int32), v, w).tolist() == want


@clause("ELT-1.mask", "ELT-7.while", "ELT-7.for", "ELT-7.leave")
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(1,), (8,), (1, 1), (4, 8), (8, 1), (2, 4, 2)], ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_loops_of_tiles(f, shape, masked):
    at = (0,) * len(shape)

    @ct.kernel
    def k(a, b, o):
        x, y = ct.load(a, at, shape), ct.load(b, at, shape)
        ct.store(o, at, ct.elementwise(f)(x, y, mask=x % 3 != 1 if masked else None))

    size = int(np.prod(shape))
    x, y = (np.arange(5, size + 5, dtype=np.int32).reshape(shape) * m % 53 for m in (7, 1))
    y = y % 4 + 2
    want = [f(v, w) if not masked or v % 3 != 1 else 0 for v, w in zip(x.ravel().tolist(), y.ravel().tolist())]
    same_bits(run(k, x, y, np.zeros(shape, np.int32)), np.array(want, np.int32).reshape(shape))

"""assert_repeatable: bits, in other orders of blocks."""

import numpy as np
import pytest

import cutile as ct
from cutile.testing import assert_repeatable
from tests.functions.kernels import softmax
from tests.functions.shows import shows

X = np.random.default_rng(0).standard_normal((6, 50)).astype(np.float32)


@shows("BEN-6.repeatable")
def test_repeatable():
    assert_repeatable(softmax, (X,), repeats=3)
    calls = []

    def other(x):
        calls.append(1)
        y = x.copy()
        y[1, 2] = -0.0 if len(calls) == 3 else 0.0
        return y

    with pytest.raises(AssertionError, match=r"output 0 at \[1, 2\] is 0.0 in the first call and -0.0 in call 3"):
        assert_repeatable(other, (X,))
    with pytest.raises(ValueError, match="repeats is 2 or more, not 1"):
        assert_repeatable(softmax, (X,), repeats=1)


@ct.kernel
def total_kernel(x: ct.Array["N"], y):
    ct.atomic_add(y, 0, ct.sum(ct.load(x, ct.bid(0), 4)))


@ct.kernel
def last_kernel(x: ct.Array["N"], y):
    ct.store(y, 0, ct.load(x, ct.bid(0), 1))


@shows("BEN-6.orders")
@pytest.mark.parametrize("kernel, dtype, same", [(total_kernel, np.float32, False), (total_kernel, np.int64, True),
                                                 (last_kernel, np.float64, False)])
def test_other_orders_of_blocks(kernel, dtype, same):
    """In their usual order blocks give the same each time."""
    x = (1000 / np.arange(1, 65)).astype(dtype)
    f = ct.jit(kernel, grid="N//4", out=ct.Out("1", fill=0), name="f")
    assert np.array_equal(f(x), f(x))
    if same:
        assert_repeatable(f, (x,))
        return
    with pytest.raises(AssertionError, match=r"f: output 0 at \[0\] is .* in call \d+, which `with ct.schedule"
                                             r"\(seed=\d+\)` repeats") as e:
        assert_repeatable(f, (x,))
    seed = int(str(e.value).partition("seed=")[2].partition(")")[0])
    with ct.schedule(seed=seed):
        assert str(f(x)[0]) in str(e.value).partition(" in the first call and ")[2]


def test_calls_that_change_their_arguments():
    @ct.kernel
    def counts(x: ct.Array["N"]):
        ct.store(x, 0, ct.load(x, 0, 16) + 1)

    x = np.zeros(16)
    assert_repeatable(ct.jit(counts, grid=(1,)).inout("x"), (x,), repeats=3)
    assert not x.any()

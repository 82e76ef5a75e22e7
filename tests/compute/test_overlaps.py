"""Outputs that share memory with other operands: what may be in place, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cutile import compute
from cutile.compute import OpKind
from cutile.compute.overlaps import Apart
from tests.gpu import extension


def unary(x, y, n):
    compute.unary_transform(x, y, lambda v: v + 1, n)


def binary(x, y, n):
    compute.binary_transform(compute.CountingIterator(np.int64(0)), x, y, lambda i, v: v + 1, n)


def inclusive(x, y, n):
    compute.inclusive_scan(x, y, OpKind.PLUS, None, n)


def inclusive_by_a_function(x, y, n):
    compute.inclusive_scan(x, y, lambda a, b: a + b, None, n)


def exclusive(x, y, n):
    compute.exclusive_scan(x, y, OpKind.PLUS, np.int64(0), n)


ALL = [unary, binary, inclusive, inclusive_by_a_function, exclusive]
N = 3000  # more than a tile


@pytest.fixture(params=ALL, ids=lambda f: f.__name__)
def call(request):
    return request.param


@pytest.fixture
def right(call):
    found = np.zeros(N, np.int64)
    call(np.arange(N), found, N)
    return found


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::-1], lambda x: x[:]])
def test_in_place(call, right, view):
    x = np.zeros(N, np.int64)
    view(x)[:] = np.arange(N)
    call(view(x), view(x), N)
    assert (view(x) == right).all()


@pytest.mark.parametrize("n, x, y", [
    (N, slice(0, N), slice(1, N + 1)), (N, slice(1, N + 1), slice(0, N)), (9, slice(0, 9), slice(8, 17)),
    (N, slice(0, N), slice(N - 1, None, -1)), (9, slice(0, 9), slice(0, 18, 2)),
])
def test_what_overlaps_in_other_places_is_refused(call, n, x, y):
    memory = np.arange(N + 1)
    with pytest.raises(ValueError, match=r"`d_out` and `d_in2?` share memory, and not item for item; pass another"):
        call(memory[x], memory[y], n)
    assert (memory == np.arange(N + 1)).all()


def test_an_input_in_another_order_is_no_input_in_place(call):
    x = np.arange(9)
    with pytest.raises(ValueError, match="share memory"):
        call(compute.PermutationIterator(x, np.arange(9)[::-1].copy()), x, 9)


def test_backwards_in_place(call, right):
    x = np.arange(N)[::-1].copy()
    call(compute.ReverseIterator(x), compute.ReverseIterator(x), N)
    assert (x[::-1] == right).all()
    with pytest.raises(ValueError, match="share memory, and not item for item"):
        call(x, compute.ReverseIterator(x), N)
    with pytest.raises(ValueError, match="share memory, and not item for item"):
        call(compute.ReverseIterator(x[:9]), compute.ReverseIterator(x[:8]), 8)


def test_indices_of_an_output_are_read(call, right):
    x, y = np.arange(N), np.zeros(N, np.int64)
    call(x, compute.PermutationIterator(y, x), N)
    assert (y == right).all()
    with pytest.raises(ValueError, match="share memory"):
        call(compute.PermutationIterator(y, x), x, N)


def test_the_bytes_of_another_dtype_are_not_in_place(call):
    x = np.zeros(18, np.int32)
    with pytest.raises(ValueError, match="share memory"):
        call(x[:9], x.view(np.int64), 9)


def test_parts_that_lie_beside_each_other(call, right):
    memory = np.arange(2 * N)
    call(memory[:N], memory[N:], N)
    assert (memory[N:] == right).all()
    memory = np.zeros(2 * N, np.int64)
    memory[::2] = np.arange(N)
    call(memory[::2], memory[1::2], N)
    assert (memory[1::2] == right).all()


def test_iterators_over_the_output(call, right):
    x = np.arange(N) - 1
    call(compute.TransformIterator(x, lambda v: v + 1), x, N)
    assert (x == right).all()


def test_an_object_asks_at_each_call():
    x, y = np.arange(9), np.zeros(9, np.int64)
    op = OpKind.NEGATE
    transform = compute.make_unary_transform(x, y, op)
    transform(x, y, op, 9)
    transform(x, x, op, 9)
    assert (x == y).all()
    with pytest.raises(ValueError, match="share memory, and not item for item"):
        transform(x[:8], x[1:], op, 8)


def test_inputs_may_overlap():
    x, y = np.arange(10) ** 2, np.zeros(9, np.int64)
    compute.binary_transform(x[1:], x[:-1], y, OpKind.MINUS, 9)
    assert list(y) == [b - a for a, b in pairwise(np.arange(10) ** 2)]


FAR = st.integers(-300, 300)


@example([4096, 4096], [("a", "b", 0, 1, True, 0, -16, 16, 4, 4, 0)])
@example([4096, 4096], [("a", "b", 0, 1, False, 0, -16, 16, 8, 4, 4)])
@example([4096, 4096], [("a", "b", 0, 1, False, -4, -16, 16, 8, 4, 4)])
@given(roots=st.lists(st.integers(4096, 4400), min_size=4, max_size=4), pairs=st.lists(st.tuples(
    st.just("a"), st.just("b"), st.integers(0, 3), st.integers(0, 3), st.booleans(), FAR, FAR, FAR, st.integers(0, 20),
    st.integers(1, 8), st.integers(-8, 20)), max_size=3))
def test_c_code_finds_what_python_finds(roots, pairs):
    check = Apart(pairs, "")
    try:
        check.run(roots, 0, None)
        apart = True
    except ValueError:
        apart = False
    assert extension.built().run_steps((check.in_c(0),), roots, None, b"", {}) == apart


def test_what_c_code_cannot_check_is_left_to_python():
    c = extension.built()
    pair = "a", "b", 0, 1, False, 0, -1, 1, 0, 1, 0
    assert Apart([(*pair[:-1], 1 << 63)], "").in_c(0) is None
    check = Apart([pair], "").in_c(0)
    for roots in ([4096], [4096, "x"], [4096, 1 << 63], [4096, -5]):
        assert c.run_steps((check,), roots, None, b"", {}) == 0
    assert c.run_steps((check, check), [4096, 8192], None, b"", {}) == 2

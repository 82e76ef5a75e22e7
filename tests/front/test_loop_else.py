"""`else` of loops in element functions, beside Python."""

from __future__ import annotations

import inspect
import textwrap

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from tests.elements import under_debugger
from tests.front.compiling import A1, I32, cell, refused

X = np.arange(-3, 12, dtype=np.int32)


def broken(v):
    for i in range(3):
        if v == i:
            break
    else:
        v = v + 100
    return v


def returned(v):
    while v > 2:
        v = v - 3
        if v == 0:
            break
    else:
        return v + 100
    return v


def assigned_by_both(v):
    for i in range(2, 20):
        if v % i == 0:
            found = i
            break
    else:
        found = -1
    return found


def leaves_the_loop_around(v):
    total = 0
    for i in range(4):
        for j in range(3):
            if i * j == v:
                break
        else:
            total += 1
            if v > 5:
                break
            continue
        total += 100
    return total


def without_a_break(v):
    for i in range(v, 9, 2):
        if i == 4:
            continue
        if i == 6:
            return -v
        v += i
    else:
        v = v + 1000
    return v


def in_a_branch_and_nested(v):
    total = 0
    if v > 2:
        while total < v:
            total += 2
            for i in range(2):
                if i == total - 3:
                    break
            else:
                total += 1
        else:
            total = total * 2
    return total


def never_entered(v):
    while False:
        v = v + 1
    else:
        v = v - 1
    for _ in range(0):
        v = v + 1
    else:
        v = v * 2
    return v


def unrolled(v):
    for i in ct.static_iter((1, 2, 3)):
        v = v + i
    else:
        v = v * 10
    return v


FUNCTIONS = [broken, returned, assigned_by_both, leaves_the_loop_around, without_a_break, in_a_branch_and_nested,
             never_entered]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_as_in_python(f):
    o = np.zeros(len(X), np.int64)
    compute.unary_transform(X, o, f, len(X))
    assert o.tolist() == [f(int(v)) for v in X]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_one_element_after_another(f):
    """As under a debugger."""
    o = np.zeros(len(X), np.int64)
    under_debugger(lambda: compute.unary_transform(X, o, f, len(X)))
    assert o.tolist() == [f(int(v)) for v in X]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_functions_in_kernels(f):
    text = textwrap.indent(inspect.getsource(f), "    ").replace("v):", "v, more=n):").replace("return ", "return more + ")
    k = cell(f"def k(x, o, n):\n{text}    ct.store(o, 0, ct.elementwise({f.__name__})(ct.load(x, 0, 16)))\n")["k"]
    o = np.zeros(len(X), np.int32)
    ct.launch(None, (1,), ct.kernel(k), (X, o, 1000))
    assert o.tolist() == [f(int(v)) + 1000 for v in X]


def test_functions_in_functions_of_elements():
    """Handed on under another name, called from a lambda that is handed on, or inside of one that is."""
    def k(x, o):
        def f(v):
            def inner(w):
                while w > 2:
                    w = w - 3
                    if w == 0:
                        break
                else:
                    return w + 100
                return w
            return inner(v)

        same, t = f, ct.load(x, 0, 16)
        ct.store(o, 0, ct.elementwise(same)(t) + ct.elementwise(lambda v: f(v) * 1000)(t))

    o = np.zeros(len(X), np.int32)
    ct.launch(None, (1,), ct.kernel(k), (X, o))
    assert o.tolist() == [returned(int(v)) * 1001 for v in X]


def test_a_loop_that_is_unrolled():
    o = np.zeros(len(X), np.int64)
    compute.unary_transform(X, o, unrolled, len(X))
    assert o.tolist() == ((X + 6) * 10).tolist()


def test_a_variable_that_only_a_break_assigns():
    def f(v):
        for i in range(v):
            if i == 3:
                found = i
                break
        else:
            v = v + 1
        return v + found
    with pytest.raises(ct.TileTypeError, match="undefined variable `found`") as info:
        compute.unary_transform(X, np.zeros_like(X), f, len(X))
    assert info.value.loc.function == "f"


def test_tile_code_has_none():
    """Not even of a function that element functions call, too."""
    def g(n):
        while n > 0:
            n = n - 1
        else:
            n = 5
        return n

    def k(a, n):
        ct.store(a, 0, ct.astype(ct.elementwise(g)(ct.full(4, n, ct.int32)) + g(n), ct.float32))

    def nested(a, n):
        def of_tiles(m):
            for i in range(m):
                n = i
            else:
                n = 5
            return n
        ct.store(a, 0, ct.astype(of_tiles(n), ct.float32))

    def unused(a, n):
        def never_called(m):
            while m > 0:
                m = m - 1
            else:
                m = 5
            return m
        ct.store(a, 0, 1.0)

    for kernel in (k, nested, unused):
        refused(kernel, A1, I32, cls=ct.TileSyntaxError, says="else on a loop")

"""Statements of every kind, for comparing the lines that a kernel visits with those that Python visits.

Everything here also runs as plain Python, with NumPy arrays for tiles and a few functions in place of `ct`.
"""

# ruff: noqa: B007, F841, PIE790

from dataclasses import dataclass

import cutile as ct


@dataclass(frozen=True)
class Pair:
    a: object
    b: int = 2


def helper(x, add):
    """A docstring is no line."""
    if add:
        y = x + 1.0
    else:
        y = x - 1.0
    return (
        y * 2.0
    )


def early(x):
    if x > 2:
        return x
    return x + 1


def nothing(x):
    if x > 2:
        pass


@ct.kernel
def straight(x, out, n: ct.Constant[int], deep: ct.Constant[bool]):
    """Statements that compute nothing at run time, and statements of several lines."""
    i = ct.bid(0)
    pass
    if deep:
        a = 1
    else:
        a = 2

    def inner(u):
        w = u * 2.0
        return w

    t = ct.load(
        x,
        (i,),
        (16,),
    )
    ct.static_assert(n == 3)
    p = Pair(t, a)
    u, v = p.a, (i, 4)
    u += 1.0
    plus = lambda q: q + 1.0
    u = plus(inner(u))
    if deep:
        pass
    nothing(i)
    ct.store(out, (ct.bid(0),), u)


@ct.kernel
def loops(x, out, n: ct.Constant[int], deep: ct.Constant[bool]):
    i = ct.bid(0)
    u = ct.load(x, (i,), (16,))
    for j in range(n):
        if j == 2:
            break
        elif j == 0:
            u = u * 2.0
        u = helper(u, j == 1)
    while True:
        i = i + 1
        if i > 3:
            break
        elif i == 2:
            continue
        u = u + 1.0
    while i < n + 5:
        if i == 5:
            i = i + 2
        else:
            i = i + 1
    for j in range(2):
        for k in range(j):
            u = u + 1.0
    for j in range(n):
        if j > 0:
            u = u - 1.0
    ct.store(out, (ct.bid(0),), u)


@ct.kernel
def branches(x, out, n: ct.Constant[int], deep: ct.Constant[bool]):
    i = ct.bid(0)
    u = ct.load(x, (i,), (16,))
    if i > 100:
        u = u + 1.0
    if i == 0:
        u = u + 2.0
    else:
        u = u + 3.0
    s = early(i)
    if s == 1 and (
            i < 5):
        if i == 0:
            u = u + 4.0
        u = u * 2.0
    elif s == 2:
        u = u * 3.0
    t = u if i == 0 else u + 1.0
    if i == 0:
        ct.store(out, (ct.bid(0),), t)
        return
    ct.store(out, (ct.bid(0),), u)

"""Small kernels, for what a repeated launch costs: each with a function from `array(n)` to kernel and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cutile as ct


@ct.kernel
def add(a, b, c, TILE: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(c, i, ct.load(a, i, TILE) + ct.load(b, i, TILE))


@ct.kernel
def scaled_sum(a, b, c, d, e, f, g, h, out, n, scale):
    t = ct.zeros(64, ct.float32)
    for x in ct.static_iter((a, b, c, d, e, f, g, h)):
        t += ct.load(x, 0, 64)
    ct.store(out, 0, t * scale + n)


@ct.kernel
def sum_of_list(xs, out):
    t = ct.zeros(64, ct.float32)
    for i in range(len(xs)):
        t += ct.load(xs[i], 0, 64)
    ct.store(out, 0, t)


def three_arrays(array: Callable[[int], Any]) -> tuple:
    return add, (array(1024), array(1024), array(1024), 1024)


def many_arguments(array: Callable[[int], Any]) -> tuple:
    return scaled_sum, (*(array(64) for _ in range(9)), 2, 0.5)


def list_of_arrays(array: Callable[[int], Any]) -> tuple:
    return sum_of_list, ([array(64) for _ in range(8)], array(64))


REPEATED = {"3 arrays": three_arrays, "9 arrays, 2 numbers": many_arguments, "a list of arrays": list_of_arrays}

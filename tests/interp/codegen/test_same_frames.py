"""Calls that run the same code share one emitted function."""

from collections import Counter

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.interp.codegen import batch

T = 8


def scaled(x, y):
    z = x * y
    return ct.maximum(z, y) + 1


def picked(x, k):
    return ct.where(x > k, x, -x)


def kept(x):
    k = ct.arange(T, dtype=ct.int32)  # a constant
    return x + k.astype(ct.float32) if x.dtype == ct.float32 else x


def twice(x, y):
    return scaled(scaled(x, y), y)


def branching(x, n):
    if n > 0:
        x = x + 1
    return x


def printing(x):
    ct.printf("%f", ct.sum(x))
    return x


def last_use(x, y):
    """Its first operand may be written over, where the call is its last use."""
    return ct.exp(x) - y


@ct.kernel
def equal_calls(x, out):
    i = ct.bid(0)
    a, b = ct.load(x, i, T), ct.load(x, i + 1, T)
    a = scaled(a, b)
    b = scaled(b, a)
    a = twice(a, b)
    b = twice(b, a)
    ct.store(out, i, kept(a) + kept(b))


@ct.kernel
def unequal_calls(x, out):
    i = ct.bid(0)
    a, b = ct.load(x, i, T), ct.load(x, i, (1,))
    a = picked(a, 0.0) + picked(a, 1.0) + picked(a, b) + picked(a, a)
    b = picked(b, 0.0)
    ct.store(out, i, scaled(a, b) + scaled(b, a) + scaled(a, a))


@ct.kernel
def control_flow(x, out):
    i = ct.bid(0)
    a = ct.load(x, i, T)
    a = branching(a, i) + branching(a, i - 1)
    ct.store(out, i, a)


@ct.kernel
def uses(x, out):
    i = ct.bid(0)
    a, b, c = ct.load(x, i, T) * 2, ct.load(x, i, T) * 3, ct.load(x, i, T) * 5
    d = last_use(a, b)
    e = last_use(b, c)
    ct.store(out, i, d + e + last_use(c, a) + b)


@ct.kernel
def prints(x, out):
    i = ct.bid(0)
    ct.store(out, i, printing(ct.load(x, i, T)) + printing(ct.load(x, i, T)))


def functions(kernel, *arrays, check=False) -> Counter:
    """How many functions are emitted, by name."""
    k = kernel.program(kernel.classify(arrays)).kernel
    return Counter(f.name for f in batch.compile_kernel(k, check=check, step_limit=False, syntax=True).syntax)


def floats(n):
    return np.linspace(-2, 2, n, dtype=np.float32)


@pytest.mark.parametrize(("kernel", "count"), [
    (equal_calls, {"scaled": 1, "twice": 1, "kept": 1}),
    (unequal_calls, {"picked": 5, "scaled": 3}),
    (uses, {"last_use": 1}),
    (prints, {"printing": 2}),
])
def test_functions(kernel, count):
    found = functions(kernel, floats(64), floats(64))
    assert {name: found[name] for name in count} == count


def test_code_that_checks_values_names_each_op():
    assert functions(equal_calls, floats(64), floats(64), check=True)["scaled"] > 1


def test_bodies_with_control_flow_are_emitted_for_each_call():
    assert functions(control_flow, floats(64), floats(64))["branching"] > 2


@pytest.mark.parametrize("kernel", [equal_calls, unequal_calls, control_flow, uses])
def test_equal_bits(kernel):
    x, found = floats(72), []
    for schedule in ("block", "batch"):
        out = np.zeros(64, np.float32)
        with settings.override(SCHEDULE=schedule):
            ct.launch(None, (8,), kernel, (x, out))
        found.append(out.tobytes())
    assert found[0] == found[1]


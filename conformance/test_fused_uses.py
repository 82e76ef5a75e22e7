"""Whether a product is fused depends on who else uses it: each kind of use, where something needs it and where nothing
does.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch
from conformance.test_machine import sign_of_error


def number(p):
    """1, for the compiler any number: all products here are a little more than 1."""
    return ct.astype(ct.max(p), ct.int32)


def zero(x):
    return x - x


# Each gives a tile of zeros that a use of p decides about. Then `p - z` is added to it, or the zeros are not used.


def first_of_a_range(p, x):
    s = zero(x)
    for _ in range(number(p), 4):
        s = s + zero(x)
    return s


def end_of_a_range(p, x):
    s = zero(x)
    for _ in range(0, number(p), 2):
        s = s + zero(x)
    return s


def step_of_a_range(p, x):
    s = zero(x)
    for _ in range(0, 3, number(p)):
        s = s + zero(x)
    return s


def condition_of_a_loop(p, x):
    s, i = zero(x), 0
    while i < number(p):
        s, i = s + zero(x), i + 1
    return s


def condition_of_a_branch(p, x):
    if number(p) > 2:
        s = x
    else:
        s = zero(x)
    return s


def in_one_branch(p, x):
    s = zero(x)
    if ct.num_blocks(0) > 0:
        s = zero(p)
    return s


def result_of_a_branch(p, x):
    if ct.num_blocks(0) > 0:
        s = p
    else:
        s = x
    return zero(s)


def carried(p, x):
    s = x
    for _ in range(ct.num_blocks(0)):
        s = p
    return zero(s)


def carried_around(p, x):
    r, s, t = x, x, p
    for _ in range(3 * ct.num_blocks(0)):
        r, s, t = s, t, r
    return zero(r)


def first_carried(p, x):
    s = p
    for _ in range(ct.num_blocks(0)):
        s = s + zero(x)
    return zero(s)


def handed_on_by_a_continue(p, x):
    s = x
    for i in range(2):
        if ct.num_blocks(0) > i:
            s = p
            continue
        s = s + zero(x)
    return zero(s)


def handed_on_by_a_break(p, x):
    s = x
    while True:
        if ct.num_blocks(0) > 0:
            s = p
            break
        s = zero(x)
    return zero(s)


def decides_about_a_break(p, x):
    s = zero(x)
    for i in range(3):
        s = s + zero(x)
        if number(p) > i:
            break
        s = s + x
    return zero(s)


def decides_about_a_continue(p, x):
    s = zero(x)
    for i in range(2):
        if number(p) > i:
            continue
        s = s + zero(x)
    return s


def decides_about_a_return(p, x):
    def early():
        if number(p) > 2:
            return x
        return zero(x)

    return early()


def decides_about_a_return_in_a_loop(p, x):
    def early():
        for i in range(3):
            if number(p) > i + 1:
                return x
        return zero(x)

    return early()


def returned(p, x):
    def given():
        return p

    return zero(given())


def returned_from_a_loop(p, x):
    def given():
        for i in range(3):
            if ct.num_blocks(0) > i:
                return p
        return x

    return zero(given())


def reduced(p, x):
    return zero(ct.reduce(p, 0, lambda a, b: a + b, 0, keepdims=True) + x)


def inside_a_reduction(p, x):
    most = ct.max(p)
    return zero(x + ct.reduce(x, 0, lambda a, b: ct.minimum(a + b, most), 0, keepdims=True))


def of_elements(p, x):
    return ct.elementwise(lambda a, b: a - a if a > b else b - b)(p, x)


def of_a_scan(p, x):
    return zero(ct.cumsum(p))


USES = [first_of_a_range, end_of_a_range, step_of_a_range, condition_of_a_loop, condition_of_a_branch, in_one_branch,
        result_of_a_branch, carried, carried_around, first_carried, handed_on_by_a_continue, handed_on_by_a_break,
        decides_about_a_break, decides_about_a_continue, decides_about_a_return, decides_about_a_return_in_a_loop,
        returned, returned_from_a_loop, reduced, inside_a_reduction, of_elements, of_a_scan]


@clause("MACH-7.used")
@pytest.mark.parametrize("use", USES, ids=lambda f: f.__name__)
def test_a_use_that_something_needs(use):
    def f(x, y, z):
        p = x * y
        s = use(p, x)
        return (p - z) + s

    assert sign_of_error(f) == 0


@clause("MACH-7.used")
@pytest.mark.parametrize("use", USES, ids=lambda f: f.__name__)
def test_a_use_that_comes_later(use):
    def f(x, y, z):
        p = x * y
        d = p - z
        return d + use(p, x)

    assert sign_of_error(f) == 0


@clause("MACH-7.dead")
@pytest.mark.parametrize("use", USES, ids=lambda f: f.__name__)
def test_a_use_that_nothing_needs(use):
    def f(x, y, z):
        p = x * y
        use(p, x)
        return p - z

    assert sign_of_error(f) == 1


@clause("MACH-7.dead")
@pytest.mark.parametrize("use", USES, ids=lambda f: f.__name__)
def test_a_use_in_a_loop_that_nothing_needs(use):
    def f(x, y, z):
        p = x * y
        r, s = z, x
        for _ in range(ct.num_blocks(0)):
            s = s + use(p, x)
            r = p - z
        return r

    assert sign_of_error(f) == 1


def product(x, y):
    return x * y


def passed_on(x, y):
    return product(x, y)


@clause("MACH-7.call", "MACH-7.used")
@pytest.mark.parametrize("f", [product, passed_on], ids=lambda f: f.__name__)
@pytest.mark.parametrize("uses", [1, 2, 3])
def test_uses_of_the_result_of_a_call(f, uses):
    """The product is rounded if anything else than one sum uses what the call returns."""
    @ct.kernel
    def k(x, out):
        t = ct.load(x, 0, 8)
        p = f(t, t)
        ct.store(out, 0, p - (1 + 2.0**-11))
        for i in ct.static_iter(range(1, uses)):
            ct.store(out, i, p * i)

    out = np.zeros(24, np.float32)
    launch(k, np.full(8, 1 + 2.0**-12, np.float32), out)
    assert out.reshape(3, 8)[:, 0].tolist() == [2.0**-24 if uses == 1 else 0.0, *(
        (1 + 2.0**-11) * i if i < uses else 0.0 for i in (1, 2))]


MODES = (None, ct.RoundingMode.RN, ct.RoundingMode.RZ, ct.RoundingMode.RM)


@clause("MACH-7.mode")
@pytest.mark.parametrize("of_sum", MODES, ids=str)
@pytest.mark.parametrize("of_product", MODES, ids=str)
def test_modes_of_products_and_sums(of_product, of_sum):
    """A product is fused if both are rounded alike; to nearest, if nothing else is said."""
    alike = (of_product or MODES[1]) is (of_sum or MODES[1])

    def minus(x, y, z):
        return ct.sub(ct.mul(x, y, rounding_mode=of_product), z, rounding_mode=of_sum)

    def plus(x, y, z):
        return ct.add(ct.mul(x, y, rounding_mode=of_product), -z, rounding_mode=of_sum)

    assert [sign_of_error(f) for f in (minus, plus)] == [int(alike)] * 2

"""Expressions that are written several times, across branches, loops and calls, and those whose value nobody needs.

Compilers compute them once, move them out of loops, and leave out what is not needed. CPython runs the same text on
numbers.
"""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run


def before_a_branch(a, b, n):
    p = a * b + 3
    q = a * b + 3
    r = q if a > 2 else b
    s = a if b > a else q
    return p + 2 * r + 5 * s


def only_in_branches(a, b, n):
    p = a * b - 7
    if a > b:
        q = a * b - 7
    elif a > 1:
        q = p
    else:
        q = (a * b - 7) * (a * b - 7)
    return p + 3 * q + (a * b - 7)


def before_a_loop(a, b, n):
    p = a * b + 1
    q = a * b + 1
    for i in range(n):
        a = q + i
    return a + 2 * p


def carried_unchanged(a, b, n):
    p = a - 2 * b
    q = a - 2 * b
    for _ in range(n):
        p = q
    return p * 3 + q


def in_nested_loops(a, b, n):
    s = a * 0
    p = a + b * 4
    for i in range(n):
        q = a + b * 4
        for j in range(i):
            s = s + (a + b * 4) * j + q + i * b
            s = s + i * b
        s = s - p + i * b
    return s


def behind_a_break(a, b, n):
    s = a
    for i in range(n):
        if i * b > a:
            s = s + i * b
            break
        s = s + i * b + 1
        if i * b == 3:
            continue
        s = s - (i * b) * (i * b)
    return s + a * b


def while_it_holds(a, b, n):
    i = n
    while i * 2 > a + b:
        i = i - 1 - (a + b) * 0
        if i < -4:
            break
    return i * (a + b) + i * 2


def of_a_call(x, y):
    return x * y - x


def in_calls(a, b, n):
    p = of_a_call(a, b) + of_a_call(a, b)
    for i in range(n):
        p = p + of_a_call(a, b) * of_a_call(a, i)
    return p + (a * b - a)


def nobody_needs(a, b, n):
    p = a * b
    for i in range(n):
        q = p * i + a
        if q > 3:
            r = q * q
        else:
            r = q - b
        p = p + i
        if r < 0 and i > 50:
            q = r
    return p


def some_are_needed(a, b, n):
    p, q, r = a, b, a + b
    for i in range(n):
        p, q, r = q + i, r * 2, p - i
        if p > 90:
            r = q
    return q


def never_reaches_the_end(a, b, n):
    """Of loops at each depth nothing goes on behind the branch."""
    s = a
    for _ in range(n):
        s = s + 1
        if s > b:
            break
        else:
            continue
    for i in range(n):
        for j in range(n):
            while True:
                s = s + j
                if s > b + i:
                    break
                else:
                    s = s + 1
                    continue
            for m in range(3):
                s = s - m
                if m > 1:
                    break
                else:
                    continue
    return s


def divided_in_a_loop(a, b, n):
    """Where the loop does not run, the divisor may be zero."""
    s = a
    for i in range(n if b != 0 else 0):
        s = s + a // b + (a % b) * i
    return s


def divided_while_it_may(a, b, n):
    s, i = a, 0
    while b != 0 and i < n:
        s, i = s + a // b, i + 1
    return s


def divided_in_a_branch(a, b, n):
    s = a
    for _ in range(n):
        if b != 0:
            s = s + a // b - a % b
    return s


def left_at_once(a, b, n):
    """Bounds that differ by element, and a loop that nothing continues."""
    s = a
    for i in range(b, b + n + 2):
        s = s * 3 + i
        break
    return s


def left_at_once_or_not_begun(a, b, n):
    s, i = a, 0
    while i < b:
        i = i + 1
        if s > n:
            s = s - 2
            break
        s = s + 5
        break
    return s * 10 + i


FUNCTIONS = [left_at_once, left_at_once_or_not_begun,
             before_a_branch, only_in_branches, before_a_loop, carried_unchanged, in_nested_loops, behind_a_break,
             while_it_holds, in_calls, nobody_needs, some_are_needed, never_reaches_the_end,
             divided_in_a_loop, divided_while_it_may, divided_in_a_branch]
A, B = (m.ravel().astype(np.int32) for m in np.meshgrid(range(-2, 6), range(-3, 5)))


def wanted(f, n):
    return [int(f(int(a), int(b), n)) for a, b in zip(A, B, strict=True)]


@clause("MACH-6.unused", "LOOP-1.stop", "LOOP-13.while")
@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_numbers_of_a_block(f, n):
    @ct.kernel
    def k(a, b, count, out):
        i = ct.bid(0)
        ct.store(out, i, f(ct.load(a, i, ()), ct.load(b, i, ()), count))

    assert run(k, A, B, n, np.zeros_like(A), grid=(len(A),)).tolist() == wanted(f, n)


@clause("ELT-3.branch", "ELT-7.while", "ELT-7.for", "ELT-9.divide")
@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_elements(f, n):
    @ct.kernel
    def k(a, b, count, out):
        ct.store(out, 0, ct.elementwise(lambda x, y: f(x, y, count))(ct.load(a, 0, 64), ct.load(b, 0, 64)))

    assert run(k, A, B, n, np.zeros_like(A)).tolist() == wanted(f, n)


def some(d):
    return ct.full((4,), 3, d)


def none(d):
    return ct.full((4,), 0, d)


DIVISORS = {  # of 8 elements, by what they are divided in each iteration alike
    "number": lambda d, t: ct.full((8,), 3, d),
    "zero": lambda d, t: ct.full((8,), 0, d),
    "joined": lambda d, t: ct.cat((some(d), none(d)), 0),
    "joined, zeros first": lambda d, t: ct.cat((none(d), some(d)), 0),
    "loaded": lambda d, t: t,
    "moved": lambda d, t: ct.permute(t.reshape((2, 4)), (1, 0)).reshape((8,)),
    "part": lambda d, t: ct.extract(ct.cat((ct.full((8,), 5, d), t), 0), (1,), (8,)),
    "cast to zero": lambda d, t: ct.full((8,), 256, ct.int32).astype(ct.int8).astype(d),
    "cast": lambda d, t: ct.full((8,), 260, ct.int32).astype(ct.int8).astype(d),
}
QUOTIENTS = {"quotient": lambda x, y: x // y, "remainder": lambda x, y: x % y, "rounded up": lambda x, y: ct.cdiv(x, y)}


@clause("ARITH-5.zero", "ARITH-6.zero", "ARITH-7.zero")
@pytest.mark.parametrize("n", [0, 2])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32"])
@pytest.mark.parametrize("of", QUOTIENTS)
@pytest.mark.parametrize("divisor", DIVISORS)
def test_division_by_what_stays_the_same(divisor, of, dtype, n):
    """In a loop, which may not begin. What is divided by zero is not compared, unless it has a value."""
    if of == "rounded up" and dtype == "float32":
        of = "remainder"
    by, d, quotient = DIVISORS[divisor], getattr(ct, dtype), QUOTIENTS[of]

    @ct.kernel
    def k(x, y, count, used, out):
        t = by(d, ct.load(y, 0, 8))
        v = ct.load(x, 0, 8)
        s = v
        for _ in range(count):
            s = quotient(v, t)
        ct.store(out, 0, s)
        ct.store(used, 0, t)

    @ct.kernel
    def once(x, y, out):
        ct.store(out, 0, quotient(ct.load(x, 0, 8), ct.load(y, 0, 8)))

    x, y = np.arange(11, 27, 2).astype(dtype), np.array([3, 0, 5, 1, 0, 7, 2, 9], dtype)
    used, got, want = np.zeros(8, dtype), np.zeros(8, dtype), np.zeros(8, dtype)
    run(k, x, y, n, used, got)
    run(once, x, used, want)
    same = (used != 0) | (dtype == "float32")
    np.testing.assert_array_equal(got[same], (want if n else x)[same])

"""Small kernels for the fuzzer to mutate that use what tile code has of Python: functions of elements, closures,
dataclasses, enums, context managers, kinds of parameters, and text.
"""

from __future__ import annotations

import contextlib
import enum
import math
from dataclasses import dataclass

import numpy as np

import cutile as ct


@dataclass(frozen=True)
class Complex:
    re: object
    im: object = 0.0

    def __mul__(self, other):
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def scaled(self, *, by=2):
        return Complex(self.re * by, self.im * by)

    @property
    def conjugate(self):
        return Complex(self.re, -self.im)


class Kind(enum.Enum):
    SUM = 1
    MAX = "max"


@contextlib.contextmanager
def scaled(x, by=2):
    y = x * by
    yield y, lambda z, more=1: z - y + more
    y = y + 1


def total_of(*xs, start=0, **named):
    for x in ct.static_iter(xs):
        start = start + x
    for n in ct.static_iter(sorted(named)):
        start = start - (1 if n == "last" else 2)
    return start


def collatz(n, most=40):
    """A function of one element."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps >= most:
            break
    else:
        return steps
    return -steps


def elements(a, b, out, T: ct.Constant[int]):
    x, y = ct.load(a, 0, shape=T), ct.load(b, 0, shape=T)

    def f(v, n, table):
        p = Complex(v, n)
        for k in range(n):
            if k * v > 3:
                p = Complex(k, v)
                break
            elif not -2 < v <= 2:
                continue
            v += table[k % 4]
        else:
            if n < 0 or v == 0:
                return Complex(-v, n + 0.5)
        return p

    z = ct.elementwise(f)(x, y, a)
    w = ct.elementwise(lambda u: math.sqrt(u) if u > 0 else math.fabs(u) // 2)(x, mask=y > 0)
    i = ct.elementwise(collatz)(ct.maximum(y, 1))
    best = ct.reduce(x, 0, ct.elementwise(lambda u, v: u if u > v else v), identity=-1000.0)
    ct.store(out, 0, z.re + z.im * w + i + best)


def updates(a, b, out, T: ct.Constant[int]):
    i = ct.arange(T, dtype=ct.int32)

    def count(at, x):
        if at % 2:
            return ct.atomic_add(out, at % 8, x)
        while ct.atomic_cas(b, 3, 0, 1) == 5:
            x += 1.0
        return np.floor(x)

    old = ct.elementwise(count, i, ct.gather(a, i))
    ct.scatter(out, i + 8, old)


def managed(a, b, out, n):
    x = ct.load(a, 0, shape=4)
    with scaled(x, by=3) as (y, f):
        x = f(y) + n
        with scaled(n) as both, scaled(y, 4):
            x = x + both[0]
            if n > 3:
                y = y - 1
    ct.store(out, ct.bid(0), f(x, more=n) + y)


def variadic(a, b, out, n):
    x = ct.load(a, ct.bid(0), shape=2)
    xs = (x, x + 1, n)
    first, [y, m] = xs[0], xs[1:]
    y = total_of(*xs, *xs[::-1], start=first, size=3, last=y) + m

    def pick(k, /, *more, by=1, **other):
        if len(more) > 1:
            return k + by
        return pick(k, *xs, by=by + 1)

    ct.store(out, ct.bid(0), y * pick(n) + (lambda *v, w=2: len(v) + w)(*xs, w=n))


def closures(a, b, out, T: ct.Constant[int]):
    x, n = ct.load(a, 0, shape=T), ct.bid(0) + 4
    fs = ()
    for k in ct.static_iter(range(3)):
        fs = (*fs, lambda v: v + k, lambda v, k=k: v * k)  # noqa: B023

    def outer(m):
        get = lambda: m + n
        m = m * 2
        return get, lambda v: v + get()

    g, h = outer(x)
    for f in ct.static_iter(fs[1:]):
        x = f(x)
    while n > 2:
        n -= 1
        x = h(x) if n == 3 else g()
    every = tuple(f(x) for f in ct.static_iter((h, *fs)) if T > 4)
    ct.store(out, ct.bid(0), every[-1] + g())


def complexes(a, b, out, T: ct.Constant[int]):
    z = Complex(ct.load(a, 0, shape=T), ct.load(b, 0, shape=T).astype(ct.float32))
    w = (z * z.conjugate).scaled(by=0.5)
    for k in range(3):
        z = z * w if ct.bid(0) == k else Complex(z.im, z.re)
    kind = Kind.SUM if T == 8 else Kind("max")
    ct.store(out, 0, z.re if kind == Kind.SUM else z.im)


def texts(a, b, out, n):
    x = ct.load(a, 0, ())
    names = ("a", "it's", Kind.MAX, (None, 2.5))
    print(f"{n:>4d}|{x:.3f}|{n + 1}", names, Complex(n, x), sep=names[0] + "-", end="")
    ct.print("-".join(("x", str(n))), ct.static_eval(tuple([k * 2 for k in range(3)])), n > 2)
    ct.printf("%5d %-8.2e %x %%\n", n, x, ct.bid(0))
    ct.assert_(n != 77, "not " + names[0])
    ct.store(out, ct.bid(0), len(names) + ("a" in names) + (names[:2] == ("a", "b")) * 2.0 + x)


FUNCTIONS = (elements, updates, managed, variadic, closures, complexes, texts)
HELPERS = (scaled, total_of, collatz)
USED = {"Complex": Complex, "Kind": Kind, "contextlib": contextlib, "math": math}
NUMBER = (managed, variadic, texts)  # kernels whose last argument is a run-time number

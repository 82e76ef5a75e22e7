"""Functions of `math` and NumPy that are no op, in the language itself: what calls of them mean in element functions.

Each is within 2 ulp of the exact result where its operands are floats, unless it says otherwise.
"""

from cutile.ops.arithmetic import abs, maximum, minimum
from cutile.ops.math import atan2, ceil, exp, floor, log, log2, sqrt
from cutile.ops.select import where

INF = float("inf")
LOG10_2 = 0.30102999566398119521
DEGREE = 0.01745329251994329577


def trunc(x):
    return where(x < 0, ceil(x), floor(x))


def rint(x):
    low = floor(x)
    rest = x - low
    near = where(rest > 0.5, low + 1, where(rest == 0.5, low + low % 2, low))
    return where(x < 0, -abs(near), near)  # numbers above -0.5 give -0


def fmod(x, y):
    rest = abs(x) % abs(y)
    return where((x < 0) | (1 / x < 0), -rest, rest)  # of -0 it is -0


def copysign(x, y):
    size = abs(x)
    return where((y < 0) | (1 / y < 0), -size, size)


def isinf(x):
    return abs(x) == INF


def isfinite(x):
    return abs(x) < INF


def degrees(x):
    return x / DEGREE


def radians(x):
    return x * DEGREE


def log10(x):
    return log2(x) * LOG10_2


def log1p(x):
    near = 1 + x
    if near == 1 or near == INF:
        return x
    return log(near) * (x / (near - 1))


def expm1(x):
    e = exp(x)
    if e == 1:
        return x
    if e < 0.25 or e > 4:
        return e - 1
    return (e - 1) * (x / log(e))


def asin(x):
    return atan2(x, sqrt((1 - x) * (1 + x)))


def acos(x):
    return atan2(sqrt((1 - x) * (1 + x)), x)


def atan(x):
    return atan2(x, 1)


def hypot(x, y):
    x, y = abs(x), abs(y)
    if x == INF or y == INF:  # whatever the other one is
        return INF
    large = maximum(x, y, propagate_nan=True)
    if large == 0:
        return large
    ratio = minimum(x, y) / large
    return large * sqrt(1 + ratio * ratio)


def gcd(x, y):
    x, y = abs(x), abs(y)
    while y != 0:
        x, y = y, x % y
    return x


def fma(x, y, z):
    return x * y + z


def square(x):
    return x * x


def reciprocal(x):
    return 1 / x


def sign(x):
    return where(x > 0, 1, where(x < 0, -1, x))


def clip(x, low, high):
    return minimum(maximum(x, low, propagate_nan=True), high, propagate_nan=True)

"""Functions of `math` and NumPy that are no op, in the language itself: what calls of them mean in element functions.

Each is within 2 ulp of the exact result where its operands are floats, unless it says otherwise.
"""

from cutile.ops.arithmetic import abs, maximum, minimum
from cutile.ops.math import atan2, ceil, exp, exp2, floor, log, log2, sqrt
from cutile.ops.select import where

INF = float("inf")
LOG10_2 = 0.30102999566398119521
LOG_2 = 0.6931471805599453
HUGE = 268435456.0  # the square of which is more than 2 ** 53
SMALL = 1e-30
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


def log1p_of_sum(x, rest):
    """log(1 + x + rest), of a rest that is less than an ulp of x."""
    near = 1 + x
    if near == INF:
        return near
    lost = x - (near - 1) if abs(x) < 1 else 1 - (near - x)
    return log(near) + (lost + rest) / near


def asinh(x):
    a = abs(x)
    if a > HUGE:
        found = log(a) + LOG_2
    else:
        more = a * a / (1 + sqrt(a * a + 1))
        total = a + more
        found = log1p_of_sum(total, a - (total - more))
    return copysign(found, x) if a == a else x


def acosh(x):
    if x > HUGE:
        return log(x) + LOG_2
    more = x - 1
    if more < 0:
        return sqrt(more)
    root = sqrt(2 * more + more * more)
    total = more + root
    return log1p_of_sum(total, root - (total - more) if more > root else more - (total - root))


def atanh(x):
    a = abs(x)
    if a == 1:
        return copysign(INF + a, x)
    below = 1 - a
    ratio = 2 * a / below
    rest = (2 * a - ratio * below - ratio * ((1 - below) - a)) / below
    return copysign(0.5 * log1p_of_sum(ratio, rest), x) if a < 1 else x - x if a != a else (a - a) / (a - a)


def cbrt(x):
    a = abs(x)
    if a == 0 or a == INF or a != a:
        return x
    small = a < SMALL
    a = where(small, a * 2.0 ** 54, a)  # so that cubes of what is near have all their digits
    near = exp2(log2(a) / 3)
    near = near - (near * near * near - a) / (3 * near * near)
    return copysign(where(small, near * 2.0 ** -18, near), x)


def remainder(x, y):
    """x - n * y, exactly, where n is the integer next to x / y, the even one of two."""
    y = abs(y)
    rest = fmod(abs(x), 2 * y)
    if rest > y - rest:
        rest = rest - y
        if rest >= y - rest:
            rest = rest - y
    return where((x < 0) | (1 / x < 0), -rest, rest)


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


def lcm(x, y):
    divisor = gcd(x, y)
    if divisor == 0:
        return divisor
    return abs(x // divisor * y)


def signbit(x):
    return (x < 0) | (1 / x < 0)


def heaviside(x, y):
    return where(x == 0, y, where(x > 0, 1, where(x < 0, 0, x)))


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

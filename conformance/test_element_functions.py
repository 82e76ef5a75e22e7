"""Functions of elements, applied to tiles [ELT-*]."""

import dataclasses
import math

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses, run, same_bits, within_ulp

N = 32
X = np.random.default_rng(5).integers(-40, 60, N).astype(np.int32)
Y = np.random.default_rng(6).integers(-4, 5, N).astype(np.int32)
F, G = X.astype(np.float32) / 8, Y.astype(np.float32) / 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: float


def applied(f, *xs, out=np.int32):
    """f of each element of one or two arrays."""
    many = len(xs) > 1

    @ct.kernel
    def k(a, b, o):
        i = ct.bid(0)
        x, y = ct.load(a, i, 8), ct.load(b, i, 8)
        ct.store(o, i, (ct.elementwise(f)(x, y) if many else ct.elementwise(f)(x)).astype(o.dtype))

    return run(k, xs[0], xs[-1], np.zeros(len(xs[0]), out), grid=(len(xs[0]) // 8,))


def agrees(f, *xs):
    """Assert that f gives what Python gives for single elements."""
    kind, number = (np.int32, int) if xs[0].dtype == np.int32 else (np.float32, float)
    want = np.array([f(*map(number, x)) for x in zip(*xs, strict=True)], kind)
    same_bits(applied(f, *xs, out=kind), want)


@clause("ELT-1.scalar", "ELT-3.branch", "ELT-3.return")
def test_branches():
    def f(x, y):
        if x > 10:
            if y == 0:
                return 100
            z = x * y
        elif x == y:
            return x
        else:
            z = y - x
        return z + 1
    agrees(f, X, Y)
    agrees(f, F, G)

    def seen(x):
        ct.static_assert(x.shape == () and x.dtype == ct.int32)
        return x
    agrees_with(seen, X)


def agrees_with(f, x):
    same_bits(applied(f, x), x)


@clause("ELT-1.spelling", "ELT-1.broadcast")
def test_shapes():
    @ct.kernel
    def k(a, o):
        x = ct.load(a, (0, 0), (4, 8))
        row = ct.load(a, (1, 0), (1, 8))
        f = lambda p, q: p if p > q else q - p
        ct.store(o, (0, 0), ct.elementwise(f, x, row) + 0 * ct.elementwise(f)(x, row))
    x = X.reshape(4, 8)
    same_bits(run(k, x, np.zeros((4, 8), np.int32)), np.where(x > x[1], x, x[1] - x))


@clause("ELT-1.structure", "ELT-1.constant", "ELT-1.array", "ELT-1.result")
def test_arguments_and_results():
    @ct.kernel
    def k(a, b, o):
        def f(p, table, n):
            ct.static_assert(n == 3)
            if p.x > p.y:
                return Point(p.y, ct.gather(table, 1)), n
            return Point(p.x, p.y), 1
        x, y = ct.load(a, 0, 8), ct.load(b, 0, 8)
        q, m = ct.elementwise(f)(Point(x, y), a, 3)
        ct.store(o, 0, q.x * 10000 + q.y * 10 + m)
    x, y = X[:8], Y[:8]
    want = np.where(x > y, y * 10000 + x[1] * 10 + 3, x * 10000 + y * 10 + 1)
    same_bits(run(k, x, y, np.zeros(8, np.int32)), want.astype(np.int32))


@clause("ELT-1.mask")
def test_masks():
    @ct.kernel
    def k(a, b, o):
        x, y = ct.load(a, 0, 32), ct.load(b, 0, 32)
        ct.store(o, 0, ct.elementwise(lambda p, q: p // q + 1)(x, y, mask=y != 0))
    same_bits(run(k, X, Y, np.zeros(N, np.int32)), np.where(Y != 0, X // np.where(Y, Y, 1) + 1, 0).astype(np.int32))


@clause("ELT-2.call")
def test_calls():
    def helper(v, by=2):
        return -v if v < 0 else v * by

    def f(x, y):
        g = lambda v: v + 1 if v > y else helper(v, by=3)
        return g(x) + helper(y)
    agrees(f, X, Y)


@clause("ELT-4.conditional", "ELT-5.logic")
def test_expressions():
    agrees(lambda x, y: x if 2 < x < 30 and not y > 2 or x == y else y * 2, X, Y)
    agrees(lambda x, y: y if x else (3 if y else 4), X // 20, Y)


@clause("ELT-5.mask", "ELT-9.divide")
def test_what_is_not_run():
    agrees(lambda x, y: 1 if y != 0 and x // y > 3 or y == 0 and x % 7 == 1 else 0, X, Y)
    agrees(lambda x, y: x // y if y else -x, X, Y)


@clause("ELT-9.load")
def test_loads_that_are_not_run():
    @ct.kernel
    def k(a, index, o):
        def f(i):
            if i < 0 or i >= 8:
                return -1
            return ct.gather(a, i, check_bounds=False)
        ct.store(o, 0, ct.elementwise(f)(ct.load(index, 0, 8)))
    index = np.array([3, 1 << 30, 0, -(1 << 30), 7, 8, 2, -1], np.int32)
    got = run(k, X[:8], index, np.zeros(8, np.int32))
    same_bits(got, np.where((index >= 0) & (index < 8), X[:8][index % 8], -1).astype(np.int32))


@clause("ELT-4.literal", "ELT-4.dtype")
def test_dtypes_meet():
    same_bits(applied(lambda x: x if x > 0 else 0, F.astype(np.float16), out=np.float16),
              np.maximum(F, 0).astype(np.float16))

    def f(x):
        if x > 2:
            return ct.int32(x)
        return x
    same_bits(applied(f, F, out=np.float32), np.where(F > 2, np.trunc(F), F))


def collatz(n):
    n = max(n, 1)
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@clause("ELT-7.while")
def test_loops():
    agrees(collatz, X)


@clause("ELT-7.for", "ELT-7.leave")
def test_loops_that_are_left():
    def f(x, y):
        total = 0
        for i in range(y, x, 3):
            if i % 2 == 0:
                continue
            if total > 50:
                break
            for j in range(3):
                if i * j == 21:
                    return -1
            total += i
        return total
    agrees(f, X, Y)


@clause("ELT-7.else")
def test_else_of_loops():
    def divisor(x, y):
        for i in range(2, y):
            if x % i == 0:
                found = i
                break
        else:
            found = -1
        return found

    def steps(x, y):
        while x > y:
            x -= 3
            if x == 0:
                break
        else:
            return x + 100
        return x

    def rows(x, y):
        total = 0
        for i in range(3):
            for j in range(y):
                if i * j == x:
                    break
            else:
                total += 1
                continue
            total += 100
        return total
    for f in (divisor, steps, rows):
        agrees(f, X, np.abs(Y))


def counted(x, y):
    n = 0
    for _ in range(x, y, 5):
        n += 1
        if n > 9:
            break
    return n


def counted_unless_left(x, y):
    n = 0
    for _ in range(x, y, 5):
        n += 1
        if n > 9:
            break
    else:
        n += 100
    return n


def counted_by(x, y):
    """The bounds are alike, and the steps differ."""
    n = 0
    for _ in range(0, 2147483647, x * 0 + y):
        n += 1
        if n > 9:
            break
    return n


@clause("ELT-7.for", "ELT-7.else")
@pytest.mark.parametrize("f", [counted, counted_unless_left, counted_by])
def test_ranges_up_to_the_last_number(f):
    """A counter beyond the end of its range is not one that has wrapped around."""
    last = np.iinfo(np.int32).max
    begins = last - np.array([0, 1, 3, 4, 5, 6, 11, 2**31 - 2], np.int32)
    ends = np.array([last, last - 1, last, 1, last, last - 2, last, last], np.int32)
    steps = np.array([2**30, 2**31 - 1, 2**30 + 1, 10**9, 5 * 10**8, 2**31 - 2, 2**29, 7 * 10**8], np.int32)
    agrees(f, begins, steps if f is counted_by else ends)


@clause("ELT-7.dtype")
def test_what_a_loop_carries():
    def f(x):
        total = 0
        for i in range(4):
            total += x * i
        return total
    agrees(f, F)


@clause("ELT-11.cast")
def test_casts():
    def f(x):
        n, v = int(x), float(x)
        ct.static_assert(n.dtype == ct.int64 and v.dtype == ct.float64)
        return int(x * 3) + ct.float16(x)
    same_bits(applied(f, F, out=np.float32), (np.trunc(F * 3) + F.astype(np.float16)).astype(np.float32))


@clause("ELT-11.cast", "ELT-4.literal", "FN-6.int", "FN-6.float")
def test_casts_of_constants():
    """They are numbers without a dtype, as in all tile code."""
    def f(x):
        whole = x + int(2.75), x - int(-2.75), x * int(True), x + int(ct.int8(3)), x + int(ct.float64(7.5))
        real = x + float(3), x - float(True), x * float(-0.5)
        for y in ct.static_iter(whole):
            ct.static_assert(y.dtype == ct.int32)
        for y in ct.static_iter(real):
            ct.static_assert(y.dtype == ct.float32)
        return whole[0] * 1000 + whole[1] * 100 + whole[2] * 10 + whole[3] + whole[4] + int(real[0] + real[1] - real[2])

    x = X.astype(np.int64)
    real = (x + 3) + (x - 1) + x / 2
    want = (x + 2) * 1000 + (x + 2) * 100 + x * 10 + x + 3 + x + 7 + np.trunc(real)
    same_bits(applied(f, X), want.astype(np.int32))
    for g in (lambda v: int((1, 2)), lambda v: float((v,)), lambda v: int(None), lambda v: float(np),
              lambda v: int(abs), lambda v: float(None), lambda v: int(v, 2), lambda v: float("x")):
        refuses("TileTypeError", kernel_of(g), X, X)


@clause("ELT-13.extremes")
def test_extremes():
    agrees(lambda x, y: max(x, y, 3) - min(x, y), X, Y)
    x = np.array([np.nan, 1] * 4, np.float32)
    same_bits(applied(lambda v: max(v, 2) + max(2, v), x, out=np.float32), np.full(8, 4, np.float32))


@clause("ELT-14.math", "ELT-15.numpy", "ELT-16.integer")
def test_functions():
    x = np.abs(F) + np.float32(0.5)
    within_ulp(applied(lambda v: math.sqrt(v), x, out=np.float32), np.sqrt(x.astype(float)), 1)
    within_ulp(applied(lambda v: np.exp(v), x, out=np.float32), np.exp(x.astype(float)), 3)
    within_ulp(applied(lambda v: math.log2(v * v + 1), X, out=np.float64), np.log2(X.astype(float) ** 2 + 1), 4)
    same_bits(applied(lambda v: np.floor(v) + math.fabs(v), F, out=np.float32), np.floor(F) + np.abs(F))


REAL = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.25, -7.75, 1e-8, -1e-8, 1e-3, 0.1, 0.2499, 0.3,
                 3.99, 4.5, 4.99, 5.5, 12, -20, 80, -80, 0.75, -0.999, 1e-30, np.inf, -np.inf, np.nan], np.float32)
OTHER = np.roll(REAL, 11)
OF_NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power",
            "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
ONE = {  # functions of one number, by their names in math: the least and the largest number tried
    **dict.fromkeys("trunc isinf isfinite degrees radians expm1 atan exp exp2 sin cos tan sinh cosh tanh floor ceil "
                    "isnan fabs".split(), (-np.inf, np.inf)),
    **dict.fromkeys("log log2 log10 sqrt".split(), (0, np.inf)),
    "log1p": (-0.9999, np.inf), "asin": (-1, 1), "acos": (-1, 1), "asinh": (-np.inf, np.inf), "acosh": (1, np.inf),
    "atanh": (-1, 1),
}


def near(got, exact):
    with np.errstate(all="ignore"):
        within_ulp(got, exact, 4)


@clause("ELT-14.math", "ELT-15.numpy")
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name):
    low, high = ONE[name]
    x = np.where((low <= REAL) & (high >= REAL) | np.isnan(REAL), REAL, np.float32(0.625))
    of_math, of_numpy = getattr(math, name, None), getattr(np, OF_NUMPY.get(name, name))
    with np.errstate(all="ignore"):
        want = of_numpy(x.astype(float)).astype(float)
    for f in filter(None, (of_math, of_numpy)):
        near(applied(lambda v, f=f: f(v), x, out=np.float32), want)


@clause("ELT-14.math", "ELT-15.numpy")
@pytest.mark.parametrize("name", ["fmod", "copysign", "hypot", "atan2", "pow"])
def test_functions_of_two_numbers(name):
    of_math, of_numpy = getattr(math, name), getattr(np, OF_NUMPY.get(name, name))
    x, y = np.meshgrid(REAL, OTHER)
    if name == "pow":
        x, y = np.abs(x), np.clip(y, -3, 3)
    if name == "fmod":
        x, y = np.where(np.isfinite(x), x, 9), np.where(np.abs(y) > 1e-4, y, 3)
    if name == "copysign":
        y = np.where(np.isnan(y), 1, y)
    x, y = x.ravel().astype(np.float32), y.ravel().astype(np.float32)
    with np.errstate(all="ignore"):
        want = of_numpy(x.astype(float), y.astype(float))
    for f in (of_math, of_numpy):
        got = applied(lambda v, w, f=f: f(v, w), x, y, out=np.float32)
        near(got, want)
        if name in ("copysign", "fmod"):
            assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


INTEGERS = ("add subtract multiply floor_divide remainder mod bitwise_and bitwise_or bitwise_xor equal not_equal less "
            "less_equal greater greater_equal maximum minimum fmax fmin gcd logical_and logical_or logical_xor").split()


@clause("ELT-15.numpy")
@pytest.mark.parametrize("name", INTEGERS)
def test_functions_of_two_integers(name):
    f, y = getattr(np, name), np.where(Y == 0, 5, Y) if name in ("floor_divide", "remainder", "mod") else Y
    same_bits(applied(lambda v, w: f(v, w), X, y), f(X, y).astype(np.int32))


@clause("ELT-15.numpy")
@pytest.mark.parametrize("name", ["negative", "positive", "invert", "absolute", "square", "sign", "logical_not"])
def test_functions_of_one_integer(name):
    f = getattr(np, name)
    same_bits(applied(lambda v: f(v), X), f(X).astype(np.int32))


@clause("ELT-14.math", "ELT-15.numpy")
def test_other_functions():
    x = np.arange(-16, 16, dtype=np.float32) / 4
    same_bits(applied(lambda v: np.rint(v), x, out=np.float32), np.rint(x))
    same_bits(applied(lambda v: round(v), x, out=np.float32), np.rint(x))
    same_bits(applied(lambda v: np.sign(v), x, out=np.float32), np.sign(x))
    same_bits(applied(lambda v: np.clip(v, -1.5, 2), x, out=np.float32), np.clip(x, -1.5, 2))
    same_bits(applied(lambda v: np.clip(v, -7, 20), X), np.clip(X, -7, 20))
    same_bits(applied(lambda v: np.reciprocal(v), x + 8, out=np.float32), 1 / (x + 8))
    same_bits(applied(lambda v: np.divide(v, 3) + np.true_divide(v, 7), x, out=np.float32),
              (x / np.float32(3)) + (x / np.float32(7)))
    same_bits(applied(lambda v, w: math.gcd(v, w), X, Y), np.gcd(X, Y))
    same_bits(applied(lambda v, w: np.left_shift(v, 2) + np.right_shift(v, abs(w)), X, Y), (X << 2) + (X >> np.abs(Y)))
    same_bits(applied(lambda v, w: np.where(v > w, v, w), X, Y), np.maximum(X, Y))
    same_bits(applied(lambda v, w: sum((v, w, 3)) + sum((v, w), w) + pow(w, 2), X, Y), X * 2 + Y * 3 + 3 + Y * Y)
    same_bits(applied(lambda v: int() + float() + v, x, out=np.float64), x.astype(float))

    def zeros(v):
        whole, real = v + int(), v + float()
        ct.static_assert(whole.dtype == ct.int32 and real.dtype == ct.float32)
        return v

    applied(zeros, X)
    same_bits(applied(lambda v: np.power(v, 3), X), X**3)
    same_bits(applied(lambda v, w: math.pow(v, w), np.abs(X), Y * 0 + 2, out=np.float64), X.astype(float) ** 2)
    refuses("TileTypeError", kernel_of(lambda v: math.fmod(v)), X, X, match="fmod")
    refuses("TileTypeError", kernel_of(lambda v: np.maximum(v)), X, X)
    refuses("TileTypeError", kernel_of(lambda v: sum(v)), X, X, match="tuple")
    refuses("TileTypeError", kernel_of(lambda v: float(v, v)), X, X)


def kernel_of(f):
    @ct.kernel
    def k(a, o):
        ct.store(o, 0, ct.elementwise(f)(ct.load(a, 0, 8)))
    return k


@clause("ELT-20.fma")
def test_products_are_fused():
    x = np.full(8, 1 + 2**-12, np.float32)
    same_bits(applied(lambda v: v * v - 1 if v > 0 else v, x, out=np.float32),
              np.full(8, float(x[0]) ** 2 - 1, np.float32))


def larger(p, q):
    if abs(p) > abs(q):
        return p
    return q


@clause("ELT-21.reduce", "ELT-21.scan")
def test_reductions_and_scans():
    @ct.kernel
    def k(a, o):
        x = ct.load(a, 0, 32)
        ct.store(o, 0, ct.scan(x, 0, ct.elementwise(larger), 0) + ct.reduce(x, 0, ct.elementwise(larger), 0))
    x = np.random.default_rng(1).permutation(np.arange(1, 33)).astype(np.int32) * np.where(np.arange(32) % 3, 1, -1)
    x = x.astype(np.int32)
    want, most = [], None
    for v in x.tolist():
        most = v if most is None else larger(most, v)
        want.append(most)
    same_bits(run(k, x, np.zeros(32, np.int32)), np.array(want, np.int32) + most)


def stores(x, a):
    ct.scatter(a, 0, x)
    return x


def prints(x, a):
    print(x)
    return x


def asserts(x, a):
    ct.assert_(x > 0)
    return x


def half(x, a):
    if x > 0:
        return x


def undefined(x, a):
    if x > 0:
        y = x
    return y


@pytest.mark.parametrize("f, error", [
    *(pytest.param(f, "TileSyntaxError", marks=clause("ELT-10.effect")) for f in (stores, prints, asserts)),
    pytest.param(half, "TileTypeError", marks=clause("ELT-1.number")),
    pytest.param(undefined, "TileTypeError", marks=clause("ELT-3.undefined"))])
def test_refusals(f, error):
    @ct.kernel
    def k(a):
        ct.store(a, 0, ct.elementwise(f)(ct.load(a, 0, 8), a))
    refuses(error, k, X)


def counted(v, counts):
    if v > 3:
        for i in range(v - 3):
            ct.atomic_add(counts, i, 1)
    ct.atomic_add(counts, 9, 1)
    return v


@clause("ELT-10.atomic")
@pytest.mark.parametrize("masked", [False, True])
def test_atomic_updates(masked):
    @ct.kernel
    def k(a, counts):
        x = ct.load(a, 0, 16)
        mask = x != 5 if masked else None
        ct.store(a, 0, ct.elementwise(lambda v: counted(v, counts), x, mask=mask))
    x = np.array([1, 2, 3, 4, 5, 6, 6, 7, 5, 4, 3, 2, 1, 9, 4, 4], np.int32)
    runs = [v for v in x.tolist() if not masked or v != 5]
    want = [sum(v > 3 + i for v in runs) for i in range(9)] + [len(runs)]
    counts = run(k, x, np.zeros(10, np.int32))
    same_bits(counts, np.array(want, np.int32))


@clause("ELT-10.atomic")
@pytest.mark.parametrize("check_bounds", [True, False])
def test_atomic_updates_in_branches(check_bounds):
    """Elements that do not enter a branch change nothing, whatever the array holds at its ends."""
    def counted_in(v, counts):
        if v > 3:
            ct.atomic_add(counts, v, 1, check_bounds=check_bounds)
        return v

    @ct.kernel
    def k(a, counts):
        part = counts.slice(0, 2, 14)
        ct.store(a, 0, ct.elementwise(lambda v: counted_in(v, part))(ct.load(a, 0, 8)))

    counts = run(k, np.array([1, 2, 5, 4, 11, 5, 3, -1], np.int32), np.zeros(16, np.int32))
    same_bits(counts, np.bincount([2 + v for v in (5, 4, 11, 5)], minlength=16).astype(np.int32))


@clause("ELT-10.item")
def test_elements_of_arrays():
    @ct.kernel
    def k(a, table, o):
        ct.store(o, 0, ct.elementwise(lambda i: table[i] if i < 4 else table[0])(ct.load(a, 0, 8)))
    x, table = np.array([3, 0, 2, 1, 7, 8, 9, 2], np.int32), np.array([1.5, 2, 3, -4], np.float32)
    same_bits(run(k, x, table, np.zeros(8, np.float32)), table[np.where(x < 4, x, 0)])


@clause("ELT-10.tile")
def test_tiles_from_around():
    @ct.kernel
    def k(a):
        t = ct.load(a, 0, 8)
        ct.store(a, 0, ct.elementwise(lambda v: v + t)(t))
    refuses("TileTypeError", k, X)


@clause("ELT-21.loop")
def test_loops_in_reductions():
    def doubled(p, q):
        while p < q:
            p = p * 2
        return p

    @ct.kernel
    def k(a):
        ct.store(a, 0, ct.reduce(ct.load(a, 0, 8), 0, ct.elementwise(doubled), 0))
    refuses("TileSyntaxError", k, X)

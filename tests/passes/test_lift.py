"""Lifted element functions compute what the functions compute for single elements, and no node of theirs is left."""

from __future__ import annotations

import math
import random
import warnings

import numpy as np
import pytest

import cutile as ct
from cutile.ir.check import check
from cutile.ir.nodes import For, Frame, If, Op, While
from cutile.ir.walk import walk
from cutile.ops import arithmetic
from cutile.passes.fma import fma
from cutile.passes.lift import lift
from tests.elements import applied, under_debugger
from tests.front.compiling import A1, AI, I32, typed
from tests.gpu.tileir.rules.small_kernels import assemble, tile
from tests.gpu.tileir.tool import needs_tool
from tests.seeds import seeds

N = 48
INTS = np.random.default_rng(1).integers(-30, 60, N).astype(np.int32)
MORE = np.random.default_rng(2).integers(-4, 5, N).astype(np.int32)
X, Y = INTS.astype(np.float32) / 4, MORE.astype(np.float32) / 2


def nested(x, y):
    if x > 0:
        if x > 20:
            return 1
        z = 2 * y
    elif y < 0:
        z = y - x
    else:
        return x
    return z + 1


def collatz(n):
    n = max(n, 1)
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def divisor(n):
    for d in range(2, n):
        if d * d > n:
            break
        if n % d == 0:
            return d
    return n


def skipping(x, y):
    total = 0
    for i in range(6):
        if i == y:
            continue
        if total > x:
            break
        total += i
    return total


def twice(x, y):
    found = -1
    i = 0
    while True:
        j = 0
        while j < 4:
            if i * j > x:
                found = i * 10 + j
                break
            j += 1
        if found >= 0 or i > 6:
            return found
        i += 1


def left_early(x, y):
    for i in range(8):
        if x > 0:
            if i > y:
                return i
        else:
            if i == 3:
                break
        x = x - 1
    return x


def guarded(x, y):
    return x // y if y != 0 and x > 3 else x % (y if y else 7)


def called(x, y):
    def inner(v):
        if v < 0:
            return -v
        return v * y
    return inner(x) + inner(y)


def once(x, y):
    while True:
        x += 1
        for _ in range(2):
            if y > 2:
                break
            x += y
        if x > 20:
            x -= 7
            break
        y = x
        break
    return x - y


def tuples(x, y):
    p, q = (x, y) if x < y else (y, x)
    return p * 3 + q


FUNCTIONS = [nested, skipping, twice, left_early, guarded, called, tuples, once, lambda x, y: collatz(x), lambda x, y:
             divisor(x), lambda x, y: x if 2 < x < 20 or y == 1 else y, lambda x, y: max(x, y) - min(x, y, 0)]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_integers_give_what_python_gives(f):
    assert applied(f, INTS, MORE, out=np.int32).tolist() == [f(int(x), int(y)) for x, y in zip(INTS, MORE, strict=True)]


@pytest.mark.parametrize("f", [nested, skipping, left_early, called, tuples])
def test_floats_give_what_python_gives(f):
    assert applied(f, X, Y).tolist() == [f(float(x), float(y)) for x, y in zip(X, Y, strict=True)]


@seeds(20, 400)
def test_random_functions(seed):
    """Random nests of branches, loops and exits."""
    f = random_function(random.Random(seed))
    got = applied(f, INTS, MORE, out=np.int32)
    assert got.tolist() == [f(int(x), int(y)) for x, y in zip(INTS, MORE, strict=True)]


@seeds(20, 400)
def test_random_functions_of_a_float_and_an_integer(seed):
    """Variables hold floats on some paths and integers on others."""
    f = random_function(random.Random(seed))
    assert applied(f, X, MORE).tolist() == [f(float(x), int(y)) for x, y in zip(X, MORE, strict=True)]


def random_function(r: random.Random):
    """A function of two small numbers, whose values stay small."""
    lines: list[str] = ["def f(x, y):", "    z, w, t = 0, 1, (y, x)"]

    def value() -> str:
        return r.choice(["x", "y", "z", "w", "t[0]", "t[1]", str(r.randint(-3, 5))])

    def condition() -> str:
        one = f"{value()} {r.choice(['<', '>', '==', '!=', '<='])} {value()}"
        return one if r.random() < 0.6 else f"{one} {r.choice(['and', 'or'])} not {value()} < {value()}"

    def block(depth: int, indent: str, looping: bool) -> None:
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if kind < 0.4 or depth > 3:
                operation = r.choice(["({} + {}) % 50", "{} - {}", "{} // (1 + abs({}))", "max({}, {})", "{}"])
                lines.append(f"{indent}{r.choice('xyzw')} = "
                             f"({operation.format(*(value() for _ in range(3)))}) % 40")
            elif kind < 0.45:
                lines.append(f"{indent}t = {value()}, {value()}")
            elif kind < 0.7:
                lines.append(f"{indent}if {condition()}:")
                block(depth + 1, indent + "    ", looping)
                if r.random() < 0.5:
                    lines.append(f"{indent}else:")
                    block(depth + 1, indent + "    ", looping)
            elif kind < 0.85:
                if r.random() < 0.6:
                    lines.append(f"{indent}for i{depth} in range({r.choice(['3', 'int(x) % 5', 'int(w) % 4'])}):")
                else:
                    lines.extend([f"{indent}n{depth} = 0", f"{indent}while n{depth} < 4 and ({condition()}):",
                                  f"{indent}    n{depth} += 1"])
                block(depth + 1, indent + "    ", True)
                if r.random() < 0.3:
                    lines.append(f"{indent}else:")
                    block(depth + 1, indent + "    ", looping)
            elif looping and kind < 0.93:
                lines.append(f"{indent}if {condition()}: {r.choice(['break', 'continue'])}")
            else:
                lines.append(f"{indent}if {condition()}: return {value()}")
    block(0, "    ", False)
    lines.append(f"    return {value()}")
    return defined("\n".join(lines))


def defined(source: str):
    import linecache

    name = f"<random {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict = {}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def lifted(fn, *kinds):
    kernel = lift(fma(typed(fn, *kinds)))
    check(kernel)
    assert not any(isinstance(n, Op) and n.op is ct.elementwise for n in walk(kernel.body))
    return kernel


def kinds_in(kernel) -> set[type]:
    return {type(n) for n in walk(kernel.body)} & {If, For, While, Frame}


def test_branches_become_selects():
    def kernel(a):
        x = ct.load(a, (0,), (16,))
        ct.store(a, (0,), ct.elementwise(lambda v: v * 2 if v > 0 else -v)(x))

    made = lifted(kernel, A1)
    assert kinds_in(made) == set()
    assert sum(isinstance(n, Op) and n.op is ct.where for n in walk(made.body)) == 1


def test_what_all_elements_share_stays():
    """A branch and a loop on numbers from outside stay; the loop is no masked one."""
    def kernel(a, n):
        def f(v):
            total = v
            for i in range(n):
                total = total + i
            return total if n > 3 else v
        ct.store(a, (0,), ct.elementwise(f)(ct.load(a, (0,), (16,))))

    assert kinds_in(lifted(kernel, A1, I32)) == {If, For}


def test_scalars_stay_branches():
    def kernel(a, n):
        ct.scatter(a, 0, ct.elementwise(lambda v: v + 1 if v > 0 else v)(n))

    assert If in kinds_in(lifted(kernel, AI, I32))


@needs_tool
def test_gpu_code_is_assembled():
    """Branches, loops with exits, and functions that branch in reductions and scans."""
    def of_floats(x):
        def larger(p, q):
            if abs(p) > abs(q):
                return p
            return q
        return (ct.elementwise(nested)(x, x + 1), ct.elementwise(left_early)(x, x), ct.reduce(x, 0, ct.elementwise(
            larger), 0), ct.scan(x, 0, ct.elementwise(larger), 0))

    def of_integers(x):
        return (ct.elementwise(twice)(x, x), ct.elementwise(skipping)(x, x - 8), ct.elementwise(guarded)(x, x),
                ct.elementwise(collatz)(x), ct.elementwise(divisor)(x))

    assemble([(of_floats, (tile(ct.float32),)), (of_integers, (tile(ct.int32),)),
              (of_integers, (tile(ct.int64, 4, 4),))])


def test_kernels_without_element_functions_stay_the_same():
    def kernel(a):
        ct.store(a, (0,), ct.load(a, (0,), (16,)) * 2)

    plain = typed(kernel, A1)
    assert lift(plain) is plain


def test_products_are_fused_before():
    """x*y + z is one rounding in both ways, as in the function called on numbers."""
    x, y = np.float32(1 + 2 ** -12) * np.ones(4, np.float32), np.full(4, 1 - 2 ** -12, np.float32)
    exact = math.fma(float(x[0]), float(y[0]), -1.0) if hasattr(math, "fma") else float(x[0]) * float(y[0]) - 1
    assert applied(lambda a, b: a * b - 1 if a > 0 else a, x, y, tile=4).tolist() == [exact] * 4


@pytest.mark.parametrize("f", [
    lambda x, y: x // y if y != 0 else 0, lambda x, y: x % y if y != 0 else 0,
    lambda x, y: 1 << x if 0 <= x < 20 else 0, lambda x, y: 0 if y == 0 else ct.cdiv(x, y)])
def test_the_side_that_is_not_taken_does_not_trap(f):
    """Integer divisors and shifts of elements elsewhere are harmless, and nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = applied(f, INTS, MORE, out=np.int32)

    def plain(x, y):
        return -(-x // y) if f is not None and y else 0
    want = [f(int(x), int(y)) if "cdiv" not in f.__code__.co_names else plain(int(x), int(y))
            for x, y in zip(INTS, MORE, strict=True)]
    assert got.tolist() == want


def second_operands(kernel, op) -> list:
    """The names of the ops that make the second operands of an op."""
    made = {v: n for n in walk(kernel.body) if isinstance(n, Op) for v in n.results}
    return [made[n.operands[1]].op.name for n in walk(kernel.body) if isinstance(n, Op) and n.op is op]


def test_divisors_are_chosen_by_the_mask():
    """Also those that all elements share, and constants that may trap: the least integer by -1 overflows."""
    def kernel(a, n):
        ct.store(a, (0,), ct.elementwise(lambda v: v // n if v > 0 else v // -1)(ct.load(a, (0,), (16,))))

    assert second_operands(lifted(kernel, AI, I32), ct.floordiv) == ["where", "where"]


def test_shifts_are_chosen_by_the_mask():
    def kernel(a, n):
        ct.store(a, (0,), ct.elementwise(lambda v: v >> n if v > 0 else v >> 32)(ct.load(a, (0,), (16,))))

    assert second_operands(lifted(kernel, AI, I32), ct.bitwise_rshift) == ["where", "where"]


@pytest.mark.parametrize("op, f", [
    (ct.floordiv, lambda v: v // 2), (ct.mod, lambda v: v % 7), (ct.cdiv, lambda v: ct.cdiv(v, 4)),
    (arithmetic.divmod, lambda v: divmod(v, 3)[1]),
    (ct.bitwise_rshift, lambda v: v >> 0), (ct.bitwise_lshift, lambda v: v << 31)])
def test_constants_that_do_no_harm_stay(op, f):
    """By a constant, compilers divide in a few instructions."""
    def kernel(a):
        ct.store(a, (0,), ct.elementwise(lambda v: f(v) if v > 0 else v)(ct.load(a, (0,), (16,))))

    assert second_operands(lifted(kernel, AI), op) == ["broadcast_to"]


@pytest.mark.parametrize("f, checks", [
    (lambda o, v: ct.atomic_add(o, v, 1, check_bounds=False), False),
    (lambda o, v: ct.atomic_add(o, v, 1, check_bounds=False) if v > 0 else v, True),
    (lambda o, v: ct.atomic_add(o, v, 1) if v > 0 else v, True)], ids=["all", "some", "checked"])
def test_atomics_of_some_elements_check_bounds(f, checks):
    """The others have an index out of range."""
    def kernel(a, o):
        ct.store(a, (0,), ct.elementwise(lambda v: f(o, v))(ct.load(a, (0,), (16,))))

    (made,) = [n for n in walk(lifted(kernel, AI, AI).body) if isinstance(n, Op) and n.op is ct.atomic_add]
    assert made.attrs["check_bounds"] is checks


@pytest.mark.parametrize("schedule", ["batch", "block"])
def test_loads_are_masked(schedule, monkeypatch):
    """An index out of range in the side that is not taken is neither read nor reported."""
    monkeypatch.setenv("CUTILE_SCHEDULE", schedule)

    @ct.kernel
    def kernel(table, idx, o):
        i = ct.load(idx, (0,), (8,))

        def f(k):
            if 0 <= k < 4:
                return ct.gather(table, k, check_bounds=False)
            return -1.0
        ct.store(o, (0,), ct.elementwise(f)(i))

    table, out = np.arange(4, dtype=np.float32) * 10, np.zeros(8, np.float32)
    with ct.sanitize("all"):
        ct.launch(None, (1,), kernel, (table, np.array([0, 1 << 30, 3, -9, 2, 4, 1, -1], np.int32), out))
    assert out.tolist() == [0, -1, 30, -1, 20, -1, 10, -1]


def test_in_reductions_and_scans():
    """A function that branches, without branches left; and its own bits."""
    def larger(p, q):
        if abs(p) > abs(q):
            return p
        return q

    def kernel(a, o):
        x = ct.load(a, (0,), (32,))
        ct.store(o, (0,), ct.scan(x, 0, ct.elementwise(larger), 0) + ct.reduce(x, 0, ct.elementwise(larger), 0))

    assert kinds_in(lifted(kernel, A1, A1)) == set()
    x, o = X[:32].copy(), np.zeros(32, np.float32)
    ct.launch(None, (1,), ct.kernel(kernel), (x, o))
    scan = [x[0]]
    for v in x[1:]:
        scan.append(larger(scan[-1], v))
    assert o.tolist() == [s + max(x, key=abs) for s in scan]


def test_masks():
    """Divisors of masked elements are harmless, and their results zero, in both ways."""
    @ct.kernel
    def kernel(a, b, o):
        x, y = ct.load(a, (0,), (16,)), ct.load(b, (0,), (16,))
        n, v = ct.elementwise(lambda p, q: (p // q, collatz(p)))(x, y, mask=y > 0)
        ct.store(o, (0,), n + v)
    x, y = INTS[:16], MORE[:16]
    want = [int(p) // int(q) + collatz(int(p)) if q > 0 else 0 for p, q in zip(x, y, strict=True)]
    for run in (lambda o: ct.launch(None, (1,), kernel, (x, y, o)),
                lambda o: under_debugger(lambda: ct.launch(None, (1,), kernel, (x, y, o)))):
        o = np.ones(16, np.int32)
        run(o)
        assert o.tolist() == want


def test_several_axes_and_several_results():
    @ct.kernel
    def kernel(a, o):
        x = ct.load(a, (0, 0), (4, 8))

        def steps(v, w):
            n = 0
            while v > w:
                v, n = v / 2, n + 1
            return n, v
        n, v = ct.elementwise(steps)(x, ct.load(a, (0, 0), (1, 8)))
        ct.store(o, (0, 0), n + v)

    a, o = np.abs(X[:32].reshape(4, 8)) + 1, np.zeros((4, 8), np.float32)
    ct.launch(None, (1,), kernel, (a, o))

    def steps(v, w):
        n = 0
        while v > w:
            v, n = v / 2, n + 1
        return n + v
    assert np.array_equal(o, np.vectorize(steps)(a, a[:1]).astype(np.float32))


def test_blocks_end_at_different_times():
    """Each block goes on until its own elements are done, also where the batch runs many."""
    assert applied(collatz, np.arange(1, 401, dtype=np.int32), out=np.int32, tile=8).tolist() == [
        collatz(n) for n in range(1, 401)]


def test_the_limit_of_steps_holds():
    """A loop that does not end for one element is stopped under CUTILE_STEP_LIMIT."""
    @ct.kernel
    def kernel(o):
        def f(v):
            while v != 1:
                v = v
            return v
        ct.store(o, (0,), ct.elementwise(f)(ct.full((4,), 2, ct.int32)))

    with pytest.MonkeyPatch.context() as m, pytest.raises(ct.TileStepLimitError):
        m.setenv("CUTILE_STEP_LIMIT", "1000")
        ct.launch(None, (1,), kernel, (np.zeros(4, np.int32),))


@pytest.mark.parametrize("f", [lambda v: ct.reshape(v, ()) + 1, lambda v: ct.broadcast_to(v, ()) + 1,
                               lambda v: ct.full((), v, ct.int32) + 1], ids=["reshape", "broadcast_to", "full"])
def test_ops_that_give_the_element_itself(f):
    numbers = np.arange(16, dtype=np.int32)
    assert applied(f, numbers, out=np.int32).tolist() == (numbers + 1).tolist()

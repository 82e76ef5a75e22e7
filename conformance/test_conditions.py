"""Which values can be conditions."""

import dataclasses
import enum
import math

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, named, refuses, run
from conformance.harness.tile_code import body, rejects, result, takes
from conformance.harness.type_probes import constant_is


class Truth(enum.Enum):
    ZERO = 0
    ONE = 1


class Falsy(enum.Enum):
    NO = 0
    YES = 1

    def __bool__(self):
        return self.value == 1


@dataclasses.dataclass(frozen=True)
class Empty:
    pass


def some_function():
    pass


def by_if(c):
    if c:
        r = 1
    else:
        r = 0
    return r


def by_while(c):
    r = 0
    while c:
        r = 1
        break
    return r


def by_ternary(c):
    return 1 if c else 0


def by_and(c):
    return c and True


def by_or(c):
    return c or False


def by_bool(c):
    return bool(c)


WAYS = [pytest.param(f, marks=clause(f"COND-1.where.{name}"), id=name + f.__name__) for name, f in (
    ("if", by_if), ("while", by_while), ("ternary", by_ternary), ("and", by_and), ("and", by_or), ("bool", by_bool))]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value, want", [
    pytest.param(True, 1, marks=clause("COND-1.bool")), pytest.param(False, 0, marks=clause("COND-1.bool")),
    pytest.param(5, 1, marks=clause("COND-1.int")), pytest.param(0, 0, marks=clause("COND-1.int")),
    pytest.param(-1, 1, marks=clause("COND-1.int")), pytest.param(256, 1, marks=clause("COND-1.int")),
    pytest.param(0.25, 1, marks=clause("COND-1.float")), pytest.param(0.0, 0, marks=clause("COND-1.float")),
    pytest.param(-0.0, 0, marks=clause("COND-1.float")), pytest.param(1e-40, 1, marks=clause("COND-1.float")),
    pytest.param(math.nan, 1, marks=clause("COND-1.nan")), pytest.param(math.inf, 1, marks=clause("COND-1.float"))],
    ids=named)
def test_numbers_at_run_time(way, value, want):
    assert result(lambda c: way(c), value) == want


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value, want", [
    pytest.param(True, 1, marks=clause("COND-1.bool")), pytest.param(False, 0, marks=clause("COND-1.bool")),
    pytest.param(5, 1, marks=clause("COND-1.int")), pytest.param(0, 0, marks=clause("COND-1.int")),
    pytest.param(0.5, 1, marks=clause("COND-1.float")), pytest.param(0.0, 0, marks=clause("COND-1.float")),
    pytest.param(math.nan, 1, marks=clause("COND-1.nan")),
    pytest.param("a", 1, marks=clause("COND-1.str")), pytest.param("", 0, marks=clause("COND-1.str")),
    pytest.param((0,), 1, marks=clause("COND-1.tuple")), pytest.param((), 0, marks=clause("COND-1.tuple")),
    pytest.param(None, 0, marks=clause("COND-1.none")),
    pytest.param(Truth.ZERO, 1, marks=clause("COND-1.enum")), pytest.param(Truth.ONE, 1, marks=clause("COND-1.enum")),
    pytest.param(Empty(), 1, marks=clause("COND-1.dataclass")),
    pytest.param(some_function, 1, marks=clause("COND-1.function")),
    pytest.param(ct.float32, 1, marks=clause("COND-1.dtype"))], ids=named)
def test_constants(way, value, want):
    def f():
        r = way(value)
        ct.static_assert(r == want)
        return r

    constant_is(f, *((want, "int32") if way in (by_if, by_ternary, by_while) else (bool(want), "bool_")))


@clause("COND-1.str")
def test_formatted_strings():
    """A formatted string is empty where Python's is; a number that is known at run time has digits."""
    def f(n):
        def is_true(x):
            return 1 if x else 0

        empty, full = "", "a"
        return (is_true(""), is_true(f"{empty}"), is_true(f"{empty}{f'{empty}'}"), is_true("" + f"{empty}"),
                is_true(f"{full}"), is_true(f"{n}"), is_true(f"{empty}{n}"), is_true(f"{()}"), is_true(f"{None}"),
                is_true(f"{n:d}"), is_true(f"{empty}b"))

    assert result(f, 3) == [0] * 4 + [1] * 7


REFUSED = {
    "tile": lambda a, xs: ct.zeros((2,), ct.int32), "list": lambda a, xs: xs, "array": lambda a, xs: a,
    "view": lambda a, xs: a.tiled_view((2,)), "range": lambda a, xs: range(3),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [pytest.param(f, marks=clause(f"COND-1.{n}"), id=n) for n, f in REFUSED.items()])
def test_what_is_no_condition(way, make):
    @ct.kernel
    def k(a, xs):
        way(make(a, xs))

    refuses("TileTypeError", k, np.zeros(4, np.int32), [np.zeros(4, np.int32)])


@clause("COND-1.tile")
@pytest.mark.parametrize("shape", [(1,), (1, 1), (2, 2)])
def test_tiles_of_one_element(shape):
    for way in (by_if, by_while, by_ternary, by_and, by_bool):
        rejects("TileTypeError", lambda n, way=way: way(ct.full(shape, n, ct.bool_)), True)


@clause("COND-1.int")
@pytest.mark.parametrize("dtype", [ct.int8, ct.uint8, ct.int64, ct.uint64, ct.float16, ct.bfloat16, ct.float64])
def test_dtypes_of_conditions(dtype):
    assert result(lambda n: (by_if(n.astype(dtype)), by_bool(n.astype(dtype)), by_while((n - 3).astype(dtype))), 3) == [
        1, 1, 0]


@clause("COND-2.branch")
def test_branches_that_are_not_compiled():
    takes(body("""
        if None:
            nothing()
        elif (1, 2):
            x = 1
        else:
            sorted(n)
        return x
    """), 1)
    rejects("TileSyntaxError", body("if n:\n    nothing()\nreturn n"), 1)


@clause("COND-2.constant")
def test_constants_from_a_branch():
    def f(n):
        if "a":
            size = 4
        else:
            size = n
        return ct.zeros((size,), ct.int32)

    takes(f, 1)


@clause("COND-1.where.if")
def test_blocks_take_different_branches():
    @ct.kernel
    def k(out):
        b = ct.bid(0)
        if b % 3 == 0:
            r = b * 10
        elif b % 3 == 1:
            r = -b
        else:
            r = 7
        ct.store(out, b, r)

    assert run(k, np.zeros(7, np.int32), grid=(7,)).tolist() == [0, -1, 7, 30, -4, 7, 60]
    accepts(k, np.zeros(7, np.int64))

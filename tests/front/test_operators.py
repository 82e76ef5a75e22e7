"""Operators on tuples, strings, dtypes, enums and dataclasses [CV-1…6, DC-3, DT-1]."""

import dataclasses
import enum

import numpy as np
import pytest

import cutile as ct
from tests.front.compiling import A1, A2, F32, I32, cell, constant, refused, result


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class Name(enum.StrEnum):
    RELU = "relu"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass(frozen=True)
class Vector:
    x: int
    y: int = 0

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __radd__(self, other):
        return Vector(other + self.x, self.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    def __neg__(self):
        return Vector(0 - self.x, 0 - self.y)

    def __lt__(self, other):
        return self.x < other.x


@dataclasses.dataclass(frozen=True, order=True)
class Key:
    a: int
    b: int = 0


@dataclasses.dataclass(frozen=True)
class Other:
    a: int
    b: int = 0


def test_tuples():  # CV-1
    def f():
        return ((1, 2) + (3,), (1, (2, "a")) == (1, (2, "a")), (1, 2) == (1, 2, 3), (1, 2) != (1, 3), () == (),
                (1, 2) == (1, 2.0))

    assert constant(f) == ((1, 2, 3), True, False, True, True, True)

    def run(n):
        return ((n, 2) == (5, 2)) * 1 + ((n, n) != (5, 5)) * 2 + ((n, 1) == (5, 2)) * 4

    assert [int(result(run, n)) for n in (5, 6)] == [1, 2]


@pytest.mark.parametrize(
    "source",
    [
        "(1, 2) * 2",
        "2 * (1, 2)",
        "(1, 2) < (1, 3)",
        "(1, 2) - (1,)",
        "(1,) == 1",
        "(1,) + 1",
        "'a' + 1",
        "'a' * 2",
        "'a' == 1",
        "'a' < 1",
        "None + 1",
        "-'a'",
        "-None",
        "ct.int8 == 3",
        "ct.int8 < ct.int16",
        "Color.RED < Color.BLUE",
        "Color.RED + 1",
        "len + 1",
        "range(3) + 1",
        "slice(1, 2, None) + 1",
        "... + 1",
    ],
)
def test_unsupported(source):  # CV-1, CV-3, CV-5, DT-1, EX-8
    refused(cell(f"def k(): {source}", Color=Color)["k"], at=source, says="unsupported operand")


def test_strings():  # CV-5
    def f():
        return "a" + "b", "a" == "a", "a" != "a", "a" < "b", "b" <= "a", ",".join(("x", "y", "z")), "-".join(())

    assert constant(f) == ("ab", True, False, True, False, "x,y,z", "")


@pytest.mark.parametrize("source", ["'a'[0]", "len('a')", "'a'.upper()", "'a' in 'ab'", "'a'[0:1]", "','.join('ab')"])
def test_refused_on_strings(source):  # CV-5
    refused(cell(f"def k(): {source}")["k"])


def test_dtypes():  # DT-1, DT-8
    def f():
        return (ct.float32 == np.float32, ct.float32 != ct.float16, np.int8 == ct.int8, ct.int8 in (ct.int16, np.int8))

    assert constant(f) == (True, True, True, True)


def test_enums():  # CV-3
    def f():
        c = Color(1)
        return (
            c == Color.RED,
            c != Color.BLUE,
            Color("b").name,
            Color.BLUE.value,
            Level.HIGH + 1,
            (7, 8, 9)[Level.LOW],
        )

    assert constant(f) == (True, True, "BLUE", "b", 3, 8)

    def g():
        n = Name("relu")
        return (n == Name.RELU, n == "relu", "relu" != n, n in ("relu", "gelu"), n.name, n.value, n + "6", n < "s")

    assert constant(g) == (True, True, False, True, "RELU", "relu", "relu6", True)
    space = {"Color": Color}
    refused(cell("def k(n): Color(n)", **space)["k"], I32, says="needs a constant")
    refused(cell("def k(): Color(77)", **space)["k"], cls=ct.TileValueError, says="77 is not a valid Color")
    refused(cell("def k(): Color['RED']", **space)["k"], says="cannot be subscripted")
    refused(cell("def k(): Color.GREEN", **space)["k"], says="enum Color has no member `GREEN`", help="RED, BLUE")


# ------------------------------------------------------------------ dataclasses


def test_user_defined_operators():  # DC-3
    def f(n):
        v = Vector(n, 1) + Vector(2, 3)
        w = 10 + v * 2
        u = -w
        return u.x * 100 + (v @ w) + (v < w) * 10000

    x, y = 7 + 2, 4
    wx, wy = 10 + x * 2, y * 2
    assert result(f, 7) == -wx * 100 + (x * wx + y * wy) + 10000


def test_comparisons_are_not_reflected():  # DC-3
    def k():
        Vector(2) > Vector(3)

    refused(k, says="unsupported operands for >: Vector instance and Vector instance")


def test_generated_equality():  # DC-3
    def f(n):
        return (Key(n) == Key(3)) * 1 + (Key(n) != Key(3, 0)) * 2

    assert [int(result(f, n)) for n in (3, 4)] == [1, 2]
    assert constant(lambda: (Key(1) == Key(1), Key(1) == Other(1), Key(1) != Other(1))) == (True, False, True)


@pytest.mark.parametrize("a,b", [((1, 2), (1, 3)), ((1, 2), (1, 2)), ((2, 0), (1, 9)), ((0, 5), (1, 4))])
def test_generated_order(a, b):  # DC-3
    def f(p, q):
        x, y = Key(*p), Key(*q)
        return (x < y) * 1 + (x <= y) * 2 + (x > y) * 4 + (x >= y) * 8

    want = (a < b) * 1 + (a <= b) * 2 + (a > b) * 4 + (a >= b) * 8
    assert result(f, a, b) == want
    assert constant(f, a, b) == want


def test_no_order_without_asking():  # DC-3
    def k():
        Other(1) < Other(2)

    refused(k, says="unsupported operands for <")


def test_unsupported_operator_of_a_dataclass():  # EX-8
    def k():
        Vector(1) - Vector(2)

    refused(k, at="Vector(1) - Vector(2)", says="unsupported operands for -: Vector instance and Vector instance")


# ------------------------------------------------------------------ carets


def test_array_as_an_operand():
    def k(x):
        y = x * 2
        z = -x
        return y

    e = refused(k, A2, at="x * 2", says="unsupported operands for *: float32 array of rank 2 and constant 2",
                help="ct.load(array, index=(0, 0), shape=...)", alone=False)
    assert [x.loc.line - e.loc.line for x in e.errors] == [0, 1]


def test_carets_point_at_the_operand():  # EXC-4
    def k(x):
        t = ct.load(x, 0, (4,))
        u = t + t.astype(ct.float8_e5m2)
        return u

    refused(k, A1, at="t.astype(ct.float8_e5m2)", says="Right-hand side")


@pytest.mark.parametrize("source, at", [("x & n", "x"), ("n & x", "x"), ("(n, 1)[0] | (x * 2)", "x * 2")])
def test_an_error_shows_the_operand_that_is_wrong(source, at):
    refused(cell(f"def k(n, x): {source}")["k"], I32, F32, at=at)

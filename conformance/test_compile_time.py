"""Tuples, dataclasses, enums, strings, None, dicts, slices and built-in conversions [CV]."""

import dataclasses
import enum

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, refuses, run
from conformance.harness.type_probes import constant, look, refused, same_number, static


@dataclasses.dataclass(frozen=True)
class Pair:
    a: object
    b: object = 2

    def swapped(self):
        return Pair(self.b, self.a)

    @property
    def total(self):
        return self.a + self.b

    def __add__(self, other):
        return Pair(self.a + other.a, self.b + other.b)


@dataclasses.dataclass
class Loose:
    a: int


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Level(enum.IntEnum):
    LOW = 3
    HIGH = 5


T = (1, 2, 3, 4)
PAIR = Pair(5, 6)


def many(**kwargs):
    return kwargs["a"] * 10 + kwargs["b"]


def forwarding(**kwargs):
    return many(**kwargs)


def contains(**kwargs):
    return ("a" in kwargs, "z" in kwargs, "z" not in kwargs)


def getting(**kwargs):
    return (kwargs.get("a", 7), kwargs.get("z", 7))


def missing(**kwargs):
    return kwargs["z"]


def unpacked(t):
    a, b = t
    return b * 10 + a


def row(id, f, want):
    return pytest.param(f, want, id=id, marks=clause(id))


@pytest.mark.parametrize("f, want", [
    row("CV-1.literal", lambda: (1, 2.5), (1, 2.5)),
    row("CV-1.literal", lambda: (), ()),
    row("CV-1.star", lambda: (*T, 5), (1, 2, 3, 4, 5)),
    row("CV-1.star", lambda: (0, *T[:2], *T[3:]), (0, 1, 2, 4)),
    row("CV-1.concat", lambda: (1, 2) + (3,), (1, 2, 3)),
    row("CV-1.eq", lambda: T == (1, 2, 3, 4), True),
    row("CV-1.eq", lambda: T == (1, 2, 3, 5), False),
    row("CV-1.eq", lambda: (1, (2, 3)) == (1, (2, 3)), True),
    row("CV-1.eq", lambda: (1, (2, 3)) == (1, (2, 4)), False),
    row("CV-1.eq", lambda: ("a", ct.int8) == ("a", ct.int8), True),
    row("CV-1.ne", lambda: T != (1, 2, 3, 4), False),
    row("CV-1.ne", lambda: T != (0, 2, 3, 4), True),
    row("CV-1.length", lambda: T == (1, 2), False),
    row("CV-1.length", lambda: T != (1, 2), True),
    row("CV-1.in", lambda: 3 in T, True),
    row("CV-1.in", lambda: 7 in T, False),
    row("CV-1.not_in", lambda: 3 not in T, False),
    row("CV-1.not_in", lambda: 7 not in T, True),
    row("CV-1.item", lambda: T[2], 3),
    row("CV-1.item", lambda: T[ct.int8(0)], 1),
    row("CV-1.negative", lambda: T[-1], 4),
    row("CV-1.negative", lambda: T[-4], 1),
    row("CV-1.slice", lambda: T[1:3], (2, 3)),
    row("CV-1.slice", lambda: T[::-1], (4, 3, 2, 1)),
    row("CV-1.slice", lambda: T[-2:], (3, 4)),
    row("CV-1.slice", lambda: T[0:4:2], (1, 3)),
    row("CV-1.len", lambda: len(T), 4),
    row("CV-1.len", lambda: len(()), 0),
    row("CV-1.unpack", lambda: unpacked((1, 2)), 21),
    row("CV-1.tuple", lambda: tuple(T), (1, 2, 3, 4)),
    row("CV-1.tuple", lambda: tuple(), ()),
    row("CV-1.generator", lambda: tuple(x * x for x in ct.static_iter(T)), (1, 4, 9, 16)),
    row("CV-1.generator", lambda: tuple(x for x in ct.static_iter(range(6)) if x % 2), (1, 3, 5)),
    row("CV-1.any", lambda: len((None, "a", ct.int8, Color.RED, (), PAIR, ct.zeros((2,), ct.int8), unpacked, ...)), 9),
    row("CV-2.create", lambda: Pair(1).b, 2),
    row("CV-2.create", lambda: Pair(b=1, a=7).a, 7),
    row("CV-2.capture", lambda: PAIR.b, 6),
    row("CV-2.attribute", lambda: (Pair(1, 9).a, Pair(1, 9).b), (1, 9)),
    row("CV-2.method", lambda: Pair(1, 9).swapped().a, 9),
    row("CV-2.property", lambda: Pair(1, 9).total, 10),
    row("CV-2.operator", lambda: (Pair(1, 9) + PAIR).b, 15),
    row("CV-2.replace", lambda: dataclasses.replace(PAIR, a=1).total, 7),
    row("CV-3.member", lambda: Color.RED, Color.RED),
    row("CV-3.call", lambda: Color(2), Color.GREEN),
    row("CV-3.eq", lambda: Color.RED == Color(1), True),
    row("CV-3.eq", lambda: Color.RED == Color.GREEN, False),
    row("CV-3.eq", lambda: Color.RED != Color.GREEN, True),
    row("CV-3.name", lambda: Color.GREEN.name, "GREEN"),
    row("CV-3.value", lambda: Color.GREEN.value, 2),
    row("CV-3.intenum", lambda: Level.LOW + Level.HIGH, 8),
    row("CV-3.intenum", lambda: Level.LOW < Level.HIGH, True),
    row("CV-3.intenum", lambda: T[Level.LOW], 4),
    row("CV-5.add", lambda: "ab" + "cd", "abcd"),
    row("CV-5.eq", lambda: "ab" == "ab", True),
    row("CV-5.eq", lambda: "ab" == "ac", False),
    row("CV-5.eq", lambda: "ab" != "ac", True),
    row("CV-5.lt", lambda: "ab" < "ac", True),
    row("CV-5.lt", lambda: ("b" < "ac", "ac" < "b", "a" < "a"), (False, True, False)),
    row("CV-5.lt", lambda: ("b" > "ac", "ac" > "b", "a" > "a"), (True, False, False)),
    row("CV-5.lt", lambda: ("b" <= "ac", "ac" <= "b", "a" <= "a"), (False, True, True)),
    row("CV-5.lt", lambda: ("b" >= "ac", "ac" >= "b", "a" >= "a"), (True, False, True)),
    row("CV-5.join", lambda: "-".join(("a", "b", "c")), "a-b-c"),
    row("CV-5.join", lambda: "-".join(()), ""),
    row("CV-5.str", lambda: str("x") + str(5), "x5"),
    row("CV-5.repr", lambda: repr("x"), "'x'"),
    row("CV-5.truth", lambda: 1 if "x" else 2, 1),
    row("CV-5.truth", lambda: 1 if "" else 2, 2),
    row("CV-6.is", lambda: None is None, True),
    row("CV-6.is", lambda: None is not None, False),
    row("CV-6.is", lambda: T[0] is None, False),
    row("CV-6.is", lambda: T is not None, True),
    row("CV-6.truth", lambda: 1 if None else 2, 2),
    row("CV-7.item", lambda: many(a=3, b=4), 34),
    row("CV-7.in", lambda: contains(a=1), (True, False, True)),
    row("CV-7.get", lambda: getting(a=1), (1, 7)),
    row("CV-7.forward", lambda: forwarding(b=4, a=3), 34),
    row("CV-8.constant", lambda: T[slice(1, 4, 2)], (2, 4)),
    row("CV-9.bool", lambda: (bool(0), bool(2.5), bool("a"), bool(None), bool(), bool(ct.int8(1))),
        (False, True, True, False, False, True)),
    row("CV-9.int", lambda: (int(2.9), int(-2.9), int(True), int(), int(ct.int8(5))), (2, -2, 1, 0, 5)),
    row("CV-9.int.string", lambda: int("5"), 5),
    row("CV-9.float", lambda: (float(3), float(True), float("1.5"), float()), (3.0, 1.0, 1.5, 0.0)),
])
def test_values(f, want):
    got = static(f)
    assert got == want and repr(got) == repr(want)


@pytest.mark.parametrize("f, cls", [pytest.param(f, cls, id=id, marks=clause(id)) for id, f, cls in [
    ("CV-1.dynamic", lambda: T[ct.bid(0)], "TileTypeError"),
    ("CV-1.range", lambda: T[4], "TileTypeError"),
    ("CV-1.range", lambda: T[-5], "TileTypeError"),
    ("CV-1.slice.dynamic", lambda: T[ct.bid(0):], "TileTypeError"),
    ("CV-1.unpack.count", lambda: unpacked(T), "TileValueError"),
    ("CV-1.repeat", lambda: T * 2, "TileTypeError"),
    ("CV-1.order", lambda: T < (2, 3), "TileTypeError"),
    ("CV-2.mutable", lambda: Loose(1), "TileTypeError"),
    ("CV-3.item", lambda: Color["RED"], "TileTypeError"),
    ("CV-3.order", lambda: Color.RED < Color.GREEN, "TileTypeError"),
    ("CV-3.unknown", lambda: Color(7), "TileValueError"),
    ("CV-4.value", lambda: ct.add(ct.ones((2,), ct.float32), 1, rounding_mode="nearest_even"), "TileTypeError"),
    ("CV-4.case", lambda: ct.add(ct.ones((2,), ct.float32), 1, rounding_mode="rz"), "TileTypeError"),
    ("CV-4.other", lambda: ct.add(ct.ones((2,), ct.float32), 1, rounding_mode=ct.PaddingMode.ZERO), "TileTypeError"),
    ("CV-4.other", lambda: ct.add(ct.ones((2,), ct.float32), 1, rounding_mode=1), "TileTypeError"),
    ("CV-5.index", lambda: "abc"[0], "TileTypeError"),
    ("CV-5.slice", lambda: "abc"[1:], "TileTypeError"),
    ("CV-5.len", lambda: len("abc"), "TileTypeError"),
    ("CV-5.in", lambda: "a" in "abc", "TileTypeError"),
    ("CV-5.method", lambda: "abc".upper(), "TileTypeError"),
    ("CV-6.other", lambda: T is T, "TileTypeError"),
    ("CV-6.other", lambda: ct.int8 is not ct.int16, "TileTypeError"),
    ("CV-6.eq", lambda: T[0] == None, "TileTypeError"),  # noqa: E711
    ("CV-6.eq", lambda: None != 1, "TileTypeError"),
    ("CV-7.missing", lambda: missing(a=1), "TileTypeError"),
    ("CV-8.dynamic", lambda: T[slice(0, ct.bid(0), 1)], "TileTypeError"),
    ("CV-8.arithmetic", lambda: ... + 1, "TileTypeError"),
    ("CV-9.int.runtime", lambda: int(ct.bid(0)), "TileTypeError"),
    ("CV-9.float.runtime", lambda: float(ct.bid(0)), "TileTypeError"),
]])
def test_refusals(f, cls):
    refused(cls, f)


@clause("CV-7.literal")
def test_dict_displays():
    @ct.kernel
    def k():
        d = {"a": 1}
        d["a"]

    refuses("TileSyntaxError", k)


@clause("CV-1.eq", "CV-1.in", "CV-1.ne")
def test_comparison_of_run_time_items():
    @ct.kernel
    def k(n, out):
        same = (1, (n, 3)) == (1, (4, 3))
        ct.store(out, 0, same)
        ct.store(out, 1, (n, n + 1) != (4, 5))
        ct.store(out, 2, 5 in (1, n))
        ct.store(out, 3, n not in (1, 4))

    for n in (4, 5):
        assert run(k, n, np.zeros(4, np.bool_)).tolist() == [n == 4, n != 4, n == 5, n != 4]


@clause("CV-1.any")
def test_run_time_items():
    @ct.kernel
    def k(x, out):
        t = (ct.load(x, 0, 2), x, x.tiled_view(2))
        ct.store(out, 0, t[0] + ct.load(t[1], 0, 2) + t[2].load(0))

    assert run(k, np.ones(2, np.float32), np.zeros(2, np.float32)).tolist() == [3, 3]


@clause("CV-2.create", "CV-2.operator")
def test_dataclasses_of_tiles():
    @ct.kernel
    def k(x, out):
        p = Pair(ct.load(x, 0, 2), x)
        q = Pair(p.a * 2, 1) + Pair(1, 1)
        ct.store(out, 0, q.a)

    assert run(k, np.ones(2, np.float32), np.zeros(2, np.float32)).tolist() == [3, 3]


@clause("CV-4.member", "CV-4.name")
def test_enum_parameters():
    @ct.kernel
    def k(x, y, out):
        a = ct.load(x, 0, 2, padding_mode="NEG_INF")
        b = ct.load(y, 0, 2, padding_mode=ct.PaddingMode.NEG_INF)
        ct.store(out, 0, ct.add(a, b, rounding_mode="RP"))
        ct.store(out, 1, ct.add(a, b, rounding_mode=ct.RoundingMode.RM))

    x, y = np.array([1], np.float32), np.array([2.0**-60], np.float32)
    assert run(k, x, y, np.zeros(4, np.float32)).tolist() == [1 + 2.0**-23, -np.inf, 1, -np.inf]


@clause("CV-9.bool.runtime")
def test_bool_of_run_time_scalars():
    @ct.kernel
    def k(n, x, out):
        b = bool(n)
        d = b.dtype
        ct.static_assert(d == ct.bool_)
        ct.store(out, 0, b)
        ct.store(out, 1, bool(x))

    out = np.zeros(2, np.bool_)
    launch(k, 0, 0.5, out)
    assert out.tolist() == [False, True]
    launch(k, 256, 0.0, out)
    assert out.tolist() == [True, False]


@clause("CV-3.name", "CV-3.value", "CV-9.int")
def test_what_conversions_give_is_constant():
    got = look(lambda: Color.GREEN.value, lambda: int(2.5), lambda: bool(1), lambda: len(T), lambda: float(1))
    assert [(repr(v), d.name) for v, d in got] == [
        ("2", "int32"), ("2", "int32"), ("True", "bool_"), ("4", "int32"), ("1.0", "float32")]
    same_number(constant(lambda: ct.zeros((int("4"),), ct.int8).shape[0])[0], 4)


@clause("CV-5.fstring")
def test_formatted_strings(capfd):
    @ct.kernel
    def k(n):
        text = f"<{'x'}{n}>"
        ct.print(text, end="")

    launch(k, 5)
    assert capfd.readouterr().out == "<x5>"


@clause("CV-1.unpack.count")
def test_unpacking_into_another_number_of_names():
    @ct.kernel
    def fewer(x):
        a, b = (1, 2, 3)
        ct.store(x, 0, a + b)

    @ct.kernel
    def more(x):
        a, [b, c], d = (1, (2,), 3)
        ct.store(x, 0, a + b + c + d)

    for k in (fewer, more):
        refuses("TileValueError", k, np.zeros(1, np.int32))


@clause("TILE-6.unpack")
def test_unpacking_of_what_is_no_tuple():
    @ct.kernel
    def tile(x):
        a, b = ct.load(x, 0, 2)
        ct.store(x, 0, a + b)

    @ct.kernel
    def number(x):
        a, b = 5
        ct.store(x, 0, a + b)

    for k in (tile, number):
        refuses("TileTypeError", k, np.zeros(2, np.int32))


@clause("CV-3.member")
def test_members_that_an_enumeration_has_not():
    @ct.kernel
    def k(x):
        ct.store(x, 0, Color.NOTHING_LIKE_IT)

    refuses("TileTypeError", k, np.zeros(1, np.int32))

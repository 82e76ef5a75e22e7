"""print, str and repr in kernels show what Python shows [PRINT-2, DC-3]: the same function runs in both."""

import collections
import dataclasses
import enum
import re
import typing

import pytest

import cutile as ct
from cutile import settings


class Color(enum.Enum):
    RED = 0


class Word(enum.StrEnum):
    A = "a'b"


class Mixed(str, enum.Enum):  # noqa: UP042  it is shown otherwise
    A = "x"


class Shown(enum.Enum):
    A = 1

    def __str__(self):
        return "shown"

    def __repr__(self):
        return "Shown!"


class Formatted(enum.Enum):
    A = 1

    def __format__(self, spec):
        return "formatted" + spec


class Flags(enum.Flag):
    A = 1
    B = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: object
    y: object = 5
    z: int = dataclasses.field(default=3, repr=False)


@dataclasses.dataclass(frozen=True)
class Named(Point):
    w: int = 1

    def __str__(self):
        return f"<{self.x}>"


@dataclasses.dataclass(frozen=True, repr=False)
class Inherits(Point):
    """Shown as Python shows it: with the fields that the base knows."""

    q: int = 9


@dataclasses.dataclass(frozen=True)
class Own:
    x: object

    def __repr__(self):
        return f"Own {self.x}"


@dataclasses.dataclass(frozen=True)
class Both(Own):
    v: int = 1

    def __str__(self):
        return repr(self) + "|"


@dataclasses.dataclass(frozen=True, repr=False)
class Quiet:
    x: int


class Outer:
    @dataclasses.dataclass(frozen=True)
    class Inner:
        x: int


Pair = collections.namedtuple("Pair", "a b")


class Typed(typing.NamedTuple):
    a: int
    b: str = "q"


class Subclass(Pair):
    def __str__(self):
        return "subclass " + str(self.a)


pair, typed, subclass = Pair(1, "s"), Typed(3), Subclass(4, "w")


def enums():
    print(Color.RED, (Color.RED,), f"{Color.RED}", (f"{Color.RED}",), str(Color.RED), repr(Color.RED))
    print(Word.A, (Word.A,), f"{Word.A}", (f"{Word.A}", 1))
    print(Mixed.A, (Mixed.A,), f"{Mixed.A}", (f"{Mixed.A}",))
    print(Shown.A, (Shown.A,), f"{Shown.A}", Formatted.A, (Formatted.A,), f"{Formatted.A}", (f"{Formatted.A}",))
    print(Flags.A, (Flags.B,), Color, (Color,), ct.RoundingMode.RN, (ct.RoundingMode.RN,))


def dataclasses_():
    print(Point(1), Point("a"), (Point("a", None),), f"{Point(1)}", (f"{Point((1, 2))}",), Point(Point(1), (Point(2),)))
    print(Named(1), (Named(1),), f"{Named(2)}", Point(Named(1)), str(Named(4)), repr(Named(4)))
    print(Own(1), (Own(1),), Both(2), (Both(2),), Point(Both(2)), Outer.Inner(3))
    print(Inherits(1), (Inherits(1, "b"),), Point(Color.RED, f"{1}"))


def named_tuples():
    print(pair, typed, subclass, (pair, typed, subclass), f"{pair}{subclass}", pair.a)


def strings_in_tuples():
    q, d = "'", '"'
    print((f"v{1}", f"it{q}s", f"a{d}b", f"{q}{d}", f"{q}", f"\\{1}\n", "\t", "%", "é\x00", f"'{5}\"", f"'{5}"))
    print((("a",),), ("a'b", 'a"b', "a'\"b"), sep=f"{1}-", end=f"{Color.RED}\n")
    print(f"{(f'x{1}', 'y')}", (f"{(f'x{1}',)}",), f"{'abc'}", f"{Word.A}{None}{()}")
    print(", ".join(("a", f"b{1}")), ("x" + f"{1}" + "y",), str(1) + "z", str((1, "a")), repr("q"))
    print(str(f"{1}x"), repr(f"{1}x"), (repr(f"{1}'x"),), Point(f"v{1}"), Point("it's"))


def other_values():
    def of(**words):
        print(words)

    of(a=1, b="x", c=(Color.RED, f"{1}"))
    print(int, (int, None, ..., True), Outer.Inner, 1e30, (1e-7, -0.0, 2.5))


@pytest.mark.parametrize("schedule", ["batch", "block"])
@pytest.mark.parametrize("show", [enums, dataclasses_, named_tuples, strings_in_tuples, other_values])
def test_shown_as_in_python(show, schedule, capsys):
    show()
    wanted = capsys.readouterr().out
    with settings.override(SCHEDULE=schedule):
        ct.launch(None, (1,), ct.kernel(lambda: show()), ())
    assert capsys.readouterr().out == wanted != ""


def test_a_dataclass_that_declines_its_repr(capsys):
    ct.launch(None, (1,), ct.kernel(lambda: print(Quiet(1), (Quiet(1),), f"{Quiet(2)}")), ())
    shown = capsys.readouterr().out.strip()
    print(Quiet(1), (Quiet(1),), f"{Quiet(2)}")
    assert shown == re.sub(" at 0x[0-9a-f]+", "", capsys.readouterr().out.strip())  # it has no address


def test_run_time_values_in_strings_in_tuples(capsys):
    def show(n):
        print((f"v{n}", f"it's {n}", (f"{n:4}|",)), Point(f"{n}"))

    @ct.kernel
    def k(n):
        show(n)

    show(5)
    wanted = capsys.readouterr().out
    ct.launch(None, (1,), k, (5,))
    assert capsys.readouterr().out == wanted


@dataclasses.dataclass(frozen=True)
class Priced:
    x: int

    def __format__(self, spec):
        return f"{self.x} crowns"


class Raises(enum.Enum):
    A = 1

    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize("show, says", [
    (lambda: print(f"{Priced(1)}"), "has a __format__ of its own"),
    (lambda: print((f"{Priced(1):>5}",)), "has a __format__ of its own"),
    (lambda: print(str(f"{Point(1):>5}")), "needs a tile or a number"),
    (lambda: print((f"{'a':>5}",)), "needs a tile or a number"),
    (lambda: print(Raises.A), "raised ValueError: no text")])
def test_what_is_not_shown(show, says):
    with pytest.raises(ct.TileTypeError, match=says):
        ct.launch(None, (1,), ct.kernel(lambda: show()), ())

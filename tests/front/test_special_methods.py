"""Special methods of the user's classes: a kernel prints what Python prints [DC-3, DC-4, CV-1, CV-3, EX-12]."""

import contextlib
import dataclasses
import enum
import io
import math
from typing import NamedTuple

import numpy as np
import pytest

import cutile as ct
from tests.front.compiling import cell


@dataclasses.dataclass(frozen=True)
class Parity:
    a: int

    def __eq__(self, other):
        return self.a % 2 == other.a % 2


@dataclasses.dataclass(frozen=True)
class Unequal:
    a: int

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return self.a > 1


@dataclasses.dataclass(frozen=True)
class Tagged:
    a: int
    tag: int = dataclasses.field(default=0, compare=False)


@dataclasses.dataclass(frozen=True, order=True)
class Ranked:
    tag: int = dataclasses.field(compare=False)
    a: int = 0
    b: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Extended(Tagged):
    more: int = 5


@dataclasses.dataclass(frozen=True, eq=False)
class Bare:
    a: int


@dataclasses.dataclass(frozen=True)
class Base:
    a: int

    def __add__(self, other):
        return "Base.__add__"

    def __radd__(self, other):
        return "Base.__radd__"

    def __lt__(self, other):
        return "Base.__lt__"

    def __gt__(self, other):
        return "Base.__gt__"


@dataclasses.dataclass(frozen=True)
class Overriding(Base):
    def __radd__(self, other):
        return "Overriding.__radd__"

    def __eq__(self, other):
        return "Overriding.__eq__"


@dataclasses.dataclass(frozen=True)
class Inheriting(Base):
    b: int = 0


@dataclasses.dataclass(frozen=True)
class Less:
    a: int

    def __lt__(self, other):
        return f"less than {other}"

    def __ge__(self, other):
        return f"at least {other}"


@dataclasses.dataclass(frozen=True)
class Reflected:
    a: int

    def __radd__(self, other):
        return "Reflected.__radd__"


@dataclasses.dataclass(frozen=True)
class InPlace:
    a: int

    def __add__(self, other):
        return "__add__"

    def __iadd__(self, other):
        return "__iadd__"

    def __imatmul__(self, other):
        return "__imatmul__"


@dataclasses.dataclass(frozen=True)
class Truthful:
    a: int

    def __bool__(self):
        return self.a > 1

    def __len__(self):
        return 0


@dataclasses.dataclass(frozen=True)
class Sized:
    a: int

    def __len__(self):
        return self.a

    def __contains__(self, x):
        return x == self.a


@dataclasses.dataclass(frozen=True)
class Made:
    a: int

    def __post_init__(self):
        print("made", self.a)


class Pair(NamedTuple):
    a: int
    b: int = 2

    def __add__(self, other):
        return "Pair.__add__"

    def __eq__(self, other):
        return "Pair.__eq__"

    def __len__(self):
        return 99

    def __getitem__(self, i):
        return "Pair.__getitem__"

    def __bool__(self):
        return False

    def __contains__(self, x):
        return x == 7

    def __neg__(self):
        return "Pair.__neg__"

    def __abs__(self):
        return "Pair.__abs__"

    def __isub__(self, other):
        return "Pair.__isub__"


class Plain(NamedTuple):
    a: int
    b: int = 2


class Same(enum.Enum):
    A = 1
    B = 2

    def __eq__(self, other):
        return True

    __hash__ = None


class Ordered(enum.Enum):
    A = 1
    B = 2

    def __lt__(self, other):
        return self.value < other.value


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 1 << 40


class Mixed(int, enum.Enum):
    X = 4


class Half(float, enum.Enum):
    H = 0.5


pair, plain, made, half = Pair(4), Plain(4), Tagged(1), Truthful(1)

PRINTED = """
Parity(1) == Parity(3), Parity(1) != Parity(3), Parity(1) != Parity(2), Parity(1) in (Parity(2), Parity(3))
Unequal(1) == Unequal(2), Unequal(1) != Unequal(2), Unequal(2) != Unequal(2)
Tagged(1) == Base(1), Tagged(1) != Base(1)
Tagged(1, 2) == Tagged(1, 3), Tagged(1, 2) != Tagged(1, 3), Tagged(1, 2) == Tagged(2, 2), (Tagged(1, 5), 1) == (made, 1)
Ranked(1, 2) < Ranked(0, 3), Ranked(1, 2) == Ranked(5, 2), Ranked(9, 1, 2) >= Ranked(1, 1, 3), Ranked(3) <= Ranked(2)
Extended(1) == Extended(1, 2, 3), Extended(1) != Extended(2)
Bare(1) == Tagged(1), Bare(1) != Base(1)
Base(1) + Overriding(2), Overriding(2) + Base(1), Base(1) + Inheriting(1), Inheriting(1) + Base(1), Base(1) + Base(2)
Overriding(1) == Base(1), Base(1) < Base(2), Inheriting(1) > Base(2), Base(1) == Inheriting(1), Less(1) < Less(2)
1 + Reflected(2), (1, 2) + Reflected(1), "a" + Reflected(1)
1 if Truthful(1) else 2, 1 if Truthful(2) else 2, bool(Truthful(1)), bool(half), bool(Truthful(3)), len(half)
1 if Sized(0) else 2, bool(Sized(2)), 3 in Sized(3), 3 not in Sized(4), 3 in Sized(4)
pair + (1,), pair + pair, pair == (4, 2), len(pair), pair[0], pair.a, 7 in pair, 4 not in pair, -pair, abs(pair)
1 if pair else 2, bool(pair), bool(plain), plain + (1,), plain == (4, 2), plain != (4, 2), 2 in plain, plain[-1]
Same.A == Same.B, Same.A in (Color.RED, Same.B), Ordered.A < Ordered.B
None in (1, None), None in (None, 1), None not in (1, None), None in (1, 2), None in ((), "None", Color.RED)
len in (len, abs), len in (abs,), int in (float, int), math in (math,), math in (len,), ct.add in (ct.sub, ct.add)
... in (1, ...), "a" in (1, "a"), 1 in ("1", None, (1,), 1.0), Color.RED in (1, "RED", Color.RED), Level.LOW in (1,)
f"{1}" in (None, 2), 1 in (f"{1}",), ct.int32 in (1, ct.int32), True in (1,), (1, 2) in (3, (1, 2)), () in (None,)
Level.LOW, (Level.LOW, Level.HIGH), Level.LOW + 1, (Level.LOW + 1, +Level.LOW), f"{Level.HIGH}", Level.LOW == 1
Level.LOW.name, Level.HIGH.value, repr(Level.LOW), str(Level.LOW), (str(Mixed.X), repr(Mixed.X)), Mixed.X, (Mixed.X,)
f"{Mixed.X}", Mixed.X.name, Mixed.X * 2, Half.H, (Half.H,), f"{Half.H}", Half.H.value
""".strip().split("\n")


def printed(source: str) -> tuple[str, str]:
    """What a function with this body prints in Python, and in a kernel."""
    body = "\n".join(f"    {line}" for line in source.split("\n"))
    made = cell(f"def f():\n{body}\n@ct.kernel\ndef k():\n{body}\n", **{**globals(), "math": math})
    texts = []
    for run in (made["f"], lambda: ct.launch(None, (1,), made["k"], ())):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            run()
        texts.append(text.getvalue())
    return texts[0], texts[1]


@pytest.mark.parametrize("row", PRINTED)
def test_as_python(row):
    in_python, in_tile_code = printed(f"print({row})")
    assert in_tile_code == in_python


@pytest.mark.parametrize("source", [
    "x = InPlace(1)\nx += 1\nprint(x)",
    "x = InPlace(1)\nx @= 1\nprint(x)",
    "x = pair\nx -= 1\nprint(x)",
    "x = Base(1)\nx += 1\nprint(x)",
    "print(dataclasses.replace(Made(1), a=2))",
    "print(dataclasses.replace(dataclasses.replace(Made(1), a=2)))",
])
def test_statements_as_python(source):
    in_python, in_tile_code = printed(source)
    assert in_tile_code == in_python


@pytest.mark.parametrize("text", ["f() == 2", "f() != 2 and f() == 2"])
def test_run_time_values(text):
    """Methods compute with run-time values too."""
    source = f"x, y = Parity(ct.bid(0) + 1), Parity(ct.bid(0) + 3)\nprint(x == y, x != y, x in (y,), {text})"
    made = cell("@ct.kernel\ndef k():\n    f = lambda: ct.bid(0) + 2\n" + "\n".join(
        f"    {line}" for line in source.split("\n")), **globals())
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        ct.launch(None, (1,), made["k"], ())
    assert shown.getvalue() == ("1 0 1 1\n" if text == "f() == 2" else "1 0 1 0\n")


@pytest.mark.parametrize("source,message", [
    ("Bare(1) == Bare(1)", "(?s)one object: Bare has no __eq__.*help: .*compare their fields"),
    ("Bare(1) in (Bare(1),)", "Bare has no __eq__"),
    ("Base(1) == Overriding(2)", "(?s)unsupported operands for ==.*help: .*write the Overriding on the left"),
    ("Base(1) != Overriding(2)", "unsupported operands for !="),
    ("Tagged(1) == Parity(2)", "write the Parity on the left"),
    ("Less(1) > Less(2)", "unsupported operands for >"),
    ("3 > Less(1)", "write the Less on the left"),
    ("(4, 2) == pair", "write the Pair on the left"),
    ("Ordered.B > Ordered.A", "write the Ordered on the left"),
    ("Reflected(1) + Reflected(2)", "unsupported operands for"),
    ("f'{1}' in ('1',)", "unsupported operands for =="),
    ("Half.H in (0.5,)", "unsupported operands for =="),
    ("Looked(1).a", "class Looked has a __getattribute__"),
    ("dataclasses.replace(Looked(1), a=2).a", "class Looked has a __getattribute__"),
    ("dataclasses.replace(own_init, a=2)", "must keep the __init__"),
    ("f'{Mixed.X:>4}'", "a format spec"),
])
def test_refused(source, message):
    made = cell(f"@ct.kernel\ndef k():\n    print({source})\n", **globals())
    with pytest.raises(ct.TileTypeError, match=message):
        ct.launch(None, (1,), made["k"], ())


@dataclasses.dataclass(frozen=True)
class Looked:
    a: int

    def __getattribute__(self, name):
        return 42


@dataclasses.dataclass(frozen=True)
class OwnInit:
    a: int

    def __init__(self, a):
        object.__setattr__(self, "a", a + 1)


own_init = OwnInit(1)


def test_arrays_in_a_tuple_are_not_compared():
    made = cell("@ct.kernel\ndef k(x, y):\n    print(x in (y,))\n", **globals())
    with pytest.raises(ct.TileTypeError, match="unsupported operands for =="):
        ct.launch(None, (1,), made["k"], (np.zeros(4), np.zeros(4)))


def test_member_that_meets_its_number_is_no_member():
    """After a branch that gives a member or an equal number, the constant is shown as a number."""
    made = cell("@ct.kernel\ndef k():\n    x = Level.LOW\n    if ct.bid(0) == 0:\n        x = 1\n    print((x,))\n"
                "    y = Level.LOW\n    if ct.bid(0) == 0:\n        y = Level.LOW\n    print((y,))\n", **globals())
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        ct.launch(None, (1,), made["k"], ())
    assert shown.getvalue() == "(1,)\n(<Level.LOW: 1>,)\n"


def test_method_that_a_class_gets_later():
    """A launch sees methods that operators would call now."""
    @dataclasses.dataclass(frozen=True)
    class Late:
        a: int

    made = cell("@ct.kernel\ndef k():\n    print(bool(Late(1)), Late(1) == Late(2))\n", Late=Late, ct=ct)
    methods = cell("def falsy(self):\n    return False\n\ndef equal(self, other):\n    return True\n")

    def shown():
        with contextlib.redirect_stdout(io.StringIO()) as text:
            ct.launch(None, (1,), made["k"], ())
        return text.getvalue()

    assert shown() == "True False\n"
    Late.__bool__, Late.__eq__ = methods["falsy"], methods["equal"]
    assert shown() == "False True\n"

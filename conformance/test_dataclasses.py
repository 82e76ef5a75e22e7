"""Frozen dataclasses and enum classes in tile code."""

import dataclasses
import enum
import itertools

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, run
from conformance.harness.tile_code import LENGTH, Counter, body, module, rejects, result, takes
from conformance.harness.type_probes import constant_is, static

frozen = dataclasses.dataclass(frozen=True)


@frozen
class Point:
    x: object
    y: object = 5


@frozen
class Point3(Point):
    z: object = 7


_Private__outside = 100  # what `__outside` denotes in the class


@frozen
class Private:
    """Python reads `__name` in it as `_Private__name`, also in functions inside its methods."""

    __x: object
    __of_class = 5

    def __inner(self, n):
        return self.__x + n

    def method(self, n):
        return self.__inner(n)

    def default(self, __n=3, *, __k=4):
        return __n + __k + self.__of_class

    def outside(self, n):
        return __outside + n  # noqa: F821

    def static(self, n):
        return ct.static_eval((lambda: self.__x if isinstance(self.__x, int) else 0)()) + n

    def nested(self, n):
        def __g(__y=n):
            return self.__x * __y
        return __g() + (lambda __z: __z + self.__x)(n)

    def generator(self, n):
        __made = tuple(self.__x + i + n for i in ct.static_iter((1, 2)))
        return __made[0] * __made[1]

    def special(self, n):
        return self.__add__(n)

    def __add__(self, n):
        return self.__x - n

    @staticmethod
    def fixed(n):
        return Private.__of_class + n

    @property
    def __shown(self):
        return self.__x

    def shown(self, n):
        return self.__shown + n

    class __Deeper:
        pass


@frozen
class _Under(Private):
    __x: object = 9

    def method(self, n):
        return self.__x * n

    def both(self, n):
        return self.method(n) + self.nested(n)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Keywords:
    a: int
    b: int = 2


@dataclasses.dataclass
class Mutable:
    x: int


@frozen
class OwnInit:
    x: int

    def __init__(self, x):
        object.__setattr__(self, "x", x + 1)


@frozen
class OwnNew:
    x: int

    def __new__(cls, x):
        return object.__new__(cls)


@frozen
class Factory:
    x: tuple = dataclasses.field(default_factory=tuple)


@frozen
class NoInit:
    x: int
    y: int = dataclasses.field(default=3, init=False)


class Sub(Point):
    pass


@pytest.mark.parametrize("make", [
    pytest.param(lambda: Mutable(1), marks=clause("DC-1.frozen")),
    pytest.param(lambda: OwnInit(1), marks=clause("DC-1.init")),
    pytest.param(lambda: OwnNew(1), marks=clause("DC-1.new")),
    pytest.param(lambda: Factory(), marks=clause("DC-1.factory")),
    pytest.param(lambda: NoInit(1), marks=clause("DC-1.no_init")),
    pytest.param(lambda: Sub(1, 2), marks=clause("DC-1.subclass")),
    pytest.param(lambda: Point(), marks=clause("DC-1.binding")),
    pytest.param(lambda: Point(1, 2, 3), marks=clause("DC-1.binding")),
    pytest.param(lambda: Point(1, z=3), marks=clause("DC-1.binding")),
    pytest.param(lambda: Point(1, x=3), marks=clause("DC-1.binding")),
    pytest.param(lambda: Keywords(1), marks=clause("DC-1.binding")),
    pytest.param(lambda: Point(1).z, marks=clause("DC-2.unknown")),
    pytest.param(lambda: dataclasses.replace(Point(1), z=3), marks=clause("DC-4.unknown"))])
def test_what_is_refused(make):
    rejects("TileTypeError", make)


@clause("DC-1.default", "DC-1.keyword", "DC-1.inherit")
def test_making():
    def f(n):
        a, b, c, d, e = Point(n), Point(1, n), Point(y=n, x=2), Point3(n), Keywords(b=n, a=8)
        return a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y, d.z, e.a, e.b, Keywords(a=1).b

    assert result(f, 3) == [3, 5, 1, 3, 2, 3, 3, 5, 7, 8, 3, 2]


@clause("DC-2.tile", "DC-2.array", "DC-2.view", "DC-2.tuple", "DC-2.function", "DC-2.nested", "DC-2.constant")
def test_fields():
    @frozen
    class All:
        tile: object
        array: object
        view: object
        pair: tuple
        function: object
        inner: Point
        size: int

    def make(x, n):
        return All(ct.full((2,), n, ct.int32), x, x.tiled_view((2,)), (n, "a"), lambda v: v + n, Point(n, 8), 4)

    @ct.kernel
    def k(x, n, out):
        a = make(x, n)
        text, eight = a.pair[1], a.inner.y
        ct.static_assert(text == "a")
        ct.static_assert(eight == 8)
        ct.store(out, 0, ct.sum(a.tile))
        ct.store(out, 1, ct.sum(ct.load(a.array, 0, (a.size,))))
        ct.store(out, 2, ct.sum(a.view.load((1,))))
        ct.store(out, 3, a.function(a.pair[0]) + a.inner.x)

    x = np.array([1, 2, 3, 4], np.int32)
    assert run(k, x, 10, np.zeros(4, np.int32)).tolist() == [20, 10, 7, 30]


@frozen
class Shape:
    w: object
    h: object
    SIDES = 4
    NAME = "shape"

    @property
    def area(self):
        return self.w * self.h

    def scaled(self, k, /, *, plus=0):
        return Shape(self.w * k + plus, self.h * k + plus)

    @classmethod
    def square(cls, w):
        return cls(w, w)

    @staticmethod
    def double(v):
        return v * 2

    def both(self):
        return self.scaled(2).area + self.SIDES


@clause("DC-2.property", "DC-2.method", "DC-2.constant_of_class", "DC-2.classmethod", "DC-2.staticmethod",
        "DC-2.staticmethod.instance")
def test_attributes():
    def f(n):
        s = Shape(n, 10)
        ct.static_assert(s.NAME == "shape")
        ct.static_assert(Shape.SIDES == 4)
        return (s.area, s.scaled(2, plus=1).w, s.both(), Shape.square(n).area, s.square(n + 1).h, Shape.double(n),
                s.double(n + 1))

    assert result(f, 3) == [30, 7, 124, 9, 4, 6, 8]


@frozen
class Op:
    v: object
    log: object = None

    def __call__(self, x, *, k=1):
        return self.v * 100 + x * k

    def __getitem__(self, i):
        return self.v + i

    def __setitem__(self, i, x):
        ct.store(self.log, i, x + self.v)

    def __len__(self):
        return 6

    def __str__(self):
        return "op!"

    def __repr__(self):
        return "Op?"

    def __add__(self, other):
        return self.v + other

    def __radd__(self, other):
        return other * 1000 + self.v

    def __sub__(self, other):
        return self.v - other.v

    def __mul__(self, other):
        return Op(self.v * other)

    def __truediv__(self, other):
        return self.v // other

    def __matmul__(self, other):
        return self.v * 10 + other.v

    def __lt__(self, other):
        return self.v < other.v

    def __eq__(self, other):
        return self.v == other


@clause("DC-3.lt", "DC-3.eq")
@pytest.mark.parametrize("f", [
    lambda n: n < Op(4), lambda n: n > Op(4), lambda n: n <= Op(4), lambda n: n >= Op(4), lambda n: n == Op(4),
    lambda n: Op(n) > Op(4)])
def test_comparisons_are_not_reflected(f):
    rejects("TileTypeError", f, 3)


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda n: (Op(n)(5), Op(n)(5, k=2)), [305, 310], marks=clause("DC-3.call")),
    pytest.param(lambda n: Op(n)[4], 7, marks=clause("DC-3.getitem")),
    pytest.param(lambda n: len(Op(n)), 6, marks=clause("DC-3.len")),
    pytest.param(lambda n: Op(n) + 4, 7, marks=clause("DC-3.add")),
    pytest.param(lambda n: n + Op(4), 3004, marks=clause("DC-3.radd")),
    pytest.param(lambda n: Op(n) - Op(10), -7, marks=clause("DC-3.sub")),
    pytest.param(lambda n: (Op(n) * 7).v, 21, marks=clause("DC-3.mul")),
    pytest.param(lambda n: Op(n * 9) / 4, 6, marks=clause("DC-3.truediv")),
    pytest.param(lambda n: Op(n) @ Op(4), 34, marks=clause("DC-3.matmul")),
    pytest.param(lambda n: (Op(n) < Op(4), Op(n) < Op(3)), [1, 0], marks=clause("DC-3.lt")),
    pytest.param(lambda n: (Op(n) == 3, Op(n) == 4), [1, 0], marks=clause("DC-3.eq"))])
def test_special_methods(f, want):
    assert result(f, 3) == want


@clause("DC-3.setitem")
def test_setitem():
    @ct.kernel
    def k(out):
        o = Op(5, out)
        o[1] = 7

    assert run(k, np.zeros(2, np.int32)).tolist() == [0, 12]


@clause("DC-3.str", "DC-3.repr")
def test_text(capfd):
    assert static(lambda: str(Op(1))) == "op!" and static(lambda: repr(Op(1))) == "Op?"

    @ct.kernel
    def k():
        print(Op(1))

    capfd.readouterr()
    launch(k)
    assert capfd.readouterr().out.strip() == "op!"


@frozen
class Checked:
    size: int

    def __post_init__(self):
        ct.static_assert(self.size > 0, "size must be positive")


@clause("DC-3.post_init")
def test_post_init():
    takes(lambda: Checked(1))
    rejects("TileStaticAssertionError", lambda: Checked(0), match="size must be positive")


@clause("DC-3.post_init", "SPEC-1.same")
def test_a_post_init_that_a_class_gets_later():
    """As in Python: the __init__ that @dataclass made does not call it, and nothing is compiled anew."""
    @frozen
    class Plain:
        x: object

    counter = Counter()
    hit = counter.hit

    @ct.kernel
    def k(n, out):
        ct.static_eval(hit())
        ct.store(out, 0, Plain(n).x)

    assert run(k, 3, np.zeros(1, np.int32)).tolist() == [3]
    Plain.__post_init__ = lambda self: ct.static_assert(False, "run by mistake")
    assert run(k, 4, np.zeros(1, np.int32)).tolist() == [4] and counter.count == 1
    assert run(k, 2.5, np.zeros(1, np.float32)).tolist() == [2.5] and counter.count == 2


@dataclasses.dataclass(frozen=True, order=True)
class Version:
    major: object
    minor: object = 0


@dataclasses.dataclass(frozen=True, order=True)
class OtherVersion:
    major: object
    minor: object = 0


@clause("DC-3.generated_eq", "DC-3.generated_ne", "DC-3.eq.class")
def test_equality():
    def f(n):
        a, b, c = Version(n, 2), Version(n, 2), Version(n, 3)
        return a == b, a == c, Version(n + 1, 2) == a, a != b, a != c, Version(n + 1, 2) != a

    assert result(f, 3) == [1, 0, 0, 0, 1, 1]
    constant_is(lambda: Version(1, 2) == Version(1, 2), True, "bool_")
    assert result(lambda n: (Version(n, 2) == OtherVersion(n, 2), Version(n, 2) != OtherVersion(n, 2)), 3) == [0, 1]


@clause("DC-3.order")
@pytest.mark.parametrize("a, b", [((1, 2), (1, 2)), ((1, 2), (1, 3)), ((1, 9), (2, 0)), ((2, 0), (1, 9)),
                                  ((1, 3), (1, 2))])
def test_order(a, b):
    def f(p, q, r, s):
        x, y = Version(p, q), Version(r, s)
        return x < y, x <= y, x > y, x >= y

    assert result(f, *a, *b) == [a < b, a <= b, a > b, a >= b]


@dataclasses.dataclass(frozen=True, order=True)
class Triple:
    a: object
    b: object
    c: object


@clause("DC-3.order")
def test_order_of_three():
    """The last field counts only where those before it are equal."""
    def f(p, q, r):
        x, y = Triple(p, q, r), Triple(2, 1, 3)
        return x < y, x <= y, x > y, x >= y

    for t in itertools.product((1, 2, 3), repeat=3):
        assert result(f, *t) == [t < (2, 1, 3), t <= (2, 1, 3), t > (2, 1, 3), t >= (2, 1, 3)], t


@clause("DC-4.replace", "DC-4.original")
def test_replace():
    def f(n):
        p = Point3(n, 2, 3)
        q = dataclasses.replace(p, x=10, z=n * 2)
        ct.static_assert(q.y == 2)
        return q.x, q.y, q.z, p.x, p.z

    assert result(f, 4) == [10, 2, 8, 4, 3]


@clause("DC-4.other")
@pytest.mark.parametrize("f", [lambda: dataclasses.asdict(Point(1)), lambda: dataclasses.astuple(Point(1)),
                               lambda: dataclasses.fields(Point(1))])
def test_other_functions(f):
    rejects("UnsupportedCallError", f)


class Color(enum.Enum):
    RED = 1
    NAME = "name"


class Level(enum.IntEnum):
    LOW = 3


@clause("DC-5.value", "DC-5.unknown", "DC-5.runtime")
def test_enum_classes():
    assert static(lambda: Color(1)) is Color.RED and static(lambda: Color("name")) is Color.NAME
    assert static(lambda: Color(1).name) == "RED"
    constant_is(lambda: Level(3) + 1, 4, "int32")
    rejects("TileValueError", lambda: Color(7))
    rejects("TileValueError", lambda: Color("red"))
    rejects("TileTypeError", lambda n: Color(n), 1)


@clause("DC-2.nested", "DC-2.method")
def test_instances_from_outside():
    shape = Shape(3, 4)

    @ct.kernel
    def k(out):
        ct.static_assert(shape.area == 12)
        ct.store(out, 0, ct.zeros((shape.h,), ct.int32) + shape.w)

    assert run(k, np.zeros(4, np.int32)).tolist() == [3] * 4
    accepts(k, np.zeros(4, np.int64))


@clause("DC-2.method", "DC-2.constant_of_class", "DC-2.property", "FN-5.method", "EX-5.read")
@pytest.mark.parametrize("name", ["method", "default", "outside", "static", "nested", "generator", "special", "fixed",
                                  "shown"])
def test_private_names(name):
    p = Private(7)
    assert result(lambda n: getattr(Private(7), name)(n) + getattr(p, name)(n), 4) == 2 * (
        getattr(p, name)(4) if name != "static" else 11)


@clause("DC-2.method", "DC-1.inherit")
def test_private_names_of_two_classes():
    p = _Under(7)
    assert result(lambda n: (p.method(n), p.both(n), p.default(n), _Under(n, 2).both(n), p.shown(n)), 4) == [
        p.method(4), p.both(4), p.default(4), _Under(4, 2).both(4), p.shown(4)]


@dataclasses.dataclass(frozen=True, order=True)
class Empty:
    pass


@dataclasses.dataclass(frozen=True, order=True)
class Ordered:
    x: object
    y: object = 1
    z: object = 2


@clause("DC-3.order", "DC-3.generated_eq")
def test_order_of_few_and_many_fields():
    symbols = ("<", "<=", ">", ">=", "==", "!=")
    text = "return " + ", ".join(f"a {s} b" for s in symbols)
    f = body("return (*compare(Empty(), Empty()), *compare(Ordered(n), Ordered(3, n - 2)), *compare(Ordered(n), p))",
             Empty=Empty, Ordered=Ordered, p=Ordered(3, 1, 3), compare=module(f"def g(a, b): {text}")["g"])

    def python(n):
        a = ((Empty(), Empty()), (Ordered(n), Ordered(3, n - 2)), (Ordered(n, 1, 2), Ordered(3, 1, 3)))
        return [int(eval(f"x {s} y", {"x": x, "y": y})) for x, y in a for s in symbols]

    for n in 2, 3, 4:
        assert result(f, n)[:LENGTH] == python(n)[:LENGTH]


@clause("DC-2.unknown")
def test_private_names_outside_of_their_class():
    p = Private(7)
    rejects("TileTypeError", lambda n: p.__x + n, 1)
    assert result(lambda n: p._Private__x + n, 1) == 8

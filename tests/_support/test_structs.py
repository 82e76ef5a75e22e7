"""A struct does what a dataclass with the same parameters does: each test runs both."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import math
import pickle
import weakref
from typing import Any

import pytest

from cutile._support.structs import field, replace, structure

HOW = [dict(zip(("eq", "frozen", "slots"), on, strict=True)) for on in itertools.product((True, False), repeat=3)]


def both(**how: bool):
    """The same class, made by `structure` and by `dataclass`."""

    def make(cls: type) -> tuple[type, type]:
        again = type(cls.__name__, cls.__bases__, {k: v for k, v in vars(cls).items()
                                                   if k not in ("__dict__", "__weakref__")})
        again.__qualname__ = cls.__qualname__
        return structure(cls, **how), dataclasses.dataclass(again, **how)

    return make


def outcome(call: Any) -> Any:
    """The repr of what a call gives, or the class and subject of its error."""
    try:
        return repr(call())
    except Exception as e:
        return type(e), str(e).partition("(")[0]


def three(**how: bool) -> tuple[type, type]:
    @both(**how)
    class Three:
        a: int
        b: Any = 7
        c: list = field(default_factory=list)

        @property
        def total(self) -> int:
            return self.a + self.b

    return Three


def one(**how: bool) -> tuple[type, type]:
    @both(**how)
    class One:
        a: Any

    return One


def none(**how: bool) -> tuple[type, type]:
    @both(**how)
    class Nothing:
        """A class without fields."""

    return Nothing


@pytest.mark.parametrize("how", HOW, ids=str)
def test_the_same_instances_and_errors(how):
    struct, twin = three(**how)
    calls = [((1,), {}), ((1, 2), {}), ((1, 2, [3]), {}), ((), {"a": 1, "c": 5}), ((1,), {"b": 2}), ((), {}),
             ((1, 2, 3, 4), {}), ((1,), {"a": 1}), ((1,), {"d": 1})]
    for args, kwargs in calls:
        assert outcome(lambda: struct(*args, **kwargs)) == outcome(lambda: twin(*args, **kwargs)), (args, kwargs)  # noqa: B023
    for made in (struct(1), twin(1)):
        assert (made.total, made.c) == (8, []) and type(made).__match_args__ == ("a", "b", "c")
        assert made.c is not type(made)(1).c
    assert str(inspect.signature(struct)).count(",") == 2


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("make", [three, one, none], ids=["three", "one", "none"])
def test_the_same_equality_and_hash(how, make):
    values = {three: [(1, 2, 3), (1, 2, 4), (1, 2.0, 3), (1, (2,), 3)], one: [(0.0,), (-0.0,), (1,)], none: [()]}
    seen = []
    for cls in make(**how):
        objects = [cls(*v) for v in values[make] for _ in range(2)]
        seen.append([[a == b for b in objects] for a in objects] + [a == 1 for a in objects]
                    + [[hash(a) == hash(b) for b in objects] if cls.__hash__ else None for a in objects])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_the_same_changes_are_refused(how):
    def put(obj: Any, name: str) -> Any:
        setattr(obj, name, 5)
        return getattr(obj, name)

    def drop(obj: Any) -> bool:
        del obj.a
        return hasattr(obj, "a")

    struct, twin = three(**how)
    for change in (lambda o: put(o, "a"), lambda o: put(o, "new"), drop):
        found = [outcome(lambda: change(cls(1)))[:1] for cls in (struct, twin)]  # noqa: B023
        assert found[0] == found[1] or how["frozen"] and how["slots"]  # TypeError in dataclasses, a known fault
    if how["frozen"]:
        with pytest.raises(dataclasses.FrozenInstanceError, match="'a' of a .*Three"):
            struct(1).a = 5


@pytest.mark.parametrize("how", HOW, ids=str)
def test_copies(how):
    struct, _ = three(**how)
    x = struct(1, 2, [3])
    for y in (copy.copy(x), replace(x), dataclasses.replace(x), copy.deepcopy(x)):
        assert (type(y), y.a, y.b, y.c) == (struct, 1, 2, [3])
    assert (replace(x, b=4).b, dataclasses.replace(x, b=4).b, x.b) == (4, 4, 2)
    with pytest.raises(TypeError):
        replace(x, d=1)


@structure(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2


def test_equal_as_tuples_of_values():
    """A struct that holds a NaN equals itself, as with dataclasses up to Python 3.12, so that it works as a key."""
    assert Point(math.nan) == Point(math.nan) and Point(math.nan) != Point(float("nan"))


def test_pickle():
    assert pickle.loads(pickle.dumps(Point(1))) == Point(1, 2)


def test_dataclasses_takes_it_for_one():
    assert dataclasses.is_dataclass(Point) and dataclasses.is_dataclass(Point(1))
    assert [f.name for f in dataclasses.fields(Point)] == ["x", "y"]
    assert Point.__dataclass_params__.frozen and not three()[0].__dataclass_params__.frozen


def test_patterns():
    match Point(1, 3):
        case Point(1, y):
            assert y == 3
        case _:
            raise AssertionError


def test_weak_references_keyword_only_and_code_of_its_own():
    @structure(eq=False, slots=True, weakref_slot=True)
    class Node:
        next: Any = None

    n = Node()
    assert weakref.ref(n)() is n and not hasattr(n, "__dict__")

    @structure(frozen=True, kw_only=True)
    class Named:
        a: int
        b: int = 2

        def __post_init__(self):
            if self.a > self.b:
                raise ValueError("a > b")

    assert (Named(a=1).b, Named.__match_args__) == (2, ())
    for wrong, error in ((lambda: Named(1), TypeError), (lambda: Named(), TypeError), (lambda: Named(a=3), ValueError)):
        with pytest.raises(error):
            wrong()

    @structure(frozen=True)
    class Own:
        a: int

        def __init__(self, a: str):
            object.__setattr__(self, "a", int(a))

    assert Own("3") == Own("3") and repr(Own("4")).endswith("Own(a=4)")


def test_a_struct_that_holds_itself_prints():
    @structure
    class Ring:
        next: Any = None

    r = Ring()
    r.next = r
    assert repr(r).endswith("Ring(next=...)")


def test_names_of_fields_may_be_those_of_the_pattern():
    """Replaced fields are given by name."""

    @structure
    class Odd:
        _field1: int
        _field0: int
        self_: int

    assert vars(Odd(1, 2, 3)) == {"_field1": 1, "_field0": 2, "self_": 3}

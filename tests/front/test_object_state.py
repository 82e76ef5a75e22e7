"""Objects that static code may reach, of any size and depth: a launch sees their changes."""

import array
import dataclasses
import enum
import sys
import types

import numpy as np
import pytest

import cutile as ct
from cutile.front import object_state
from tests.front.kinds_of_objects import KEPT, KINDS, RING, Base, Color, Derived, Frozen, Plain, reading, stored


@pytest.fixture(autouse=True)
def as_before():
    yield
    RING[0] = KEPT.n = Base.tile = Base.table[0] = Derived.Inner.table[0] = Color.TABLE.value[0] = 1
    if "tile" in vars(Derived):
        del Derived.tile


@pytest.mark.parametrize("name", KINDS)
def test_a_change_counts_at_the_next_launch(name, typings):
    make, read, change = KINDS[name]
    held = make()
    k = reading(lambda: read(held))
    assert stored(k) == stored(k) == 1 and len(typings) == 1
    change(held)
    assert stored(k) == stored(k) == 2 and len(typings) == 2


@pytest.mark.parametrize("then, now", [(np.nan, -np.nan), (0.0, -0.0), (np.nan, 1.0)])
@pytest.mark.parametrize("make", [lambda x: np.array([x]), lambda x: [x], lambda x: array.array("d", [x])])
def test_numbers_are_compared_to_the_last_bit(make, then, now):
    held = make(then)
    k = reading(lambda: np.copysign(1, held[0]) * (3 if held[0] != held[0] else 1))
    stored(k)
    held[0] = now
    assert stored(k) == np.copysign(1, now) * (3 if now != now else 1)


def test_equal_contents_are_no_change(typings):
    held = [1.5, float("nan"), 10**30, "ab", np.ones(3), {"a": (1, 2)}]
    k = reading(lambda: len(held))
    stored(k)
    held[:4] = [float("1.5"), float("nan"), int("1" + "0" * 30), "".join(["a", "b"])]
    held[4][:] = 1
    assert stored(k) == 6 and len(typings) == 1
    held[0] = 1
    assert stored(k) == 6 and len(typings) == 2


@pytest.mark.parametrize("size", [object_state.SMALL - 1, object_state.SMALL + 1, object_state.CHUNK * 2 + 8, object_state.CHUNK * 2 + 9])
@pytest.mark.parametrize("place", [0, -1])
def test_each_byte_of_memory_counts(size, place):
    a = np.zeros(size, np.uint8)
    held = object_state.snapshot(a, object_state._memory)
    assert held.same()
    a[place] = 1
    assert not held.same()


def test_programs_share_what_they_compare_with():
    table = np.zeros(10**6)

    @ct.kernel
    def k(out, n: ct.Constant):
        ct.store(out, 0, n + ct.static_eval(int(table[5])))

    for n in range(4):
        ct.launch(None, (1,), k, (np.zeros(1), n))
    copies = {id(h) for p in k._programs.values() for h in p.dependencies._snapshots.values() if h.obj is table}
    assert len(copies) == 1


class Pair(tuple):
    __slots__ = ()


@pytest.mark.parametrize("wrap", [lambda x: (0, x), lambda x: Pair((0, x)), lambda x: frozenset((0, x))],
                         ids=["tuple", "subclass", "frozenset"])
def test_what_cannot_change_is_not_compared_but_what_it_holds_is(wrap):
    class Held:
        n = 1
    held = Held()
    held.n = 1
    table = wrap(held)

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(next(x.n for x in table if x != 0)))

    assert stored(k) == 1
    compared = [s.obj for p in k._programs.values() for s in p.dependencies._snapshots.values()]
    assert any(o is held for o in compared) and not any(isinstance(o, tuple | frozenset) for o in compared)
    held.n = 2
    assert stored(k) == 2


# ------------------------------------------------------------------ objects in tile code


# ------------------------------------------------------------------ objects in tile code


def test_records_that_were_changed_by_force():
    pair = (Frozen(1), Frozen(Frozen(1)))

    def helper(*, p=pair[1]):
        return p.n.n

    @ct.kernel
    def k(out):
        ct.store(out, 0, pair[0].n * 10 + helper())

    assert stored(k) == 11
    object.__setattr__(pair[0], "n", 2)
    assert stored(k) == 21
    object.__setattr__(pair[1].n, "n", 3)
    assert stored(k) == 23


def test_members_of_enumerations_that_were_changed_by_force():
    class Level(enum.Enum):
        LOW = 1

    @ct.kernel
    def k(out):
        ct.store(out, 0, Level.LOW.value)

    assert stored(k) == 1
    Level.LOW._value_ = 2
    assert stored(k) == 2


TABLE = [1]


def look():
    return TABLE[0]


@dataclasses.dataclass(frozen=True)
class Scaled:
    n: int

    def value(self):
        return self.n * TABLE[0]


def test_what_static_code_reads_by_a_variable_of_the_kernel(monkeypatch):
    called, scaled = Plain(), Scaled(1)

    @ct.kernel
    def k(out):
        f, c, s = look, called, scaled
        ct.store(out, 0, ct.static_eval(f() * 100 + c.n * 10 + s.value()))

    assert stored(k) == 111
    called.n = 2
    assert stored(k) == 121
    monkeypatch.setattr(sys.modules[__name__], "TABLE", [3])
    assert stored(k) == 323
    TABLE[0] = 4
    assert stored(k) == 424


def test_modules_that_functions_import(monkeypatch):
    module = types.ModuleType("some_module_of_mine")
    module.n, module.table = 1, [1]
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def importing():
        import some_module_of_mine as m
        from some_module_of_mine import table
        return m.n * 10 + table[0]

    k = reading(importing)
    assert stored(k) == 11
    module.n = 2
    assert stored(k) == 21
    module.table[0] = 3
    assert stored(k) == 23


def test_looking_at_an_object_runs_none_of_its_code():
    class Loud:
        seen: list[str] = []

        def __getattribute__(self, name):
            Loud.seen.append(name)
            return object.__getattribute__(self, name)

    held = [Loud()]

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(len(held)))

    for _ in range(2):
        ct.launch(None, (1,), k, (np.zeros(1, np.int32),))
    assert Loud.seen == []

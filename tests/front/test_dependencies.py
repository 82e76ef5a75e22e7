"""Dependencies of programs: a launch sees when any of them has changed."""

import collections
import enum
import functools
import sys
import types

import numpy as np
import pytest

import cutile as ct
from cutile.front import dependencies
from cutile.front.attribute_lookup import is_plain_lookup
from cutile.front.dependencies import Dependencies
from cutile.front.scope import MISSING
from tests.front.compiling import cell, constant


def value(kernel):
    """What a kernel stores into an array of one element."""
    out = np.zeros(1, np.float32)
    ct.launch(None, (1,), kernel, (out,))
    return out[0].item()


def test_changed_contents_of_what_static_code_reads():
    space = cell("""
        table, config = [1, 2], {"a": [3]}
        def total(): return sum(table)
        @ct.kernel
        def k(out): ct.scatter(out, 0, ct.static_eval(total() + config["a"][0]))
    """)
    assert value(space["k"]) == 6
    space["table"].append(10)
    assert value(space["k"]) == 16
    space["config"]["a"][0] = 4
    assert value(space["k"]) == 17


def test_unchanged_surroundings():
    from cutile.front.program import type_kernel

    space = cell("""
        import dataclasses, enum, math
        class E(enum.Enum):
            X = 1
        @dataclasses.dataclass(frozen=True)
        class P:
            x: int
            @classmethod
            def make(cls): return cls(1)
            @staticmethod
            def two(): return 2
            @property
            def three(self): return 3
        table = [1, (2, {"a": 3})]
        def k():
            a = P.make().three + P.two() + E.X.value + ct.static_eval(table[1][0]) + len((1,))
            b = math.pi + np.float32(1) if ct.bid(0) > 0 else 0.0
            with_len = tuple(i for i in ct.static_iter(table))if False else ()
    """)
    program = type_kernel(space["k"], ())
    assert program.dependencies.unchanged()
    assert len(program.dependencies) > 8


def test_dependencies_on_things_that_vanish():
    found, space = Dependencies(), {"x": 1}
    found.add(space, "x", 1)
    assert found.unchanged()
    del space["x"]
    assert not found.unchanged()


@pytest.mark.parametrize("then, now", [(None, MISSING), (MISSING, None), (None, 1), (MISSING, 1), (1, None)])
def test_dependencies_on_nothing_and_of_none_differ(then, now):
    def put(obj):
        space.pop("x", None)
        space.update({} if obj is MISSING else {"x": obj})

    found, space = Dependencies(), {"y": 2}
    put(then)
    found.add(space, "x", then)
    found.add(space, "y", 2)
    assert found.unchanged()
    put(now)
    assert not found.unchanged()
    put(then)
    assert found.unchanged()
    found.add(space, "z", 3)
    assert not found.unchanged()


def test_what_must_be_found():
    """`comparisons` lists what `unchanged` compares where that is simple, and is `unchanged` where it is not."""
    fn, module, n, itself = (lambda: n), types.ModuleType("m"), 5, {}
    itself["x"] = itself
    module.x = 1
    found, space = Dependencies(), {"x": 1}
    found.add(space, "x", 1)
    found.add(module, "x", 1)
    found.add(fn, "__code__", fn.__code__)
    found.add(fn.__closure__[0], None, n)
    found.add(space, "y", MISSING)
    assert found.comparisons() == (space, "x", 1, vars(module), "x", 1, fn, "__code__", fn.__code__,
                                     fn.__closure__[0], "cell_contents", n, space, "y", space)
    for container, key, obj in ((types.SimpleNamespace(x=1), "x", 1), (int, "real", int.real), (itself, "x", itself)):
        more = Dependencies()
        more.add(container, key, obj)
        assert more.comparisons() == more.unchanged
    found.reach([1], "x")
    assert found.comparisons() == found.unchanged and found.unchanged()
    module.x = 2
    assert not found.unchanged()


class OfMeta(type):
    def __getattribute__(cls, name):
        return type.__getattribute__(cls, name)


class Members:
    n = 1

    def method(self):
        return self.n

    @staticmethod
    def static():
        return 1

    @classmethod
    def of_class(cls):
        return 1

    @property
    def asked(self):
        return 1

    @functools.cached_property
    def kept(self):
        return 1


class Finding:
    def __getattr__(self, name):
        return Members.method


class Watched(metaclass=OfMeta):
    def f(self):
        return 1


def of_members():
    members = Members()
    members.n = 2
    return members


LOOKUPS = [  # container, attribute, what it is, whether looking it up runs no code of the user
    (of_members(), "n", 2, True), (Members, "n", 1, True), (Members, "method", Members.method, True),
    (Members, "asked", vars(Members)["asked"], False), (Members, "static", vars(Members)["static"], False),
    (of_members(), "asked", 1, False), (Finding(), "n", Members.method, False), (Finding(), "n", 1, False),
    (Watched, "f", Watched.f, False), (value, "__code__", value.__code__, True), (value, "__kwdefaults__", None, True),
    ((lambda: value).__code__, "co_name", "<lambda>", False), (types.ModuleType("m"), "__name__", "m", False),
    (of_members(), None, 2, False),
]


@pytest.mark.parametrize("container, key, obj, plain", LOOKUPS)
def test_lookups_that_run_no_code_of_the_user(container, key, obj, plain):
    assert is_plain_lookup(container, key, obj) is plain


def test_functions_of_classes_are_dependencies_only_if_code_names_them():
    found = Dependencies(__name__)
    found.reach(of_members(), "members")
    names = {key for _, key in found._lookups}
    assert "n" in names and names.isdisjoint({"method", "static", "of_class", "asked", "kept"})


def test_a_member_of_an_enum_that_gets_another_format(capsys):
    class Color(enum.Enum):
        RED = 1

    @ct.kernel
    def kernel():
        print(f"{Color.RED}", f"{(Color.RED,)}")

    ct.launch(None, (1,), kernel, ())
    Color.__format__ = lambda self, spec: "formatted"
    ct.launch(None, (1,), kernel, ())
    Color.__repr__ = lambda self: "shown"
    ct.launch(None, (1,), kernel, ())
    first = "Color.RED (<Color.RED: 1>,)"
    assert capsys.readouterr().out.splitlines() == [first, first.replace("Color.RED", "formatted", 1), "formatted (shown,)"]


def test_states_that_static_code_makes_one_after_another():
    obj, (a, b, c, d) = object(), [[n] for n in range(4)]
    at = id(obj), "x"
    dependencies._record_change(at, obj, a, b)
    dependencies._record_change(at, obj, b, c)
    assert all(dependencies._latest(at, obj, state) is c for state in (a, b, c))
    assert dependencies._latest(at, obj, d) is dependencies._latest(at, object(), a) is dependencies._NOTHING
    dependencies._record_change(at, obj, d, a)  # somebody else made d
    assert dependencies._latest(at, obj, d) is a and dependencies._latest(at, obj, c) is dependencies._NOTHING


def test_deep_objects_are_not_followed_without_end():
    ring: list = [1]
    ring.append(ring)
    assert constant(lambda: ct.static_eval(ring[1][1][0])) == 1


# ------------------------------------------------------------------ what may change

config = types.ModuleType("config")
FACTOR, TABLE = 1, np.array([1.0])


class Settings:
    tile = 1

    def read(self):
        return FACTOR


class Slotted:
    __slots__ = ("tile",)


def of_module():
    return config.tile


def of_class():
    return Settings.tile


def in_generator():
    return sum(FACTOR * x for x in (1,))


def in_inner_function():
    def inner():
        return FACTOR

    return inner()


def by_default(x=1):
    return x


def keyword_default(*, x=1):
    return x


@pytest.fixture
def outside(monkeypatch):
    monkeypatch.setattr(config, "tile", 1, raising=False)
    return monkeypatch


def calling(f):
    @ct.kernel
    def k(y):
        ct.store(y, 0, ct.full((1,), ct.static_eval(f()), ct.float32))

    return k


settings_object, slotted = Settings(), Slotted()
slotted.tile = 1


@ct.kernel
def k_class(y):
    ct.store(y, 0, ct.full((1,), ct.static_eval(Settings.tile), ct.float32))


@ct.kernel
def k_class_of_instance(y):
    ct.store(y, 0, ct.full((1,), ct.static_eval(settings_object.tile), ct.float32))


@ct.kernel
def k_method(y):
    ct.store(y, 0, ct.full((1,), ct.static_eval(settings_object.read()), ct.float32))


@ct.kernel
def k_slots(y):
    ct.store(y, 0, ct.full((1,), ct.static_eval(slotted.tile), ct.float32))


@ct.kernel
def k_array(y):
    ct.store(y, 0, ct.full((1,), ct.static_eval(float(TABLE[0])), ct.float32))


@ct.kernel
def k_keyword(y):
    ct.store(y, 0, ct.full((1,), keyword_default(), ct.float32))


@ct.kernel
def k_builtin(y):
    ct.store(y, 0, ct.full((1,), min(1, 5), ct.float32))


here = sys.modules[__name__]
CHANGES = {
    "attribute of a module, in a function": (calling(of_module), config, "tile", 2),
    "attribute of a class, in a function": (calling(of_class), Settings, "tile", 2),
    "attribute of a class": (k_class, Settings, "tile", 2),
    "attribute of an instance's class": (k_class_of_instance, Settings, "tile", 2),
    "a method": (k_method, Settings, "read", lambda self: 2),
    "global of a method": (k_method, here, "FACTOR", 2),
    "global of a generator in a function": (calling(in_generator), here, "FACTOR", 2),
    "global of a function in a function": (calling(in_inner_function), here, "FACTOR", 2),
    "a default": (calling(by_default), by_default, "__defaults__", (2,)),
    "a slot": (k_slots, slotted, "tile", 2),
    "a global that hides a builtin": (k_builtin, here, "min", lambda a, b: 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_outside(name, outside):
    k, owner, attribute, other = CHANGES[name]
    assert value(k) == 1
    outside.setattr(owner, attribute, other, raising=False)
    assert value(k) == 2


def test_what_static_code_changes_itself_is_no_change():
    class Counter:
        count, factor = 0, 1

        def hit(self):
            self.count += 1
            return self.count * self.factor

    counter = Counter()
    counter.factor = 2
    hit = counter.hit

    @ct.kernel
    def k(y):
        ct.store(y, 0, ct.full((1,), ct.static_eval(hit()), ct.float32))

    assert [value(k), value(k), counter.count] == [2, 2, 1]
    counter.factor = 10
    assert [value(k), value(k), counter.count] == [20, 20, 2]
    counter.count = 7  # by somebody else
    assert [value(k), value(k), counter.count] == [80, 80, 8]


def reading_tables(n: int, count: str = "0"):
    """A kernel whose lines each read an array of their own in static code."""
    lines = "".join(f"    x = x + ct.static_eval(int(t{i}[0]) + {count})\n" for i in range(n))
    tables = {f"t{i}": np.array([i]) for i in range(n)}
    found = {"hits": [], **tables}
    return cell(f"@ct.kernel\ndef k(y):\n    x = 0\n{lines}    ct.store(y, 0, ct.full((1,), x, ct.float32))\n",
                ct=ct, **found)["k"], found


def test_comparisons_with_what_static_code_read_grow_with_the_program(monkeypatch):
    compared = []
    same = dependencies.Snapshot.same
    monkeypatch.setattr(dependencies.Snapshot, "same", lambda self: compared.append(self) or same(self))
    found = []
    for n in (50, 100, 200):
        compared.clear()
        assert value(reading_tables(n)[0]) == n * (n - 1) // 2
        found.append(len(compared))
    assert found[2] - found[1] <= 2.3 * (found[1] - found[0]), found


def test_what_static_code_changes_in_a_long_program_is_no_change():
    k, found = reading_tables(40, "(hits.append(1), len(hits))[1]")
    wanted = 40 * 39 // 2 + 40 * 41 // 2
    assert [value(k), value(k), len(found["hits"])] == [wanted, wanted, 40]
    found["t7"][0] += 5  # by somebody else
    assert [value(k), len(found["hits"])] == [wanted + 5 + 40 * 40, 80]


def first_of_sorted(x):
    x.sort()
    return x[0]


OWN_CHANGES = {
    "default": (lambda: collections.defaultdict(lambda: 16), lambda d: d["q"], 16, lambda d: d.update(q=9), 9),
    "setdefault": (dict, lambda d: d.setdefault("n", 4), 4, lambda d: d.update(n=9), 9),
    "memo": (dict, lambda d: d.setdefault("n", [4])[0], 4, lambda d: d["n"].__setitem__(0, 9), 9),
    "array": (lambda: np.array([1, 5]), lambda a: (a.__setitem__(0, 2), a[1])[1], 5, lambda a: a.__setitem__(1, 9), 9),
    "sort": (lambda: [3, 1, 2], first_of_sorted, 1, lambda x: x.__setitem__(0, -5), -5),
}


@pytest.mark.parametrize("make, read, before, change, after", OWN_CHANGES.values(), ids=OWN_CHANGES)
def test_changes_of_others_after_those_of_static_code(make, read, before, change, after):
    held = make()

    @ct.kernel
    def k(y):
        ct.store(y, 0, ct.full((1,), ct.static_eval(int(read(held))), ct.float32))

    assert [value(k), value(k)] == [before, before] and len(k._programs) == 1
    change(held)
    assert [value(k), value(k)] == [after, after]


def test_static_code_that_counts_for_several_programs(outside):
    outside.count = 0

    def hit():
        outside.count += 1
        return outside.count

    @ct.kernel
    def k(y, n: ct.Constant):
        ct.store(y, 0, ct.full((1,), ct.static_eval(hit()), ct.float32))

    def stored(n):
        y = np.zeros(1, np.float32)
        ct.launch(None, (1,), k, (y, n))
        return y[0]

    assert [stored(1), stored(2), stored(1), stored(2)] == [1, 2, 1, 2]


def test_results_that_static_code_keeps(outside):
    outside.table, outside.factor = {}, 2

    def once(n):
        if n not in outside.table:
            outside.table[n] = n * outside.factor
        return outside.table[n]

    @ct.kernel
    def k(y):
        ct.store(y, 0, ct.full((1,), ct.static_eval(once(3)), ct.float32))

    assert [value(k), value(k)] == [6, 6]
    outside.table = {}
    outside.factor = 3
    assert [value(k), value(k)] == [9, 9]


def test_an_item_of_an_array_changed(outside):
    assert value(k_array) == 1
    outside.setattr(here, "TABLE", TABLE.copy())
    assert value(k_array) == 1
    TABLE[0] = 2
    assert value(k_array) == 2


def test_an_item_of_the_keyword_defaults_changed(outside):
    assert value(k_keyword) == 1
    outside.setitem(keyword_default.__kwdefaults__, "x", 2)
    assert value(k_keyword) == 2


def test_property_of_a_metaclass():
    class Meta(type):
        @property
        def first(cls):
            return table[0]

    class Read(metaclass=Meta):
        pass

    table = [1]

    @ct.kernel
    def k(y):
        ct.store(y, 0, ct.full((1,), ct.static_eval(Read.first), ct.float32))

    assert value(k) == 1
    table[0] = 2
    assert value(k) == 2
    Meta.first = property(lambda cls: 3)
    assert value(k) == 3

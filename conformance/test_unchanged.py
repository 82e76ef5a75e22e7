"""What compiles nothing anew: changes of what static code does not read, changes that it makes itself, and none."""

import dataclasses
import enum

import pytest

from conformance.harness.api import clause, ct
from conformance.harness.read_module import KERNEL, MODULE, stored
from conformance.harness.tile_code import Counter, module

CHANGES = {  # what nothing reads, or what is equal afterwards
    "another global": "unread = 8",
    "another function": "def default(): return 8",
    "a method that nothing names": "Own.unread = lambda self: 8",
    "a method of a base that nothing names": "Base.of = lambda self: 8",
    "an attribute that nothing reads": "simple.unread = 8; simple.held.append(1)",
    "a class that gets a method that nothing names": "Base.method_of_none = lambda self: 8",
    "a name of a module that nothing reads": "inner.unread = 8",
    "a cached property that nothing names": "Own.cached = functools.cached_property(lambda self: 8)",
    "a property that nothing names": "Own.shown = property(lambda self: 8)",
    "a staticmethod that nothing names": "Own.static = staticmethod(lambda: 8)",
    "a classmethod that nothing names": "Own.of_class = classmethod(lambda cls: 8)",
    "a class that gets what nothing names": "Base.of_none = property(); Base.static_of_none = staticmethod(len)",
    "annotations that are read": "Own.__annotations__, Base.__annotations__, Plain.__annotations__",
    "a documentation": "Own.__doc__ = Base.__doc__ = 'text'",
    "a signature that a tool keeps": "Own.__signature__ = Base.__signature__ = None",
    "equal bools": "flags[:] = [1 == 1, 1 == 2]",
    "equal numbers and texts": "items[:] = "
                               "[float('2.5'), ''.join(['te', 'xt']), (float('1.5'), int('9' * 9)), bytes([9] * 9)]",
    "equal bytes": "array[:] = 3",
    "nothing": "pass",
}
ITEMS = "\nitems = [2.5, 'text', (1.5, 999999999), bytes([9] * 9)]\n"


@clause("SPEC-1.same")
@pytest.mark.parametrize("what", CHANGES)
def test_changes_that_do_not_count(what):
    counter = Counter()
    reads = ("helper() + own.number - numbers[0] + own[0] * 0 + int(array[0, 0]) + len(items) - 9 + len(flags) "
             "+ simple.number - inner.number + getattr(own, 'number', 3) - hasattr(inner, 'number') - 2")
    space = module(MODULE + ITEMS + KERNEL.format(reads), hit=counter.hit)
    for _ in range(3):
        assert stored(space["kern"]) == 3
        exec(CHANGES[what], space)
    assert stored(space["kern"]) == 3 and counter.count == 1


@clause("SPEC-1.same", "SEVAL-2.python")
@pytest.mark.parametrize("change", [
    "numbers.append(3)", "table.update(c=len(table))", "space.count = getattr(space, 'count', 0) + 1",
    "globals().update(calls=globals().get('calls', 0) + 1)", "Own.calls = getattr(Own, 'calls', 0) + 1", "cached(3)",
    "own.mine.__add__(1)", "put(get() + 1)", "[numbers.append(k) or table.update({k: k}) for k in range(70)]",
])
def test_static_code_that_changes_what_it_reads(change):
    """Its own changes compile nothing anew, also if several kernels make them in turn."""
    one, two = Counter(), Counter()
    space = module(MODULE + """
@functools.lru_cache
def cached(x):
    return x + len(numbers)

def changing():
    before = (len(numbers), len(table), vars(space), get(), Own.__dict__.get("calls"))
    CHANGE
    return 3

@ct.kernel
def kern(out):
    n = ct.static_eval(hit_one())
    ct.store(out, 0, ct.static_eval(changing()))

@ct.kernel
def other(out):
    n = ct.static_eval(hit_two())
    m = ct.static_eval(changing())
    ct.store(out, 0, ct.static_eval(changing()))
""".replace("CHANGE", change), hit_one=one.hit, hit_two=two.hit)
    for _ in range(3):
        assert stored(space["kern"]) == stored(space["kern"]) == stored(space["other"]) == 3
    assert (one.count, two.count) == (1, 1)


@clause("SPEC-1.same")
def test_kernels_that_are_launched_again():
    """What kernels find outside static code: globals, captured variables, methods, classes, modules."""
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int
        size = 2

        def both(self, n):
            return self.x * self.size + n

        @classmethod
        def of(cls, n):
            return cls(n)

        @staticmethod
        def one(n):
            return n + 1

        @property
        def y(self):
            return self.x + 1

    p, color, width, text = Point(1), enum.Enum("Color", "RED"), 4, "text"
    helper = lambda n: p.both(n) + width
    counter = Counter()
    hit = counter.hit

    @ct.kernel
    def k(out):
        n = ct.static_eval(hit())
        q = Point.of(ct.bid(0))
        total = helper(n) + q.both(3) + Point.one(4) + q.y + Point.size + ct.static_eval(len(text)) - n
        if color.RED == color.RED:
            ct.store(out, 0, total + max(1, 2))

    for _ in range(5):
        assert stored(k) == 2 + 4 + 3 + 5 + 1 + 2 + 4 + 2 and counter.count == 1

"""What later launches of a kernel look at: all that tile code read, and no more."""

import pytest

from conformance.harness.api import clause, ct
from conformance.harness.read_module import CAPTURED, stored
from conformance.harness.tile_code import Counter, module, rejects, result

# ------------------------------------------------------------------ what tile code reads

# What may be read, tile code that reads it, and code that changes it so that another number is read.
SOURCE = CAPTURED + """
import contextlib
import dataclasses
import enum
import functools
import types
import typing

number, numbers, text, pair = 3, (3, 4), "abc", (1, (2, 3))
inner = types.ModuleType("inner")
inner.number, inner.helper = 3, lambda: 3
inner.deeper = types.ModuleType("deeper")
inner.deeper.number = 3

def helper(n=3, *, m=1):
    return n * m

def around():
    return helper()

def wrapped(f):
    @functools.wraps(f)
    def run():
        return f()
    return run

outer = wrapped(around)

@contextlib.contextmanager
def manager(n=3):
    yield n

class Color(enum.Enum):
    RED = 3

class Level(enum.IntEnum):
    LOW = 3

class Titled(enum.Enum):
    LOW = 3

    def __str__(self):
        return text + self.name

class Pair(typing.NamedTuple):
    x: object
    y: object

both = Pair(3, 4)

def frozen(cls):
    return dataclasses.dataclass(frozen=True)(cls)

@frozen
class Point:
    x: object = 3
    size = 3

    def of(self):
        return self.x

    @property
    def shown(self):
        return self.x

    @classmethod
    def made(cls):
        return cls.size

    @staticmethod
    def fixed():
        return number

    def __call__(self):
        return self.x

    def __len__(self):
        return self.x

    def __getitem__(self, key):
        return self.x + key

    def __add__(self, other):
        return self.x + other

    def __radd__(self, other):
        return self.x + other

    def __neg__(self):
        return self.x

    def __setitem__(self, key, value):
        pass

@frozen
class Checked:
    x: object

    def __post_init__(self):
        ct.static_assert(Color.RED.value == 3 or self.x == 8)

@frozen
class Plain:
    x: object = 3

@frozen
class Reflected:
    x: object = 3

    def __radd__(self, other):
        return self.x

plain, reflected = Plain(), Reflected()
point = Point()
method = point.of
"""
READS = {
    "a global": ("number", "number = 8"),
    "a global in a helper": ("Point.fixed()", "number = 8"),
    "an item of a tuple": ("numbers[0]", "numbers = (8, 4)"),
    "an item of an inner tuple": ("pair[1][1]", "pair = (1, (2, 8))"),
    "a text": ("3 if text == 'abc' else 8", "text = 'abd'"),
    "a helper": ("helper()", "def helper(): return 8"),
    "a helper of a helper": ("around()", "def helper(): return 8"),
    "a wrapped helper": ("outer()", "def helper(): return 8"),
    "the code of a helper": ("helper(3)", "def other(n=3, *, m=1): return n + 5\nhelper.__code__ = other.__code__"),
    "a default": ("helper()", "helper.__defaults__ = (8,)"),
    "defaults by keyword": ("helper()", "helper.__defaults__ = (4,)\nhelper.__kwdefaults__ = {'m': 2}"),
    "a default by keyword": ("helper(4) if number == 8 else helper()", "number = 8\nhelper.__kwdefaults__['m'] = 2"),
    "a captured variable": ("get()", "put(8)"),
    "a module": ("inner.number", "inner.number = 8"),
    "another module": ("inner.number", "inner = types.ModuleType('inner')\ninner.number = 8"),
    "a module in a module": ("inner.deeper.number", "inner.deeper.number = 8"),
    "a function in a module": ("inner.helper()", "inner.helper = lambda: 8"),
    "a builtin that a global hides": ("max(3, 2)", "max = lambda x, y: 8"),
    "a builtin that a global hides in a helper": ("biggest()", "max = lambda x, y: 8"),
    "a manager": ("managed()", "@contextlib.contextmanager\ndef manager(n=8): yield n"),
    "a default of a manager": ("managed()", "manager.__wrapped__.__defaults__ = (8,)"),
    "a member of an enum": ("Color.RED.value", "class Color(enum.Enum):\n    RED = 8"),
    "a value of a member": ("Color.RED.value", "Color.RED._value_ = 8"),
    "a name of a member": ("3 if Color.RED.name == 'RED' else 8", "Color.RED._name_ = 'BLUE'"),
    "a member of an int enum": ("Level.LOW + 0", "class Level(enum.IntEnum):\n    LOW = 8"),
    "a class": ("Point.size", "Point.size = 8"),
    "another class": ("Point.size", "class Point:\n    size = 8"),
    "a field": ("point.x", "object.__setattr__(point, 'x', 8)"),
    "another instance": ("point.x", "point = Point(8)"),
    "a default of a field": ("Point().x", "Point.__dataclass_fields__['x'].default = 8"),
    "a method": ("point.of()", "Point.of = lambda self: 8"),
    "a method of an instance that is made": ("Point(3).of()", "Point.of = lambda self: 8"),
    "a bound method": ("method()", "object.__setattr__(point, 'x', 8)"),
    "a property": ("point.shown", "Point.shown = property(lambda self: 8)"),
    "a classmethod": ("Point.made()", "Point.made = classmethod(lambda cls: 8)"),
    "a classmethod by instance": ("point.made()", "Point.made = classmethod(lambda cls: 8)"),
    "a staticmethod": ("Point.fixed()", "Point.fixed = staticmethod(lambda: 8)"),
    "a staticmethod by instance": ("point.fixed()", "Point.fixed = staticmethod(lambda: 8)"),
    "a constant of a class by instance": ("point.size", "Point.size = 8"),
    "a class that is called": ("Checked(3).x", "class Checked:\n    pass\nChecked = lambda x: Point(8)"),
    "a method ()": ("point()", "Point.__call__ = lambda self: 8"),
    "a method len": ("len(point)", "Point.__len__ = lambda self: 8"),
    "a method []": ("point[0]", "Point.__getitem__ = lambda self, k: 8"),
    "a method +": ("point + 0", "Point.__add__ = lambda self, x: 8"),
    "a reflected method +": ("0 + point", "Point.__radd__ = lambda self, x: 8"),
    "a method + that a class gets": ("plain + reflected", "Plain.__add__ = lambda self, other: 8"),
    "a method -": ("-point", "Point.__neg__ = lambda self: 8"),
    "a text of a dataclass": ("3 if str(Point(3)) != 'other' else 8", "Point.__str__ = lambda self: 'other'"),
    "a repr of a dataclass": ("3 if repr(Point(3)) != 'other' else 8", "Point.__repr__ = lambda self: 'other'"),
    "a text of a named tuple": ("3 if str(both) != 'other' else 8", "Pair.__str__ = lambda self: 'other'"),
    "a repr of a named tuple": ("3 if str((both,)) != '(other,)' else 8", "Pair.__repr__ = lambda self: 'other'"),
    "a text of a member": ("3 if str(Color.RED) != 'other' else 8", "Color.__str__ = lambda self: 'other'"),
    "a repr of a member": ("3 if str((Color.RED,)) != '(other,)' else 8", "Color.__repr__ = lambda self: 'other'"),
    "a name of a member that is shown": ("3 if str(Color.RED) == 'Color.RED' else 8", "Color.RED._name_ = 'BLUE'"),
    "what a method of an enum reads": ("3 if str(Titled.LOW) == 'abcLOW' else 8", "text = 'other'"),
    "a __post_init__": ("made_checked()", "number = 8\nChecked.__post_init__ = lambda self: None"),
}
KERNEL = """
def biggest():
    return max(3, 2)

def managed():
    with manager() as n:
        return n

def made_checked():
    return Checked(number).x

@ct.kernel
def kern(out):
    n = ct.static_eval(hit())
    ct.store(out, 0, {})
"""


@clause("CONST-4.variable", "CONST-4.field", "PRINT-2.enum", "PRINT-2.record.str", "SPEC-1.same")
@pytest.mark.parametrize("what", READS)
def test_what_tile_code_reads(what):
    """Compiled once for what is there, and once for what is changed, however often it is launched."""
    expression, change = READS[what]
    counter = Counter()
    space = module(SOURCE + KERNEL.format(expression), hit=counter.hit)
    assert [stored(space["kern"]) for _ in range(4)] == [3] * 4
    assert counter.count == 1
    space.update(module(change, **space))
    assert [stored(space["kern"]) for _ in range(4)] == [8] * 4
    assert counter.count == 2


# ------------------------------------------------------------------ several kernels


@clause("CONST-4.contents")
def test_changes_by_the_host_between_those_by_static_code():
    """What one kernel's static code changes is no news to it; what the host changed before is, to all."""
    for first in "changes", "reads":
        space = module("""
            numbers = [3]

            def more():
                numbers.append(1)
                return numbers[0]

            @ct.kernel
            def changes(out):
                ct.store(out, 0, ct.static_eval(more()))

            @ct.kernel
            def reads(out):
                ct.store(out, 0, ct.static_eval(numbers[0]))

            @ct.kernel
            def also(out):
                ct.store(out, 0, ct.static_eval(more()))
        """)
        kernels = [space[n] for n in ((first,) + tuple({"changes", "reads"} - {first}))]
        assert [stored(k) for k in kernels] == [3, 3]
        space["numbers"][0] = 8
        assert stored(space["also"]) == 8
        assert [stored(k) for k in kernels] == [8, 8]
        assert [stored(k) for k in kernels] == [8, 8]


@clause("CONST-4.variable", "EX-5.read")
@pytest.mark.parametrize("value, other", [(3, 8), ("lambda: 3", "lambda: 8"), ("np.int8(3)", "np.int8(8)")])
def test_names_of_several_modules(value, other):
    """Each module's own name of a module that both use."""
    call = "()" if "lambda" in str(value) else ""
    made = module(f"""
        import types

        constants, others = types.ModuleType("constants"), types.ModuleType("constants")
        constants.k, others.k = {value}, {other}
    """)
    text = f"def read(): return constants.k{call}"
    one, two = (module(text, constants=made["constants"]) for _ in range(2))
    first, second = one["read"], two["read"]

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.int32(first()) * 100 + ct.int32(second()) * 10 + ct.int32(first()))

    assert stored(k) == 333
    two["constants"] = made["others"]
    assert stored(k) == 383
    one["constants"] = made["others"]
    assert stored(k) == 888


@clause("CONST-4.variable", "EX-4.undefined")
def test_variables_that_are_assigned_later():
    """A variable that a function captures and that has no value yet."""
    def f(n):
        return n + later  # noqa: F821 -- deleted at last

    assert not isinstance(rejects(("TileSyntaxError", "TileTypeError"), f, 1), ct.TileInternalError)
    later = 5
    assert result(f, 1) == 6
    later = 7
    assert result(f, 1) == 8
    del later
    rejects(("TileSyntaxError", "TileTypeError"), f, 1)

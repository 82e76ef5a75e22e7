"""What static code reaches through functions, classes and modules: a change counts, and nothing else compiles anew."""

import collections
import dataclasses
import enum
import functools
import io
import operator
import sys

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, run
from conformance.harness.tile_code import Counter, module

# What may be read, the code that reads it, and code that changes it so that another number is read.
SOURCE = """
import functools
import sys
import types
from types import SimpleNamespace as Space

number = 3
numbers = [3, 3]
table = {"a": {"b": (1, [3])}}
space = Space(number=3, inner=Space(numbers=[3], text="c"))
inner = types.ModuleType("inner")
inner.number, inner.numbers = 3, [3]
name = "num" + "ber"

def helper():
    return number

def wrapped(f):
    @functools.wraps(f)
    def run(*args):
        return f(*args)
    return run

@wrapped
def outer():
    return helper()

def default(x=numbers, *, y=table):
    return x[0], y["a"]["b"][1][0]

default.of = [3]

def counter():
    value = 3
    def get():
        return value
    def put(x):
        nonlocal value
        value = x
    return get, put

get, put = counter()
partial = functools.partial(default, y=table)
lazy = lambda: (lambda: [number for _ in (1,)])()[0]

class Base:
    number = 3
    held = [3]

    def of(self):
        return self.number

    def __len__(self):
        return 3

    def __getattr__(self, name):
        if name != "missing":
            raise AttributeError(name)
        return 3

class Own(Base):
    __slots__ = ("slot",)
    count = 3

    def __init__(self):
        self.slot, self.mine = 3, 3

    @property
    def shown(self):
        return self.slot

    @staticmethod
    def static():
        return number

    @classmethod
    def of_class(cls):
        return cls.count

    @functools.cached_property
    def cached(self):
        return 3

    def __getitem__(self, k):
        return numbers[k]

    def __call__(self, k=3):
        return k

    def __add__(self, other):
        return 3

    def __iter__(self):
        return iter(numbers)

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 3

    def __bool__(self):
        return True

    def __format__(self, spec):
        return "3"

    def __contains__(self, x):
        return True

own = Own()
"""
READS = {
    "a global": ("helper()", "number = 8"),
    "a global of a wrapped function": ("outer()", "number = 8"),
    "a function that a function calls": ("outer()", "def helper(): return 8"),
    "the code of a function": ("outer()", "helper.__code__ = (lambda: 8).__code__"),
    "a global in a lambda": ("lazy()", "number = 8"),
    "an item of a global": ("(lambda: numbers[1])()", "numbers[1] = 8"),
    "a new list": ("(lambda: numbers[1])()", "numbers = [8, 8]"),
    "what tables hold": ("(lambda: table['a']['b'][1][0])()", "table['a']['b'][1][0] = 8"),
    "an attribute": ("(lambda: space.number)()", "space.number = 8"),
    "an inner attribute": ("(lambda: space.inner.numbers[0])()", "space.inner.numbers[0] = 8"),
    "another object": ("(lambda: space.inner.numbers[0])()", "space.inner = Space(numbers=[8])"),
    "a text": ("(lambda: len(space.inner.text) + 2)()", "space.inner.text = 'abcdef'"),
    "a module": ("(lambda: inner.number)()", "inner.number = 8"),
    "a list in a module": ("(lambda: inner.numbers[0])()", "inner.numbers[0] = 8"),
    "a module's name that is new": ("getattr(inner, 'other', 3)", "inner.other = 8"),
    "by a computed name": ("getattr(space, name)", "space.number = 8"),
    "by a computed name in a class": ("getattr(Own, name)", "Base.number = 8"),
    "the computed name": ("getattr(space, name, 8)", "name = 'none'"),
    "a default": ("default()[0]", "numbers[0] = 8"),
    "a default by keyword": ("default()[1]", "table['a']['b'][1][0] = 8"),
    "another default": ("default()[0]", "default.__defaults__ = ([8],)"),
    "another default by keyword": ("default()[1]", "default.__kwdefaults__['y'] = {'a': {'b': (0, [8])}}"),
    "an attribute of a function": ("default.of[0]", "default.of[0] = 8"),
    "a captured variable": ("get()", "put(8)"),
    "a partial": ("partial()[1]", "table['a']['b'][1][0] = 8"),
    "a class": ("Own.count", "Own.count = 8"),
    "a class in a function": ("(lambda: Own.count)()", "Own.count = 8"),
    "another class": ("(lambda: Own.count)()", "class Own:\n    count = 8"),
    "a list in a base": ("own.held[0]", "Base.held[0] = 8"),
    "a name in a base": ("own.number", "Base.number = 8"),
    "a name that hides one of a base": ("own.number", "Own.number = 8"),
    "an attribute that hides one of a class": ("own.number", "own.number = 8"),
    "a slot": ("own.slot", "own.slot = 8"),
    "a property": ("own.shown", "own.slot = 8"),
    "another property": ("own.shown", "Own.shown = property(lambda self: 8)"),
    "a method": ("own.of()", "Base.of = lambda self: 8"),
    "what a method reads": ("own.of()", "own.number = 8"),
    "a bound method": ("method()", "own.number = 8"),
    "a staticmethod": ("own.static()", "number = 8"),
    "another staticmethod": ("own.static()", "Own.static = staticmethod(lambda: 8)"),
    "a classmethod": ("Own.of_class()", "Own.count = 8"),
    "another classmethod": ("Own.of_class()", "Own.of_class = classmethod(lambda cls: 8)"),
    "a cached property": ("type(own)().cached", "Own.cached = property(lambda self: 8)"),
    "what an operator reads": ("own[1]", "numbers[1] = 8"),
    "[]": ("own[0]", "Own.__getitem__ = lambda self, k: 8"),
    "()": ("own()", "Own.__call__ = lambda self: 8"),
    "a default of ()": ("own()", "Own.__call__.__defaults__ = (8,)"),
    "+": ("own + 1", "Own.__add__ = lambda self, x: 8"),
    "len": ("len(own)", "Base.__len__ = lambda self: 8"),
    "iter": ("max(own)", "Own.__iter__ = lambda self: iter([8])"),
    "==": ("3 if own == 0 else 8", "Own.__eq__ = lambda self, x: False"),
    "hash": ("hash(own)", "Own.__hash__ = lambda self: 8"),
    "bool": ("3 if own else 8", "Own.__bool__ = lambda self: False"),
    "format": ("int(f'{own}')", "Own.__format__ = lambda self, spec: '8'"),
    "in": ("3 if 9 in own else 8", "Own.__contains__ = lambda self, x: False"),
    "getattr": ("own.missing", "Base.__getattr__ = lambda self, name: 8"),
    "the class of an object": ("own.kind if isinstance(own, Other) else 3", "own.__class__ = Other"),
    "a builtin that a global hides": ("(lambda: max(3, 2))()", "max = lambda x, y: 8"),
    "a builtin that a global hides in a helper": ("biggest()", "max = lambda x, y: 8"),
    "a module of a package": ("importing()", "inner.number = 8"),
    "a global in a class body": ("body()", "number = 8"),
    "a generator": ("sum(x for x in numbers[:1])", "numbers[0] = 8"),
    "a generator function": ("max(generating())", "numbers[:] = [8]"),
    "a global statement": ("through_global()", "number = 8"),
    "a star": ("(lambda *x: x[0])(*numbers)", "numbers[:] = [8]"),
    "an f-string": ("int(f'{number}')", "number = 8"),
    "a chain of attributes": ("(lambda: space.inner.deeper.number)()", "space.inner.deeper.number = 8"),
    "an array": ("(lambda: int(array[3, 1]))()", "array[3, 1] = 8"),
    "a bound method of a list": ("item(1)", "numbers[1] = 8"),
    "a bound method of a table": ("(lambda: entry('a')['b'][1][0])()", "table['a']['b'][1][0] = 8"),
    "the end of a large array": ("int(large[-1])", "large[-1] = 8"),
    "the middle of a large array": ("int(large[400_000])", "large[400_000] = 8"),
    "a structured scalar": ("int(record['f0'])", "record['f0'] = 8"),
    "a proxy of a table": ("(lambda: proxy['a']['b'][1][0])()", "table['a']['b'][1][0] = 8"),
    "a view of a table": ("(lambda: [*values][0]['b'][1][0])()", "table['a']['b'][1][0] = 8"),
    "a slice": ("(lambda: held_slice.start[0])()", "numbers[0] = 8"),
    "a chain of tables": ("(lambda: chain['a']['b'][1][0])()", "table['a']['b'][1][0] = 8"),
    "a queue": ("(lambda: queue[0])()", "queue[0] = 8"),
    "the order of a table": ("(lambda: next(iter(ordered.values())))()", "ordered.move_to_end('a')"),
    "a default of a table": ("(lambda: defaults['new'] + 3)() if 'new' in defaults else 3", "defaults['new'] = 5"),
    "a set": ("(lambda: len(numbers_set) + 2)()", "numbers_set.update(range(6))"),
    "a frozen set of lists": ("(lambda: max(len(x.held) for x in frozen) + 3)()", "simple.held.extend(range(5))"),
    "a weak reference": ("(lambda: weak().number)()", "simple.number = 8"),
    "a variable of the thread": ("(lambda: thread.number)()", "thread.number = 8"),
    "a list of the thread": ("(lambda: thread.numbers[0])()", "thread.numbers[0] = 8"),
    "a context variable": ("(lambda: variable.get())()", "variable.set(8)"),
    "bytes": ("(lambda: buffer[0])()", "buffer[0] = 8"),
    "an array of Python": ("(lambda: of_python[0])()", "of_python[0] = 8"),
    "an array of objects": ("(lambda: objects[1][0])()", "objects[1][0] = 8"),
    "an object of an array": ("(lambda: objects[1][0])()", "objects[1] = [8]"),
    "what a caller of methods holds": ("caller({})[0]", "numbers[0] = 8"),
    "a super object": ("parent.of()", "own.number = 8"),
    "a bound class method": ("made()", "Own.count = 8"),
    "a property object": ("showing.fget(own)", "own.slot = 8"),
    "a text in a list": ("int(mixed[0])", "mixed[0] = '8'"),
    "a float in a list": ("int(mixed[1])", "mixed[1] = 8.5"),
    "bytes in a list": ("int(mixed[2])", "mixed[2] = b'8'"),
    "a tuple in a list": ("mixed[3][1][0]", "mixed[3] = (1, (8,))"),
    "a complex number": ("int(mixed[4].real)", "mixed[4] = 8 + 0j"),
    "the sign of zero": ("3 if str(mixed[5]) == '0.0' else 8", "mixed[5] = -0.0"),
    "the type of a number": ("3 if type(mixed[6]) is int else 8", "mixed[6] = 1.0"),
    "a bool for a number": ("3 if type(mixed[6]) is int else 8", "mixed[6] = True"),
    "a range": ("max(mixed[7])", "mixed[7] = range(9)"),
    "a dtype": ("mixed[8].itemsize + 1", "mixed[8] = np.dtype('u4,u2,u1')"),
    "a NumPy number": ("int(mixed[9])", "mixed[9] = np.int8(8)"),
    "a missing key": ("table.get('z', 3)", "table['z'] = 8"),
    "a text of another length": ("len(mixed[10])", "mixed[10] = 'eightful'"),
    "a variable in a class body": ("in_class(get)", "put(8)"),
    "a captured variable in a class body": ("captured_in_class()", "number_in_class(8)"),
    "one of two equal lists": ("first[0] + second[0] - 3", "second[0] = 8"),
    "an attribute that another one hides": ("own.number - Own.number + 3", "own.number = 8"),
    "a module's names": ("8 if 'other' in dir(inner) else 3", "inner.other = 1"),
    "a module by vars": ("vars(inner)[name]", "inner.number = 8"),
    "a module by its dict": ("inner.__dict__[name]", "inner.number = 8"),
    "a module by getattr": ("getattr(inner, name)", "inner.number = 8"),
    "a module by getattr in a helper": ("computed(inner, 'num', 'ber')", "inner.number = 8"),
    "a module by a getter": ("operator.attrgetter(name)(inner)", "inner.number = 8"),
    "a module by a getter that was made before": ("getter(inner)", "inner.number = 8"),
    "a module by a function in a list": ("lookups[0](inner, name)", "inner.number = 8"),
    "a module by a function that a function gives": ("giving()(inner, name)", "inner.number = 8"),
    "a list in a module by getattr": ("computed(inner, 'num', 'bers')[0]", "inner.numbers[0] = 8"),
    "a function in a module by getattr": ("computed(inner, 'he', 'lper')()", "number = 8"),
    "a name that a module gets": ("computed(inner, 'num', 'bered', 3)", "inner.numbered = 8"),
    "globals()": ("by_globals()", "number = 8"),
    "eval": ("by_eval()", "number = 8"),
    "a name that globals() gets": ("new_by_globals()", "numbered = 8"),
    "a class by a getter": ("computed(Own, 'cou', 'nt')", "Own.count = 8"),
    "a method by getattr": ("computed(own, 'o', 'f')()", "Base.of = lambda self: 8"),
    "an attribute that a class gets": ("getattr(own, 'extra', 3)", "Own.extra = 8"),
    "a computed attribute that a class gets": ("computed(own, 'num', 'bered', 3)", "Base.numbered = 8"),
    "a method that a class gets": ("own.extra() if hasattr(own, 'extra') else 3", "Own.extra = lambda self: 8"),
    "an attribute of a class that it gets": ("getattr(Own, 'extra', 3)", "Base.extra = 8"),
    "a bool that a class gets": ("3 if plain else 8", "Plain.__bool__ = lambda self: False"),
    "a len that a class gets": ("3 if plain else 8", "Plain.__len__ = lambda self: 0"),
    "a == that a class gets": ("8 if plain == 0 else 3", "Plain.__eq__ = lambda self, x: True"),
    "a text that a class gets": ("int(f'{plain}'[:1].replace('<', '3'))", "Plain.__str__ = lambda self: '8'"),
    "a format that a class gets": ("int(f'{plain}'[:1].replace('<', '3'))", "Plain.__format__ = lambda self, s: '8'"),
    "a getattr that a class gets": ("getattr(plain, 'missing', 3)", "Plain.__getattr__ = lambda self, name: 8"),
    "a == that a base gets": ("8 if other_plain == 0 else 3", "Plain.__eq__ = lambda self, x: True"),
    "an object that a class calls": ("3 if plain else 8",
        "Plain.__bool__ = functools.partialmethod(lambda self: False)"),
    "what is deleted": ("(lambda: 8 if len(vars(space)) == 2 else 3)()", "space.other = 1; del space.other; "
                        "space.__dict__.pop('extra')"),
}
MORE = """
import array as array_module
import collections
import contextvars
import operator
import threading
import weakref
method = own.of
space.inner.deeper = Space(number=3)
space.extra = 1
array = np.full((5, 2), 3)

class Other(Own):
    kind = 8
    __slots__ = ()

class Plain:
    text = "b"

class OtherPlain(Plain):
    other = "c"

plain, other_plain, simple = Plain(), OtherPlain(), OtherPlain()
simple.number, simple.held = 3, []
large = np.full(600_000, 3)
record = np.full(1, 3, "i4,i4")[0]
proxy, values, chain = types.MappingProxyType(table), table.values(), collections.ChainMap({}, table)
held_slice, queue, ordered = slice(numbers, None), collections.deque([3, 4]), collections.OrderedDict(a=3, b=8)
defaults, numbers_set, frozen = collections.defaultdict(int), {1}, frozenset([simple])
weak, thread, variable = weakref.ref(simple), threading.local(), contextvars.ContextVar("variable", default=3)
thread.number, thread.numbers, buffer, of_python = 3, [3], bytearray([3]), array_module.array("i", [3])
objects = np.empty(2, object)
objects[1] = [3]
flags, caller = [True, False], operator.methodcaller("get", "x", numbers)
parent, made, showing = super(Own, own), Own.of_class, Own.shown
mixed = ["3", 3.5, b"3", (1, (3,)), 3 + 0j, 0.0, 1, range(4), np.dtype("u2"), np.int8(3), "abc"]
first = second = [3]
second = [3]
item, entry = numbers.__getitem__, table.get
getter, lookups = operator.attrgetter(name), [getattr]
inner.helper = helper
giving = lambda: getattr

def computed(x, begin, end, *default):
    return getattr(x, begin + end, *default)

def by_globals():
    return globals()["".join(["num", "ber"])]

def new_by_globals():
    return globals().get("".join(["num", "bered"]), 3)

def by_eval():
    return eval("".join(["num", "ber"]))

def in_class(f):
    class Local:
        n = f()
    return Local.n

def capturing(value):
    def captured_in_class():
        class Local:
            n = value
        return Local.n
    def number_in_class(x):
        nonlocal value
        value = x
    return captured_in_class, number_in_class

captured_in_class, number_in_class = capturing(3)

def biggest():
    return max(3, 2)

def importing():
    import inner_of_a_test
    return inner_of_a_test.number

def body():
    class Local:
        n = number
    return Local.n

def generating():
    for x in numbers:
        yield x

def through_global():
    global number
    return number
"""


if sys.version_info >= (3, 12):
    READS["a type alias in a class body"] = "aliased()", "number = 8"
    MORE += """
def aliased():
    class Local:
        type Number = number
    return Local.Number.__value__
"""

KERNEL = """
@ct.kernel
def kern(out):
    n = ct.static_eval(hit())
    ct.store(out, 0, ct.static_eval({}))
"""


def stored(k):
    return int(run(k, np.zeros(1, np.int32))[0])


@clause("CONST-4.contents", "CONST-4.variable", "SEVAL-9.function", "SPEC-1.same")
@pytest.mark.parametrize("what", READS)
def test_what_static_code_reads(what, monkeypatch):
    """Compiled once for what is there, and once for what is changed, however often it is launched."""
    expression, change = READS[what]
    counter = Counter()
    space = module(SOURCE + MORE + KERNEL.format(expression), hit=counter.hit)
    monkeypatch.setitem(sys.modules, "inner_of_a_test", space["inner"])
    assert [stored(space["kern"]) for _ in range(4)] == [3] * 4
    assert counter.count == 1
    exec(change, space)
    assert [stored(space["kern"]) for _ in range(4)] == [8] * 4
    assert counter.count == 2
    accepts(space["kern"], np.zeros(1, np.int32))


# ------------------------------------------------------------------ what does not compile anew

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
    space = module(SOURCE + MORE + ITEMS + KERNEL.format(reads), hit=counter.hit)
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
    space = module(SOURCE + MORE + """
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


# ------------------------------------------------------------------ what static code may do


class Holder:
    def __init__(self, log):
        self.number, self.log = 3, log


@clause("SEVAL-2.python", "SEVAL-9.function")
@pytest.mark.parametrize("line", [
    "space.log = None", "del space.log", "class Local:\n        log = 1",
    "class Local:\n        log = 1\n        del log", "global log\n    log = 1",
    "global log\n    log = 1\n    del log", "log = 1", "import types as log", "for log in (1, 2): pass",
    "f = lambda log: log", "f = lambda: (lambda log=1: log)()",
])
def test_names_that_are_set(line):
    """Static code may set what has the name of an attribute that it may not read: a file, an iterator."""
    for held in io.StringIO("a"), iter((1, 2)), (x for x in (1, 2)):
        space = module(f"def helper():\n    {line}\n    return getattr(space, 'number')\n" + KERNEL.format("helper()"),
                       space=Holder(held), hit=int)
        assert stored(space["kern"]) == 3


@clause("SEVAL-2.python", "SEVAL-2.global", "OBJ-4.static_eval")
def test_objects_of_libraries():
    """Static code may hold what it likes, and nothing is called that it does not call."""
    calls = []
    cached = functools.lru_cache(lambda x=0: calls.append(x) or 3)
    several = functools.cache(lambda x, y: x + y)

    class Loud:
        def __getattribute__(self, name):
            calls.append(name)
            return object.__getattribute__(self, name)

        def __eq__(self, other):
            calls.append("==")
            return True

        def __hash__(self):
            calls.append("hash")
            return 1

    held = [Loud(), cached, several, re_pattern(), collections.ChainMap({"a": 1}), np.dtype("i4,f4"), np.float64(2),
            operator.attrgetter("a"), range(3), slice(1, 2), {1: Loud()}, type, len, np.add, ct.int8, print]

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(held[1](5) - 13 + len(held) + held[8][0] * 0 + held[2](-1, 1)))

    calls.clear()
    assert [stored(k) for _ in range(3)] == [6] * 3
    assert calls == [5]


@clause("CONST-4.contents", "SEVAL-2.python")
@pytest.mark.parametrize("member", [
    "def member(self): return next(held)", "@property\n    def member(self): return next(held)",
    "@staticmethod\n    def member(): return next(held)", "@classmethod\n    def member(cls): return next(held)",
    "@functools.cached_property\n    def member(self): return next(held)", "member = lambda self: next(held)"])
def test_members_that_no_code_names(member):
    """What they read does not count, even if it could not be compared."""
    lines = f"""
import functools

class Own:
    number = 3
    {member}

own = Own()
""" + KERNEL
    for expression in ("own.number", "Own.number", "(lambda: own.number)()", "getattr(own, 'number')"):
        space = module(lines.format(expression), held=iter([1]), hit=int)
        assert stored(space["kern"]) == 3
    if "property" not in member:
        space = module(lines.format("Own.member and 3"), held=iter([1]), hit=int)
        with pytest.raises(ct.TileStaticEvalError):
            stored(space["kern"])


def re_pattern():
    import re

    return re.compile("a+")


@clause("CONST-4.contents")
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_shapes_alone():
    """Arrays and tensors of which only the shape, or only the place in their memory, changes."""
    held = np.lib.stride_tricks.as_strided(np.zeros(4, np.int8), (1, 4), (1, 1))

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(len(list(held))))

    assert stored(k) == 1
    held.shape = 4, 1
    assert held.strides == (1, 1) and stored(k) == 4


@clause("CONST-4.contents")
def test_tensors_that_move():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    base = torch.arange(9)
    held = base[:8]  # then base[1:], of the same memory

    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(int(held[0])))

    assert stored(k) == 0
    held.data = base[1:]
    assert stored(k) == 1

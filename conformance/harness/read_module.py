"""The text of a module that static code reads, and a kernel that does so."""

import sys

import numpy as np

from conformance.harness.api import run

#: a variable that two functions capture
CAPTURED = """
def counter():
    value = 3
    def get():
        return value
    def put(x):
        nonlocal value
        value = x
    return get, put

get, put = counter()
"""
MODULE = """
import array as array_module
import collections
import contextvars
import functools
import operator
import sys
import threading
import types
import weakref
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
""" + CAPTURED + """
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
    MODULE += """
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

"""What later launches of a kernel look at: all that was read, no more, and without running code of objects."""

import asyncio
import concurrent.futures
import dataclasses
import importlib.machinery
import io
import logging
import multiprocessing
import random
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

from conformance.harness.api import clause, ct, run
from conformance.harness.tile_code import Counter, module, rejects, result


def stored(k):
    return int(run(k, np.zeros(1, np.int32))[0])


# ------------------------------------------------------------------ what tile code reads

# What may be read, tile code that reads it, and code that changes it so that another number is read.
SOURCE = """
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

def numbered():
    value = 3
    def get():
        return value
    def put(x):
        nonlocal value
        value = x
    return get, put

@frozen
class Plain:
    x: object = 3

@frozen
class Reflected:
    x: object = 3

    def __radd__(self, other):
        return self.x

plain, reflected = Plain(), Reflected()
point, (get, put) = Point(), numbered()
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


# ------------------------------------------------------------------ what static code reads of arrays

NUMBERS = np.lib.stride_tricks.as_strided
# What is read, an array, what is read of it, and a change of the array: of that alone, as far as this is possible.
LAYOUTS = {
    "shape": (lambda: NUMBERS(np.zeros(4, np.int8), (1, 4), (1, 1)), lambda a: a.shape[0], {"shape": (4, 1)}),
    "strides": (lambda: np.zeros((2, 2), np.int8), lambda a: a.strides[0], {"strides": (1, 2)}),
    "dtype": (lambda: np.zeros(4, np.int8), lambda a: "bu".index(a.dtype.char.lower()), {"dtype": np.bool_}),
    "ndim": (lambda: np.zeros(4, np.int8), lambda a: a.ndim, {"shape": (2, 2)}),
    "size": (lambda: np.zeros(4, np.int8), lambda a: a.size, {"dtype": np.int16}),
    "itemsize": (lambda: np.zeros(4, np.int8), lambda a: a.itemsize, {"dtype": np.int16}),
}


@clause("CONST-4.contents", "SPEC-1.same")
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("what", LAYOUTS)
def test_what_is_read_of_arrays(what):
    """The layout alone: the elements may change, and what is read of the layout counts."""
    counter = Counter()
    make, _, change = LAYOUTS[what]
    space = module(f"""
        kinds = "?bBhHiI"

        def read(a):
            value = a.{what}
            return value[0] if isinstance(value, tuple) else kinds.index(value.char) if value is a.dtype else value

        @ct.kernel
        def kern(out):
            n = ct.static_eval(hit())
            value = ct.static_eval(held.{what})
            ct.store(out, 0, ct.static_eval(value[0] if isinstance(value, tuple) else
                                            value if isinstance(value, int) else np.dtype(value).itemsize * 10
                                            + (np.dtype(value).kind == "b")))
    """, hit=counter.hit, held=make())
    held, read = space["held"], lambda a: getattr(a, what)

    def want():
        value = read(held)
        return value[0] if isinstance(value, tuple) else value if isinstance(value, int) else (
            value.itemsize * 10 + (value.kind == "b"))

    first = want()
    assert stored(space["kern"]) == first and counter.count == 1
    held[...] = 1
    assert [stored(space["kern"]) for _ in range(2)] == [first] * 2 and counter.count == 1
    for name, value in change.items():
        setattr(held, name, value)
    assert want() != first
    assert [stored(space["kern"]) for _ in range(2)] == [want()] * 2 and counter.count == 2


TENSORS = {
    "shape[0]": lambda t, torch: t.resize_(2, 8), "size(0)": lambda t, torch: t.resize_(2, 8),
    "dim()": lambda t, torch: t.resize_(2, 4, 2), "ndim": lambda t, torch: t.resize_(2, 4, 2),
    "stride()[0]": lambda t, torch: t.t_(), "stride(0)": lambda t, torch: t.t_(),
    "numel()": lambda t, torch: t.resize_(4, 2), "itemsize": lambda t, torch: setattr(t, "data", t.double()),
    "element_size()": lambda t, torch: setattr(t, "data", t.double()),
    "dtype.itemsize": lambda t, torch: setattr(t, "data", t.double()),
    "is_floating_point() + 0": lambda t, torch: setattr(t, "data", t.int()),
    "requires_grad + 0": lambda t, torch: t.requires_grad_(),
    "storage_offset()": lambda t, torch: setattr(t, "data", torch.zeros(20)[2:18].view(4, 4)),
    "is_contiguous() + 0": lambda t, torch: setattr(t, "data", torch.zeros(4, 8)[:, ::2]),
}


@clause("CONST-4.contents", "SPEC-1.same")
@pytest.mark.parametrize("what", TENSORS)
def test_what_is_read_of_tensors(what):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    counter = Counter()
    held = torch.zeros(4, 4)
    space = module(KERNEL_OF_OBJECT.format(f"held.{what}"), hit=counter.hit, held=held)
    first = int(eval(f"held.{what}", {"held": held}))
    assert stored(space["kern"]) == first and counter.count == 1
    held += 1
    assert stored(space["kern"]) == first and counter.count in (1, 2)
    count = counter.count
    TENSORS[what](held, torch)
    now = int(eval(f"held.{what}", {"held": held}))
    assert now != first and [stored(space["kern"]) for _ in range(2)] == [now] * 2 and counter.count == count + 1


KERNEL_OF_OBJECT = """
@ct.kernel
def kern(out):
    n = ct.static_eval(hit())
    ct.store(out, 0, ct.static_eval({}))
"""


class OnGPU:
    """What says that it is an array in GPU memory."""

    shape = 3,
    __cuda_array_interface__ = {"shape": (3,), "typestr": "<i4", "data": (4096, False), "version": 3}


class OnGPULater:
    def __init__(self):
        self.__cuda_array_interface__ = OnGPU.__cuda_array_interface__


def generating():
    yield 1


class Iterating:
    def __init__(self):
        self.made = iter([1])


@clause("CONST-4.contents")
@pytest.mark.parametrize("make", [OnGPU, OnGPULater, lambda: iter([1]), lambda: map(str, [1]), generating,
                                  lambda: zip([1], [2]), lambda: io.StringIO("a"), Iterating])
def test_objects_that_cannot_be_compared(make):
    """They are refused, since a launch could not see a change."""
    held = make()
    rejects("TileStaticEvalError", lambda n: ct.static_eval(len([held]) + hasattr(held, "made")), 1)


# ------------------------------------------------------------------ what does not count

SERVICES = {  # objects of the process, and what changes their attributes
    "logging": (logging.getLogger("conformance of launches"), lambda x: x.setLevel(x.level + 1)),
    "threading": (threading.Event(), lambda x: x.clear() if x.is_set() else x.set()),
    "asyncio": (asyncio.Event(), lambda x: x.clear() if x.is_set() else x.set()),
    "concurrent": (concurrent.futures.Future(), lambda x: x.done() or x.set_result(1)),
    "multiprocessing": (multiprocessing.Process(), lambda x: setattr(x, "daemon", not x.daemon)),
    "subprocess": (subprocess.CompletedProcess([], 0), lambda x: setattr(x, "returncode", x.returncode + 1)),
    "random": (random.Random(3), lambda x: x.random()),
    "socket": (socket.socket(), lambda x: x.close()),
    "a spec": (importlib.machinery.ModuleSpec("a", None), lambda x: setattr(x, "origin", f"{x.origin}.")),
    "a loader": (importlib.machinery.SourceFileLoader("a", "b"), lambda x: setattr(x, "path", x.path + "b")),
    "a lock": (threading.Lock(), lambda x: x.release() if x.locked() else x.acquire()),
}


@clause("SPEC-1.same")
@pytest.mark.parametrize("what", SERVICES)
def test_services_of_the_process(what):
    counter = Counter()
    held, change = SERVICES[what]
    space = module(KERNEL_OF_OBJECT.format("len([held]) + 2"), hit=counter.hit, held=held)
    for _ in range(3):
        assert stored(space["kern"]) == 3
        change(held)
    assert stored(space["kern"]) == 3 and counter.count == 1


@clause("SPEC-1.same", "OBJ-4.static_eval")
def test_kernels_that_static_code_holds():
    @ct.kernel
    def other(n: ct.Constant, out):
        ct.store(out, 0, n)

    counter = Counter()
    space = module(KERNEL_OF_OBJECT.format("len([other]) + 2"), hit=counter.hit, other=other)
    for n in range(3):
        assert stored(space["kern"]) == 3
        assert int(run(other, n, np.zeros(1, np.int32))[0]) == n
    assert counter.count == 1


@clause("SPEC-1.same")
def test_no_code_of_objects_runs():
    """A launch that compiles nothing looks at what the kernel reads, and calls none of its code."""
    calls = Counter()

    class Meta(type):
        def __getattr__(cls, name):
            calls.hit()
            return 1

        @property
        def shown(cls):
            calls.hit()
            return 1

    class Descriptor:
        def __get__(self, instance, owner):
            calls.hit()
            return 1

    class Plain:
        descriptor = Descriptor()
        number = 1

        def __getattr__(self, name):
            calls.hit()
            return 1

    class Loud(metaclass=Meta):
        number = 1

        def __getattribute__(self, name):
            calls.hit()
            return object.__getattribute__(self, name)

        def __eq__(self, other):
            calls.hit()
            return self is other

        __hash__ = None

    class Lazy(type(sys)):
        def __getattr__(self, name):
            calls.hit()
            return 1

    plain, loud, lazy = Plain(), Loud(), Lazy("lazy_module")
    loud.attribute, lazy.number = 1, 1
    names = {"plain": plain, "Plain": Plain, "loud": loud, "Loud": Loud, "lazy": lazy}
    for expression in (
            "plain.descriptor", "Plain.descriptor", "plain.missing", "plain.number", "Plain.number", "loud.attribute",
            "Loud.number", "Loud.shown", "Loud.missing", "lazy.number", "lazy.missing", "getattr(Loud, 'number')",
            "(lambda: loud.number)()", "[x.number for x in (loud, plain)][0]", "(loud == loud) + 0",
            "(lambda: lazy.missing)()"):
        space = module(KERNEL_OF_OBJECT.format(expression), hit=int, **names)
        assert stored(space["kern"]) == 1
        before = calls.count
        assert [stored(space["kern"]) for _ in range(3)] == [1] * 3
        assert calls.count == before, expression


@clause("SPEC-1.same", "CONST-4.variable")
@pytest.mark.parametrize("expression", [
    "Plain.descriptor", "Loud.number", "Loud.shown", "frozen.descriptor", "Frozen.descriptor", "Frozen.number",
    "lazy.number",
    "frozen.number", "frozen.x"])
def test_no_code_of_objects_runs_for_tile_code(expression):
    """Not when it is launched again."""
    calls = Counter()

    class Meta(type):
        def __getattr__(cls, name):
            calls.hit()
            return 1

        @property
        def shown(cls):
            calls.hit()
            return 1

    class Descriptor:
        def __get__(self, instance, owner):
            calls.hit()
            return 1

    class Plain:
        descriptor = Descriptor()

    class Loud(metaclass=Meta):
        number = 1

    class Lazy(type(sys)):
        def __getattr__(self, name):
            calls.hit()
            return 1

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        x: int
        number = 1

    Frozen.descriptor = Descriptor()
    lazy = Lazy("lazy_module")
    lazy.number = 1
    names = {"Plain": Plain, "Loud": Loud, "Frozen": Frozen, "frozen": Frozen(1), "lazy": lazy}
    space = module(f"""
        @ct.kernel
        def kern(out):
            ct.store(out, 0, {expression})
    """, **names)
    try:
        assert stored(space["kern"]) == 1
    except ct.TileTypeError:  # what would run code need not be readable
        return
    stored(space["kern"])
    before = calls.count
    assert [stored(space["kern"]) for _ in range(3)] == [1] * 3
    assert calls.count == before


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

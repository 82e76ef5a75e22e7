"""What static code may do with what it reaches: set names, have members that nothing names, and hold objects of
libraries, arrays and tensors.
"""

import collections
import functools
import io
import operator

import numpy as np
import pytest

from conformance.harness.api import clause, ct
from conformance.harness.read_module import KERNEL, stored
from conformance.harness.tile_code import module


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

"""What static code reads of installed libraries counts as unchanging; what it reads of the user's code does not."""

import importlib
import io
import itertools
import sys

import pytest

from conformance.harness.api import clause, ct
from conformance.harness.read_module import KERNEL, stored
from conformance.harness.tile_code import Counter, module

LIBRARY = """
number, held = 3, iter([1])

def get():
    return number

def later():
    return next(held)

class Own:
    def __init__(self, number=3):
        self.number = number

    def get(self):
        return number

    def later(self):
        return next(held)

    @property
    def shown(self):
        return number

own = Own()
"""


_number = itertools.count()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A module of a folder with some name."""
    def make(folder):
        name = f"conformance_library_{next(_number)}"  # another one each time, as implementations may remember names
        path = tmp_path / folder
        path.mkdir()
        (path / f"{name}.py").write_text(LIBRARY)
        monkeypatch.syspath_prepend(str(path))
        made = importlib.import_module(name)
        names.append(name)
        return made

    names = []
    yield make
    for name in names:
        sys.modules.pop(name, None)


@clause("SPEC-1.same", "CONST-4.contents", "SEVAL-9.function")
@pytest.mark.parametrize("folder", ["site-packages", "dist-packages", "packages"])
@pytest.mark.parametrize("expression", ["own.get()", "(lambda: own.get())()", "own.shown", "type(own)(5).get()"])
def test_globals_of_libraries(folder, expression, installed):
    library, counter = installed(folder), Counter()
    space = module(KERNEL.format(expression), hit=counter.hit, own=library.own)
    assert [stored(space["kern"]) for _ in range(2)] == [3] * 2
    library.number = 8
    users = folder == "packages"
    assert [stored(space["kern"]) for _ in range(2)] == [8 if users else 3] * 2
    assert counter.count == 1 + users


@clause("CONST-4.contents", "SPEC-1.same")
@pytest.mark.parametrize("folder", ["site-packages", "dist-packages", "packages"])
def test_objects_of_libraries_that_change(folder, installed):
    """The attributes of an object count, whatever its class is of."""
    library, counter = installed(folder), Counter()
    space = module(KERNEL.format("own.number"), hit=counter.hit, own=library.Own())
    assert [stored(space["kern"]) for _ in range(2)] == [3] * 2
    space["own"].number = 8
    assert [stored(space["kern"]) for _ in range(2)] == [8] * 2 and counter.count == 2


@clause("CONST-4.contents", "SEVAL-2.python")
def test_what_libraries_hold_need_not_be_comparable(installed):
    library = installed("site-packages")
    space = module(KERNEL.format("(lambda: later() + 2)()"), hit=int, later=library.later)
    assert stored(space["kern"]) == 3
    other = installed("packages")
    space = module(KERNEL.format("(lambda: later() + 2)()"), hit=int, later=other.later)
    with pytest.raises(ct.TileStaticEvalError):
        stored(space["kern"])


# ------------------------------------------------------------------ what cannot be compared


@clause("CONST-4.contents")
@pytest.mark.parametrize("held", [io.StringIO("abc"), iter([1, 2]), (x for x in (1, 2)), map(str, [1])],
                         ids=["a file", "an iterator", "a generator", "a map"])
@pytest.mark.parametrize("expression, reads", [
    ("len([x.log])", True), ("(lambda: len([x.log]))()", True), ("helper(x)", True), ("x.number", False),
    ("getattr(x, 'number')", False), ("(lambda: x.number)()", False), ("len([x]) + 2", False),
    ("[y.log and 3 for y in (x,)][0]", True), ("x.inner.log and 3", True), ("x.inner.number", False),
    ("method()", True), ("x.get_log() and 3", True), ("x.get_number()", False)])
def test_attributes_that_cannot_be_compared(held, expression, reads):
    """An object may hold them, as long as no code reads them."""
    space = module("""
        from types import SimpleNamespace as Space

        class Holder:
            def __init__(self, log, inner=None):
                self.number, self.log, self.inner = 3, log, inner

            def get_log(self):
                return self.log

            def get_number(self):
                return self.number

        def helper(y):
            return 3 if y.log else 8

        x = Holder(held, Holder(held))
        method = x.get_log
    """ + KERNEL.replace("\n", "\n        ").format(expression), hit=int, held=held)
    if not reads:
        assert stored(space["kern"]) == 3
        return
    with pytest.raises(ct.TileStaticEvalError):
        stored(space["kern"])

"""Mutants really run, and the killing test is reported."""

from __future__ import annotations

import gc
import sys
import time
from types import SimpleNamespace

import pytest

from cutile.ops import grid
from tests.mutation import mutant_process, sites
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.skipif(not hasattr(mutant_process.os, "fork"), reason="no os.fork here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


def test_the_first_thing_told_comes_back():
    assert mutant_process.forked(lambda tell: (tell("a test"), tell("another")), PATIENCE) == "a test"
    assert mutant_process.forked(lambda tell: None, PATIENCE) is None


def test_a_hang_ends():
    assert mutant_process.forked(lambda tell: time.sleep(100), 0.2) == mutant_process.TIME


def test_the_end_of_the_process_is_a_kill():
    os, kill = mutant_process.os, mutant_process.signal.SIGKILL
    assert mutant_process.forked(lambda tell: os.kill(os.getpid(), kill), 10) == "the process ended with 9"


def test_what_ends_pytest_is_a_kill():
    def protocol(item, nextitem):
        raise KeyboardInterrupt

    config = SimpleNamespace(pluginmanager=SimpleNamespace(register=lambda plugin: None),
                             hook=SimpleNamespace(pytest_runtest_protocol=protocol))
    collected = mutant_process.Collected(lambda c: None)
    collected.items = {"a test": SimpleNamespace(nodeid="a test", config=config)}
    collected.mutate = lambda m: None
    assert collected.killer(None, ["a test"], 10) == "a test"


def test_functions_that_the_compiler_leaves_out():
    text = "def f(x):\n    if {}:\n        return lambda: x\n"
    old, new = (compile(text.format(c), "a.py", "exec") for c in ("x", "0"))
    assert [(a.co_name, b.co_name) for a, b in mutant_process._pairs(old, new)] == [("<module>",) * 2, ("f",) * 2]


def test_a_fault_of_the_tool_is_no_kill():
    with pytest.raises(RuntimeError, match="division by zero"):
        mutant_process.forked(lambda tell: 1 / 0, PATIENCE)


@pytest.fixture
def mutant():
    """A mutated meaning of num_blocks, which gets another `axis`."""
    path = "cutile/ops/grid.py"
    source = (sites.ROOT / path).read_text()
    start = source.index("return ctx.num_blocks(axis)") + len("return ")
    return sites.Mutant(path, start, start + len("ctx.num_blocks(axis)"), "(ctx.num_blocks(axis + 1))", "operator",
                        source[:start].count("\n") + 1, "", (), False, "return ctx.num_blocks(axis)")


def test_live_functions_get_the_mutated_code(mutant):
    gc.unfreeze()  # functions are looked for among the objects that the collector visits
    collected = mutant_process.Collected(lambda c: None)
    collected.pytest_runtestloop(SimpleNamespace(items=[]))

    def work(tell):
        collected.mutate(mutant)
        tell(str(grid.num_blocks.meaning(0, ctx=SimpleNamespace(num_blocks=lambda axis: axis))))

    assert mutant_process.forked(work, PATIENCE) == "1"
    assert grid.num_blocks.meaning(0, ctx=SimpleNamespace(num_blocks=lambda axis: axis)) == 0


def test_the_mutated_text_is_imported(mutant):
    def work(tell):
        for name in [n for n in sys.modules if n.partition(".")[0] == "cutile"]:
            del sys.modules[name]
        sys.meta_path.insert(0, mutant_process._Mutated(mutant))
        from cutile.ops.grid import num_blocks

        tell(str(num_blocks.meaning(0, ctx=SimpleNamespace(num_blocks=lambda axis: axis))))

    assert mutant_process.forked(work, PATIENCE) == "1"

"""Every kernel of the examples assembles, as it was typed for the arrays of its example."""

from __future__ import annotations

import functools
import time

import pytest

from cutile import interp
from cutile.gpu.target import parse_target
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.builder import Module
from cutile.gpu.to_bytecode import module_of
from cutile.ir.text import parse, to_text
from tests.gpu.tileir.lowering import usual
from tests.gpu.tileir.tool import needs_tool
from tests.test_examples import EXAMPLES, LAUNCHING, load

pytestmark = needs_tool


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


@functools.cache
def kernels(name: str) -> tuple:
    """The typed kernels that an example launches."""
    found: dict = {}
    run = interp.HostLaunch.run

    def record(self, *launched):
        found[self.compiled.kernel] = None
        return run(self, *launched)

    interp.HostLaunch.run = record
    try:
        load(name).main()
    finally:
        interp.HostLaunch.run = run
    return tuple(found)


LONG = ("image_filter",)  # kernels of many loads, which take seconds


# Algorithms of cutile.compute launch other kernels on a GPU than here.
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.deep) if n in LONG else n for n in LAUNCHING])
def test_assembles(name):
    m = Module(None)
    assert kernels(name)
    for i, kernel in enumerate(kernels(name)):
        module_of(kernel, [usual(p.type) for p in kernel.params], "sm_90", symbol=f"{kernel.name}_{i}", module=m)
    assert tileiras.assemble(m.to_bytes(), parse_target("sm_90"), opt_level=0)


def test_lowering_is_quick():
    """The lowering of causal attention, front end apart, takes about as long as reading its IR from text."""
    kernel = max(kernels("attention"), key=lambda k: len(k.body.nodes))
    known, text = [usual(p.type) for p in kernel.params], to_text(kernel)
    best = [min(pair) for pair in zip(*((_seconds(lambda: module_of(kernel, known, "sm_90", "13.4").to_bytes()),
                                         _seconds(lambda: parse(text))) for _ in range(5)))]
    assert best[0] < 8 * best[1]


def _seconds(action) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start

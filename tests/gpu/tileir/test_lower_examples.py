"""The kernels of the examples assemble, as they were typed for the arrays of their example."""

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


LONG = ("flash_attention", "gemm", "image_filter")  # many kernels, or kernels of many loads, which take seconds


def ends(found: tuple) -> list:
    """Of the kernels that are typed from one function, the first and the last."""
    first = {k.name: k for k in reversed(found)}
    last = {k.name: k for k in found}
    return [k for k in found if k is first[k.name] or k is last[k.name]]


def assemble(found) -> None:
    m = Module(None)
    assert found
    for i, kernel in enumerate(found):
        module_of(kernel, [usual(p.type) for p in kernel.params], "sm_90", symbol=f"{kernel.name}_{i}", module=m)
    assert tileiras.assemble(m.to_bytes(), parse_target("sm_90"), opt_level=0)


# Algorithms of cutile.compute launch other kernels on a GPU than here.
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.deep) if n in LONG else n for n in LAUNCHING])
def test_assembles(name):
    """The deep session takes all; what is typed from one function differs in constants and dtypes."""
    assemble(ends(kernels(name)))


@pytest.mark.deep
@pytest.mark.parametrize("name", LAUNCHING)
def test_all_assemble(name):
    assemble(kernels(name))


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

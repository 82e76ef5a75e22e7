"""What is checked of each algorithm: docstrings and their examples, and that a GPU's assembler takes its kernels."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable

import numpy as np
import pytest

import cutile as ct
from cutile import compute
from cutile.compilation.prefill import prefill
from cutile.compute import algorithm, plans, steps
from cutile.compute.plans import Plan
from cutile.runtime.repeated import Repeated
from tools.docgen.op_clauses import sections


def check_docstring(function: Callable) -> None:
    parts = sections(inspect.getdoc(function))
    lines = [line.split(" : ")[0] for line in parts["Parameters"].splitlines() if line[0] != " "]
    assert [n for line in lines for n in line.split(", ")] == list(inspect.signature(function).parameters)
    assert function.__name__ in parts["Examples"]
    shown: list[str] = []
    test = doctest.DocTestParser().get_doctest(parts["Examples"], {"np": np, "ct": ct}, function.__name__, None, 0)
    doctest.DocTestRunner().run(test, out=shown.append)
    assert not shown, "".join(shown)


def forget_plans() -> None:
    """Have plans made anew, as those of other tests may be for the other way. Kernels stay, and with them the programs
    typed so far: equal keys mean equal kernels, whoever asks for them.
    """
    for plans_of_one in algorithm._plans:
        plans_of_one.clear()


def launched_as_on_a_gpu(monkeypatch) -> list[str]:
    """From now on kernels for GPUs run here, in the interpreter. The list takes their names."""
    found: list[str] = []

    def launch(plan, blocks, kernel, *args, real=Plan.launch):
        found.append(kernel.__name__)
        return real(plan, blocks, kernel, *args)
    monkeypatch.setattr(Plan, "launch", launch)
    monkeypatch.setattr(Plan, "on_host", False)
    return found


# How far the assembler optimizes. Whether it takes a kernel shows without that, in half the time; the deep session does
# what launches do.
at_levels = pytest.mark.parametrize("level", [0, pytest.param(3, marks=pytest.mark.deep)])


def assemble_launches(monkeypatch, tmp_path, level: int) -> list[str]:
    """From now on, kernels of algorithms are assembled, with the sizes of tiles for a GPU, and run here, so that later
    kernels of a call get what earlier ones wrote. The list takes their names.
    """
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    compute.clear_all_caches()
    seen: list[str] = []

    class Assembled(Repeated):
        def __init__(self, kernel, grid, args, *rest):
            kernel = kernel.replace_hints(opt_level=level)
            prefill(kernel, [args], ["sm_90"])
            super().__init__(kernel, grid, args, *rest)
            seen.append(kernel.__name__)
    monkeypatch.setattr(steps, "Repeated", Assembled)
    monkeypatch.setattr(plans.Plan, "on_host", False)
    return seen


def deep_but(values, *quick):
    """Parameters of a test, of which each run takes the quick ones, and the deep session all."""
    def is_quick(v):
        return any(v is q or type(v) is type(q) and v == q for q in quick)

    return [v if is_quick(v) else pytest.param(v, marks=pytest.mark.deep) for v in values]


@pytest.fixture(scope="module", autouse=True, params=["NumPy", "kernels"])
def both_ways(request):
    """Each test of a module that imports this runs in the ways for host memory and for GPUs, in the interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "kernels":
            patch.setattr(Plan, "on_host", False)
        forget_plans()
        yield request.param
    forget_plans()


# A test that has kernels for GPUs itself runs once in such a module.
once = pytest.mark.parametrize("both_ways", ["kernels"], indirect=True)

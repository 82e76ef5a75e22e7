"""What `help` shows of public functions: every parameter, and an example that runs and prints what it says."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest

import cutile as ct
from cutile.ops._op import OpDef
from tools.docgen.op_clauses import sections

FUNCTIONS = {n: f for n in sorted(ct.__all__)
             if not isinstance(f := getattr(ct, n), OpDef) and (inspect.isfunction(f) or f is ct.kernel)}
# Written before docstrings had this form.
LATER = {"jit", "compile_all", "autotune"}
every_function = pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - LATER))


@every_function
def test_every_parameter_is_described(name):
    text = sections(inspect.getdoc(FUNCTIONS[name]))["Parameters"]
    described = [line.split(" : ")[0].lstrip("*") for line in text.splitlines() if line[0] != " "]
    assert described == list(inspect.signature(FUNCTIONS[name]).parameters)


@every_function
def test_the_example_prints_what_it_says(name):
    text = sections(inspect.getdoc(FUNCTIONS[name]))["Examples"]
    assert name in text
    shown: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {"np": np, "ct": ct}, name, None, 0)
    doctest.DocTestRunner().run(test, out=shown.append)
    assert not shown, "".join(shown)

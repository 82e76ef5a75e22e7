"""Docstrings of ops: a signature, every parameter, the result, and an example that runs and prints what it says."""

from __future__ import annotations

import doctest
import inspect
import re

import numpy as np
import pytest

import cutile as ct
from cutile.ops._documentation import spelling
from cutile.ops._examples import EXAMPLES
from cutile.ops._op import methods, registry
from cutile.ops._parameter_docs import PARAMETERS, RETURNS
from tools.docgen.op_clauses import clauses, sections

OPS = [o for o in registry().values() if o.public or o.method]
every_op = pytest.mark.parametrize("o", OPS, ids=[o.name for o in OPS])


@every_op
def test_every_parameter_is_described(o):
    parameters = list(o.__signature__.parameters)[0 if o.public else 1:]
    text = sections(o.__doc__).get("Parameters", "")
    described = [line.split(" : ")[0].lstrip("*") for line in text.splitlines() if " : " in line and line[0] != " "]
    assert described == parameters


@every_op
def test_the_result_is_described(o):
    assert sections(o.__doc__)["Returns"]


@every_op
def test_the_example_prints_what_it_says(o):
    text = sections(o.__doc__)["Examples"]
    assert ">>> ct.launch(" in text
    test = doctest.DocTestParser().get_doctest(text, {"np": np, "ct": ct}, o.name, None, 0)
    shown: list[str] = []
    doctest.DocTestRunner().run(test, out=shown.append)
    assert not shown, "".join(shown)


@every_op
def test_the_example_uses_the_op(o):
    name = o.method[1] if o.method and not o.public else o.name
    assert name + "(" in sections(o.__doc__)["Examples"]


def test_tables_name_what_exists():
    known = [*OPS, ct.Array.from_foreign.op]
    ops = {o.name: o for o in known}
    names = {p for o in known for p in o.__signature__.parameters}
    for key in PARAMETERS:
        op, _, parameter = key.rpartition(".")
        assert parameter in (ops[op].__signature__.parameters if op else names), key
    assert set(EXAMPLES) <= set(ops)
    assert set(RETURNS) <= set(ops) | {o.rule.__name__ for o in OPS}


def test_help_shows_the_signature():
    assert inspect.getdoc(ct.load).startswith("load(array, /, index, shape, *, order='C', padding_mode=ct.Pa")
    assert inspect.getdoc(ct.Array.slice).startswith("array.slice(axis, start, stop)")


def test_methods_are_written_as_users_write_them():
    assert spelling(methods()["view", "load"]).startswith("view.load(index, ")


@every_op
def test_every_error_stands_with_its_rules(o):
    """Clauses that name an error stand under it in Raises, the others in Notes; none is lost."""
    errors, notes = (re.findall(r"^ *\[(\S+)\]  ", part, re.M) for part in o.__doc__.partition("\nNotes\n")[::2])
    stated = clauses(o)
    assert set(errors) | set(notes) == set(stated) and not set(errors) & set(notes)
    assert all("Error" in stated[i] for i in errors)

"""Temporaries that nothing reads go; those that are read stay, and so does everything that the user wrote."""

from __future__ import annotations

import ast

import pytest

from cutile.interp.codegen.copy_propagation import is_temp, propagate_copies
from cutile.interp.codegen.py_ast import NO_POSITION

# Temporaries cannot be written in Python: `t1` stands for `.t1` here.
CASES = {
    "a value that its variable holds": ("t1 = f(x)\nacc = t1", "acc = f(x)"),
    "also where another temporary ends between": ("t1 = f(t0)\ndel t0\nacc = t1", "acc = f(t0)\ndel t0"),
    "a temporary that is read twice": ("t1 = f(x)\nacc = t1\ng(t1)", "t1 = f(x)\nacc = t1\ng(t1)"),
    "another statement between": ("t1 = f(x)\ng()\nacc = t1", "t1 = f(x)\ng()\nacc = t1"),
    "an effect whose result nobody reads": ("t1 = f(x)\ndel t1", "f(x)"),
    "a copy that nobody reads": ("t1 = acc", "pass"),
    "some of several": ("t1, t2 = (a, b)\ng(t2)", "t2 = b\ng(t2)"),
    "the ends of temporaries": ("g(t1)\ndel t1, t2", "g(t1)\ndel t1"),
    "a result": ("t1 = f(x)\ndel t0\nreturn t1", "return f(x)"),
    "chains": ("t1 = acc\nt2 = t1\nt3 = t2", "pass"),
    "in branches": ("if c:\n    t1 = f(x)\n    acc = t1\n    t2 = acc\nelse:\n    t2 = acc",
                    "if c:\n    acc = f(x)\nelse:\n    pass"),
    "what a loop carries": ("t1 = a\nwhile True:\n    t1 = f(t1)", "t1 = a\nwhile True:\n    t1 = f(t1)"),
    "variables of the user": ("a = b\nc = a", "a = b\nc = a"),
}


def parsed(text: str) -> list[ast.stmt]:
    body = ast.parse(f"def f():\n{''.join('    ' + line + chr(10) for line in text.splitlines())}").body[0].body
    for s in body:
        for n in ast.walk(s):
            if isinstance(n, ast.Name) and n.id[0] == "t" and n.id[1:].isdigit():
                n.id = "." + n.id
    return body


@pytest.mark.parametrize("name", CASES)
def test_temporaries(name):
    before, after = CASES[name]
    body = parsed(before)
    propagate_copies(body)
    assert [ast.unparse(s) for s in body] == [ast.unparse(s) for s in parsed(after)]


def test_a_variable_keeps_its_own_place():
    body = parsed("t1 = f(x)\nacc = t1")
    propagate_copies(body)
    assert body[0].value.lineno == 2
    assert body[0].targets[0].lineno == 3


def test_an_emptied_body_stands_nowhere():
    body = parsed("t1 = acc")
    propagate_copies(body)
    assert (body[0].lineno, body[0].col_offset) == NO_POSITION[:2]


def test_reads_are_those_of_the_result():
    body = parsed("t1 = x\nacc = t1\ng(t2)")
    reads = propagate_copies(body)
    assert reads[".t1"] == 0
    assert reads[".t2"] == 1
    assert reads["x"] == 1


def test_no_variable_of_a_user_is_a_temporary():
    assert is_temp(".t1")
    assert not is_temp("t1")

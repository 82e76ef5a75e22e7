"""Mutated assignments run again in live modules, each in a process of its own."""

from __future__ import annotations

import gc

import pytest

from cutile.analysis import divisibility
from cutile.gpu.tileir import operations, types
from tests.mutation import live_import, processes, sites


def the(path: str, what: str) -> sites.Mutant:
    return next(m for site in sites.mutants(path) for m in site if what in m.what)


def test_a_table_changes_in_place():
    m, table = the("cutile/analysis/divisibility.py", "arithmetic.add: _least → left out"), divisibility._RULES

    def check():
        size = len(table)
        live_import.apply(m, mutated=False)
        assert len(table) == size
        live_import.apply(m)
        assert len(table) == size - 1 and divisibility._RULES is table

    processes.apart(check)


def test_what_is_made_of_it_changes_too():
    m = the("cutile/gpu/tileir/operations.py", "_op('fma'")

    def check():
        assert "fma" in operations.OPS
        live_import.apply(m)
        assert "fma" not in operations.OPS

    processes.apart(check)


def test_other_values_are_replaced_where_modules_have_them():
    m = next(m for site in sites.mutants("cutile/gpu/tileir/types.py") for m in site
             if m.code.startswith("PADDINGS = ") and "'zero'" in m.what)

    def check():
        before = types.PADDINGS
        live_import.apply(m)
        assert types.PADDINGS != before

    processes.apart(check)


def test_defaults_change():
    m = next(
        m for path in sites.TARGETS for site in sites.mutants(path) for m in site
        if m.at_import and m.code.startswith("def ") and m.kind == "constant")
    module = __import__(sites.module_name(m.path), fromlist=["_"])

    def check():
        name = m.code.partition("def ")[2].partition("(")[0]
        before = getattr(module, name).__defaults__, getattr(module, name).__kwdefaults__
        gc.unfreeze()  # functions are looked for among the objects that the collector visits
        live_import.apply(m)
        assert (getattr(module, name).__defaults__, getattr(module, name).__kwdefaults__) != before

    processes.apart(check)


def test_what_decorators_do_needs_an_import():
    m = next(m for path in sites.TARGETS for site in sites.mutants(path) for m in site
             if m.at_import and m.code.startswith("@"))
    with pytest.raises(live_import.NeedsImport):
        live_import.apply(m)

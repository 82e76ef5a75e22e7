"""Mutants that are imported anew: which tests run on them, and what counts as killed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import pytest

from tests.mutation import fresh, mutant_process, sites
from tests.mutation.names import tests_named_after as named_after
from tests.mutation.suite_files import files_about


def the(path: str, what: str) -> sites.Mutant:
    return next(m for site in sites.mutants(path) for m in site if what in m.what)


def test_files_of_tests_that_mirror():
    assert fresh.mirror("cutile/front/builtins.py") == ["tests/front/test_builtins.py"]
    assert fresh.mirror("cutile/front/proxies.py") == ["tests/front/test_static.py"]  # that another file tests


def test_tests_are_found_by_tokens_of_the_cell():
    m = the("cutile/front/proxies.py", "'le': '<='")
    assert "conformance/test_static_eval.py::test_operators_on_run_time_values" in fresh.by_words(m, ["conformance"])
    ids = ["a.py::test_operators[<=]", "a.py::test_le", "a.py::test_two[le-int32]", "a.py::test_least"]
    assert set(named_after(m, ids)) == set(ids[:3])


@pytest.mark.parametrize("group", fresh.FOLDERS)
def test_the_suite_alone_is_chosen_where_it_judges(group):
    m = the("cutile/front/proxies.py", "'le': '<='")
    near = ["tests/mutation/generated_programs.py::test_program[3]"]
    whole = list(fresh.WHOLE[group])
    assert {t.partition("/")[0] for t in fresh.chosen(m, group, True, []) if t not in whole} == {"conformance"}
    last = [*near, *files_about(m.path), *whole]
    assert fresh.chosen(m, group, True, near)[-len(last):] == last
    assert all((sites.ROOT / t).is_file() for t in whole)
    assert "tests/front/test_static.py" in fresh.chosen(m, group, False, near)


def test_some_test_runs_on_every_mutant(monkeypatch):
    monkeypatch.setattr(fresh, "by_words", lambda m, folders: [])
    m = the("cutile/passes/fma.py", "")
    assert fresh.chosen(m, "passes", True, []) == [*files_about(m.path), *fresh.WHOLE["passes"]]
    m = the("cutile/front/proxies.py", "'le': '<='")
    assert fresh.chosen(m, "front", True, []) == files_about(m.path)
    monkeypatch.setattr(fresh, "files_about", lambda path: [])
    assert fresh.chosen(m, "front", True, []) == [fresh.ANY]
    assert (sites.ROOT / fresh.ANY).is_file()


def test_what_the_interpreter_shows_runs_there_first(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(fresh, "killer", lambda m, tests, limit, impl: ran.append((impl, limit)))
    given = argparse.Namespace(deadline=float("inf"), tests=["t"], budget=60, suite=True, impl="x", folder=tmp_path)
    for path in ("cutile/passes/fma.py", "cutile/passes/licm.py"):
        fresh.attempt(given, {}, ("passes", 0, next(m for s in sites.mutants(path) for m in s)))
    bytecode = fresh.OF_SUITE["passes"]
    assert [impl for impl, _ in ran] == [fresh.IMPLEMENTATION, bytecode, bytecode]
    assert [round(limit) for _, limit in ran] == [30, 60, 60]  # half of the time, or what the first has left
    assert all((sites.ROOT / path).is_file() for path in fresh.INTERPRETED)


def test_tests_that_others_chose_come_by_rank(tmp_path):
    for n, tests in enumerate(([(0, "a"), (2, "b")], [(1, "c"), (1, "d")])):
        (tmp_path / fresh.NEAR.replace("*", str(n))).write_text(json.dumps([("front", 7, tests)]))
    assert fresh.seen(tmp_path) == {("front", 7): ["a", "c", "d", "b"]}


@pytest.mark.parametrize("with_mutant, without, found", [
    (["t::a"], [None], "t::a"),  # fails with the mutant alone
    (["t::a", None], ["t::a"], None),  # fails without it too; nothing else does
    (["t::a", "t::b"], ["t::a", None], "t::b"),
    ([mutant_process.TIME], [], None), (["collecting t"], [None], "collecting t"), (["exit 3"], [None], "exit 3"),
])
def test_what_fails_without_the_mutant_does_not_kill(monkeypatch, with_mutant, without, found):
    answers = {True: iter(with_mutant), False: iter(without)}
    monkeypatch.setattr(fresh, "failing", lambda m, tests, limit, impl: next(answers[m is not None]))
    assert fresh.killer(the("cutile/front/proxies.py", "'le': '<='"), ["t"], 60, "x") == found


def test_a_mutated_table_is_noticed():
    code = """if True:
        from tests.mutation import fresh, sites
        m = next(m for s in sites.mutants("cutile/front/sizes.py") for m in s if m.what == "'min': min → max")
        print([fresh.failing(x, ["tests/front/test_sizes.py"], 300, "x") is None for x in (None, m)])
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=sites.ROOT, capture_output=True, text=True)
    assert done.stdout == "[True, False]\n", done.stderr

"""All mutants against all programs and tests: what runs first, what counts as killed, and the table."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from tests.mutation import live_import, mutant_process, shards, sites


def mutant(code: str = "a", at_import: bool = False) -> sites.Mutant:
    return sites.Mutant("a.py", 0, 1, "b", "operator", 1, "a → b", (1,), at_import, code)


def test_tests_of_each_function_come_first_and_cheap_ones_before_others():
    found = [("t[1]", 3.0, None), ("t[2]", 0.1, None), ("u", 2.0, None)]
    assert [f[0] for f in shards._spread(found)] == ["t[2]", "u", "t[1]"]
    assert [f[0] for f in shards._spread(found, lambda f: f[0] == "t[1]")] == ["t[1]", "t[2]", "u"]
    assert shards._within(2.05, shards._spread(found)) == shards._spread(found)[:2]


@pytest.fixture
def shard(monkeypatch):
    """A shard without tests, whose forked processes run here."""
    monkeypatch.setattr(mutant_process, "forked", lambda work, limit: (told := [], work(told.append)) and next(
        iter(told), None))
    monkeypatch.setattr(mutant_process.Collected, "mutate", lambda self, m: self.given.mutated.append(m))
    s = object.__new__(shards.Shard)
    s.given = SimpleNamespace(deadline=float("inf"), mutated=[])
    s.killed, s.out, s.unstable, s.caches = bytearray(1), io.StringIO(), set(), []
    return s


def test_a_mutant_has_one_place_whatever_groups_are_tried():
    todo = [("front", 0, mutant()), ("passes", 0, mutant()), ("front", 1, mutant()), ("passes", 1, mutant())]
    for number, places in ((0, [1, 3]), (1, [3, 1])):  # a process begins where the others do not
        given = SimpleNamespace(groups=["passes"], jobs=2)
        assert [i for i, *_ in shards.order_of(number, given, todo)] == places


def verdict(s: shards.Shard, m: sites.Mutant, kills) -> dict:
    s._verdict(0, "front", 7, m, "tests", kills, [("t", 0.1, None)], 5)
    return json.loads(s.out.getvalue())


def test_what_kills_is_written_and_told_to_others(shard):
    answers = iter(["t", None])  # with the mutant, and without
    row = verdict(shard, mutant(), lambda: next(answers))
    assert row | {"seconds": 0} == {"group": "front", "number": 7, "stage": "tests", "killer": "t", "ran": 1,
                                    "available": 5, "seconds": 0}
    assert shard.given.mutated == [mutant()] and shard.killed[0]


def test_a_test_that_fails_without_the_mutant_does_not_kill(shard):
    assert verdict(shard, mutant(), lambda: "t")["killer"] is None
    assert shard.unstable == {"t"} and not shard.killed[0]


def test_a_mutant_that_only_an_import_shows_is_told(shard, monkeypatch):
    def apply(m, mutated):
        raise live_import.NeedsImport

    monkeypatch.setattr(live_import, "apply", apply)
    assert verdict(shard, mutant(at_import=True), lambda: None)["killer"] == shards.NEEDS_IMPORT
    assert not shard.killed[0]


def test_an_error_at_import_kills(shard, monkeypatch):
    monkeypatch.setattr(live_import, "apply", lambda m, mutated: 1 // 0)
    assert verdict(shard, mutant(at_import=True), lambda: None)["killer"] == "ZeroDivisionError at import"
    assert shard.killed[0]


def test_the_table_tells_survivors_apart(monkeypatch, tmp_path):
    monkeypatch.setattr(shards, "why_equivalent", lambda m: "no one can tell" if m.code.startswith("same") else None)
    rows = [(0, "t", 1, 1), (1, None, 3, 4), (2, None, 0, 0), (3, shards.NEEDS_IMPORT, 1, 1),
            (4, "conformance/t", 1, 1), (5, "tests/t", 1, 1)]
    (tmp_path / "0-x.jsonl").write_text("".join(json.dumps(
        {"group": "front", "number": n, "stage": "tests", "killer": k, "ran": r, "available": a}) + "\n"
        for n, k, r, a in rows))
    todo = [("front", n, mutant(c)) for n, c in enumerate(("a", "b", "c", "d", "same", "same too"))]
    text = shards.table(tmp_path, todo)
    assert "counted 4, counted, killed 1, counted, killed by tests alone 1" in text
    assert "   1 survived 3 of 4: " in text and "   2 no test executes it: " in text
    assert "   3 needs an import: " in text and "   4 killed although listed: " in text and "   5 " not in text

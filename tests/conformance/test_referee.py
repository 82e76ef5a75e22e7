"""The referee tells equal, allowed and wrong results apart, and shrinks programs with wrong ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conformance.adapters.cutile_interp import Interp
from conformance.generate import generate
from conformance.referee import cases, compare, implementation
from conformance.referee.compare import DIFFER, INCONCLUSIVE, REFUSED, SAME, WITHIN, judged
from conformance.referee.first import first_difference, recorded
from conformance.referee.implementations import ByAdapter, Reference, flat, loaded
from conformance.referee.shrink import closed, shrink
from tests.conformance.altered_meanings import ByBlock, FarOff, Free, Swapped

INTERP = ByAdapter(Interp())


def first_that(second, kinds, op: str, limit: int = 150):
    """The first program with this op for which the comparison has this verdict."""
    for seed in range(limit):
        p = generate(seed)
        if any(o == op for o, _ in p.ops()) and (v := compare(p, INTERP, second)).kind in kinds:
            return p, v
    raise AssertionError(f"no program with {op} gives {kinds}")


@pytest.mark.parametrize("seed", range(6))
def test_schedules_agree(seed):
    assert compare(generate(seed), INTERP, ByAdapter(ByBlock())).kind in (SAME, WITHIN)


def test_a_wrong_meaning_is_found_shrunk_and_named(tmp_path):
    toy = ByAdapter(Swapped())
    p, verdict = first_that(toy, (DIFFER,), "maximum")
    small, verdict, found = cases.investigate(p, INTERP, toy, verdict, attempts=150)
    assert verdict.kind == DIFFER and verdict.array
    assert len(small.body) <= 8 < len(p.body) + 8
    assert found is not None and "maximum" in found.ops
    assert not np.array_equal(found.first, found.second)
    page = cases.text(small, verdict, found, ("right", "toy"))
    assert "maximum" in page and "ARITH-9" in page and "@ct.kernel" in page
    path = cases.file(tmp_path, page, small.seed, ("right", "toy"))
    assert path.read_text() == page


def test_pages_go_beside_a_checkout_and_never_among_installed_files(monkeypatch, tmp_path):
    assert cases.pages_folder() == Path(cases.__file__).parents[1] / "found"
    monkeypatch.setattr(cases, "__file__", str(tmp_path / "site-packages" / "conformance" / "referee" / "cases.py"))
    assert cases.pages_folder() == Path("found")


def test_what_the_language_allows_is_no_difference():
    _, verdict = first_that(ByAdapter(Free()), (WITHIN, DIFFER), "exp")
    assert verdict.kind == WITHIN


def test_what_is_beyond_that_is_one():
    _, verdict = first_that(ByAdapter(FarOff()), (DIFFER,), "exp")
    assert verdict.bound > 0


class Refusing(Interp):
    name = "toy:refusing"

    def launch(self, grid, kernel, args):
        raise ValueError("not today\nnor tomorrow")


def test_refusals():
    refusing = ByAdapter(Refusing())
    said = "differ: toy:refusing fails with ValueError: not today nor tomorrow"
    assert str(compare(generate(0), INTERP, refusing)) == said
    assert compare(generate(0), refusing, refusing).kind == REFUSED


class Found:
    def __init__(self, value, bound):
        self.value, self.bound = value, bound


def test_judging_elements():
    x = np.array([1, 2, 3], np.float32)

    def verdict(y, bound):
        return judged([("y", x)], [("y", np.array(y, np.float32))], [Found(x, np.array(bound, np.float64))])

    assert verdict([1, 2, 3.5], [0, 0, 1]).kind == WITHIN
    assert verdict([1, 2, 3.5], [0, 0, np.inf]).kind == INCONCLUSIVE
    v = verdict([1, 2.5, 3.5], [np.inf, 0.25, np.inf])
    assert v.kind == DIFFER and v.element == (1,) and v.bound == 0.25
    assert verdict([np.nan, 2, 3], [0.5, 0, 0]).kind == DIFFER
    assert verdict([-1, 2, 3], [2, 0, 0]).kind == WITHIN


def test_integers_have_no_leeway():
    x, y = np.array([1, 2]), np.array([1, 3])
    assert judged([("y", x)], [("y", y)], [Found(x, np.zeros(2))]).kind == DIFFER


def test_recording_changes_no_result():
    for seed in range(2):
        p = generate(seed)
        made, statements = recorded(p)
        with loaded(p) as plainly, loaded(made) as richly:
            plain, rich = flat(p, INTERP.run(p, plainly)), dict(flat(made, INTERP.run(made, richly)))
        assert all(np.array_equal(x, rich[n], equal_nan=x.dtype.kind == "f") for n, x in plain
                   if x.dtype.kind in "biuf")
        assert statements and first_difference(p, INTERP, Reference()) is None


def test_shrinking_keeps_what_is_asked():
    p = next(p for p in map(generate, range(50)) if "ct.sum(" in p.source() and len(p.body) > 12)
    small = shrink(p, lambda q: "ct.sum(" in q.source() and not compare(q, INTERP, Reference()).detail, attempts=60)
    assert len(small.body) < len(p.body) / 2 and "ct.sum(" in small.source()
    assert closed(small) and not compare(small, INTERP, Reference()).detail


def test_names():
    assert implementation("reference").name == "reference" and implementation("cutile:interp").name == "cutile:interp"
    assert implementation("tests.conformance.altered_meanings:Free").name == "toy:free"


class Lacking(Interp):
    not_applicable = (NotImplementedError,)

    def launch(self, grid, kernel, args):
        raise NotImplementedError("float8")


def test_what_hardware_lacks_is_no_difference():
    assert compare(generate(0), INTERP, ByAdapter(Lacking())).kind == "not applicable"

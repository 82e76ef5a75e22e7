"""Comparisons, and what counts as true."""

from __future__ import annotations

import cutile as ct
from cutile.dtypes import ARITHMETIC
from tests.gpu.tileir.rules.small_kernels import assemble, attributes, names, sampled, tile
from tests.gpu.tileir.tool import needs_tool

F32, I32, U32, B1 = (tile(d) for d in (ct.float32, ct.int32, ct.uint32, ct.bool_))


def compared(x, y):
    return x == y, x != y, x < y, x <= y, x > y, x >= y


def inverted(x):
    return ct.where(not x.extract(0, ()), x, -x)


CASES = [(compared, (tile(d), tile(d))) for d in ARITHMETIC] + [(inverted, (I32,)), (inverted, (F32,))]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


def predicates(t) -> list:
    name = "cmpf" if t is F32 else "cmpi"
    return [a["comparison_predicate"] for a in attributes(name, compared, t, t)][:6]


def test_predicates():
    wanted = ["equal", "not_equal", "less_than", "less_than_or_equal", "greater_than", "greater_than_or_equal"]
    assert predicates(F32) == wanted and predicates(I32) == wanted


def test_only_unequal_holds_for_nan():
    assert [a["comparison_ordering"] == "unordered" for a in attributes("cmpf", compared, F32, F32)] == [
        False, True, False, False, False, False]


def test_signs():
    for t, sign in ((I32, "signed"), (U32, "unsigned")):
        assert {a["signedness"] for a in attributes("cmpi", lambda x, y: ct.where(x < y, x, y), t, t)} == {sign}


def test_not():
    assert "xori" in names(inverted, I32)

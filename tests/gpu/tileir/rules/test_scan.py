"""Prefixes along an axis."""

from __future__ import annotations

import cutile as ct
from cutile.dtypes import info
from cutile.types import RoundingMode
from tests.gpu.tileir.rules.programs import (
    FLOATS,
    NUMBERS,
    SINGLE,
    assemble,
    attributes,
    names,
    operations,
    sampled,
    tile,
)
from tests.gpu.tileir.tool import needs_tool

F48, I48 = tile(ct.float32, 4, 8), tile(ct.int32, 4, 8)


def folded(x):
    return ct.cumsum(x, 1), ct.cumsum(x, 0, reverse=True), ct.cumprod(x, -1)


def directed(x):
    return ct.cumsum(x, 1, rounding_mode=RoundingMode.RZ), ct.cumprod(x, 0, rounding_mode=RoundingMode.RM)


def own(x):
    return ct.scan(x, 0, ct.maximum, 0), ct.scan(x, 1, lambda a, b: a + b * 2, 0, reverse=True)


def moving(x):
    return ct.scan(x, 1, lambda a, b: b, 1)


def several(x, y):
    return ct.scan((x, y), 1, lambda a, b, c, d: (a + c, ct.maximum(b, d)), (0, 0))


CASES = [*((f, (tile(d, 4, 8),)) for d in NUMBERS for f in (folded, own)),
         *((directed, (tile(d, 4, 8),)) for d in FLOATS), (folded, (tile(ct.bool_, 4, 8),)), (several, (F48, I48)),
         *((moving, (tile(d, 4, 8),)) for d in SINGLE if info(d).restricted)]


@needs_tool
@sampled(CASES)
def test_every_dtype(target, cases):
    assemble(cases, target)


def test_operations():
    assert names(lambda x: ct.cumsum(x, 1), F48) == ["scan", "addf"]
    assert names(lambda x: ct.cumprod(x, 1), I48) == ["scan", "muli"]
    found = attributes("scan", folded, F48)
    assert [(a["dim"], a["reverse"]) for a in found] == [(1, False), (0, True), (1, False)]
    assert [i.bits for a in attributes("scan", folded, I48) for i in a["identities"]] == [0, 0, 1]
    assert [a["rounding_mode"] for a in attributes("addf", directed, F48)] == ["zero"]


def test_the_first_element_is_flushed():
    def f(x):
        return ct.cumsum(x, 1, flush_to_zero=True)

    assert names(f, F48) == ["mulf", "scan", "addf"]
    assert all(attributes(name, f, F48)[0]["flush_to_zero"] for name in ("mulf", "addf"))


def test_what_was_combined_comes_first():
    (scan,) = [o for o in operations(lambda x: ct.scan(x, 0, lambda a, b: a - b, 0), I48) if o.spec.name == "scan"]
    before, element = scan.regions[0].args
    assert scan.regions[0].ops[0].operands == (before, element)

"""Prefixes along an axis."""

from __future__ import annotations

import cutile as ct
from cutile.dtypes import info
from cutile.types import RoundingMode
from tests.gpu.tileir.rules.small_kernels import (
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

F48, I48, LARGE = tile(ct.float32, 4, 8), tile(ct.int32, 4, 8), tile(ct.float32, 16, 16)


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
    assert names(lambda x: ct.cumsum(x, 1), LARGE) == ["scan", "addf"]
    assert names(lambda x: ct.cumprod(x, 1), tile(ct.int32, 16, 16)) == ["scan", "muli"]
    found = attributes("scan", folded, F48)
    assert [(a["dim"], a["reverse"]) for a in found] == [(1, False), (0, True), (1, False)]
    assert [i.bits for a in attributes("scan", folded, I48) for i in a["identities"]] == [0, 0, 1]
    assert [a["rounding_mode"] for a in attributes("addf", directed, F48)] == ["zero"]


def test_the_first_element_is_flushed():
    def f(x):
        return ct.cumsum(x, 1, flush_to_zero=True)

    assert names(f, LARGE) == ["mulf", "scan", "addf"]
    assert all(attributes(name, f, LARGE)[0]["flush_to_zero"] for name in ("mulf", "addf"))


def test_what_was_combined_comes_first():
    (scan,) = [o for o in operations(lambda x: ct.scan(x, 0, lambda a, b: a - b, 0), I48) if o.spec.name == "scan"]
    before, element = scan.regions[0].args
    assert scan.regions[0].ops[0].operands == (before, element)


# ------------------------------------------------------------------ reshapes of few elements


def reshapes(x):
    """Reshapes that split the axis of a scan: of the result itself, and of values computed from it."""
    a, b = ct.cumsum(x, 1), ct.cumprod(x, 0, reverse=True)
    return a.reshape((4, 4, 2)), (a * 2).reshape((8, 4)), b.reshape((2, 2, 8)), b.reshape((2, 16))


def reshapes_of_own(x):
    a = ct.scan(x, 1, lambda p, q: q, 1)
    b, c = ct.scan((x, x), 0, lambda p, q, r, s: (r, s), (1, 1))
    return a.reshape((8, 4)), b.reshape((2, 16)), c.reshape((2, 2, 8))


@needs_tool
@sampled([*((reshapes, (tile(d, 4, 8),)) for d in NUMBERS),
          *((reshapes_of_own, (tile(d, 4, 8),)) for d in (*SINGLE, ct.bool_))])
def test_results_are_reshaped(target, cases):
    """The assembler fails on some of these unless the scan is lowered otherwise."""
    assemble(cases, target)


def test_what_a_few_elements_go_through():
    (r,) = attributes("reduce", lambda x: ct.cumsum(x, 1), F48)
    assert r["dim"] == 2
    assert sorted(names(lambda x: ct.cumsum(x, 1), I48)) == ["addi", "ori", "reduce", "reshape", "scan"]
    assert sorted(names(lambda x: ct.cumsum(x, 1), F48)) == ["addf", "maxf", "reduce", "reshape", "scan"]

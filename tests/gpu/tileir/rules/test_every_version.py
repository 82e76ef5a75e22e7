"""The programs of the neighbouring files, for each target and bytecode version: each assembles, or is refused by us."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.gpu.target import parse_target
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.builder import Module
from tests.gpu.tileir.lowering import TARGETS
from tests.gpu.tileir.rules import (
    test_arithmetic,
    test_bits,
    test_compare,
    test_convert,
    test_create,
    test_math,
    test_mma,
    test_reduce,
    test_scan,
    test_select,
    test_shape,
)
from tests.gpu.tileir.rules.small_kernels import Case, add, program
from tests.gpu.tileir.tool import needs_tool

OLDER = ("13.1", "13.2", "13.3")  # the newest is in the files themselves
ALL: dict[str, list[Case]] = {
    "arithmetic": test_arithmetic.CASES, "bits": test_bits.CASES, "compare": test_compare.CASES,
    "convert": test_convert.CASTS, "bytes": test_convert.BITS + test_convert.BYTES, "create": test_create.CASES,
    "math": test_math.CASES, "mma": test_mma.CASES + test_mma.SCALED, "reduce": test_reduce.CASES,
    "scan": test_scan.CASES, "select": test_select.CASES, "shape": test_shape.CASES,
}
WHERE = [(target, version) for target in TARGETS for version in OLDER]


def assembled(cases: list[Case], target: str, version: str) -> tuple[int, int]:
    """How many are assembled, as one module, and how many are refused. An error of the assembler fails the test."""
    m, refused = Module(version), 0
    for k, (f, kinds) in enumerate(cases):
        before = len(m.contents.entries)
        try:
            add(m, program(f, *kinds), target, f"case_{k}")
        except ct.TileUnsupportedFeatureError as e:
            refused += 1
            del m.contents.entries[before:]  # as far as it came
            assert e.loc is not None
    if m.contents.entries:
        assert tileiras.assemble(m.to_bytes(), parse_target(target), opt_level=0)
    return len(m.contents.entries), refused


def sample() -> list:
    """Each family once, a stratum of its cases, for one target and version in turn."""
    return [pytest.param(cases[k % 4::4], *WHERE[k * 5 % len(WHERE)], id=name)
            for k, (name, cases) in enumerate(ALL.items())]


def every() -> list:
    return [pytest.param(cases, target, version, marks=pytest.mark.deep, id=f"{name}-{target}-{version}-all")
            for name, cases in ALL.items() for target, version in WHERE]


@needs_tool
@pytest.mark.parametrize(("cases", "target", "version"), sample() + every())
def test_older_versions(cases, target, version):
    done, refused = assembled(cases, target, version)
    assert done + refused == len(cases)

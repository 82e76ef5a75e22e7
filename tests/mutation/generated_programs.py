"""The referee's programs as tests: the first PROGRAMS of them, on the implementation under test and on the reference.

Not collected by itself: `pytest conformance tests/mutation/generated_programs.py --impl NAME`.
"""

from __future__ import annotations

import functools

import pytest

from conformance.generate import Options, generate
from conformance.harness.api import impl
from conformance.referee.compare import DIFFER, REFUSED, compare
from conformance.referee.implementations import ByAdapter, Reference

PROGRAMS = 600


@functools.cache
def _two() -> tuple[Reference, ByAdapter]:
    return Reference(), ByAdapter(impl)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the reference, on numbers that casts leave open
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_program(seed):
    verdict = compare(generate(seed, Options()), *_two())
    assert verdict.kind not in (DIFFER, REFUSED), str(verdict)

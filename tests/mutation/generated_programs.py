"""The first PROGRAMS programs of the referee as tests: the implementation under test against the reference.

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


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # warnings of the reference, for casts with an open result
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_program(seed):
    verdict = compare(generate(seed, Options()), *_two())
    assert verdict.kind not in (DIFFER, REFUSED), str(verdict)

"""The seeded faults still fit the tree: each text occurs once, and the planted text is Python."""

from __future__ import annotations

import ast
import shutil
from collections import Counter

import pytest

from tests.conformance.seeded.faults import BYTECODE, FAULTS, REFERENCE
from tests.conformance.seeded.run import ROOT, plant


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_fault_can_be_planted(fault, tmp_path):
    path = tmp_path / fault.file
    path.parent.mkdir(parents=True)
    shutil.copy(ROOT / fault.file, path)
    plant(fault, tmp_path)
    assert path.read_text() != (ROOT / fault.file).read_text()
    ast.parse(path.read_text())


def test_there_are_twenty_of_three_parts():
    parts = Counter(f.part for f in FAULTS)
    assert len(FAULTS) == 20 and len(parts) == 3 and min(parts.values()) >= 6
    assert {f.against for f in FAULTS} == {REFERENCE, BYTECODE}


def test_a_fault_that_no_longer_fits_is_an_error(tmp_path):
    fault = FAULTS[0]
    (tmp_path / fault.file).parent.mkdir(parents=True)
    (tmp_path / fault.file).write_text("something else\n")
    with pytest.raises(ValueError, match="stands 0 times"):
        plant(fault, tmp_path)

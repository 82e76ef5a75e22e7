"""Every kernel of the conformance suite, for each target: see assembling.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.tileir.lowering import TARGETS
from tests.gpu.tileir.tool import needs_tool

ROOT = Path(__file__).parents[2]


def assembled(*arguments: str) -> str:
    """What the run says; it fails where a kernel is neither assembled nor refused by our own check."""
    command = [sys.executable, "-O", "-m", "tests.gpu.assembling", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@needs_tool
def test_some():
    said = assembled("--targets", "sm_90", "conformance/test_select.py")
    assert "0 faults" in said and "sm_90: 0 assembled" not in said


@needs_tool
@pytest.mark.deep
@pytest.mark.parametrize("target", TARGETS)
def test_all(target):
    print(assembled("--targets", target))

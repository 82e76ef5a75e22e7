"""python -m cutile show --stage resources."""

from __future__ import annotations

import re

import pytest

from tests.cli.show.test_command import SOFTMAX, said
from tests.gpu.tileir.tool import needs_tool


@needs_tool
@pytest.mark.parametrize("gpu", ["sm_90", "sm_120"])
def test_resources(gpu):
    text = said("show", *SOFTMAX, "--stage", "resources", "--gpu", gpu)
    assert text.startswith(f"softmax_rows for {gpu}, if arrays are contiguous")
    found = dict(re.findall(r"^(\w[\w ]+?) {2,}(\d+)", text, re.M))
    assert found["threads a block"] == "64" and 0 < int(found["registers a thread"]) < 256
    assert found["stack a thread"] == "0" and int(found["blocks a multiprocessor"]) > 0


@pytest.mark.parametrize("gpu, says", [("sm90", "written like 'sm_90'"), ("sm_70", "is not supported")])
def test_names_that_are_no_gpu(gpu, says):
    assert says in said("show", *SOFTMAX, "--stage", "resources", "--gpu", gpu, code=1)

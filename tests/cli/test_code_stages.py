"""python -m cutile show, the stages that need GPU code."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cutile as ct
from cutile.cli.code_stages import constraint
from cutile.compilation import ArrayConstraint, CallingConvention
from cutile.compilation.constraints import ConstantConstraint, ScalarConstraint
from cutile.compilation.derive import derive
from cutile.front.program import Embedded
from cutile.types import ArrayType, TileType
from tests.cli.test_show import SOFTMAX, said
from tests.gpu.tileir.tool import needs_tool


@needs_tool
@pytest.mark.parametrize("gpu", ["sm_90", "sm_120"])
def test_resources(gpu):
    text = said("show", *SOFTMAX, "--stage", "resources", "--gpu", gpu)
    assert text.startswith(f"softmax_rows for {gpu}, if arrays are contiguous")
    found = dict(re.findall(r"^(\w[\w ]+?) {2,}(\d+)", text, re.M))
    assert found["threads a block"] == "128" and 0 < int(found["registers a thread"]) < 256
    assert found["stack a thread"] == "0" and int(found["blocks a multiprocessor"]) > 0


@pytest.mark.parametrize("gpu, says", [("sm90", "written like 'sm_90'"), ("sm_70", "is not supported")])
def test_names_that_are_no_gpu(gpu, says):
    assert says in said("show", *SOFTMAX, "--stage", "resources", "--gpu", gpu, code=1)


def test_constraints_are_those_of_a_launch():
    @ct.kernel
    def k(x, y, n, c: ct.Constant[int]):
        pass

    launch = derive(k, (np.empty((32, 64), np.float16), np.empty(48, np.float64), 3, 7),
                    CallingConvention.cutile_python_v2())
    types = [ArrayType(ct.float16, 2), ArrayType(ct.float64, 1), TileType(ct.int32), Embedded(7)]
    found = list(map(constraint, types))
    assert [type(c) for c in found] == [ArrayConstraint, ArrayConstraint, ScalarConstraint, ConstantConstraint]
    assert found == launch

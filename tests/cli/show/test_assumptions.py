"""Assumptions about arguments that are given by type only."""

from __future__ import annotations

import numpy as np

import cutile as ct
from cutile.cli.show.assumptions import constraint
from cutile.compilation import ArrayConstraint, CallingConvention
from cutile.compilation.constraints import ConstantConstraint, ScalarConstraint
from cutile.compilation.derive import derive
from cutile.front.program import Embedded
from cutile.types import ArrayType, TileType


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

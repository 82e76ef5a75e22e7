"""What operators give for items of some types."""

from __future__ import annotations

import cutile as ct
from cutile.compute.operators import operator
from cutile.compute.results import result_of
from cutile.compute.value_types import Number


def test_types_of_results():
    i32, f32 = Number(ct.int32), Number(ct.float32)
    found = result_of(operator(lambda a, b: a + b), i32, f32)
    assert (found.type, found.loops, found.single) == (f32, False, "")
    assert str(result_of(operator(lambda a: (a, a > 0)), i32).type.parts[1]) == "bool_"

    def loops(a):
        while a > 3:
            a = a // 2
        return a
    assert result_of(operator(loops), i32).loops

"""What ops leave open, as data and as text."""

from __future__ import annotations

import pytest

from cutile.dtypes import bfloat16, float16, float32, float64
from cutile.ops import arithmetic, math, reduce
from cutile.ops._freedom import AnyValue, Order, Ulp, When, any_, order, ulp, ulp_of, when
from cutile.ops._op import registry
from cutile.types import RoundingMode

APPROX, FULL, RZ = RoundingMode.APPROX, RoundingMode.FULL, RoundingMode.RZ
FREE = [o for o in registry().values() if o.freedom]


def test_units_by_dtype():
    assert ulp(3).limit == {float16: 1, bfloat16: 1, float32: 3, float64: 1} and ulp(3, 2).limit[float64] == 2


@pytest.mark.parametrize("op, mode, most", [
    (math.exp, None, 2), (math.exp, APPROX, 62), (math.exp, FULL, 2), (math.sqrt, None, None), (math.sqrt, APPROX, 1),
    (math.sqrt, RZ, None), (arithmetic.truediv, FULL, 2), (arithmetic.truediv, None, None),
    (arithmetic.mod, None, None), (reduce.sum, None, None),
])
def test_a_mode_has_its_own(op, mode, most):
    found = ulp_of(op.freedom, mode)
    assert (found and found.limit[float32]) == most


@pytest.mark.parametrize("freedom, text", [
    (ulp(2), "float16 1 ulp, bfloat16 1 ulp, float32 2 ulp, float64 1 ulp"), (order("sum"), "order(sum)"),
    (any_("y == 0"), "y == 0: any value"), (when(APPROX, ulp(62)), "APPROX: 62 ulp"),
    (when(FULL, ulp(2), any_("a tiny divisor")), "FULL: 2 ulp; a tiny divisor: any value"),
])
def test_as_text(freedom, text):
    assert str(freedom) == text


@pytest.mark.parametrize("o", FREE, ids=lambda o: o.name)
def test_what_an_op_leaves_open_fits_it(o):
    assert all(isinstance(f, Ulp | Order | AnyValue | When) for f in o.freedom)
    modes = [f.mode for f in o.freedom if isinstance(f, When)]
    assert len(modes) == len(set(modes)) and set(modes) <= set(o.modes)
    if any(isinstance(f, Order) for f in o.freedom):
        assert o.accumulates
    if ulp_of(o.freedom):
        assert o.elementwise

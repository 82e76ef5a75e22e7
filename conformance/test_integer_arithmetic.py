"""Integers: exact results, wrapped [ARITH]."""


import numpy as np
import pytest

from conformance.harness.api import clause, ct, needs
from conformance.harness.integer_arithmetic import integer_pairs, limits, of_integers, wrap
from conformance.harness.number_comparison import same_numbers
from conformance.harness.number_formats import INTEGERS


def floor_div(a, b):
    return a // b


def ceil_div(a, b):
    return -(-a // b)


# function, its form in source, exact result of integers
INTEGER_OPS = [
    pytest.param(
        ct.add, lambda x, y: x + y, lambda a, b: a + b, id="add", marks=clause("ARITH-1.int", "ARITH-1.operator")
    ),
    pytest.param(
        ct.sub, lambda x, y: x - y, lambda a, b: a - b, id="sub", marks=clause("ARITH-2.int", "ARITH-2.operator")
    ),
    pytest.param(
        ct.mul, lambda x, y: x * y, lambda a, b: a * b, id="mul", marks=clause("ARITH-3.int", "ARITH-3.operator")
    ),
    pytest.param(
        ct.floordiv,
        lambda x, y: x // y,
        floor_div,
        id="floordiv",
        marks=clause("ARITH-5.signed", "ARITH-5.unsigned", "ARITH-5.wrap", "ARITH-5.zero", "ARITH-5.operator"),
    ),
    pytest.param(
        ct.mod,
        lambda x, y: x % y,
        lambda a, b: a - b * (a // b),
        id="mod",
        marks=clause("ARITH-7.signed", "ARITH-7.unsigned", "ARITH-7.zero", "ARITH-7.operator"),
    ),
    pytest.param(
        ct.cdiv,
        lambda x, y: ct.cdiv(x, y),
        ceil_div,
        id="cdiv",
        marks=clause("ARITH-6.signed", "ARITH-6.unsigned", "ARITH-6.zero"),
    ),
    pytest.param(
        ct.minimum, lambda x, y: min(x, y), min, id="minimum", marks=clause("ARITH-9.min.int", "ARITH-9.min.builtin")
    ),
    pytest.param(
        ct.maximum, lambda x, y: max(x, y), max, id="maximum", marks=clause("ARITH-9.max.int", "ARITH-9.max.builtin")
    ),
    pytest.param(
        lambda x, y: ct.divmod(x, y)[0],
        lambda x, y: divmod(x, y)[0],
        floor_div,
        id="divmod0",
        marks=clause("ARITH-8.signed", "ARITH-8.unsigned", "ARITH-8.builtin"),
    ),
    pytest.param(
        lambda x, y: ct.divmod(x, y)[1],
        lambda x, y: divmod(x, y)[1],
        lambda a, b: a - b * (a // b),
        id="divmod1",
        marks=clause("ARITH-8.signed", "ARITH-8.unsigned", "ARITH-8.builtin"),
    ),
]


DIVIDES = {floor_div, ceil_div}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("function, form, oracle", INTEGER_OPS)
def test_integers(function, form, oracle, name, request):
    x, y = integer_pairs(name)
    defined = y != 0 if any(w in request.node.name for w in ("div", "mod")) else np.ones(y.shape, bool)
    pairs = zip(x[defined].tolist(), y[defined].tolist(), strict=True)
    want = np.array([wrap(oracle(a, b), name) for a, b in pairs], name)
    for fn in (function, form) if name in ("int32", "uint8") else (form,):
        got = of_integers(fn, name, x, y)[defined]  # the result of division by zero is undetermined
        same_numbers(got, want, name, (x[defined], y[defined]))


@needs("measured")
@clause("ARITH-5.zero.measured", "ARITH-6.zero.measured", "ARITH-7.zero.measured")
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_division_by_zero(name):
    low, high = limits(name)
    x = np.array([0, 1, 5, high, low, low + 1], name)
    y = np.zeros(6, name)
    quotient = [-1 if v >= 0 else -2 for v in x.tolist()]
    assert of_integers(ct.floordiv, name, x, y).tolist() == [wrap(q, name) for q in quotient]
    assert of_integers(ct.cdiv, name, x, y).tolist() == [wrap(q + 1, name) for q in quotient]
    assert of_integers(ct.mod, name, x, y).tolist() == [wrap(-1, name)] * 6
    assert of_integers(lambda a, b: ct.divmod(a, b)[0], name, x, y).tolist() == [wrap(q, name) for q in quotient]
    assert of_integers(lambda a, b: ct.divmod(a, b)[1], name, x, y).tolist() == [wrap(-1, name)] * 6

"""What the compiler of a kernel knows about its parameters, from the constraints of a signature."""

import pytest

import cutile as ct
from cutile.compilation import ConstantConstraint, ListConstraint, ScalarConstraint, TupleConstraint
from cutile.gpu.facts import nothing_known, of_parameters, power_of_two
from cutile.types import ArrayType
from tests.compilation.test_mangling import array


def test_constraints_are_facts_in_the_order_of_the_parameters_of_the_ir():
    a, b = array(ct.float32, 1), array(ct.float16, 2)
    several = ListConstraint(a, alias_groups=(), elements_may_alias=False)
    number = ScalarConstraint(ct.int32)
    assert of_parameters([a, ConstantConstraint(3), number, several]) == [a, None, several]
    assert of_parameters([TupleConstraint([b, TupleConstraint([5, number]), a])]) == [b, None, a]
    assert of_parameters([]) == []


def test_a_constraint_has_the_fields_of_a_fact():
    facts = nothing_known(ArrayType(ct.float32, 3))
    for name in type(facts).__match_args__:
        value, given = getattr(facts, name), getattr(array(ct.float32, 3), name)
        assert isinstance(given, type(value)) and (not isinstance(value, tuple) or len(given) == len(value)), name


@pytest.mark.parametrize("n, largest", [(1, 1), (2, 2), (3, 1), (12, 4), (96, 32), (1 << 40, 1 << 40), (0, 1)])
def test_only_powers_of_two_divide(n, largest):
    assert power_of_two(n) == largest

"""Constraints and signatures: what they take and refuse [SIG-1…12, CC-1, CC-2]."""

import math

import pytest

import cutile as ct
from cutile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from tests.compilation.test_mangling import V1, V2, array


def test_scalars_are_numeric():
    for bad in (int, "int32", ct.foreign_pointer_dtype(ct.int32)):
        with pytest.raises(TypeError):
            ScalarConstraint(bad)


def test_constants_are_told_apart():
    values = [0, False, 0.0, -0.0, 1, True, 1.0]
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            assert (ConstantConstraint(a) == ConstantConstraint(b)) == (i == j)
    assert ConstantConstraint(math.nan) == ConstantConstraint(math.nan)
    for bad in ("x", None, 1j):
        with pytest.raises(TypeError):
            ConstantConstraint(bad)
    with pytest.raises(TypeError):
        hash(ConstantConstraint(1))


def test_array_keywords_are_mandatory():
    with pytest.raises(TypeError):
        ArrayConstraint(ct.float32, 1)


@pytest.mark.parametrize(("options", "error"), [
    ({"index_dtype": ct.int16}, ValueError), ({"stride_constant": (1,)}, ValueError),
    ({"shape_constant": (-1, None)}, ValueError), ({"shape_constant": (True, None)}, TypeError),
    ({"stride_divisible_by": (0, 1)}, TypeError), ({"base_addr_divisible_by": 0}, ValueError),
    ({"stride_constant": (3, 1), "stride_divisible_by": (2, 1)}, ValueError),
    ({"stride_constant": (-1, 1), "stride_lower_bound_incl": 0}, ValueError),
    ({"shape_constant": (3, 1), "shape_divisible_by": (2, 1)}, ValueError),
    ({"alias_groups": "x"}, TypeError), ({"alias_groups": ("x", "x")}, ValueError)])
def test_predicates_that_cannot_hold(options, error):
    with pytest.raises(error):
        array(ct.float32, 2, **options)


def test_scalars_stand_for_all_dims_and_constants_make_predicates_redundant():
    a = array(ct.float32, 2, stride_lower_bound_incl=0, stride_constant=(None, 1), stride_divisible_by=(4, 1))
    assert a.stride_lower_bound_incl == (0, None) and a.stride_divisible_by == (4, 1)


def test_lists_hold_arrays():
    with pytest.raises(TypeError):
        ListConstraint(ScalarConstraint(ct.int32), alias_groups=(), elements_may_alias=False)


def test_signatures_normalise_and_are_immutable():
    s = KernelSignature([1, (2.0, ScalarConstraint(ct.int32))], V2)
    assert s.parameters == (ConstantConstraint(1), TupleConstraint([2.0, ScalarConstraint(ct.int32)]))
    with pytest.raises(AttributeError):
        s.symbol = "x"
    assert s.with_symbol("x").symbol == "x" and s.symbol is None
    for bad in ("x", None, [1]):
        with pytest.raises(TypeError):
            KernelSignature([bad], V2)
    with pytest.raises(TypeError):
        KernelSignature([], "t1")
    with pytest.raises(TypeError):
        KernelSignature([], V1, symbol=3)


def test_the_first_convention_has_no_tuples_and_constant_sizes():
    for p in ((1,), array(ct.float32, 1, shape_constant=(1,))):
        with pytest.raises(ValueError, match="v2"):
            KernelSignature([p], V1)


def test_alias_groups_join_parameters_of_one_kind():
    with pytest.raises(ValueError, match="only one"):
        KernelSignature([array(ct.float32, 1, alias_groups=("x",))], V1)
    table = ListConstraint(array(ct.float32, 1), alias_groups=("x",), elements_may_alias=False)
    with pytest.raises(ValueError, match="table"):
        KernelSignature([array(ct.float32, 1, alias_groups=("x",)), table], V1)


def test_conventions():
    assert repr(V1) == "CallingConvention('cutile_python_v1', 't1')" and V1 != V2 and V2.version == 2
    assert CallingConvention.from_code("t2") == V2
    with pytest.raises(ValueError):
        CallingConvention.from_code("t3")
    with pytest.raises(TypeError):
        hash(V1)

"""Constraints: what they take and refuse [SIG-4…12]."""

import math

import pytest

import cutile as ct
from cutile.compilation import (
    ArrayConstraint,
    ConstantConstraint,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from tests.compilation.test_mangling import V2, array


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


HUGE = 1 << 20_000
LIMITS = {ct.int32: 2**31, ct.uint32: 2**32, ct.int64: 2**63}
FIELDS = ("shape_constant", "stride_constant", "shape_divisible_by", "stride_divisible_by", "stride_lower_bound_incl")


@pytest.mark.parametrize("index", LIMITS, ids=str)
@pytest.mark.parametrize("field", FIELDS)
def test_numbers_of_a_dimension_fit_the_index_dtype(field, index):
    limit = LIMITS[index]
    assert getattr(array(ct.int8, 1, index_dtype=index, **{field: limit - 1}), field) == (limit - 1,)
    for beyond in (limit, limit + 1, 2**70, HUGE):
        with pytest.raises(ValueError, match=f"{field} .* of dimension 1 does not fit index_dtype {index.name}"):
            array(ct.int8, 2, index_dtype=index, **{field: (1, beyond)})


@pytest.mark.parametrize(("field", "index", "lowest"), [
    ("stride_constant", ct.int32, -2**31), ("stride_constant", ct.int64, -2**63 + 1), ("stride_constant", ct.uint32, 0),
    ("stride_lower_bound_incl", ct.int32, -2**31), ("stride_lower_bound_incl", ct.uint32, -2**31),
    ("stride_lower_bound_incl", ct.int64, -2**63), ("shape_constant", ct.int32, 0)])
def test_the_lowest_numbers_of_a_dimension(field, index, lowest):
    assert getattr(array(ct.int8, 1, index_dtype=index, **{field: lowest}), field) == (lowest,)
    for beyond in (lowest - 2, -HUGE):
        with pytest.raises(ValueError, match=field):
            array(ct.int8, 1, index_dtype=index, **{field: beyond})


@pytest.mark.parametrize("value", [2**63, 3 * 2**62, 2**64, 2**70, HUGE, 0, -1, -HUGE], ids=int.bit_length)
def test_divisors_that_no_address_has(value):
    with pytest.raises(ValueError, match="base_addr_divisible_by must be positive and less than 2\\*\\*63"):
        array(ct.float32, 1, base_addr_divisible_by=value)


@pytest.mark.parametrize("value", [None, "16", 16.0, True, (16,)])
def test_the_divisor_of_an_address_is_an_int(value):
    with pytest.raises(TypeError, match="base_addr_divisible_by is a positive int"):
        array(ct.float32, 1, base_addr_divisible_by=value)


@pytest.mark.parametrize(("dtype", "highest"), [(ct.int8, 2**63 - 1), (ct.float64, 2**60 - 1),
                                                (ct.float4_e2m1fn, 2**63 - 1)], ids=str)
def test_constant_strides_stay_within_memory(dtype, highest):
    array(dtype, 1, index_dtype=ct.int64, stride_constant=highest)
    with pytest.raises(ValueError, match="stride_constant"):
        array(dtype, 1, index_dtype=ct.int64, stride_constant=highest + 1)


@pytest.mark.parametrize("ndim", [65, 1000, HUGE, -1, True, 2.0, None],
                         ids=lambda n: "huge" if n is HUGE else repr(n))
def test_ranks(ndim):
    assert array(ct.float32, 64).ndim == 64
    with pytest.raises(ValueError, match="ndim must be an int from 0 to 64"):
        array(ct.float32, ndim)


def nested(depth: int, make=lambda inner: (inner,)):
    inner = 1
    for _ in range(depth):
        inner = make(inner)
    return inner


@pytest.mark.parametrize("make", [lambda inner: (inner,), lambda inner: TupleConstraint([inner])],
                         ids=["tuples", "constraints"])
def test_depth_of_tuples(make):
    assert KernelSignature([nested(64, make)], V2).with_mangled_symbol("k").symbol == "k_Kt2_" + "T1" * 64 + "I1"
    for depth in (65, 300):
        with pytest.raises(ValueError, match="nested more than 64 deep"):
            KernelSignature([nested(depth, make)], V2)
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        TupleConstraint([nested(100_000)])


def test_scalars_stand_for_all_dims_and_constants_make_predicates_redundant():
    a = array(ct.float32, 2, stride_lower_bound_incl=0, stride_constant=(None, 1), stride_divisible_by=(4, 1))
    assert a.stride_lower_bound_incl == (0, None) and a.stride_divisible_by == (4, 1)


def test_lists_hold_arrays():
    with pytest.raises(TypeError):
        ListConstraint(ScalarConstraint(ct.int32), alias_groups=(), elements_may_alias=False)

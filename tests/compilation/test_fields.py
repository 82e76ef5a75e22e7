"""Values of fields of constraints: whatever is given instead is refused under the field's name [SIG-1, SIG-5…9]."""

from fractions import Fraction

import numpy as np
import pytest

import cutile as ct
from cutile.compilation import KernelSignature, ListConstraint, ScalarConstraint, TupleConstraint, mangle_kernel_name
from cutile.compilation.header import c_header
from cutile.compilation.prefill import prefill
from tests.compilation.test_mangling import V1, V2, array

PER_AXIS = ("stride_lower_bound_incl", "stride_constant", "shape_constant", "stride_divisible_by", "shape_divisible_by")
NO_SEQUENCES = [True, np.int64(4), np.array(4), "4", b"4", {4}, {0: 4}, 4.0, object(), ..., Fraction(4), ct.int32,
                np.ma.masked, len]


@pytest.mark.parametrize("value", NO_SEQUENCES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("field", PER_AXIS)
def test_what_is_no_int_and_no_sequence(field, value):
    with pytest.raises(TypeError, match=f"^{field}: a sequence of ints, or one int for all axes, is needed"):
        array(ct.float32, 1, **{field: value})


@pytest.mark.parametrize("field", PER_AXIS)
def test_sequences_in_their_order(field):
    for given in ([4, 8], (4, 8), range(4, 9, 4), iter([4, 8])):
        assert getattr(array(ct.float32, 2, **{field: given}), field) == (4, 8)
    with pytest.raises(TypeError, match=f"{field} holds ints and None, not .*4.*; write 4"):
        array(ct.float32, 2, **{field: np.array([4, 8])})


@pytest.mark.parametrize("make", [
    lambda v: array(ct.float32, 1, may_alias_internally=v),
    lambda v: ListConstraint(array(ct.float32, 1), alias_groups=(), elements_may_alias=v)], ids=["array", "list"])
def test_promises_are_made_or_not(make):
    for v in (True, 1, np.True_, False, 0):
        assert make(v) == make(bool(v))
    for v in (None, "no", "False", 2, [], np.array([1, 2]), 1.0):
        with pytest.raises(TypeError, match="_alias.* is True or False, not"):
            make(v)


def test_alias_groups():
    for bad in (None, 5, b"ab", {"a": 1}):
        with pytest.raises(TypeError, match="alias_groups: a sequence of strings|alias groups are strings"):
            array(ct.float32, 1, alias_groups=bad)
    names = {f"group {n}" for n in range(20)}
    assert array(ct.float32, 1, alias_groups=names).alias_groups == tuple(sorted(names))


@pytest.mark.parametrize("value", [None, 5, "ab", b"ab", {1, 2}, {1: 2}, array(ct.float32, 1)],
                         ids=lambda v: type(v).__name__)
def test_what_is_no_list_of_constraints(value):
    with pytest.raises(TypeError, match="the parameters of a KernelSignature: a sequence of constraints is needed"):
        KernelSignature(value, V2)
    with pytest.raises(TypeError, match="the items of a tuple constraint: a sequence of constraints is needed"):
        TupleConstraint(value)


@pytest.mark.parametrize(("value", "instead"), [
    (ct.int32, r"write ScalarConstraint\(ct.int32\)"), ([1], "write a tuple, or a ListConstraint"),
    (np.int64(3), "write 3$"), (np.float32(0.5), "write 0.5$"), (np.zeros(3), "from_kernel_args"),
    (ct.ArraySpec("N", ct.float32), "from_kernel_args"), (object(), "not <object[^;]*$")],
    ids=lambda v: type(v).__name__)
def test_what_to_write_in_the_place_of_what_is_no_constraint(value, instead):
    with pytest.raises(TypeError, match=instead):
        KernelSignature([value], V1)


@pytest.mark.parametrize(("dtype", "instead"), [
    (np.float32, "write ct.float32"), (np.dtype("i4"), "write ct.int32"),
    ("float16", "write ct.float16, without quotes"), (float, "write ct.float64, or ct.float32"),
    (np.dtype("O"), r"dtype\('O'\)$"), (None, "None$")], ids=repr)
def test_what_to_write_in_the_place_of_other_libraries_dtypes(dtype, instead):
    for make in (ScalarConstraint, lambda d: array(d, 1)):
        with pytest.raises(TypeError, match=instead):
            make(dtype)


def test_contradictions_name_what_is_contradicted():
    for options, says in (
            ({"stride_constant": 3, "stride_divisible_by": 2}, "stride_constant 3 .*not divisible by .*by, 2"),
            ({"shape_constant": 3, "shape_divisible_by": 2}, "shape_constant 3 .*not divisible by .*by, 2"),
            ({"stride_constant": -1, "stride_lower_bound_incl": 0}, "stride_constant -1 .*less than .*incl, 0")):
        with pytest.raises(ValueError, match=says):
            array(ct.float32, 1, **options)
    with pytest.raises(TypeError, match="positive ints, not a number of 20001 bits"):
        array(ct.float32, 1, stride_divisible_by=-(1 << 20_000))


def test_names_and_signatures():
    signature = KernelSignature([], V1)
    for name in (5, b"x", None, ["x"]):
        with pytest.raises(TypeError, match="the name of a function is a string"):
            mangle_kernel_name(name, signature)
    for other in (None, 5, [], KernelSignature):
        with pytest.raises(TypeError, match="is a KernelSignature, not"):
            mangle_kernel_name("k", other)


@ct.kernel
def copy(x, y):
    ct.store(y, 0, ct.load(x, 0, 8))


X = np.zeros(8, np.float32)


def test_signatures_of_samples_name_what_is_wrong():
    for bad in (None, "t1", 5):
        with pytest.raises(TypeError, match="calling_convention must be a CallingConvention"):
            KernelSignature.from_kernel_args(copy, (X, X), bad)
    for bad, says in ((None, "must be a kernel, got NoneType"), ("k", "must be a kernel, got str"),
                      (lambda x: x, "is a plain function, not a kernel")):
        with pytest.raises(TypeError, match="from_kernel_args.* must be a kernel, not .*; a function becomes one by"):
            KernelSignature.from_kernel_args(bad, (X, X), V2)
        with pytest.raises(TypeError, match=says):
            c_header(bad, [KernelSignature([array(ct.float32, 1)] * 2, V1)])
    for bad in (None, 5, "ab", {"x": X}):
        with pytest.raises(TypeError, match="kernel_args: a sequence of arguments is needed"):
            KernelSignature.from_kernel_args(copy, bad, V2)


@pytest.mark.parametrize("calls", [None, 5, (X, X), [X], [5], X], ids=["None", "int", "tuple", "list", "5", "array"])
def test_calls_to_prefill_are_tuples(calls):
    with pytest.raises(TypeError, match=r"calls is a list, with a tuple .*: \[\(x, y, 128\)\], not"):
        prefill(copy, calls, ["sm_90"])

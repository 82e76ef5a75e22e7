"""Kernel names: the worked examples, and the way back [MNG-1…24]."""

import math
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutile as ct
from cutile.compilation import (
    ArrayConstraint,
    CallingConvention,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
    demangle_kernel_name,
    mangle_kernel_name,
)
from cutile.compilation.mangling import CODES

V1, V2 = CallingConvention.cutile_python_v1(), CallingConvention.cutile_python_v2()


def array(dtype, ndim, **more):
    return ArrayConstraint(dtype, ndim, **{"index_dtype": ct.int32, "stride_lower_bound_incl": None, "alias_groups": (),
                                           "may_alias_internally": False, **more})


def shared_list():
    return ListConstraint(array(ct.float32, 2, alias_groups=("e",)), alias_groups=("s",), elements_may_alias=True)


EXAMPLES = [
    ([], V1, "k_Kt1"),
    ([array(ct.float32, 2)], V1, "k_Kt1_A2f32"),
    ([array(ct.float32, 2, stride_lower_bound_incl=0)], V1, "k_Kt1_A2f32_3l0"),
    ([array(ct.float32, 2, stride_lower_bound_incl=0, stride_constant=(None, 1))], V1, "k_Kt1_A2f32_1l0_2t1"),
    ([array(ct.float32, 2, stride_constant=(-4, 1))], V1, "k_Kt1_A2f32_1t_4_2t1"),
    ([array(ct.float16, 3, shape_divisible_by=(16, 1, 16), stride_divisible_by=(8, 8, 1),
            stride_constant=(None, None, 1), base_addr_divisible_by=16)], V1, "k_Kt1_A3f16_3v8_4t1_5i16_p16"),
    ([array(ct.float16, 2, shape_constant=(None, 128), stride_constant=(128, 1))], V2, "k_Kt2_A2f16_1t128_2s128t1"),
    ([array(ct.float32, 1, alias_groups=("x",)), array(ct.float32, 1, alias_groups=("x", "y")),
      array(ct.int8, 1, alias_groups=("y",))], V1, "k_Kt1_A1f32_g0_A1f32_g0g1_A1i8_g1"),
    ([array(ct.float32, 1, index_dtype=ct.int64)], V1, "k_Kt1_A1f32_w"),
    ([array(ct.float32, 1, index_dtype=ct.uint32)], V1, "k_Kt1_A1f32_u"),
    ([array(ct.float32, 1, may_alias_internally=True)], V1, "k_Kt1_A1f32_i"),
    ([ListConstraint(array(ct.float32, 2), alias_groups=(), elements_may_alias=False)], V1, "k_Kt1_LA2f32"),
    ([shared_list(), shared_list()], V1, "k_Kt1_Lg0iA2f32_g1_Lg0iA2f32_g1"),
    ([ScalarConstraint(d) for d in (ct.int32, ct.float64, ct.bool_, ct.bfloat16, ct.float8_e4m3fn, ct.tfloat32)], V1,
     "k_Kt1_Si32_Sf64_Sb8_Sbf16_Sf8m3fn_Stf32"),
    ([5, -5, True, False, 1.5, -0.0, math.nan, math.inf], V1,
     "k_Kt1_I5_I_5_B1_B0_F3ff8000000000000_F8000000000000000_F7ff8000000000000_F7ff0000000000000"),
    ([(1, (2.0, True), ())], V2, "k_Kt2_T3I1T2F4000000000000000B1T0"),
    ([(ScalarConstraint(ct.int32), array(ct.float32, 1))], V2, "k_Kt2_T2Si32A1f32"),
    ([array(ct.float32, 11, stride_lower_bound_incl=0, stride_divisible_by=4)], V1, "k_Kt1_A11f32_7ffv4l0"),
]


@pytest.mark.parametrize(("parameters", "convention", "symbol"), EXAMPLES,
                         ids=lambda x: x if isinstance(x, str) else "")
def test_worked_examples_there_and_back(parameters, convention, symbol):
    assert mangle_kernel_name("k", KernelSignature(parameters, convention)) == symbol
    name, signature = demangle_kernel_name(symbol)
    assert (name, signature.symbol, signature.calling_convention) == ("k", symbol, convention)
    assert mangle_kernel_name("k", signature) == symbol


def test_the_last_mark_splits():
    assert demangle_kernel_name("my_K_kernel_K_Kt2")[0] == "my_K_kernel_K"


def test_groups_come_back_numbered():
    _, s = demangle_kernel_name("k_Kt1_A1f32_g0_A1f32_g0g1_A1i8_g1")
    assert [p.alias_groups for p in s.parameters] == [("group0",), ("group0", "group1"), ("group1",)]


@pytest.mark.parametrize("bad", ["k", "k_Kt3", "k_Kt1_", "k_Kt1_A", "k_Kt1_A1", "k_Kt1_A1f32_4t1", "k_Kt1_Q",
                                 "k_Kt1_F12", "k_Kt1_A1f32x", "k_Kt1_T1I1", "k_Kt1_A1f32_1s5", "k_Kt1_A1f32_g0"])
def test_malformed_names(bad):
    with pytest.raises(ValueError):
        demangle_kernel_name(bad)


@pytest.mark.parametrize("other", ["k_Kt1_I007", "k_Kt1_I_0", "k_Kt1_A1f32_1v1", "k_Kt1_A01f32", "k_Kt1_A2f32_2t1_1t4",
                                   "k_Kt1_A2f32_1t4_2t4", "k_Kt1_A1f32_p1", "k_Kt2_T01I1", "k_Kt1_A1f32_01t4",
                                   "k_Kt1_A1f32_g1_A1f32_g1", "k_Kt1_A1f32_1l0t1", "k_Kt1_I\u0665", "k_Kt1_A1f32_1v0",
                                   "k_Kt1_A1f32_1i_2"])
def test_each_signature_has_one_name(other):
    with pytest.raises(ValueError, match="malformed kernel name"):
        demangle_kernel_name(other)


@pytest.mark.parametrize(("name", "says"), [
    ("k_Kt1_A1f32_1l99999999999", "does not fit index_dtype int32 at offset 6"),
    ("k_Kt1_Si32_A1f32_p0", "base_addr_divisible_by must be positive .* at offset 11"),
    ("k_Kt2_A1f32_1s_4", "shape_constant must not be negative at offset 6"),
    ("k_Kt1_A1f32_g0g0_A1f32_g0", "named twice: .* at offset 6"), ("k_Kt1_A1f32_g0", "only one parameter at offset 14"),
    ("k_Kt1_T0", "use cutile_python_v2 at offset 8")])
def test_what_no_parameter_can_be_is_told_with_the_name(name, says):
    with pytest.raises(ValueError, match=f"^malformed kernel name '{name}': .*{says}$"):
        demangle_kernel_name(name)


@pytest.mark.parametrize("hostile", [
    "k_Kt1_A99999999f32", "k_Kt1_A65f32", "k_Kt1_A" + "9" * 60_000 + "f32", "k_Kt2_T99999999999I1",
    "k_Kt2_T" + "9" * 60_000, "k_Kt2_" + "T1" * 30_000, "k_Kt2_" + "T2" * 30_000 + "I1", "k_Kt1_I" + "9" * 60_000,
    "k_Kt1_I_" + "9" * 1001, "k_Kt1_A64f32_" + "f" * 60_000 + "s1", "k_Kt2_A64f32" + "_1i2" * 16_000,
    "k_Kt1_A1f32_p" + "9" * 30, "k_Kt1_A1f32_" + "g1" * 30_000, "k_Kt1_A1f32_g" + "1" * 60_000,
    "k_Kt1_A1f32_1l_" + "9" * 900, "k_Kt1_A2f32" + "_0t1" * 16_000, "_K" * 30_000, "_K" * 5_000_000,
    "k_Kt2" + "_T0" * 20_000 + "x", "k_Kt1" + "_Lg0A1f32" * 7_000 + "x", "k_Kt1" + "_" * 60_000], ids=lambda s: s[:16])
def test_what_a_name_asks_for_is_bounded(hostile):
    """Neither memory nor time, nor the stack, and the message is short."""
    start, limit = time.process_time(), sys.getrecursionlimit()
    with pytest.raises(ValueError) as e:
        demangle_kernel_name(hostile)
    assert time.process_time() - start < 5 and len(str(e.value)) < 1000 and sys.getrecursionlimit() == limit


@pytest.mark.parametrize("other", [None, 5, b"k_Kt1", ["k_Kt1"]], ids=repr)
def test_a_name_is_a_string(other):
    with pytest.raises(TypeError, match="a kernel name is a string"):
        demangle_kernel_name(other)


@given(st.text("_K1t2ATLSBIFgfsvlip0u8", max_size=40).map("k_Kt2_".__add__))
def test_any_text_is_read_or_refused(text):
    try:
        name, signature = demangle_kernel_name(text)
    except ValueError:
        return
    assert mangle_kernel_name(name, signature) == text


@pytest.mark.parametrize("dtype", [ct.float4_e2m1fn, ct.float8_e5m3fnu])
def test_dtypes_without_a_code(dtype):
    with pytest.raises(ValueError, match="Unexpected dtype"):
        mangle_kernel_name("k", KernelSignature([ScalarConstraint(dtype)], V1))


small = st.one_of(st.none(), st.integers(-9, 20))


@st.composite
def arrays(draw):
    n = draw(st.integers(0, 6))

    def each(s):
        return draw(st.lists(s, min_size=n, max_size=n))

    index = draw(st.sampled_from([ct.int32, ct.uint32, ct.int64]))
    strides = st.one_of(st.none(), st.integers(0, 20)) if index is ct.uint32 else small
    shape, stride = each(st.one_of(st.none(), st.integers(0, 9))), each(strides)
    return array(draw(st.sampled_from(sorted(CODES, key=str))), n, shape_constant=shape, stride_constant=stride,
                 stride_lower_bound_incl=[None if c is not None else low for c, low in zip(stride, each(small))],
                 shape_divisible_by=[1 if c is not None else d for c, d in zip(shape, each(st.integers(1, 16)))],
                 stride_divisible_by=[1 if c is not None else d for c, d in zip(stride, each(st.integers(1, 16)))],
                 base_addr_divisible_by=draw(st.integers(1, 64)), may_alias_internally=draw(st.booleans()),
                 index_dtype=index)


constants = st.one_of(st.booleans(), st.integers(-2**40, 2**40), st.floats())
constraints = st.recursive(st.one_of(arrays(), constants, st.sampled_from([ScalarConstraint(d) for d in CODES])),
                           lambda s: st.lists(s, max_size=3).map(tuple), max_leaves=6)


@given(st.lists(constraints, max_size=4))
def test_every_signature_comes_back(parameters):
    signature = KernelSignature(parameters, V2).with_mangled_symbol("f")
    name, back = demangle_kernel_name(signature.symbol)
    assert name == "f" and back == signature


@ct.kernel
def k(a):
    pass


@pytest.mark.parametrize(("shape", "convention", "tail"), [
    ((16, 32), V1, "A2f32_1v4l0_2t1_3i16_p16"), ((15, 31), V1, "A2f32_1l0_2t1_p16"),
    ((1, 32), V2, "A2f32_1s1v4l0_2i16t1_p16"), ((1, 32), V1, "A2f32_1v4l0_2i16t1_p16")])
def test_signatures_of_arguments(shape, convention, tail):
    raw = np.zeros(int(np.prod(shape)) * 4 + 16, np.uint8)
    start = -raw.__array_interface__["data"][0] % 16
    a = raw[start:start + int(np.prod(shape)) * 4].view(np.float32).reshape(shape)
    s = KernelSignature.from_kernel_args(k, (a,), convention)
    assert s.symbol == f"k_K{convention.code}_{tail}"

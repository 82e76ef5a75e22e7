"""The facts that launches compile for [SPEC-2, SPEC-3, SPEC-5, MNG-22…24]."""

from typing import Annotated

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.compilation import CallingConvention, KernelSignature
from cutile.compilation.derive import distinct_elements
from cutile.compilation.launch_signature import of_launch

V1, V2 = CallingConvention.cutile_python_v1(), CallingConvention.cutile_python_v2()


@ct.kernel
def k(x):
    pass


def one(x, kernel=k):
    """The constraint of a launch with one array, and its symbol."""
    constraints, symbol = of_launch(kernel, kernel.classify((x,)))
    return constraints[0], symbol


def aligned(shape, dtype=np.float32):
    memory = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + int(np.prod(shape)) * np.dtype(dtype).itemsize].view(dtype).reshape(shape)


@pytest.mark.parametrize("shape, symbol", [  # MNG-22
    ((16, 32), "k_Kt1_A2f32_1v4l0_2t1_3i16_p16"), ((15, 31), "k_Kt1_A2f32_1l0_2t1_p16"),
    ((1, 32), "k_Kt2_A2f32_1s1v4l0_2i16t1_p16")])
def test_symbols(shape, symbol):
    assert one(aligned(shape))[1] == symbol


def test_the_first_convention_has_no_constant_sizes():  # SPEC-6
    s = KernelSignature.from_kernel_args(k, (aligned((1, 32)),), V1)
    assert s.symbol == "k_Kt1_A2f32_1v4l0_2i16t1_p16"
    assert KernelSignature.from_kernel_args(k, (aligned((1, 32)),), V2).parameters[0].shape_constant == (1, None)


def test_negative_strides():
    c, symbol = one(aligned((16, 32))[::-1])
    assert c.stride_lower_bound_incl == (None, None) and c.may_alias_internally
    assert symbol == "k_Kt1_A2f32_1v4_2t1_3i16_p16i"
    assert one(aligned((16, 32))[:, ::-1])[0].stride_lower_bound_incl == (0, None)


def test_negative_static_strides():
    @ct.kernel
    def s(x: Annotated[object, ct.ArrayAnnotation(static_stride_dims=(0,))]):
        pass

    c, _ = one(aligned((16, 32))[::-1], s)
    assert c.stride_constant == (-32, None)


def test_high_ranks_have_few_facts():  # SPEC-2
    c, _ = one(aligned((1, 1, 16, 16, 1, 16)))
    assert c.stride_constant == c.shape_constant == (None,) * 6 and c.base_addr_divisible_by == 16
    assert c.shape_divisible_by == (1,) * 6 and not c.may_alias_internally


@pytest.mark.parametrize("shape, strides, distinct", [
    ((4, 6), (6, 1), True), ((4, 6), (1, 4), True), ((4, 6), (5, 1), False), ((4, 6), (0, 1), False),
    ((1, 6), (0, 1), True), ((4,), (-1,), False), ((), (), True), ((0, 3), (0, 1), True)])
def test_distinct_elements(shape, strides, distinct):
    assert distinct_elements(shape, strides) is distinct


def test_elements_of_half_a_byte():
    """NumPy keeps one in a byte, code two: the address says nothing, and strides count half."""
    c, _ = one(aligned((4, 64), ml_dtypes.float4_e2m1fn)[:, :48])
    assert c.base_addr_divisible_by == 1 and c.stride_divisible_by == (32, 1) and c.stride_constant == (None, 1)
    assert one(aligned((4, 48), ml_dtypes.float4_e2m1fn))[0].stride_divisible_by == (1, 1)

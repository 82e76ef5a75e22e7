"""ct.ArraySpec, and sample arguments wherever a signature is asked for."""

import io

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.compilation import CallingConvention, KernelSignature, export_kernel
from cutile.compilation.array_spec import samples
from cutile.runtime.annotations import ParameterSpec, ScalarAnnotation
from tests.gpu.tileir.tool import needs_tool

V1, V2 = CallingConvention.cutile_python_v1(), CallingConvention.cutile_python_v2()


@ct.kernel
def scaled(x, y, n, T: ct.Constant[int]):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), T) * n)


def constraint(spec, convention=V2):
    @ct.kernel
    def k(x):
        pass

    return KernelSignature.from_kernel_args(k, (spec,), convention).parameters[0]


@pytest.mark.parametrize("dtype", [ct.float32, ct.bfloat16, ct.float8_e4m3fn, ct.bool_, ct.int64, np.float16, ct.uint8])
def test_dtypes(dtype):
    assert constraint(ct.ArraySpec("M", dtype)).dtype == ct.ArraySpec(3, dtype).dtype


def test_open_sizes_promise_nothing():
    c = constraint(ct.ArraySpec("M N K", ct.float32))
    assert (c.shape_divisible_by, c.stride_divisible_by) == ((1, 1, 1), (1, 1, 1))
    assert (c.shape_constant, c.stride_constant) == ((None,) * 3, (None, None, 1))
    assert c.base_addr_divisible_by == 16 and not c.may_alias_internally


def test_what_is_said_of_sizes():
    c = constraint(ct.ArraySpec("M N 64", ct.float32, divisible={"N": 16}))
    assert (c.shape_divisible_by, c.stride_divisible_by) == ((1, 16, 16), (4, 4, 1))
    assert constraint(ct.ArraySpec(("M", 1), ct.int8)).shape_constant == (None, 1)
    assert constraint(ct.ArraySpec("M", ct.float32, aligned=False)).base_addr_divisible_by == 1
    assert constraint(ct.ArraySpec("M N", ct.float32, strides=(1, "L"))).stride_constant == (1, None)
    assert constraint(ct.ArraySpec("_ _", ct.float32)).shape_constant == (None, None)


@pytest.mark.parametrize("m, n", [(1, 1), (2, 3), (7, 100), (16, 16), (4096, 5)])
def test_open_sizes_hold_for_all(m, n):
    """What is derived from an open spec is promised by every array but for sizes of 1, which are constants."""
    open_, real = constraint(ct.ArraySpec("M N", ct.float16)), constraint(np.zeros((m, n), np.float16))
    assert all(b is not None or d % a == 0 for a, d, b in zip(open_.shape_divisible_by, real.shape_divisible_by,
                                                              real.shape_constant))


def test_names_of_several_arrays():
    a, b = samples((ct.ArraySpec("M K", ct.float32), ct.ArraySpec("K N", ct.float32, divisible={"K": 4})))
    assert a.shape[1] == b.shape[0] and a.shape[1] % 4 == 0 and len({*a.shape, *b.shape}) == 3
    [xs] = samples(([ct.ArraySpec("M", ct.int8), ct.ArraySpec("M", ct.int8)],))
    assert xs[0].shape == xs[1].shape and a.open == {0, 1}


def test_numbers():
    assert samples((ct.int32, ct.float32, ct.bool_, 3)) == (1, 1.0, True, 3)
    assert samples((ct.int64,), [ParameterSpec(scalar=ScalarAnnotation(ct.int64))])[0] > 2**31
    assert samples((ct.float16,), [ParameterSpec(constant=True)]) == (ct.float16,)
    with pytest.raises(TypeError, match=r"for an array write ct.ArraySpec\(shape, float16\)"):
        samples((ct.float16,))


@pytest.mark.parametrize("given, error", [
    (("M", "x"), TypeError), (("M+1", ct.int8), ValueError), ((2.5, ct.int8), TypeError), 
    (((1, None), ct.int8), TypeError),
    (("M", ct.int8, (1, 2)), ValueError), (("M", ct.int8, None, "M"), TypeError), (("*b", ct.int8), ValueError),
])
def test_what_is_no_spec(given, error):
    with pytest.raises(error):
        ct.ArraySpec(*given)


def test_a_spec_cannot_be_launched():
    with pytest.raises(TypeError, match="`x`.*ArraySpec cannot be passed"):
        ct.launch(None, (1,), scaled, (ct.ArraySpec("M", ct.float32), np.zeros(4, np.float32), 1, 4))


def test_it_shows_what_it_says():
    assert repr(ct.ArraySpec("M 3", ct.float16, divisible=4)) == "ArraySpec('M 3', float16, divisible=4)"


@pytest.mark.parametrize("arguments", [
    (ct.ArraySpec("M", ct.float32), ct.ArraySpec("M", ct.float32), ct.int32, 16),
    (np.zeros(16, np.float32), np.zeros(16, np.float32), 3, 16),
    (np.zeros(1, ml_dtypes.bfloat16), np.zeros(1, ml_dtypes.bfloat16), 3, 16),
])
def test_export_takes_sample_arguments(arguments):
    """The same bytecode as with the signature that is made by hand."""
    def exported(signature):
        f = io.BytesIO()
        export_kernel(scaled, [signature], f, gpu_code="sm_90", output_format="tileir_bytecode",
                      bytecode_version="13.2")
        return f.getvalue()

    assert exported(arguments) == exported(KernelSignature.from_kernel_args(scaled, arguments, V1))


def test_export_refuses_arguments_that_do_not_fit():
    for wrong in ((1, 2), (ct.ArraySpec("M", ct.float32),) * 3):
        with pytest.raises(TypeError):
            export_kernel(scaled, [wrong], io.BytesIO(), gpu_code="sm_90", output_format="tileir_bytecode")


@needs_tool
def test_two_arguments_of_one_signature():
    a = ct.ArraySpec("M", ct.float32)
    with pytest.raises(ValueError, match="two signatures have the symbol"):
        export_kernel(scaled, [(a, a, 1, 16), (a, a, 2, 16)], io.BytesIO(), gpu_code="sm_90", output_format="cubin")


@pytest.mark.parametrize(("options", "error", "says"), [
    ({"divisible": 0}, ValueError, "by an int of 1 or more, not by 0"),
    ({"divisible": -1}, ValueError, "by an int of 1 or more, not by -1"),
    ({"divisible": True}, ValueError, "by an int of 1 or more, not by True"),
    ({"divisible": {"N": 0}}, ValueError, "by an int of 1 or more, not by 0"),
    ({"divisible": {"N": 1.5}}, ValueError, "by an int of 1 or more, not by 1.5"),
    ({"aligned": "no"}, TypeError, "aligned is True or False, not 'no'"),
    ({"aligned": None}, TypeError, "aligned is True or False, not None"),
    ({"shape": b"N"}, TypeError, "b'N' is neither an int nor a name"),
    ({"shape": (True,)}, TypeError, "True is neither an int nor a name"),
    ({"shape": "N " * 65}, ValueError, "at most 64 axes, not 65")], ids=repr)
def test_what_nothing_can_be_promised_of(options, error, says):
    with pytest.raises(error, match=says):
        ct.ArraySpec(**{"shape": "N", "dtype": ct.float32, **options})


def test_packed_arrays_have_no_signature():
    @ct.kernel
    def k(x):
        pass

    with pytest.raises(TypeError, match="float4_e2m1fn are packed.*write uint8"):
        KernelSignature.from_kernel_args(k, (ct.ArraySpec("N", ct.float4_e2m1fn),),
                                         CallingConvention.cutile_python_v2())

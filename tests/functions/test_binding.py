"""Named sizes: what binds them, and what is checked."""

import re
from typing import Annotated

import numpy as np
import pytest

import cutile as ct
from tests.functions.kernels import unstored
from tests.functions.shows import shows


def function(x, y="_", **given):
    """A function of two arrays, whose sizes are these texts, and a number."""

    @ct.kernel
    def k(a: ct.Array[x], b: ct.Array[y], out, n):
        unstored(out)

    return ct.jit(k, **{"grid": (1,), "out": ct.Out("1", name="out"), "defaults": {"n": 0}, **given})


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def shape_of(f, *args):
    return f(*args).shape


@shows("JIT-4.bind")
def test_names_are_sizes():
    f = function("M K", "K N", out=ct.Out("N M K", name="out"))
    assert shape_of(f, zeros(2, 3), zeros(3, 4)) == (4, 2, 3)


@shows("JIT-4.equal")
def test_equal_names_are_equal_sizes():
    with pytest.raises(ValueError, match=re.escape(
            "k(): the size of `b` along axis 0 is 4, but K is 3, the size of `a` along axis 1")):
        function("M K", "K N")(zeros(2, 3), zeros(4, 4))
    with pytest.raises(ValueError, match="the size of `a` along axis 1 is 3, but M is 2"):
        function("M M")(zeros(2, 3), zeros(1))


@shows("JIT-4.rank")
def test_ranks():
    with pytest.raises(ValueError, match=re.escape("k(): `a` must have 2 axes (M K), got the shape (3,); ")):
        function("M K")(zeros(3), zeros(1))
    for text, shape, how in [("K", (2, 3), "a.reshape(-1)"), ("M K", (4, 2, 3), "a.reshape(-1, a.shape[-1])"),
                             ("B M K", (5, 4, 2, 3), "a.reshape(-1, *a.shape[-2:])")]:
        a = zeros(*shape)
        with pytest.raises(ValueError, match=re.escape(f"got the shape {shape}; {how} joins its first axes")):
            function(text)(a, zeros(1))
        assert eval(how).ndim == len(text.split())
    with pytest.raises(ValueError, match=re.escape("`a` must have at least 1 axis (*b K), got the shape ()")):
        function("*b K")(zeros(), zeros(1))


@shows("JIT-4.dtype")
def test_dtypes():
    f = function(("M", ct.float16))
    assert shape_of(f, zeros(3, dtype=np.float16), zeros(1)) == (1,)
    with pytest.raises(TypeError, match=re.escape("k(): `a` must have dtype float16, got float32")):
        f(zeros(3), zeros(1))


@shows("JIT-4.number")
def test_numbers():
    f = function("3 N")
    f(zeros(3, 5), zeros(1))
    with pytest.raises(ValueError, match="the size of `a` along axis 0 must be 3, got 4"):
        f(zeros(4, 5), zeros(1))


@shows("JIT-4.any")
def test_any_size():
    f = function("_ N", "_", out=ct.Out("N", name="out"))
    assert shape_of(f, zeros(7, 2), zeros(9)) == (2,)


@shows("JIT-4.rest")
def test_the_rest():
    f = function("*batch N", "*batch", out=ct.Out("N *batch", name="out"))
    assert shape_of(f, zeros(4, 5, 6), zeros(4, 5)) == (6, 4, 5)
    assert shape_of(f, zeros(6), zeros()) == (6,)
    with pytest.raises(ValueError, match=re.escape("the sizes *batch of `b` is (5,), but batch is (4,)")):
        f(zeros(4, 6), zeros(5))
    g = function("A *batch N", out=ct.Out("A N", name="out"))
    assert shape_of(g, zeros(2, 5, 5, 3), zeros(1)) == (2, 3)


@shows("JIT-4.expression")
def test_expressions():
    f = function("M", "M+1")
    f(zeros(3), zeros(4))
    with pytest.raises(ValueError, match=re.escape("the size of `b` along axis 0 must be M+1 = 4, got 3, M = 3 is the "
                                                   "size of `a` along axis 0")):
        f(zeros(3), zeros(3))
    function("2*N", "N")(zeros(6), zeros(3))
    function("cdiv(N, 4) N")(zeros(2, 5), zeros(1))
    with pytest.raises(ValueError, match="which cannot be computed"):
        function("4//N", "N")(zeros(1), zeros(0))


@shows("JIT-4.argument")
def test_sizes_and_arguments_of_one_name():
    f = function("n", out=ct.Out("n", name="out"), defaults={})
    assert shape_of(f, zeros(3), zeros(1)) == (3,)
    f(zeros(3), zeros(1), n=3)
    with pytest.raises(ValueError, match="the size of `a` along axis 0 is 3, but the argument `n` is 4"):
        f(zeros(3), zeros(1), 4)


def programs(kernel):
    return len(kernel._programs)


@shows("JIT-4.constant", "JIT-4.dynamic")
@pytest.mark.parametrize("sizes, compiled", [("M N", 1), ("M =N", 3), ("*b =N", 3)])
def test_constant_and_dynamic_sizes(sizes, compiled):
    @ct.kernel
    def k(x: ct.Array[sizes], y):
        ct.static_assert(isinstance(x.shape[1], int) == ("=" in sizes))
        ct.store(y, 0, x.shape[1])

    f = ct.jit(k, grid=(1,), out=ct.Out("1", ct.int32))
    assert [f(zeros(2, n))[0] for n in (3, 5, 9)] == [3, 5, 9]
    assert programs(k) == compiled


@shows("JIT-4.annotated")
def test_annotated():
    @ct.kernel
    def k(x: Annotated[ct.Array, ct.Sizes("N N")], y):
        unstored(y)

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    assert f(zeros(2, 2)).shape == (2,)
    with pytest.raises(ValueError, match="but N is 2"):
        f(zeros(2, 3))


@shows("JIT-4.int64")
def test_with_other_annotations():
    @ct.kernel
    def k(x: ct.IndexedWithInt64[ct.Array["=N"]], y):
        ct.static_assert(x.shape[0] == 3)
        unstored(y)

    assert ct.jit(k, grid=(1,), out=ct.Out("N"))(zeros(3)).shape == (3,)
    assert k.parameters["x"].array.index_dtype is ct.int64


def test_annotations_that_contradict_names():
    with pytest.raises(TypeError, match="only an array has named sizes"):
        @ct.kernel
        def k(x: ct.Constant[ct.Array["N"]]):
            pass
    with pytest.raises(TypeError, match="not both"):
        @ct.kernel
        def k2(x: Annotated[ct.Array["=N"], ct.ArrayAnnotation(static_shape_dims=(0,))]):
            pass


@shows("JIT-5.kernel")
def test_launches_take_other_sizes():
    @ct.kernel
    def k(x: ct.Array["3 N", ct.float16], y: ct.Array["N"]):
        ct.store(y, 0, x.shape[0])

    y = zeros(2)
    ct.launch(None, (1,), k, (zeros(7, 5), y))
    assert y[0] == 7


@shows("JIT-5.left")
def test_constants_that_are_sizes():
    @ct.kernel
    def k(x: ct.Array["M N"], y, N: ct.Constant[int]):
        ct.static_assert(N == 4)
        ct.store(y, 0, ct.sum(ct.load(x, (0, 0), (1, N))))

    f = ct.jit(k, grid=(1,), out=ct.Out("1"))
    assert f(np.ones((1, 4), np.float32))[0] == 4
    assert f(np.ones((1, 4), np.float32), 4)[0] == 4


@shows("JIT-15.places")
def test_arrays_of_cpu_and_gpu():
    from tests.gpu.arrays import Cuda

    with pytest.raises(TypeError, match=re.escape("k(): the arrays of a call must be on one device, but `a` is in CPU "
                                                  "memory and `b` is in the memory of GPU 0; copy one")):
        b = Cuda(zeros(3))
        b.__dlpack_device__ = lambda: (2, 0)
        function("M")(zeros(3), b)


@shows("JIT-15.gpus")
def test_arrays_of_two_gpus():
    from tests.gpu.arrays import Cuda

    a, b = Cuda(zeros(3)), Cuda(zeros(3))
    a.__dlpack_device__, b.__dlpack_device__ = lambda: (2, 0), lambda: (2, 1)
    with pytest.raises(ValueError, match="`a` is in the memory of GPU 0 and `b` is in the memory of GPU 1"):
        function("M")(a, b)


@shows("JIT-16.off")
def test_names_without_checks():
    f = function("M K", "K N", checks=False, out=ct.Out("K", name="out"))
    assert shape_of(f, zeros(2, 3), zeros(4, 4)) == (3,)
    with pytest.raises(ValueError, match="`a` must have 2 axes"):
        f(zeros(2), zeros(4, 4))


@pytest.mark.parametrize("wrong", [3, 2.5, None, "x", object(), [1.0], (np.zeros(3),)])
def test_what_is_no_array(wrong):
    number = f"the number {wrong}" if isinstance(wrong, int | float) else "an object of type"
    with pytest.raises(TypeError, match=re.escape(f"k(): `a` must be an array, got {number}")):
        function("M")(wrong, zeros(1))


def test_an_array_of_a_dtype_that_kernels_lack():
    with pytest.raises(TypeError, match=re.escape("k(): `b`: an array of dtype complex64 cannot be passed")):
        function("M")(zeros(3), zeros(3, dtype=np.complex64))

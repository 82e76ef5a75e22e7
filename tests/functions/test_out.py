"""ct.Out: declared outputs, and what they are at a call."""

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from tests.functions.kernels import unstored
from tests.functions.shows import shows


@ct.kernel
def untouched(x: ct.Array["M N"], y, n, z):
    unstored(y)


def function(*outs, **given):
    return ct.jit(untouched, **{"grid": (1,), "out": outs, "defaults": {"n": 7}, **given})


X = np.zeros((2, 3), np.float32)
ONE = {"name": "y"}
Z = np.zeros(1, np.float32)


def one(out):
    return function(out)(X, z=Z)


@shows("JIT-7.text")
def test_shapes_as_text():
    assert one(ct.Out("M 2*N", **ONE)).shape == (2, 6)
    assert one(ct.Out("N cdiv(N, 2) 4", **ONE)).shape == (3, 2, 4)
    assert one(ct.Out("", **ONE)).shape == ()
    assert one(ct.Out("n", **ONE)).shape == (7,)


@shows("JIT-7.tuple")
def test_shapes_as_tuples():
    assert one(ct.Out(("M", 5, "N+1"), **ONE)).shape == (2, 5, 4)
    assert one(ct.Out((), **ONE)).shape == ()


@shows("JIT-7.function")
def test_shapes_as_functions():
    assert one(ct.Out(lambda M, n: (n, M), **ONE)).shape == (7, 2)
    f = function(ct.Out(lambda x: x.shape[::-1], **ONE))
    assert f(X, z=Z).shape == (3, 2) and f(np.zeros((5, 4), np.float32), z=Z).shape == (4, 5)


@shows("JIT-7.like")
def test_like_a_parameter():
    got = function(ct.Out(like="z", **ONE))(X, z=np.zeros((4, 1), np.int8))
    assert (got.shape, got.dtype) == ((4, 1), np.int8)


@shows("JIT-7.dtype")
def test_dtypes():
    z = np.zeros(1, np.int16)
    cases = {None: np.float32, ct.float16: np.float16, np.int8: np.int8, "z": np.int16,
             ct.bfloat16: ml_dtypes.bfloat16, ct.float8_e4m3fn: ml_dtypes.float8_e4m3fn}
    for given, want in cases.items():
        assert function(ct.Out("M", given, **ONE))(X, z=z).dtype == want
    by_function = ct.Out("M", lambda n: ct.int64 if n > 5 else ct.int32, **ONE)
    assert function(by_function)(X, z=z).dtype == np.int64
    assert function(by_function)(X, n=1, z=z).dtype == np.int32


@shows("JIT-7.fill")
@pytest.mark.parametrize("dtype", [ct.float32, ct.int8, ct.bfloat16, ct.bool_])
def test_fill(dtype):
    assert (one(ct.Out("M", dtype, fill=1, **ONE)).astype(np.float32) == 1).all()


@shows("JIT-7.fill")
@pytest.mark.parametrize("dtype, fill", [(ct.int32, 0.5), (ct.uint8, 300), (ct.uint8, -1), (ct.int8, float("nan")),
                                         (ct.int64, float("inf")), (ct.bool_, 2)])
def test_fills_that_a_dtype_does_not_have(dtype, fill):
    with pytest.raises(ValueError, match=f"^the fill of output `y` is {fill!r}, which {dtype.name} does not have$"):
        ct.Out("M", dtype, fill=fill, **ONE)
    z = np.zeros(1, dtype.name.rstrip("_"))
    with pytest.raises(ValueError, match=rf"^untouched\(\): the fill of output `y` is {fill!r}, which"):
        function(ct.Out("M", "z", fill=fill, **ONE))(X, z=z)


@shows("JIT-7.poison")
def test_what_no_block_stores_can_be_seen():
    assert np.isnan(one(ct.Out("M", **ONE))).all()
    assert np.isnan(one(ct.Out("M", ct.float8_e5m2, **ONE)).astype(np.float32)).all()
    assert (one(ct.Out("M", ct.int16, **ONE)) == -2**15).all()
    assert (one(ct.Out("M", ct.uint8, **ONE)) == 255).all()


@shows("JIT-8.anywhere")
def test_outputs_stand_anywhere():
    @ct.kernel
    def k(a, x: ct.Array["N"], b, y: ct.Array["N"], c):
        t = ct.load(x, 0, 4) + ct.load(y, 0, 4)
        ct.store(a, 0, t)
        ct.store(b, 0, -t)
        ct.store(c, 0, t * 2)

    f = ct.jit(k, grid=(1,), out=(ct.Out("N", name="b"), ct.Out("N", name="a"), ct.Out("N", name="c")))
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    for _ in range(2):
        a, b, c = f(x, y)
        assert np.array_equal(a, x + 1) and np.array_equal(b, -a) and np.array_equal(c, 2 * a)


def test_a_shape_from_a_later_parameter():
    @ct.kernel
    def k(y, x: ct.Array["N"]):
        unstored(y)

    assert ct.jit(k, grid=(1,), out=ct.Out("N", ct.int8, name="y"))(X[0]).shape == (3,)


def test_outputs_without_names_are_the_last_arrays():
    @ct.kernel
    def k(x: ct.Array["N"], y, z, n: ct.ScalarInt64, T: ct.Constant[int]):
        unstored(y)
        unstored(z)

    f = ct.jit(k, grid=(1,), out=(ct.Out("1"), ct.Out("2")))
    assert [o.name for o in f.outputs] == ["y", "z"]
    assert [a.shape for a in f(X[0], 1, 2)] == [(1,), (2,)]


@pytest.mark.parametrize("given, message", [
    ({}, "either a shape or like="), ({"shape": "M", "like": "x"}, "either a shape or like="),
    ({"shape": "M", "fill": "0"}, "fill is a number"), ({"shape": "M", "dtype": 3}, "the dtype of an output"),
    ({"shape": "M", "dtype": float}, "write ct.float64, or ct.float32"),
    ({"shape": "M", "dtype": np.complex64}, "not <class 'numpy.complex64'>"),
    ({"shape": "M", "name": 3}, "name is the name of a parameter"),
])
def test_wrong_declarations(given, message):
    with pytest.raises(TypeError, match=message):
        ct.Out(**given)


@pytest.mark.parametrize("out, message", [
    (ct.Out("K", name="y"), "K is no named size and no argument; there are M, N"),
    (ct.Out("_", name="y"), "_ stands for no size"), (ct.Out("M /", name="y"), "is no size"),
    (ct.Out(3.5, name="y"), "the shape of output `y` is text"), (ct.Out((1.5,), name="y"), "1.5 is no size"),
    (ct.Out(lambda K: (K,), name="y"), "takes `K`, which is no named size"),
    (ct.Out(lambda *a: (1,), name="y"), "parameters of its function are names"),
    (ct.Out("M", name="yy"), "output yy is no parameter of the kernel; did you mean y?"),
    (ct.Out(like="w", name="y"), "w is no input"),
    (ct.Out(like="y", name="y"), 'cannot be like itself; if `y` is an argument that the kernel writes'),
    (ct.Out("M", "f4", name="y"), "write ct.float32, without quotes"),
    (ct.Out("x.shape[0]", name="y"), 'name the sizes of an array, as in x: ct.Array["M N"], and write M'),
    (ct.Out("M", "float32", name="y"), "write ct.float32, without quotes"),
])
def test_declarations_that_do_not_fit(out, message):
    with pytest.raises((TypeError, ValueError)) as e:
        function(out)
    assert message in str(e.value)


def test_declared_twice():
    with pytest.raises(TypeError, match="declared as an output twice"):
        function(ct.Out("M", name="y"), ct.Out("M", name="y"))


@pytest.mark.parametrize("out, message", [
    (ct.Out(lambda M: 3, **ONE), "the shape of output `y` must be a tuple of ints, got 3; a tuple of one is written"),
    (ct.Out(lambda M: (2.5,), **ONE), "must be ints, got 2.5 for axis 0"),
    (ct.Out("M-3", **ONE), "must not be negative, got -1 for axis 0, for M = 2"),
    (ct.Out("M//(N-3)", **ONE), "ZeroDivisionError"), (ct.Out("M", lambda: 3, **ONE), "must be a dtype, got 3"),
    (ct.Out("M", device="cpu", **ONE), "is where the arrays are"),
])
def test_what_cannot_be_computed_at_a_call(out, message):
    with pytest.raises((TypeError, ValueError)) as e:
        one(out)
    assert message in str(e.value) and str(e.value).startswith("untouched(): ")

"""Annotations of kernel parameters."""

from typing import Annotated, Any, get_args

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, fails, run

INT64 = get_args(ct.ScalarInt64)[1]

A1, A2 = np.zeros(4, np.int32), np.zeros((4, 6), np.float32)


def parameter(annotation, value):
    """(value or None if not constant, dtype name) of a scalar parameter."""
    seen = []

    @ct.kernel
    def k(x: annotation):
        d = x.dtype
        ct.static_eval(seen.append((x, d)))

    accepts(k, value)
    x, d = seen[-1]
    return (None if isinstance(x, ct.Tile) else x), d.name


def sizes(annotation, array):
    """For sizes and strides: (value or None, dtype name) of each."""
    seen = []

    @ct.kernel
    def k(x: annotation):
        for v in ct.static_iter(range(len(x.shape))):
            s, t = x.shape[v], x.strides[v]
            d = s.dtype
            ct.static_eval(seen.append((s, t, d)))

    accepts(k, array)
    known = lambda v: None if isinstance(v, ct.Tile) else v
    return [(known(s), known(t), d.name) for s, t, d in seen]


@pytest.mark.parametrize("annotation", [
    pytest.param(ct.Constant[int], marks=clause("ANN-1.typed")),
    pytest.param(ct.Constant, marks=clause("ANN-1.bare")),
    pytest.param(Annotated[int, ct.ConstantAnnotation()], marks=clause("ANN-1.annotated")),
    pytest.param(Annotated[Any, "more", ct.ConstantAnnotation()], marks=clause("ANN-1.annotated"))])
def test_constant_parameters(annotation):
    assert parameter(annotation, 5) == (5, "int32")
    assert parameter(annotation, 1 << 40) == (1 << 40, "int64")
    assert parameter(annotation, True) == (True, "bool_")
    assert parameter(annotation, 0.5) == (0.5, "float32")


@clause("ANN-1.loose")
def test_constants_are_loose():
    @ct.kernel
    def k(n: ct.Constant[int], y: ct.Constant[float]):
        a, b = ct.int8(1) + n, ct.float16(1) + y
        c = n + (1 << 40)
        ad, bd, cd = a.dtype, b.dtype, c.dtype
        ct.static_assert(ad == ct.int8)
        ct.static_assert(bd == ct.float16)
        ct.static_assert(cd == ct.int64)

    accepts(k, 5, 0.5)


@clause("ANN-1.unchecked")
def test_the_type_is_not_checked():
    assert parameter(ct.Constant[int], 5.5) == (5.5, "float32")
    assert parameter(ct.Constant[bool], 7) == (7, "int32")


@clause("ANN-1.variant")
def test_each_value_compiles():
    @ct.kernel
    def k(n: ct.Constant[int], out):
        ct.store(out, 0, ct.full((n,), 1, ct.int32))

    for n in (1, 2, 4, 2):
        assert run(k, n, np.zeros(4, np.int32)).sum() == n


@clause("ANN-1.array")
def test_arrays_are_no_constants():
    @ct.kernel
    def k(x: ct.Constant):
        pass

    fails(TypeError, k, A1)
    fails(TypeError, k, [A1])


@pytest.mark.parametrize("annotation", [
    pytest.param(ct.ScalarInt64, marks=clause("ANN-2.int64")),
    pytest.param(Annotated[int, INT64], marks=clause("ANN-2.annotated"))])
def test_int64_scalars(annotation):
    assert parameter(annotation, 5) == (None, "int64")


@clause("ANN-2.large", "ANN-2.range")
def test_large_scalars():
    @ct.kernel
    def k(x: ct.ScalarInt64, out):
        ct.store(out, 0, x)

    for v in (1 << 40, -(1 << 63), (1 << 63) - 1):
        assert run(k, v, np.zeros(1, np.int64)).tolist() == [v]
    fails(OverflowError, k, 1 << 63, np.zeros(1, np.int64))


@pytest.mark.parametrize("value", [
    pytest.param(True, marks=clause("ANN-2.bool")), pytest.param(1.0, marks=clause("ANN-2.float")),
    pytest.param(A1, marks=clause("ANN-2.array"))], ids=str)
def test_int64_scalars_are_ints(value):
    @ct.kernel
    def k(x: ct.ScalarInt64):
        pass

    fails(TypeError, k, value)


@clause("ANN-3.indexed", "ANN-3.index_dtype", "ANN-3.default")
def test_index_dtypes():
    assert sizes(ct.IndexedWithInt64[Any], A1) == [(None, None, "int64")]
    assert sizes(Annotated[Any, ct.ArrayAnnotation(index_dtype=ct.int64)], A1) == [(None, None, "int64")]
    assert sizes(Any, A1) == [(None, None, "int32")]
    assert sizes(Annotated[Any, ct.ArrayAnnotation()], A1) == [(None, None, "int32")]


@pytest.mark.parametrize("options, want", [
    pytest.param({"static_shape_dims": (0,)}, [(4, None), (None, None)], marks=clause("ANN-3.shape")),
    pytest.param({"static_shape_dims": (0, 1)}, [(4, None), (6, None)], marks=clause("ANN-3.shape")),
    pytest.param({"static_stride_dims": (0,)}, [(None, 6), (None, None)], marks=clause("ANN-3.stride")),
    pytest.param({"static_stride_dims": (1,), "static_shape_dims": (1,)}, [(None, None), (6, 1)],
                 marks=clause("ANN-3.stride")),
    pytest.param({"static_shape_dims": (-1,)}, [(None, None), (6, None)], marks=clause("ANN-3.negative")),
    pytest.param({"static_stride_dims": (-2,)}, [(None, 6), (None, None)], marks=clause("ANN-3.negative"))], ids=str)
def test_static_dims(options, want):
    got = sizes(Annotated[Any, ct.ArrayAnnotation(**options)], A2)
    assert [(s, t) for s, t, _ in got] == want


@clause("ANN-3.variant")
def test_each_static_size_compiles():
    @ct.kernel
    def k(x: Annotated[Any, ct.ArrayAnnotation(static_shape_dims=(0,))], out):
        ct.store(out, 0, ct.sum(ct.load(x, 0, (x.shape[0],))))

    for n in (2, 8, 2):
        assert run(k, np.ones(n, np.int32), np.zeros(1, np.int32)).tolist() == [n]


@clause("ANN-3.range")
@pytest.mark.parametrize("options", [{"static_shape_dims": (2,)}, {"static_stride_dims": (-3,)}], ids=str)
def test_static_dims_out_of_range(options):
    @ct.kernel
    def k(x: Annotated[Any, ct.ArrayAnnotation(**options)]):
        pass

    fails(ValueError, k, A2)
    if options == {"static_shape_dims": (2,)}:
        accepts(k, np.zeros((1, 1, 1), np.int32))


@pytest.mark.parametrize("options, error", [
    pytest.param({"index_dtype": ct.int8}, ValueError, marks=clause("ANN-3.dtype")),
    pytest.param({"index_dtype": ct.float32}, ValueError, marks=clause("ANN-3.dtype")),
    pytest.param({"static_shape_dims": [0]}, TypeError, marks=clause("ANN-3.tuple")),
    pytest.param({"static_stride_dims": 0}, TypeError, marks=clause("ANN-3.tuple")),
    pytest.param({"static_shape_dims": ("a",)}, TypeError, marks=clause("ANN-3.int")),
    pytest.param({"static_stride_dims": (1.0,)}, TypeError, marks=clause("ANN-3.int"))], ids=str)
def test_wrong_array_annotations(options, error):
    with pytest.raises(error):
        ct.ArrayAnnotation(**options)


@clause("ANN-3.scalar")
def test_numbers_for_annotated_arrays():
    @ct.kernel
    def k(x: ct.IndexedWithInt64[Any]):
        pass

    fails(TypeError, k, 1)
    fails(TypeError, k, 1.0)


@pytest.mark.parametrize("element", [
    pytest.param(ct.ArrayAnnotation(static_shape_dims=(0,)), marks=clause("ANN-4.element")),
    pytest.param(Annotated[Any, ct.ArrayAnnotation(static_shape_dims=(0,))], marks=clause("ANN-4.annotated"))], ids=str)
def test_lists(element):
    @ct.kernel
    def k(xs: Annotated[Any, ct.ListAnnotation(element=element)]):
        n = xs[0].shape[0]
        ct.static_assert(n == 4)

    accepts(k, [A1, A1])


def items(annotation, value):
    seen = []

    @ct.kernel
    def k(x: annotation):
        for i in ct.static_iter(range(len(x))):
            v = x[i]
            ct.static_eval(seen.append(v))

    accepts(k, value)
    return [None if isinstance(v, ct.Tile) else v for v in seen]


@clause("ANN-5.items")
def test_annotated_items():
    assert items(tuple[ct.Constant, int], (1, 2)) == [1, None]
    assert items(tuple[int, ct.Constant[int]], (1, 2)) == [None, 2]


@clause("ANN-5.repeat")
def test_repeated_items():
    assert items(tuple[ct.Constant[int], ...], (1, 2, 3)) == [1, 2, 3]
    assert items(tuple[int, ...], (1, 2)) == [None, None]


@clause("ANN-5.constant", "ANN-5.outer")
def test_constant_tuples():
    assert items(ct.Constant[tuple[int, int]], (1, 2)) == [1, 2]
    assert items(ct.Constant, (1, 2.5)) == [1, 2.5]
    assert items(Annotated[tuple[int, int], ct.ConstantAnnotation()], (1, 2)) == [1, 2]


@clause("ANN-5.bare")
def test_bare_tuples():
    assert items(tuple, (1, 2)) == [None, None]
    assert items(Any, (1, 2, 3)) == [None] * 3


@clause("ANN-5.length", "ANN-5.kind")
def test_tuples_that_do_not_match():
    @ct.kernel
    def k(x: tuple[int, ct.Constant[int]]):
        pass

    accepts(k, (1, 2))
    fails(TypeError, k, (1,))
    fails(TypeError, k, (1, 2, 3))
    fails(TypeError, k, 1)
    fails(TypeError, k, A1)


BOTH = {
    "Constant": ct.ConstantAnnotation(), "Scalar": INT64, "Array": ct.ArrayAnnotation(),
    "List": ct.ListAnnotation(element=ct.ArrayAnnotation()),
}


@clause("ANN-6")
@pytest.mark.parametrize("a, b", [(a, b) for a in BOTH for b in BOTH if a < b])
def test_two_annotations(a, b):
    with pytest.raises(TypeError):
        @ct.kernel
        def k(x: Annotated[Any, BOTH[a], BOTH[b]]):
            pass

        accepts(k, 1)


def helper(n: ct.Constant[int], x: ct.ScalarInt64) -> str:
    return n + x


@clause("ANN-7")
def test_annotations_of_helpers():
    @ct.kernel
    def k(n, out):
        d = helper(n, n).dtype
        ct.static_assert(d == ct.int32)
        ct.store(out, 0, helper(n, n))

    assert run(k, 4, np.zeros(1, np.int32)).tolist() == [8]


@clause("ANN-8")
def test_plain_annotations():
    for annotation in (int, float, str, np.ndarray, list, "int", None):
        assert parameter(annotation, 3) == (None, "int32")
    assert parameter(int, 2.0) == (None, "float32")

"""Annotations of kernel parameters [ANN-*, KERN-1]."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import numpy as np
import pytest

import cutile as ct
from cutile.runtime.annotations import PLAIN, ParameterSpec, spec_of, specs_of

I64 = ct.ArrayAnnotation(index_dtype=ct.int64)


def test_constants():  # ANN-1
    for a in (
        ct.Constant,
        ct.Constant[int],
        Annotated[int, ct.ConstantAnnotation()],
        Annotated[int, "other", ct.ConstantAnnotation()],
    ):
        assert spec_of(a, "p").constant


def test_scalars_arrays_lists():  # ANN-2…4
    assert spec_of(ct.ScalarInt64, "p").scalar.dtype is ct.int64
    assert spec_of(ct.ScalarInt64[int], "p").scalar.dtype is ct.int64
    assert spec_of(ct.IndexedWithInt64, "p").array == I64
    assert spec_of(ct.IndexedWithInt64["object"], "p").array == I64
    for element in (I64, Annotated[object, I64]):
        assert spec_of(Annotated[list, ct.ListAnnotation(element=element)], "p").list.element == I64


def test_plain_annotations_are_ignored():
    for a in ("anything", None, list[int], Annotated[str, "note"], object(), tuple, dict[str, int], int | None | str):
        assert spec_of(a, "p") == PLAIN


def test_numbers():  # launches ignore them, too
    for a in (int, float, bool, np.float16, np.integer, ct.int64, int | None, float | int, Annotated[int, "note"]):
        assert spec_of(a, "p") == ParameterSpec(number=True)


def test_tuples():  # ANN-5
    spec = spec_of(tuple[ct.Constant[int], int, ct.ScalarInt64], "p")
    assert [s.constant for s in spec.items] == [True, False, False]
    assert spec.items[2].scalar.dtype is ct.int64
    assert all(s.constant for s in islice(spec_of(tuple[ct.Constant, ...], "p").items, 5))
    outer = spec_of(ct.Constant[tuple[ct.ScalarInt64, tuple[int, ...]]], "p")
    first, second = outer.items
    assert first == ParameterSpec(True) and all(s.constant for s in islice(second.items, 5))
    assert all(s.constant for s in islice(spec_of(ct.Constant[tuple], "p").items, 5))
    assert not any(s.constant for s in islice(PLAIN.items, 5))


def test_contradictions():  # ANN-6
    for a in (Annotated[int, ct.ConstantAnnotation(), ct.ScalarAnnotation(dtype=ct.int64)], ct.Constant[ct.ScalarInt64],
              Annotated[object, I64, ct.ListAnnotation(element=I64)], ct.IndexedWithInt64[ct.Constant]):
        with pytest.raises(TypeError, match="parameter `p`: only one of"):
            spec_of(a, "p")


def test_wrong_annotations():  # ANN-3, ANN-4
    with pytest.raises(ValueError, match="index_dtype"):
        ct.ArrayAnnotation(index_dtype=ct.int8)
    for dims in ([0], 0, (True,), (1.0,), ("0",)):
        with pytest.raises(TypeError, match="static_shape_dims"):
            ct.ArrayAnnotation(static_shape_dims=dims)
        with pytest.raises(TypeError, match="static_stride_dims"):
            ct.ArrayAnnotation(static_stride_dims=dims)
    for name in ("static_shape_dims", "static_stride_dims"):
        with pytest.raises(ValueError, match=f"{name} names a dim twice"):
            ct.ArrayAnnotation(**{name: (1, 0, 1)})
    with pytest.raises(ValueError):
        ct.ScalarAnnotation(dtype=ct.float32)
    for element in (3, Annotated[int, 3], int, Annotated[int, I64, I64]):
        with pytest.raises(TypeError, match="ArrayAnnotation"):
            ct.ListAnnotation(element=element)
    with pytest.raises(TypeError):
        ct.ListAnnotation(I64)


def test_string_annotations_are_resolved():  # KERN-1: this file's annotations are all strings
    def k(a: ct.Constant[int], b: ct.ScalarInt64, c: int, d, e: ct.IndexedWithInt64 = None) -> None:
        pass

    specs = specs_of(k)
    assert specs["a"].constant and specs["b"].scalar and specs["e"].array == I64
    assert specs["c"] == ParameterSpec(number=True)
    assert "d" not in specs and "return" not in specs


def test_unresolvable_annotation():  # KERN-1
    with pytest.raises(NameError):
        @ct.kernel
        def k(a: Nowhere):  # noqa: F821
            pass


def test_equality_and_repr():
    assert ct.ConstantAnnotation() == ct.ConstantAnnotation() != 3
    assert len({ct.ConstantAnnotation(), ct.ConstantAnnotation()}) == 1
    assert repr(ct.ConstantAnnotation()) == "ConstantAnnotation()"

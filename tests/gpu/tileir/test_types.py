"""Types of Tile IR: their text, the element types of dtypes, versions."""

import re

import pytest

from cutile import dtypes
from cutile.gpu.tileir import types as ty
from tests.tileir_eval.bytecode_reader import SCALARS

ARRAY = ty.TensorView(ty.f32, (None, 8), (8, 1))


@pytest.mark.parametrize("t, text", [
    (ty.i1, "i1"), (ty.Pointer(ty.f16), "ptr<f16>"), (ty.Tile(ty.i32), "tile<i32>"),
    (ty.tile(ty.ptr(ty.e4m3), [4, 2]), "tile<4x2xptr<f8E4M3FN>>"),
    (ARRAY, "tensor_view<?x8xf32, strides=[8,1]>"),
    (ty.PartitionView((4, 2), ARRAY), f"partition_view<tile=(4,2), {ARRAY}>"),
    (ty.PartitionView((4, 2), ARRAY, (1, 0), "zero"),
     f"partition_view<tile=(4,2), padding_value=zero, {ARRAY}, dim_map=[1,0]>"),
    (ty.StridedView((4, 2), (1, 2), ARRAY), f"strided_view<tile=(4,2), traversal_strides=[1,2], {ARRAY}>"),
    (ty.GatherScatterView((4, 2), ARRAY, 0), f"gather_scatter_view<tile=(4,2), {ARRAY}, sparse_dim=0>"),
    (ty.token, "token"), (ty.Function((ty.i32, ty.token), (ty.f32,)), "(i32, token) -> (f32)"),
])
def test_text(t, text):
    assert str(t) == text


def test_views_without_a_map_have_the_identity_and_types_compare_by_value():
    assert ty.PartitionView((4, 2), ARRAY).dim_map == (0, 1)
    assert ty.PartitionView((4, 2), ARRAY) == ty.PartitionView((4, 2), ARRAY, (0, 1))
    assert ty.Tile(ty.i32, (4,)) == ty.Tile(ty.i32, (4,)) != ty.Tile(ty.i32, (2, 2))
    assert ty.Tile(ty.i32, (4, 2)).size == 8 and ty.Tile(ty.i32).size == 1


def test_every_dtype_has_an_element_type_of_its_width():
    for d in dtypes.INFO:
        if dtypes.info(d).pointee is not None:
            continue
        bits = {dtypes.bool_: 1, dtypes.tfloat32: 19}.get(d, d.bitwidth)
        assert ty.of_dtype(d).bits == bits, d
        assert ty.in_memory(d) is (ty.i8 if d is dtypes.bool_ else ty.of_dtype(d))
    tags = [s.tag for s in SCALARS]
    assert len(set(tags)) == len(tags)


def test_element_types_have_the_bits_that_their_names_tell():
    for t in SCALARS:
        assert t.bits == (19 if t is ty.tf32 else int(re.search(r"\d+", t.name)[0])), t
        assert t.since in ty.VERSIONS


def test_a_foreign_pointer_is_a_pointer():
    assert ty.of_dtype(dtypes.foreign_pointer_dtype(dtypes.bool_)) == ty.ptr(ty.i8)


def test_versions():
    assert ty.parse_version("13.2") == ty.parse_version([13, 2]) == (13, 2)
    assert [ty.parse_version(ty.version_text(v)) for v in ty.VERSIONS] == list(ty.VERSIONS)
    for unknown in ("12.9", "13.9", (14, 0)):
        with pytest.raises(ValueError, match="is not one of 13.1, 13.2"):
            ty.parse_version(unknown)
